package estimate

import (
	"slices"
	"strings"
)

// stems are the names of families of models. A cloud may put a region, a vendor or a
// deployment in front of one. The first that a name contains counts.
var stems = []string{
	"claude", "gemini", "gemma", "nova-", "gpt-oss", "llama", "deepseek", "qwen", "qwq", "mixtral", "ministral", "mistral",
	"pixtral", "codestral", "devstral", "magistral", "voxtral", "command-", "grok", "granite", "palmyra", "kimi", "glm-", "jamba",
	"chatgpt", "gpt-", "text-embedding", "davinci-002", "babbage-002",
}

// family strips from a model's name what stands in front of the family: the
// vendor ("openai/gpt-4o"), the mark of a fine-tuned model ("ft:gpt-4o:...") and
// the region and vendor of a cloud ("us.anthropic.claude-sonnet-4-...").
func family(model string) string {
	if len(model) > maxModel {
		return ""
	}
	model = strings.ToLower(model)
	if i := strings.LastIndexByte(model, '/'); i >= 0 {
		model = model[i+1:]
	}
	model = withoutVendor(strings.TrimPrefix(model, "ft:"))
	for _, name := range stems {
		i := strings.Index(model, name)
		if i < 0 {
			continue
		}
		model = model[i:]
		switch name {
		case "claude", "gemini":
			model = strings.NewReplacer(".", "-", "@", "-").Replace(model) // some write the version "4.7" or the date "@2025", some "4-7"
			if model == "claude-sonnet-4" || model == "claude-opus-4" {
				model += "-0" // the maker's alias of the first of them
			}
			// "claude-4-5-sonnet" of some clouds is "claude-sonnet-4-5" of the maker.
			for _, size := range [...]string{"opus", "sonnet", "haiku"} {
				rest, ok := strings.CutPrefix(model, "claude-4")
				if !ok {
					break
				}
				if j := strings.Index(rest, "-"+size); j >= 0 {
					return "claude-" + size + "-4" + rest[:j] + rest[j+1+len(size):]
				}
			}
		case "gpt-":
			if rest, ok := strings.CutPrefix(model, "gpt-35"); ok { // Azure
				model = "gpt-3.5" + rest
			}
		case "llama":
			if rest, ok := strings.CutPrefix(model, "llama"); ok && rest != "" && '0' <= rest[0] && rest[0] <= '9' {
				model = "llama-" + rest
			}
		}
		return model
	}
	return model
}

// withoutVendor strips a region or a vendor with the point behind it where the name of a
// family follows: "mistral.magistral-small" is no "mistral". In "deepseek.v3.2" none
// follows.
func withoutVendor(model string) string {
	for {
		i := strings.IndexByte(model, '.')
		if i < 1 || strings.IndexFunc(model[:i], func(r rune) bool { return r < 'a' || r > 'z' }) >= 0 {
			return model
		}
		rest := model[i+1:]
		if !slices.ContainsFunc(stems, func(name string) bool { return strings.HasPrefix(rest, name) || strings.Contains(rest, "."+name) }) {
			return model
		}
		model = rest
	}
}

// familyTable says which tokenizer a model uses, by the beginning of its name as
// [family] returns it; the longest that fits counts. A whole name must end there, or go
// on with a mark. OpenAI's rows are the model table of the tiktoken library
// (tiktoken/model.py); the others, the makers' published tokenizers.
var familyTable = []struct {
	prefix string
	family Family
	whole  bool
}{
	{"gpt-4", CL100k, true},
	{"gpt-3.5", CL100k, true},
	{"text-embedding-3", CL100k, true},
	{"text-embedding-ada-002", CL100k, true},
	{"davinci-002", CL100k, true},
	{"babbage-002", CL100k, true},
	{"claude", Claude, false},
	{"gemini", Gemma, false},
	{"gemma", Gemma, false},
	{"llama", Llama3, false},
	{"deepseek", DeepSeek, false},
	{"qwen", Qwen, false},
	{"qwq", Qwen, false},
	{"mistral", Mistral, false},
	{"ministral", Mistral, false},
	{"mixtral", Mistral, false},
	{"pixtral", Mistral, false},
	{"codestral", Mistral, false},
	{"devstral", Mistral, false},
	{"magistral", Mistral, false},
	{"voxtral", Mistral, false},
}

// FamilyOf returns the family whose tokenizer a model is known to use. The name may be
// in the spelling of any cloud: with a region, a vendor or a path in front. Every other
// model gets O200k, which has the smallest error there; a [Calibrator] learns the rest.
func FamilyOf(model string) Family { return familyOf(family(model)) }

func familyOf(model string) Family {
	f, best := O200k, -1
	for i := range familyTable {
		r := &familyTable[i]
		rest, ok := strings.CutPrefix(model, r.prefix)
		if ok && len(r.prefix) > best && (!r.whole || rest == "" || strings.IndexByte("-:@_", rest[0]) >= 0) {
			f, best = r.family, len(r.prefix)
		}
	}
	return f
}
