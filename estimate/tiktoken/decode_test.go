package tiktoken

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// compareJSON compares CountJSON with what encoding/json makes of the string, in
// parts of several sizes. It reports whether raw is a JSON string.
func compareJSON(t testing.TB, e Encoding, raw []byte) bool {
	t.Helper()
	var text string
	quoted := append(append([]byte{'"'}, raw...), '"')
	if json.Unmarshal(quoted, &text) != nil {
		return false
	}
	v := vocabularyFor(t, e)
	var s scratch
	want := v.countText(&s, []byte(text))
	for _, part := range []int{1, 7, 50, 1000, jsonPart} {
		if got := v.countJSON(&s, raw, part); got != want {
			t.Errorf("%v: CountJSON(%q) in parts of %d = %d, want %d", e, raw, part, got, want)
		}
	}
	return true
}

func TestJSONCountsAsTheTextThatItMeans(t *testing.T) {
	for raw, text := range map[string]string{
		``:                               "",
		`plain`:                          "plain",
		`a\nb\tc\r\b\f\/\\\"`:            "a\nb\tc\r\b\f/\\\"",
		`\u0041\u00e9\u4eba`:             "Aé人",
		`\ud83d\ude00\uD83D\uDE00`:       "😀😀",
		`\ud83d`:                         "\ufffd",
		`\ude00\ud83d`:                   "\ufffd\ufffd",
		`\ud83dx\ude00`:                  "\ufffdx\ufffd",
		`\ud83d\u0041`:                   "\ufffdA",
		`\ud83d\n\ude00`:                 "\ufffd\n\ufffd",
		`it\u0027s`:                      "it's",
		`\u0000`:                         "\x00",
		`\u003c|endoftext|\u003e`:        "<|endoftext|>",
		"\xff\\n\xe4\xb8":                "\xff\n\xe4\xb8",
		"\xe4\xb8\\u0041":                "\xe4\xb8A",
		strings.Repeat(`\u4eba`, 5000):   strings.Repeat("人", 5000),
		strings.Repeat(`\ud83d\n`, 5000): strings.Repeat("\ufffd\n", 5000),
		strings.Repeat(`a`, 100000) + `\n` + strings.Repeat("b", 100000): strings.Repeat("a", 100000) + "\n" + strings.Repeat("b", 100000),
		strings.Repeat(`words and \"more\" words\n`, 10000):              strings.Repeat("words and \"more\" words\n", 10000),
		strings.Repeat(`人人生而平等，\n`, 10000):                               strings.Repeat("人人生而平等，\n", 10000),

		// Not JSON; a lone backslash stands for itself.
		`\`: `\`, `a\`: `a\`, `\x`: `\x`, `\u`: `\u`, `\u12`: `\u12`, `\u12g4`: `\u12g4`, `\uD83D\u`: "\ufffd\\u", `\\\`: `\\`, `\U0041`: `\U0041`,
	} {
		c := New(Options{})
		for _, m := range modelFor {
			if got, want := c.CountJSON(m, []byte(raw)), c.CountString(m, text); got != want {
				if len(raw) > 100 {
					raw = raw[:100]
				}
				t.Errorf("%s: CountJSON(%q) = %d, want %d", m, raw, got, want)
			}
		}
	}
}

// TestMarshalledTextCountsAsPlain lets encoding/json escape texts and read them back.
func TestMarshalledTextCountsAsPlain(t *testing.T) {
	var texts []string
	for _, list := range hardStrings() {
		texts = append(texts, list...)
	}
	for i, p := range readCorpus(t) {
		if i%8 == 0 {
			texts = append(texts, p.Text)
		}
	}
	texts = append(texts, generated()[:100]...)
	for i, text := range texts {
		if raceEnabled && i%8 > 0 {
			continue
		}
		b, err := json.Marshal(text) // escapes <, >, & and invalid UTF-8
		if err != nil {
			t.Fatal(err)
		}
		raw := b[1 : len(b)-1]
		if i%2 == 0 { // as a client does that writes ASCII only
			var ascii bytes.Buffer
			for _, r := range string(raw) {
				if r < 0x80 {
					ascii.WriteRune(r)
				} else {
					q, _ := json.Marshal(string(r))
					ascii.WriteString(asciiEscape(string(q[1 : len(q)-1])))
				}
			}
			raw = ascii.Bytes()
		}
		if !compareJSON(t, Encoding(i%int(encodings)), raw) {
			t.Fatalf("not a JSON string: %q", raw)
		}
	}
}

// asciiEscape writes every character as \uXXXX.
func asciiEscape(s string) string {
	var b strings.Builder
	const hex = "0123456789aBcDeF"
	write := func(u rune) {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(hex[u>>shift&15])
		}
	}
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			write(0xd800 + r>>10)
			r = 0xdc00 + r&0x3ff
		}
		write(r)
	}
	return b.String()
}

// Wherever cut cuts, the parts count like the whole, with any text added
// behind.
func TestTextCutAnywhereIsCounted(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	var parts []string
	for name, list := range hardStrings() {
		if name != "runs" {
			parts = append(parts, list...)
		}
	}
	var s scratch
	cuts, n := 0, 20000
	if raceEnabled {
		n = 1000
	}
	for i := range n {
		var b []byte
		for range 1 + r.IntN(10) {
			b = append(b, parts[r.IntN(len(parts))]...)
		}
		head := b[:r.IntN(len(b)+1)]
		v := vocabularyFor(t, Encoding(i%int(encodings)))
		cut := v.cut(head)
		if cut == 0 {
			continue
		}
		cuts++
		if got, want := v.countText(&s, b[:cut])+v.countText(&s, b[cut:]), v.countText(&s, b); got != want {
			t.Fatalf("%v: %d tokens in parts, %d whole: %q, %q", Encoding(i%int(encodings)), got, want, b[:cut], b[cut:])
		}
	}
	if cuts < n/4 {
		t.Errorf("%d cuts in %d texts", cuts, n)
	}
}

// FuzzCountJSON looks for a JSON string that encoding/json reads otherwise.
func FuzzCountJSON(f *testing.F) {
	for _, s := range []string{`a\nb`, `\u0041\ud83d\ude00`, `\ud83d`, `\\u0041`, `\`, `it\u0027s A\u0301B`, "\xff\\t", `\ud83d\ud83d\ude00`, `a b c d e f g h\n`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !compareJSON(t, O200kBase, raw) {
			// Not JSON: it must end, with no more tokens than bytes could make.
			if n := New(Options{}).CountJSON("gpt-4o", raw); n < 0 || n > 3*int64(len(raw)) {
				t.Errorf("CountJSON(%q) = %d", raw, n)
			}
		}
		compareJSON(t, CL100kBase, raw)
	})
}
