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

// SetLimit wakes who sleeps on the old rate.
func TestRaisedRateRetimesTheLine(t *testing.T) {
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

// A change of rate re-times all who wait. A default burst follows the rate; an
// explicit burst is that of the new Limit.
//
// Report: golang/go#23575
func TestDefaultBurstFollowsTheRate(t *testing.T) {
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

// The rate is cut from 950,000 to 100 a minute and a cost of 200,000 waits or
// comes. With a default burst the capacity follows the rate, and the cost is
// refused as too large. With an explicit burst the wait of 33 hours is reported,
// and bounded by the longest wait.
//
// Report: 54yyyu/zotero-mcp#548, #549
func TestRateCutToAlmostNothing(t *testing.T) {
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
