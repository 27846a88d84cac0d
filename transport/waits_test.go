package transport_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

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
func TestTwoBucketsMakeOneWait(t *testing.T) {
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
func TestALineAndNotAHerd(t *testing.T) {
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
func TestNoSlowerThanTheLimit(t *testing.T) {
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
func TestInstantsCarryTheMonotonicClock(t *testing.T) {
	rt := gate(t, transport.Options{Base: script("429;Retry-After=3600"), RPM: 60})
	finish(rt.RoundTrip(ask(t, t.Context(), letter)))
	if at := whole(rt).PausedUntil; !strings.Contains(at.String(), " m=") {
		t.Errorf("paused until %v", at)
	}
}

// Retry-After on a refusal is the one unconditional order: of a crowd, nobody
// leaves before it.
func TestNobodyLeavesBeforeRetryAfter(t *testing.T) {
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

// What a refusal orders is kept by the retry and by everybody else, in every
// spelling.
func TestEverySpellingOfAWaitIsKept(t *testing.T) {
	for i, w := range rttest.Waits(time.Time{}) {
		t.Run(w.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(4 * 365 * 24 * time.Hour) // an epoch is told from seconds by its size
				w := rttest.Waits(time.Now())[i]
				s := &scripted{answer: reply{status: 429, body: w.Body}.with(w.Header...), then: reply{200, nil, ok}}
				rt := gate(t, transport.Options{Base: s, TPM: 60_000, Provider: ruled(estimate.ChargeEstimate)})
				c := &http.Client{Transport: rt}
				var all sync.WaitGroup
				for i := range 3 {
					all.Go(func() { post(c, chatOf(i, 97, 100)) })
					synctest.Wait()
				}
				all.Wait()
				least, most := w.Want, w.Want+2*time.Second
				if w.Order == rttest.Unreadable {
					least, most = retry.DefaultMinBackoff, 2*time.Second
				}
				if d := s.gap(); d < least || d > most {
					t.Errorf("the second request leaves after %v; want %v to %v", d, least, most)
				}
				if len(s.at) != 4 {
					t.Errorf("%d requests; want 4", len(s.at))
				}
			})
		})
	}
}

// An integer beyond every clock is obeyed by handing the refusal over,
// and while it runs nothing leaves.
// Report: basecamp/basecamp-sdk#798
func TestAWaitBeyondEveryClockNeverLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answer: reply{status: 429}.with("Retry-After", "9223372036854775807"), then: reply{200, nil, ok}}
		rt := gate(t, transport.Options{Base: s, TPM: 60_000, MaxWait: time.Minute, Provider: ruled(estimate.ChargeEstimate)})
		c := &http.Client{Transport: rt}
		if status, _, err := post(c, chatOf(1, 97, 100)); status != 429 || err != nil {
			t.Errorf("%d, %v; want the 429", status, err)
		}
		for range 5 {
			if _, _, err := post(c, chatOf(2, 97, 100)); err == nil {
				t.Error("sent during the pause")
			}
		}
		if len(s.at) != 1 {
			t.Errorf("%d requests", len(s.at))
		}
	})
}

// Five calls at once of a limit that one would fill: tokens are taken at
// admission, so they go one after the other.
// Report: BerriAI/litellm#18730, BerriAI/litellm#5783, BerriAI/litellm#23775
func TestACrowdTakesItsTokensAtAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answer: reply{200, nil, ok}, delay: func(int) time.Duration { return time.Second }}
		rt := gate(t, transport.Options{Base: s, TPM: 240, Burst: time.Minute, Provider: ruled(estimate.ChargeEstimate)})
		offer := func(i int) { post(&http.Client{Transport: rt}, chatOf(i, 73, 100)) } // 175 tokens
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() { offer(i) })
		}
		all.Wait()
		for i := 1; i < len(s.at); i++ {
			if d := s.at[i].Sub(s.at[0]); d < time.Duration(i*175+175-240)*time.Minute/240 {
				t.Errorf("call %d leaves after %v", i+1, d)
			}
		}
	})
}

// Small calls across the edges of minutes are never held while their
// average is below the limit.
// Report: BerriAI/litellm#24677
func TestEdgesOfMinutesHoldNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answer: reply{200, nil, ok}}
		rt := gate(t, transport.Options{Base: s, TPM: 1200, Provider: ruled(estimate.ChargeEstimate)})
		c := &http.Client{Transport: rt}
		time.Sleep(47 * time.Second)
		for i := range 60 {
			start := time.Now()
			if status, _, err := post(c, chatOf(i, 90, 100)); status != 200 || err != nil || time.Since(start) > 0 {
				t.Fatalf("call %d: %d, %v, after %v", i, status, err, time.Since(start))
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// A wait that only the body names is honoured, unless the profile says that it
// means nothing.
func TestABodysWaitAsTheProfileSays(t *testing.T) {
	for ignore, want := range map[bool]bool{false: true, true: false} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			base := rttest.Func(func(r *http.Request) (*http.Response, error) {
				rttest.Drain(r)
				if n++; n == 1 {
					return rttest.Response(r, 429, http.Header{"Content-Type": {"application/json"}},
						`{"error":{"message":"Rate limit reached. Please try again in 33s.","code":"rate_limit_exceeded"}}`), nil
				}
				return rttest.Response(r, 200, nil, `{}`), nil
			})
			prof := profile.Unknown()
			prof.IgnoreBodyWait = ignore
			rt := gate(t, transport.Options{Base: base, Provider: prof})
			start := time.Now()
			if s, _, err := post(&http.Client{Transport: rt}, chat); s != 200 || err != nil {
				t.Fatal(s, err)
			}
			if waited := time.Since(start) >= 33*time.Second; waited != want {
				t.Errorf("ignore %v: came back after %v", ignore, time.Since(start))
			}
		})
	}
}

// Three times the limit against a provider that enforces it, answers whole and
// streamed: no refusal, and nearly as fast as can be. Beside it, in the same
// run, a client that only retries, and one that reserves the output cap in
// x/time/rate.
func TestThreeTimesTheLimit(t *testing.T) {
	const calls, rpm, tpm, outputCap = 300, 600, 60_000, 400
	o := providertest.Options{
		Limits:   providertest.Limits{RPM: rpm, TPM: tpm},
		Capacity: 10 * time.Second,
		Charge:   providertest.Settle,
		Output:   providertest.Uniform(50, outputCap),
	}
	for _, stream := range []bool{false, true} {
		body := chat
		if stream {
			body = strings.Replace(chat, `"max_tokens"`, `"stream":true,"stream_options":{"include_usage":true},"max_tokens"`, 1)
		}
		run := func(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) (seconds, ideal float64, s providertest.Stats) {
			synctest.Test(t, func(t *testing.T) {
				p := box(t, o)
				c := &http.Client{Transport: wrap(p.RoundTripper())}
				var wg sync.WaitGroup
				for range calls {
					wg.Go(func() {
						if s, b, err := post(c, body); s != 200 || err != nil {
							t.Error(s, b, err)
						}
					})
				}
				wg.Wait()
				var costs []providertest.Cost
				for _, e := range p.Ledger() {
					if e.Outcome == providertest.Served {
						seconds = e.Since.Seconds()
						costs = append(costs, providertest.Cost{Prompt: e.Prompt, Cap: outputCap, Output: e.Produced})
					}
				}
				var err error
				if ideal, err = providertest.IdealSeconds(costs, o); err != nil {
					t.Error(err)
				}
				s = p.Stats()
			})
			return seconds, ideal, s
		}
		ours, ideal, s := run(t, func(base http.RoundTripper) http.RoundTripper {
			return gate(t, transport.Options{Base: base, RPM: rpm, TPM: tpm})
		})
		retried, _, r := run(t, func(base http.RoundTripper) http.RoundTripper {
			rt, err := retry.New(base, retry.Options{Attempts: 1000})
			if err != nil {
				t.Fatal(err)
			}
			return rt
		})
		reserved, _, x := run(t, func(base http.RoundTripper) http.RoundTripper {
			return reserving{base, rate.NewLimiter(rpm/60, 10), rate.NewLimiter(tpm/60, tpm/6), 13 + outputCap}
		})
		t.Logf("stream %v: ideal %.1f s; tripmeter %.1f s, %d refused; retry alone %.1f s, %d refused; x/time/rate reserving the cap %.1f s, %d refused",
			stream, ideal, ours, s.Refused, retried, r.Refused, reserved, x.Refused)
		if s.Refused != 0 || ours > ideal/0.97 {
			t.Errorf("stream %v: %d refused, %.1f s of at best %.1f", stream, s.Refused, ours, ideal)
		}
		if r.Refused < calls || reserved < 1.4*ours {
			t.Errorf("stream %v: the others did better than they can: %d refused, %.1f s", stream, r.Refused, reserved)
		}
	}
}
