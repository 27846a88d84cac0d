package limit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// Acceptance D: the GCRA limiter.

// The theoretical arrival time form answers as the bucket does: here in a
// ledger that can be read; TestOracleBucketAndGCRA holds them equal at random.
func TestD_TheoreticalArrivalTime(t *testing.T) {
	g, err := limit.NewGCRA(limit.PerSecond(10), 3) // a unit each 100 ms
	if err != nil {
		t.Fatal(err)
	}
	b, _ := limit.NewBucket(limit.PerSecond(10), 3)
	for _, row := range []struct {
		at     time.Duration
		cost   int64
		wait   time.Duration
		credit int64 // after
	}{
		{0, 1, 0, 2},
		{0, 1, 0, 1},
		{0, 1, 0, 0},
		{0, 1, 100 * ms, 0},
		{99 * ms, 1, 1 * ms, 0},
		{100*ms - 1, 1, 1, 0},
		{100 * ms, 1, 0, 0},
		{250 * ms, 2, 50 * ms, 1},
		{250 * ms, 1, 0, 0},
		{10_000 * ms, 0, 0, 3}, // idling earns a burst and no more
		{10_000 * ms, 3, 0, 0},
		{10_000 * ms, 1, 100 * ms, 0},
	} {
		for name, f := range map[string]interface {
			Take(time.Duration, int64) (time.Duration, error)
			Credit() int64
		}{"GCRA": g, "bucket": b} {
			wait, err := f.Take(row.at, row.cost)
			if err != nil || wait != row.wait || f.Credit() != row.credit {
				t.Errorf("%s at %v, cost %d: wait %v, %v, credit %d; want %v, %d", name, row.at, row.cost, wait, err, f.Credit(), row.wait, row.credit)
			}
		}
	}
}

// max_burst bounds what idling earns: the arrival time is pulled up to now.
func TestD_IdlingEarnsABurst(t *testing.T) {
	for burst := int64(1); burst < 50; burst++ {
		for _, idle := range []time.Duration{0, time.Nanosecond, time.Hour, 200 * 365 * 24 * time.Hour} {
			g, err := limit.NewGCRA(limit.PerMinute(7_919), burst)
			if err != nil {
				t.Fatal(err)
			}
			n := int64(0)
			for {
				if wait, err := g.Take(idle, 1); err != nil {
					t.Fatal(err)
				} else if wait > 0 {
					break
				}
				n++
			}
			if n != burst {
				t.Errorf("burst %d after %v: %d", burst, idle, n)
			}
		}
	}
}

// Blocking, non-blocking and rejecting use of one limiter.
func TestD_ThreeUses(t *testing.T) {
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

// A cost above max_burst is always refused, never an endless wait; rate and
// capacity of zero or less are refused at construction.
func TestD_RefusedAlways(t *testing.T) {
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

// The wait is accurate to the rate: capacity goes as a burst, the excess is
// throttled, each unit at its exact instant.
func TestD_BurstThenThrottled(t *testing.T) {
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

// limited is a small interface behind which a limiter can be injected.
type limited interface {
	Wait(context.Context, limit.Cost) error
}

var _ limited = (*limit.Limiter)(nil)

// Applied to a function by a declaration; whatever the function returns, and a
// refusal reaches the caller without the function being run.
func TestD_Declarative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Rate: limit.PerSecond(1), Burst: 1}}, MaxWait: time.Second, MaxInFlight: 9})
		runs := 0
		square := limit.Wrap(l, call, func(context.Context) (int, error) { runs++; return runs * runs, nil })
		ctx := context.Background()
		if v, err := square(ctx); v != 1 || err != nil {
			t.Error(v, err)
		}
		if v, err := square(ctx); v != 4 || err != nil {
			t.Error(v, err)
		}
		l.Reserve(call)
		if v, err := square(ctx); v != 0 || !errors.Is(err, limit.ErrWaitTooLong) || runs != 2 {
			t.Error(v, err, runs)
		}

		tokens := newLimiter(t, limit.Options{Limits: []limit.Limit{{Unit: limit.Tokens, Rate: limit.PerMinute(60), Burst: 100}}, MaxInFlight: 1})
		failed := errors.New("failed")
		settle := func(actual limit.Cost, err error) (int64, error) {
			_, err = limit.DoSettle(ctx, tokens, limit.Cost{Input: 50}, func(context.Context) (struct{}, limit.Cost, error) {
				return struct{}{}, actual, err
			})
			return tokens.Snapshot().Limits[0].Credit, err
		}
		if credit, err := settle(limit.Cost{Input: 20}, nil); credit != 80 || err != nil {
			t.Error(credit, err)
		}
		if credit, err := settle(limit.Cost{Input: 20}, failed); credit != 30 || !errors.Is(err, failed) { // the estimate stands
			t.Error(credit, err)
		}
		func() {
			defer func() { recover() }()
			limit.Do(ctx, tokens, limit.Cost{Input: 10}, func(context.Context) (int, error) { panic("tool") })
		}()
		if s := tokens.Snapshot(); s.InFlight != 0 || s.Limits[0].Credit != 20 {
			t.Errorf("after a panic: %+v", s)
		}
	})
}
