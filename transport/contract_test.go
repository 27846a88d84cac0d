package transport_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// The suite holds over bases in memory and over net/http against real servers:
// HTTP/1.1, the same over TLS, and HTTP/2. A transport behaves as its base
// does, with retries or without, limited or not, watched or not.
func TestContract(t *testing.T) {
	watched := transport.Trace{
		Who:          func(*http.Request, string, limit.Class) {},
		Queued:       func(*http.Request, limit.Cost) {},
		Granted:      func(*http.Request, limit.Cost, time.Duration) {},
		Refused:      func(*http.Request, error) {},
		Answered:     func(transport.Attempt) {},
		Lowered:      func(*http.Request, string, int64) {},
		Paused:       func(*http.Request, limit.Pause) {},
		LimitChanged: func(_, _ limit.Limit) {},
		Settled:      func(transport.Settlement) {},
		Doubted:      func(_, _ string) {},
	}
	for _, c := range []struct {
		name string
		o    transport.Options
	}{
		{"alone", transport.Options{Attempts: 1}},
		{"with retry", transport.Options{}},
		{"with everything", transport.Options{
			RPM: 1e9, TPM: 1e12, RPD: 1e12, MaxInFlight: 1000, MaxQueue: 1000, MaxWait: time.Minute,
			Retry: retry.Options{MaxElapsed: time.Minute}, Trace: watched,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rttest.Run(t, func(base http.RoundTripper) http.RoundTripper {
				o := c.o
				o.Base = base
				return gate(t, o)
			})
		})
	}
}

// A chain of layers in any order is still a RoundTripper.
func TestContractOfAChain(t *testing.T) {
	t.Run("retry over transport", func(t *testing.T) {
		rttest.Run(t, func(base http.RoundTripper) http.RoundTripper {
			rt, err := retry.New(gate(t, transport.Options{Base: base, Attempts: 1}), retry.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return rt
		})
	})
	t.Run("transport over transport", func(t *testing.T) {
		rttest.Run(t, func(base http.RoundTripper) http.RoundTripper {
			return gate(t, transport.Options{Base: gate(t, transport.Options{Base: base})})
		})
	})
}

// The caller's request is unchanged after each ending, and while it is sent.
// Report: DataDog/dd-trace-go#1090, census-instrumentation/opencensus-go#892
// Report: aws/aws-sdk-go#684
func TestTheRequestIsNotAltered(t *testing.T) {
	for _, words := range []string{"200", "429 200", "500", "reset", "dial", "429;Retry-After=3600", "cut"} {
		w := script(words)
		base := rttest.Func(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("Authorization", "edited below")
			r.Header["Content-Type"][0] = "edited/below"
			return w.RoundTrip(r)
		})
		o := transport.Options{Base: base}
		o.Retry.MinBackoff, o.Retry.MaxBackoff = 1, 1
		rt := gate(t, o)
		req := ask(t, t.Context(), letter)
		req.Header.Set("Authorization", "Bearer k")
		header, url, before := req.Header.Clone(), *req.URL, *req
		stop, looked := make(chan struct{}), make(chan struct{})
		go func() { // a race, were it written to
			defer close(looked)
			for {
				select {
				case <-stop:
					return
				default:
					_ = req.Header.Get("Authorization") + req.URL.Path
				}
			}
		}()
		finish(rt.RoundTrip(req))
		close(stop)
		<-looked
		if !reflect.DeepEqual(req.Header, header) || *req.URL != url || req.Body != before.Body || req.ContentLength != before.ContentLength ||
			req.Context() != before.Context() || reflect.ValueOf(req.GetBody).Pointer() != reflect.ValueOf(before.GetBody).Pointer() {
			t.Errorf("%s: altered: %+v", words, req)
		}
	}
}

// Report: newrelic/go-agent#153, pace/bricks#183
// Report: hashicorp/go-retryablehttp#89, hashicorp/go-retryablehttp#94
func TestAFreshTransportUnderAHundredCalls(t *testing.T) {
	var n atomic.Int64
	base := rttest.Func(func(r *http.Request) (*http.Response, error) {
		rttest.Drain(r)
		if n.Add(1)%5 == 0 {
			return response(r, 429, "", ""), nil
		}
		resp := response(r, 200, "application/json", `{"usage":{"prompt_tokens":11,"completion_tokens":7}}`)
		resp.Header.Set("X-Ratelimit-Limit-Requests", "100000")
		resp.Header.Set("X-Ratelimit-Remaining-Requests", "99999")
		return resp, nil
	})
	b := new(books)
	o := transport.Options{Base: base, Limits: slow(1e6, 1e9), MaxInFlight: 20, Trace: b.trace(), FollowRule: true}
	o.Retry.MinBackoff, o.Retry.MaxBackoff = 1, 1
	rt := gate(t, o)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if _, _, err := finish(rt.RoundTrip(ask(t, context.Background(), letter))); err != nil {
				t.Error(err)
			}
			rt.Snapshot()
		})
	}
	wg.Wait()
	b.balanced(t, rt)
}

// closing counts how often its idle connections were closed.
type closing struct {
	http.RoundTripper
	n int
}

func (c *closing) CloseIdleConnections() { c.n++ }

// Report: open-telemetry/opentelemetry-go-contrib#3543
// Report: elastic/apm-agent-go#455, elastic/apm-agent-go#750
// Report: kubernetes/kubernetes#104844
func TestCloseIdleConnectionsReachesTheBase(t *testing.T) {
	base := &closing{RoundTripper: script("500")}
	o := transport.Options{Base: base}
	o.Retry.MinBackoff, o.Retry.MaxBackoff = 1, 1
	inner := gate(t, o)
	over, err := retry.New(gate(t, transport.Options{Base: inner, Attempts: 1}), retry.Options{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: over}
	resp, err := client.Do(ask(t, t.Context(), letter))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if base.n != 0 {
		t.Error("a failed call flushed the pool")
	}
	client.CloseIdleConnections()
	if base.n != 1 {
		t.Errorf("forwarded %d times", base.n)
	}
}

// Report: hashicorp/go-retryablehttp#214
func TestNoGoroutineIsLeft(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }))
	rt := gate(t, transport.Options{Base: s.Client().Transport, RPM: 1e9, TPM: 1e12})
	req := ask(t, context.Background(), letter)
	req.URL.Scheme, req.URL.Host = "http", s.Listener.Addr().String()
	if status, _, err := finish(rt.RoundTrip(req)); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	rt.CloseIdleConnections()
	s.Close()
	rttest.NoLeaks(t)
}
