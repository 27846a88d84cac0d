package transport_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/transport"
)

// A rule is a provider that limits in a way that no preset of providertest has. It
// admits by a bucket of n requests a window, which holds at most holds, and by places
// if that is not zero.
type rule struct {
	n      float64
	window time.Duration
	holds  float64
	places int
	took   time.Duration                                    // a call; 0: half a second to two and a half
	quiet  int                                              // calls that come one at a time before the load
	status int                                              // of a refusal
	body   string                                           // of a refusal
	fields func(r *rule, h http.Header, wait time.Duration) // of every answer; wait is above 0 where it refuses
	mu     sync.Mutex
	level  float64
	last   time.Time
	busy   int
	random *rand.Rand

	served, refused, early int
	until, told            time.Time // a named wait, and when it was named
}

func (r *rule) earn(now time.Time) {
	if r.last.IsZero() {
		r.level, r.last = r.holds, now
	}
	r.level = min(r.holds, r.level+r.n*float64(now.Sub(r.last))/float64(r.window))
	r.last = now
}

// full is the time until the bucket is full.
func (r *rule) full() time.Duration {
	return time.Duration((r.holds - r.level) / r.n * float64(r.window))
}

func (r *rule) RoundTrip(req *http.Request) (*http.Response, error) {
	rttest.Drain(req)
	h := http.Header{"Content-Type": {"application/json"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
	took, refused := r.judge(h)
	if refused {
		return rttest.Response(req, r.status, h, r.body), nil
	}
	select {
	case <-time.After(took):
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	r.mu.Lock()
	r.busy--
	r.served++
	r.mu.Unlock()
	return rttest.Response(req, 200, h, `{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"Hello."}}],"usage":{"prompt_tokens":14,"completion_tokens":20}}`), nil
}

// judge admits or refuses a request, and writes the header of the answer.
func (r *rule) judge(h http.Header) (took time.Duration, refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.earn(now); now.Before(r.until) && now.After(r.told) {
		r.early++
	}
	wait := max(0, time.Duration((1-r.level)/r.n*float64(r.window)))
	if refused = wait > 0 || r.places > 0 && r.busy >= r.places; refused {
		r.refused++
	} else {
		r.level--
		r.busy++
	}
	if r.fields != nil {
		r.fields(r, h, wait)
	}
	if refused && h.Get("Retry-After") != "" {
		r.until, r.told = now.Add(wait), now
	}
	if r.took > 0 {
		return r.took, refused
	}
	return time.Duration(500+r.random.IntN(2000)) * time.Millisecond, refused
}

// retryAfter names the wait in whole seconds.
func retryAfter(h http.Header, wait time.Duration) {
	h.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
}

// drive sends calls at three times the rate that r admits, for ten minutes.
func (r *rule) drive(t *testing.T, o transport.Options, each time.Duration) (lost int) {
	t.Helper()
	r.random = rand.New(rand.NewPCG(1, 2))
	o.Base = r
	rt := gate(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range r.quiet {
		if status, _, err := finish(rt.RoundTrip(ask(t, ctx, chat))); err != nil || status != 200 {
			lost++
		}
		time.Sleep(time.Duration(7+i%5*3)*time.Second + 300*time.Millisecond)
	}
	for begun := time.Now(); time.Since(begun) < 10*time.Minute; time.Sleep(each) {
		all.Go(func() {
			status, _, err := finish(rt.RoundTrip(ask(t, ctx, chat)))
			if mu.Lock(); ctx.Err() == nil && (err != nil || status != 200) {
				lost++
			}
			mu.Unlock()
		})
	}
	r.mu.Lock()
	mu.Lock()
	defer mu.Unlock()
	defer r.mu.Unlock()
	cancel()
	return lost
}

// Nothing is configured, and the load is three times what the provider admits. Its
// fields say little or come with refusals alone: no call is lost, nothing is refused as
// a crowd, and the quota is used.
func TestRulesThatAnswersHardlyShow(t *testing.T) {
	const limited = `{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}`
	onRefusals := func(f func(r *rule, h http.Header, wait time.Duration)) func(*rule, http.Header, time.Duration) {
		return func(r *rule, h http.Header, wait time.Duration) {
			if wait > 0 {
				f(r, h, wait)
			}
		}
	}
	limits := func(name string) func(*rule, http.Header, time.Duration) {
		return func(r *rule, h http.Header, wait time.Duration) {
			h.Set("X-Ratelimit-Limit"+name, strconv.Itoa(int(r.n)))
			h.Set("X-Ratelimit-Remaining"+name, strconv.Itoa(int(r.level)))
			h.Set("X-Ratelimit-Reset"+name, fmt.Sprint(int(r.full()/time.Second)))
			if wait > 0 {
				retryAfter(h, wait)
			}
		}
	}
	bucket := func(fields func(*rule, http.Header, time.Duration)) *rule {
		return &rule{n: 120, window: time.Minute, holds: 20, status: 429, body: limited, fields: fields}
	}
	for _, c := range []struct {
		name string
		r    *rule
	}{
		{"limits on refusals alone", bucket(onRefusals(limits("-Requests")))},
		{"a bare limit", bucket(limits(""))},
		{"a bare limit on refusals alone", bucket(onRefusals(limits("")))},
		{"a limit without a reset on refusals alone", bucket(onRefusals(func(_ *rule, h http.Header, wait time.Duration) {
			h.Set("X-Ratelimit-Limit-Requests", "120")
			h.Set("X-Ratelimit-Remaining-Requests", "0")
			retryAfter(h, wait)
		}))},
		{"a wait and nothing else", bucket(onRefusals(func(_ *rule, h http.Header, wait time.Duration) { retryAfter(h, wait) }))},
		{"nothing", bucket(nil)},
		{"nothing left, and no limit", bucket(onRefusals(func(_ *rule, h http.Header, wait time.Duration) {
			h.Set("X-Ratelimit-Remaining-Requests", "0")
			retryAfter(h, wait)
		}))},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lost := c.r.drive(t, transport.Options{}, time.Minute/360)
				if lost > 0 || c.r.early > 0 || c.r.refused > 40 || c.r.served < 1200*85/100 {
					t.Errorf("of 1200 calls that fit %d were served; %d were refused, %d lost, %d left within a named wait", c.r.served, c.r.refused, lost, c.r.early)
				}
			})
		})
	}
}

// A field without a window is taken for a minute's. Where it is a second's, that would
// leave a sixtieth of the quota: resets of calls that were alone say so.
func TestALimitOfASecondIsNotAMinutes(t *testing.T) {
	limits := func(unit time.Duration) func(*rule, http.Header, time.Duration) {
		return func(r *rule, h http.Header, wait time.Duration) {
			h.Set("X-Ratelimit-Limit-Requests", strconv.Itoa(int(r.n)))
			h.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(int(max(0, r.level))))
			h.Set("X-Ratelimit-Reset-Requests", ((r.full() + unit - 1) / unit * unit).String())
			if wait > 0 {
				retryAfter(h, wait)
			}
		}
	}
	for _, c := range []struct {
		name  string
		o     transport.Options
		n     float64
		per   time.Duration
		unit  time.Duration
		least int // of the calls that fit after five minutes, in per cent
	}{
		{"nothing configured", transport.Options{}, 2, time.Second, time.Millisecond, 85},
		{"the minute configured", transport.Options{RPM: 120}, 2, time.Second, time.Millisecond, 85},
		{"ten a second", transport.Options{}, 10, time.Second, time.Millisecond, 85},
		{"four in two seconds", transport.Options{}, 4, 2 * time.Second, time.Millisecond, 85},
		{"really a minute", transport.Options{}, 120, time.Minute, time.Millisecond, 85},
		{"really a minute, a small one", transport.Options{}, 4, time.Minute, time.Millisecond, 85},
		{"really a minute, in seconds", transport.Options{}, 120, time.Minute, time.Second, 85},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rule{n: c.n, window: c.per, holds: c.n, status: 429, body: `{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}`, fields: limits(c.unit)}
				each := time.Duration(float64(c.per) / c.n / 2)
				var served int
				time.AfterFunc(5*time.Minute, func() { r.mu.Lock(); served = r.served; r.mu.Unlock() })
				lost := r.drive(t, c.o, each)
				fits := int(c.n * float64(5*time.Minute) / float64(c.per))
				if late := r.served - served; lost > 0 || r.early > 0 || r.refused > 5 || late < fits*c.least/100 {
					t.Errorf("of %d calls that fit %d were served; %d were refused, %d lost, %d left within a named wait", fits, late, r.refused, lost, r.early)
				}
			})
		})
	}
}

// A limit on calls at once names nothing. Fields of a rate may stand beside it.
// Taken for a rate's, its refusals left half of the places empty, one answer in four a
// refusal.
func TestALimitOnCallsAtOnce(t *testing.T) {
	plenty := func(r *rule, h http.Header, wait time.Duration) {
		h.Set("X-Ratelimit-Limit-Requests", "6000")
		h.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(int(r.level)))
		h.Set("X-Ratelimit-Reset-Requests", r.full().Truncate(time.Millisecond).String())
	}
	for _, c := range []struct {
		name   string
		o      transport.Options
		places int
		fields func(*rule, http.Header, time.Duration)
	}{
		{"nothing configured", transport.Options{}, 4, nil},
		{"sixteen", transport.Options{}, 16, nil},
		{"fields of a rate", transport.Options{}, 4, plenty},
		{"a rate configured", transport.Options{RPM: 6000}, 4, plenty},
		{"a rate configured, no fields", transport.Options{RPM: 6000}, 8, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Of events of one instant the order is chance. With nothing configured one
			// play in twenty serves 72 % of what fits, so the mean of some is judged.
			plays := 1
			if c.o.RPM == 0 {
				plays = 7
			}
			var fits, late, refused, lost int
			play := func(t *testing.T) {
				r := &rule{n: 6000, window: time.Minute, holds: 6000, places: c.places, status: 429, body: `{"error":{"message":"Too many requests"}}`, fields: c.fields}
				var served int
				time.AfterFunc(5*time.Minute, func() { r.mu.Lock(); served = r.served; r.mu.Unlock() })
				lost += r.drive(t, c.o, 750*time.Millisecond/time.Duration(c.places))
				fits += c.places * int(5*time.Minute/(1500*time.Millisecond))
				late, refused = late+r.served-served, refused+r.refused
			}
			for range plays {
				synctest.Test(t, play)
			}
			if lost > 0 || late < fits*85/100 || refused > 60*plays {
				t.Errorf("of %d calls that fit %d were served; %d were refused, %d lost", fits, late, refused, lost)
			}
		})
	}
}

// A limit on calls at once that falls is learned anew.
func TestALimitOnCallsAtOnceThatFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rule{n: 6000, window: time.Minute, holds: 6000, places: 6, status: 429, body: `{"error":{"message":"Too many requests"}}`}
		var before, served, refused int
		time.AfterFunc(5*time.Minute, func() { r.mu.Lock(); r.places, before = 3, r.refused; r.mu.Unlock() })
		time.AfterFunc(7*time.Minute, func() { r.mu.Lock(); served, refused = r.served, r.refused; r.mu.Unlock() })
		lost := r.drive(t, transport.Options{RPM: 6000}, 750*time.Millisecond/6)
		if late := r.served - served; lost > 0 || late < 360*85/100 || r.refused-refused > 5 || r.refused-before > 30 {
			t.Errorf("of 360 calls that fit the last three minutes %d were served; %d were refused, %d since the limit fell, %d lost", late, r.refused-refused, r.refused-before, lost)
		}
	})
}

// Calls of one length leave together after each wait. A rate that refuses the last of
// them is no limit on calls at once, which would leave a third of it unused.
func TestARateIsNoLimitOnCallsAtOnce(t *testing.T) {
	for _, holds := range []float64{2, 5, 10} {
		for _, took := range []time.Duration{2 * time.Second, 10 * time.Second, 20 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				r := &rule{n: 120, window: time.Minute, holds: holds, took: took, status: 429, body: `{"error":{"message":"Too many requests"}}`}
				var served int
				time.AfterFunc(5*time.Minute, func() { r.mu.Lock(); served = r.served; r.mu.Unlock() })
				lost := r.drive(t, transport.Options{RPM: 240}, 400*time.Millisecond)
				if late := r.served - served; lost > 0 || late < 600*85/100 || r.refused > 20 {
					t.Errorf("a bucket of %v, calls of %v: of 600 calls that fit %d were served; %d were refused, %d lost", holds, took, late, r.refused, lost)
				}
			})
		}
	}
}
