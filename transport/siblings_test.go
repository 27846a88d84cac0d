package transport_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/transport"
)

// What a request does not state is a guess, and no limit is too small for it: choices,
// candidates, pictures, a body that cannot be read, with any burst.
func TestNoLimitIsTooSmallForAGuess(t *testing.T) {
	for _, c := range []struct {
		name           string
		o              transport.Options
		path, ct, body string
	}{
		{"n 8 unread cap", transport.Options{TPM: 1000}, "/v1/chat/completions", "application/json", `{"model":"m","n":8,"messages":[{"role":"user","content":"hi"}]}`},
		{"best_of", transport.Options{TPM: 1000}, "/v1/completions", "application/json", `{"model":"m","best_of":20,"prompt":"hi"}`},
		{"gemini candidates", transport.Options{OutputTPM: 100}, "/v1beta/models/g:generateContent", "application/json", `{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"candidateCount":4}}`},
		{"image", transport.Options{InputTPM: 100}, "/v1/chat/completions", "application/json", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}]}`},
		{"cut json", transport.Options{TPM: 10}, "/v1/chat/completions", "application/json", `{"model":"m","messages":[{"role":"user","content":"hi`},
		{"multipart audio", transport.Options{TPM: 10}, "/v1/audio/transcriptions", "multipart/form-data; boundary=x", "--x\r\n\r\n" + strings.Repeat("a", 1<<20)},
		{"burst 1s input", transport.Options{InputTPM: 30000, Burst: time.Second}, "/v1/messages", "application/json", `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`},
		{"output burst", transport.Options{OutputTPM: 30000, Burst: time.Second}, "/v1/chat/completions", "application/json", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`},
		{"responses reasoning", transport.Options{OutputTPM: 100}, "/v1/responses", "application/json", `{"model":"o3","reasoning":{"effort":"high"},"input":"hi"}`},
		{"tenant", transport.Options{}, "/v1/chat/completions", "application/json", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`},
	} {
		if cost, err := priced(t, c.o, call(t, "POST", c.path, c.ct, c.body)); err != nil {
			t.Errorf("%s: %v, %v", c.name, cost, err)
		}
	}
}

// guesses are requests that state next to nothing, and cost much by a guess.
var guesses = []struct{ name, path, typed, coding, body string }{
	{"plain", "/v1/chat/completions", "application/json", "", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`},
	{"n 8", "/v1/chat/completions", "application/json", "", `{"model":"m","n":8,"messages":[{"role":"user","content":"hi"}]}`},
	{"n 2^62", "/v1/chat/completions", "application/json", "", `{"model":"m","n":4611686018427387904,"messages":[{"role":"user","content":"hi"}]}`},
	{"n 1e300", "/v1/chat/completions", "application/json", "", `{"model":"m","n":1e300,"messages":[{"role":"user","content":"hi"}]}`},
	{"n 128 cap 1", "/v1/chat/completions", "application/json", "", `{"model":"m","n":128,"max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`},
	{"best_of 20", "/v1/completions", "application/json", "", `{"model":"m","best_of":20,"prompt":"hi"}`},
	{"prompts 20", "/v1/completions", "application/json", "", `{"model":"m","max_tokens":1,"prompt":["a","a","a","a","a","a","a","a"]}`},
	{"candidateCount", "/v1beta/models/gemini-2.5-pro:generateContent", "application/json", "", `{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"candidateCount":8}}`},
	{"candidate_count", "/v1beta/models/gemini-2.5-pro:generateContent", "application/json", "", `{"contents":[{"parts":[{"text":"hi"}]}],"generation_config":{"candidate_count":8}}`},
	{"num_generations", "/v1/generate", "application/json", "", `{"model":"command","prompt":"hi","num_generations":5}`},
	{"thinking", "/v1beta/models/gemini-2.5-pro:generateContent", "application/json", "", `{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":20000}}}`},
	{"reasoning high", "/v1/responses", "application/json", "", `{"model":"o3","reasoning":{"effort":"high"},"input":"hi"}`},
	{"image url", "/v1/chat/completions", "application/json", "", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"high"}}]}]}`},
	{"40 image urls", "/v1/chat/completions", "application/json", "", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"image_url","image_url":{"url":"https://x/y.png"}},`, 39) + `{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}]}`},
	{"anthropic image url", "/v1/messages", "application/json", "", `{"model":"claude-sonnet-4","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]}`},
	{"anthropic file", "/v1/messages", "application/json", "", `{"model":"claude-sonnet-4","max_tokens":1,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]}`},
	{"responses file", "/v1/responses", "application/json", "", `{"model":"gpt-4o","max_output_tokens":1,"input":[{"role":"user","content":[{"type":"input_file","file_id":"file_1"}]}]}`},
	{"gemini fileData", "/v1beta/models/gemini-2.5-pro:generateContent", "application/json", "", `{"contents":[{"parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"https://x/v"}}]}],"generationConfig":{"maxOutputTokens":1}}`},
	{"youtube", "/v1beta/models/gemini-2.5-pro:generateContent", "application/json", "", `{"contents":[{"parts":[{"file_data":{"file_uri":"https://www.youtube.com/watch?v=x"}}]}],"generationConfig":{"maxOutputTokens":1}}`},
	{"bedrock s3", "/model/amazon.nova-pro-v1:0/converse", "application/json", "", `{"messages":[{"role":"user","content":[{"video":{"format":"mp4","source":{"s3Location":{"uri":"s3://b/k"}}}}]}],"inferenceConfig":{"maxTokens":1}}`},
	{"pdf b64", "/v1/messages", "application/json", "", `{"model":"claude-sonnet-4","max_tokens":1,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + strings.Repeat("QUJD", 20000) + `"}}]}]}`},
	{"mp3 b64", "/v1/chat/completions", "application/json", "", `{"model":"gpt-4o-audio","max_tokens":1,"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"format":"mp3","data":"` + strings.Repeat("QUJD", 200000) + `"}}]}]}`},
	{"web search", "/v1/responses", "application/json", "", `{"model":"gpt-4o","max_output_tokens":1,"tools":[{"type":"web_search"}],"input":"hi"}`},
	{"claude web search", "/v1/messages", "application/json", "", `{"model":"claude-sonnet-4","max_tokens":1,"tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":[{"role":"user","content":"hi"}]}`},
	{"claude tool", "/v1/messages", "application/json", "", `{"model":"claude-sonnet-4","max_tokens":1,"tools":[{"name":"t","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"hi"}]}`},
	{"mcp", "/v1/responses", "application/json", "", `{"model":"gpt-4o","max_output_tokens":1,"tools":[{"type":"mcp","server_url":"https://x"}],"input":"hi"}`},
	{"previous", "/v1/responses", "application/json", "", `{"model":"gpt-4o","max_output_tokens":1,"previous_response_id":"resp_1","input":"hi"}`},
	{"encrypted reasoning", "/v1/responses", "application/json", "", `{"model":"o3","max_output_tokens":1,"input":[{"type":"reasoning","encrypted_content":"` + strings.Repeat("gAAA", 3000) + `"},{"type":"function_call_output","call_id":"c","output":"x"}]}`},
	{"cut json", "/v1/chat/completions", "application/json", "", `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("hi ", 4000)},
	{"no json", "/v1/chat/completions", "application/json", "", strings.Repeat("hi ", 4000)},
	{"array", "/v1/chat/completions", "application/json", "", `[` + strings.Repeat(`"hi",`, 4000) + `1]`},
	{"two objects", "/v1/chat/completions", "application/json", "", `{"model":"m","messages":[{"role":"user","content":"hi"}]}{"messages":[{"content":"` + strings.Repeat("hi ", 4000) + `"}]}`},
	{"utf16", "/v1/chat/completions", "application/json; charset=utf-16", "", "\xff\xfe" + strings.Repeat("{\x00", 4000)},
	{"bom", "/v1/chat/completions", "application/json", "", "\xef\xbb\xbf" + `{"model":"m","messages":[{"role":"user","content":"hi"}]}`},
	{"gzip junk", "/v1/chat/completions", "application/json", "gzip", strings.Repeat("junk", 4000)},
	{"zstd junk", "/v1/chat/completions", "application/json", "zstd", strings.Repeat("junk", 4000)},
	{"aws-chunked", "/v1/chat/completions", "application/json", "aws-chunked", strings.Repeat("junk", 4000)},
	{"multipart", "/v1/audio/transcriptions", "multipart/form-data; boundary=x", "", "--x\r\n\r\n" + strings.Repeat("a", 1<<20)},
	{"multipart image edit", "/v1/images/edits", "multipart/form-data; boundary=x", "", "--x\r\n\r\n" + strings.Repeat("a", 1<<20)},
	{"audio body", "/v1/chat/completions", "audio/wav", "", strings.Repeat("a", 1<<20)},
	{"protobuf", "/v1/chat/completions", "application/x-protobuf", "", strings.Repeat("a", 1<<20)},
	{"rerank", "/v1/rerank", "application/json", "", `{"model":"r","query":"q","documents":["a","b"]}`},
	{"speech", "/v1/audio/speech", "application/json", "", `{"model":"tts-1","input":"hi","voice":"x"}`},
	{"image gen", "/v1/images/generations", "application/json", "", `{"model":"gpt-image-1","prompt":"hi","n":10}`},
	{"unknown kind", "/some/where", "application/json", "", `{"model":"m","question":"hi"}`},
	{"unknown with b64", "/some/where", "application/json", "", `{"model":"m","blob":"data:image/png;base64,` + strings.Repeat("QUJD", 20000) + `"}`},
	{"dup max", "/v1/chat/completions", "application/json", "", `{"model":"m","max_tokens":100000,"max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`},
	{"max 0", "/v1/chat/completions", "application/json", "", `{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"hi"}]}`},
	{"max -1", "/v1/chat/completions", "application/json", "", `{"model":"m","max_tokens":-1,"messages":[{"role":"user","content":"hi"}]}`},
	{"max null", "/v1/chat/completions", "application/json", "", `{"model":"m","max_tokens":null,"messages":[{"role":"user","content":"hi"}]}`},
	{"num_predict -1", "/api/chat", "application/json", "", `{"model":"m","options":{"num_predict":-1,"num_ctx":131072},"messages":[{"role":"user","content":"hi"}]}`},
}

// levels are Options with limits at one level each.
func levels(limits ...limit.Limit) map[string]transport.Options {
	return map[string]transport.Options{
		"account": {Limits: limits},
		"model":   {Scopes: transport.Scopes{Models: []transport.ModelOptions{{Names: []string{"*"}, Limits: limits}}}},
		"shared":  {Scopes: transport.Scopes{Models: []transport.ModelOptions{{Names: []string{"*"}, Limits: limits, Shared: true}}}},
		"tenant":  ofTenant(func(o *transport.TenantOptions) { o.Limits = limits }),
	}
}

// ofTenant are Options with one tenant, who pays 1 for a token of input and 5 for one of
// output.
func ofTenant(set func(*transport.TenantOptions)) transport.Options {
	return transport.Options{Scopes: transport.Scopes{
		Tenant: func(*http.Request) string { return "t" },
		Tenants: func(string) transport.TenantOptions {
			o := transport.TenantOptions{Prices: []budget.ModelPrice{{Model: "*", Input: 1_000_000, Output: 5_000_000}}}
			set(&o)
			return o
		},
	}}
}

// narrow are Options that admit the words of a short prompt and next to nothing more.
func narrow() map[string]transport.Options {
	per := func(u limit.Unit, n int64, window time.Duration, burst int64) limit.Limit {
		return limit.Limit{Unit: u, Rate: limit.Rate{N: n, Window: window}, Burst: burst}
	}
	three := []limit.Limit{per(limit.Tokens, 60, time.Minute, 0), per(limit.Input, 50, time.Hour, 0), per(limit.Output, 2, time.Minute, 0)}
	all := map[string]transport.Options{
		"TPD":          {TPD: 60},
		"burst":        {TPM: 3600, Burst: time.Second},
		"DayTokens":    ofTenant(func(o *transport.TenantOptions) { o.DayTokens = 60 }),
		"MonthTokens":  ofTenant(func(o *transport.TenantOptions) { o.MonthTokens = 60 }),
		"DayMoney":     ofTenant(func(o *transport.TenantOptions) { o.DayMoney = 60 }),
		"RollingMoney": ofTenant(func(o *transport.TenantOptions) { o.MonthMoney, o.Rolling = 60, true }),
		"allowances": ofTenant(func(o *transport.TenantOptions) {
			o.DayMoney, o.DayTokens, o.MonthMoney, o.MonthTokens, o.TPM = 70, 60, 65, 66, 60
		}),
	}
	every := ofTenant(func(o *transport.TenantOptions) { o.DayMoney, o.Limits = 70, three })
	every.TPM, every.OutputTPM = 70, 3
	every.Scopes.Models = []transport.ModelOptions{{Names: []string{"*"}, TPM: 65, OutputTPM: 4}}
	all["every level"] = every
	for name, limits := range map[string][]limit.Limit{
		"tokens":        {per(limit.Tokens, 60, time.Minute, 0)},
		"tokens, burst": {per(limit.Tokens, 60_000, time.Minute, 60)},
		"input":         {per(limit.Input, 50, time.Minute, 0)},
		"output":        {per(limit.Output, 1, time.Minute, 0)},
		"output, burst": {per(limit.Output, 100_000, time.Hour, 1)},
		"three":         three,
		"requests":      {per(limit.Requests, 1, time.Minute, 0)},
	} {
		for level, o := range levels(limits...) {
			all[name+" of the "+level] = o
		}
	}
	return all
}

// A guess is no reason to refuse a call: at any level, in any unit, under the charge rule
// of any provider.
func TestNoGuessIsTooLargeAtAnyLevel(t *testing.T) {
	for name, o := range narrow() {
		rules := []string{""}
		if name == "every level" || name == "tokens of the account" {
			rules = append(rules, profile.Names()...)
		}
		for _, rule := range rules {
			o.Provider, _ = profile.ByName(rule)
			for _, g := range guesses {
				synctest.Test(t, func(t *testing.T) {
					req := call(t, "POST", g.path, g.typed, g.body)
					if g.coding != "" {
						req.Header.Set("Content-Encoding", g.coding)
					}
					if cost, err := priced(t, o, req); err != nil {
						t.Errorf("%s, %s, rule of %q: %v, %v", g.name, name, rule, cost, err)
					}
				})
			}
		}
	}
}

// An allowance that is used up is no matter of MaxWait or of the provider: the error names
// the field of the tenant.
func TestTheErrorNamesTheAllowance(t *testing.T) {
	for field, set := range map[string]func(*transport.TenantOptions){
		"DayTokens":   func(o *transport.TenantOptions) { o.DayTokens = 60 },
		"DayMoney":    func(o *transport.TenantOptions) { o.DayMoney = 60 },
		"MonthTokens": func(o *transport.TenantOptions) { o.MonthTokens = 60 },
		"MonthMoney":  func(o *transport.TenantOptions) { o.MonthMoney, o.Rolling = 60, true },
	} {
		synctest.Test(t, func(t *testing.T) {
			o := ofTenant(set)
			o.Base = script("bare")
			rt := gate(t, o)
			_, _, err := finish(rt.RoundTrip(ask(t, t.Context(), chat)))
			if !errors.Is(err, limit.ErrTooLarge) || !strings.HasSuffix(err.Error(), "; lower max_tokens, or raise "+field+" of the tenant") {
				t.Errorf("%s: %v", field, err)
			}
			const most = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
			for range 30 {
				if _, _, err = finish(rt.RoundTrip(ask(t, t.Context(), most))); err != nil {
					break
				}
			}
			if err == nil || !strings.HasSuffix(err.Error(), "or raise "+field+" of the tenant") || strings.Contains(err.Error(), "MaxWait") {
				t.Errorf("%s: %v", field, err)
			}
		})
	}
}

// What the request states is too large at any level. The error names its parts and the
// part to lower.
func TestWhatIsStatedIsTooLargeAtAnyLevel(t *testing.T) {
	const capped = `{"model":"m","max_tokens":16384,"messages":[{"role":"user","content":"hi"}]}`
	long := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("word ", 2000) + `"}]}`
	for name, o := range narrow() {
		if strings.HasPrefix(name, "requests") {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			_, err := priced(t, o, ask(t, t.Context(), capped))
			switch {
			case strings.HasPrefix(name, "input"):
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case !errors.Is(err, limit.ErrTooLarge) || !strings.Contains(err.Error(), "lower max_tokens"):
				t.Errorf("%s: %v", name, err)
			case strings.HasPrefix(name, "tokens") && !strings.Contains(err.Error(), "cost 16392 (8 prompt + 16384 max_tokens), capacity 60"):
				t.Errorf("%s: %v", name, err)
			}
			_, err = priced(t, o, ask(t, t.Context(), long))
			if output := strings.HasPrefix(name, "output"); output && err != nil || !output && (!errors.Is(err, limit.ErrTooLarge) || !strings.Contains(err.Error(), "send a smaller request")) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// Counting, uploads and management cost a request behind any gateway, with any prefix,
// version and suffix.
func TestNoModelRunsBehindAGateway(t *testing.T) {
	for _, p := range []struct{ method, path string }{
		{"POST", "/v1/messages/count_tokens?beta=true"}, {"POST", "/anthropic/v1/messages/count_tokens"}, {"POST", "/proxy/x/v1/messages/count_tokens/"},
		{"POST", "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/count-tokens"}, {"POST", "/v1beta/models/g:countTokens"}, {"POST", "/v1beta1/projects/p/locations/l/publishers/google/models/g:countTokens"},
		{"POST", "/v1beta/tunedModels/g:countTokens"}, {"POST", "/tokenize"}, {"POST", "/v1/tokenize"}, {"POST", "/detokenize"}, {"POST", "/v1/tokenize-text"},
		{"POST", "/v1/threads/t/messages"}, {"POST", "/v1/threads"}, {"POST", "/v1/uploads/u/parts"}, {"POST", "/v1/uploads"}, {"POST", "/v1/uploads/u/complete"},
		{"POST", "/v1/files"}, {"POST", "/upload/v1beta/files"}, {"POST", "/v1/batches"}, {"POST", "/v1/messages/batches"}, {"POST", "/v1/vector_stores"}, {"POST", "/v1/vector_stores/v/files"},
		{"POST", "/v1/fine_tuning/jobs"}, {"POST", "/v1/assistants"}, {"POST", "/v1/responses/r/cancel"}, {"DELETE", "/v1/responses/r"}, {"GET", "/v1/models"}, {"POST", "/openai/files?api-version=1"}, {"POST", "/openai/v1/batches"},
		{"POST", "/v1/conversations/c/items"}, {"POST", "/v1beta/cachedContents"}, {"POST", "/v1beta/models/g:batchGenerateContent"}, {"OPTIONS", "/v1/chat/completions"}, {"HEAD", "/v1/models"},
		{"POST", "/v1/responses/input_tokens"}, {"POST", "/v1/realtime/client_secrets"}, {"POST", "/v1/realtime/sessions"},
		{"POST", "/v1/token/count"}, {"POST", "/llm/count_tokens"}, {"POST", "/api/llm/v2/count-tokens/"}, {"POST", "/chat_tokenize"}, {"POST", "/v1/segment"},
		{"POST", "/v1/completions/render"}, {"POST", "/v1/chat/completions/render"}, {"POST", "/spend/calculate"}, {"POST", "/utils/transform_request"}, {"POST", "/utils/token_counter"},
		{"POST", "/v1/realtime/calls/c/accept"}, {"POST", "/v1/chatkit/sessions"}, {"POST", "/api/push"}, {"POST", "/api/copy"}, {"POST", "/api/blobs/sha256:abc"},
		{"POST", "/api/v1/models/load"}, {"POST", "/models/unload"}, {"POST", "/v1/fine-tunes/estimate-price"}, {"POST", "/v1/fine_tuning/models/m/archive"},
		{"POST", "/v1/projects/p/locations/l/publishers/google/models/veo:fetchPredictOperation"}, {"POST", "/v1/projects/p/locations/l:retrieveContexts"},
		{"POST", "/model-invocation-job"}, {"POST", "/provisioned-model-throughput"}, {"POST", "/create-foundation-model-agreement"},
		{"PUT", "/_inference/completion/x"}, {"PATCH", "/v1/agents/a"}, {"PATCH", "/v1beta/cachedContents/c"}, {"PUT", "/openai/deployments/d"}, {"PATCH", "/some/where"},
	} {
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}],"contents":[{"parts":[{"text":"x"}]}],"input":"a","content":"x"}`, strings.Repeat("word ", 3000))
		cost, err := priced(t, transport.Options{TPM: 100}, call(t, p.method, p.path, "application/json", body))
		if err != nil || cost.Input+cost.Output != 0 || cost.Requests != 1 {
			t.Errorf("%s %s: %v, %v", p.method, p.path, cost, err)
		}
	}
}

// The next call leaves at the instant that the last answer states, in any unit, field
// and place. Numbers that cannot be meant hold nobody for long.
func TestWhenTheNextCallLeaves(t *testing.T) {
	unix := func(d time.Duration) string { return fmt.Sprint(time.Now().Add(d).Unix()) }
	for _, c := range []struct {
		name        string
		r           func() reply
		least, most time.Duration
	}{
		{"rfc850 past", func() reply {
			return reply{503, map[string]string{"Retry-After": "Friday, 31-Dec-99 23:59:59 GMT"}, ""}
		}, 0, time.Second},
		{"@ instant", func() reply { return reply{503, map[string]string{"Retry-After": "@" + unix(30*time.Second)}, ""} }, 29 * time.Second, 31 * time.Second},
		{"iso", func() reply { return reply{429, map[string]string{"Retry-After": "PT30S"}, ""} }, 30 * time.Second, 35 * time.Second},
		{"1500ms", func() reply { return reply{429, map[string]string{"Retry-After-Ms": "1500ms"}, ""} }, 1500 * time.Millisecond, 3 * time.Second},
		{"timeremaining", func() reply { return reply{429, map[string]string{"X-Ratelimit-Timeremaining": "7200"}, ""} }, 2 * time.Hour, 2*time.Hour + time.Minute},
		{"529 longest", func() reply { return reply{529, map[string]string{"Retry-After": "3, 9"}, ""} }, 9 * time.Second, 10 * time.Second},
		{"403 rate", func() reply {
			return reply{403, map[string]string{"Retry-After": "12"}, `{"error":{"message":"rate limit"}}`}
		}, 12 * time.Second, 14 * time.Second},
		{"400 throttle with wait", func() reply {
			return reply{400, map[string]string{"Retry-After": "12", "X-Amzn-Errortype": "ThrottlingException"}, `{"message":"x"}`}
		}, 12 * time.Second, 14 * time.Second},
		{"400 plain with wait", func() reply {
			return reply{400, map[string]string{"Retry-After": "12"}, `{"error":{"type":"invalid_request_error","message":"x"}}`}
		}, 0, time.Second},
		{"body ns", func() reply {
			return reply{429, nil, fmt.Sprintf(`{"error":{"message":"x","reset_at":%d}}`, time.Now().Add(40*time.Second).UnixNano())}
		}, 39 * time.Second, 45 * time.Second},
		{"remaining requests -2^31", func() reply {
			return reply{200, map[string]string{"X-Ratelimit-Limit-Requests": "600", "X-Ratelimit-Remaining-Requests": "-2147483648"}, `{}`}
		}, 0, 3 * time.Minute},
		{"anthropic input -2^40", func() reply {
			return reply{200, map[string]string{"Anthropic-Ratelimit-Input-Tokens-Limit": "200000", "Anthropic-Ratelimit-Input-Tokens-Remaining": "-1099511627776"}, `{}`}
		}, 0, 3 * time.Minute},
		{"usage strings", func() reply {
			return reply{200, nil, `{"usage":{"input_tokens":"9007199254740991","output_tokens":3}}`}
		}, 0, 3 * time.Minute},
		{"gemini usage", func() reply {
			return reply{200, nil, `{"usageMetadata":{"promptTokenCount":4294967295,"candidatesTokenCount":9}}`}
		}, 0, 3 * time.Minute},
		{"stream usage", func() reply {
			return reply{200, map[string]string{"Content-Type": "text/event-stream"}, "data: {\"usage\":{\"prompt_tokens\":9007199254740991,\"completion_tokens\":1}}\n\n"}
		}, 0, 3 * time.Minute},
		{"bedrock header", func() reply {
			return reply{200, map[string]string{"X-Amzn-Bedrock-Input-Token-Count": "9007199254740991"}, `{}`}
		}, 0, 3 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			gap, _ := next(t, transport.Options{RPM: 6000, TPM: 600000}, c.r(), chat)
			if gap < c.least || gap > c.most {
				t.Errorf("%s: %v, want %v to %v", c.name, gap, c.least, c.most)
			}
		})
	}
}
