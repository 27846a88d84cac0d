//go:build unix

package debug

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/slogmeter"
	"github.com/tripmeter/tripmeter/transport"
)

type stub struct{}

func (stub) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body.Close()
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}`)),
	}, nil
}

func call(b *testing.B, rt http.RoundTripper) {
	req, err := http.NewRequest("POST", "http://box/v1/chat/completions", strings.NewReader(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		b.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

func with(b *testing.B, t transport.Trace) *transport.Transport {
	rt, err := transport.New(transport.Options{Base: stub{}, RPM: 1_000_000_000, TPM: 1_000_000_000_000, Trace: t})
	if err != nil {
		b.Fatal(err)
	}
	return rt
}

// What it costs to look: whole calls through a Transport, with nothing, with each
// thing that looks, and with all of them. Subtract the first from the others.
func BenchmarkSeeing(b *testing.B) {
	m := meter.New(meter.Options{Tenant: func(r *http.Request) string { return r.Host }})
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil)) // at info
	loud := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, c := range []struct {
		name  string
		trace transport.Trace
	}{
		{"nothing", transport.Trace{}},
		{"slog at info", slogmeter.Trace(quiet, slogmeter.Options{})},
		{"slog at debug", slogmeter.Trace(loud, slogmeter.Options{})},
		{"metrics", m.Trace("a")},
		{"metrics and slog at info", meter.Join(m.Trace("b"), slogmeter.Trace(quiet, slogmeter.Options{}))},
	} {
		b.Run(c.name, func(b *testing.B) {
			rt := with(b, c.trace)
			b.ReportAllocs()
			for b.Loop() {
				call(b, rt)
			}
		})
	}
}

var unset transport.Trace // a variable, so that the compiler does not know it is empty

// What hooks cost that nobody set: eleven questions whether they are there.
func BenchmarkUnusedHooks(b *testing.B) {
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		t := &unset
		for _, is := range [...]bool{
			t.Who != nil, t.Queued != nil, t.Granted != nil, t.Refused != nil, t.Answered != nil, t.Lowered != nil,
			t.Paused != nil, t.LimitChanged != nil, t.LawChanged != nil, t.Settled != nil, t.Doubted != nil,
		} {
			if is {
				n++
			}
		}
	}
	if n != 0 {
		b.Fatal("a hook is set")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/11, "ns/hook")
}

// What an open page costs: processor time a second under 10,000 calls a second,
// with and without two pages that update themselves. Run it with -benchtime 1x.
func BenchmarkOpenPage(b *testing.B) {
	const rate, span = 10_000, 6 * time.Second
	for _, pages := range []int{0, 1, 0, 1} {
		b.Run(fmt.Sprintf("%d pages", pages), func(b *testing.B) {
			m := meter.New(meter.Options{})
			rt := with(b, m.Trace("a"))
			m.Watch("a", rt)
			server := httptest.NewServer(Handler(m, Options{}))
			defer server.Close()
			ctx, cancel := context.WithCancel(b.Context())
			var all sync.WaitGroup
			events := make(chan int, pages)
			for range pages {
				all.Go(func() {
					n := 0
					defer func() { events <- n }()
					req, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/events", nil)
					if err != nil {
						b.Error(err)
						return
					}
					resp, err := http.DefaultClient.Do(req)
					if err != nil {
						b.Error(err)
						return
					}
					defer resp.Body.Close()
					for s := bufio.NewScanner(resp.Body); s.Scan(); {
						n++
					}
				})
			}
			for b.Loop() {
				before := cpu(b)
				begin := time.Now()
				for n := 0; time.Since(begin) < span; {
					for due := int(time.Since(begin).Seconds() * rate); n < due; n++ {
						call(b, rt)
					}
					time.Sleep(time.Millisecond)
				}
				b.ReportMetric((cpu(b)-before).Seconds()*1000/span.Seconds(), "cpu-ms/s")
			}
			cancel()
			all.Wait()
			for range pages {
				if <-events < 3 {
					b.Error("the page was not updated")
				}
			}
		})
	}
}

// cpu is the processor time of this process so far.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
