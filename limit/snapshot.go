package limit

import "time"

// A Snapshot is the state of one scope at one instant, for people and metrics.
// That of a [Limiter] is the root scope, and has the others in Scopes.
type Snapshot struct {
	Scope   string // name; empty for the root
	Options ScopeOptions
	Limits  []LimitState

	Waiting int           // callers in the line that take from the scope
	Oldest  time.Duration // how long the one who came first of them has waited

	InFlight    int // open reservations
	MaxInFlight int // 0 = unlimited

	PausedUntil time.Time // zero = not paused
	PausedBy    string    // who asked for the pause, as said in [Pause]
	PausedWhy   string    // and the reason
	ProbeAt     time.Time // when a single call goes during the pause; zero = never
	Probing     bool      // such a call is under way

	// Served is what was admitted over all time, as settled so far: open
	// reservations count in full, ended ones with what they really cost.
	Served Cost

	// Scopes are the other scopes that the limiter keeps now, in order of their
	// names. Only the root has them.
	Scopes []Snapshot
}

// LimitState is one limit in a [Snapshot].
type LimitState struct {
	Limit            // in force
	Configured Limit // as configured; the zero Rate if it was only put in force
	Capacity   int64 // burst in force, units
	Credit     int64 // units there now, rounded down; 0 in debt
	Debt       int64 // units owed, rounded up; 0 with credit
	Waiting    int64 // units asked for by those who wait for this limit
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
