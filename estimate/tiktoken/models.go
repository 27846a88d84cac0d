package tiktoken

import "strings"

// An Encoding is one of the published vocabularies together with its split
// pattern. The zero value is O200kBase.
type Encoding uint8

// The encodings. p50k_edit and gpt2 have no value of their own: they differ from
// P50kBase and R50kBase in special tokens only, and o200k_harmony differs from
// O200kBase in the same way. Special tokens are never produced by counting text.
const (
	O200kBase  Encoding = iota // GPT-4o and later
	CL100kBase                 // GPT-4, GPT-3.5, embeddings
	P50kBase                   // Codex and the last of GPT-3
	R50kBase                   // GPT-3 and GPT-2
	encodings                  // how many there are
)

// String returns the published name, such as "o200k_base".
func (e Encoding) String() string {
	if e >= encodings {
		return "unknown"
	}
	return encodingData[e].name
}

var encodingData = [encodings]struct {
	name  string
	split splitter
}{
	O200kBase:  {"o200k_base", splitO200k},
	CL100kBase: {"cl100k_base", splitCL100k},
	P50kBase:   {"p50k_base", splitGPT2},
	R50kBase:   {"r50k_base", splitGPT2},
}

// modelTable says which encoding a model uses. Longest name first, the first row
// that fits decides.
//
// A row fits a model whose name is the row's, or goes on after it with a hyphen:
// "gpt-4" fits gpt-4-0613 but not gpt-4.7, which nobody has announced and whose
// encoding nobody can know. A star lets anything follow.
//
// Sources: openai/tiktoken tiktoken/model.py and the model table of the npm package
// tiktoken 1.0.22; gpt-oss uses o200k_harmony, the o200k_base ranks (openai/harmony).
var modelTable = []struct {
	name     string
	encoding Encoding
}{
	{"text-embedding-ada", CL100kBase},
	{"text-davinci-edit", P50kBase},
	{"code-davinci-edit", P50kBase},
	{"text-davinci-003", P50kBase},
	{"text-davinci-002", P50kBase},
	{"text-embedding-3", CL100kBase},
	{"text-davinci-001", R50kBase},
	{"text-similarity", R50kBase},
	{"gpt-3.5-turbo", CL100kBase},
	{"davinci-codex", P50kBase},
	{"cushman-codex", P50kBase},
	{"gpt-35-turbo", CL100kBase},
	{"code-davinci", P50kBase},
	{"code-cushman", P50kBase},
	{"text-babbage", R50kBase},
	{"text-search", R50kBase},
	{"code-search", R50kBase},
	{"davinci-002", CL100kBase},
	{"babbage-002", CL100kBase},
	{"chatgpt-4o", O200kBase},
	{"text-curie", R50kBase},
	{"text-ada", R50kBase},
	{"gpt-4.1", O200kBase},
	{"gpt-4.5", O200kBase},
	{"gpt-oss", O200kBase},
	{"davinci", R50kBase},
	{"babbage", R50kBase},
	{"gpt-4o", O200kBase},
	{"gpt-5*", O200kBase},
	{"gpt-4", CL100kBase},
	{"curie", R50kBase},
	{"gpt2", R50kBase},
	{"ada", R50kBase},
	{"o1", O200kBase},
	{"o3", O200kBase},
	{"o4", O200kBase},
}

// modelEncoding looks a model up in modelTable.
func modelEncoding(model string) (Encoding, bool) {
	model = baseModel(model)
	for i := range modelTable {
		if fits(modelTable[i].name, model) {
			return modelTable[i].encoding, true
		}
	}
	return 0, false
}

// baseModel strips what is around a model's own name: the vendor of a router
// ("openai/gpt-4o"), the mark of a fine-tuned model and what follows the model in
// it ("ft:gpt-4o-2024-08-06:org::id", in the older form "davinci:ft-org-2023").
func baseModel(model string) string {
	name, rest, _ := strings.Cut(model, ":")
	name = name[strings.LastIndexByte(name, '/')+1:]
	if strings.EqualFold(name, "ft") {
		name, _, _ = strings.Cut(rest, ":")
	}
	return name
}

// fits tells whether a row's name stands for the model, letter case ignored.
func fits(name, model string) bool {
	name, open := strings.CutSuffix(name, "*")
	if len(model) < len(name) || !strings.EqualFold(model[:len(name)], name) {
		return false
	}
	return open || len(model) == len(name) || model[len(name)] == '-'
}
