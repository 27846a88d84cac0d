package limit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// The earliest local wait is (c - T)/r, rounded up to the nanosecond.
func TestEarliestWaitIsMissingCreditByRate(t *testing.T) {
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

// A longer hint of the server is honoured: nothing leaves before it.
func TestNothingLeavesBeforeALongerPause(t *testing.T) {
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

// Blocking, non-blocking and rejecting use of one limiter.
func TestOneLimiterWaitsAllowsAndReserves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Name: "rps", Rate: limit.PerSecond(1), Burst: 1}}})
		if !l.Allow(call) || l.Allow(call) { // reject, no reason asked
			t.Error("Allow")
		}
		var e *limit.Error
		if _, err := l.TryAcquire(call); !errors.Is(err, limit.ErrLimited) || !errors.As(err, &e) || e.Wait != time.Second || e.Dimension != "rps" { // reject, with the reason
			t.Errorf("TryAcquire: %v", err)
		}
		start := time.Now()
		if err := l.Wait(context.Background(), call); err != nil || time.Since(start) != time.Second { // block
			t.Errorf("Wait: %v after %v", err, time.Since(start))
		}
		ticket, err := l.Reserve(call) // select
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-ticket.Ready():
			t.Error("ready at once")
		case <-time.After(time.Second - 1):
		}
		select {
		case <-ticket.Ready():
		case <-time.After(1):
			synctest.Wait()
		}
		r, err := ticket.Take()
		if err != nil {
			t.Error(err)
		}
		r.Keep()
	})
}

// Ask, get a named wait, sleep exactly that, ask again: never denied.
func TestNamedDelaySuffices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, r := range []limit.Rate{limit.PerMinute(7), limit.PerMinute(500), limit.PerMinute(3500), limit.PerMinute(450_000)} {
			l := tokenLimiter(t, r, 3, true)
			for i := range 3000 {
				cost := tokens(1 + int64(i%3))
				var e *limit.Error
				if _, err := l.TryAcquire(cost); !errors.As(err, &e) {
					continue // still there from the last round
				}
				time.Sleep(e.Wait - 1)
				if l.Allow(cost) {
					t.Fatalf("%v: admitted 1 ns early", r)
				}
				time.Sleep(time.Nanosecond)
				if !l.Allow(cost) {
					t.Fatalf("%v: denied after sleeping %v", r, e.Wait)
				}
			}
		}
	})
}

// Against big integers no decision differs, and the error is not small but 0:
// TestOracleBucketAndGCRA, over ten million operations. Here another limiter's
// case, 7 to 30 million a minute.
func TestThirtyMillionAMinuteIsExact(t *testing.T) {
	for _, n := range []int64{7_000_000, 7_919_000, 29_000_000, 30_000_000} {
		b, _ := limit.NewBucket(limit.PerMinute(n), limit.MaxUnits)
		b.Charge(0, limit.MaxUnits)
		for i := time.Duration(1); i <= 100_000; i++ {
			b.Take(i*600_000-i%7, limit.MaxUnits) // a minute of polls
		}
		b.Take(time.Minute, limit.MaxUnits)
		if b.Credit() != n {
			t.Errorf("%d a minute: credit %d after a minute of polls", n, b.Credit())
		}
	}
}

// A hundred waiters after a pause go in order: no pair is inverted.
func TestOrderIsKeptAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerSecond(50), Burst: 5}}})
		l.Pause(3 * time.Second)
		var mu sync.Mutex
		var order []int
		for i := range 100 {
			go func() {
				r, err := l.Acquire(context.Background(), call)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(ms)
				r.Settle(limit.Cost{})
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		inverted := 0
		for i := range order {
			for j := i + 1; j < len(order); j++ {
				if order[i] > order[j] {
					inverted++
				}
			}
		}
		if len(order) != 100 || inverted != 0 {
			t.Errorf("%d went, %d of 4950 pairs inverted", len(order), inverted)
		}
	})
}

// A small deficit is never a wait of zero, so nobody spins.
//
// Report: scylladb/seastar#1722
func TestSmallDeficitIsNeverAWaitOfZero(t *testing.T) {
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

// A hundred wait on 300 a minute: the k-th runs at k*200 ms.
//
// Report: sidekiq/sidekiq#5315
func TestWaiterKRunsAtItsInstant(t *testing.T) {
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
