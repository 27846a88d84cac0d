package transport_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/transport"
)

// A day is a provider that refuses all models that spend names until open, with one
// answer, and serves everything else.
type day struct {
	mu    sync.Mutex
	start time.Time
	open  time.Duration
	spent func(model string) bool
	reply reply
	at    map[string][]time.Duration // of the refused
	ok    map[string][]time.Duration
}

func (d *day) RoundTrip(r *http.Request) (*http.Response, error) {
	body := string(rttest.Drain(r))
	_, model, _ := strings.Cut(body, `"model":"`)
	model, _, _ = strings.Cut(model, `"`)
	d.mu.Lock()
	defer d.mu.Unlock()
	since := time.Since(d.start)
	if d.spent(model) && since < d.open {
		d.at[model] = append(d.at[model], since)
		resp := response(r, d.reply.status, "application/json", d.reply.body)
		for name, value := range d.reply.header {
			resp.Header.Set(name, value)
		}
		return resp, nil
	}
	d.ok[model] = append(d.ok[model], since)
	return response(r, 200, "application/json", `{"usage":{"prompt_tokens":20,"completion_tokens":40}}`), nil
}

// An allowance of a day that is used up holds the models that have used it up, until
// the reset that the answer names. Without one they wait for the end of the day, as
// the provider counts it, while single calls find out whether it is there again.
func TestAnAllowanceOfADay(t *testing.T) {
	midnight := time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC) // tests begin at that of the day before
	free := func(header string) string {
		return `{"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0"` + header + `},"provider_name":null}}}`
	}
	gemini := func(quota string) string {
		return fmt.Sprintf(`{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":%q,"quotaValue":"20"}]},{"retryDelay":"36s"}]}}`, quota)
	}
	isFree := func(m string) bool { return strings.HasSuffix(m, ":free") }
	is := func(name string) func(string) bool { return func(m string) bool { return m == name } }
	all := func(string) bool { return true }
	const hour = time.Hour
	for _, c := range []struct {
		name, provider string
		reply          reply
		spent          func(string) bool
		first          string // the model that is refused first
		held, goes     string // a model that waits, and one that does not; "" is none
		open           time.Duration
		named          bool // the answer names the reset: nothing leaves before
	}{
		{"OpenRouter names the reset", "openrouter", reply{429, nil, free(fmt.Sprintf(`,"X-RateLimit-Reset":"%d"`, midnight.UnixMilli()))}, isFree, "a:free", "b:free", "c", 24 * hour, true},
		{"OpenRouter names none", "openrouter", reply{429, nil, free("")}, isFree, "a:free", "b:free", "c", 24 * hour, false},
		{"OpenRouter names none, and is back sooner", "openrouter", reply{429, nil, free("")}, isFree, "a:free", "b:free", "c", 3 * hour, false},
		{"OpenRouter in a success", "openrouter", reply{200, nil, free(fmt.Sprintf(`,"X-RateLimit-Reset":"%d"`, midnight.UnixMilli()))}, isFree, "a:free", "b:free", "c", 24 * hour, true},
		{"Gemini, one model", "gemini", reply{429, nil, gemini("GenerateRequestsPerDayPerProjectPerModel-FreeTier")}, is("a"), "a", "a", "b", 8 * hour, false},
		{"Gemini, the project", "gemini", reply{429, nil, gemini("GenerateRequestsPerDayPerProject")}, all, "a", "b", "", 8 * hour, false},
		{"Gemini calls a minute a day", "gemini", reply{429, nil, gemini("GenerateRequestsPerDayPerProjectPerModel-FreeTier")}, is("a"), "a", "a", "b", time.Minute, false},
		{"Cloudflare", "unknown", reply{429, nil, `{"success":false,"errors":[{"message":"AiError: you have used up your daily free allocation of 10,000 neurons","code":3036}]}`}, all, "a", "b", "", 24 * hour, false},
		{"Cerebras, with a wait", "cerebras", reply{429, map[string]string{"Retry-After": "36000"}, `{"message":"Tokens per day limit exceeded - too many tokens processed.","type":"too_many_tokens_error","code":"token_quota_exceeded"}`}, is("a"), "a", "a", "b", 10 * hour, true},
		{"Bedrock on 400", "bedrock", reply{400, map[string]string{"X-Amzn-Errortype": "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/"}, `{"message":"Too many tokens per day, please wait before trying again."}`}, is("a"), "a", "a", "b", 24 * hour, false},
		{"Moonshot, the account", "unknown", reply{429, nil, `{"error":{"type":"rate_limit_reached_error","message":"Your account request reached organization TPD rate limit, current: 1505241, limit: 1500000"}}`}, all, "a", "b", "", 24 * hour, false},
		{"Qianfan in a success", "unknown", reply{200, nil, `{"error_code":17,"error_msg":"Open api daily request limit reached"}`}, is("a"), "a", "a", "b", 24 * hour, false},
		{"in a stream", "unknown", reply{200, map[string]string{"Content-Type": "text/event-stream"}, "data: {\"error\":{\"message\":\"You have reached your daily limit of requests\",\"code\":429}}\n\n"}, is("a"), "a", "a", "b", 24 * hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, ok := profile.ByName(c.provider)
				if !ok {
					t.Fatal("no such profile")
				}
				d := &day{start: time.Now(), open: c.open, spent: c.spent, reply: c.reply, at: map[string][]time.Duration{}, ok: map[string][]time.Duration{}}
				rt := gate(t, transport.Options{Base: d, Provider: p})
				call := func(model string) {
					finish(rt.RoundTrip(ask(t, t.Context(), strings.Replace(chat, "gpt-4o", model, 1))))
				}
				call(c.first)
				if n := len(d.at[c.first]); n != 1 {
					t.Errorf("the refused call was sent %d times", n)
				}
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						for len(d.served(c.held)) == 0 {
							call(c.held)
						}
					})
				}
				if c.goes != "" {
					call(c.goes)
				}
				wg.Wait()
				if c.goes != "" && d.ok[c.goes][0] > time.Second {
					t.Errorf("another model was held for %v", d.ok[c.goes][0])
				}
				back, probes := d.ok[c.held][0], -1 // the first is none
				for _, at := range d.at {
					probes += len(at)
				}
				latest := c.open + time.Second
				if !c.named && c.open%(8*time.Hour) != 0 {
					latest = c.open + time.Hour // the probe after
				}
				if back < c.open || back > latest {
					t.Errorf("it was served after %v; the allowance is there again after %v", back, c.open)
				}
				if most := 4 + int(c.open/time.Hour); c.named && probes > 0 || probes > most {
					t.Errorf("%d further calls were refused, at %v", probes, d.at)
				}
			})
		})
	}
}

func (d *day) served(model string) []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ok[model]
}
