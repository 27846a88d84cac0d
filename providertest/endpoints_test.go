package providertest

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// decode fails on anything that is not one JSON value of the shape of v.
func decode(t *testing.T, body string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
}

type usageJSON struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
}

// anyAnswer is the union of what is looked at.
type anyAnswer struct {
	ID, Object, Type, Model, Status, Role string
	Choices                               []struct {
		Index        int
		Text         string
		FinishReason string `json:"finish_reason"`
		Message      struct{ Role, Content string }
		Delta        struct{ Role, Content string }
	}
	Output     []struct{ Content []struct{ Type, Text string } }
	Content    []struct{ Type, Text string }
	Data       []struct{ Embedding json.RawMessage }
	StopReason string `json:"stop_reason"`
	Usage      *usageJSON
}

var chatBody = `{"model":"m","messages":[{"role":"system","content":"abcd"},{"role":"user","content":[{"type":"text","text":"abcde"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]%s}`

// 1 for the call, 2 messages, 1 + 2 for the texts, 765 for the image.
const chatPrompt = 1 + 2 + 1 + 2 + 765

func TestEndpoints(t *testing.T) {
	p := mustNew(t, Options{Output: Constant(3), Limits: Limits{RPM: 1000, TPM: 1_000_000}})
	words := "abc abc abc "
	for _, c := range []struct {
		path, body string
		check      func(a anyAnswer) bool
	}{
		{"/v1/chat/completions", fmt.Sprintf(chatBody, `,"n":2`), func(a anyAnswer) bool {
			return a.Object == "chat.completion" && len(a.Choices) == 2 && a.Choices[1].Index == 1 && a.Choices[1].Message.Content == words &&
				a.Choices[0].FinishReason == "stop" && *a.Usage == usageJSON{PromptTokens: chatPrompt, CompletionTokens: 6, TotalTokens: chatPrompt + 6}
		}},
		{"/v1/chat/completions", fmt.Sprintf(chatBody, `,"max_completion_tokens":2`), func(a anyAnswer) bool {
			return a.Choices[0].Message.Content == "abc abc " && a.Choices[0].FinishReason == "length" && a.Usage.CompletionTokens == 2
		}},
		{"/v1/completions", `{"model":"m","prompt":["abcd","abcd"]}`, func(a anyAnswer) bool {
			return a.Object == "text_completion" && a.Choices[0].Text == words && a.Usage.PromptTokens == 1+2+2
		}},
		{"/v1/responses", `{"model":"m","instructions":"abcd","input":[{"role":"user","content":[{"type":"input_text","text":"abcd"}]}]}`, func(a anyAnswer) bool {
			return a.Object == "response" && a.Status == "completed" && a.Output[0].Content[0].Text == words &&
				*a.Usage == usageJSON{InputTokens: 4, OutputTokens: 3, TotalTokens: 7}
		}},
		{"/v1/responses", `{"model":"m","input":"abcd","max_output_tokens":1}`, func(a anyAnswer) bool {
			return a.Status == "incomplete" && a.Usage.OutputTokens == 1
		}},
		{"/v1/embeddings", `{"model":"m","input":[[1,2,3],[4]],"dimensions":5}`, func(a anyAnswer) bool {
			var v []float64
			return len(a.Data) == 2 && json.Unmarshal(a.Data[1].Embedding, &v) == nil && len(v) == 5 &&
				*a.Usage == usageJSON{PromptTokens: 1 + 2 + 4, TotalTokens: 7}
		}},
		{"/v1/embeddings", `{"model":"m","input":"abcd","encoding_format":"base64"}`, func(a anyAnswer) bool {
			var v string
			raw, err := []byte(nil), json.Unmarshal(a.Data[0].Embedding, &v)
			if err == nil {
				raw, err = base64.StdEncoding.DecodeString(v)
			}
			return err == nil && len(raw) == 32 && a.Usage.TotalTokens == 3
		}},
		{"/v1/messages", `{"model":"m","max_tokens":3,"system":"abcd","messages":[{"role":"user","content":"abcd"}]}`, func(a anyAnswer) bool {
			return a.Type == "message" && a.Role == "assistant" && a.Content[0].Text == words && a.StopReason == "max_tokens" &&
				*a.Usage == usageJSON{InputTokens: 4, OutputTokens: 3}
		}},
	} {
		r := send(t.Context(), p.RoundTripper(), c.path, c.body)
		var a anyAnswer
		decode(t, r.body, &a)
		if r.status != 200 || r.header.Get("Content-Type") != "application/json" || a.Model != "m" || !c.check(a) {
			t.Errorf("%s %s: %d %s", c.path, c.body, r.status, r.body)
		}
		if r.header.Get("X-Ratelimit-Remaining-Requests") == "" || r.header.Get("X-Ratelimit-Reset-Tokens") == "" {
			t.Errorf("%s: no rate headers: %v", c.path, r.header)
		}
	}
	if s := p.Stats(); s.Completed != 8 || s.OutputTokens != 6+2+3+3+1+3 {
		t.Errorf("%+v", s)
	}
}

// sse splits a stream into its events.
type sse struct{ name, data string }

func events(t *testing.T, body string) (out []sse) {
	t.Helper()
	var e sse
	sc := bufio.NewScanner(strings.NewReader(body))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := sc.Text()
		switch {
		case line == "":
			out = append(out, e)
			e = sse{}
		case strings.HasPrefix(line, "event: "):
			e.name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			e.data = line[len("data: "):]
		default:
			t.Fatalf("line %q is neither event nor data", line)
		}
	}
	if e != (sse{}) {
		t.Fatalf("the last event %+v has no end", e)
	}
	return out
}

func TestStreams(t *testing.T) {
	usage := `,"stream":true,"stream_options":{"include_usage":true}`
	for _, c := range []struct {
		name, path, body string
		o                Options
		usage, done      bool
	}{
		{"chat", "/v1/chat/completions", fmt.Sprintf(chatBody, `,"n":2`+usage), Options{}, true, true},
		{"chat unasked", "/v1/chat/completions", fmt.Sprintf(chatBody, `,"stream":true`), Options{}, false, true},
		{"chat never", "/v1/chat/completions", fmt.Sprintf(chatBody, usage), Options{StreamUsage: UsageNever}, false, true},
		{"chat always", "/v1/chat/completions", fmt.Sprintf(chatBody, `,"stream":true`), Options{StreamUsage: UsageAlways}, true, true},
		{"chunks of 2", "/v1/chat/completions", fmt.Sprintf(chatBody, usage), Options{ChunkTokens: 2}, true, true},
		{"completions", "/v1/completions", `{"model":"m","prompt":"x"` + usage + `}`, Options{}, true, true},
		{"responses", "/v1/responses", `{"model":"m","input":"x","stream":true}`, Options{}, true, false},
		{"responses incomplete", "/v1/responses", `{"model":"m","input":"x","stream":true,"max_output_tokens":3}`, Options{}, true, false},
		{"messages", "/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}]}`, Options{}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Output = Constant(3)
			p := mustNew(t, c.o)
			r := send(t.Context(), p.RoundTripper(), c.path, c.body)
			if r.status != 200 || r.err != nil || r.header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
				t.Fatalf("%+v", r)
			}
			out := p.Ledger()[0].Produced
			var text string
			var seen *usageJSON
			var all = events(t, r.body)
			for i, e := range all {
				if e.data == "[DONE]" {
					if i != len(all)-1 {
						t.Error("[DONE] is not the last event")
					}
					continue
				}
				var v struct {
					anyAnswer
					Delta    json.RawMessage
					Response anyAnswer
					Message  anyAnswer
					Sequence *int `json:"sequence_number"`
				}
				decode(t, e.data, &v)
				if c.path == "/v1/chat/completions" || c.path == "/v1/completions" {
					if e.name != "" {
						t.Errorf("event %+v has a name", e)
					}
					if len(v.Choices) == 0 != (v.Usage != nil) {
						t.Errorf("usage and choices: %s", e.data)
					}
				} else if e.name != v.Type {
					t.Errorf("event %q holds type %q", e.name, v.Type)
				}
				if c.path == "/v1/responses" && (v.Sequence == nil || *v.Sequence != i) {
					t.Errorf("event %d: sequence_number in %s", i, e.data)
				}
				for _, ch := range v.Choices {
					text += ch.Text + ch.Delta.Content
				}
				switch e.name {
				case "response.output_text.delta":
					var s string
					decode(t, string(v.Delta), &s)
					text += s
				case "content_block_delta":
					var d struct{ Text string }
					decode(t, string(v.Delta), &d)
					text += d.Text
				}
				for _, u := range []*usageJSON{v.Usage, v.Response.Usage, v.Message.Usage} {
					if u != nil {
						seen = u
					}
				}
			}
			if want := strings.Repeat(token, int(out)); text != want {
				t.Errorf("text %q, want %q", text, want)
			}
			if (seen != nil) != c.usage {
				t.Errorf("usage %+v, want it: %v", seen, c.usage)
			}
			if seen != nil && seen.CompletionTokens+seen.OutputTokens != out {
				t.Errorf("usage %+v, want %d of output", seen, out)
			}
			if got := strings.HasSuffix(r.body, "data: [DONE]\n\n"); got != c.done {
				t.Errorf("ends with [DONE]: %v, want %v", got, c.done)
			}
		})
	}
}

// The first byte and each token come when Latency says, the header with the
// first byte, and the call is settled with the last token.
func TestStreamTiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustNew(t, Options{Output: Constant(3), Charge: Settle, Limits: Limits{TPM: 1000},
			Latency: func(Call) Timing { return Timing{FirstByte: 5 * time.Second, PerToken: time.Second} }})
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://box/v1/completions", strings.NewReader(`{"model":"m","prompt":"x","max_tokens":50,"stream":true}`))
		res, err := p.RoundTripper().RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if at := time.Since(p.Start()); at != 5*time.Second {
			t.Errorf("header after %v", at)
		}
		r := bufio.NewReader(res.Body)
		for i := 1; i <= 3; i++ {
			if _, err := r.ReadBytes('\n'); err != nil {
				t.Fatal(err)
			}
			r.ReadBytes('\n')
			if at := time.Since(p.Start()); at != time.Duration(5+i)*time.Second {
				t.Errorf("event %d after %v", i, at)
			}
		}
		synctest.Wait() // the settlement follows the last token
		if e := p.Ledger()[0]; e.End != 8*time.Second || e.Settled.Output != 3 {
			t.Errorf("%+v", e)
		}
		if _, err := r.WriteTo(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	})
}

func TestBadRequests(t *testing.T) {
	p := mustNew(t, Options{MaxBody: 200, ContextWindow: 20, Limits: Limits{RPM: 1}})
	p.Script(Step{Kind: ServerError}) // stays for the first call that is let in
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/v1/chat/completions", `{`, 400},
		{"/v1/chat/completions", ``, 400},
		{"/v1/chat/completions", `[]`, 400},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, 400},
		{"/v1/chat/completions", `{"model":"m"}`, 400},
		{"/v1/chat/completions", `{"model":"m","messages":[{}],"n":0}`, 400},
		{"/v1/chat/completions", `{"model":"m","messages":[{}],"n":129}`, 400},
		{"/v1/chat/completions", `{"model":"m","messages":[{}],"max_tokens":-1}`, 400},
		{"/v1/chat/completions", `{"model":"m","messages":[{}],"max_tokens":9223372036854775807}`, 400},
		{"/v1/chat/completions", `{"model":"m","messages":[{}],"max_tokens":1e400}`, 400},
		{"/v1/embeddings", `{"model":"m","input":[]}`, 400},
		{"/v1/messages", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, 400},
		{"/v1/completions", `{"model":"m","prompt":"` + strings.Repeat("x", 100) + `"}`, 400},
		{"/v1/completions", `{"model":"m","prompt":"` + strings.Repeat("x", 200) + `"}`, 413},
		{"/v1/nothing", `{}`, 404},
		{"/v1/models", `{}`, 405},
	} {
		r := send(t.Context(), p.RoundTripper(), c.path, c.body)
		var v struct {
			Error struct{ Message, Type string }
		}
		decode(t, r.body, &v)
		if r.status != c.status || v.Error.Message == "" || v.Error.Type == "" {
			t.Errorf("%s %s: %d %s", c.path, c.body, r.status, r.body)
		}
		if r.header.Get("X-Ratelimit-Limit-Requests") != "" {
			t.Errorf("%s: rate headers on a call that did not reach the limits", c.path)
		}
	}
	if s := p.Stats(); s.Rejected != 16 || s.Requests != 16 {
		t.Errorf("%+v", s)
	}
	// Nothing was charged, and the step is still there.
	if r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1)); r.status != 500 {
		t.Errorf("%+v", r)
	}
}

func TestKey(t *testing.T) {
	p := mustNew(t, Options{Key: "sesame"})
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"Authorization", "Bearer sesame", 200}, {"X-Api-Key", "sesame", 200}, {"Api-Key", "sesame", 200},
		{"Authorization", "Bearer other", 401}, {"Authorization", "", 401}, {"X-Other", "sesame", 401},
	} {
		r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1), c.name, c.value)
		if r.status != c.status {
			t.Errorf("%s %q: %d, want %d", c.name, c.value, r.status, c.status)
		}
		if r.status == 401 && (!strings.Contains(r.body, `"invalid_api_key"`) || strings.Contains(r.body, "sesame")) {
			t.Errorf("%s", r.body)
		}
	}
	r := send(t.Context(), p.RoundTripper(), "/v1/messages", `{}`)
	if r.status != 401 || !strings.Contains(r.body, `"authentication_error"`) {
		t.Errorf("%+v", r)
	}
}

func TestModels(t *testing.T) {
	p := mustNew(t, Options{Models: []string{"one", "two"}})
	req, _ := http.NewRequest("GET", "http://box/v1/models", nil)
	res, err := p.RoundTripper().RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var v struct {
		Object string
		Data   []struct{ ID, Object string }
	}
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil || v.Object != "list" || len(v.Data) != 2 || v.Data[1].ID != "two" {
		t.Errorf("%v %+v", err, v)
	}
	if s := p.Stats(); s.Requests != 0 {
		t.Errorf("%+v", s)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(fmt.Sprintf(chatBody, ""))
	f.Add(`{"model":"m","input":[[1,2],"x",{"content":[{"type":"input_image"}]},null,3]}`)
	f.Add(`{"model":"m","prompt":null,"messages":[null,[],"x"],"max_tokens":3,"tools":[{}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		for path, k := range kinds {
			q, bad := parse(path, k, []byte(body), "")
			if bad != "" {
				continue
			}
			n := DefaultCount(q.prompt)
			if q.choices < 1 || q.choices > 128 || q.cap < 0 || q.cap > maxTokens || n < 1 {
				t.Fatalf("%+v counts %d", q, n)
			}
			// A prompt costs at most about what its bytes could hold.
			if n-imageTokens*q.prompt.Images > 3*int64(len(body))+2 {
				t.Fatalf("%d tokens from %d bytes", n, len(body))
			}
		}
	})
}
