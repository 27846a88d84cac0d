package transport_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/transport"
)

// A hostile server gives one odd answer and is healthy from then on.

// ceiling is Options.Scopes.MaxPause, unset.
const ceiling = 24 * time.Hour

// refill is what a call may wait beside a pause: limits of a minute or less start
// from nothing after it, and may be in debt by a window before.
const refill = 3 * time.Minute

// A hostility is one odd answer, and what is known of it by its making.
type hostility struct {
	status int
	header http.Header
	body   string

	// least and most bound when another call may go: a wait that can be believed is
	// kept to the letter, and a number that is no wait holds nobody.
	least, most time.Duration
}

// after sends a call to a server that answers h, and then calls every so often until
// one leaves. It returns when that was, from the odd answer on.
func (h *hostility) after(t testing.TB, o transport.Options) (next time.Duration, rt *transport.Transport, b *books) {
	t.Helper()
	var odd time.Time
	var left time.Duration = -1
	o.Base = rttest.Func(func(r *http.Request) (*http.Response, error) {
		rttest.Drain(r)
		if odd.IsZero() {
			odd = time.Now()
			resp := rttest.Response(r, h.status, h.header.Clone(), h.body)
			if resp.Header.Get("Content-Type") == "" {
				resp.Header.Set("Content-Type", "application/json")
			}
			return resp, nil
		}
		if left < 0 {
			left = time.Since(odd)
		}
		return response(r, 200, "application/json", `{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":14,"completion_tokens":2,"total_tokens":16}}`), nil
	})
	b = &books{}
	o.Trace, o.Attempts = b.trace(), 1
	rt = gate(t, o)
	finish(rt.RoundTrip(ask(t, t.Context(), chat)))
	finish(rt.RoundTrip(ask(t, t.Context(), chat)))
	return left, rt, b
}

// check holds a hostility to the promises.
func (h *hostility) check(t testing.TB, o transport.Options) {
	t.Helper()
	next, rt, b := h.after(t, o)
	if next < h.least || next > h.most+refill {
		t.Errorf("%d %v %s\nthe next call left after %v; want %v to %v", h.status, h.header, h.body, next, h.least, h.most)
	}
	if s := whole(rt); s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("in flight %d, waiting %d", s.InFlight, s.Waiting)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.granted != len(b.settled) {
		t.Errorf("%d granted, %d settled", b.granted, len(b.settled))
	}
	if served := rt.Snapshot().Served; served != b.total {
		t.Errorf("the ledger keeps %v, the settlements say %v", served, b.total)
	}
}

// One odd answer, then a healthy server.
func TestOneOddAnswerStopsNobodyForLong(t *testing.T) {
	header := func(kv ...string) func() (int, http.Header, string) {
		return func() (int, http.Header, string) {
			h := http.Header{}
			for i := 0; i+1 < len(kv); i += 2 {
				h.Set(kv[i], kv[i+1])
			}
			return 503, h, errorBodies["error"]
		}
	}
	instant := func(field string, unit time.Duration, in time.Duration) func() (int, http.Header, string) {
		return func() (int, http.Header, string) {
			return header(field, fmt.Sprint(time.Now().Add(in).UnixNano()/int64(unit)))()
		}
	}
	body := func(status int, text string) func() (int, http.Header, string) {
		return func() (int, http.Header, string) { return status, http.Header{}, text }
	}
	usage := func(in, out any) func() (int, http.Header, string) {
		return body(200, fmt.Sprintf(`{"object":"chat.completion","choices":[],"usage":{"prompt_tokens":%v,"completion_tokens":%v}}`, in, out))
	}
	limits := func(kv ...string) func() (int, http.Header, string) {
		return func() (int, http.Header, string) {
			_, h, _ := header(kv...)()
			return 200, h, `{"usage":{"prompt_tokens":14,"completion_tokens":2}}`
		}
	}
	for _, c := range []struct {
		name        string
		answer      func() (int, http.Header, string)
		least, most time.Duration
	}{
		{"seconds", header("Retry-After", "30"), 30 * time.Second, 30 * time.Second},
		{"an instant in milliseconds", instant("Retry-After", time.Millisecond, 30*time.Second), 29 * time.Second, 31 * time.Second},
		{"an instant in microseconds", instant("Retry-After", time.Microsecond, 30*time.Second), 29 * time.Second, 31 * time.Second},
		{"an instant in nanoseconds", instant("Retry-After", time.Nanosecond, 30*time.Second), 29 * time.Second, 31 * time.Second},
		{"an instant in seconds", instant("Retry-After", time.Second, 30*time.Second), 29 * time.Second, 31 * time.Second},
		{"a past instant", instant("Retry-After", time.Second, -2*time.Minute), 0, time.Second},
		{"a past instant in milliseconds", instant("Retry-After", time.Millisecond, -2*time.Hour), 0, time.Second},
		{"40 days ahead", instant("Retry-After", time.Second, 40*24*time.Hour), ceiling, ceiling},
		{"a year", header("Retry-After", "31536000"), ceiling, ceiling},
		{"a day is believed", header("Retry-After", "86400"), ceiling, ceiling},
		{"an hour less is believed", header("Retry-After", "82800"), 23 * time.Hour, 23 * time.Hour},
		{"the largest number", header("Retry-After", "9223372036854775807"), 0, ceiling},
		{"milliseconds that are an instant", instant("Retry-After-Ms", time.Millisecond, 2*time.Minute), 119 * time.Second, 121 * time.Second},
		{"milliseconds of Azure that are an instant", instant("X-Ms-Retry-After-Ms", time.Millisecond, 2*time.Minute), 119 * time.Second, 121 * time.Second},
		{"a sentence in a success", body(200, `{"error":{"message":"Rate limit reached. Please try again in 3650 days.","type":"rate_limit_error"}}`), 0, ceiling},
		{"a sentence in a refusal", body(429, `{"error":{"message":"Rate limit reached. Please try again in 3650 days.","type":"rate_limit_error"}}`), 0, ceiling},
		{"a member", body(429, `{"error":{"message":"slow down","type":"rate_limit_error","retry_after":999999999}}`), 0, ceiling},
		{"a prompt of 2^53-1", usage(int64(1)<<53-1, 3), 0, time.Second},
		{"an answer of 2^32-1", usage(14, int64(1)<<32-1), 0, time.Second},
		{"a prompt of 1e300", usage("1e300", 3), 0, time.Second},
		{"an answer of -2^63", usage(14, math.MinInt64), 0, time.Second},
		{"ten times the cap", usage(14, 40_000), 0, time.Second},
		{"a prompt of more than its bytes", usage(150_000, 3), 0, time.Second},
		{"a balance of -2^31", limits("X-Ratelimit-Limit-Tokens", "200000", "X-Ratelimit-Remaining-Tokens", "-2147483648"), 0, time.Second},
		{"a balance of -2^63", limits("X-Ratelimit-Limit-Requests", "600", "X-Ratelimit-Remaining-Requests", "-9223372036854775808"), 0, time.Second},
		{"a month of requests used up", limits("Ratelimit-Policy", `"m";q=2;w=2592000;qu="requests"`, "Ratelimit", `"m";r=0;t=2592000`), 0, ceiling},
		{"a month of tokens used up", limits("Ratelimit-Policy", `"m";q=1000;w=2592000;qu="tokens"`, "Ratelimit", `"m";r=0;t=2592000`), 0, ceiling},
		{"an hour of requests used up", limits("Ratelimit-Policy", `"h";q=60;w=3600;qu="requests"`, "Ratelimit", `"h";r=0;t=60`), 0, time.Hour},
		{"a month used up", limits("Ratelimit-Policy", `"m";q=1000;w=2592000`, "Ratelimit", `"m";r=0;t=2592000`), 0, ceiling},
		{"a day used up", limits("X-Ratelimit-Limit-Requests-Day", "50", "X-Ratelimit-Remaining-Requests-Day", "0"), 0, ceiling},
		{"one token a minute", limits("X-Ratelimit-Limit-Tokens", "1", "X-Ratelimit-Remaining-Tokens", "0"), 0, 2 * time.Minute},
		{"one request a minute", limits("X-Ratelimit-Limit-Requests", "1", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "60s"), 0, 2 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, o := range []transport.Options{{RPM: 600, TPM: 200_000}, {}} {
				synctest.Test(t, func(t *testing.T) {
					h := &hostility{least: c.least, most: c.most}
					h.status, h.header, h.body = c.answer()
					h.check(t, o)
				})
			}
		})
	}
}

var (
	hostile     = flag.Int("hostile", 3000, "answers of the hostile server")
	hostileFrom = flag.Int("hostilefrom", 0, "number of its first answer")
)

// TestHostileServer makes answers of pieces that real ones have, with any number in
// the place of theirs.
//
//	go test ./transport -run TestHostileServer -hostile 1000000
func TestHostileServer(t *testing.T) {
	if testing.Short() {
		*hostile = min(*hostile, 300)
	}
	for i := *hostileFrom; i < *hostileFrom+*hostile; i++ {
		synctest.Test(t, func(t *testing.T) {
			h := hostilityOf(rand.New(rand.NewPCG(7, uint64(i))))
			o := transport.Options{RPM: 600, TPM: 200_000}
			if i%3 == 0 {
				o = transport.Options{}
			}
			h.check(t, o)
		})
		if t.Failed() {
			t.Fatalf("answer %d", i)
		}
	}
}

// FuzzHostileServer is TestHostileServer with fields and bodies that the fuzzer makes.
func FuzzHostileServer(f *testing.F) {
	f.Add(uint64(1), 503, "Retry-After", "1767225660000", `{}`, true)
	f.Add(uint64(2), 429, "X-Ratelimit-Remaining-Tokens", "-2147483648", `{"error":{"message":"try again in 3650 days"}}`, false)
	f.Add(uint64(3), 200, "Retry-After-Ms", "9e99", `{"usage":{"prompt_tokens":9007199254740991,"completion_tokens":4294967295}}`, true)
	f.Add(uint64(4), 200, "Ratelimit-Policy", `"d";q=50;w=86400`, `data: {"error":{"code":"1305"}}`, false)
	f.Fuzz(func(t *testing.T, seed uint64, status int, name, value, body string, configured bool) {
		if status < 200 || status > 999 {
			status = 200
		}
		synctest.Test(t, func(t *testing.T) {
			h := hostilityOf(rand.New(rand.NewPCG(seed, 1)))
			h.least, h.most, h.status, h.body = 0, ceiling, status, body
			if name != "" && !strings.ContainsAny(name+value, "\r\n\x00") {
				h.header.Add(name, value)
			}
			var o transport.Options
			if configured {
				o = transport.Options{RPM: 600, TPM: 200_000}
			}
			h.check(t, o)
		})
	})
}

// hostilityOf makes an answer.
func hostilityOf(r *rand.Rand) *hostility {
	now := time.Now()
	number := func() string {
		switch n := r.Int64(); r.IntN(12) {
		case 0:
			return "0"
		case 1:
			return fmt.Sprint(n % 100)
		case 2:
			return fmt.Sprint(n % 100_000)
		case 3:
			return fmt.Sprint(-(n % (1 << (1 + r.IntN(62)))))
		case 4:
			return fmt.Sprint(n % (1 << (1 + r.IntN(62))))
		case 5:
			return fmt.Sprint(int64(1)<<r.IntN(63) - 1)
		case 6:
			return fmt.Sprint(uint64(math.MaxUint64))
		case 7:
			return fmt.Sprintf("%de%d", n%10, r.IntN(400))
		case 8:
			return fmt.Sprintf("%d.%d", n%1000, n%1000)
		case 9: // an instant, near or far
			units := [...]int64{1, 1e3, 1e6, 1e9}
			return fmt.Sprint(now.Add(time.Duration(n%int64(96*time.Hour))-48*time.Hour).UnixNano() / units[r.IntN(4)])
		case 10:
			return fmt.Sprintf("%d%s", n%1_000_000, [...]string{"s", "ms", "m", "h", "d", " days"}[r.IntN(6)])
		}
		return now.Add(time.Duration(r.Int64N(int64(400 * 24 * time.Hour)))).UTC().Format([...]string{http.TimeFormat, time.RFC3339, time.RFC850, time.ANSIC}[r.IntN(4)])
	}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	h := &hostility{status: [...]int{200, 200, 400, 403, 408, 429, 429, 498, 500, 503, 529, 600}[r.IntN(12)], header: http.Header{}, most: ceiling}
	fields := []string{
		"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms", "Date", "X-Should-Retry",
		"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests",
		"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens",
		"Anthropic-Ratelimit-Input-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset",
		"X-Ratelimit-Limit-Requests-Day", "X-Ratelimit-Remaining-Requests-Day", "X-Ratelimit-Limit-Tokens-Minute",
		"X-Ratelimit-Timeremaining", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
		"X-Amzn-Bedrock-Input-Token-Count", "X-Amzn-Bedrock-Output-Token-Count",
	}
	for range r.IntN(6) {
		h.header.Add(fields[r.IntN(len(fields))], number())
	}
	if r.IntN(3) == 0 {
		h.header.Set("Ratelimit-Policy", fmt.Sprintf(`"a";q=%s;w=%s%s`, number(), number(), pick("", `;qu="requests"`, `;qu="tokens"`)))
		h.header.Set("Ratelimit", fmt.Sprintf(`"a";r=%s;t=%s`, number(), number()))
	}
	switch r.IntN(9) {
	case 0:
		h.body = fmt.Sprintf(`{"error":{"message":"Rate limit reached for gpt-4o on tokens per min (TPM): Limit %s, Used %s, Requested %s. Please try again in %s.","type":"tokens","code":%q}}`,
			number(), number(), number(), number()+pick("", "s", "ms", " days", "m"), pick("rate_limit_exceeded", "insufficient_quota", "1305", "1308", "server_error"))
	case 1:
		h.body = fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%s,"completion_tokens":%s,"total_tokens":%s}}`, number(), number(), number())
	case 2:
		h.body = fmt.Sprintf(`{"error":{"type":%q,"retry_after":%s,"resets_in_seconds":%s,"reset_at":%q}}`, pick("rate_limit_error", "overloaded_error", "usage_limit_reached"), number(), number(), number())
	case 3:
		h.header.Set("Content-Type", "text/event-stream")
		h.body = fmt.Sprintf("data: {\"usage\":{\"prompt_tokens\":%s,\"completion_tokens\":%s}}\n\ndata: {\"error\":{\"type\":%q,\"message\":\"try again in %s\"}}\n\n", number(), number(), pick("overloaded_error", "rate_limit_error", ""), number())
	case 4:
		h.body = fmt.Sprintf(`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"%ss"},{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":%q,"quotaValue":%q}]}]}}`,
			number(), pick("GenerateRequestsPerDayPerProjectPerModel", "GenerateRequestsPerDayPerProject", "GenerateContentInputTokensPerModelPerMinute"), number())
	case 5:
		h.body = fmt.Sprintf(`{"error":{"message":"Rate limit exceeded: %s","code":429,"metadata":{"headers":{"X-RateLimit-Limit":%q,"X-RateLimit-Remaining":%q,"X-RateLimit-Reset":%q},"provider_name":null}}}`,
			pick("free-models-per-day", "free-models-per-min", "daily quota, see the docs"), number(), number(), number())
	case 6:
		h.header.Set("X-Amzn-Errortype", pick("ThrottlingException", "ServiceQuotaExceededException", "x#ModelNotReadyException:y"))
		h.body = pick(`{"message":"Too many tokens per day, please wait before trying again."}`, `{"message":"Rate exceeded"}`, `{}`)
	case 7:
		h.body = fmt.Sprintf(`{"error":{"code":%q,"message":"Usage limit reached, %s. Your limit will reset at %s"}}`, pick("1308", "1310", "3036", "token_quota_reached"), pick("monthly quota", "100 calls per day", "x"), number())
	}
	// A wait that can be believed, named plainly and alone, is kept to the letter.
	if r.IntN(4) == 0 {
		d := time.Duration(1+r.Int64N(int64(ceiling/time.Second))) * time.Second
		h.status = [...]int{429, 503}[r.IntN(2)]
		h.header = http.Header{"Retry-After": {fmt.Sprint(int64(d / time.Second))}}
		h.body = pick("", `{}`, errorBodies["error"])
		h.least, h.most = d, d+time.Minute
	}
	return h
}
