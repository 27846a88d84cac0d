package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// What is asked of an LLM limiter in front of a provider, row by row.

// starts are the instants at which n calls at once reach the base.
func starts(t *testing.T, o transport.Options, n int, body string) []time.Duration {
	t.Helper()
	start := time.Now()
	var mu sync.Mutex
	var at []time.Duration
	o.Base = rttest.Func(func(r *http.Request) (*http.Response, error) {
		rttest.Drain(r)
		mu.Lock()
		at = append(at, time.Since(start))
		mu.Unlock()
		return response(r, 200, "application/json", `{}`), nil
	})
	rt := gate(t, o)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { finish(rt.RoundTrip(ask(t, t.Context(), body))) })
	}
	wg.Wait()
	return at
}

// Two buckets from RPM and TPM, one wait: the longer.
func TestAcceptance_TwoBucketsOneWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			rpm, tpm int64
			want     time.Duration // of the second call
		}{
			"requests bind":         {6, 1e9, 10 * time.Second},
			"tokens bind":           {600, 672, 0}, // computed below
			"neither":               {600, 1e9, 0}, // ten requests at once
			"requests alone":        {6, 0, 10 * time.Second},
			"none of them is there": {0, 0, 0},
		} {
			at := starts(t, transport.Options{RPM: c.rpm, TPM: c.tpm}, 2, letter)
			want := c.want
			if name == "tokens bind" {
				// 112 tokens each, 11.2 a second, room for 112: ten seconds to refill.
				if d := at[1] - at[0]; d < 9*time.Second || d > 11*time.Second {
					t.Errorf("%s: the second call left %v after the first", name, d)
				}
				continue
			}
			if d := at[1] - at[0]; d != want {
				t.Errorf("%s: the second call left %v after the first, want %v", name, d, want)
			}
		}
	})
}

// Waiting is a line: twenty callers get twenty staggered starts, not one herd;
// and the line is no slower than the limit itself.
func TestAcceptance_ALineAndNotAHerd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i, at := range starts(t, transport.Options{RPM: 60}, 20, letter) {
			if want := time.Duration(i) * time.Second; at != want {
				t.Errorf("start %d at %v, want %v", i, at, want)
			}
		}
	})
}

// The queue adds nothing to what the limit itself costs: each of 300 calls
// leaves at the earliest instant at which the provider would take it.
func TestAcceptance_NoSlowerThanTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{Limits: providertest.Limits{RPM: 600}, Capacity: time.Second, Dialect: providertest.NoHeaders})
		rt := gate(t, transport.Options{Base: p.RoundTripper(), RPM: 600})
		var wg sync.WaitGroup
		for range 300 {
			wg.Go(func() {
				if status, _, err := finish(rt.RoundTrip(ask(t, t.Context(), letter))); status != 200 || err != nil {
					t.Error(status, err)
				}
			})
		}
		wg.Wait()
		for i, e := range p.Ledger() {
			earliest := time.Duration(max(0, i-9)) * 100 * time.Millisecond // ten at once, then one each 100 ms
			if e.Since != earliest {
				t.Errorf("call %d came at %v, could have come at %v", i, e.Since, earliest)
			}
		}
		if s := p.Stats(); s.Refused != 0 || s.Completed != 300 {
			t.Errorf("%+v", s)
		}
	})
}

// Instants carry the monotonic reading, by which Go measures: a step of the wall
// clock changes nothing.
func TestAcceptance_MonotonicClock(t *testing.T) {
	rt := gate(t, transport.Options{Base: script("429;Retry-After=3600"), RPM: 60})
	finish(rt.RoundTrip(ask(t, t.Context(), letter)))
	if at := rt.Snapshot().PausedUntil; !strings.Contains(at.String(), " m=") {
		t.Errorf("paused until %v", at)
	}
}

// About four characters a token, at most 512 of output before anything is known;
// settled after, so that in the long run the charge is what was used.
func TestAcceptance_ReserveAndSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{Output: providertest.Uniform(1, 900), Seed: 3})
		var first limit.Cost
		b := new(books)
		tr := b.trace()
		tr.Queued = func(_ *http.Request, c limit.Cost) {
			if first == (limit.Cost{}) {
				first = c
			}
		}
		rt := gate(t, transport.Options{Base: p.RoundTripper(), Limits: slow(1e6, 1e9), Trace: tr})
		text := strings.Repeat("The limiter waits until there is credit for the whole request. ", 40)
		for range 300 {
			finish(rt.RoundTrip(ask(t, t.Context(), `{"model":"m","messages":[{"role":"user","content":"`+text+`"}]}`)))
		}
		if quarter := int64(len(text) / 4); first.Input < quarter*7/10 || first.Input > quarter*13/10 || first.Output != 512 {
			t.Errorf("the first call reserved %v for %d characters", first, len(text))
		}
		var in, out int64
		for _, e := range p.Ledger() {
			in += e.Prompt
			out += e.Produced
		}
		if got := spent(rt); got.Input != in || got.Output != out || got.Requests != 300 {
			t.Errorf("charged %v, used %d and %d", got, in, out)
		}
		b.balanced(t, rt)
	})
}

// The x-ratelimit family, the IETF family, or nothing; what cannot be read is
// ignored, and the call succeeds.
func TestAcceptance_Headers(t *testing.T) {
	for name, c := range map[string]struct {
		words string
		limit int64
	}{
		"x-ratelimit": {"200;X-Ratelimit-Limit-Tokens=1000;X-Ratelimit-Remaining-Tokens=900;X-Ratelimit-Reset-Tokens=6s", 1000},
		"IETF":        {`200;Ratelimit-Limit=100;Ratelimit-Remaining=50;Ratelimit-Reset=30`, 100},
		"nothing":     {"200", 0},
		"rubbish":     {"200;X-Ratelimit-Limit-Tokens=banana;X-Ratelimit-Remaining-Tokens=-;X-Ratelimit-Reset-Tokens=soon;Retry-After=never", 0},
	} {
		rt := gate(t, transport.Options{Base: script(c.words)})
		if status, _, err := finish(rt.RoundTrip(ask(t, t.Context(), letter))); status != 200 || err != nil {
			t.Errorf("%s: %d %v", name, status, err)
		}
		var learned int64
		for _, l := range rt.Snapshot().Limits {
			learned = l.Rate.N
		}
		if learned != c.limit {
			t.Errorf("%s: learned %d, want %d: %+v", name, learned, c.limit, rt.Snapshot().Limits)
		}
	}
}

// No header ever raises credit, nor the rate above what was configured.
func TestAcceptance_OnlyDownward(t *testing.T) {
	names := []string{
		"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens",
		"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests",
		"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "Retry-After", "X-Ratelimit-Tokens-Query-Cost",
	}
	values := []string{"0", "1", "59", "1000", "6000", "100000", "1000000000000", "99999999999999999999", "-1", "1.5", "6s", "1h", "0s", "1ms", "banana", "", "1e9"}
	r := rand.New(rand.NewPCG(1, 5))
	for range 2000 {
		synctest.Test(t, func(t *testing.T) {
			words := []string{"200", "429", "503", "400"}[r.IntN(4)]
			for range 1 + r.IntN(6) {
				words += ";" + names[r.IntN(len(names))] + "=" + values[r.IntN(len(values))]
			}
			w := script(words)
			w.usage = "null" // nothing is given back
			rt := gate(t, transport.Options{Base: w, RPM: 600, TPM: 60_000, Attempts: 1, Charge: "estimate"})
			before := rt.Snapshot()
			finish(rt.RoundTrip(ask(t, t.Context(), letter)))
			for i, l := range before.Limits {
				now := rt.Snapshot().Limits[i]
				if now.Credit-now.Debt > l.Credit-l.Debt || now.Rate.N > l.Rate.N || now.Capacity > l.Capacity {
					t.Errorf("%s: from %+v to %+v", words, l, now)
				}
			}
		})
	}
}

// Retry-After on a refusal is the one unconditional order: of a crowd, nobody
// leaves before it.
func TestAcceptance_RetryAfterIsUnconditional(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			wait := time.Duration(1+r.IntN(50)) * time.Second
			ok := r.IntN(20)
			w := script(strings.Repeat("bare ", ok) + fmt.Sprintf("429;Retry-After=%d bare", wait/time.Second))
			rt := gate(t, transport.Options{Base: w, RPM: 600, TPM: 60_000})
			var wg sync.WaitGroup
			for range 40 {
				wg.Go(func() {
					if status, _, err := finish(rt.RoundTrip(ask(t, t.Context(), letter))); status != 200 || err != nil {
						t.Error(status, err)
					}
				})
			}
			wg.Wait()
			refused := w.at[ok]
			for i, at := range w.at {
				if at.After(refused) && at.Before(refused.Add(wait)) {
					t.Errorf("attempt %d left %v after a refusal that said %v", i, at.Sub(refused), wait)
				}
			}
			if len(w.at) != 41 {
				t.Errorf("%d attempts for 40 calls and one refusal", len(w.at))
			}
		})
	}
}

// What is left is told with each answer, so that a shrinking headroom is seen.
func TestAcceptance_HeadroomIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{Limits: providertest.Limits{RPM: 60, TPM: 6000}})
		var left []int64
		rt := gate(t, transport.Options{Base: p.RoundTripper(), Trace: transport.Trace{
			Answered: func(a transport.Attempt) { left = append(left, a.Quota.Requests) },
		}})
		for range 5 {
			finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		}
		if len(left) != 5 || left[0] != 59 || left[4] >= left[0] {
			t.Errorf("left: %v", left)
		}
	})
}

// Each tenant has a bucket: one that has used its own up does not hold another.
func TestAcceptance_ATransportForEachTenant(t *testing.T) {
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
func TestAcceptance_Split(t *testing.T) {
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
func TestAcceptance_Gateway(t *testing.T) {
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
