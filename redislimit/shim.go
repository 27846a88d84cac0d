package redislimit

import (
	"context"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

func newShare(limits []limit.Limit, places, queue int) limit.Ledger {
	x, err := limit.New(limit.Options{Limits: limits, MaxInFlight: places, MaxQueue: queue})
	if err != nil {
		panic(err)
	}
	return shim{x}
}

type shim struct{ l *limit.Limiter }

func (s shim) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	if a.First {
		return s.l.AcquireFirst(ctx, a.Cost)
	}
	return s.l.Acquire(ctx, a.Cost)
}
func (s shim) TryAdmit(a limit.Ask) (limit.Reservation, error) { return s.l.TryAcquire(a.Cost) }
func (s shim) Forecast(a limit.Ask) limit.Forecast             { return limit.Forecast{} }
func (s shim) SetScope(string, limit.ScopeOptions) error       { return nil }
func (s shim) SetScopeLimit(scope string, l limit.Limit) error {
	if scope == "" {
		return s.l.SetLimit(l)
	}
	return nil
}
func (s shim) EnforceScopeLimit(scope string, l limit.Limit) error { return s.SetScopeLimit(scope, l) }
func (s shim) PauseScope(scope string, p limit.Pause)              { s.l.Pause(p.For) }
func (s shim) ResumeScope(string)                                  {}
func (s shim) DrainScope(scope, name string, keep int64, d time.Duration) bool {
	return s.l.Drain(name, keep, d)
}
func (s shim) Snapshot() limit.Snapshot { return s.l.Snapshot() }
