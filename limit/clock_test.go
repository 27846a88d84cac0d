package limit_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// Stamps that alternate between T+10 ms and T earn those 10 ms once.
func TestOldStampsNeverEarn(t *testing.T) {
	b, err := limit.NewBucket(limit.PerSecond(1000), 100)
	if err != nil {
		t.Fatal(err)
	}
	g, _ := limit.NewGCRA(limit.PerSecond(1000), 100)
	for name, take := range map[string]func(time.Duration, int64) (time.Duration, error){"bucket": b.Take, "GCRA": g.Take} {
		granted := 0
		for range 1000 {
			for _, at := range []time.Duration{time.Second + 10*ms, time.Second} {
				if wait, err := take(at, 1); err == nil && wait == 0 {
					granted++
				}
			}
		}
		if granted != 100 { // full at T+10 ms, and that is the only instant seen
			t.Errorf("%s: %d grants, want 100", name, granted)
		}
	}
	// Charges with old stamps neither.
	for range 1000 {
		b.Charge(2*time.Second, 1)
		b.Charge(time.Second, 1)
	}
	if c := b.Credit(); c != 100-2000 {
		t.Errorf("credit %d, want %d", c, 100-2000)
	}
}

// A thousand goroutines spin on the limiter. They are granted at most the burst and
// what the rate earned between the first look and the last: no credit comes from
// stamps that cross.
func TestNoCreditComesFromStampsThatCross(t *testing.T) {
	const rate, burst = 100_000, 100
	l := tokenLimiter(t, limit.PerSecond(rate), burst, false)
	var granted atomic.Int64
	var all sync.WaitGroup
	start := time.Now().Add(-time.Microsecond)
	for i := range 1000 {
		all.Go(func() {
			for range 200 {
				switch i % 4 {
				case 0:
					if l.Allow(tokens(1)) {
						granted.Add(1)
					}
				case 1:
					if r, err := l.TryAcquire(tokens(1)); err == nil {
						r.Keep()
						granted.Add(1)
					}
				case 2: // reserve and give back: for nothing
					if r, err := l.TryAcquire(tokens(1)); err == nil {
						runtime.Gosched()
						r.Return()
					}
				case 3:
					if r, err := l.TryAcquire(tokens(2)); err == nil {
						r.Settle(tokens(1))
						granted.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	most := burst + limit.PerSecond(rate).In(time.Since(start))
	if n := granted.Load(); n > most || n < burst {
		t.Errorf("%d granted, at most %d were earned", n, most)
	}
}

// A wall clock that steps back does nothing: only the monotonic reading is
// used, and every wait can be cancelled. (That no instant of the wall clock is
// read is in the code: a limiter knows nanoseconds since it was made.)
func TestOnlyTheMonotonicReadingCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tokenLimiter(t, limit.PerSecond(100), 1, true)
		// A deadline without a monotonic reading is judged by the wall clock
		// that it was set by, and still ends the wait.
		ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(5*ms).Round(0))
		defer cancel()
		if _, err := l.Acquire(ctx, tokens(1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		start := time.Now()
		if err := l.Wait(context.Background(), tokens(1)); err != nil || time.Since(start) != 10*ms {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
	b, _ := limit.NewBucket(limit.PerSecond(100), 1)
	b.Take(time.Hour, 1)
	if _, err := b.Take(0, 1); !errors.Is(err, limit.ErrBackwards) { // an hour back
		t.Error(err)
	}
	if wait, err := b.Take(time.Hour, 1); wait != 10*ms || err != nil {
		t.Errorf("wait %v, %v, want 10ms", wait, err)
	}
}

// No interval per unit is ever cut to whole nanoseconds.
func TestNoIntervalIsCutToWholeNanoseconds(t *testing.T) {
	for _, r := range []limit.Rate{
		limit.PerSecond(300_000_000), limit.PerSecond(2_000_000_000),
		limit.PerMinute(90_000_000), limit.PerMinute(29_000_000), limit.PerMinute(450_000),
	} {
		b, _ := limit.NewBucket(r, limit.MaxUnits)
		b.Charge(0, limit.MaxUnits)
		const span = 100 * time.Second
		for at := time.Duration(0); at <= span; at += 999_983 {
			b.Take(at, limit.MaxUnits)
		}
		b.Take(span, limit.MaxUnits)
		if got, want := b.Credit(), r.In(span); got != want {
			t.Errorf("%v: %d in %v, want %d", r, got, span, want)
		}
	}
}

// Part intervals are not thrown away.
//
// Report: mennanov/limiters#11, mofa-org/mofa#1191
func TestPartIntervalsAreKept(t *testing.T) {
	b, _ := limit.NewBucket(limit.PerSecond(10), 10)
	b.Charge(0, 10)
	for _, at := range []time.Duration{0, 90 * ms, 140 * ms, 210 * ms} {
		b.Take(at, 10)
	}
	if c := b.Credit(); c != 2 {
		t.Errorf("%d units by 210 ms, want 2", c)
	}
}

// Polled every millisecond for a minute, one a second admits sixty.
//
// Report: scylladb/seastar#1723, #1801
func TestPolledOftenAdmitsTheRate(t *testing.T) {
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

// Nothing reads the wall clock, so setting it back has no effect; an
// instant that goes back is refused or ignored and never makes a wait longer.
//
// Report: juju/ratelimit#22
func TestClockSetBackChangesNothing(t *testing.T) {
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
