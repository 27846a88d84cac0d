package transport_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/time/rate"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// stub answers at once with a small JSON body, as net/http would.
func stub(r *http.Request) (*http.Response, error) {
	discard(r)
	return &http.Response{
		Status: "200 OK", StatusCode: 200, Header: jsonHeader,
		Body: io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer)), Request: r,
	}, nil
}

// empty answers at once with no body.
func empty(r *http.Request) (*http.Response, error) {
	discard(r)
	return &http.Response{Status: "200 OK", StatusCode: 200, Header: jsonHeader, Body: http.NoBody, Request: r}, nil
}

func discard(r *http.Request) {
	io.Copy(io.Discard, r.Body)
	r.Body.Close()
}

var jsonHeader = http.Header{"Content-Type": {"application/json"}}

const answer = `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,` +
	`"message":{"role":"assistant","content":"Hello there."},"finish_reason":"stop"}],` +
	`"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`

// waits is what people write first: two limiters of x/time/rate in front.
type waits struct {
	base             http.RoundTripper
	requests, tokens *rate.Limiter
}

func (w waits) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.requests.WaitN(r.Context(), 1); err != nil {
		return nil, err
	}
	if err := w.tokens.WaitN(r.Context(), 500); err != nil {
		return nil, err
	}
	return w.base.RoundTrip(r)
}

// layers are tripmeter and its neighbours around one base. No limit binds.
func layers(b *testing.B, base http.RoundTripper) []struct {
	name string
	rt   http.RoundTripper
} {
	rh := retryablehttp.NewClient()
	rh.Logger = nil
	rh.HTTPClient = &http.Client{Transport: base}
	only, err := retry.New(base, retry.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return []struct {
		name string
		rt   http.RoundTripper
	}{
		{"bare", base},
		{"tripmeter", gate(b, transport.Options{Base: base, RPM: 1e12, TPM: 1e12})},
		{"retry-alone", only},
		{"x-time-rate-WaitN-x2", waits{base, rate.NewLimiter(1e12, 1e12), rate.NewLimiter(1e12, 1e12)}},
		{"go-retryablehttp", &retryablehttp.RoundTripper{Client: rh}},
	}
}

// What a layer adds to a round trip over a base that answers at once: its row
// less the row "bare". The call is read to its end and closed.
func BenchmarkRoundTrip(b *testing.B) {
	bodies := []struct{ name, contentType, body string }{
		{"upload-2kB", "application/octet-stream", strings.Repeat("x", 2<<10)}, // nothing to estimate
		{"chat-2kB", "application/json", chat2k},
	}
	bases := []struct {
		name string
		rt   rttest.Func
	}{{"empty-answer", empty}, {"json-answer", stub}}
	for _, body := range bodies {
		for _, base := range bases {
			for _, l := range layers(b, base.rt) {
				b.Run(body.name+"/"+base.name+"/"+l.name, func(b *testing.B) {
					buf := make([]byte, 4<<10)
					b.ReportAllocs()
					for b.Loop() {
						req, _ := http.NewRequestWithContext(context.Background(), "POST", "https://api.example.com/v1/chat/completions", strings.NewReader(body.body))
						req.Header.Set("Content-Type", body.contentType)
						resp, err := l.rt.RoundTrip(req)
						if err != nil {
							b.Fatal(err)
						}
						for err == nil {
							_, err = resp.Body.Read(buf)
						}
						resp.Body.Close()
					}
				})
			}
		}
	}
}

var chat2k = `{"model":"gpt-4o","max_tokens":400,"messages":[{"role":"system","content":"` +
	strings.Repeat("You answer in short and plain sentences. ", 20) + `"},{"role":"user","content":"` +
	strings.Repeat("Tell me about token buckets, at some length. ", 24) + `"}]}`
