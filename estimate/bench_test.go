package estimate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const chatProse = `The limiter asks the ledger for credit, \"waits\" its turn, and only then lets the request go; what was too much comes back.\n`

func chatBody(messages, repeat, tools int) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"gpt-4o-mini","temperature":0.2,"stream":true,"messages":[{"role":"system","content":"You are a careful clerk."}`)
	for i := range messages {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		fmt.Fprintf(&b, `,{"role":%q,"content":"%s"}`, role, strings.Repeat(chatProse, repeat))
	}
	b.WriteString(`],"tools":[`)
	for i := range tools {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"function","function":{"name":"find_%d","description":"Find what was asked for in the shelves.","parameters":{"type":"object","properties":{"shelf":{"type":"string","description":"Which shelf"},"limit":{"type":"integer","description":"How many at most","minimum":1}},"required":["shelf"]}}}`, i)
	}
	b.WriteString(`],"max_tokens":400}`)
	return []byte(b.String())
}

func imageBody(size int) []byte {
	head := `{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,`
	return []byte(head + pngBase64(1024, 768, size) + `","detail":"high"}}]}],"max_tokens":300}`)
}

func benchBodies() []struct {
	name string
	body []byte
} {
	return []struct {
		name string
		body []byte
	}{
		{"chat4kB", chatBody(8, 4, 0)},
		{"tools4kB", chatBody(2, 1, 13)},
		{"chat200kB", chatBody(60, 25, 4)},
		{"image4MB", imageBody(4 << 20)},
	}
}

// BenchmarkInspectFloor is the fastest look at every byte.
func BenchmarkInspectFloor(b *testing.B) {
	for _, bb := range benchBodies() {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.body)))
			for b.Loop() {
				bytes.IndexByte(bb.body, 0)
			}
		})
	}
}

// BenchmarkInspectStructure is the pass without the counting of text.
func BenchmarkInspectStructure(b *testing.B) {
	for _, bb := range benchBodies() {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.body)))
			b.ReportAllocs()
			for b.Loop() {
				inspect(bb.body, "", countNothing)
			}
		})
	}
}

// BenchmarkInspect is the pass with the fast count.
func BenchmarkInspect(b *testing.B) {
	for _, bb := range benchBodies() {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.body)))
			b.ReportAllocs()
			for b.Loop() {
				Inspect(bb.body, Options{})
			}
		})
	}
}

// madeBodies are the slowest bodies of 64 kB that a search by machine found, and what is
// like them: a beginning, and a unit that is repeated.
func madeBodies() (bodies []struct {
	name string
	body []byte
}) {
	const chat = `{"model":"gpt-4o","messages":[{"role":"user","content":`
	manyNames := func(form string) string {
		var b strings.Builder
		for i := range 60 {
			fmt.Fprintf(&b, form, i)
		}
		return b.String()
	}
	for _, m := range []struct{ name, head, unit string }{
		{"one name", `{"messages":[{`, `"a":1,`},
		{"no name", `{"messages":[{`, `"":"",`},
		{"names without values", chat + `"`, `","`},
		{"two of them", chat + `"`, `1","","`},
		{"escaped ones", chat + `[`, `]\"","`},
		{"60 names", `{"messages":[{`, manyNames(`"a%d":1,`)},
		{"60 names above ASCII", `{"messages":[{`, manyNames(`"é%d":1,`)},
		{"60 escaped names", `{"messages":[{`, manyNames(`"\u0061%d":1,`)},
		{"texts", `{"messages":[{`, `"text":"x",`},
		{"texts of a letter", `{"model":"gpt-4o","messages":[`, `!","`},
		{"calls", `{"messages":[{`, `"type":"tool_use",`},
		{"signatures", `{"messages":[{`, `"name":"x","signature":"x","a":1,`},
		{"media", `{"messages":[{`, `"source":{"data":"x"},"data":"QUJD",`},
		{"lists of tools", `{`, `"tools":[],"system":"",`},
		{"five names", `{"messages":[{`, `"required":["a"],"url":"http://x","enum":["a"],"data":"QUJD","text":"x",`},
	} {
		bodies = append(bodies, struct {
			name string
			body []byte
		}{m.name, append([]byte(m.head), benchText(m.unit)...)})
	}
	return bodies
}

// BenchmarkInspectMade is the pass over them.
func BenchmarkInspectMade(b *testing.B) {
	for _, bb := range madeBodies() {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.body)))
			b.ReportAllocs()
			for b.Loop() {
				Inspect(bb.body, Options{})
			}
		})
	}
}

// BenchmarkInspectEncodingJSON is what the standard library takes to fill a struct.
func BenchmarkInspectEncodingJSON(b *testing.B) {
	for _, bb := range benchBodies() {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.body)))
			b.ReportAllocs()
			for b.Loop() {
				var v struct {
					Model     string
					MaxTokens int64 `json:"max_tokens"`
					Messages  []struct {
						Role    string
						Content json.RawMessage
					}
					Tools json.RawMessage
				}
				if err := json.Unmarshal(bb.body, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBytes reads a 4 MB body through GetBody.
func BenchmarkBytes(b *testing.B) {
	body := imageBody(4 << 20)
	req, err := http.NewRequest("POST", "http://example.org/", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !readThrough(req.GetBody, req.ContentLength, MaxBody, func(p []byte) {
			if len(p) != len(body) {
				b.Fatal("not the whole body")
			}
		}) {
			b.Fatal("not read")
		}
	}
}
