package estimate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// countSeeds are texts on which the ways of counting could differ. They have
// stretches that end inside an eight-byte word, and digits and blanks across the
// edge of one. They have characters of every length, bytes that are no character,
// escapes, and text that only looks like an escape.
var countSeeds = []string{
	"", "a", "Hello, world.", "1", "12", "123", "1234", "12345678901234567890", "abcdefg1234567hijk", "a1b22c333d4444",
	" ", "  ", "   ", "a  b   c\t\td \t e", "1234567 \t 1234567  12345678", "\n\n\r\n", "x = y;\n\n\treturn\n", "----====", "/// ...",
	"é", "naïve café", "Привет, мир 2024", "人人生而自由", "東京 123 です", "안녕하세요", "नमस्ते", "👩‍💻👍🏽🇩🇪", "\u2028\u2029\ufeff\ufffd",
	"\x00\x01\x1f\x7f", "\xff", "\xc0\x80", "\xe4\xba", "\xe4\xbaa", "\xed\xa0\x80", "\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "\xe0\x80\x80", "ab\xc3", "\x80\x80",
	`\`, `\\`, `\n`, `\u0041`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\ud83dx`, `\ud83d\u0041`, `\ud83d\ud83d\ude00`, `\u12`, `\u`, `\q`, `\"`, `\/`, `a\u00`, `\uD83D\uDE00 1\u0032\u00333 4`,
	`\ude00\ude00`, `\udc00\udbff`, "123é4", "12345é67890é1234", "  é  é   ",
	"\xed\xa0\x80abcd", "\xf4\x90\x80\x80abcd", "\xf0\x80\x80\x80abcd", "\xe0\x80\x80abcd", "\xc0\x80abcd", "\xe4\xbaabcd", "\xf0\x9f\x98abcd", "\xf5\x80\x80\x80abcd", "\x80abcd",
	"\x80:::00000", "é---===", "a────b──██▁", "((((----))))    ====",
	"<script>&amp;</script>", strings.Repeat("0", 100), strings.Repeat(" ", 100), strings.Repeat("é", 9),
}

// escapeAll writes every character as \uXXXX.
func escapeAll(text []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(text) {
		if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
			fmt.Fprintf(&b, `\u%04x\u%04X`, hi, lo)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// encodings returns the insides of JSON strings that mean text.
func encodings(t testing.TB, text []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{`all \u`: escapeAll(text)}
	for name, html := range map[string]bool{"HTML-safe": true, "plain": false} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if err := e.Encode(string(text)); err != nil {
			t.Fatal(err)
		}
		s := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
		out[name] = s[1 : len(s)-1]
	}
	return out
}

// Encoded by encoding/json or wholly escaped, a text costs what it costs plain.
func FuzzCountOfEncodedText(f *testing.F) {
	for _, s := range countSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for fam := range families {
			want := CountFor(fam, text)
			if oracle := simple(tables[fam], text); want != oracle {
				t.Fatalf("family %d: Count(%q) = %d, the table says %d", fam, text, want, oracle)
			}
			for name, raw := range encodings(t, text) {
				if got := CountJSONFor(fam, raw); got != want {
					t.Errorf("family %d, %s: CountJSON(%s) = %d, Count(%q) = %d", fam, name, raw, got, text, want)
				}
			}
		}
		for name, raw := range encodings(t, text) {
			if got, want := characters(raw), Runes(text); got != want {
				t.Errorf("%s: characters(%s) = %d, Runes(%q) = %d", name, raw, got, text, want)
			}
		}
	})
}

// What encoding/json decodes from the raw inside of a string costs what the inside
// was counted at. Bytes that are no JSON are counted too, and within bounds.
func FuzzCountJSONOfRaw(f *testing.F) {
	for _, s := range countSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		n, r := CountJSON(raw), characters(raw)
		if n < 0 || r < 0 || r > int64(len(raw)) || n > int64(len(raw))*mostPerByte(O200k) {
			t.Fatalf("%q: %d milli-tokens, %d characters", raw, n, r)
		}
		var text string
		if json.Unmarshal(fmt.Appendf(nil, `"%s"`, raw), &text) != nil {
			return
		}
		if want := Count([]byte(text)); n != want {
			t.Errorf("CountJSON(%s) = %d, Count(%q) = %d", raw, n, text, want)
		}
		if want := Runes([]byte(text)); r != want {
			t.Errorf("characters(%s) = %d, Runes(%q) = %d", raw, r, text, want)
		}
	})
}

// mostPerByte is the most that one byte can add.
func mostPerByte(f Family) int64 {
	w := f.weights()
	most := int64(0)
	for _, p := range w.pair {
		most = max(most, int64(p%marked))
	}
	for _, x := range w.wide {
		most = max(most, int64(x))
	}
	enter := int64(0)
	for _, x := range w.enter {
		enter = max(enter, int64(x))
	}
	return most + enter + w.group + w.run
}

// A text costs about what its parts cost, and more text never costs less. The
// bound is what Count's comment states.
func TestCountIsNearlyAdditiveAndMonotone(t *testing.T) {
	const bound = 8000
	r := rand.New(rand.NewPCG(1, 2))
	for f := range families {
		// After a cut the first character counts as the first of a text, which
		// may change its cost. A group and a row may also begin anew.
		w, most := f.weights(), int64(0)
		for i, cost := range w.pair {
			first := int64(w.pair[i&^0xff|'\n'] % marked)
			most = max(most, int64(cost%marked)-first, first-int64(cost%marked))
		}
		for _, cost := range w.enter {
			most = max(most, int64(cost)-int64(w.enter['\n']), int64(w.enter['\n'])-int64(cost))
		}
		if most += w.group + w.run; most > bound {
			t.Errorf("family %d: a cut may change %d milli-tokens", f, most)
		}
	}
	n := 0
	texts := append([]string(nil), countSeeds...)
	for _, p := range readCorpus(t) {
		texts = append(texts, string(p.Text))
	}
	for _, text := range texts {
		if !utf8.ValidString(text) || text == "" {
			continue
		}
		for range 8 {
			cut := r.IntN(len(text) + 1)
			for cut < len(text) && !utf8.RuneStart(text[cut]) {
				cut++
			}
			for f := range families {
				whole, head, tail := CountFor(f, []byte(text)), CountFor(f, []byte(text[:cut])), CountFor(f, []byte(text[cut:]))
				if d := head + tail - whole; d > bound || d < -bound {
					t.Errorf("family %d: %d + %d for the parts, %d for the whole: %.40q cut at %d", f, head, tail, whole, text, cut)
				}
				if head > whole {
					t.Errorf("family %d: %d for the beginning, %d for the whole: %.40q cut at %d", f, head, whole, text, cut)
				}
				n++
			}
		}
	}
	if n == 0 {
		t.Fatal("nothing was cut")
	}
}

func TestCountAllocatesNothing(t *testing.T) {
	Count(nil)
	CountFor(CL100k, nil)
	for _, s := range countSeeds {
		text := []byte(s)
		if n := testing.AllocsPerRun(10, func() { Count(text); CountFor(CL100k, text); CountJSON(text); Runes(text); characters(text) }); n != 0 {
			t.Errorf("%q: %v allocations", s, n)
		}
	}
}

func TestAnUnknownFamilyIsO200k(t *testing.T) {
	text := []byte("Grüße, 世界")
	if got, want := CountFor(99, text), CountFor(O200k, text); got != want {
		t.Errorf("family 99 counts %d, O200k %d", got, want)
	}
}

func TestAModelHasItsTokenizerUnderEverySpelling(t *testing.T) {
	for family, models := range map[Family][]string{
		O200k: {"", "gpt-4o", "gpt-4o-mini-2024-07-18", "gpt-4.1", "gpt-4.5-preview", "chatgpt-4o-latest", "gpt-5", "o1", "o3-mini", "gpt-oss-120b",
			"ft:gpt-4o-mini:acme::1", "openai/gpt-4o", "gpt-9-preview", "gpt-40", "grok-4", "openai.gpt-oss-120b-1:0", "unheard-of"},
		CL100k: {"gpt-4", "gpt-4-turbo", "gpt-4-0613", "gpt-4-32k", "gpt-3.5-turbo", "gpt-35-turbo", "GPT-4", "ft:gpt-3.5-turbo:acme::1", "openai/gpt-4", "azure/gpt-35-turbo",
			"text-embedding-3-small", "openai/text-embedding-ada-002", "davinci-002", "babbage-002", "ft:davinci-002:acme::1"},
		Claude:   {"claude-sonnet-4-5", "anthropic/claude-3.5-sonnet", "us.anthropic.claude-sonnet-4-20250514-v1:0", "anthropic.claude-v2", "claude-3-opus@20240229"},
		Gemma:    {"gemini-2.5-flash", "models/gemini-2.5-pro", "google/gemini-3-flash-preview", "gemma-3-27b-it", "google/gemma2"},
		Llama3:   {"llama3.1:8b", "meta-llama/Llama-3.3-70B-Instruct-Turbo", "us.meta.llama4-maverick-17b-instruct-v1:0", "llama-3.1-8b-instant"},
		DeepSeek: {"deepseek-chat", "deepseek/deepseek-r1", "us.deepseek.r1-v1:0", "accounts/fireworks/models/deepseek-v3"},
		Qwen:     {"qwen3", "Qwen/Qwen2.5-72B-Instruct", "qwen-max", "qwq-32b"},
		Mistral: {"mistral-small-latest", "open-mistral-nemo", "ministral-8b-latest", "mistral.mistral-large-2407-v1:0", "open-mixtral-8x22b", "pixtral-12b",
			"codestral-latest", "devstral-small", "magistral-medium-2506", "voxtral-mini"},
	} {
		for _, model := range models {
			if got := FamilyOf(model); got != family {
				t.Errorf("FamilyOf(%q) = %v, want %v", model, got, family)
			}
		}
	}
}
