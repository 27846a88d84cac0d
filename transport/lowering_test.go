package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// state is one limit of a Transport, by name.
func state(t *testing.T, rt *transport.Transport, name string) limit.LimitState {
	t.Helper()
	if len(whole(rt).Limits) == 0 {
		transport.Know(rt, ask(t, t.Context(), letter))
	}
	for _, l := range whole(rt).Limits {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("no limit %q in %+v", name, whole(rt).Limits)
	return limit.LimitState{}
}

// balance is credit, or debt as a negative number.
func balance(l limit.LimitState) int64 { return l.Credit - l.Debt }

const (
	tokenLimit   = "tokens per minute"
	requestLimit = "requests per minute"
)

// inFlight follows one of the wrong rules: it subtracts all calls under way
// from the remaining tokens of every answer.
type inFlight struct {
	base http.RoundTripper
	cost int64

	mu sync.Mutex
	n  int64
}

func (f *inFlight) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.n++
	f.mu.Unlock()
	resp, err := f.base.RoundTrip(req)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	if err == nil {
		left, _ := strconv.ParseInt(resp.Header.Get("X-Ratelimit-Remaining-Tokens"), 10, 64)
		resp.Header.Set("X-Ratelimit-Remaining-Tokens", strconv.FormatInt(left-f.cost*f.n, 10))
	}
	return resp, err
}

// Crowds of 20 calls of 1000 tokens, whose answers take 20 s, one crowd after
// the other: at 60,000 a minute each goes at once. The rule that dates a balance
// back to the sending lets it. The two that look simpler do not: min(level,
// remaining) throws away what was refilled while the answers ran, and remaining
// less what is in flight pays for a call twice besides.
// (Profile.RemainingAfter is the first of them, and right only where the
// balance is that of the end.)
func TestTwoLoweringRulesThatAreWrong(t *testing.T) {
	const crowds, crowd, cost = 6, 20, 1000
	took := func(rule string) (last time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			p := box(t, providertest.Options{
				Limits: providertest.Limits{TPM: 60_000}, Capacity: 21 * time.Second, Charge: providertest.Estimate,
				Output:  providertest.Constant(10),
				Latency: func(providertest.Call) providertest.Timing { return providertest.Timing{FirstByte: 20 * time.Second} },
			})
			o := transport.Options{Base: p.RoundTripper(), TPM: 60_000, Burst: 20 * time.Second, Provider: ruled(estimate.ChargeEstimate)}
			switch rule {
			case "min(level, remaining)":
				o.Provider.RemainingAfter = true
			case "remaining less in flight":
				o.Provider.RemainingAfter = true
				o.Base = &inFlight{base: o.Base, cost: cost}
			}
			c := &http.Client{Transport: gate(t, o)}
			post(c, chatOf(0, 496, 500)) // shows what the provider holds
			time.Sleep(time.Minute)
			start := time.Now()
			for range crowds {
				var all sync.WaitGroup
				for i := range crowd {
					all.Go(func() {
						if status, _, err := post(c, chatOf(i, 496, 500)); status != 200 || err != nil {
							t.Error(rule, status, err)
						}
					})
				}
				all.Wait()
			}
			last = time.Since(start)
			if s := p.Stats(); s.Refused > 0 {
				t.Errorf("%s: %d refused", rule, s.Refused)
			}
		})
		return last
	}
	right := took("as it is")
	if ideal := crowds * 20 * time.Second; right > ideal*101/100 {
		t.Errorf("the right rule takes %v; the quota allows %v", right, ideal)
	}
	for _, wrong := range []string{"min(level, remaining)", "remaining less in flight"} {
		if d := took(wrong); d < right*5/4 {
			t.Errorf("%s takes %v, the right rule %v: this is no counter-example", wrong, d, right)
		} else {
			t.Logf("%s: %v, right: %v", wrong, d, right)
		}
	}
}

// undrained is a Limiter that obeys a pause and learns nothing from it.
type undrained struct {
	*limit.Limiter
	mu    sync.Mutex
	until time.Time
}

func (u *undrained) PauseScope(_ string, p limit.Pause) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p.ProbeAfter > 0 { // a probe ends the pause, as far as it knows
		p.For = min(p.For, p.ProbeAfter)
	}
	if t := time.Now().Add(p.For); t.After(u.until) {
		u.until = t
	}
}

func (u *undrained) DrainScope(string, string, int64, time.Duration) bool { return false }

func (u *undrained) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	for {
		u.mu.Lock()
		d := time.Until(u.until)
		u.mu.Unlock()
		if d <= 0 {
			return u.Limiter.Admit(ctx, a)
		}
		time.Sleep(d)
	}
}

// A provider that another program has left empty. Without the drain the credit
// that the ledger believed in goes out after every pause, and is refused.
func TestDrainTurnsHundredsOfRefusalsIntoTwo(t *testing.T) {
	refused := func(drain bool) (n int64) {
		synctest.Test(t, func(t *testing.T) {
			p := box(t, providertest.Options{
				Limits: providertest.Limits{TPM: 60_000}, Capacity: time.Minute, Charge: providertest.Estimate,
				StartSpent: 100, Dialect: providertest.NoHeaders,
			})
			limits := []limit.Limit{{Name: tokenLimit, Unit: limit.Tokens, Rate: limit.PerMinute(60_000), Burst: 60_000}}
			l, err := limit.New(limit.Options{Limits: limits})
			if err != nil {
				t.Fatal(err)
			}
			o := transport.Options{Base: p.RoundTripper(), Scopes: transport.Scopes{Budget: over(t, l)}, Provider: ruled(estimate.ChargeEstimate), Attempts: 100}
			if !drain {
				o.Scopes.Budget = over(t, &undrained{Limiter: l})
			}
			offer(&http.Client{Transport: gate(t, o)}, 200, 100*time.Millisecond)
			n = p.Stats().Refused
		})
		return n
	}
	with, without := refused(true), refused(false)
	t.Logf("%d refused with the drain, %d without", with, without)
	if with > 2 || without < 100 {
		t.Errorf("%d refused with the drain, %d without; want at most 2, and hundreds", with, without)
	}
}

// Nobody said how much the provider holds. Its own numbers do: the largest
// remaining plus the call's own charge, less a quarter of a second of refill.
func TestCapacityIsWhatWasShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{Limits: providertest.Limits{TPM: 60_000}, Capacity: 3 * time.Second, Charge: providertest.Estimate})
		rt := gate(t, transport.Options{Base: p.RoundTripper(), TPM: 60_000, Provider: ruled(estimate.ChargeEstimate)})
		c := &http.Client{Transport: rt}
		if got := state(t, rt, tokenLimit).Capacity; got != 10_000 {
			t.Errorf("capacity %d before anything is known; want 10 s", got)
		}
		post(c, chatOf(1, 100, 100))
		if got := state(t, rt, tokenLimit).Capacity; got != 2750 {
			t.Errorf("capacity %d; want 3 s less a quarter", got)
		}
		time.Sleep(time.Minute)
		offer(c, 40, 0)
		if s := p.Stats(); s.Refused > 0 {
			t.Errorf("%d of a crowd refused after idling", s.Refused)
		}
	})
}

// A capacity that was shown once is not lowered by a lean moment.
func TestCapacityIsTheLargestShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answer: quota("60000", "9900", "200ms"), then: quota("60000", "2000", "2s")}
		rt := gate(t, transport.Options{Base: s, TPM: 60_000, Provider: ruled(estimate.ChargeEstimate)})
		c := &http.Client{Transport: rt}
		post(c, chatOf(1, 98, 0))
		first := state(t, rt, tokenLimit).Capacity
		for range 5 {
			post(c, chatOf(1, 98, 0))
		}
		if got := state(t, rt, tokenLimit).Capacity; got != first {
			t.Errorf("capacity %d, was %d", got, first)
		}
	})
}

// The window profile keeps a twentieth back, and starts with nothing.
func TestHeadroom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ok := profile.ByName("window")
		if !ok {
			t.Fatal("no window profile")
		}
		rt := gate(t, transport.Options{RPM: 600, TPM: 60_000, Provider: p})
		for name, n := range map[string]int64{tokenLimit: 57_000, requestLimit: 570} {
			if l := state(t, rt, name); l.Rate.N != n || l.Credit != 0 {
				t.Errorf("%s: %d a minute, credit %d; want %d and none", name, l.Rate.N, l.Credit, n)
			}
		}
	})
}

// Refusals that our own use explains cut nothing: a fixed minute that we have
// filled ourselves.
func TestNoCutWhenExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(17 * time.Second)
		p := box(t, providertest.Options{
			Limits: providertest.Limits{TPM: 60_000}, Algorithm: providertest.FixedMinute, Charge: providertest.Estimate, Dialect: providertest.NoHeaders,
		})
		rt := gate(t, transport.Options{Base: p.RoundTripper(), TPM: 60_000, Provider: ruled(estimate.ChargeEstimate), Attempts: 10})
		offer(&http.Client{Transport: rt}, 400, 100*time.Millisecond)
		if s := p.Stats(); s.Refused < 2 {
			t.Fatalf("%d refused: nothing to explain", s.Refused)
		}
		if n := state(t, rt, tokenLimit).Rate.N; n != 60_000 {
			t.Errorf("the rate was cut to %d", n)
		}
	})
}

// Somebody else takes three quarters of the limit, unseen: no header says so.
// The rate is cut to about what is left, never rises above the limit, and comes
// back when the other stops.
func TestCutWhenUnexplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{
			Limits: providertest.Limits{TPM: 60_000}, Capacity: 10 * time.Second, Charge: providertest.Estimate, Dialect: providertest.NoHeaders,
		})
		share := func(tpm int64) {
			if err := p.SetLimits(providertest.Limits{TPM: tpm}); err != nil {
				t.Error(err)
			}
		}
		rt := gate(t, transport.Options{Base: p.RoundTripper(), TPM: 60_000, Provider: ruled(estimate.ChargeEstimate), Attempts: 20})
		c := &http.Client{Transport: rt}
		share(15_000)
		var all sync.WaitGroup
		for i := range 600 { // 200 tokens each: two minutes at the whole limit
			all.Go(func() {
				// Not all in one instant: how many leave before the first refusal
				// is heard would be the scheduler's choice.
				time.Sleep(time.Duration(i) * time.Millisecond)
				post(c, chatOf(i, 98, 100))
			})
		}
		time.Sleep(3 * time.Minute)
		early := p.Stats().Refused
		if n := state(t, rt, tokenLimit).Rate.N; n > 20_000 {
			t.Errorf("the rate is %d, with 15,000 left", n)
		}
		time.Sleep(3 * time.Minute)
		late := p.Stats().Refused - early
		if s := p.Stats(); late > early || s.Refused*10 > s.Completed {
			t.Errorf("%d refused, then %d, of %d", early, late, s.Completed)
		}
		share(60_000)
		for range 60 {
			if n := state(t, rt, tokenLimit).Rate.N; n > 60_000 {
				t.Fatalf("the rate rose to %d", n)
			}
			time.Sleep(time.Second)
		}
		all.Wait()
		time.Sleep(6 * time.Minute)
		post(c, chatOf(0, 100, 100))
		if n := state(t, rt, tokenLimit).Rate.N; n != 60_000 {
			t.Errorf("the rate is %d long after the other stopped", n)
		}
	})
}

// A refusal of one kind drains that kind alone.
func TestDrainWhatRefused(t *testing.T) {
	for kind, body := range map[string]string{
		"requests": `{"error":{"message":"Rate limit reached for box on requests per min (RPM): Limit 600, Used 600, Requested 1. Please try again in 1s.","type":"requests","code":"rate_limit_exceeded"}}`,
		"tokens":   `{"error":{"message":"Rate limit reached for box on tokens per min (TPM): Limit 60000, Used 60000, Requested 300. Please try again in 1s.","type":"tokens","code":"rate_limit_exceeded"}}`,
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := limit.New(limit.Options{Limits: []limit.Limit{
					{Name: requestLimit, Unit: limit.Requests, Rate: limit.PerMinute(600), Burst: 100},
					{Name: tokenLimit, Unit: limit.Tokens, Rate: limit.PerMinute(60_000), Burst: 10_000},
				}})
				if err != nil {
					t.Fatal(err)
				}
				var drained []string
				s := &scripted{answer: reply{429, nil, body}, then: reply{200, nil, ok}}
				rt := gate(t, transport.Options{Base: s, Scopes: transport.Scopes{Budget: over(t, &watched{Limiter: l, drained: &drained})}, Provider: ruled(estimate.ChargeEstimate)})
				post(&http.Client{Transport: rt}, chatOf(1, 100, 100))
				if want := kind + " per minute"; len(drained) != 1 || drained[0] != want {
					t.Errorf("drained %q; want %q", drained, want)
				}
			})
		})
	}
}

// Twenty calls are refused at once and for good, and their answers read later.
// When the wait is over there is what one of them needs, not what twenty do.
func TestManyRefusedAtOnce(t *testing.T) {
	for _, attempts := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			arrived := make(chan struct{})
			base := rttest.Func(func(r *http.Request) (*http.Response, error) {
				rttest.Drain(r)
				<-arrived
				return rttest.Response(r, 429, http.Header{"Retry-After": {"10"}}, `{"error":{"code":"rate_limit_exceeded"}}`), nil
			})
			const tpm, cost = 60_000, 220 // and a little less
			rt := gate(t, transport.Options{Base: base, TPM: tpm, Burst: 10 * time.Second, Attempts: attempts, Provider: ruled(estimate.ChargeEstimate)})
			tokens := func() int64 { l := whole(rt).Limits[0]; return l.Credit - l.Debt }
			var all sync.WaitGroup
			read := make(chan struct{})
			for i := range 20 {
				all.Go(func() {
					resp, err := rt.RoundTrip(ask(t, t.Context(), chatOf(i, 100, 100)))
					if err != nil {
						t.Error(err)
						return
					}
					<-read
					resp.Body.Close()
				})
			}
			synctest.Wait()
			close(arrived)
			synctest.Wait()
			close(read)
			time.Sleep(9 * time.Second)
			synctest.Wait()
			if c := tokens() + 1000; c > cost { // in a second a thousand are refilled
				t.Errorf("%d attempts: %d tokens will be there when it opens, for calls of %d", attempts, c, cost)
			}
			all.Wait()
		})
	}
}

type watched struct {
	*limit.Limiter
	drained *[]string
}

func (w *watched) DrainScope(scope, name string, keep int64, d time.Duration) bool {
	if !slices.Contains(*w.drained, name) {
		*w.drained = append(*w.drained, name)
	}
	return w.Limiter.DrainScope(scope, name, keep, d)
}

// A provider that names no wait, anywhere, and starts its cool-down anew with
// every request that comes before its end: the waits outgrow it, and it ends.
func TestSilentCoolDownEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{
			Limits: providertest.Limits{TPM: 60_000}, Algorithm: providertest.SlidingMinute, Charge: providertest.Estimate,
			Penalty: time.Second, RefusedCount: true, StartSpent: 100,
			RetryAfter: providertest.NoRetryAfter, Dialect: providertest.NoHeaders,
		})
		prof := ruled(estimate.ChargeEstimate)
		prof.Rule.RefusedCount = true
		rt := gate(t, transport.Options{
			Base: p.RoundTripper(), TPM: 60_000, Provider: prof, Attempts: 100,
			Retry: retry.Options{IgnoreBodyWait: true},
		})
		start := time.Now()
		offer(&http.Client{Transport: rt}, 100, 100*time.Millisecond)
		if s := p.Stats(); s.Completed != 100 || s.Refused > 8 {
			t.Errorf("%d of 100 served, %d refused", s.Completed, s.Refused)
		}
		if d := time.Since(start); d > 6*time.Minute {
			t.Errorf("it took %v", d)
		}
	})
}

// A profile that says how much a provider holds says it from the start: the
// first crowd may use it all.
func TestProfileBurstIsThereAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prof := ruled(estimate.ChargeEstimate)
		prof.TokenBurst, prof.RequestBurst = 50*time.Second, 30*time.Second
		rt := gate(t, transport.Options{TPM: 60_000, RPM: 600, Provider: prof, Limits: []limit.Limit{
			{Name: "own", Unit: limit.Tokens, Rate: limit.PerHour(100_000)},
		}})
		for name, n := range map[string]int64{tokenLimit: 50_000, requestLimit: 300, "own": 100_000} {
			if l := state(t, rt, name); l.Credit != l.Rate.N || l.Capacity != n {
				t.Errorf("%s: credit %d, %d at once; want all, and %d at once", name, l.Credit, l.Capacity, n)
			}
		}
		if got := state(t, rt, tokenLimit).Largest; got != 60_000 {
			t.Errorf("the largest call is %d; want the whole limit", got)
		}
	})
}

// The header of a stream lowers credit when it arrives, not when the stream
// ends a minute later.
// Report: sashabaranov/go-openai#495
func TestCreditIsLoweredWhenTheHeaderArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lowered := ""
		w := script("200;X-Ratelimit-Limit-Tokens=6000;X-Ratelimit-Remaining-Tokens=0;X-Ratelimit-Reset-Tokens=60s 200")
		slowBody := rttest.Func(func(r *http.Request) (*http.Response, error) {
			resp, err := w.RoundTrip(r)
			if w.attempts() == 1 {
				resp.Body = newStalled(r.Context(), "data: x\n\n")
			}
			return resp, err
		})
		rt := gate(t, transport.Options{Base: slowBody, TPM: 6000, Trace: transport.Trace{
			Lowered: func(_ *http.Request, dimension string, remaining int64) {
				lowered = fmt.Sprint(dimension, " ", remaining)
			},
		}})
		resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if s := whole(rt).Limits[0]; s.Credit != 0 || lowered != "tokens per minute 0" {
			t.Errorf("credit %d while the body is open; %q", s.Credit, lowered)
		}
		start := time.Now()
		finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		if d := time.Since(start); d < time.Second { // 112 tokens at 100 a second
			t.Errorf("the next call left after %v", d)
		}
	})
}

// A stream's header lowers credit when it comes, not at its end.
// Report: sashabaranov/go-openai#495
func TestCreditIsLoweredBeforeTheStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{
			Limits: providertest.Limits{TPM: 60_000}, Capacity: time.Minute, Charge: providertest.Estimate, StartSpent: 99, Output: providertest.Constant(60),
			Latency: func(providertest.Call) providertest.Timing { return providertest.Timing{PerToken: time.Second} },
		})
		rt := gate(t, transport.Options{Base: p.RoundTripper(), TPM: 60_000, Provider: ruled(estimate.ChargeEstimate)})
		body := strings.Replace(chatOf(1, 97, 100), `"max_tokens"`, `"stream":true,"max_tokens"`, 1)
		resp, err := (&http.Client{Transport: rt}).Post("http://box/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := balance(state(t, rt, tokenLimit)); got > 1000 {
			t.Errorf("credit is %d while the stream runs, the provider has 400", got)
		}
		resp.Body.Close()
	})
}

// What was left at one instant does not block for ever.
// Report: ioggstream/draft-polli-ratelimit-headers#7
// Report: ioggstream/draft-polli-ratelimit-headers#9
func TestAnOldReadingExpires(t *testing.T) {
	t.Run("a burst set by hand", func(t *testing.T) { oldReadingExpires(t, 10*time.Second) })
	t.Run("behind a guard", func(t *testing.T) { oldReadingExpires(t, 0) })
}

func oldReadingExpires(t *testing.T, burst time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answer: quota("60000", "0", "1m0s")}
		rt := gate(t, transport.Options{Base: s, TPM: 60_000, Burst: burst, Provider: ruled(estimate.ChargeEstimate)})
		c := &http.Client{Transport: rt}
		post(c, chatOf(1, 97, 100))
		if got := balance(state(t, rt, tokenLimit)); got != 0 {
			t.Errorf("balance %d; want none", got)
		}
		start := time.Now()
		post(c, chatOf(2, 97, 100))
		if d := time.Since(start); d != 200*time.Millisecond {
			t.Errorf("the next left after %v; want what 200 tokens take", d)
		}
	})
}

// The first call needs a second for its connection, and twenty others overtake
// it. What the provider then has left already is without what they cost: it must
// not be taken off once more.
func TestBalanceIsOfTheConnectionNotOfTheDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{Limits: providertest.Limits{TPM: 60_000}, Charge: providertest.Estimate})
		inner := p.RoundTripper()
		slow := true
		base := rttest.Func(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn("box:80")
			if slow {
				slow = false
				time.Sleep(time.Second)
			}
			trace.GotConn(httptrace.GotConnInfo{})
			return inner.RoundTrip(r)
		})
		rt := gate(t, transport.Options{Base: base, TPM: 60_000, Burst: time.Minute, Provider: ruled(estimate.ChargeEstimate)})
		c := &http.Client{Transport: rt}
		first := make(chan struct{})
		go func() {
			defer close(first)
			post(c, chat)
		}()
		synctest.Wait()
		time.Sleep(600 * time.Millisecond)
		var cost int64
		for range 20 {
			post(c, chat)
		}
		<-first
		for _, e := range p.Ledger() {
			cost += e.Settled.Total()
		}
		// 0.6 s of refill came to a full bucket and was lost but for the first's own.
		want := 60_000 - cost
		if got := whole(rt).Limits[0].Credit; got < want {
			t.Errorf("credit %d, want at least %d", got, want)
		}
	})
}
