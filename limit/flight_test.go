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

// Capacity limits the burst, not the number running: that is a gate of its own.
func TestCapacityIsNotConcurrency(t *testing.T) {
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

// No wake-up is lost: with one place and no holding time, everybody gets it,
// and nobody sleeps while it is free.
func TestNoWakeUpIsLost(t *testing.T) {
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
