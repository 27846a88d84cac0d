package transport_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// The x-ratelimit family, the IETF family, or nothing; what cannot be read is
// ignored, and the call succeeds.
func TestEveryFamilyOfHeaders(t *testing.T) {
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
		for _, l := range whole(rt).Limits {
			learned = l.Rate.N
		}
		if learned != c.limit {
			t.Errorf("%s: learned %d, want %d: %+v", name, learned, c.limit, whole(rt).Limits)
		}
	}
}

// No header ever raises credit, nor the rate above what was configured.
func TestHeadersOnlyLower(t *testing.T) {
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
			for _, burst := range []time.Duration{10 * time.Second, 0} {
				w := script(words)
				w.usage = "null" // nothing is given back
				rt := gate(t, transport.Options{Base: w, RPM: 600, TPM: 60_000, Burst: burst, Attempts: 1, Provider: profile.Unknown().Charging(estimate.ChargeEstimate)})
				before := whole(rt)
				finish(rt.RoundTrip(ask(t, t.Context(), letter)))
				for i, l := range before.Limits {
					now := whole(rt).Limits[i]
					most := l.Capacity
					if burst == 0 {
						most = l.Rate.N // what was shown to be there may go at once
					}
					if now.Credit-now.Debt > l.Credit-l.Debt || now.Rate.N > l.Rate.N || now.Capacity > most {
						t.Errorf("%s: from %+v to %+v", words, l, now)
					}
				}
			}
		})
	}
}

// Nothing is configured: the first answer teaches the limit, and the very next
// call is held to it.
func TestLearnsFromTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{Limits: providertest.Limits{RPM: 600, TPM: 60_000}, Capacity: 10 * time.Second, Charge: providertest.Estimate})
		prof := ruled(estimate.ChargeEstimate)
		prof.Linear = true
		var changes []string
		rt := gate(t, transport.Options{Base: p.RoundTripper(), Provider: prof, Trace: transport.Trace{
			LimitChanged: func(old, now limit.Limit) { changes = append(changes, fmt.Sprint(old.Rate.N, " ", now.Rate)) },
		}})
		c := &http.Client{Transport: rt}
		if n := len(whole(rt).Limits); n != 0 {
			t.Fatalf("%d limits before the first answer", n)
		}
		post(c, chatOf(0, 100, 100))
		if l := state(t, rt, tokenLimit); l.Rate != limit.PerMinute(60_000) {
			t.Errorf("learned %v", l.Rate)
		}
		if l := state(t, rt, requestLimit); l.Rate != limit.PerMinute(600) {
			t.Errorf("learned %v", l.Rate)
		}
		offer(c, 300, 50*time.Millisecond)
		if s := p.Stats(); s.Refused > 0 {
			t.Errorf("%d refused after the first answer", s.Refused)
		}
		if want := []string{"0 600/1m0s", "0 60000/1m0s"}; len(changes) != 2 || changes[0] != want[0] || changes[1] != want[1] {
			t.Errorf("LimitChanged was called with %q; want %q", changes, want)
		}
	})
}

// The provider halves its limit: at most the calls already on their way are
// refused. Raised again, a learned limit follows, a configured one too, but
// never above what was configured.
func TestLimitHalvedIsFollowedDown(t *testing.T) {
	for _, configured := range []int64{0, 60_000, 45_000} {
		t.Run(fmt.Sprint("configured ", configured), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := box(t, providertest.Options{Limits: providertest.Limits{TPM: 60_000}, Capacity: 10 * time.Second, Charge: providertest.Estimate})
				prof := ruled(estimate.ChargeEstimate)
				prof.Linear = true
				rt := gate(t, transport.Options{Base: p.RoundTripper(), TPM: configured, Provider: prof, Attempts: 5})
				c := &http.Client{Transport: rt}
				set := func(tpm int64) {
					if err := p.SetLimits(providertest.Limits{TPM: tpm}); err != nil {
						t.Fatal(err)
					}
				}
				want := func(n int64) {
					t.Helper()
					if l := state(t, rt, tokenLimit); l.Rate != limit.PerMinute(n) {
						t.Errorf("rate %v; want %d a minute", l.Rate, n)
					}
				}
				ceiling := func(n int64) int64 {
					if configured > 0 {
						return min(n, configured)
					}
					return n
				}
				offer(c, 60, 100*time.Millisecond)
				want(ceiling(60_000))
				set(30_000)
				offer(c, 60, 100*time.Millisecond)
				want(30_000)
				if s := p.Stats(); s.Refused > 2 {
					t.Errorf("%d refused", s.Refused)
				}
				set(200_000)
				offer(c, 20, 100*time.Millisecond)
				want(ceiling(200_000))
			})
		})
	}
}

// No header raises credit, and none lifts the rate above the configured one.
func TestNoHeaderRaisesAnything(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("a burst set by hand ", seed), func(t *testing.T) { noHeaderRaisesAnything(t, 10*time.Second, seed+1) })
		t.Run(fmt.Sprint("behind a guard ", seed), func(t *testing.T) { noHeaderRaisesAnything(t, 0, seed+1) })
	}
}

// With a burst of its own a limit is a bucket, which earns by its rate alone. On the
// default path another law may be believed, and a
// window gives back all at its edge. There each answer is held against the instant at
// which its call was admitted.
func noHeaderRaisesAnything(t *testing.T, burst time.Duration, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		values := []string{"", "0", "-1", "1", "59999", "60000", "60001", "9223372036854775807", "99999999999999999999", "1e9", "banana", "60000, 60000;w=60", " 60000 "}
		resets := []string{"", "0s", "1ms", "6m0s", "30", "-5", "2000-01-01T00:00:30Z", "1790000000"}
		r := rand.New(rand.NewPCG(1, seed))
		var rt *transport.Transport
		var admitted limit.Snapshot
		s := &scripted{pick: func(int, *http.Request) reply {
			admitted = whole(rt)
			one := func(of []string) string { return of[r.IntN(len(of))] }
			return quota(one(values), one(values), one(resets)).with(
				"x-ratelimit-limit-requests", one(values), "x-ratelimit-remaining-requests", one(values), "x-ratelimit-reset-requests", one(resets),
				"anthropic-ratelimit-input-tokens-limit", one(values), "ratelimit-limit", one(values), "ratelimit", one(values))
		}}
		rt = gate(t, transport.Options{Base: s, RPM: 600, TPM: 60_000, Burst: burst, Provider: ruled(estimate.ChargeEstimate)})
		c := &http.Client{Transport: rt}
		top := map[string]int64{tokenLimit: 60_000, requestLimit: 600}
		for i := range 1200 {
			before := rt.Snapshot()
			start := time.Now()
			post(c, chatOf(i, 10, 10))
			took := time.Since(start)
			find := func(of []limit.LimitState, name string) (l limit.LimitState, ok bool) {
				if at := slices.IndexFunc(of, func(l limit.LimitState) bool { return l.Name == name }); at >= 0 {
					return of[at], true
				}
				return l, false
			}
			rose := func(was, is limit.LimitState, earned int64) {
				if balance(is) > balance(was)+earned {
					t.Fatalf("call %d, %s: credit rose from %d to %d in %v: %v to %v", i, was.Name, balance(was), balance(is), took, was, is)
				}
			}
			now := whole(rt).Limits
			for _, was := range admitted.Limits {
				switch is, ok := find(now, was.Name); {
				case !ok && top[was.Name] > 0:
					t.Fatalf("%s is gone", was.Name)
				case ok: // else learned, and forgotten since no answer repeats it
					rose(was, is, 0)
					if n := top[was.Name]; n > 0 && is.Rate.N > n {
						t.Fatalf("%s: the rate rose to %d", was.Name, is.Rate.N)
					}
				}
			}
			for _, one := range before.Scopes {
				for _, then := range rt.Snapshot().Scopes {
					if burst == 0 || then.Scope != one.Scope {
						continue
					}
					for _, was := range one.Limits {
						// What the old rate or the new one could earn meanwhile, and no more.
						if is, ok := find(then.Limits, was.Name); ok {
							rose(was, is, max(was.Rate.N, is.Rate.N)*int64(took)/int64(was.Rate.Window)+1)
						}
					}
				}
			}
			time.Sleep(time.Duration(r.Int64N(int64(50 * time.Millisecond))))
		}
	})
}

// A limit that a header named for a model is forgotten when answers do not repeat it.
// What it held back stays held back: the account's own limit was not lowered.
func TestForgottenLimitRaisesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rt *transport.Transport
		var admitted limit.LimitState
		s := &scripted{pick: func(n int, _ *http.Request) reply {
			admitted = state(t, rt, tokenLimit)
			if n == 1 {
				return quota("59999", "1", "59s")
			}
			return reply{200, nil, ok}
		}}
		rt = gate(t, transport.Options{Base: s, TPM: 60_000, Provider: ruled(estimate.ChargeEstimate)})
		c := &http.Client{Transport: rt}
		for i := range 12 {
			post(c, chatOf(i, 10, 10))
			if now := state(t, rt, tokenLimit); balance(now) > balance(admitted) {
				t.Fatalf("call %d: from %v to %v", i+1, admitted, now)
			}
		}
		now := state(t, rt, tokenLimit)
		if now.Rate != limit.PerMinute(60_000) {
			t.Errorf("%v; the limit that was named once is not forgotten", now)
		}
		// Nothing is lost for long: later the copy is a full bucket of a short burst.
		time.Sleep(2 * time.Minute)
		if now = state(t, rt, tokenLimit); balance(now) < 10_000 {
			t.Errorf("%v two minutes later", now)
		}
		// Nor does the pace of that burst stay: from the next answer on it is the limit
		// that it was before.
		post(c, chatOf(13, 10, 10))
		for _, one := range rt.Snapshot().Scopes {
			for _, l := range one.Limits {
				if l.Burst != 60_000 {
					t.Errorf("%s: %v after an answer", one.Scope, l)
				}
			}
		}
	})
}

// An answer that names many windows drops none of the limits that bind.
func TestManyWindowsRaiseNothing(t *testing.T) {
	for name, tpm := range map[string]int64{"learned": 0, "configured": 120_000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{pick: func(n int, _ *http.Request) reply {
					if n == 1 {
						return quota("60000", "1", "59s")
					}
					list := "90000000"
					for i := range 20 {
						list += fmt.Sprintf(", 90000000;w=%d", 60*n+120+7*i)
					}
					return reply{200, nil, ok}.with("ratelimit-limit", list)
				}}
				rt := gate(t, transport.Options{Base: s, TPM: tpm, Provider: ruled(estimate.ChargeEstimate)})
				c := &http.Client{Transport: rt}
				for i := range 4 { // as many again and it is forgotten
					post(c, chatOf(i, 10, 10))
					l := state(t, rt, tokenLimit)
					if l.Rate != limit.PerMinute(60_000) || i == 0 && balance(l) > 1 {
						t.Fatalf("call %d: %v", i+1, l)
					}
				}
				if n := len(whole(rt).Limits); n > 17 {
					t.Errorf("%d limits", n)
				}
			})
		})
	}
}

// Each case is one answer and the balance of the tokens right after it. The
// limit is 60,000 a minute; the call costs 200.
// Report: PullRequestInc/go-gpt3#39, spring-projects/spring-ai#6061
// Report: nextcloud/integration_openai#359
func TestReadings(t *testing.T) {
	const full = 60_000 - 200
	for name, tc := range map[string]struct {
		r    reply
		want int64
	}{
		"missing":                {reply{200, nil, ok}, full},
		"usable":                 {quota("60000", "5000", "1s"), 4950}, // what was shown with the call, less 250 ms
		"text":                   {quota("60000", "banana", "1s"), full},
		"negative sentinel":      {quota("-1", "-1", "0"), full},
		"above the limit":        {quota("60000", "70000", "1s"), 60_000 - 1000}, // taken for all, less a second
		"swapped with requests":  {quota("600", "500", "1s").with("x-ratelimit-limit-requests", "60000", "x-ratelimit-remaining-requests", "59000"), full},
		"another period's limit": {quota("1000000", "5", "12h0m0s"), full},
		"unsuffixed, no unit":    {reply{200, map[string]string{"x-ratelimit-limit": "10", "x-ratelimit-remaining": "0", "x-ratelimit-burst": "10"}, ok}, full},
		"Retry-After on a 200":   {quota("60000", "", "").with("retry-after", "30"), full},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				prof := ruled(estimate.ChargeEstimate)
				prof.Linear = true
				rt := gate(t, transport.Options{Base: &scripted{answer: tc.r}, TPM: 60_000, Provider: prof})
				start := time.Now()
				status, _, err := post(&http.Client{Transport: rt}, chatOf(1, 97, 100))
				if status != 200 || err != nil {
					t.Fatal(status, err)
				}
				if got := balance(state(t, rt, tokenLimit)); got != tc.want {
					t.Errorf("balance %d; want %d", got, tc.want)
				}
				if took := time.Since(start); took > 0 || whole(rt).PausedUntil.After(start) {
					t.Errorf("took %v, paused until %v", took, whole(rt).PausedUntil)
				}
			})
		})
	}
}

// A balance that comes late belongs to its sending. The refill since then is not
// thrown away, and calls that left since then are not forgotten. An older answer
// that comes after a younger one takes nothing more.
func TestStaleAndOutOfOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		burst time.Duration
		// after a rest, a second after the second call, with the third under way,
		// after its answer, and after the older one
		rest, second, third, younger, older int64
	}{
		{"a burst set by hand", 10 * time.Second, 10_000, 10_000, 9_800, 5_000, 10_000},
		// A window that leaves 300 unused and forgets the first call evenly; and
		// readings less a margin of a second.
		{"behind a guard", 0, 59_500, 59_303, 59_103, 4_000, 10_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			staleAndOutOfOrder(t, c.burst, c.rest, c.second, c.third, c.younger, c.older)
		})
	}
}

func staleAndOutOfOrder(t *testing.T, burst time.Duration, rest, second, third, younger, older int64) {
	synctest.Test(t, func(t *testing.T) {
		answers := []reply{
			quota("60000", "59800", "200ms"), // shows that it holds the minute
			quota("60000", "5000", "55s"), quota("60000", "4000", "56s"),
		}
		delays := []time.Duration{0, 8 * time.Second, time.Second}
		s := &scripted{
			pick:  func(n int, _ *http.Request) reply { return answers[n-1] },
			delay: func(n int) time.Duration { return delays[n-1] },
		}
		rt := gate(t, transport.Options{Base: s, TPM: 60_000, Burst: burst, Provider: ruled(estimate.ChargeEstimate)})
		c := &http.Client{Transport: rt}
		var all sync.WaitGroup
		send := func(i int) { all.Go(func() { post(c, chatOf(i, 97, 100)) }) }
		after := func(d time.Duration, want int64) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := balance(state(t, rt, tokenLimit)); got != want {
				t.Errorf("balance %d; want %d", got, want)
			}
		}
		send(1)
		after(time.Minute, rest)
		send(2) // t = 0: 5000 left then, says the answer at 8 s
		after(time.Second, second)
		send(3) // t = 1 s: 4000 left then, says the answer at 2 s
		after(0, third)
		after(time.Second, younger) // 4000 and a second; not 4000
		// The older answer: 5000, and 8 s, less the 200 of the third call. The
		// younger one's 4000 and 7 s are more: nothing is taken.
		after(6*time.Second, older)
		all.Wait()
	})
}

// The same the other way about: the old balance is the lower one, and counts
// with all that was refilled and left since.
func TestStaleButLower(t *testing.T) {
	t.Run("a burst set by hand", func(t *testing.T) { staleButLower(t, 10*time.Second, 5000-200) })
	t.Run("behind a guard", func(t *testing.T) { staleButLower(t, 0, 5000-1000-200) }) // less the margin of a second
}

func staleButLower(t *testing.T, burst time.Duration, want int64) {
	synctest.Test(t, func(t *testing.T) {
		answers := []reply{quota("60000", "59800", "200ms"), quota("60000", "0", "60s"), quota("60000", "40000", "1s")}
		delays := []time.Duration{0, 5 * time.Second, time.Second}
		s := &scripted{
			pick:  func(n int, _ *http.Request) reply { return answers[n-1] },
			delay: func(n int) time.Duration { return delays[n-1] },
		}
		rt := gate(t, transport.Options{Base: s, TPM: 60_000, Burst: burst, Provider: ruled(estimate.ChargeEstimate)})
		c := &http.Client{Transport: rt}
		post(c, chatOf(1, 97, 100))
		time.Sleep(time.Minute)
		var all sync.WaitGroup
		all.Go(func() { post(c, chatOf(2, 97, 100)) })
		time.Sleep(time.Second)
		all.Go(func() { post(c, chatOf(3, 97, 100)) })
		all.Wait()
		if got := balance(state(t, rt, tokenLimit)); got != want {
			t.Errorf("balance %d; want the 5 s since, less the third call", got)
		}
	})
}

// A 429 with no field at all: the retry layer's own wait holds everybody, and
// nobody else has credit when it ends.
func TestBareRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answer: reply{429, nil, ""}, then: reply{200, nil, ok}}
		rt := gate(t, transport.Options{Base: s, TPM: 60_000, Provider: ruled(estimate.ChargeEstimate)})
		c := &http.Client{Transport: rt}
		var all sync.WaitGroup
		all.Go(func() { post(c, chatOf(1, 97, 100)) })
		synctest.Wait()
		if whole(rt).PausedUntil.IsZero() {
			t.Error("not paused")
		}
		all.Go(func() { post(c, chatOf(2, 97, 100)) })
		all.Wait()
		if d := s.gap(); d < retry.DefaultMinBackoff {
			t.Errorf("again after %v", d)
		}
		if d := s.at[2].Sub(s.at[1]); d < 199*time.Millisecond {
			t.Errorf("the next %v behind the retry; want what 200 tokens take", d)
		}
	})
}

// Groq shows requests of a day beside tokens of a minute. They are never mixed:
// a refused minute leaves the day alone, and an empty day the minute.
func TestGroqDayAndMinute(t *testing.T) {
	prof, found := profile.ByName("groq")
	if !found {
		t.Fatal("no groq profile")
	}
	const dayLimit = "requests per day"
	fields := func(status int, requests, tokens, wait string) reply {
		r := quota("18000", tokens, "7.66s").with("x-ratelimit-limit-requests", "14400", "x-ratelimit-remaining-requests", requests, "x-ratelimit-reset-requests", "2m59.56s")
		if wait != "" {
			r = r.with("retry-after", wait)
		}
		r.status = status
		return r
	}
	t.Run("learned apart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rt := gate(t, transport.Options{Base: &scripted{answer: fields(200, "14370", "1000", "")}, Provider: prof})
			post(&http.Client{Transport: rt}, chatOf(1, 97, 100))
			if l := state(t, rt, dayLimit); l.Rate != limit.PerDay(14400) || balance(l) > 14370 || balance(l) < 14000 {
				t.Errorf("%+v", l)
			}
			if l := state(t, rt, tokenLimit); l.Rate != limit.PerMinute(18000) || balance(l) > 1000 {
				t.Errorf("%+v", l)
			}
			if n := len(whole(rt).Limits); n != 2 {
				t.Errorf("%d limits", n)
			}
		})
	})
	t.Run("a refused minute", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{pick: func(n int, _ *http.Request) reply {
				if n == 2 {
					return fields(429, "14369", "10", "2")
				}
				return fields(200, "14370", "1000", "")
			}}
			rt := gate(t, transport.Options{Base: s, Provider: prof})
			c := &http.Client{Transport: rt}
			for i := range 3 {
				post(c, chatOf(i, 18, 20))
			}
			if l := state(t, rt, dayLimit); balance(l) < 14000 {
				t.Errorf("a minute's refusal took the day: %+v", l)
			}
		})
	})
	t.Run("an empty day", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			body := `{"error":{"message":"Rate limit reached for model in organization on requests per day (RPD): Limit 14400, Used 14400, Requested 1. Please try again in 6s.","type":"requests","code":"rate_limit_exceeded"}}`
			s := &scripted{pick: func(n int, _ *http.Request) reply {
				if n == 2 {
					r := fields(429, "0", "18000", "120")
					r.body = body
					return r
				}
				return fields(200, "14370", "18000", "")
			}}
			rt := gate(t, transport.Options{Base: s, Provider: prof})
			c := &http.Client{Transport: rt}
			post(c, chatOf(1, 18, 20))
			post(c, chatOf(2, 18, 20)) // 120 s is more than the default ceiling: handed over
			if l := state(t, rt, dayLimit); balance(l) > 0 {
				t.Errorf("the day has %d left", balance(l))
			}
		})
	})
}

// A limit that is learned has the burst that was set by hand; a limit whose
// fields name no window is not taken for a minute's.
func TestBurstOfALearnedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{Limits: providertest.Limits{RPM: 600, TPM: 60_000}})
		rt := gate(t, transport.Options{Base: p.RoundTripper(), Burst: 3 * time.Second})
		if s, b, err := post(&http.Client{Transport: rt}, chat); s != 200 || err != nil {
			t.Fatal(s, b, err)
		}
		got := map[limit.Unit]int64{}
		for _, l := range whole(rt).Limits {
			got[l.Unit] = l.Capacity
		}
		if got[limit.Requests] != 30 || got[limit.Tokens] != 3000 {
			t.Errorf("%v, want 3 s of each rate", got)
		}
	})
}

// Fields that name neither dimension nor window may be a second's: a configured
// rate does not follow them down sixtyfold.
func TestUnnamedLimitIsNotAMinutes(t *testing.T) {
	for words, want := range map[string]int64{
		"200;X-Ratelimit-Limit=5;X-Ratelimit-Remaining=4;X-Ratelimit-Reset=1":          600,
		"200;X-Ratelimit-Limit=5;X-Ratelimit-Remaining=0;X-Ratelimit-Reset=1000000000": 600, // long ago
		"200;X-Ratelimit-Limit=5;X-Ratelimit-Remaining=4":                              600,
		"200;X-Ratelimit-Limit=5;X-Ratelimit-Remaining=4;X-Ratelimit-Reset=45":         5,
		"200;X-Ratelimit-Limit-Requests=5;X-Ratelimit-Remaining-Requests=4":            5,
		"200;X-Ratelimit-Limit-Minute=5;X-Ratelimit-Remaining-Minute=4":                5,
	} {
		rt := gate(t, transport.Options{Base: script(words), RPM: 600})
		if status, _, err := finish(rt.RoundTrip(ask(t, t.Context(), letter))); status != 200 || err != nil {
			t.Errorf("%s: %d %v", words, status, err)
		}
		if got := whole(rt).Limits[0].Rate.N; got != want {
			t.Errorf("%s: %d a minute, want %d", words, got, want)
		}
	}
}
