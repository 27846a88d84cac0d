package redislimit_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/limit/limittest"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

type suite struct{ *redislimit.Limiter }

func (s suite) Acquire(ctx context.Context, c limit.Cost) (limittest.Reservation, error) {
	return s.Limiter.Acquire(ctx, c)
}
func (s suite) TryAcquire(c limit.Cost) (limittest.Reservation, error) {
	return s.Limiter.TryAcquire(c)
}
func (s suite) Pause(d time.Duration)        { s.PauseScope("", limit.Pause{For: d}) }
func (s suite) SetLimit(l limit.Limit) error { return s.SetScopeLimit("", l) }

func TestPromises(t *testing.T) {
	server := redistest.Start(t)
	for name, via := range clients {
		t.Run(name, func(t *testing.T) {
			runner := via(t, server.Addr)
			var n atomic.Int64
			limittest.Run(t, func(t *testing.T, o limit.Options) limittest.Limiter {
				return suite{open(t, redislimit.Options{Name: fmt.Sprint(name, n.Add(1)), Runner: runner,
					Limits: o.Limits, MaxInFlight: o.MaxInFlight, MaxQueue: o.MaxQueue, MaxWait: o.MaxWait})}
			}, limittest.WallTime(50*time.Millisecond))
		})
	}
}
