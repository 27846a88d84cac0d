package headers

import (
	"net/http"
	"testing"
	"time"
)

// openAIAnswer is a whole header as api.openai.com sends it, with and without
// its rate limit fields.
func openAIAnswer(limits bool) http.Header {
	h := http.Header{}
	for _, kv := range [][2]string{
		{"Date", "Wed, 19 Aug 2026 14:36:58 GMT"},
		{"Content-Type", "application/json"},
		{"Transfer-Encoding", "chunked"},
		{"Connection", "keep-alive"},
		{"Access-Control-Expose-Headers", "X-Request-ID"},
		{"Openai-Organization", "org"},
		{"Openai-Processing-Ms", "512"},
		{"Openai-Project", "proj"},
		{"Openai-Version", "2020-10-01"},
		{"X-Request-Id", "req_0000"},
		{"X-Openai-Proxy-Wasm", "v0.1"},
		{"X-Envoy-Upstream-Service-Time", "520"},
		{"Cf-Cache-Status", "DYNAMIC"},
		{"Set-Cookie", "__cf_bm=x; path=/"},
		{"Strict-Transport-Security", "max-age=31536000"},
		{"X-Content-Type-Options", "nosniff"},
		{"Server", "cloudflare"},
		{"Cf-Ray", "0-AMS"},
		{"Alt-Svc", `h3=":443"; ma=86400`},
	} {
		h.Set(kv[0], kv[1])
	}
	if limits {
		for _, kv := range [][2]string{
			{"X-Ratelimit-Limit-Requests", "10000"},
			{"X-Ratelimit-Limit-Tokens", "30000000"},
			{"X-Ratelimit-Remaining-Requests", "9999"},
			{"X-Ratelimit-Remaining-Tokens", "29999965"},
			{"X-Ratelimit-Reset-Requests", "6ms"},
			{"X-Ratelimit-Reset-Tokens", "2m1.016s"},
		} {
			h.Set(kv[0], kv[1])
		}
	}
	return h
}

func anthropicAnswer() http.Header {
	h := openAIAnswer(false)
	for _, d := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		h.Set("Anthropic-Ratelimit-"+d+"-Limit", "10000000")
		h.Set("Anthropic-Ratelimit-"+d+"-Remaining", "9997000")
		h.Set("Anthropic-Ratelimit-"+d+"-Reset", "2026-08-19T14:37:16Z")
	}
	return h
}

func ietfAnswer() http.Header {
	h := openAIAnswer(false)
	h.Set("RateLimit-Policy", `"burst";q=10;w=10, "daily";q=5000;w=86400`)
	h.Set("RateLimit", `"burst";r=8;t=1, "daily";r=4998;t=69076`)
	return h
}

var sink Info

func BenchmarkParse(b *testing.B) {
	now := time.Date(2026, 8, 19, 14, 36, 58, 0, time.UTC)
	for _, c := range []struct {
		name string
		h    http.Header
	}{
		{"none", openAIAnswer(false)},
		{"openai", openAIAnswer(true)},
		{"anthropic", anthropicAnswer()},
		{"ietf", ietfAnswer()},
		{"refusal", http.Header{"Retry-After": {"20"}, "Content-Type": {"application/json"}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sink = Parse(c.h, Options{Status: 200, Now: now})
			}
		})
	}
}

// What costs nothing must go on costing nothing.
func TestAllocations(t *testing.T) {
	now := time.Date(2026, 8, 19, 14, 36, 58, 0, time.UTC)
	for _, c := range []struct {
		name string
		h    http.Header
	}{
		{"none", openAIAnswer(false)},
		{"openai", openAIAnswer(true)},
		{"anthropic", anthropicAnswer()},
	} {
		if n := testing.AllocsPerRun(200, func() { sink = Parse(c.h, Options{Status: 200, Now: now}) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}
