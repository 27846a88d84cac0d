package budget

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// A Scope is what some limits of a provider have in common, and everything that
// answers taught about them: limits, cuts, drains, the streak of refusals, the
// charge rule and the prices of its models. [Budget.Scope] finds it.
//
// It may be used by any number of goroutines.
type Scope struct {
	ledger limit.Ledger
	name   string        // in the ledger; "" is the root
	burst  time.Duration // Options.Burst

	adopt   sync.Once
	profile profile.Profile // set once, before the first call
	charge  atomic.Uint32   // an estimate.Charge: the profile's, or what headers show

	prices Prices
	doubt  doubt

	mu     sync.Mutex // guards below
	dims   []*dimension
	shape  shape
	rest   time.Time // when the last drain opens or opened
	unused []quota   // that are no counters
	streak streak
}

// Adopt gives the scope the profile of its provider. The first profile counts;
// later ones change nothing, so that Transports that share a budget cannot undo
// each other's limits or empty credit that is in use. It reports whether p was
// the first.
func (s *Scope) Adopt(now time.Time, p profile.Profile) (first bool) {
	s.adopt.Do(func() {
		first = true
		s.profile = p
		s.charge.Store(uint32(p.Rule.Charge))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shape = shapeOf(&p, s.burst)
		for _, d := range s.dims {
			if d.configured.Unit == limit.Tokens {
				d.configured.Unit = s.shape.tokens
			}
			s.study(d, now)
			s.apply(d, now)
			if p.StartEmpty {
				s.ledger.DrainScope(s.name, d.limit.Name, 0, 0)
			}
		}
	})
	return first
}

// Profile is the adopted profile, the zero Profile before [Scope.Adopt].
func (s *Scope) Profile() *profile.Profile { return &s.profile }

// Rule is the charge rule in force for a model.
func (s *Scope) Rule(model string) estimate.Rule {
	r := s.profile.Rule
	if len(s.profile.Factors) > 0 { // few have any: the others need not be copied as a whole
		r = s.profile.RuleFor(model)
	}
	if c := estimate.Charge(s.charge.Load()); c != r.Charge {
		r.Charge, r.ReserveCap = c, c != estimate.ChargeActual
	}
	return r
}

// configure adds a limit of the ledger: as the user configured it, zero if it was
// only learned, and as it is in force.
func (s *Scope) configure(configured, inForce limit.Limit) {
	d := &dimension{limit: inForce, configured: configured}
	if configured.Rate.N == 0 {
		d.said = inForce.Rate.N // learned by another before
	}
	s.dims = append(s.dims, d)
	s.study(d, time.Now())
	s.apply(d, time.Now())
}

// apply brings the ledger to what is known of d. It reports a change. The caller
// holds s.mu.
func (s *Scope) apply(d *dimension, now time.Time) (old limit.Limit, changed bool) {
	old = d.limit
	if !d.law.until.IsZero() && !now.Before(d.law.until) {
		s.study(d, now) // another day
	}
	if l := d.effective(s.shape, now); l != old {
		d.limit = l
		s.ledger.EnforceScopeLimit(s.name, l) // cannot fail: every value is within bounds
		return old, true
	}
	return old, false
}

// A quota is the unit and the window of a header's fields.
type quota struct {
	unit   limit.Unit
	window time.Duration
}

// counts reports whether fields of a unit and a window are a counter, as far as is
// known. The caller holds s.mu.
func (s *Scope) counts(u limit.Unit, window time.Duration, now time.Time) bool {
	if d := s.find(u, window); d != nil {
		return !d.law.row.Unused
	}
	if slices.Contains(s.unused, quota{u, window}) {
		return false
	}
	if row, ok := recorded(&s.profile, u, window, now); ok && row.Unused {
		s.unused = append(s.unused, quota{u, window})
		return false
	}
	return true
}

// find returns the dimension of a unit and a window, nil if there is none. The
// caller holds s.mu.
func (s *Scope) find(u limit.Unit, window time.Duration) *dimension {
	for _, d := range s.dims {
		if d.limit.Unit == u && d.limit.Rate.Window == window {
			return d
		}
	}
	return nil
}

// ask makes room for a call of cost c where the provider has shown to hold less.
// Such a call must wait until as much as it costs has been refilled. At a smaller
// capacity it would go when the bucket is full, long before that, and leave debt.
func (s *Scope) ask(now time.Time, c limit.Cost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.dims {
		if n := part(d.limit.Unit, c); n > d.asked {
			d.asked = n
			if d.shown > 0 && n > d.limit.Burst {
				s.apply(d, now)
			}
		}
	}
}

// use notes what an attempt takes: its cost when it leaves, less when it is
// refused or settled.
func (s *Scope) use(now time.Time, c limit.Cost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.dims {
		d.used.add(now, d.limit.Rate.Window, part(d.limit.Unit, c))
	}
}

// admitted notes that the attempt that left at sent was not refused. It ends the
// streak, and cut rates grow back.
func (s *Scope) admitted(now, sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streak.admitted(sent)
	for _, d := range s.dims {
		if d.cut.active() {
			s.apply(d, now)
		}
	}
}
