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

// Defects reproduced in other limiters, each set up here as it was there. The
// gaps in the numbers are defects of retries and of HTTP, tested elsewhere.

func tokens(n int64) limit.Cost { return limit.Cost{Input: n} }

func tokenLimiter(t testing.TB, r limit.Rate, burst int64, empty bool) *limit.Limiter {
	return newLimiter(t, limit.Options{Limits: []limit.Limit{{Name: "tokens", Unit: limit.Tokens, Rate: r, Burst: burst, Empty: empty}}})
}

func creditOf(l *limit.Limiter) int64 {
	s := l.Snapshot().Limits[0]
	return s.Credit - s.Debt
}

// A waits for 10 tokens and gives up at 50 ms; B, who wants one, stood behind
// it. B must go at 100 ms, as if A had never come.
func TestD1_CancelledWaiterFreesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tokenLimiter(t, limit.PerSecond(10), 10, true)
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		time.AfterFunc(50*ms, cancel)
		go l.Acquire(ctx, tokens(10))
		synctest.Wait()
		if err := l.Wait(context.Background(), tokens(1)); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 100*ms {
			t.Errorf("B went at %v, want 100ms", d)
		}
	})
}

// Three reservations on an empty limit, cancelled in order of arrival: nothing
// is left behind, in this order or in any other.
func TestD2_CancelInAnyOrder(t *testing.T) {
	for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}} {
		synctest.Test(t, func(t *testing.T) {
			l := tokenLimiter(t, limit.PerSecond(10), 100, true)
			var tickets [3]*limit.Ticket
			for i := range tickets {
				tickets[i], _ = l.Reserve(tokens(5))
			}
			for _, i := range order {
				tickets[i].Cancel()
			}
			if c := creditOf(l); c != 0 {
				t.Errorf("order %v: credit %d, want 0", order, c)
			}
			// And granted ones, given back in that order.
			time.Sleep(10 * time.Second)
			var held [3]limit.Reservation
			for i := range held {
				held[i], _ = l.TryAcquire(tokens(5))
			}
			for _, i := range order {
				held[i].Return()
			}
			if c := creditOf(l); c != 100 {
				t.Errorf("order %v: credit %d, want 100", order, c)
			}
		})
	}
}

// Granted at once, given back 1 ms later because the send failed: all of it
// comes back.
func TestD3_ReturnAfterTheSlotTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tokenLimiter(t, limit.PerMinute(1), 100, false)
		r, err := l.Acquire(context.Background(), tokens(50))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(ms)
		r.Return()
		if c := creditOf(l); c != 100 {
			t.Errorf("credit %d, want 100", c)
		}
	})
}

// Stamps that alternate between T+10 ms and T earn those 10 ms once.
func TestD4_OldStampsNeverEarn(t *testing.T) {
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

// A thousand goroutines spin on the limiter. What was granted is at most the
// burst and what the rate earned between the first look and the last: no
// credit comes from stamps that cross.
func TestD5_NoPhantomCredit(t *testing.T) {
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

// SetLimit wakes who sleeps on the old rate.
func TestD6_RaisedRateRetimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tokenLimiter(t, limit.PerSecond(1), 1, true)
		start := time.Now()
		time.AfterFunc(10*ms, func() {
			l.SetLimit(limit.Limit{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerSecond(1000), Burst: 1})
		})
		if err := l.Wait(context.Background(), tokens(1)); err != nil {
			t.Fatal(err)
		}
		// 10 ms at 1 a second earned 0.01; 0.99 more take 0.99 ms.
		if d := time.Since(start); d != 10*ms+990*time.Microsecond {
			t.Errorf("went at %v", d)
		}
	})
}

// A refund lets who waits go at once.
func TestD7_RefundShortensTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tokenLimiter(t, limit.PerSecond(100), 100, false)
		held, _ := l.TryAcquire(tokens(100))
		ticket, err := l.Reserve(tokens(70))
		if err != nil {
			t.Fatal(err)
		}
		held.Settle(tokens(0))
		select {
		case <-ticket.Ready():
		default:
			t.Error("the bucket is full and the head still waits")
		}
	})
}

// Ask, be told a wait, sleep exactly that, ask again: never denied.
func TestD8_TheNamedDelaySuffices(t *testing.T) {
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
// TestOracleBucketAndGCRA, over ten million operations. Here the neighbour's
// case, 7 to 30 million a minute.
func TestD9_ExactAgainstIntegers(t *testing.T) {
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

// A missed deadline and a cost above the burst are typed.
func TestD10_TypedRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tokenLimiter(t, limit.PerSecond(1), 10, true)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := l.Acquire(ctx, tokens(5))
		var e *limit.Error
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, limit.ErrWaitTooLong) || !errors.As(err, &e) || e.Wait != 5*time.Second {
			t.Error(err)
		}
		_, err = l.Acquire(ctx, tokens(11))
		if !errors.Is(err, limit.ErrTooLarge) || errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &e) || e.Cost != 11 || e.Capacity != 10 {
			t.Error(err)
		}
		if time.Since(start) != 0 {
			t.Error("refusing took time")
		}
	})
}

// A wall clock that steps back does nothing: only the monotonic reading is
// used, and every wait can be cancelled. (That no instant of the wall clock is
// read is in the code: a limiter knows nanoseconds since it was made.)
func TestD11_WallClockSteps(t *testing.T) {
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
func TestD12_NoTruncatedInterval(t *testing.T) {
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

// A hundred waits cancelled after 1 ms leave the next wait what it was.
func TestD13_CancelledWaitsCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.Rate{N: 10, Window: 10 * time.Hour}, Burst: 1, Empty: true}}})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(ms, cancel)
				if err := l.Wait(ctx, call); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		var e *limit.Error
		if _, err := l.TryAcquire(call); !errors.As(err, &e) || e.Wait != time.Hour-ms {
			t.Errorf("%v", err)
		}
	})
}

// A context that has ended is granted nothing and burns nothing.
func TestD14_EndedContextBurnsNothing(t *testing.T) {
	l := tokenLimiter(t, limit.Rate{N: 1, Window: limit.MaxWindow}, 1000, false)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 1000 {
		if _, err := l.Acquire(ctx, tokens(1)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := l.Wait(ctx, tokens(1)); !errors.Is(err, limit.ErrCanceled) {
			t.Fatal(err)
		}
		if _, err := l.AcquireFirst(ctx, tokens(1)); err == nil {
			t.Fatal("granted")
		}
	}
	if c := creditOf(l); c != 1000 {
		t.Errorf("%d of 1000 left", c)
	}
}

// Rates that cannot be are errors of the constructor; large ones that can be
// are served.
func TestD15_ImpossibleRates(t *testing.T) {
	if _, err := limit.NewBucket(limit.PerSecond(2_000_000_000), 1); err != nil {
		t.Error(err)
	}
	for _, r := range []limit.Rate{limit.PerSecond(0), limit.PerSecond(-1), {}, {N: 1}, {N: 1, Window: -1}} {
		var e *limit.ConfigError
		if _, err := limit.NewBucket(r, 1); !errors.As(err, &e) {
			t.Errorf("bucket %v: %v", r, err)
		}
		if _, err := limit.NewGCRA(r, 1); !errors.As(err, &e) {
			t.Errorf("GCRA %v: %v", r, err)
		}
		if r == (limit.Rate{}) {
			continue // unset: no limit
		}
		if _, err := limit.New(limit.Options{Limits: []limit.Limit{{Rate: r}}}); !errors.As(err, &e) {
			t.Errorf("limiter %v: %v", r, err)
		}
	}
}

// There is no window whose edge can be straddled: in any 60 ms, wherever they
// begin, at most the burst and what 60 ms earn.
func TestD19_NoWindowEdge(t *testing.T) {
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

// A hundred waiters after a pause go in order: no pair is inverted.
func TestD25_OrderAfterAThrottle(t *testing.T) {
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

// No wake-up is lost: with one place and no holding time, everybody gets it,
// and nobody sleeps while it is free.
func TestD26_NoLostWakeUp(t *testing.T) {
	for _, goroutines := range []int{2, 4, 16} {
		l := newLimiter(t, limit.Options{MaxInFlight: 1, MaxQueue: 1 << 20})
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {
				for range 5000 {
					r, err := l.Acquire(context.Background(), call)
					if err != nil {
						t.Error(err)
						return
					}
					r.Keep()
				}
			})
		}
		all.Wait() // a lost wake-up would hang here: nothing else wakes anybody
		if s := l.Snapshot(); s.Waiting != 0 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	}
}
