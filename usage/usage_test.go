package usage

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/refusal"
)

const (
	sseType  = "text/event-stream"
	jsonType = "application/json"
)

// event frames documents as server-sent events.
func event(documents ...string) string {
	return "data: " + strings.Join(documents, "\n\ndata: ") + "\n\n"
}

func want(t *testing.T, r Result, counts map[string]int64) {
	t.Helper()
	if got := countsOf(r.Counts); !reflect.DeepEqual(got, counts) {
		t.Errorf("counts %v, want %v", got, counts)
	}
}

func TestAWaitInTheBodyOfAStreamIsHeard(t *testing.T) {
	r := Read(sseType, "", []byte(event(`{"error":{"message":"Rate limited, please retry after 33 seconds.","type":"rate_limit_error"}}`)))
	if r.Refusal == nil || r.Refusal.Wait != 33*time.Second || !r.Refusal.Retryable {
		t.Errorf("%+v", r.Refusal)
	}
}

func TestRunningTotalsAreNotAddedUp(t *testing.T) {
	r := Read(sseType, "", []byte(event(
		`{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}`,
		`{"type":"message_delta","delta":{},"usage":{"output_tokens":15}}`,
		`{"type":"message_stop"}`)))
	want(t, r, map[string]int64{"input_tokens": 25, "output_tokens": 15})

	t.Run("members in another order", func(t *testing.T) {
		r := Read(sseType, "", []byte(event(
			`{"message":{"usage":{"output_tokens":1,"input_tokens":25}},"type":"message_start"}`,
			`{"usage":{"output_tokens":15},"delta":{},"type":"message_delta"}`)))
		want(t, r, map[string]int64{"input_tokens": 25, "output_tokens": 15})
	})
	t.Run("input restated without the cache", func(t *testing.T) {
		r := Read(sseType, "", []byte(event(
			`{"type":"message_start","message":{"usage":{"input_tokens":25,"cache_read_input_tokens":1000,"cache_creation_input_tokens":0,"output_tokens":1}}}`,
			`{"type":"message_delta","usage":{"input_tokens":30,"output_tokens":15}}`)))
		want(t, r, map[string]int64{"input_tokens": 1030, "output_tokens": 15, "cached_input_tokens": 1000, "cache_write_input_tokens": 0})
	})
	t.Run("input only at the end", func(t *testing.T) {
		r := Read(sseType, "", []byte(event(
			`{"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}}`,
			`{"type":"message_delta","usage":{"input_tokens":30,"output_tokens":15}}`)))
		want(t, r, map[string]int64{"input_tokens": 30, "output_tokens": 15})
	})
	t.Run("a zero over a number", func(t *testing.T) {
		r := Read(sseType, "", []byte(event(
			`{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}`,
			`{"type":"message_delta","usage":{"input_tokens":0,"output_tokens":15}}`)))
		want(t, r, map[string]int64{"input_tokens": 25, "output_tokens": 15})
	})
	t.Run("cut before the type", func(t *testing.T) {
		r := Read(sseType, "", []byte(event(`{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}`)+
			`data: {"usage":{"output_tokens":15},"ty`))
		want(t, r, map[string]int64{"input_tokens": 25, "output_tokens": 15})
	})
	t.Run("nothing was produced", func(t *testing.T) {
		r := Read(sseType, "", []byte(event(
			`{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}`,
			`{"type":"message_delta","usage":{"output_tokens":0}}`)))
		want(t, r, map[string]int64{"input_tokens": 25, "output_tokens": 0})
	})
	t.Run("no end", func(t *testing.T) {
		r := Read(sseType, "", []byte(event(`{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}`)))
		want(t, r, map[string]int64{"input_tokens": 25})
		if r.Complete {
			t.Error("complete")
		}
	})
}

func TestTheLastStatementCounts(t *testing.T) {
	chunk := func(in, out int) string {
		return fmt.Sprintf(`{"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, in, out, in+out)
	}
	for name, stream := range map[string][]string{
		"growing":            {chunk(7, 1), chunk(7, 2), chunk(7, 5)},
		"null after":         {chunk(7, 1), chunk(7, 5), `{"choices":[],"usage":null}`},
		"none after":         {chunk(7, 1), chunk(7, 5), `{"choices":[]}`},
		"empty after":        {chunk(7, 5), `{"usage":{}}`},
		"cost only after":    {chunk(7, 5), `{"usage":{"cost":0.1}}`},
		"strings after":      {chunk(7, 5), `{"usage":{"prompt_tokens":"9"}}`},
		"zeros after":        {chunk(7, 5), `{"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`},
		"broken after":       {chunk(7, 5), `{"usage":{"prompt_tokens":9,"completion_tokens":9},,`},
		"cut after":          {chunk(7, 5), `{"usage":{"prompt_tokens":9`},
		"same twice":         {chunk(7, 5), chunk(7, 5), `[DONE]`},
		"smaller wins too":   {chunk(9, 9), chunk(7, 5)},
		"twice in one event": {`{"x_groq":{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}},"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`},
		"one choice's":       {chunk(7, 5), `{"choices":[{"index":0,"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}]}`},
		"another shape":      {`{"usage":{"prompt_tokens":1,"total_tokens":4,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":1}}}`, chunk(7, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, Read(sseType, "", []byte(event(stream...))), map[string]int64{"input_tokens": 7, "output_tokens": 5, "total_tokens": 12})
		})
	}
}

func TestTheCostOfOneChoiceIsNotThatOfTheCall(t *testing.T) {
	one := `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}]}`
	want(t, Read(sseType, "", []byte(event(one, "[DONE]"))), map[string]int64{"input_tokens": 7, "output_tokens": 5, "total_tokens": 12})
	two := strings.Replace(one, `"index":0`, `"index":1`, 1)
	r := Read(sseType, "", []byte(event(one, two, "[DONE]")))
	want(t, r, map[string]int64{})
	if r.Found {
		t.Error("the cost of one choice is taken for that of the call")
	}
}

func TestUsageAtTheVeryEndIsFound(t *testing.T) {
	last := `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`
	counts := map[string]int64{"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
	for name, body := range map[string]string{
		"then DONE":         event(`{"choices":[{"delta":{"content":"x"}}]}`, last, "[DONE]"),
		"no DONE":           event(last),
		"no final newline":  "data: " + last,
		"CRLF":              strings.ReplaceAll(event(last, "[DONE]"), "\n", "\r\n"),
		"CR":                strings.ReplaceAll(event(last, "[DONE]"), "\n", "\r"),
		"no blank":          "data:" + last + "\n\n",
		"single newlines":   "data: " + last + "\ndata: [DONE]\n",
		"comments":          ": keep-alive\n\n:\n\n" + event(last) + ": end\n",
		"named events":      "event: chunk\nid: 1\nretry: 5\ndata: " + last + "\n\n",
		"unknown field":     "foo: {\"usage\":{\"prompt_tokens\":9}}\ndata: " + last + "\ndatax: {\"usage\":{\"prompt_tokens\":9}}\n\n",
		"byte order mark":   "\xef\xbb\xbf" + event(last),
		"leading blanks":    "\n\n  \n" + event(last),
		"broken before":     "data: {\"usage\":\n\n" + event(last),
		"text before":       event("hello", last),
		"several lines":     "data: {\"choices\":[],\ndata: \"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\ndata:\"total_tokens\":5}}\n\n",
		"empty data line":   "data\ndata:\ndata: " + last + "\n\n",
		"a comment between": "data: {\"choices\":[],\n: x\ndata: \"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			want(t, Read(sseType, "", []byte(body)), counts)
			want(t, inPieces(sseType, "", []byte(body), func() int { return 1 }), counts)
		})
	}
}

// A stream without usage is unknown, not free; the text seen is counted.
func TestAStreamWithoutUsageStatesNothing(t *testing.T) {
	for _, c := range []struct {
		name, contentType, body string
		bytes                   int64
	}{
		{"chat", sseType, event(`{"choices":[{"delta":{"role":"assistant","content":""}}]}`, `{"choices":[{"delta":{"content":"Hé\n\u00e9\ud83d\ude00"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, "[DONE]"), 3 + 1 + 2 + 4},
		{"chat, reasoning", sseType, event(`{"choices":[{"delta":{"reasoning_content":"abcd"}}]}`), 4},
		{"chat, reasoning twice", sseType, event(`{"choices":[{"delta":{"reasoning_content":"abcd","reasoning":"abcd"}}]}`), 4},
		{"chat, tool call", sseType, event(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}`), 7},
		{"chat, refusal", sseType, event(`{"choices":[{"delta":{"refusal":"No."}}]}`), 3},
		{"chat, parts", sseType, event(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"abc"}]},{"type":"text","text":"d"}]}}]}`), 4},
		{"two choices", sseType, event(`{"choices":[{"index":0,"delta":{"content":"ab"}},{"index":1,"delta":{"content":"c"}}]}`), 3},
		{"completions", sseType, event(`{"choices":[{"text":"abc"}]}`), 3},
		{"responses", sseType, event(`{"type":"response.output_text.delta","delta":"abc"}`, `{"type":"response.output_text.done","text":"abc"}`, `{"type":"response.completed","response":{"output":[{"content":[{"text":"abc"}]}],"usage":null}}`), 3},
		{"responses, type last", sseType, event(`{"delta":"abcdef","type":"response.audio.delta"}`, `{"delta":"ab","type":"response.audio_transcript.delta"}`), 2},
		{"responses, summary", sseType, event(`{"type":"response.reasoning_summary_text.delta","delta":"abc"}`), 0},
		{"Anthropic", sseType, event(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"abc"}}`, `{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"de"}}`, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{}"}}`, `{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"zzzz"}}`), 7},
		{"Gemini", sseType, event(`{"candidates":[{"content":{"parts":[{"text":"abc"},{"text":"d","thought":true}]}}]}`), 4},
		{"Gemini list", jsonType, `[{"candidates":[{"content":{"parts":[{"text":"abc"}]}}]},` + "\n" + `{"candidates":[{"content":{"parts":[{"text":"d`, 4},
		{"Cohere", sseType, event(`{"type":"content-delta","delta":{"message":{"content":{"text":"abc"}}}}`), 3},
		{"Ollama", "application/x-ndjson", `{"message":{"role":"assistant","content":"ab"},"done":false}` + "\n" + `{"response":"c","done":false}` + "\n", 3},
		{"body cut in the answer", jsonType, `{"choices":[{"message":{"content":"abcdef`, 6},
		{"Perplexity repeats the answer", sseType, event(`{"choices":[{"message":{"content":"ab"},"delta":{"content":"ab"}}]}`, `{"choices":[{"message":{"content":"abcd"},"delta":{"content":"cd"}}]}`), 4},
		{"cut in an escape", sseType, `data: {"choices":[{"delta":{"content":"ab\u00`, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Read(c.contentType, "", []byte(c.body))
			if r.Found || r.Counts != (Counts{}) || r.OutputBytes != c.bytes {
				t.Errorf("%+v, want %d bytes", r, c.bytes)
			}
		})
	}
}

// The whole stream, and a body as large, in constant memory.
func TestMemoryIsBounded(t *testing.T) {
	const size = 200 << 20
	delta := event(`{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("All work and no play. ", 20) + `"},"finish_reason":null}],"usage":null}`)
	usage := `"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`
	for _, c := range []struct{ name, contentType, head, middle, tail string }{
		{"stream", sseType, "", delta, event(`{"choices":[],` + usage + `}`)},
		{"one string", jsonType, `{"choices":[{"message":{"content":"`, strings.Repeat(`All work, \"no\" play.\n`, 1000), `"}}],` + usage + `}`},
		{"one array", jsonType, `{"data":[{"embedding":[0`, strings.Repeat(`,-0.0123`, 1000), `]}],` + usage + `}`},
		{"one line of events", sseType, `data: {"a":"`, strings.Repeat("x", 32<<10), "\"," + usage + "}\n\n"},
		{"many documents", "application/x-ndjson", "", `{"response":"abc","done":false}` + "\n", `{` + usage + `}`},
		{"nesting", jsonType, `{"a":`, strings.Repeat("[", 1<<14), ""},
		{"one key", jsonType, `{"`, strings.Repeat("k", 1<<14), `":1,` + usage + `}`},
		{"one number", jsonType, `{"a":1`, strings.Repeat("0", 1<<14), `,` + usage + `}`},
		{"one error", jsonType, `{"error":{"message":"`, strings.Repeat("e", 1<<14), `"},` + usage + `}`},
		{"comments", sseType, "", ": ping\n\n", event(`{` + usage + `}`)},
		{"usage members", jsonType, `{"usage":{"prompt_tokens":3,"completion_tokens":2`, strings.Repeat(`,"total_tokens":5`, 1000), `}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMeter(c.contentType, "")
			head, middle, tail := []byte(c.head), []byte(c.middle), []byte(c.tail)
			total := size
			if c.name != "stream" && c.name != "one string" {
				total /= 40
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			m.Write(head)
			for n := 0; n < total; n += len(middle) {
				m.Write(middle)
			}
			m.Write(tail)
			r := m.Close()
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<10 {
				t.Errorf("allocated %d bytes for %d", grown, total)
			}
			if c.tail != "" {
				want(t, r, map[string]int64{"input_tokens": 3, "output_tokens": 2, "total_tokens": 5})
			}
		})
	}
}

func TestNoAllocationPerEvent(t *testing.T) {
	m := NewMeter(sseType, "")
	piece := []byte(event(`{"id":"x","object":"chat.completion.chunk","type":"x","choices":[{"index":0,"delta":{"content":"Hi \"you\""},"finish_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`))
	m.Write(piece)
	if n := testing.AllocsPerRun(100, func() { m.Write(piece) }); n != 0 {
		t.Errorf("%v allocations per event", n)
	}
}

func TestAPackedBodyIsRead(t *testing.T) {
	body := []byte(`{"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`)
	stream := []byte(event(`{"choices":[{"delta":{"content":"abc"}}]}`, string(body), "[DONE]"))
	counts := map[string]int64{"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
	for _, c := range []struct {
		name, contentType, encoding string
		body                        []byte
	}{
		{"gzip", jsonType, "gzip", gzipped(t, body)},
		{"gzip in capitals", jsonType, " GZIP ", gzipped(t, body)},
		{"x-gzip", jsonType, "x-gzip", gzipped(t, body)},
		{"gzip stream", sseType, "gzip", gzipped(t, stream)},
		{"gzip members", jsonType, "gzip", append(gzipped(t, body[:20]), gzipped(t, body[20:])...)},
		{"deflate with zlib", jsonType, "deflate", zlibbed(t, body)},
		{"deflate bare", jsonType, "deflate", deflated(t, body)},
		{"identity", jsonType, "identity", body},
		{"gzip header left on a plain body", jsonType, "gzip", body},
		{"gzip header left on a plain stream", sseType, "gzip", stream},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Read(c.contentType, c.encoding, c.body)
			want(t, r, counts)
			if !r.Complete {
				t.Error("not complete")
			}
			want(t, inPieces(c.contentType, c.encoding, c.body, func() int { return 1 }), counts)
		})
	}
	t.Run("cut", func(t *testing.T) {
		packed := gzipped(t, stream)
		for n := range packed {
			if r := Read(sseType, "gzip", packed[:n]); r.Complete || r.Found && countsOf(r.Counts)["total_tokens"] != 5 {
				t.Fatalf("after %d of %d bytes: %+v", n, len(packed), r)
			}
		}
	})
	t.Run("more than is kept", func(t *testing.T) {
		m := NewMeter(jsonType, "gzip")
		m.Write(gzipped(t, body))
		m.Write(make([]byte, MaxPacked))
		if r := m.Close(); r != (Result{}) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("bomb", func(t *testing.T) {
		bomb := append([]byte(`{"a":"`), bytes.Repeat([]byte("a"), MaxUnpacked)...)
		packed := gzipped(t, append(bomb, `","usage":{"prompt_tokens":1}}`...))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := Read(jsonType, "gzip", packed)
		runtime.ReadMemStats(&after)
		if r.Found || r.Complete {
			t.Errorf("%+v", r)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
			t.Errorf("allocated %d bytes", grown)
		}
	})
}

func TestAnUnknownEncodingStatesNothing(t *testing.T) {
	for _, encoding := range []string{"compress", "gzip, exi", "gzip, gzip, gzip, gzip", "dcb", "x"} {
		if r := Read(jsonType, encoding, []byte(`{"usage":{"prompt_tokens":3}}`)); r != (Result{}) {
			t.Errorf("%s: %+v", encoding, r)
		}
	}
}

// Usage is found with any text around it and under any header.
func TestUsageIsFoundWhateverStandsAroundIt(t *testing.T) {
	counts := map[string]int64{"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
	usage := `"usage":{"x":[1,{"prompt_tokens":9}],"total_tokens":5,"s":"}\"","completion_tokens":2,"n":null,"prompt_tokens":3,"y":{"total_tokens":99}}`
	long := strings.Repeat(`abc \"def\" \\`, 10000)
	for name, body := range map[string]string{
		"first":        `{` + usage + `,"choices":[{"message":{"content":"` + long + `"}}]}`,
		"last":         `{"choices":[{"message":{"content":"` + long + `"}}],"extra":{"deep":[[[]]]},` + usage + `}`,
		"blanks":       "\n\n { \"a\" : [ ] ,\t" + strings.ReplaceAll(usage, `":`, "\" \r\n: ") + " } \n",
		"after a null": `{"error":null,` + usage + `}`,
		"in a list":    `[{` + usage + `}]`,
		"with a mark":  "\xef\xbb\xbf{" + usage + "}",
	} {
		for _, contentType := range []string{jsonType, "", "text/plain", "text/event-stream", "application/json; charset=utf-8", "application/octet-stream", "text/html", ";;;", "application/x-ndjson"} {
			if name == "blanks" && contentType == "application/x-ndjson" {
				continue // that is not one line
			}
			t.Run(name+" "+contentType, func(t *testing.T) {
				r := Read(contentType, "", []byte(body))
				want(t, r, counts)
				if !r.Complete || r.Refusal != nil {
					t.Errorf("%+v", r)
				}
			})
		}
	}
	for _, contentType := range []string{"text/plain", "", jsonType, "application/octet-stream"} {
		want(t, Read(contentType, "", []byte(event(`{`+usage+`}`, "[DONE]"))), counts)
		want(t, Read(contentType, "", []byte(`{"response":"a","done":false}`+"\n"+`{`+usage+`}`)), counts)
	}
}

// Text is text, wherever it stands, and only known places count.
func TestNotFooled(t *testing.T) {
	fake := `{"usage":{"prompt_tokens":999,"completion_tokens":999,"total_tokens":1998},"error":{"code":"insufficient_quota"}}`
	quoted := strings.ReplaceAll(fake, `"`, `\"`)
	for name, body := range map[string]string{
		"in the answer":     `{"choices":[{"message":{"content":"` + quoted + `"}}]}`,
		"half escaped":      `{"choices":[{"message":{"content":"\\\",` + quoted + `,\"\\"}}]}`,
		"unicode quotes":    `{"choices":[{"message":{"content":"\u0022},` + quoted + `"}}]}`,
		"in arguments":      `{"choices":[{"message":{"tool_calls":[{"function":{"arguments":` + fake + `}}]}}]}`,
		"in an input block": `{"content":[{"type":"tool_use","input":` + fake + `}]}`,
		"echoed prompt":     `{"prompt":[` + fake + `],"input":` + fake + `,"instructions":` + fake + `}`,
		"metadata":          `{"metadata":` + fake + `,"response":{"metadata":` + fake + `}}`,
		"deeper":            `{"response":{"response":` + fake + `},"a":{"usage":{"prompt_tokens":1}}}`,
		"in a list":         `{"data":[` + fake + `],"usage":[{"prompt_tokens":999}]}`,
		"as a key":          `{"` + quoted + `":1}`,
		"list of lists":     `[[` + fake + `]]`,
		"output item":       `{"output":[{"arguments":"` + quoted + `","content":[{"text":"` + quoted + `","usage":{"prompt_tokens":999}}]}]}`,
		"other case":        `{"Usage":{"prompt_tokens":999},"usage":{"Prompt_Tokens":999}}`,
		"a string":          `{"usage":"` + quoted + `"}`,
		"a number":          `{"usage":999}`,
		"after garbage":     `{"a":1}} {"usage":{"prompt_tokens":999}}`,
		"unbalanced":        `{"a":[1}` + `,"usage":{"prompt_tokens":999}}`,
	} {
		for _, framed := range []string{body, event(body)} {
			if name == "after garbage" && framed != body {
				continue
			}
			r := Read("", "", []byte(framed))
			if r.Found || r.Refusal != nil {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

// Numbers that are no counts are unknown, each by itself.
func TestCountsThatAreNone(t *testing.T) {
	for _, n := range []string{"-1", "1.5", `"1"`, "null", "true", "[1]", "{}", "1e99", "9007199254740993", "99999999999999999999", "01", "1.", "1e", "-0", "0.1e0", "+1", "NaN", "Infinity", "0x1", "1e+-1", "1-1", "1e400", "1e-1"} {
		r := Read(jsonType, "", []byte(`{"usage":{"prompt_tokens":`+n+`,"completion_tokens":5}}`))
		if r.Input.OK || r.Output.OK && r.Output.N != 5 {
			t.Errorf("%s: %+v", n, r.Counts)
		}
	}
	for n, want := range map[string]int64{"0": 0, "12": 12, "12.0": 12, "1.5e1": 15, "1E2": 100, "1e+2": 100, "1200e-2": 12, "0.12e2": 12, "9007199254740992": 1 << 53, "0e99999999999": 0, "0.0": 0, "10000000000000000000e-18": 10} {
		r := Read(jsonType, "", []byte(`{"usage":{"prompt_tokens":`+n+`,"completion_tokens":5}}`))
		if r.Input != (Count{want, true}) || r.Output.N != 5 {
			t.Errorf("%s: %+v", n, r.Counts)
		}
	}
	// No sum wraps.
	var passes strings.Builder
	for range 5000 {
		passes.WriteString(`{"input_tokens":9007199254740992,"output_tokens":9007199254740992,"cache_read_input_tokens":9007199254740992},`)
	}
	r := Read(jsonType, "", []byte(`{"usage":{"input_tokens":1,"total_tokens":1,"iterations":[`+strings.TrimSuffix(passes.String(), ",")+`]}}`))
	if r.Input.N <= 0 || r.Output.N <= 0 || r.Total.N <= 0 {
		t.Errorf("%+v", r.Counts)
	}
}

func TestDialects(t *testing.T) {
	for _, c := range []struct {
		name, contentType, body string
		counts                  map[string]int64
	}{
		{"Cohere stream end", sseType, event(`{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":3,"output_tokens":9},"tokens":{"input_tokens":66,"output_tokens":10}}}}`),
			map[string]int64{"input_tokens": 66, "output_tokens": 10}},
		{"Cohere v1 stream end", jsonType, `{"event_type":"stream-end","response":{"meta":{"tokens":{"input_tokens":66,"output_tokens":10}}}}`,
			map[string]int64{"input_tokens": 66, "output_tokens": 10}},
		{"Gemini list", jsonType, `[{"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}},` + "\n" + `{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":4,"totalTokenCount":9}}]`,
			map[string]int64{"input_tokens": 5, "output_tokens": 4, "total_tokens": 9}},
		{"Gemini, blocked prompt", jsonType, `{"promptFeedback":{},"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}`,
			map[string]int64{"input_tokens": 5, "output_tokens": 0, "total_tokens": 5}},
		{"Gemini, tools", jsonType, `{"usageMetadata":{"promptTokenCount":5,"toolUsePromptTokenCount":20,"candidatesTokenCount":4,"totalTokenCount":29}}`,
			map[string]int64{"input_tokens": 25, "output_tokens": 4, "total_tokens": 29}},
		{"Ollama lines", "application/x-ndjson", `{"message":{"content":"a"},"done":false}` + "\n" + `{"message":{"content":""},"done":true,"prompt_eval_count":26,"eval_count":298}` + "\n",
			map[string]int64{"input_tokens": 26, "output_tokens": 298}},
		{"a bad line", "application/x-ndjson", "{bad\n" + `{"done":true,"prompt_eval_count":26,"eval_count":298}` + "\n",
			map[string]int64{"input_tokens": 26, "output_tokens": 298}},
		{"two dialects, one of them empty", jsonType, `{"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"input_tokens":0,"output_tokens":0}}`,
			map[string]int64{"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}},
		{"cache inside the input, the total tells", jsonType, `{"usage":{"input_tokens":10,"output_tokens":2,"total_tokens":12,"cache_read_input_tokens":8}}`,
			map[string]int64{"input_tokens": 10, "output_tokens": 2, "total_tokens": 12, "cached_input_tokens": 8}},
		{"transcription", sseType, event(`{"type":"transcript.text.delta","delta":"a"}`, `{"type":"transcript.text.done","text":"a","usage":{"type":"tokens","input_tokens":14,"input_token_details":{"audio_tokens":14},"output_tokens":45,"total_tokens":59}}`),
			map[string]int64{"input_tokens": 14, "output_tokens": 45, "total_tokens": 59}},
		{"audio inside the prompt", jsonType, `{"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25,"prompt_tokens_details":{"audio_tokens":15}}}`,
			map[string]int64{"input_tokens": 20, "output_tokens": 5, "total_tokens": 25}},
	} {
		t.Run(c.name, func(t *testing.T) { want(t, Read(c.contentType, "", []byte(c.body)), c.counts) })
	}
}

func TestBedrockFrames(t *testing.T) {
	const frames = "application/vnd.amazon.eventstream"
	chunk := func(document string) []byte {
		return frame([]string{":event-type", "chunk", ":content-type", "application/json", ":message-type", "event"},
			`{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(document))+`","p":"abcdefgh"}`)
	}
	converse := func(name, document string) []byte {
		return frame([]string{":event-type", name, ":content-type", "application/json", ":message-type", "event"}, document)
	}
	exception := func(name, document string) []byte {
		return frame([]string{":exception-type", name, ":content-type", "application/json", ":message-type", "exception"}, document)
	}
	for _, c := range []struct {
		name     string
		body     [][]byte
		counts   map[string]int64
		bytes    int64
		complete bool
		class    string
	}{
		{"invoke", [][]byte{
			chunk(`{"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}`),
			chunk(`{"type":"content_block_delta","delta":{"text":"Hé!"}}`),
			chunk(`{"type":"message_delta","usage":{"output_tokens":126}}`),
			chunk(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":7,"outputTokenCount":126,"cacheReadInputTokenCount":14486,"cacheWriteInputTokenCount":2238}}`),
		}, map[string]int64{"input_tokens": 16731, "output_tokens": 126, "cached_input_tokens": 14486, "cache_write_input_tokens": 2238}, 4, true, ""},
		{"converse", [][]byte{
			converse("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"abc"},"p":"x"}`),
			converse("messageStop", `{"stopReason":"end_turn"}`),
			converse("metadata", `{"metrics":{"latencyMs":1},"usage":{"inputTokens":5,"outputTokens":6,"totalTokens":11}}`),
		}, map[string]int64{"input_tokens": 5, "output_tokens": 6, "total_tokens": 11}, 3, true, ""},
		{"throttled", [][]byte{
			converse("contentBlockDelta", `{"delta":{"text":"abc"}}`),
			exception("throttlingException", `{"message":"Too many tokens, please wait before trying again."}`),
		}, map[string]int64{}, 3, true, refusal.RateLimit},
		{"exception without a body", [][]byte{exception("serviceUnavailableException", "")}, map[string]int64{}, 0, true, refusal.Overload},
		{"exception with a text", [][]byte{exception("internalServerException", "oops")}, map[string]int64{}, 0, true, refusal.Server},
		{"cut", [][]byte{chunk(`{"type":"message_start","message":{"usage":{"input_tokens":7}}}`), chunk(`{"type":"message_delta","usage":{"output_tokens":126}}`)[:90]},
			map[string]int64{"input_tokens": 7}, 0, false, ""},
		{"wrong check sum", [][]byte{{0, 0, 0, 20, 0, 0, 0, 0, 1, 2, 3, 4}, converse("metadata", `{"usage":{"inputTokens":5}}`)}, map[string]int64{}, 0, false, ""},
		{"lengths that cannot be", [][]byte{frame(nil, "")[:12], {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}}, map[string]int64{}, 0, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := bytes.Join(c.body, nil)
			r := Read(frames, "", body)
			want(t, r, c.counts)
			if r.OutputBytes != c.bytes || r.Complete != c.complete {
				t.Errorf("%+v", r)
			}
			if got := r.Refusal; (got == nil) != (c.class == "") || got != nil && string(got.Class) != c.class {
				t.Errorf("refusal %+v, want %s", got, c.class)
			}
			if got := inPieces(frames, "", body, func() int { return 1 }); !reflect.DeepEqual(got, r) {
				t.Errorf("in pieces %+v, whole %+v", got, r)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, body, class string }{
		{"OpenAI Responses error event", event(`{"type":"error","code":"rate_limit_exceeded","message":"Please try again in 6s.","sequence_number":1}`), refusal.RateLimit},
		{"Anthropic", event(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), refusal.Overload},
		{"quota inside a stream", event(`{"choices":[]}`, `{"error":{"code":"insufficient_quota"}}`), refusal.Quota},
		{"Gemini list", `[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"x"}}]`, refusal.RateLimit},
		{"in a choice", `{"choices":[{"error":{"code":502,"message":"x"},"finish_reason":"error"}]}`, refusal.Server},
		{"a string", `{"error":"overloaded","error_type":"overloaded"}`, refusal.Overload},
		{"unknown", `{"error":{"message":"The spirits are angry."}}`, ""},
		{"Mistral", `{"object":"error","message":"Rate limit exceeded","type":"rate_limited","code":"1300"}`, refusal.RateLimit},
		{"far behind", event(`{"type":"response.failed","response":{"instructions":"` + strings.Repeat("x", 100000) + `","error":{"code":"rate_limit_exceeded","message":"Please try again in 6s."}}}`), refusal.RateLimit},
		{"long message", event(`{"error":{"code":"rate_limit_exceeded","message":"` + strings.Repeat("x", 100000) + `"}}`), refusal.RateLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Read("", "", []byte(c.body))
			if r.Refusal == nil || string(r.Refusal.Class) != c.class {
				t.Errorf("%+v", r.Refusal)
			}
		})
	}
	for name, body := range map[string]string{
		"null":   `{"error":null,"usage":{"prompt_tokens":1}}`,
		"empty":  `{"error":{},"usage":{"prompt_tokens":1}}`,
		"blank":  `{"error":"","usage":{"prompt_tokens":1}}`,
		"false":  `{"error":false,"usage":{"prompt_tokens":1}}`,
		"nested": `{"output":[{"error":{"code":"insufficient_quota"}}]}`,
	} {
		if r := Read(jsonType, "", []byte(body)); r.Refusal != nil {
			t.Errorf("%s: %+v", name, r.Refusal)
		}
	}
	// What a broken event said does not leak into the next one.
	r := Read(sseType, "", []byte(event(`{"error":{"code":"insufficient_quota"},,`, `{"error":{"message":"x"}}`)))
	if r.Refusal == nil || r.Refusal.Code != "" {
		t.Errorf("%+v", r.Refusal)
	}
}

func TestCloseEndsIt(t *testing.T) {
	m := NewMeter(jsonType, "")
	m.Write([]byte(`{"usage":{"prompt_tokens":3}`))
	first := m.Close()
	m.Write([]byte(`,"usage":{"prompt_tokens":4}}`))
	if again := m.Close(); again != first || again.Input.N != 3 || again.Complete {
		t.Errorf("%+v, then %+v", first, again)
	}
	var zero Meter
	zero.Write([]byte(`{}`))
	if r := zero.Close(); r != (Result{}) {
		t.Errorf("%+v", r)
	}
}

func TestMedia(t *testing.T) {
	for _, contentType := range []string{"audio/mpeg", "image/png", "video/mp4", "AUDIO/wav; x=y"} {
		if r := Read(contentType, "", []byte(`{"usage":{"prompt_tokens":3}}`)); r != (Result{}) {
			t.Errorf("%s: %+v", contentType, r)
		}
	}
	if r := Read("", "", []byte("ID3\x03 {\"usage\":{\"prompt_tokens\":3}}")); r != (Result{}) {
		t.Errorf("%+v", r)
	}
}
