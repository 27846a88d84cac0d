package transport_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/transport"
)

// leave are the instants at which n calls leave that come at once to the host. Answers
// take a second, and carry h.
func leave(t *testing.T, o transport.Options, host string, n int, h http.Header) []time.Duration {
	t.Helper()
	var mu sync.Mutex
	var at []time.Duration
	start := time.Now()
	o.Base = rttest.Func(func(r *http.Request) (*http.Response, error) {
		rttest.Drain(r)
		mu.Lock()
		at = append(at, time.Since(start))
		mu.Unlock()
		time.Sleep(time.Second)
		all := http.Header{"Content-Type": {"application/json"}}
		for k, v := range h {
			all[k] = v
		}
		return &http.Response{StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: all,
			Body: io.NopCloser(strings.NewReader(`{}`)), ContentLength: 2, Request: r}, nil
	})
	rt := gate(t, o)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			r := ask(t, t.Context(), letter)
			r.URL.Host = host
			if status, _, err := finish(rt.RoundTrip(r)); status != 200 || err != nil {
				t.Error(status, err)
			}
		})
	}
	wg.Wait()
	slices.Sort(at)
	return at
}

// The bursts of requests and of tokens are set apart, each in its own limit. Each holds
// alone: a letter is 112 to 120 tokens.
func TestBurstsOfRequestsAndTokensApart(t *testing.T) {
	for name, c := range map[string]struct {
		requests, tokens int64 // burst; 0 is unset
		options          time.Duration
		atOnce           int
	}{
		"requests bind":                          {5, 6000, 0, 5},
		"tokens bind":                            {60, 3 * 120, 0, 3},
		"each has its own beside Options.Burst":  {4, 0, 30 * time.Second, 4},
		"Options.Burst is for those without one": {0, 5 * 120, 30 * time.Second, 5},
		"tokens have one, requests the default":  {0, 6000, 0, 1},
		"requests have one, tokens the default":  {60, 0, 0, 8}, // 10 s of 6,000 a minute
	} {
		synctest.Test(t, func(t *testing.T) {
			o := transport.Options{Burst: c.options, Limits: []limit.Limit{
				{Unit: limit.Requests, Rate: limit.PerMinute(60), Burst: c.requests},
				{Unit: limit.Tokens, Rate: limit.PerMinute(6000), Burst: c.tokens},
			}}
			at := leave(t, o, "api.example.com", 10, nil)
			n := 0
			for _, d := range at {
				if d == 0 {
					n++
				}
			}
			if n != c.atOnce {
				t.Errorf("%s: %d calls left at once, want %d: %v", name, n, c.atOnce, at)
			}
		})
	}
}

// A low limit on requests is no pace where more is known: where recorded traffic shows a
// bucket of a minute, all of it goes at once; where answers show what is left, that goes
// after the first of them.
func TestFewRequestsGoAtOnceWhereTheyMay(t *testing.T) {
	for _, c := range []struct {
		name, host string
		rpm        int64
		n          int
		header     http.Header
		want       time.Duration // until the last has left
	}{
		{"60 by the profile", "api.openai.com", 60, 60, nil, 0},
		{"3 by the profile", "api.openai.com", 3, 3, nil, 0},
		{"60 by the first answer", "api.example.com", 60, 40, left("60", "59"), time.Second},
		{"3 by the first answer", "api.example.com", 3, 3, left("3", "2"), time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			at := leave(t, transport.Options{RPM: c.rpm}, c.host, c.n, c.header)
			if last := at[len(at)-1]; last != c.want {
				t.Errorf("%s: the last of %d left after %v, want %v: %v", c.name, c.n, last, c.want, at)
			}
		})
	}
}

func left(limit, remaining string) http.Header {
	return http.Header{"X-Ratelimit-Limit-Requests": {limit}, "X-Ratelimit-Remaining-Requests": {remaining}}
}

// What a learned limit begins with is set apart by the profile.
func TestBurstsOfLearnedLimitsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := profile.Unknown()
		p.RequestBurst, p.TokenBurst = 20*time.Second, 30*time.Second
		at := leave(t, transport.Options{RPM: 60, TPM: 120 * 30, Provider: p}, "api.example.com", 20, nil)
		n := 0
		for _, d := range at {
			if d == 0 {
				n++
			}
		}
		if n != 15 { // 30 s of tokens; 20 requests would be there
			t.Errorf("%d calls left at once, want 15", n)
		}
	})
}

// Where nothing is known, each burst that was not refused doubles what may go at once.
func TestRequestBurstsGrowWithoutHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		start := time.Now()
		rt := gate(t, transport.Options{RPM: 60, Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			mu.Lock()
			at = append(at, time.Since(start))
			mu.Unlock()
			return response(r, 200, "application/json", `{}`), nil
		})})
		for i, want := range []int{1, 2, 4, 8, 16} {
			begin := time.Since(start)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { finish(rt.RoundTrip(ask(t, t.Context(), letter))) })
			}
			wg.Wait()
			n := 0
			for _, d := range at {
				if d == begin {
					n++
				}
			}
			if n != want {
				t.Errorf("crowd %d: %d left at once, want %d", i, n, want)
			}
			time.Sleep(2 * time.Minute)
		}
	})
}
