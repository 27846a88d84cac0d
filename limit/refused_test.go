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

// A cost above B is refused at once, typed, and nothing is changed.
func TestCostAboveCapacityIsRefusedAtOnce(t *testing.T) {
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

// r > 0 is validated; queued work is capped.
func TestRatesAreValidatedAndTheLineIsCapped(t *testing.T) {
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

// A cost above max_burst is always refused, never an endless wait; rate and
// capacity of zero or less are refused at construction.
func TestCostAboveTheBurstIsAlwaysRefused(t *testing.T) {
	g, _ := limit.NewGCRA(limit.PerSecond(10), 3)
	for _, at := range []time.Duration{0, time.Hour, 1 << 62} {
		if _, err := g.Take(at, 4); !errors.Is(err, limit.ErrTooLarge) {
			t.Errorf("at %v: %v", at, err)
		}
	}
	l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerSecond(10), Burst: 3}}})
	if err := l.Wait(context.Background(), limit.Cost{Requests: 4}); !errors.Is(err, limit.ErrTooLarge) {
		t.Error(err)
	}
	for _, c := range []struct{ rate, burst int64 }{{0, 1}, {-1, 1}, {1, 0}, {1, -1}, {0, 0}} {
		var e *limit.ConfigError
		if _, err := limit.NewGCRA(limit.PerSecond(c.rate), c.burst); !errors.As(err, &e) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A missed deadline and a cost above the burst are typed.
func TestMissedDeadlineAndLargeCostAreTyped(t *testing.T) {
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

// Rates that cannot be are errors of the constructor; large ones that can be
// are served.
func TestImpossibleRatesAreConstructorErrors(t *testing.T) {
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

// Failing fast on the deadline is recognisable, as the package's error
// and as the context's, and so is running into it.
//
// Report: golang/go#54541
func TestDeadlineErrorsAreTheContextsToo(t *testing.T) {
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

// A cost above the burst says so with both numbers; unlimited never errs.
//
// Report: golang/go#80698, golang/go#16854
func TestCostAboveBurstNamesBothNumbers(t *testing.T) {
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

// A cost above the bucket neither hangs nor slips through.
//
// Report: run-llama/llama_index#23202
func TestCostAboveTheBucketNeitherHangsNorSlipsThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tokenLimiter(t, limit.PerMinute(100), 100, false)
		start := time.Now()
		_, err := l.Acquire(context.Background(), tokens(200))
		if !errors.Is(err, limit.ErrTooLarge) || time.Since(start) != 0 || creditOf(l) != 100 {
			t.Errorf("%v, credit %d", err, creditOf(l))
		}
	})
}

// Time in the line is bounded.
//
// Report: mjpieters/aiolimiter#176, diegosouzapw/OmniRoute#301
func TestTimeInTheLineIsBounded(t *testing.T) {
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

// A cap of ten, a thousand callers: 990 are refused at once, ten are
// served in order.
//
// Report: failsafe-lib/failsafe#328
func TestCappedLineServesInOrder(t *testing.T) {
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
