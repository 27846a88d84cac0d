package meter

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A Snapshotter states the state of a budget: a [*transport.Transport], a
// [*limit.Limiter].
type Snapshotter interface{ Snapshot() limit.Snapshot }

// Watch lets m read the state of the budget of that name, until stop is called.
// The last source of a name counts.
func (m *Meter) Watch(name string, s Snapshotter) (stop func()) {
	b := m.budget(name)
	m.mu.Lock()
	b.source = s
	m.mu.Unlock()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if b.source == s {
			b.source = nil
		}
	}
}

// A Scope is the state of one scope of a budget.
type Scope struct {
	Budget      string        `json:"budget"`
	Name        string        `json:"name"` // "" is the root
	Limits      []Limit       `json:"limits"`
	Waiting     int64         `json:"waiting"`     // calls in the line that take from it
	Oldest      time.Duration `json:"oldest"`      // how long the first of them has waited
	InFlight    int64         `json:"inFlight"`    // calls admitted and not ended
	MaxInFlight int64         `json:"maxInFlight"` // 0 is unlimited
	Pause       *Pause        `json:"pause"`       // nil: not paused
	Degraded    string        `json:"degraded"`    // why the limits are not kept as they should be; empty: they are
	Served      Served        `json:"served"`      // what was admitted over all time, as settled so far
}

// Served is a limit.Cost, as JSON has it.
type Served struct {
	Requests int64 `json:"requests"`
	Input    int64 `json:"input"`  // tokens
	Output   int64 `json:"output"` // tokens
}

// A Pause is an order that nothing leaves.
type Pause struct {
	Until time.Time `json:"until"` // zero: until a probe succeeds
	By    string    `json:"by"`    // who asked for it, as far as is known
	Why   string    `json:"why"`   // in their words, as far as is known
	Probe bool      `json:"probe"` // a single call is under way to find out
}

// A Limit is the state of one limit.
type Limit struct {
	Name     string        `json:"name"`
	Unit     string        `json:"unit"`
	Kind     string        `json:"kind"`     // the law: how the limit counts
	N        int64         `json:"n"`        // units in a window
	Wanted   int64         `json:"wanted"`   // the same as configured, 0 if it was learned
	Window   time.Duration `json:"window"`   // nanoseconds
	Capacity int64         `json:"capacity"` // most that may be there, units
	Credit   int64         `json:"credit"`   // units that may go now; 0 in debt
	Debt     int64         `json:"debt"`     // units owed
	Waiting  int64         `json:"waiting"`  // units that the line asks for
}

// PerSecond is the refill in units a second.
func (l *Limit) PerSecond() float64 { return float64(l.N) / l.Window.Seconds() }

// scopes is the one place that reads a limit.Snapshot.
func scopes(budget string, s limit.Snapshot) []Scope {
	out := make([]Scope, 0, 1+len(s.Scopes))
	out = append(out, scope(budget, &s))
	for i := range s.Scopes {
		out = append(out, scope(budget, &s.Scopes[i]))
	}
	return out
}

func scope(budget string, s *limit.Snapshot) Scope {
	out := Scope{
		Budget: budget, Name: s.Scope, Waiting: int64(s.Waiting), Oldest: s.Oldest,
		InFlight: int64(s.InFlight), MaxInFlight: int64(s.MaxInFlight), Served: Served(s.Served), Degraded: s.Degraded,
		Limits: make([]Limit, 0, len(s.Limits)),
	}
	if !s.PausedUntil.IsZero() || s.Probing {
		out.Pause = &Pause{Until: s.PausedUntil, By: s.PausedBy, Why: s.PausedWhy, Probe: s.Probing}
	}
	for _, l := range s.Limits {
		kind := "bucket"
		if l.Law.Shape != limit.ShapeUnknown {
			kind = l.Law.Shape.String()
		}
		out.Limits = append(out.Limits, Limit{
			Name: l.Name, Unit: l.Unit.String(), Kind: kind, N: l.Rate.N, Wanted: l.Configured.Rate.N, Window: l.Rate.Window,
			Capacity: l.Capacity, Credit: l.Credit - l.Held, Debt: l.Debt, Waiting: l.Waiting,
		})
	}
	return out
}

// part is what a cost takes of a limit.
func (l *Limit) part(c limit.Cost) int64 {
	switch l.Unit {
	case limit.Requests.String():
		return c.Requests
	case limit.Input.String():
		return c.Input
	case limit.Output.String():
		return c.Output
	}
	return c.Input + c.Output
}
