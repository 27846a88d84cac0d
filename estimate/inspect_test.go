package estimate

import (
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"
)

// promptTexts inspects a body and returns what was counted as text, in order.
// This test gives for each shape of a body its kind and everything in it that
// is prompt. JSON that the model reads (tools, arguments, schemas) comes in
// pieces between line breaks.
// This test reads every name of the output cap.
// N and best_of multiply what is charged, and so does
// the number of prompts of a completion.
// What the cap allows is charged on arrival, and the
// rest comes back when the usage is known.
// A large prompt with a small cap is not free.
// The characters of a text are counted in any script, escaped or not. A text of
// numbers reaches the counter whole, and token ids are one token each.
// Definitions are prompt, under every name. The published numbers of the form
// of a chat. A body that is no request still has a price, by its size.
func TestABodyThatIsNotUnderstoodIsPricedBySize(t *testing.T) {
	filler := strings.Repeat("x", 4000)
	for _, body := range []string{
		filler,
		`{"foo":"` + filler + `"}`,
		`["` + filler + `"]`,
		`"` + filler + `"`,
		`{"messages":[{"content":"` + filler,
		`{"messages":[{"content":"` + filler + `"}]`,
		`{"messages":[{"content":"` + filler + `"]}`,
		`{"messages":[]} {"x":"` + filler + `"}`,
		"\x1f\x8b\x08" + filler,
		"\xef\xbb\xbf" + `{"foo":"` + filler + `"}`,
		`{"messages":[{"content":` + filler + `}]}`,
	} {
		r := Inspect([]byte(body), Options{})
		if r.Understood {
			t.Errorf("understood %.30q...", body)
		}
		if r.Input < 1000 || r.Input > 1500 {
			t.Errorf("%.30q...: %d tokens, want a quarter of %d bytes, or the tokens found if they are more", body, r.Input, len(body))
		}
	}
	if r := Inspect(nil, Options{}); r.Understood || r.Input != 0 || r.Choices != 1 || r.Kind != "unknown" {
		t.Errorf("an empty body: %+v", r)
	}
}

// TestDeepBodiesAreRead nests a hundred thousand levels deep, in every place: no stack grows.
func TestDeepBodiesAreRead(t *testing.T) {
	const depth = 100_000
	open, shut := strings.Repeat("[", depth), strings.Repeat("]", depth)
	objects, ends := strings.Repeat(`{"content":`, depth), strings.Repeat("}", depth)
	for _, body := range []string{
		`{"messages":` + open + `"x"` + shut + `}`,
		`{"messages":[` + objects + `"x"` + ends + `]}`,
		`{"tools":` + open + shut + `,"messages":[{"content":"x"}]}`,
		`{"metadata":` + open + shut + `,"messages":[{"content":"x"}]}`,
		`{"prompt":` + open + `1` + shut + `}`,
		`{"foo":` + objects + `1` + ends + `,"prompt":"x"}`,
		`{"max_tokens":` + open + shut + `,"prompt":"x"}`,
	} {
		r, found := promptTexts(body, "")
		if !r.Understood {
			t.Errorf("%.30s...: not understood", body)
		}
		if len(found) == 0 && r.TokenIDs == 0 {
			t.Errorf("%.30s...: nothing found", body)
		}
	}
	for _, body := range []string{open, objects, `{"messages":` + open, shut, `{"messages":[` + objects} {
		checkSane(t, Inspect([]byte(body), Options{}), len(body))
	}
}

// These inputs tempt a scanner to read them again and again. The counter gets
// each byte once at most, and the effort on equal names stays bounded.
func TestTheWorkIsLinear(t *testing.T) {
	for _, body := range []string{
		`{"prompt":"` + strings.Repeat(`\\`, 1<<18) + `\""}`,
		`{"prompt":"` + strings.Repeat(`\"`, 1<<18) + `"}`,
		`{"messages":[{` + strings.Repeat(`"a":"b",`, 1<<16) + `"c":1}]}`,
		`{"messages":[{"` + strings.Repeat(`\u0061`, 1<<16) + `":1` + strings.Repeat(`,"\u0061":1`, 1<<16) + `}]}`,
		`{"messages":[` + strings.Repeat(`{"image":"data:image/jpeg;base64,/9j//////////////////"},`, 1<<14) + `{}]}`,
	} {
		counted := 0
		s := newScanner([]byte(body))
		s.run(func(raw []byte) (milli, chars int64) { counted += len(raw); return 0, 0 })
		r := s.request("", true)
		if s.effort > maxEffort+len(body) {
			t.Errorf("%.30s...: an effort of %d", body, s.effort)
		}
		s.release()
		if counted > len(body) {
			t.Errorf("%.30s...: %d bytes counted of %d", body, counted, len(body))
		}
		checkSane(t, r, len(body))
	}
}

// One for the model's name; one more where the pool of
// scanners was empty.
func TestInspectAllocatesTheNameOfAModelOnly(t *testing.T) {
	for _, b := range benchBodies() {
		if n := testing.AllocsPerRun(20, func() { Inspect(b.body, Options{}) }); n > 2 {
			t.Errorf("%s: %v allocations", b.name, n)
		}
	}
}

// Scanners are reused, and nothing of one body is left for another.
func TestManyMayInspectAtOnce(t *testing.T) {
	var want []Request
	for _, s := range bodySeeds {
		want = append(want, Inspect([]byte(s), Options{}))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i, s := range bodySeeds {
				if got := Inspect([]byte(s), Options{}); got != want[i] {
					t.Errorf("%s: %+v, alone %+v", s, got, want[i])
				}
			}
		})
	}
	wg.Wait()
}

// A countFunc is a Counter.
type countFunc func(model string, raw []byte) int64

func (f countFunc) CountJSON(model string, raw []byte) int64 { return f(model, raw) }

// A Counter gets the model from any place in the request, and none of its
// answers does harm.
func TestACounterOfOnesOwnIsUsed(t *testing.T) {
	for _, c := range []struct{ body, path, model string }{
		{`{"model":"m","prompt":"x"}`, "", "m"},
		{`{"prompt":"x","model":"m"}`, "", "m"},
		{`{"prompt":"x"}`, "/openai/deployments/d/completions", "d"},
		{`{"prompt":"x"}`, "", ""},
	} {
		r := Inspect([]byte(c.body), Options{Path: c.path, Counter: countFunc(func(model string, raw []byte) int64 {
			if model != c.model || string(raw) != "x" {
				t.Errorf("%s: asked for %q of %q", c.body, raw, model)
			}
			return 5
		})})
		if r.Input != 5 || r.Text != 5000 {
			t.Errorf("%s: %d tokens, want 5", c.body, r.Input)
		}
	}
	for _, wild := range []int64{math.MinInt64, -1, math.MaxInt64} {
		r := Inspect([]byte(`{"prompt":["a","b"]}`), Options{Counter: countFunc(func(string, []byte) int64 { return wild })})
		checkSane(t, r, 20)
		if wild > 0 && r.Input < math.MaxInt64/1000 || wild < 0 && r.Input != 0 {
			t.Errorf("a count of %d makes %d tokens", wild, r.Input)
		}
	}
}

// The fast count uses the weights of the model's family, wherever
// the model stands.
func TestTheWeightsAreThoseOfTheModel(t *testing.T) {
	const text = "\u9650\u6d41\u5668"
	for _, c := range []struct {
		model string
		f     Family
	}{{"gpt-4o", O200k}, {"gpt-4", CL100k}, {"openai/gpt-4", CL100k}, {"unheard-of", O200k}} {
		for _, body := range []string{
			`{"model":"` + c.model + `","prompt":"` + text + `"}`,
			`{"prompt":"` + text + `","model":"` + c.model + `"}`,
		} {
			if r := Inspect([]byte(body), Options{}); r.Text != CountJSONFor(c.f, []byte(text)) {
				t.Errorf("%s: %d milli-tokens, want %d", body, r.Text, CountJSONFor(c.f, []byte(text)))
			}
		}
	}
}

func TestEscapesBecomeTheCharactersTheyMean(t *testing.T) {
	for _, s := range []string{``, `a`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ude00x`, `\ud83d\u0041`, `\"\\\/\b\f\n\r\t`, "é\xffz"} {
		var want string
		if err := json.Unmarshal([]byte(`"`+s+`"`), &want); err != nil {
			t.Fatal(err)
		}
		if got := string(AppendText([]byte("> "), []byte(s))); got != "> "+want {
			t.Errorf("%s: %q, want %q", s, got, want)
		}
	}
	for _, s := range []string{`\`, `\u`, `\u12`, `\uzzzz`, `\x`, `\ud83d\`, `\ud83d\u`} {
		AppendText(nil, []byte(s))
		characters([]byte(s))
	}
}

// A scanner keeps the last model's name for the next body. A
// name that reads like the escapes of another is not taken for it.
func TestTheLastModelNameIsKept(t *testing.T) {
	s := new(scanner)
	for _, c := range []struct{ raw, name, family string }{
		{`gpt-4\\u006f`, `gpt-4\u006f`, `gpt-4\u006f`},
		{`gpt-4\u006f`, "gpt-4o", "gpt-4o"},
		{"openai/gpt-4o", "openai/gpt-4o", "gpt-4o"},
		{"openai/gpt-4o", "openai/gpt-4o", "gpt-4o"},
		{"gpt-4", "gpt-4", "gpt-4"},
		{"gpt-4\xff", "gpt-4\ufffd", "gpt-4\ufffd"},
		{"", "by-path", "by-path"},
		{"gpt-4", "gpt-4", "gpt-4"},
	} {
		s.model = []byte(c.raw)
		if got := s.modelName("/models/by-path:generate"); got.name != c.name || got.family != c.family {
			t.Errorf("%q: %q of %q, want %q of %q", c.raw, got.name, got.family, c.name, c.family)
		}
	}
	s.model = []byte("gpt-4")
	if n := testing.AllocsPerRun(10, func() { s.modelName("") }); n != 0 {
		t.Errorf("%v allocations for the same name again, want none", n)
	}
}

// The second pass begins anew. Nothing that the first pass found before it met
// the name again is kept.
func TestTheSecondPassBeginsAnew(t *testing.T) {
	once := `{"model":"gpt-4o","n":2,"messages":[{"role":"user","name":"Ann","content":[{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]}],"x":"y","max_tokens":7}`
	want := Inspect([]byte(once), Options{})
	for _, again := range []string{
		strings.Replace(once, `"x":"y"`, `"x":"y","\u0078":"y"`, 1),
		strings.Replace(once, `"model"`, `"max_tokens":900,"model"`, 1),
		strings.Replace(once, `"role"`, `"content":"to be forgotten","role"`, 1),
		strings.Replace(once, `"x":"y"`, `"n":9,"n":2`, 1),
	} {
		got := Inspect([]byte(again), Options{})
		got.Size = want.Size
		if got != want {
			t.Errorf("%s:\n%+v, want\n%+v", again, got, want)
		}
	}
}
