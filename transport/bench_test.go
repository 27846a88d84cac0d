package transport_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

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

// served is a base that talks to a server over loopback, and its address.
func served(b *testing.B, two bool, h http.HandlerFunc) (*http.Transport, string) {
	b.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = two
	if two {
		s.StartTLS()
	} else {
		s.Start()
	}
	base := s.Client().Transport.(*http.Transport)
	base.MaxIdleConnsPerHost = 64
	b.Cleanup(func() { base.CloseIdleConnections(); s.Close() })
	return base, s.URL
}

// With and without, over loopback. The two take turns within one measurement, in
// slices of a few calls, so that other work of the machine falls on both. The
// ratio of the throughputs is reported.
func ratio(b *testing.B, base http.RoundTripper, clients, slice int, call func(http.RoundTripper)) {
	b.Helper()
	rts := [2]http.RoundTripper{base, gate(b, transport.Options{Base: base, RPM: 1e12, TPM: 1e12})}
	var took [2]time.Duration
	run := func(which, calls int) time.Duration {
		start := time.Now()
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				for range calls {
					call(rts[which])
				}
			})
		}
		wg.Wait()
		return time.Since(start)
	}
	run(0, 1)
	run(1, 1)
	turn := 0
	for b.Loop() {
		a, z := turn%2, 1-turn%2 // who is first takes turns, too
		turn++
		took[a] += run(a, slice)
		took[z] += run(z, slice)
	}
	b.ReportMetric(float64(took[0])/float64(took[1]), "ratio")
	b.ReportMetric(float64(took[0].Nanoseconds())/float64(b.N*clients*slice), "bare-ns/call")
	b.ReportMetric(float64(took[1].Nanoseconds())/float64(b.N*clients*slice), "ours-ns/call")
}

// 64 clients over loopback, with a server that answers at once, where only the
// work of both ends is measured, and with one that takes 20 ms. Target: a ratio
// of 0.97.
func BenchmarkLoopback(b *testing.B) {
	for _, two := range []bool{false, true} {
		for _, takes := range []time.Duration{0, 20 * time.Millisecond} {
			b.Run(map[bool]string{false: "HTTP1", true: "HTTP2"}[two]+"/server-takes-"+takes.String(), func(b *testing.B) {
				base, url := served(b, two, func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					if takes > 0 {
						<-time.After(takes)
					}
					w.Header().Set("Content-Type", "application/json")
					io.WriteString(w, answer)
				})
				ratio(b, base, 64, 10, func(rt http.RoundTripper) { get(b, rt, url) })
			})
		}
	}
}

// One client reads a stream: 10,000 small events, then 200 MB. Target: 0.95.
func BenchmarkStream(b *testing.B) {
	small := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-4o","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}` + "\n\n"
	for _, c := range []struct {
		name   string
		event  string
		events int
	}{
		{"10000-small-events", small, 10_000},
		{"200MB", `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("some words ", 2900) + `"}}]}` + "\n\n", 200 << 20 / 32000},
	} {
		b.Run(c.name, func(b *testing.B) {
			base, url := served(b, false, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				flush := w.(http.Flusher).Flush
				for range c.events {
					io.WriteString(w, c.event)
					flush()
				}
			})
			ratio(b, base, 1, 1, func(rt http.RoundTripper) { get(b, rt, url) })
		})
	}
}

// get makes one call and reads its answer in pieces of 32 kB.
func get(b *testing.B, rt http.RoundTripper, url string) {
	req, _ := http.NewRequest("POST", url+"/v1/chat/completions", strings.NewReader(chat2k))
	req.Header.Set("Content-Type", "application/json")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		b.Error(err)
		return
	}
	for buf := make([]byte, 32<<10); err == nil; {
		_, err = resp.Body.Read(buf)
	}
	if err != io.EOF {
		b.Error(err)
	}
	resp.Body.Close()
}

// BenchmarkAdded reports the time that a layer adds to a round trip, as a share
// of the time that go-retryablehttp alone adds. The base answers at once. The
// three take turns, so that the share holds on a busy machine too.
func BenchmarkAdded(b *testing.B) {
	for _, body := range []struct{ name, contentType, body string }{
		{"upload-2kB", "application/octet-stream", strings.Repeat("x", 2<<10)},
		{"chat-2kB", "application/json", chat2k},
	} {
		b.Run(body.name, func(b *testing.B) {
			ls := layers(b, rttest.Func(empty))
			took := map[string]time.Duration{}
			for b.Loop() {
				for _, l := range ls {
					start := time.Now()
					for range 100 {
						req, _ := http.NewRequest("POST", "https://api.example.com/v1/chat/completions", strings.NewReader(body.body))
						req.Header.Set("Content-Type", body.contentType)
						resp, err := l.rt.RoundTrip(req)
						if err != nil {
							b.Fatal(err)
						}
						resp.Body.Close()
					}
					took[l.name] += time.Since(start)
				}
			}
			per := func(name string) float64 { return float64(took[name]-took["bare"]) / float64(b.N*100) }
			for _, l := range ls[1:] {
				b.ReportMetric(per(l.name), l.name+"-ns")
			}
			b.ReportMetric(per("tripmeter")/per("go-retryablehttp"), "share")
		})
	}
}

// The bar for what a call without an estimate adds, the retry layer included.
func TestAddedAllocations(t *testing.T) {
	buf := make([]byte, 4<<10)
	count := func(rt http.RoundTripper) float64 {
		req, _ := http.NewRequest("POST", "https://api.example.com/v1/chat/completions", strings.NewReader(letter))
		req.Header.Set("Content-Type", "application/octet-stream")
		req.Header.Set("Authorization", "Bearer k")
		return testing.AllocsPerRun(500, func() {
			resp, err := rt.RoundTrip(req)
			for err == nil {
				_, err = resp.Body.Read(buf)
			}
			resp.Body.Close()
		})
	}
	most := 6.0
	if detector {
		most += 2 // two pools
	}
	for name, base := range map[string]rttest.Func{"no body": empty, "an answer that is read": stub} {
		bare := count(base)
		ours := count(gate(t, transport.Options{Base: base, RPM: 1e12, TPM: 1e12}))
		if ours-bare > most {
			t.Errorf("%s: %v allocations, %v of them added", name, ours, ours-bare)
		}
	}
}

// A snapshot of ten thousand tenants and of a million, each with a limit that it has
// used.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rt := gate(b, transport.Options{
				Base: rttest.Func(empty), TPM: 1e12,
				Scopes: transport.Scopes{Tenants: func(string) transport.TenantOptions { return transport.TenantOptions{RPD: 10} }}, // not full again before the end
			})
			req, _ := http.NewRequest("GET", "https://api.example.com/v1/models", http.NoBody)
			for i := range n {
				finish(rt.RoundTrip(transport.ForTenant(req, fmt.Sprint(i))))
			}
			b.ReportAllocs()
			for b.Loop() {
				if s := rt.Snapshot(); len(s.Scopes) < n {
					b.Fatal(len(s.Scopes))
				}
			}
		})
	}
}
