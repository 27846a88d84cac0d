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

// A waits for 10 tokens and gives up at 50 ms; B, who wants one, stood behind
// it. B must go at 100 ms, as if A had never come.
func TestCancelledWaiterFreesTheNext(t *testing.T) {
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
func TestReservationsEndInAnyOrder(t *testing.T) {
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
func TestReturnAfterItsInstantGivesAllBack(t *testing.T) {
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

// A refund lets who waits go at once.
func TestRefundShortensTheWait(t *testing.T) {
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

// A hundred waits cancelled after 1 ms do not change the next wait.
func TestCancelledWaitsCostNothing(t *testing.T) {
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
func TestEndedContextBurnsNothing(t *testing.T) {
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

// Cancelling one reservation while later ones exist gives back exactly
// its own.
//
// Report: golang/go#69419, #56924
func TestEachCancelGivesBackItsOwn(t *testing.T) {
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

// A hundred wait, ninety-nine give up: the survivor runs as if the others
// had never come, and the limiter is as open as before.
//
// Report: thomhurst/Kevlar#15, cadence-workflow/cadence#6030
func TestSurvivorOfManyCancels(t *testing.T) {
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
