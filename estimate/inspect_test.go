package estimate

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// promptTexts inspects a body and returns what was counted as text, in order.
func promptTexts(body, path string) (Request, []string) {
	var found []string
	r := inspect([]byte(body), path, func(raw []byte) (milli, chars int64) {
		found = append(found, string(AppendText(nil, raw)))
		return int64(len(raw)) * 1000, characters(raw)
	})
	return r, found
}

// TestPrompts gives for each shape of a body its kind and everything in it that
// is prompt. JSON that the model reads (tools, arguments, schemas) comes in
// pieces between line breaks.
func TestPrompts(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		kind, model      string
		messages         int64
		texts            []string
	}{
		{name: "chat", kind: "chat", model: "gpt-4o", messages: 2,
			body:  `{"model":"gpt-4o","messages":[{"role":"system","content":"Be brief."},{"role":"user","name":"Ann","content":"Hi \"there\""}],"user":"u-1","metadata":{"a":"b"},"stop":["END"]}`,
			texts: []string{"system", "Be brief.", "user", "Ann", `Hi "there"`}},
		{name: "parts", kind: "chat", messages: 1,
			body:  `{"messages":[{"role":"user","content":[{"type":"text","text":"One"},{"type":"image_url","image_url":{"url":"https://example.org/a.png"}},{"type":"text","text":"Two"}]}]}`,
			texts: []string{"user", "One", "Two"}},
		{name: "tool calls", kind: "chat", messages: 2,
			body:  `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"find","arguments":"{\"q\":1}"}}]},{"role":"tool","tool_call_id":"call_1","content":"found"}]}`,
			texts: []string{"assistant", "find", `{"q":1}`, "tool", "found"}},
		{name: "legacy functions", kind: "chat", messages: 1,
			body:  `{"messages":[{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}],"functions":[{"name":"f","parameters":{}}],"function_call":{"name":"f"}}`,
			texts: []string{"assistant", "f", "{}", `[{"name":"f","parameters":{}}]`}},
		{name: "schema", kind: "chat", messages: 1,
			body:  `{"messages":[{"content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"s"}}}`,
			texts: []string{"x", `{"name":"s"}`}},
		{name: "Anthropic", kind: "messages", model: "claude-sonnet-4-6", messages: 2,
			body: `{"model":"claude-sonnet-4-6","system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}],"messages":[` +
				`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"tool_use","id":"t","name":"go","input":{"to":["here"]}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"R"}]}]}],"tools":[{"name":"go","input_schema":{"type":"object"}}]}`,
			texts: []string{"S", "assistant", "hm", "go", `{"to":["here"]}`, "user", "R", `[{"name":"go","input_schema":{"type":"object"}}]`}},
		{name: "Anthropic plain system", kind: "messages", messages: 1,
			body: `{"system":"S","messages":[{"role":"user","content":"x"}]}`, texts: []string{"S", "user", "x"}},
		{name: "Anthropic text document", kind: "messages", messages: 1,
			body:  `{"system":"","messages":[{"content":[{"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"plain words"}},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"in"}]}}]}]}`,
			texts: []string{"T", "plain words", "in"}},
		{name: "Gemini", kind: "gemini", path: "/v1beta/models/gemini-2.5-flash:streamGenerateContent", model: "gemini-2.5-flash", messages: 2,
			body: `{"systemInstruction":{"parts":[{"text":"S"}]},"contents":[{"role":"user","parts":[{"text":"A"},{"fileData":{"mimeType":"application/pdf","fileUri":"files/1"}}]},` +
				`{"parts":[{"functionCall":{"name":"f","args":{"a":1}}},{"functionResponse":{"name":"f","response":{"b":"c"}}}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}]}`,
			texts: []string{"S", "user", "A", "f", `{"a":1}`, "f", `{"b":"c"}`, `[{"functionDeclarations":[{"name":"f"}]}]`}},
		{name: "responses text", kind: "responses", messages: 1,
			body:  `{"model":"gpt-5","instructions":"I","input":"x","text":{"format":{"type":"json_schema","schema":{}}}}`,
			model: "gpt-5", texts: []string{"I", "x", `{}`}},
		{name: "responses items", kind: "responses", messages: 3,
			body: `{"input":[{"role":"user","content":[{"type":"input_text","text":"A"},{"type":"input_image","image_url":"https://example.org/a"}]},` +
				`{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"O"}]}`,
			texts: []string{"user", "A", "f", "{}", "O"}},
		{name: "completions", kind: "completions", messages: 1, body: `{"prompt":"Once","suffix":"end."}`, texts: []string{"Once", "end."}},
		{name: "completions list", kind: "completions", messages: 2, body: `{"prompt":["Once","Twice"]}`, texts: []string{"Once", "Twice"}},
		{name: "embeddings", kind: "embeddings", model: "text-embedding-3-small", messages: 2,
			body: `{"model":"text-embedding-3-small","input":["a","b"]}`, texts: []string{"a", "b"}},
		{name: "embeddings by path", kind: "embeddings", path: "/v1/embeddings", messages: 1, body: `{"input":"a"}`, texts: []string{"a"}},
		{name: "Gemini embeddings", kind: "embeddings", path: "/v1/models/e:embedContent", model: "e", messages: 1,
			body: `{"content":{"parts":[{"text":"a"}]}}`, texts: []string{"a"}},
		{name: "Bedrock converse", kind: "converse", path: "/model/us.anthropic.claude-sonnet-4-20250514-v1:0/converse", model: "us.anthropic.claude-sonnet-4-20250514-v1:0", messages: 1,
			body:  `{"messages":[{"role":"user","content":[{"text":"A"},{"toolResult":{"toolUseId":"x","content":[{"json":{"k":1}},{"text":"B"}]}}]}],"inferenceConfig":{"maxTokens":9},"toolConfig":{"tools":[]}}`,
			texts: []string{"user", "A", `{"k":1}`, "B", `{"tools":[]}`}},
		{name: "Ollama", kind: "chat", path: "/api/chat", messages: 1, body: `{"messages":[{"content":"A","images":["iVBORw0KGgo="]}],"format":"json"}`, texts: []string{"A"}},
		{name: "names made next year are prompt", kind: "chat", messages: 1, body: `{"messages":[{"content":"A","novel":{"deep":["B"]}}]}`, texts: []string{"A", "B"}},
		{name: "escaped names", kind: "chat", messages: 1, body: `{"m\u0065ssages":[{"cont\u0065nt":"A"}],"m\u006fdel":"m"}`, model: "m", texts: []string{"A"}},
		{name: "indented", kind: "chat", messages: 1,
			body:  "{\n  \"messages\": [\n    {\n      \"content\": \"A\"\n    }\n  ],\n  \"tools\": [\n    {\n      \"name\": \"x\"\n    }\n  ]\n}\n",
			texts: []string{"A", "[", "{", `"name": "x"`, "}", "]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !json.Valid([]byte(c.body)) {
				t.Fatal("the test's own body is not JSON")
			}
			r, found := promptTexts(c.body, c.path)
			if !r.Understood {
				t.Error("not understood")
			}
			if r.Kind != c.kind || r.Model != c.model || r.Messages != c.messages {
				t.Errorf("kind %q, model %q, %d messages; want %q, %q, %d", r.Kind, r.Model, r.Messages, c.kind, c.model, c.messages)
			}
			if !slices.Equal(found, c.texts) {
				t.Errorf("texts %q\nwant  %q", found, c.texts)
			}
		})
	}
}

// TestCaps reads every name of the output cap.
func TestCaps(t *testing.T) {
	for body, want := range map[string]int64{
		`"max_tokens":7`:                                       7,
		`"max_completion_tokens":7`:                            7,
		`"max_output_tokens":7`:                                7,
		`"max_tokens_to_sample":7`:                             7,
		`"maxTokens":7`:                                        7,
		`"max_new_tokens":7`:                                   7,
		`"max_gen_len":7`:                                      7,
		`"n_predict":7`:                                        7,
		`"generationConfig":{"maxOutputTokens":7}`:             7,
		`"generation_config":{"max_output_tokens":7}`:          7,
		`"inferenceConfig":{"maxTokens":7}`:                    7,
		`"textGenerationConfig":{"maxTokenCount":7}`:           7,
		`"parameters":{"max_new_tokens":7}`:                    7,
		`"options":{"num_predict":7}`:                          7,
		`"options":{"num_predict":-1}`:                         0,
		`"max_tokens":"7"`:                                     7,
		`"max_tokens":7.0`:                                     7,
		`"max_tokens":0.7e1`:                                   7,
		`"max_tokens":6.5`:                                     7,
		`"max_tokens":7e0`:                                     7,
		`"max_tokens":null`:                                    0,
		`"max_tokens":{"a":7}`:                                 0,
		`"max_tokens":[7]`:                                     0,
		`"max_tokens":3,"max_tokens":7`:                        7,
		`"max_tokens":7,"max_tokens":3`:                        3,
		`"max_tokens":7,"max_tokens":null`:                     0,
		`"max_tokens":7,"max_tokens":[]`:                       0,
		`"max_tokens":7,"max_completion_tokens":3`:             7,
		`"generationConfig":{"maxOutputTokens":7},"top_p":1`:   7,
		`"metadata":{"max_tokens":7}`:                          0,
		`"tools":[{"max_tokens":7}]`:                           0,
		`"max_tokens":1e999`:                                   math.MaxInt64,
		`"max_tokens":99999999999999999999999`:                 math.MaxInt64,
		`"max_tokens":1e-999`:                                  1,
		`"max_tokens":0`:                                       0,
		`"max_tokens":"lots"`:                                  0,
		`"max_tokens":true`:                                    0,
		`"max_tokens":"true"`:                                  0,
		`"max_tokens":-5`:                                      0,
		`"max_tokens":"-5"`:                                    0,
		`"max_tokens":" 7 "`:                                   7,
		`"max_tokens":"7e0"`:                                   7,
		`"max_tokens":"NaN"`:                                   0,
		`"max_tokens":1e99999999999999999999999`:               math.MaxInt64,
		`"max_tokens":0e99999999999999999999999`:               0,
		`"max_tokens":7` + strings.Repeat("0", 500) + `e-500`:  7,
		`"max_tokens":0.` + strings.Repeat("0", 500) + `7e501`: 7,
		`"max_tokens":` + strings.Repeat("9", 500):             math.MaxInt64,
		`"max_tokens":-5,"max_completion_tokens":7`:            7,
		`"max_tokens":null,"max_completion_tokens":"7"`:        7,
		`"thinking":{"budget_tokens":9},"max_tokens":7`:        7,
		`"reasoning":{"max_tokens":9}`:                         0,
		`"max_\u0074okens":7`:                                  7,
		`"generationConfig":{"thinkingConfig":{"x":7},"y":1}`:  0,
	} {
		for _, whole := range []string{`{"messages":[],` + body + `}`, `{` + body + `,"messages":[]}`} {
			if r := Inspect([]byte(whole), Options{}); r.OutputCap != want || !r.Understood {
				t.Errorf("%s: cap %d, understood %v; want %d", whole, r.OutputCap, r.Understood, want)
			}
		}
	}
}

func TestThinkingAndStream(t *testing.T) {
	for body, want := range map[string]Request{
		`"thinking":{"type":"enabled","budget_tokens":9},"stream":true`: {Thinking: 9, Stream: true},
		`"generationConfig":{"thinkingConfig":{"thinkingBudget":9}}`:    {Thinking: 9},
		`"generationConfig":{"thinkingConfig":{"thinkingBudget":-1}}`:   {},
		`"reasoning":{"effort":"high","max_tokens":9}`:                  {Thinking: 9},
		`"stream":false`:               {},
		`"stream":true,"stream":false`: {},
		`"stream":"true"`:              {Stream: true},
		`"stream":"True"`:              {Stream: true},
		`"stream":"false"`:             {},
		`"stream":1`:                   {Stream: true},
		`"stream":0`:                   {},
		`"stream":"yes"`:               {},
		`"stream":null,"stream_options":{"include_usage":true}`:                   {},
		`"thinking":{"budget_tokens":9},"thinking":{"type":"disabled"},"top_k":1`: {},
	} {
		r := Inspect([]byte(`{"messages":[],`+body+`}`), Options{})
		if r.Thinking != want.Thinking || r.Stream != want.Stream {
			t.Errorf("%s: thinking %d, stream %v; want %d, %v", body, r.Thinking, r.Stream, want.Thinking, want.Stream)
		}
	}
}

// TestB069_ChoicesMultiply: n and best_of multiply what is charged, and so does
// the number of prompts of a completion.
func TestB069_ChoicesMultiply(t *testing.T) {
	for _, c := range []struct {
		body    string
		choices int64
	}{
		{`{"messages":[],"max_tokens":100,"n":5}`, 5},
		{`{"prompt":"a","max_tokens":100,"n":2,"best_of":5}`, 5},
		{`{"prompt":["a","b"],"max_tokens":100,"n":3}`, 6},
		{`{"prompt":[[1,2],[3]],"max_tokens":100}`, 2},
		{`{"prompt":[1,2,3],"max_tokens":100}`, 1},
		{`{"contents":[],"generationConfig":{"candidateCount":4,"maxOutputTokens":100}}`, 4},
		{`{"prompt":"a","max_tokens":100,"n":5,"best_of":2}`, 5},
		{`{"prompt":["a","b"],"max_tokens":100,"n":2,"best_of":4}`, 8},
		{`{"messages":[],"max_tokens":100,"n":"5"}`, 5},
		{`{"messages":[],"max_tokens":100,"n":5.0}`, 5},
		{`{"messages":[],"max_tokens":100,"n":null}`, 1},
		{`{"messages":[],"max_tokens":100,"n":true}`, 1},
		{`{"messages":[],"max_tokens":100,"n":2,"n":5}`, 5},
		{`{"messages":[],"max_tokens":100,"n":0}`, 1},
		{`{"messages":[],"max_tokens":100,"n":-5}`, 1},
		{`{"messages":[],"max_tokens":100}`, 1},
	} {
		r := Inspect([]byte(c.body), Options{})
		if r.Choices != c.choices {
			t.Errorf("%s: %d choices, want %d", c.body, r.Choices, c.choices)
		}
		output := Rule{ReserveCap: true}.Price(r, 0).Output
		if output != 100*c.choices {
			t.Errorf("%s: %d tokens of output reserved, want %d", c.body, output, 100*c.choices)
		}
	}
	huge := Inspect([]byte(`{"messages":[],"max_tokens":9e18,"n":9e18}`), Options{})
	if output := (Rule{ReserveCap: true}).Price(huge, 0).Output; output != math.MaxInt64 {
		t.Errorf("%d tokens reserved: the product wrapped round", output)
	}
}

// TestB070_CapIsReserved: what the cap allows is charged on arrival, and the
// rest comes back when the usage is known.
func TestB070_CapIsReserved(t *testing.T) {
	r := Inspect([]byte(`{"messages":[{"content":"hi"}],"max_tokens":4000}`), Options{})
	rule := Rule{ReserveCap: true}
	p := rule.Price(r, 0)
	if p.Output != 4000 {
		t.Errorf("reserved %d, want 4000", p.Output)
	}
	if in, out := rule.Actual(p.Input, p.Output, Used{Input: 9, Output: 20}); in != 9 || out != 20 {
		t.Errorf("settled at %d, %d; want 9, 20", in, out)
	}
}

// TestB071_PromptIsCharged: a large prompt with a small cap is not free.
func TestB071_PromptIsCharged(t *testing.T) {
	text := strings.Repeat("word ", 20_000)
	r := inspect([]byte(`{"messages":[{"role":"user","content":"`+text+`"}],"max_tokens":1}`), "",
		func(raw []byte) (milli, chars int64) {
			return 1000 * int64(strings.Count(string(raw), " ")), characters(raw)
		})
	for _, rule := range []Rule{{}, {Charge: ChargeActual}, {Charge: ChargeEstimate, PromptByChars: true}} {
		if p := rule.Price(r, 0); p.Input < 20_000 {
			t.Errorf("%v: %d tokens of input, want 20,000 at least", rule.Charge, p.Input)
		}
	}
}

// TestB073_CharactersNotBytes: the characters of a text are counted, in whatever
// script, escaped or not.
func TestB073_CharactersNotBytes(t *testing.T) {
	const han = "限流器先问账本再放行"
	var escaped strings.Builder
	for _, r := range han {
		fmt.Fprintf(&escaped, `\u%04x`, r)
	}
	for _, text := range []string{strings.Repeat(han, 800), strings.Repeat(escaped.String(), 800)} {
		r := Inspect([]byte(`{"messages":[{"content":"`+text+`"}]}`), Options{})
		if r.Chars != 8000 || r.Quarters != 2000 {
			t.Errorf("%d characters, %d quarters; want 8000, 2000", r.Chars, r.Quarters)
		}
	}
	for text, want := range map[string]int64{`a`: 1, `\n`: 1, `\\n`: 2, `\ud83d\ude00`: 1, `😀`: 1, `é`: 1, `\"x\"`: 3, `\u00e9`: 1, ``: 0} {
		if r := Inspect([]byte(`{"prompt":"`+text+`"}`), Options{}); r.Chars != want {
			t.Errorf("%s: %d characters, want %d", text, r.Chars, want)
		}
	}
}

// TestB074_NumbersInPrompt: a text of numbers reaches the counter whole, and
// token ids are one token each.
func TestB074_NumbersInPrompt(t *testing.T) {
	ids := make([]string, 2000)
	for i := range ids {
		ids[i] = strconv.Itoa(i * 7)
	}
	list := strings.Join(ids, ",")
	_, found := promptTexts(`{"prompt":"[`+list+`]"}`, "")
	if len(found) != 1 || found[0] != "["+list+"]" {
		t.Error("the text was not counted whole")
	}
	for body, want := range map[string]int64{
		`{"prompt":[` + list + `]}`:                                      2000,
		`{"model":"embed","input":[` + list + `]}`:                       2000,
		`{"model":"embed","input":[[` + list + `],[` + list + `],[1]]}`:  4001,
		`{"model":"embed","input":[]}`:                                   0,
		`{"prompt":"x","context":[` + list + `]}`:                        2000,
		`{"messages":[{"role":"user","content":[1,2,3]}],"ids":[1,2,3]}`: 0,
	} {
		if r := Inspect([]byte(body), Options{}); r.TokenIDs != want || r.Input < want {
			t.Errorf("%.40s...: %d token ids, input %d; want %d", body, r.TokenIDs, r.Input, want)
		}
	}
}

// TestB075_ToolsAndSchemasCount: definitions are prompt, under every name.
func TestB075_ToolsAndSchemasCount(t *testing.T) {
	var tools strings.Builder
	for i := range 50 {
		if i > 0 {
			tools.WriteByte(',')
		}
		fmt.Fprintf(&tools, `{"type":"function","function":{"name":"f%d","description":"%s","parameters":{"type":"object","properties":{"p":{"type":"string"}}}}}`, i, strings.Repeat("words of text ", 50))
	}
	list := `[` + tools.String() + `]`
	if len(list) < 40_000 {
		t.Fatal("the tools are smaller than 40 kB")
	}
	n := 0
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"hi"}],"tools":` + list + `}`,
		`{"messages":[{"role":"user","content":"hi"}],"functions":` + list + `}`,
		`{"tools":` + list + `,"messages":[{"role":"user","content":"hi"}]}`,
		`{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":` + list + `}}`,
		`{"input":"hi","text":{"format":{"type":"json_schema","schema":` + list + `}}}`,
		`{"contents":[{"parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":` + list + `}]}`,
		`{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"responseSchema":` + list + `}}`,
		`{"messages":[{"content":[{"text":"hi"}]}],"toolConfig":{"tools":` + list + `}}`,
		`{"messages":[{"content":"hi"}],"output_config":{"format":{"type":"json_schema","schema":` + list + `}}}`,
	} {
		r, _ := promptTexts(body, "")
		if int(r.Chars) < len(list) || int(r.Text) < 1000*len(list) {
			t.Errorf("%.60s...: %d characters counted, the definitions have %d", body, r.Chars, len(list))
		}
		if r.Quarters < int64(len(list))/4 {
			t.Errorf("%.60s...: %d quarters", body, r.Quarters)
		}
		n++
	}
	if n == 0 {
		t.Fatal("nothing was tried")
	}
}

// TestChatOverhead: the published numbers of the form of a chat.
func TestChatOverhead(t *testing.T) {
	body := `{"model":"%s","messages":[{"role":"system","content":"a"},{"role":"system","name":"b","content":"c"},{"role":"user","content":"d"}]}`
	for model, want := range map[string]int64{
		"gpt-4o":             3*3 + 1 + 3,
		"gpt-3.5-turbo-0613": 3*3 + 1 + 3,
		"gpt-3.5-turbo-0301": 3*4 - 1 + 3,
		"":                   3*3 + 1 + 3,
	} {
		if r := inspect(fmt.Appendf(nil, body, model), "", countNothing); r.Input != want {
			t.Errorf("%s: %d tokens, want %d", model, r.Input, want)
		}
	}
	if r := inspect([]byte(`{"prompt":"a"}`), "", countNothing); r.Input != 0 {
		t.Errorf("a completion has %d tokens of overhead", r.Input)
	}
}

// TestNotUnderstood: what is no request still has a price, by its size.
func TestNotUnderstood(t *testing.T) {
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
			t.Errorf("%.30q...: %d tokens, want a quarter of %d bytes, or what was found if that is more", body, r.Input, len(body))
		}
	}
	if r := Inspect(nil, Options{}); r.Understood || r.Input != 0 || r.Choices != 1 || r.Kind != "unknown" {
		t.Errorf("an empty body: %+v", r)
	}
}

// TestDeep nests a hundred thousand levels deep, in every place: no stack grows.
func TestDeep(t *testing.T) {
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

// TestLinear: of inputs made to be looked at again and again, the counter is
// handed each byte once at most, and the effort on equal names stays bounded.
func TestLinear(t *testing.T) {
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

// TestInspectAllocations: one for the model's name; one more where the pool of
// scanners was empty.
func TestInspectAllocations(t *testing.T) {
	for _, b := range benchBodies() {
		if n := testing.AllocsPerRun(20, func() { Inspect(b.body, Options{}) }); n > 2 {
			t.Errorf("%s: %v allocations", b.name, n)
		}
	}
}

// TestConcurrent: scanners are reused, and nothing of one body is left for another.
func TestConcurrent(t *testing.T) {
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

// TestCounter: a Counter is told the model wherever the model stands, and none of
// its answers does harm.
func TestCounter(t *testing.T) {
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

// TestFamilies: the fast count uses the weights of the model's family, wherever
// the model stands.
func TestFamilies(t *testing.T) {
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

func TestPaths(t *testing.T) {
	for path, want := range map[string]Request{
		"/openai/deployments/my-gpt/chat/completions":                        {Kind: "chat", Model: "my-gpt"},
		"/v1beta/models/gemini-2.5-pro:generateContent":                      {Kind: "gemini", Model: "gemini-2.5-pro"},
		"/v1beta/models/gemini-2.5-pro:streamGenerateContent":                {Kind: "gemini", Model: "gemini-2.5-pro", Stream: true},
		"/model/anthropic.claude-3-haiku-20240307-v1:0/converse":             {Kind: "converse", Model: "anthropic.claude-3-haiku-20240307-v1:0"},
		"/model/m/converse-stream":                                           {Kind: "converse", Model: "m", Stream: true},
		"/model/m/invoke-with-response-stream":                               {Kind: "completions", Model: "m", Stream: true},
		"/v1/messages":                                                       {Kind: "messages"},
		"/v1/messages/count_tokens":                                          {Kind: "count"},
		"/v1/projects/p/locations/l/publishers/google/models/g:embedContent": {Kind: "embeddings", Model: "g"},
		"": {Kind: "completions"},
	} {
		r := Inspect([]byte(`{"prompt":"x"}`), Options{Path: path})
		if r.Kind != want.Kind || r.Model != want.Model || r.Stream != want.Stream {
			t.Errorf("%s: %q, %q, %v; want %q, %q, %v", path, r.Kind, r.Model, r.Stream, want.Kind, want.Model, want.Stream)
		}
	}
}

func TestAppendText(t *testing.T) {
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

// TestModelNameIsKept: a scanner keeps the last model's name for the next body. A
// name that reads like the escapes of another is not taken for it.
func TestModelNameIsKept(t *testing.T) {
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

// TestNamesTwiceInASecondPass: the second pass begins anew, whatever the first had
// found before it met the name again.
func TestNamesTwiceInASecondPass(t *testing.T) {
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
