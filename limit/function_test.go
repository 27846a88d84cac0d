package limit_test

import (
	"github.com/tripmeter/tripmeter/limit"

	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// For any tool call, not only HTTP: one line of code, for any type of result.
func TestAnyFunctionCanBeLimited(t *testing.T) {
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

// Wrap is applied to a function by a declaration, for any type of result. A refusal
// reaches the caller without the function being run.
func TestWrappedFunctionIsNotRunWhenRefused(t *testing.T) {
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
		ticket, _ := l.Reserve(call)
		defer ticket.Cancel()
		if v, err := square(ctx); v != 0 || !errors.Is(err, limit.ErrWaitTooLong) || runs != 2 {
			t.Error(v, err, runs)
		}

		tokens := newLimiter(t, limit.Options{Limits: []limit.Limit{{Unit: limit.Tokens, Rate: limit.PerMinute(60), Burst: 100}}, MaxInFlight: 1})
		failed := errors.New("failed")
		if _, err := limit.Do(ctx, tokens, limit.Cost{Input: 70}, func(context.Context) (int, error) { return 0, failed }); err != failed || creditOf(tokens) != 30 {
			t.Error(creditOf(tokens), err) // the cost is kept
		}
		why := errors.New("the user left")
		gone, cancel := context.WithCancelCause(ctx)
		cancel(why)
		if _, err := limit.Do(gone, tokens, limit.Cost{Input: 1}, func(context.Context) (int, error) { panic("run") }); !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
			t.Error(err)
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
