package limit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func mustNew(t testing.TB, o Options) *Limiter {
	t.Helper()
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Twenty callers on 60 a minute with a burst of 1 get twenty staggered
// starts, in the order in which they came.
func TestLineStaggersStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Rate: PerMinute(60), Burst: 1}}})
		start := time.Now()
		got := make(chan int, 20)
		for i := range 20 {
			go func() {
				r, err := l.Acquire(context.Background(), Cost{Requests: 1})
				if err != nil {
					t.Error(err)
				}
				if at := time.Since(start); at != time.Duration(i)*time.Second {
					t.Errorf("caller %d went at %v", i, at)
				}
				got <- i
				r.Keep()
			}()
			synctest.Wait()
		}
		for i := range 20 {
			if g := <-got; g != i {
				t.Fatalf("caller %d went in place %d", g, i)
			}
		}
	})
}

// A refund lets the head go at once.
func TestRefundWakesHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Unit: Tokens, Rate: PerMinute(60), Burst: 10}}})
		ctx := context.Background()
		start := time.Now()
		a, _ := l.Acquire(ctx, Cost{Input: 10})
		done := make(chan time.Duration)
		go func() {
			b, err := l.Acquire(ctx, Cost{Input: 5})
			if err != nil {
				t.Error(err)
			}
			done <- time.Since(start)
			b.Keep()
		}()
		time.Sleep(time.Second)
		a.Settle(Cost{Input: 4}) // 6 back, 1 refilled
		a.Settle(Cost{})         // a second end does nothing
		if d := <-done; d != time.Second {
			t.Fatalf("went at %v, want 1s", d)
		}
		if s := l.Snapshot(); s.Limits[0].Credit != 2 || s.InFlight != 0 {
			t.Fatalf("%+v", s)
		}
	})
}
