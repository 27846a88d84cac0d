package estimate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func promptTexts(body, path string) (Request, []string) {
	var found []string
	r := inspect([]byte(body), path, func(raw []byte) (milli, chars int64) {
		found = append(found, string(AppendText(nil, raw)))
		return int64(len(raw)) * 1000, characters(raw)
	})
	return r, found
}

func TestEachInterfaceSaysWhatIsPrompt(t *testing.T) {
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

func TestALargePromptWithASmallCapIsNotFree(t *testing.T) {
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

func TestCharactersAreCountedNotBytes(t *testing.T) {
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

func TestNumbersInAPromptAreTokenIDs(t *testing.T) {
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

func TestToolsAndSchemasCountUnderEveryName(t *testing.T) {
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

func TestTheFormOfAChatCostsWhatIsPublished(t *testing.T) {
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
