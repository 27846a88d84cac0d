package limit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// B = 3, r = 2: three go at once, the fourth needs half a second.
func TestThreeGoAtOnceAndTheFourthWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerSecond(2), Burst: 3}}})
		for _, step := range []struct {
			pass     time.Duration
			admitted bool
			wait     time.Duration
		}{
			{0, true, 0},
			{0, true, 0},
			{0, true, 0},
			{0, false, 500 * time.Millisecond},
			{250 * time.Millisecond, false, 250 * time.Millisecond},
			{250 * time.Millisecond, true, 0}, // exactly one
			{0, false, 500 * time.Millisecond},
		} {
			time.Sleep(step.pass)
			_, err := l.TryAcquire(call)
			var e *limit.Error
			if (err == nil) != step.admitted || !step.admitted && (!errors.As(err, &e) || e.Wait != step.wait) {
				t.Errorf("%+v: %v", step, err)
			}
		}
	})
}

// Callers on all processors meet at the boundary: exactly the credit that
// exists is granted. Run it with -race.
func TestConcurrentCallersGetExactlyTheCredit(t *testing.T) {
	l := newLimiter(t, limit.Options{Limits: []limit.Limit{
		{Rate: limit.Rate{N: 1, Window: limit.MaxWindow}, Burst: 1000}, // no refill to speak of
		{Unit: limit.Tokens, Rate: limit.Rate{N: 1, Window: limit.MaxWindow}, Burst: 5000},
	}})
	var granted atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 100 {
				if l.Allow(limit.Cost{Requests: 1, Input: 3}) {
					granted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := granted.Load(); n != 1000 {
		t.Errorf("%d granted of 1000", n)
	}
	if s := l.Snapshot(); s.Limits[0].Credit != 0 || s.Limits[1].Credit != 2000 {
		t.Errorf("%+v", s)
	}
}

// Distributed workers: allocated sub-budgets. Four workers with a quarter each
// never exceed the whole, in any window.
func TestFourQuartersNeverExceedTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := limit.Limit{Rate: limit.PerMinute(119), Burst: 9}
		const n = 4
		var admitted []time.Time
		var mu sync.Mutex
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range n {
			l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerMinute(whole.Rate.N / n), Burst: whole.Burst / n}}})
			all.Go(func() {
				for l.Wait(ctx, call) == nil {
					mu.Lock()
					admitted = append(admitted, time.Now())
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if len(admitted) < 1000 {
			t.Fatalf("%d admitted", len(admitted))
		}
		for i := range admitted {
			for j := i; j < len(admitted); j++ {
				if d := admitted[j].Sub(admitted[i]); int64(j-i+1) > whole.Most(d) {
					t.Fatalf("%d in %v, at most %d", j-i+1, d, whole.Most(d))
				}
			}
		}
	})
}

// The wait is accurate to the rate: capacity goes as a burst, the excess is
// throttled, each unit at its exact instant.
func TestBurstGoesAndTheExcessIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerSecond(3), Burst: 4}}})
		start := time.Now()
		for i := range 40 {
			if err := l.Wait(context.Background(), call); err != nil {
				t.Fatal(err)
			}
			want := time.Duration(0)
			if k := i - 3; k > 0 { // ceil(k/3 s)
				want = (time.Duration(k)*time.Second + 2) / 3
			}
			if got := time.Since(start); got != want {
				t.Errorf("unit %d at %v, want %v", i, got, want)
			}
		}
	})
}

// There is no window whose edge can be straddled: in any 60 ms, wherever they
// begin, at most the burst and what 60 ms earn.
func TestNoWindowEdgeCanBeStraddled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := limit.Limit{Rate: limit.PerSecond(100), Burst: 100}
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{lim}})
		time.Sleep(970 * ms)
		var went []time.Time
		for range 60 {
			for l.Allow(call) {
				went = append(went, time.Now())
			}
			time.Sleep(ms)
		}
		if n := int64(len(went)); n > 106 || n > lim.Most(60*ms) {
			t.Errorf("%d in 60 ms", n)
		}
	})
}

// By choice, a cost above the burst waits for a full bucket, goes into
// debt, and the next callers repay it.
//
// Report: ax-llm/ax#631
func TestLargerCostLeavesDebtThatIsRepaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{
			{Unit: limit.Tokens, Rate: limit.PerSecond(10), Burst: 100, Largest: 250, Empty: true},
		}})
		if err := l.Wait(context.Background(), tokens(251)); !errors.Is(err, limit.ErrTooLarge) {
			t.Error(err)
		}
		start := time.Now()
		for _, step := range []struct {
			cost   int64
			at     time.Duration
			credit int64
		}{
			{250, 10 * time.Second, -150}, // full at 10 s
			{10, 26 * time.Second, 0},     // repaid at 25 s
			{0, 26 * time.Second, 0},
			{100, 36 * time.Second, 0},
		} {
			if err := l.Wait(context.Background(), tokens(step.cost)); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); d != step.at || creditOf(l) != step.credit {
				t.Errorf("%+v: at %v, credit %d", step, d, creditOf(l))
			}
		}
	})
}

// The real bound of a burst is stated, and the default for requests is
// small: 15 a minute admit 15 in any minute (half open), not 30.
//
// Report: AlaskanTuna/Rokabot#149, go-redis/redis_rate#24
func TestDefaultBurstOfRequestsIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		greedy := func(lim limit.Limit) (most int64) {
			l := newLimiter(t, limit.Options{Limits: []limit.Limit{lim}})
			time.Sleep(time.Hour) // idle, then greedy
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			var went []time.Time
			for l.Wait(ctx, call) == nil {
				went = append(went, time.Now())
			}
			for i := range went {
				n := int64(0)
				for _, at := range went[i:] {
					if at.Sub(went[i]) < time.Minute {
						n++
					}
				}
				most = max(most, n)
			}
			return most
		}
		if n := greedy(limit.Limit{Rate: limit.PerMinute(15)}); n != 15 {
			t.Errorf("by default %d in a minute", n)
		}
		wide := limit.Limit{Rate: limit.PerMinute(15), Burst: 15}
		if n := greedy(wide); n < 29 || n > wide.Most(time.Minute) || wide.Most(time.Minute) != 30 {
			t.Errorf("with a burst of 15 %d in a minute, stated are at most %d", n, wide.Most(time.Minute))
		}
	})
}

// One limit has credit and the other has not: neither is charged.
//
// Report: pubky/pubky-homeserver#573, aws-samples/sample-agentic-ai-acceleration-kr#83
func TestAllLimitsOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, flip := range []bool{false, true} {
			limits := []limit.Limit{
				{Name: "requests", Rate: limit.PerMinute(60), Burst: 60},
				{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerMinute(60), Burst: 60, Empty: true},
			}
			if flip {
				limits[0], limits[1] = limits[1], limits[0]
			}
			l := newLimiter(t, limit.Options{Limits: limits, MaxInFlight: 1})
			cost := limit.Cost{Requests: 1, Input: 5}
			for range 10 {
				if l.Allow(cost) {
					t.Fatal("allowed")
				}
				if _, err := l.TryAcquire(cost); !errors.Is(err, limit.ErrLimited) {
					t.Fatal(err)
				}
			}
			for _, s := range l.Snapshot().Limits {
				if want := map[string]int64{"requests": 60}[s.Name]; s.Credit != want {
					t.Errorf("%+v, want %d", s, want)
				}
			}
			if n := l.Snapshot().InFlight; n != 0 {
				t.Errorf("%d in flight", n)
			}
		}
	})
}

// What a burst means is said, and is true.
//
// Report: krakend/krakend-ratelimit#30, golang/go#68541
func TestLimitStatesItsRealBound(t *testing.T) {
	for _, c := range []struct {
		lim  limit.Limit
		want string
		most int64 // in a window
	}{
		{limit.Limit{Rate: limit.PerMinute(1), Burst: 20}, "requests: 1/1m0s after a burst of 20: at most 21 in any 1m0s", 21},
		{limit.Limit{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(60_000)}, "tpm: 60000/1m0s after a burst of 10000: at most 70000 in any 1m0s; a larger cost, up to 60000, waits for the full burst and is paid off before the next", 120_000},
		{limit.Limit{Rate: limit.PerMinute(60), Burst: 60, Law: limit.Law{Shape: limit.ShapeSliding}}, "requests: 60/1m0s by sliding window: at most 60 in any 1m0s", 120},
		{limit.Limit{Rate: limit.PerMinute(60), Law: limit.Law{Shape: limit.ShapeLog}}, "requests: 60/1m0s by sliding log: at most 60 in any 1m0s", 120},
		{limit.Limit{Rate: limit.PerMinute(60), Law: limit.Law{Shape: limit.ShapeFixed}}, "requests: 60/1m0s by fixed window: at most 60 from one edge to the next", 180},
		{limit.Limit{Rate: limit.PerMinute(60), Law: limit.Law{Shape: limit.ShapeTwoWindows}}, "requests: 60/1m0s by two weighted windows: at most 60 from one edge to the next", 180},
		{limit.Limit{Rate: limit.PerMinute(limit.MaxUnits), Law: limit.Law{Shape: limit.ShapeFixed}}, "requests: 1000000000000/1m0s by fixed window: at most 1000000000000 from one edge to the next", limit.MaxUnits},
		{limit.Limit{Rate: limit.PerMinute(60), Law: limit.Law{Shape: limit.ShapeBucket}}, "requests: 60/1m0s after a burst of 1: at most 61 in any 1m0s; a larger cost, up to 60, waits for the full burst and is paid off before the next", 120},
		{limit.Limit{Rate: limit.PerMinute(7), Burst: 1}, "requests: 7/1m0s after a burst of 1: at most 8 in any 1m0s", 8},
		{limit.Limit{Unit: limit.Output}, "output tokens: unlimited", limit.MaxUnits},
		{limit.Limit{Name: "daily", Rate: limit.PerDay(1000)}, "daily: 1000/24h0m0s after a burst of 1000: at most 2000 in any 24h0m0s", 2000},
	} {
		if got := c.lim.String(); got != c.want {
			t.Errorf("%q\nwant %q", got, c.want)
		}
		if got := c.lim.Most(c.lim.Rate.Window); got != c.most {
			t.Errorf("%v: at most %d, want %d", c.lim, got, c.most)
		}
	}
	// A burst with a limit of nothing is a contradiction, not a limiter that
	// lets one through.
	var e *limit.ConfigError
	if _, err := limit.New(limit.Options{Limits: []limit.Limit{{Burst: 1}}}); !errors.As(err, &e) || e.Field != "Limits[0].Burst" {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		lim := limit.Limit{Rate: limit.PerMinute(1), Burst: 20}
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{lim}})
		n := int64(0)
		for at := time.Duration(0); at <= time.Minute; at += time.Second {
			for l.Allow(call) {
				n++
			}
			time.Sleep(time.Second)
		}
		if n != 21 {
			t.Errorf("%d in a minute after idling, want 21", n)
		}
	})
}
