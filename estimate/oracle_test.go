package estimate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// An oracle reads a body with encoding/json and plain recursion, by the same
// tables of names. It is slow, simple and keeps everything in memory.
type oracle struct {
	model           string
	stream          bool
	capMax, choices int64
	messages, ids   int64
	weight          int64 // of all text
}

// oracleWeight is a count that does not mind how a text is cut or indented: one for
// each character that is not white space.
func oracleWeight(raw []byte) int64 {
	var n int64
	for _, r := range string(AppendText(nil, raw)) {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}

func readOracle(body []byte) (o oracle, ok bool) {
	if !json.Valid(body) {
		return o, false
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(body, &top) != nil || top == nil {
		return o, false
	}
	o.choices = 1
	var sets [2][slots]int64
	for key, v := range top {
		p, arg, _ := rootKey([]byte(key))
		switch p {
		case asModel:
			o.model = oracleText(v)
		case asSetting:
			sets[0][arg] = oracleNumber(v, arg)
		}
	}
	o.object(top, asRoot, 0, 1, &sets)
	o.stream = sets[0][slotStream] > 0
	for _, set := range sets {
		for _, n := range set[slotN:slotMaxTokens] {
			o.choices = max(o.choices, n)
		}
		for _, n := range set[slotMaxTokens:] {
			o.capMax = max(o.capMax, n)
		}
	}
	return o, true
}

func oracleText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

func oracleNumber(v json.RawMessage, slot uint8) int64 {
	if v[0] == '"' {
		v = v[1 : len(v)-1]
	}
	if slot == slotStream && strings.EqualFold(string(v), "true") {
		return 1
	}
	n, _ := integer(v)
	return n
}

func (o *oracle) object(m map[string]json.RawMessage, p place, hint mediaKind, depth int, sets *[2][slots]int64) {
	for key, v := range m {
		var q place
		var arg uint8
		tier := 0
		switch p {
		case asRoot:
			q, arg, _ = rootKey([]byte(key))
		case asContent, asLoose:
			q, arg = partKey([]byte(key))
		case asMedia:
			q, arg = mediaKey([]byte(key))
		case asConfig:
			q, arg = configKey([]byte(key))
			tier = 1
		case asThinking:
			q, arg = thinkingKey([]byte(key))
		case asFormat:
			q, arg = formatKey([]byte(key))
		case asEmbedding:
			q, arg = embeddingKey([]byte(key))
		}
		h := hint
		switch q {
		case asSetting:
			sets[tier][arg] = oracleNumber(v, arg)
			continue
		case asMedia:
			if arg != 0 {
				h = mediaKind(arg)
			}
		}
		o.value(v, q, h, depth, sets)
	}
}

func (o *oracle) value(v json.RawMessage, p place, hint mediaKind, depth int, sets *[2][slots]int64) {
	switch v[0] {
	case '"':
		raw := v[1 : len(v)-1]
		_, _, isURL := dataURL(raw)
		counted := false
		switch p {
		case asItems, asInput:
			o.messages++
			counted = !isURL
		case asContent, asArguments, asName, asTools, asStructure, asReasoning:
			counted = !isURL
		case asSchema:
			counted = !isURL && !means(raw, "json")
		case asLoose:
			counted = !isURL && !looksBase64(raw)
		case asMedia, asData:
			counted = !isURL && !isPayload(raw) && !(p == asMedia && hint != mediaUnknown && remote(raw))
		case asRole:
			counted = true
		}
		if counted {
			o.weight += oracleWeight(raw)
		}
	case '{', '[':
		switch p {
		case asData, asReasoning:
			p = asLoose
		case asReference:
			p = asMedia
		case asIDs:
			if v[0] == '{' {
				return
			}
		case asItems, asInput:
			if v[0] == '{' {
				o.messages++
				p = asContent
			}
		case asArguments, asTools, asSchema, asStructure:
			o.weight += structureWeight(v)
			return
		case asRoot, asContent, asLoose, asMedia, asConfig, asThinking, asFormat, asEmbedding:
		default:
			return
		}
		if depth == maxFrames {
			o.weight += structureWeight(v)
			return
		}
		if v[0] == '{' {
			var m map[string]json.RawMessage
			if json.Unmarshal(v, &m) == nil {
				o.object(m, p, hint, depth+1, sets)
			}
			return
		}
		var a []json.RawMessage
		if json.Unmarshal(v, &a) != nil {
			return
		}
		first := true
		for _, e := range a {
			if (p == asInput || p == asIDs) && '0' <= e[0] && e[0] <= '9' {
				o.ids++
				if first && p == asInput {
					o.messages++
					first = false
				}
				continue
			}
			o.value(e, p, hint, depth+1, sets)
		}
	}
}

// structureWeight weighs JSON without the payloads in its strings.
func structureWeight(v json.RawMessage) int64 {
	var out []byte
	for i := 0; i < len(v); i++ {
		if v[i] != '"' {
			out = append(out, v[i])
			continue
		}
		end := i + 1
		for v[end] != '"' {
			if v[end] == '\\' {
				end++
			}
			end++
		}
		if _, _, ok := dataURL(v[i+1 : end]); !ok && !looksBase64(v[i+1:end]) {
			out = append(out, v[i:end+1]...)
		}
		i = end
	}
	return oracleWeight(out)
}

// checkAgainstOracle inspects a body and compares it with the oracle where
// encoding/json understands it.
func checkAgainstOracle(t *testing.T, body []byte) {
	t.Helper()
	before := bytes.Clone(body)
	s := newScanner(body)
	s.run(func(raw []byte) (milli, chars int64) { return 1000 * oracleWeight(raw), characters(raw) })
	r := s.request("", true)
	if !bytes.Equal(before, body) {
		t.Fatal("the body was changed")
	}
	checkSane(t, r, len(body))
	o, ok := readOracle(body)
	if !ok {
		s.release()
		return
	}
	// Two equal names among more than are remembered both count: not compared.
	if bytes.Count(body, []byte(":")) > maxMembers {
		s.release()
		return
	}
	if len(s.model) <= maxModel && r.Model != o.model {
		t.Errorf("model %q, encoding/json says %q", r.Model, o.model)
	}
	if r.Stream != o.stream {
		t.Errorf("stream %v, encoding/json says %v", r.Stream, o.stream)
	}
	if r.OutputCap != o.capMax {
		t.Errorf("output cap %d, encoding/json says %d", r.OutputCap, o.capMax)
	}
	if got := s.choices(); got != o.choices {
		t.Errorf("choices %d, encoding/json says %d", got, o.choices)
	}
	if r.Messages != o.messages {
		t.Errorf("messages %d, encoding/json says %d", r.Messages, o.messages)
	}
	if r.TokenIDs != o.ids {
		t.Errorf("token ids %d, encoding/json says %d", r.TokenIDs, o.ids)
	}
	// The same reasoning under two names counts once; which names go together depends
	// on their order, which the oracle does not see.
	if r.Text != 1000*o.weight && !bytes.Contains(body, []byte("reason")) {
		t.Errorf("text of weight %d, encoding/json says %d", r.Text/1000, o.weight)
	}
	s.release()
	if t.Failed() {
		t.Logf("body: %s", body)
	}
}

// checkSane holds for any body at all.
func checkSane(t *testing.T, r Request, size int) {
	t.Helper()
	if r.Input < 0 || r.Text < 0 || r.Chars < 0 || r.Quarters < 0 || r.Messages < 0 || r.TokenIDs < 0 ||
		r.Images < 0 || r.ImageTokens < 0 || r.MediaTokens < 0 || r.Guess < 0 || r.Guess > r.Input || r.OutputCap < 0 || r.Choices < 1 || r.Thinking < 0 {
		t.Fatalf("a negative number: %+v", r)
	}
	if r.Size != int64(size) {
		t.Fatalf("size %d, want %d", r.Size, size)
	}
	if r.Kind == "" {
		t.Fatal("no kind")
	}
	for _, u := range []Rule{{}, {Charge: ChargeEstimate, PromptByChars: true, ReserveCap: true, ImageTokens: 765}, {Charge: ChargeActual, OutputFactor: 5}} {
		if p := u.Price(r, 0); p.Input < 0 || p.Output < 0 || p.StatedInput < 0 || p.StatedOutput < 0 || p.StatedInput > p.Input || p.StatedOutput > p.Output {
			t.Fatalf("an impossible price: %+v", p)
		}
	}
}

var bodySeeds = []string{
	``, ` `, `{`, `}`, `[]`, `{}`, `null`, `"`, `{"`, `{"a`, `{"a":`, `{"a":"\`, `{"a":"\u12`, `{]`, `{"a":1]`,
	`{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}],"max_tokens":100,"n":2,"stream":true}`,
	`{"m\u006fdel":"a","model":"b"}`, `{"model":"a","m\u006fdel":"b"}`, `{"model":"a","model":null}`,
	`{"max_tokens":5,"max_tokens":"7"}`, `{"max_tokens":1e2}`, `{"max_tokens":-1}`, `{"max_tokens":99999999999999999999}`,
	`{"generationConfig":{"maxOutputTokens":5},"generationConfig":{}}`,
	`{"generationConfig":{"maxOutputTokens":5,"candidateCount":3,"thinkingConfig":{"thinkingBudget":9}}}`,
	`{"messages":[{"content":"a"}],"messages":[{"content":"bcd"}]}`,
	`{"messages":[{"content":"a","content":"bcd","x":"y","content":"efghi"}]}`,
	`{"messages":[{"content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}}]}]}`,
	`{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","content":"ok"}]}`,
	`{"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"r"}]},{"type":"tool_use","input":{"a":["b",1,true]}}]}]}`,
	`{"contents":[{"parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}],"tools":[{"functionDeclarations":[{"name":"x"}]}]}`,
	`{"input":[[1,2,3],[4]],"prompt":[1,2,"a",["b"]]}`, `{"input":["a","b"],"model":"text-embedding-3-small"}`,
	`{"input":[{"type":"input_image","image_url":"https://x/y.png"},{"type":"function_call_output","output":"x"}]}`,
	`{"tools":[{"a": "b",
	"c": ["d", {"e":"f"}]}]}`,
	"{\"messages\":[{\"content\":\"\xff\xfe\",\"\xff\":\"a\",\"\xfe\":\"bb\"}]}",
	`{"messages":[{"content":"\ud83d\ude00 \ud83d é"}]}`, `{"response_format":{"type":"json_schema"},"text":{"format":{"type":"text"}}}`,
	`{"messages":{"content":"x"},"prompt":{"id":"p","variables":{"a":"b"}}}`, `{"messages":"plain"}`,
	`{"thinking":{"type":"enabled","budget_tokens":1000},"max_tokens":2000}`,
	strings.Repeat(`{"messages":[`, 40) + strings.Repeat(`]}`, 40),
	`{"messages":` + strings.Repeat(`[`, 80) + `"x"` + strings.Repeat(`]`, 80) + `}`,
}

func FuzzInspect(f *testing.F) {
	for _, s := range bodySeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(checkAgainstOracle)
}

// TestEveryBodyCutShortIsPriced cuts bodies short at every byte: there is an estimate each time, and
// only the whole is understood.
func TestEveryBodyCutShortIsPriced(t *testing.T) {
	n := 0
	for _, s := range bodySeeds {
		for i := range len(s) {
			r := Inspect([]byte(s[:i]), Options{})
			checkSane(t, r, i)
			if r.Understood && !json.Valid([]byte(s[:i])) {
				t.Errorf("understood a body that is cut short: %s", s[:i])
			}
			n++
		}
	}
	if n == 0 {
		t.Fatal("nothing was cut")
	}
}
