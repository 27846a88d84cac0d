package tiktoken

import (
	"strings"
	"testing"

	ref "github.com/pkoukk/tiktoken-go"
)

func TestEveryModelHasItsEncoding(t *testing.T) {
	c := New(Options{Models: map[string]string{
		"prod-chat":  "gpt-4o",
		"old":        "gpt-35-turbo",
		"gpt-4":      "gpt-4o", // a deployment may be called anything
		"loop":       "loop",
		"chain":      "old",
		"":           "text-embedding-3-large",
		"fine-tuned": "ft:gpt-4o-mini-2024-07-18:org::id",
	}})
	for _, test := range []struct {
		why, model string
		encoding   Encoding
		known      bool
	}{
		{"new model", "gpt-9-preview", O200kBase, false},
		{"new model", "o1", O200kBase, true},
		{"new model", "o1-preview", O200kBase, true},
		{"new model", "o3-mini-2025-01-31", O200kBase, true},
		{"new model", "o4-mini", O200kBase, true},
		{"new model", "gpt-4.1", O200kBase, true},
		{"new model", "gpt-4.1-nano-2025-04-14", O200kBase, true},
		{"new model", "gpt-4.5-preview", O200kBase, true},
		{"new model", "gpt-5", O200kBase, true},
		{"new model", "gpt-5.1", O200kBase, true},
		{"new model", "gpt-5.1-codex", O200kBase, true},
		{"new model", "gpt-5-chat-latest", O200kBase, true},
		{"new model", "gpt-oss-120b", O200kBase, true},
		{"new model", "openai/gpt-oss-20b", O200kBase, true},
		{"new model", "claude-sonnet-4-5", O200kBase, false},

		{"odd name", "o", O200kBase, false},
		{"odd name", "g", O200kBase, false},
		{"odd name", "gp", O200kBase, false},
		{"odd name", "gpt", O200kBase, false},
		{"odd name", "gpt-", O200kBase, false},
		{"odd name", "ft", O200kBase, false},
		{"odd name", "ft:", O200kBase, false},
		{"odd name", "ft::", O200kBase, false},
		{"odd name", ":", O200kBase, false},
		{"odd name", "/", O200kBase, false},
		{"odd name", "*", O200kBase, false},
		{"odd name", "gpt-3.5-turbo-16k-0613", CL100kBase, true},
		{"odd name", "gpt-3.5-turbo", CL100kBase, true},
		{"odd name", "gpt-3.5", O200kBase, false},
		{"odd name", "gpt-4-0613", CL100kBase, true},
		{"odd name", "gpt-4-32k-0314", CL100kBase, true},
		{"odd name", "gpt-4-turbo-2024-04-09", CL100kBase, true},
		{"odd name", "GPT-4o", O200kBase, true},
		{"odd name", "gpt-4\xff", O200kBase, false},

		{"spelling", "gpt-4o", O200kBase, true},
		{"spelling", "gpt-4o-2024-08-06", O200kBase, true},
		{"spelling", "gpt-4o-mini-2024-07-18", O200kBase, true},
		{"spelling", "chatgpt-4o-latest", O200kBase, true},
		{"spelling", "o3", O200kBase, true},
		{"spelling", "gpt-4.7", O200kBase, false},
		{"spelling", "gpt-40", O200kBase, false},
		{"spelling", "o100", O200kBase, false},
		{"spelling", "ft:gpt-4o-2024-08-06:org::id", O200kBase, true},
		{"spelling", "ft:gpt-4:org::id", CL100kBase, true},
		{"spelling", "ft:gpt-3.5-turbo-0125:org:suffix:id", CL100kBase, true},
		{"spelling", "ft:gpt-4.1-mini-2025-04-14:org::id", O200kBase, true},
		{"spelling", "ft:davinci-002:org::id", CL100kBase, true},
		{"spelling", "davinci:ft-org-2023-01-01", R50kBase, true},
		{"spelling", "openai/gpt-4o:free", O200kBase, true},
		{"spelling", "ft:gpt-4o:org/team::id", O200kBase, true},
		{"spelling", "openai/ft:gpt-4:org::id", CL100kBase, true},
		{"spelling", "FT:gpt-4-0613:org::id", CL100kBase, true},

		{"Azure", "gpt-35-turbo", CL100kBase, true},
		{"Azure", "gpt-35-turbo-16k", CL100kBase, true},
		{"deployment", "prod-chat", O200kBase, true},
		{"deployment", "gpt-4", O200kBase, true},
		{"deployment", "loop", O200kBase, false},
		{"deployment", "chain", O200kBase, false},
		{"deployment", "", CL100kBase, true},
		{"deployment", "fine-tuned", O200kBase, true},

		{"older", "text-embedding-3-small", CL100kBase, true},
		{"older", "text-embedding-ada-002", CL100kBase, true},
		{"older", "text-davinci-003", P50kBase, true},
		{"older", "text-davinci-001", R50kBase, true},
		{"older", "davinci", R50kBase, true},
		{"older", "davinci-002", CL100kBase, true},
		{"older", "code-davinci-002", P50kBase, true},
		{"older", "gpt2", R50kBase, true},
	} {
		t.Run(test.why+" "+test.model, func(t *testing.T) {
			if e, known := c.Encoding(test.model); e != test.encoding || known != test.known {
				t.Errorf("Encoding(%q) = %v, %t, want %v, %t", test.model, e, known, test.encoding, test.known)
			}
			before := c.Fallbacks()
			if n := c.CountString(test.model, "人人生而平等"); n < 5 || n > 18 {
				t.Errorf("Count = %d", n)
			}
			if got := c.Fallbacks() - before; (got == 1) == test.known || got > 1 {
				t.Errorf("%d fallbacks", got)
			}
			if o := c.Overhead(test.model); o.Message < 3 || o.Reply != 3 {
				t.Errorf("Overhead = %+v", o)
			}
		})
	}
}

// The newer families count Chinese with the newer
// vocabulary.
func TestChineseIsCountedWithTheModelsOwnVocabulary(t *testing.T) {
	c := New(Options{})
	const text = "我们认为下述真理是不言而喻的：人人生而平等，造物者赋予他们若干不可剥夺的权利。"
	older, newer := referenceFor(t, CL100kBase).count(text), referenceFor(t, O200kBase).count(text)
	if older == newer {
		t.Fatal("the text does not tell the vocabularies apart")
	}
	for _, model := range []string{"gpt-4o", "o3", "gpt-5.1", "chatgpt-4o-latest", "ft:gpt-4o:x", "gpt-9-preview"} {
		if got := c.CountString(model, text); got != newer {
			t.Errorf("%s: %d tokens, want %d", model, got, newer)
		}
	}
	for _, model := range []string{"gpt-4", "gpt-35-turbo", "gpt-4-turbo"} {
		if got := c.CountString(model, text); got != older {
			t.Errorf("%s: %d tokens, want %d", model, got, older)
		}
	}
}

func TestAnUnknownModelHasTheDefaultEncoding(t *testing.T) {
	for def, want := range map[Encoding]Encoding{O200kBase: O200kBase, CL100kBase: CL100kBase, R50kBase: R50kBase, 4: O200kBase, 255: O200kBase} {
		if e, known := New(Options{Default: def}).Encoding("what"); e != want || known {
			t.Errorf("default %d: %v, %t", def, e, known)
		}
	}
	if s := Encoding(200).String(); s != "unknown" {
		t.Errorf("String of no encoding = %q", s)
	}
}

// The caller's map may change afterwards.
func TestOptionsAreCopied(t *testing.T) {
	m := map[string]string{"d": "gpt-4"}
	c := New(Options{Models: m})
	m["d"] = "gpt-4o"
	if e, _ := c.Encoding("d"); e != CL100kBase {
		t.Errorf("Encoding = %v after the caller changed its map", e)
	}
}

// Longest name first, so that no row hides a longer one.
func TestTheTablesAreInOrder(t *testing.T) {
	for i := 1; i < len(modelTable); i++ {
		if a, b := strings.TrimSuffix(modelTable[i-1].name, "*"), strings.TrimSuffix(modelTable[i].name, "*"); len(a) < len(b) {
			t.Errorf("%q comes before %q", a, b)
		}
	}
	for i := 1; i < len(overheadTable); i++ {
		if a, b := overheadTable[i-1].name, overheadTable[i].name; len(a) < len(b) {
			t.Errorf("%q comes before %q", a, b)
		}
	}
	seen := make(map[string]bool)
	for _, row := range modelTable {
		if seen[row.name] || row.name != strings.ToLower(row.name) {
			t.Errorf("row %q", row.name)
		}
		seen[row.name] = true
	}
	if last := overheadTable[len(overheadTable)-1].name; last != "*" {
		t.Errorf("the last overhead fits %q, want all", last)
	}
}

// Every name the reference knows has its encoding here.
func TestModelsAreThoseOfTheReference(t *testing.T) {
	same := map[string]Encoding{
		ref.MODEL_O200K_BASE: O200kBase, ref.MODEL_CL100K_BASE: CL100kBase, ref.MODEL_P50K_BASE: P50kBase,
		ref.MODEL_P50K_EDIT: P50kBase, ref.MODEL_R50K_BASE: R50kBase, "gpt2": R50kBase,
	}
	n := 0
	check := func(model, name string) {
		n++
		want, ok := same[name]
		if !ok {
			t.Fatalf("encoding %q", name)
		}
		if e, known := New(Options{}).Encoding(model); e != want || !known {
			t.Errorf("%s: %v, %t, want %v", model, e, known, want)
		}
	}
	for model, name := range ref.MODEL_TO_ENCODING {
		check(model, name)
	}
	for prefix, name := range ref.MODEL_PREFIX_TO_ENCODING {
		check(prefix+"0613", name)
	}
	if n < 40 {
		t.Errorf("%d names, want at least 40", n)
	}
}

func FuzzEncoding(f *testing.F) {
	for _, s := range []string{"", "o", "gp", "ft:", "ft:gpt-4o:x", "a/b/c:d", "gpt-9-preview", "GPT-4O-mini"} {
		f.Add(s)
	}
	c := New(Options{Models: map[string]string{"d": "gpt-4"}})
	f.Fuzz(func(t *testing.T, model string) {
		if e, known := c.Encoding(model); e >= encodings || !known && e != O200kBase {
			t.Errorf("Encoding(%q) = %v, %t", model, e, known)
		}
		if o := c.Overhead(model); o.Reply != 3 {
			t.Errorf("Overhead(%q) = %+v", model, o)
		}
	})
}
