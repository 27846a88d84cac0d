package transport_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
