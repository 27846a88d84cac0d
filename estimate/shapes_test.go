package estimate

import (
	"strings"
	"testing"
	"unicode/utf16"
)

// Of a field that no model reads, nothing is counted, however long
// it is and wherever it stands.
func TestWhatIsNotPrompt(t *testing.T) {
	long := strings.Repeat("many words ", 300)
	biases := `{"50256":-100` + strings.Repeat(`,"1234":5`, 500) + `}`
	const hi = `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]`
	plain := Inspect([]byte(hi+`}`), Options{})
	n := 0
	for _, field := range []string{
		`"logit_bias":` + biases, `"metadata":{"note":"` + long + `"}`, `"user":"` + long + `"`, `"safety_identifier":"` + long + `"`,
		`"prompt_cache_key":"` + long + `"`, `"stop":["` + long + `"]`, `"seed":123456789`, `"service_tier":"` + long + `"`,
		`"stream_options":{"include_usage":true}`, `"extra_headers":{"X":"` + long + `"}`, `"labels":{"a":"` + long + `"}`,
		`"safetySettings":[{"category":"` + long + `"}]`, `"cachedContent":"` + long + `"`, `"tool_choice":{"type":"function","function":{"name":"` + long + `"}}`,
		`"modalities":["text","audio"]`, `"mcp_servers":[{"authorization_token":"` + long + `"}]`, `"provider":{"order":["` + long + `"]}`,
		`"logprobs":true,"top_logprobs":20,"temperature":0.123456789,"top_p":1`,
	} {
		for _, body := range []string{hi + `,` + field + `}`, `{` + field + `,` + hi[1:] + `}`} {
			r := Inspect([]byte(body), Options{})
			if r.Input != plain.Input || r.Chars != plain.Chars || r.Quarters != plain.Quarters || r.Choices != 1 || r.OutputCap != 0 || !r.Understood {
				t.Errorf("%.80s...: %d tokens, %d characters; want %d, %d", body, r.Input, r.Chars, plain.Input, plain.Chars)
			}
			n++
		}
	}
	// And inside a message: what belongs to the interface, not to the model.
	for _, field := range []string{`"id":"` + long + `"`, `"cache_control":{"type":"ephemeral"}`, `"logprobs":{"content":[{"token":"` + long + `"}]}`, `"annotations":[{"url":"` + long + `"}]`, `"signature":"` + long + `"`} {
		r := Inspect([]byte(`{"model":"gpt-4o","messages":[{"role":"user","content":"hi",`+field+`}]}`), Options{})
		if r.Input != plain.Input || r.Chars != plain.Chars {
			t.Errorf("%.40s: %d tokens, want %d", field, r.Input, plain.Input)
		}
		n++
	}
	if n == 0 {
		t.Fatal("nothing was tried")
	}
}

// What proxies, editors and other languages' JSON make of a body.
func TestOddBodiesAreRead(t *testing.T) {
	const body = `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}],"max_tokens":7}`
	want := Inspect([]byte(body), Options{})
	same := func(name, body string) {
		t.Helper()
		r := Inspect([]byte(body), Options{})
		r.Size = want.Size
		if r != want {
			t.Errorf("%s: %+v\nwant %+v", name, r, want)
		}
	}
	same("byte order mark", "\ufeff"+body)
	same("white space around", " \r\n\t"+body+"\r\n\n ")
	same("white space within", strings.NewReplacer(`:`, " :\t", `,`, "\n , ").Replace(body))

	var wide strings.Builder
	for _, u := range utf16.Encode([]rune("\ufeff" + body)) {
		wide.WriteByte(byte(u))
		wide.WriteByte(byte(u >> 8))
	}
	for name, body := range map[string]string{
		"UTF-16": wide.String(), "two bodies": body + body, "lines": body + "\n" + body, "a list": `[` + body + `]`, "in a string": `"x"`,
		"NUL behind": body + "\x00", "a comment behind": body + "// x", "gzip": "\x1f\x8b\x08\x00\x00", "a mark within": body[:1] + "\ufeff" + body[1:],
		"empty": "", "blank": " \n", "{}": "{}", "[]": "[]", "null": "null", "a number": "42", "single quotes": strings.ReplaceAll(body, `"`, `'`),
		"a form": "model=gpt-4o&prompt=hi", "only a mark": "\ufeff", "half a mark": "\xef\xbb",
	} {
		r := Inspect([]byte(body), Options{})
		checkSane(t, r, len(body))
		if r.Understood {
			t.Errorf("%s: understood", name)
		}
		if least := ceilDiv(int64(len(body)), 4); r.Input < least {
			t.Errorf("%s: %d tokens for %d bytes", name, r.Input, len(body))
		}
	}
}

// No text costs less than a token, nor does a role.
func TestNoTextCostsLessThanAToken(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"model":"gpt-4o","messages":[`)
	const n = 1000
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"role":"user","content":"y"}`)
	}
	b.WriteString(`]}`)
	// By the published rule: three a message, the role, the text; and three.
	if r := Inspect([]byte(b.String()), Options{}); !near(r.Input, 5*n+3, 0.07) {
		t.Errorf("%d tokens, want %d", r.Input, 5*n+3)
	}
	if r := Inspect([]byte(`{"messages":[{"role":"","content":""}]}`), Options{}); r.Input != 6 {
		t.Errorf("an empty message: %d tokens, want 6", r.Input)
	}
	if r := Inspect([]byte(`{"model":"text-embedding-3-small","input":["a","b",["c"]]}`), Options{}); r.Input < 3 || r.Input > 4 {
		t.Errorf("three letters: %d tokens, want 3", r.Input)
	}
}
