package limit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// Reports of users of other limiters: each one's trouble, and what happens
// here.

// B039: cancelling one reservation while later ones exist gives back exactly
// its own.
func TestB039_ExactRefund(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tokenLimiter(t, limit.PerSecond(1), 20, false)
		a, _ := l.TryAcquire(tokens(10))
		b, _ := l.TryAcquire(tokens(5))
		a.Return()
		if c := creditOf(l); c != 15 {
			t.Errorf("credit %d, want 15", c)
		}
		a.Return()
		b.Return()
		if c := creditOf(l); c != 20 {
			t.Errorf("credit %d, want 20", c)
		}
	})
}

// B040: a hundred wait, ninety-nine give up: the survivor runs as if the others
// had never come, and the limiter is as open as before.
func TestB040_TheSurvivor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tokenLimiter(t, limit.PerSecond(1), 10, true)
		start := time.Now()
		ctx, cancel := context.WithCancel(context.Background())
		for range 50 {
			go l.Acquire(ctx, tokens(10))
		}
		synctest.Wait()
		survivor, err := l.Reserve(tokens(10))
		if err != nil {
			t.Fatal(err)
		}
		for range 49 {
			go l.Acquire(ctx, tokens(10))
		}
		time.Sleep(3 * time.Second)
		cancel()
		<-survivor.Ready()
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("the survivor went at %v, want 10s", d)
		}
		time.Sleep(10 * time.Second)
		if c := creditOf(l); c != 10 {
			t.Errorf("credit %d, want 10", c)
		}
	})
}

// B041: failing fast on the deadline is recognisable, as the package's error
// and as the context's, and so is running into it.
func TestB041_DeadlineIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tokenLimiter(t, limit.PerSecond(1), 10, true)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		err := l.Wait(ctx, tokens(10))
		if !errors.Is(err, limit.ErrWaitTooLong) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		full := newLimiter(t, limit.Options{MaxInFlight: 1})
		full.TryAcquire(limit.Cost{})
		if _, err := full.Acquire(ctx, limit.Cost{}); !errors.Is(err, limit.ErrCanceled) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// B042: a cost above the burst says so with both numbers; unlimited never errs.
func TestB042_CostAboveBurst(t *testing.T) {
	l := tokenLimiter(t, limit.PerSecond(1), 1, false)
	var e *limit.Error
	if err := l.Wait(context.Background(), tokens(5)); !errors.Is(err, limit.ErrTooLarge) || !errors.As(err, &e) || e.Cost != 5 || e.Capacity != 1 || !strings.Contains(err.Error(), "cost 5, capacity 1") {
		t.Error(err)
	}
	if err := l.SetLimit(limit.Limit{Name: "tokens"}); err != nil { // unlimited from now on
		t.Fatal(err)
	}
	if err := l.Wait(context.Background(), tokens(1<<60)); err != nil {
		t.Error(err)
	}
}

// B043: a change of rate re-times whoever waits; a default burst follows the
// rate, one set by hand is what is set with it.
func TestB043_RateAndBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{
			{Name: "default", Unit: limit.Input, Rate: limit.PerSecond(10)},
			{Name: "hand", Unit: limit.Tokens, Rate: limit.PerSecond(10), Burst: 10, Empty: true},
		}})
		start := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		var last time.Duration
		for range 10 {
			all.Go(func() {
				if err := l.Wait(context.Background(), tokens(10)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				last = max(last, time.Since(start))
			})
			synctest.Wait()
		}
		time.Sleep(500 * ms) // 5 are there
		for _, name := range []string{"default", "hand"} {
			var lim limit.Limit
			for _, s := range l.Snapshot().Limits {
				if s.Name == name {
					lim = s.Limit
				}
			}
			lim.Rate = limit.PerSecond(100)
			if err := l.SetLimit(lim); err != nil {
				t.Fatal(err)
			}
		}
		all.Wait() // 95 more at 100 a second
		if last != 1450*ms {
			t.Errorf("the last went at %v, want 1.45s", last)
		}
		s := l.Snapshot()
		if s.Limits[0].Capacity != 100 || s.Limits[1].Capacity != 10 {
			t.Errorf("capacities %d and %d, want 100 and 10", s.Limits[0].Capacity, s.Limits[1].Capacity)
		}
	})
}

// B044: the rate is cut from 950,000 to 100 a minute and a cost of 200,000
// waits or comes. With a default burst capacity follows the rate, and the cost
// is refused as what it is; with one set by hand the wait of 33 hours is
// reported and bounded by the longest wait.
func TestB044_RateCutToAlmostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, burst := range []int64{0, 950_000} {
			lim := limit.Limit{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(950_000), Burst: burst, Empty: true}
			l := newLimiter(t, limit.Options{Limits: []limit.Limit{lim}, MaxWait: time.Minute})
			waiting, err := l.Reserve(tokens(200_000))
			if err != nil {
				t.Fatal(err)
			}
			for lim.Rate.N > 100 {
				lim.Rate.N = max(100, lim.Rate.N*4/5)
				if err := l.SetLimit(lim); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			var e *limit.Error
			_, err = l.Acquire(context.Background(), tokens(200_000))
			if time.Since(start) != 0 || !errors.As(err, &e) {
				t.Fatalf("%v after %v", err, time.Since(start))
			}
			if burst == 0 {
				if !errors.Is(err, limit.ErrTooLarge) || e.Capacity != 100 {
					t.Error(err)
				}
			} else if !errors.Is(err, limit.ErrWaitTooLong) || e.Wait < 33*time.Hour {
				t.Error(err)
			}
			<-waiting.Ready()
			if _, err := waiting.Take(); err == nil || time.Since(start) > time.Minute {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
	})
}

// B045: part intervals are not thrown away.
func TestB045_PartIntervals(t *testing.T) {
	b, _ := limit.NewBucket(limit.PerSecond(10), 10)
	b.Charge(0, 10)
	for _, at := range []time.Duration{0, 90 * ms, 140 * ms, 210 * ms} {
		b.Take(at, 10)
	}
	if c := b.Credit(); c != 2 {
		t.Errorf("%d units by 210 ms, want 2", c)
	}
}

// B046: polled every millisecond for a minute, one a second admits sixty.
func TestB046_PolledOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerSecond(1), Burst: 1}}})
		l.Allow(call)
		n := 0
		for range 60_000 {
			time.Sleep(ms)
			if l.Allow(call) {
				n++
			}
		}
		if n != 60 {
			t.Errorf("%d admitted, want 60", n)
		}
	})
}

// B047: a small deficit is never a wait of zero, so nobody spins.
func TestB047_SmallDeficit(t *testing.T) {
	for _, r := range []limit.Rate{limit.PerMinute(1_000_000), {N: limit.MaxUnits, Window: limit.MinWindow}} {
		b, _ := limit.NewBucket(r, 10)
		b.Take(0, 10)
		wait, err := b.Take(0, 1)
		if err != nil || wait < 1 {
			t.Errorf("%v: wait %v, %v", r, wait, err)
		}
		if again, _ := b.Take(wait, 1); again != 0 {
			t.Errorf("%v: refused again after %v", r, wait)
		}
	}
	synctest.Test(t, func(t *testing.T) { // one look at the clock for each admission
		l := tokenLimiter(t, limit.PerMinute(1_000_000), 1, true)
		start := time.Now()
		for range 1000 {
			l.Wait(context.Background(), tokens(1))
		}
		if d := time.Since(start); d != 1000*60*time.Microsecond {
			t.Errorf("1000 took %v, want 60ms", d)
		}
	})
}

// B048: nothing reads the wall clock, so setting it back has no effect; an
// instant that goes back is refused or ignored and never makes a wait longer.
func TestB048_ClockSetBack(t *testing.T) {
	b, _ := limit.NewBucket(limit.PerSecond(1), 1)
	g, _ := limit.NewGCRA(limit.PerSecond(1), 1)
	b.Take(2*time.Hour, 1)
	g.Take(2*time.Hour, 1)
	b.Charge(time.Hour, 0) // ignored
	g.Charge(time.Hour, 0)
	b.Lower(time.Hour, 5)
	g.Lower(time.Hour, 5)
	for _, f := range []func(time.Duration, int64) (time.Duration, error){b.Take, g.Take} {
		if wait, err := f(2*time.Hour, 1); wait != time.Second || err != nil {
			t.Errorf("wait %v, %v, want 1s", wait, err)
		}
	}
}

// B049: a hundred wait on 300 a minute: the k-th runs at k*200 ms.
func TestB049_WaiterKRunsAtK(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerMinute(300), Burst: 1, Empty: true}}})
		start := time.Now()
		var all sync.WaitGroup
		for k := 1; k <= 100; k++ {
			all.Go(func() {
				if err := l.Wait(context.Background(), call); err != nil {
					t.Error(err)
				}
				if d := time.Since(start); d != time.Duration(k)*200*ms {
					t.Errorf("waiter %d ran at %v", k, d)
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

// B050: a cost above the bucket neither hangs nor slips through.
func TestB050_CostAboveTheBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tokenLimiter(t, limit.PerMinute(100), 100, false)
		start := time.Now()
		_, err := l.Acquire(context.Background(), tokens(200))
		if !errors.Is(err, limit.ErrTooLarge) || time.Since(start) != 0 || creditOf(l) != 100 {
			t.Errorf("%v, credit %d", err, creditOf(l))
		}
	})
}

// B051: by choice, a cost above the burst waits for a full bucket, goes into
// debt, and the next callers repay it.
func TestB051_BorrowAndRepay(t *testing.T) {
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

// B052: the real bound of a burst is stated, and the default for requests is
// small: 15 a minute admit 15 in any minute (half open), not 30.
func TestB052_BurstAndRateInOneWindow(t *testing.T) {
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

// B053: one limit has credit and the other has not: neither is charged.
func TestB053_AllOrNothing(t *testing.T) {
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

// B054: time in the line is bounded.
func TestB054_LongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{
			Limits:  []limit.Limit{{Rate: limit.PerMinute(1), Burst: 1, Empty: true}},
			MaxWait: 2 * time.Second, MaxInFlight: 1,
		})
		start := time.Now()
		if _, err := l.Acquire(context.Background(), call); !errors.Is(err, limit.ErrWaitTooLong) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start)) // known at once
		}
		l.TryAcquire(limit.Cost{})
		if _, err := l.Acquire(context.Background(), limit.Cost{}); !errors.Is(err, limit.ErrWaitTooLong) || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start)) // not known before
		}
	})
}

// B055: a cap of ten, a thousand callers: 990 are refused at once, ten are
// served in order.
func TestB055_CappedLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerSecond(1), Burst: 1, Empty: true}}, MaxQueue: 10})
		start := time.Now()
		var mu sync.Mutex
		var served []int
		refused := 0
		for i := range 1000 {
			go func() {
				err := l.Wait(context.Background(), call)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					served = append(served, i)
				case errors.Is(err, limit.ErrQueueFull) && time.Since(start) == 0:
					refused++
				default:
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if refused != 990 || len(served) != 10 {
			t.Fatalf("%d refused, %d served", refused, len(served))
		}
		for i, k := range served {
			if i != k {
				t.Errorf("served %v", served)
			}
		}
	})
}

// B119: what a burst means is said, and is true.
func TestB119_TheRealBound(t *testing.T) {
	for _, c := range []struct {
		lim  limit.Limit
		want string
		most int64 // in a window
	}{
		{limit.Limit{Rate: limit.PerMinute(1), Burst: 20}, "requests: 1/1m0s after a burst of 20, at most 21 in any 1m0s", 21},
		{limit.Limit{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(60_000)}, "tpm: 60000/1m0s after a burst of 10000 (one cost may be 60000), at most 120000 in any 1m0s", 120_000},
		{limit.Limit{Rate: limit.PerMinute(7), Burst: 1}, "requests: 7/1m0s after a burst of 1, at most 8 in any 1m0s", 8},
		{limit.Limit{Unit: limit.Output}, "output tokens: unlimited", limit.MaxUnits},
		{limit.Limit{Name: "daily", Rate: limit.PerDay(1000)}, "daily: 1000/24h0m0s after a burst of 1000, at most 2000 in any 24h0m0s", 2000},
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
