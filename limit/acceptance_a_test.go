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

// Acceptance A: a token bucket for tool calls. Capacity B, refill r a second,
// current T. Under a lock T = min(B, T + r*elapsed); a request costing c is
// admitted only when T >= c, then c is subtracted.

func newLimiter(t testing.TB, o limit.Options) *limit.Limiter {
	t.Helper()
	l, err := limit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var call = limit.Cost{Requests: 1}

// B = 3, r = 2: three go at once, the fourth needs half a second.
func TestA_ThreeAtOnceTheFourthWaits(t *testing.T) {
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

// Capacity limits the burst, not the number running: that is a gate of its own.
func TestA_CapacityIsNotConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{
			Limits:      []limit.Limit{{Rate: limit.PerSecond(10), Burst: 3}},
			MaxInFlight: 5,
		})
		var open []limit.Reservation
		for range 5 { // more than the capacity run at once
			r, err := l.Acquire(context.Background(), call)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, r)
		}
		time.Sleep(time.Second)
		var e *limit.Error
		if _, err := l.TryAcquire(call); !errors.As(err, &e) || e.Dimension != "in-flight" {
			t.Errorf("a sixth: %v", err)
		}
		open[0].Keep()
		if _, err := l.TryAcquire(call); err != nil {
			t.Errorf("after one ended: %v", err)
		}
	})
}

// A cost above B is refused at once, typed, and nothing is changed.
func TestA_CostAboveCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerSecond(2), Burst: 3}}})
		start := time.Now()
		if _, err := l.Acquire(context.Background(), limit.Cost{Requests: 4}); !errors.Is(err, limit.ErrTooLarge) {
			t.Error(err)
		}
		if time.Since(start) != 0 || l.Snapshot().Limits[0].Credit != 3 {
			t.Errorf("it took %v and left %+v", time.Since(start), l.Snapshot())
		}
	})
}

// The earliest local wait is (c - T)/r, rounded up to the nanosecond.
func TestA_EarliestWait(t *testing.T) {
	for _, c := range []struct{ rate, burst, spent, cost, want int64 }{
		{2, 3, 3, 1, 500_000_000},
		{2, 3, 2, 3, 1_000_000_000},
		{3, 5, 5, 2, 666_666_667},
		{7, 9, 8, 9, 1_142_857_143},
	} {
		b, err := limit.NewBucket(limit.PerSecond(c.rate), c.burst)
		if err != nil {
			t.Fatal(err)
		}
		if wait, _ := b.Take(0, c.spent); wait != 0 {
			t.Fatal(wait)
		}
		if wait, _ := b.Take(0, c.cost); int64(wait) != c.want {
			t.Errorf("%+v: wait %d", c, wait)
		}
	}
}

// r > 0 is validated; queued work is capped.
func TestA_ValidatedAndCapped(t *testing.T) {
	for _, rate := range []limit.Rate{limit.PerSecond(-1), {N: 0, Window: time.Second}} {
		var e *limit.ConfigError
		if _, err := limit.New(limit.Options{Limits: []limit.Limit{{Rate: rate}}}); !errors.As(err, &e) || e.Field != "Limits[0].Rate.N" {
			t.Errorf("%v: %v", rate, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerSecond(1), Burst: 1}}, MaxQueue: 2})
		l.Allow(call)
		for range 2 {
			if _, err := l.Reserve(call); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Reserve(call); !errors.Is(err, limit.ErrQueueFull) {
			t.Error(err)
		}
	})
}

// A longer hint of the server is honoured: nothing leaves before it.
func TestA_LongerServerHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerSecond(2), Burst: 3}}})
		for range 3 {
			l.Allow(call)
		}
		start := time.Now()
		l.Pause(4 * time.Second) // the local wait is half a second
		if err := l.Wait(context.Background(), call); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 4*time.Second {
			t.Errorf("went after %v", d)
		}
		// A shorter hint shortens nothing.
		start = time.Now()
		l.Pause(time.Millisecond)
		if err := l.Wait(context.Background(), call); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 500*time.Millisecond {
			t.Errorf("went after %v", d)
		}
	})
}

// Callers on all processors meet at the boundary: exactly the credit that
// exists is granted. Run it with -race.
func TestA_ConcurrentCallersAtTheBoundary(t *testing.T) {
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
func TestA_AllocatedSubBudgets(t *testing.T) {
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

// For any tool call, not only HTTP: one line, whatever it returns.
func TestA_AnyToolCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerSecond(1), Burst: 1}}})
		lookup := limit.Wrap(l, call, func(context.Context) (string, error) { return "found", nil })
		start := time.Now()
		for range 3 {
			if v, err := lookup(context.Background()); v != "found" || err != nil {
				t.Fatal(v, err)
			}
		}
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("three calls took %v", d)
		}
	})
}
