package retry

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// A 2 kB POST over a base that answers at once. What a layer costs is the row less
// the row "base".
func BenchmarkFirstAttemptSucceeds(b *testing.B) {
	body := strings.Repeat("x", 2<<10)
	base := rttest.Func(func(r *http.Request) (*http.Response, error) {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
	})
	for _, c := range []struct {
		name string
		rt   http.RoundTripper
	}{
		{"base", base},
		{"retry", mustNew(b, base, Options{})},
		{"go-retryablehttp", stock(base, 3, time.Second)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequest("POST", "https://api.example.com/v1/chat/completions", strings.NewReader(body))
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Authorization", "Bearer k")
				resp, err := c.rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
	}
}

// Two refusals, then an answer; waits of a nanosecond.
func BenchmarkTwoRetries(b *testing.B) {
	body := strings.Repeat("x", 2<<10)
	for _, c := range []struct {
		name string
		make maker
	}{{"retry", ours}, {"go-retryablehttp", stock}} {
		b.Run(c.name, func(b *testing.B) {
			n := 0
			rt := c.make(rttest.Func(func(r *http.Request) (*http.Response, error) {
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
				n++
				if n%3 != 0 {
					return rttest.Response(r, 429, nil, tooFast), nil
				}
				return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
			}), 3, 1)
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequest("POST", "https://api.example.com/v1/chat/completions", strings.NewReader(body))
				resp, err := rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
	}
}

// The fast path must stay one: it is on every call.
func TestFirstAttemptAllocations(t *testing.T) {
	base := rttest.Func(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
	})
	rt := mustNew(t, base, Options{})
	req := post(t.Context(), t, chat)
	req.Header.Set("Authorization", "Bearer k")
	count := func(rt http.RoundTripper) float64 {
		return testing.AllocsPerRun(200, func() {
			if _, err := rt.RoundTrip(req); err != nil {
				t.Fatal(err)
			}
		})
	}
	if added := count(rt) - count(base); added > 5 {
		t.Errorf("a call that needs no retry costs %v allocations", added)
	}
}
