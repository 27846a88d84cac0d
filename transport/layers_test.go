package transport_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// The order of layers says what is charged. Limits over retries (which is what a
// Transport is) charge each attempt; so do retries over limits, which stand in
// line again for each; and tracing may stand anywhere.
// Report: hashicorp/go-retryablehttp#37, hashicorp/go-retryablehttp#84
func TestLayersInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracing := func(n *int, base http.RoundTripper) http.RoundTripper {
			return rttest.Func(func(r *http.Request) (*http.Response, error) { *n++; return base.RoundTrip(r) })
		}
		retries := func(base http.RoundTripper) http.RoundTripper {
			rt, err := retry.New(base, retry.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return rt
		}
		const words = "503 429 200"
		for name, stack := range map[string]func(n *int, w *wire) (*transport.Transport, http.RoundTripper){
			"limiter over tracing over base": func(n *int, w *wire) (*transport.Transport, http.RoundTripper) {
				rt := gate(t, transport.Options{Base: tracing(n, w), Limits: slow(100, 1e6)})
				return rt, rt
			},
			"retries over limiter over tracing": func(n *int, w *wire) (*transport.Transport, http.RoundTripper) {
				rt := gate(t, transport.Options{Base: tracing(n, w), Limits: slow(100, 1e6), Attempts: 1})
				return rt, retries(rt)
			},
			"limiter of one attempt over retries over tracing": func(n *int, w *wire) (*transport.Transport, http.RoundTripper) {
				rt := gate(t, transport.Options{Base: retries(tracing(n, w)), Limits: slow(100, 1e6), Attempts: 1})
				return rt, rt
			},
		} {
			var n int
			rt, top := stack(&n, script(words))
			if status, _, err := finish(top.RoundTrip(ask(t, t.Context(), letter))); status != 200 || err != nil || n != 3 {
				t.Errorf("%s: %d %v after %d attempts", name, status, err, n)
			}
			want := int64(3)
			if strings.HasPrefix(name, "limiter of one") {
				want = 1 // what retries below the meter is not seen, which is why ours is above
			}
			if got := spent(rt).Requests; got != want {
				t.Errorf("%s: %d requests charged, want %d", name, got, want)
			}
		}
	})
}

// Each tenant has a bucket: one that has used its own up does not hold another.
func TestATransportForEachTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := script("bare")
		busy, idle := gate(t, transport.Options{Base: w, RPM: 60}), gate(t, transport.Options{Base: w, RPM: 60})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { finish(busy.RoundTrip(ask(t, ctx, letter))) })
		}
		synctest.Wait()
		start := time.Now()
		if status, _, err := finish(idle.RoundTrip(ask(t, t.Context(), letter))); status != 200 || err != nil || time.Since(start) != 0 {
			t.Errorf("%d %v after %v", status, err, time.Since(start))
		}
		cancel()
		wg.Wait()
	})
}

// Several processes: split, each takes its share of the limit.
func TestALimitSplitBetweenProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{Limits: providertest.Limits{RPM: 600}, Capacity: time.Second})
		var wg sync.WaitGroup
		for range 3 {
			rt := gate(t, transport.Options{Base: p.RoundTripper(), RPM: 200})
			for range 40 {
				wg.Go(func() { finish(rt.RoundTrip(ask(t, t.Context(), letter))) })
			}
		}
		wg.Wait()
		if s := p.Stats(); s.Refused != 0 || s.Completed != 120 {
			t.Errorf("%+v", s)
		}
	})
}

// Several processes: a gateway, which is the same Transport inside a
// ReverseProxy. A local refusal is an error for its ErrorHandler to tell.
func TestAGateway(t *testing.T) {
	p := box(t, providertest.Options{})
	upstream := httptest.NewServer(p)
	defer upstream.Close()
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	rt := gate(t, transport.Options{Base: base, RPM: 2, MaxWait: time.Millisecond, Burst: time.Minute})
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: rt,
		ErrorLog:  log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, limit.ErrWaitTooLong) {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	gateway := httptest.NewServer(proxy)
	defer gateway.Close()
	for i, want := range []int{200, 200, 429} {
		resp, err := http.Post(gateway.URL+"/v1/chat/completions", "application/json", strings.NewReader(letter))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("call %d through the gateway: %d, want %d", i+1, resp.StatusCode, want)
		}
	}
	if s := p.Stats(); s.Requests != 2 {
		t.Errorf("the provider saw %d", s.Requests)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// Transports that share a budget share its credit and its pauses. One that comes
// after refusals takes neither the pause nor the cut rate for the user's limit.
func TestTransportsShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := budget.New(budget.Options{Limits: []limit.Limit{{Name: tokenLimit, Unit: limit.Tokens, Rate: limit.PerMinute(60_000)}}})
		if err != nil {
			t.Fatal(err)
		}
		for session := range 6 {
			rt := gate(t, transport.Options{Base: script("429;Retry-After=5 200"), Scopes: transport.Scopes{Budget: b}, Attempts: 2})
			if rt.Budget() != b {
				t.Fatal("another budget")
			}
			other := gate(t, transport.Options{Base: script("200"), Scopes: transport.Scopes{Budget: b}})
			var both sync.WaitGroup
			both.Go(func() { finish(rt.RoundTrip(ask(t, t.Context(), letter))) })
			synctest.Wait()
			start := time.Now()
			both.Go(func() {
				finish(other.RoundTrip(ask(t, t.Context(), letter)))
				if d := time.Since(start); d < 5*time.Second {
					t.Errorf("session %d: the other left after %v", session, d)
				}
			})
			both.Wait()
			time.Sleep(70 * time.Second)
		}
		if n := state(t, gate(t, transport.Options{Base: script("200"), Scopes: transport.Scopes{Budget: b}}), tokenLimit).Rate.N; n >= 60_000 {
			t.Errorf("%d a minute after six unexplained refusals: nothing was cut", n)
		}
		time.Sleep(time.Hour)
		rt := gate(t, transport.Options{Base: script("200"), Scopes: transport.Scopes{Budget: b}})
		finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		if n := state(t, rt, tokenLimit).Rate.N; n != 60_000 {
			t.Errorf("%d a minute an hour later; the user configured 60,000", n)
		}
	})
}
