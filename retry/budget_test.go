package retry

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// A thousand callers call again as soon as they have an answer. The server fails
// everything for five minutes.
func TestAnOutageIsNotMultiplied(t *testing.T) {
	const outage = 5 * time.Minute
	for _, c := range []struct {
		name    string
		callers int
		a       answerFunc
	}{
		{"500", 1000, answer(500, "")},
		{"503", 200, answer(503, "")},
		{"503 with a wait", 200, answer(503, "", "Retry-After", "1")},
		{"502 of a gateway", 200, answer(502, "<html>Bad Gateway</html>", "Content-Type", "text/html")},
		{"529", 200, answer(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)},
		{"broken connections", 200, fail(errReset)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls, attempts, late, lateAttempts atomic.Int64
				began := time.Now()
				rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
					rttest.Drain(r)
					time.Sleep(10 * time.Second)
					attempts.Add(1)
					since := time.Since(began)
					if since < outage {
						return c.a(r)
					}
					if since > outage+20*time.Second {
						if lateAttempts.Add(1)%10 == 0 { // one attempt in ten fails
							return c.a(r)
						}
					}
					return rttest.Response(r, 200, nil, "ok"), nil
				}), Options{})
				var all sync.WaitGroup
				for range c.callers {
					all.Go(func() {
						for time.Since(began) < outage {
							calls.Add(1)
							if resp, err := rt.RoundTrip(post(t.Context(), t, chat)); err == nil {
								resp.Body.Close()
							}
						}
					})
				}
				all.Wait()
				if per := float64(attempts.Load()) / float64(calls.Load()); per > 1.15 {
					t.Errorf("%d attempts of %d calls: %.3f", attempts.Load(), calls.Load(), per)
				}
				// It answers again. Soon after one attempt in ten fails, and no call does.
				var failed atomic.Int64
				for range c.callers {
					all.Go(func() {
						for time.Since(began) < outage+2*time.Minute {
							resp, err := rt.RoundTrip(post(t.Context(), t, chat))
							if time.Since(began) > outage+20*time.Second {
								late.Add(1)
								if err != nil || resp.StatusCode != 200 {
									failed.Add(1)
								}
							}
							if err == nil {
								resp.Body.Close()
							}
						}
					})
				}
				all.Wait()
				if share := float64(failed.Load()) / float64(late.Load()); share > 0.01 {
					t.Errorf("after the outage %d of %d calls failed", failed.Load(), late.Load())
				}
			})
		})
	}
}

// Rare calls have all their attempts in an outage too: time earns them.
func TestFewCallsHaveTheirAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(answer(500, ""))
		rt := mustNew(t, s, Options{})
		for range 200 {
			send(t, rt, post(t.Context(), t, chat))
			time.Sleep(10 * time.Second)
		}
		if s.calls() != 600 {
			t.Errorf("200 calls had %d attempts", s.calls())
		}
	})
}

// Refusals for the caller's own rate take nothing from the budget: it would be
// empty when a server fails.
func TestRefusalsForTheRateAreNotBudgeted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(answer(429, tooFast, "Retry-After", "1"))
		rt := mustNew(t, s, Options{})
		for range 100 {
			send(t, rt, post(t.Context(), t, chat))
		}
		if s.calls() != 300 {
			t.Errorf("100 calls had %d attempts", s.calls())
		}
		if rt.budget.left != 0 {
			t.Errorf("the budget was touched: %d", rt.budget.left)
		}
	})
}

// Who ends for the budget says so: with the provider's response as it is, or with
// an error.
func TestASpentBudgetIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last Reason
		rt := mustNew(t, play(fail(errReset)), Options{MinBackoff: 1, MaxBackoff: 1, Done: func(e Event) { last = e.Reason }})
		var err error
		for range 60 {
			_, err = rt.RoundTrip(post(t.Context(), t, chat))
			if last == Unaffordable {
				break
			}
		}
		if last != Unaffordable || err == nil || !strings.Contains(err.Error(), "the budget of further attempts is spent") {
			t.Errorf("%v: %v", last, err)
		}
	})
}

func TestUnbudgeted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(answer(500, ""))
		rt := mustNew(t, s, Options{Unbudgeted: true})
		for range 100 {
			send(t, rt, post(t.Context(), t, chat))
		}
		if s.calls() != 300 {
			t.Errorf("100 calls had %d attempts", s.calls())
		}
	})
}
