package limit

import "time"

// A Snapshot is the state of a [Limiter] at one instant, for people and
// metrics.
type Snapshot struct {
	Limits      []LimitState
	Waiting     int       // callers in the line
	InFlight    int       // open reservations
	MaxInFlight int       // 0 = unlimited
	PausedUntil time.Time // zero = not paused
}

// LimitState is one limit in a [Snapshot].
type LimitState struct {
	Limit          // as configured, or as last set
	Capacity int64 // burst in force, units
	Credit   int64 // units there now, rounded down; 0 in debt
	Debt     int64 // units owed, rounded up; 0 with credit
	Waiting  int64 // units asked for by the line
}

// Snapshot returns the state now. It takes the lock for a moment and changes
// nothing.
func (l *Limiter) Snapshot() Snapshot {
	l.lock()
	defer l.mu.Unlock()
	now := l.now()
	s := Snapshot{
		Limits:      make([]LimitState, 0, len(l.limits)),
		Waiting:     l.line.n + l.first.n,
		InFlight:    l.open.n,
		MaxInFlight: l.maxInFlight,
	}
	if l.pausedUntil > now {
		s.PausedUntil = l.base.Add(time.Duration(l.pausedUntil))
	}
	ahead := l.ahead(&l.line).amounts()
	for i := range l.limits {
		b := &l.limits[i]
		b.advance(now)
		c := b.Credit()
		s.Limits = append(s.Limits, LimitState{
			Limit: *b.cfg, Capacity: b.burst,
			Credit: max(0, c), Debt: max(0, -c), Waiting: ahead.in(b.unit),
		})
	}
	return s
}
