package transport_test

import (
	"context"
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
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

const opens = `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`

// tardy answers each call after took, with header, and notes when it came.
type tardy struct {
	took   time.Duration
	header http.Header

	mu   sync.Mutex
	from time.Time
	at   []time.Duration
}

func (s *tardy) RoundTrip(r *http.Request) (*http.Response, error) {
	rttest.Drain(r)
	s.mu.Lock()
	s.at = append(s.at, time.Since(s.from))
	s.mu.Unlock()
	time.Sleep(s.took)
	resp := response(r, 200, "application/json", `{"usage":{"prompt_tokens":8,"completion_tokens":2}}`)
	for k, v := range s.header {
		resp.Header[k] = v
	}
	return resp, nil
}

// crowd sends n calls at once and returns when each was sent.
func (s *tardy) crowd(t *testing.T, ctx context.Context, o transport.Options, n int) []time.Duration {
	s.from, o.Base = time.Now(), s
	rt := gate(t, o)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, _, err := finish(rt.RoundTrip(call(t, "POST", "/v1/chat/completions", "application/json", opens).WithContext(ctx))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	slices.Sort(s.at)
	return s.at
}

// upTo is how many of the sorted instants are no later than d.
func upTo(at []time.Duration, d time.Duration) (n int) {
	for n < len(at) && at[n] <= d {
		n++
	}
	return n
}

// With no limit known one call goes. Each answer doubles the number, and time adds to it.
func TestTheFirstAnswerComesFirst(t *testing.T) {
	limits := http.Header{"X-Ratelimit-Limit-Requests": {"6000"}, "X-Ratelimit-Remaining-Requests": {"5000"}, "X-Ratelimit-Reset-Requests": {"10s"}}
	for _, c := range []struct {
		name  string
		o     transport.Options
		s     *tardy
		sent  []int // by so many seconds, less a millisecond
		count int
	}{
		{"slow answers: one more each 0.3 s up to 8, then twofold", transport.Options{}, &tardy{took: time.Minute}, []int{4, 7, 8, 8, 16, 16, 32, 32, 40}, 40},
		{"answers without a limit", transport.Options{}, &tardy{took: 500 * time.Millisecond}, []int{10, 40, 40}, 40},
		{"a limit ends it", transport.Options{}, &tardy{took: 500 * time.Millisecond, header: limits}, []int{40}, 40},
		{"a limit is configured", transport.Options{RPM: 60_000}, &tardy{took: time.Minute}, []int{40}, 40},
		{"the provider has none", transport.Options{Provider: profileNamed(t, "vllm")}, &tardy{took: time.Minute}, []int{40}, 40},
		{"nobody waits", transport.Options{}, &tardy{took: time.Minute}, []int{40}, 40},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if c.name == "nobody waits" {
				ctx = transport.FailFast(ctx)
			}
			at := c.s.crowd(t, ctx, c.o, c.count)
			for i, want := range c.sent {
				if got := upTo(at, time.Duration(i+1)*time.Second-time.Millisecond); got != want {
					t.Errorf("%s: %d were sent within %d s; want %d", c.name, got, i+1, want)
				}
			}
		})
	}
}

func profileNamed(t testing.TB, name string) profile.Profile {
	p, ok := profile.ByName(name)
	if !ok {
		t.Fatal("no profile ", name)
	}
	return p
}

// One call at a time waits for nothing, and a waiting one leaves with its context.
func TestOneCallAtATimeIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tardy{took: 10 * time.Second, from: time.Now()}
		rt := gate(t, transport.Options{Base: s})
		for i := range 5 {
			if _, _, err := finish(rt.RoundTrip(call(t, "POST", "/v1/chat/completions", "application/json", opens))); err != nil {
				t.Fatal(err)
			}
			if want := time.Duration(i) * 10 * time.Second; s.at[i] != want {
				t.Errorf("call %d left at %v; want %v", i, s.at[i], want)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &tardy{took: time.Minute, from: time.Now()}
		rt := gate(t, transport.Options{Base: s})
		go func() { finish(rt.RoundTrip(call(t, "POST", "/v1/chat/completions", "application/json", opens))) }()
		synctest.Wait()
		const before = 200 * time.Millisecond // a second call goes
		ctx, cancel := context.WithTimeout(t.Context(), before)
		defer cancel()
		_, _, err := finish(rt.RoundTrip(call(t, "POST", "/v1/chat/completions", "application/json", opens).WithContext(ctx)))
		if err == nil || time.Since(s.from) != before || len(s.at) != 1 {
			t.Errorf("%v after %v, %d sent", err, time.Since(s.from), len(s.at))
		}
		time.Sleep(2 * time.Minute)
		if n := rt.Snapshot(); n.InFlight != 0 || n.Waiting != 0 {
			t.Errorf("%+v is left", n)
		}
	})
}

// Without headers the first refusal teaches a limit, no call fails, and refusals are
// few. Each attempt that was refused is in the ledger as such.
func TestARefusalTeachesALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := providertest.Options{
			Limits: providertest.Limits{TPM: 60_000}, Capacity: 10 * time.Second, Dialect: providertest.NoHeaders, Charge: providertest.Settle,
			Latency: func(providertest.Call) providertest.Timing {
				return providertest.Timing{FirstByte: 500 * time.Millisecond}
			},
		}
		p := box(t, o)
		var mu sync.Mutex
		var learned []limit.Limit
		rt := gate(t, transport.Options{Base: p.RoundTripper(), Trace: transport.Trace{LimitChanged: func(_, l limit.Limit) {
			mu.Lock()
			defer mu.Unlock()
			learned = append(learned, l)
		}}})
		var all sync.WaitGroup
		body := `{"model":"m","max_tokens":500,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 400) + `"}]}`
		for range 600 {
			all.Go(func() {
				resp, err := (&http.Client{Transport: rt}).Post("http://box/v1/chat/completions", "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 {
					t.Error(resp.Status)
				}
			})
		}
		all.Wait()
		if s := p.Stats(); s.Refused > 60 || s.Refused == 0 {
			t.Errorf("%d of 600 calls were refused; want some and at most 60", s.Refused)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(learned) == 0 || learned[0].Unit != limit.Tokens || learned[0].Rate.Window != time.Minute {
			t.Errorf("learned %v; want tokens a minute", learned)
		}
	})
}
