package budget

import (
	"strconv"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A Refusal is what a provider said when it refused an attempt.
type Refusal struct {
	// Wait is how long nothing leaves, from now on: what the provider named or,
	// where it named nothing, when the next attempt goes. 0 is no wait.
	Wait time.Duration

	// Named is set if the provider named that wait.
	Named bool

	// Dimension is the kind of limit that refused: "requests", "tokens",
	// "input", "output", or "" if that is not known.
	Dimension string

	// Scope is what it speaks of: "account", "model", or "" if that is not known,
	// which is the model. ScopeSure is unset where only a mention of the account says
	// so.
	Scope     string
	ScopeSure bool

	// NotRate is set if the refusal has nothing to do with the balance: no
	// credit on the account, a request too large, the provider's own overload.
	// Then it drains nothing.
	NotRate bool
}

// A drained limit is one that a refusal speaks of.
type drained struct {
	scope *Scope
	limit limit.Limit
	young bool // it came after the refused attempt, which gives nothing back to it
	full  bool // its window knows what was used, and has no credit to be drained
}

// patience counts the refusal of the attempt of that number, which left at sent. It
// returns how long everybody waits at least, and whether the attempts before it were
// refused too.
func (s *Scope) patience(now, sent time.Time, number uint64) (wait time.Duration, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeBack(number)
	s.some.Store(true) // an answer ends the streak
	wait = s.streak.refused(now, sent)
	return wait, s.streak.n >= probeFrom
}

// inStreak reports whether the last attempts were refused in a row.
func (s *Scope) inStreak() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streak.n > 1
}

// refused takes in that an attempt was refused that left at sent, and that the
// next may leave after wait. named is the wait that the provider named, or 0. It
// returns the limits concerned, to be drained: those of the innermost scope, and those
// of outer ones that answers have shown to be there. If there are none of that kind,
// those that a pause empties stand in: the refused calls give back their tokens, which
// would fill these limits again, and everybody would leave at once after the wait.
func (p *Path) refused(now, sent time.Time, cost limit.Cost, wait, named time.Duration, kind string, noRequests bool, m *marks) (concerned []drained, changes []change) {
	p.mirror(now)
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if s := p.scopes[i]; s == p.inner || s.some.Load() {
			ruled := s.charge.Load() > 0
			c, ch := s.refused(now, sent, cost, wait, named, kind, noRequests, p, m)
			concerned, changes = append(concerned, c...), append(changes, ch...)
			if ruled && s.charge.Load() == 0 {
				p.settle(false) // that was a part of the rule
			}
		}
	}
	if concerned != nil || wait == 0 {
		return concerned, changes
	}
	if p.inner == p.account && len(p.inner.limits()) == 0 {
		return p.below(), changes
	}
	p.inner.mu.Lock()
	defer p.inner.mu.Unlock()
	for _, d := range p.inner.dims {
		if d.limit.Rate.Window <= time.Minute {
			concerned = append(concerned, drained{p.inner, d.limit, !d.born.Before(sent), d.waits.full()})
		}
	}
	return concerned, changes
}

// refused is [Path.refused] for one scope of p.
//
// A refusal is explained if the attempt left before the wait of the last refusal
// was over. It is also explained if this budget used up the limit by itself in
// the window that ends now: the provider only counts its windows from other
// instants, and the drain is the whole answer. Otherwise somebody else uses the
// limit, or a call is charged more than we think, and the rate is cut.
func (s *Scope) refused(now, sent time.Time, cost limit.Cost, wait, named time.Duration, kind string, noRequests bool, p *Path, m *marks) (concerned []drained, changes []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, late := s.rest.IsZero(), sent.After(s.rest)
	if open := now.Add(wait); open.After(s.rest) {
		s.rest = open
	}
	for _, d := range s.dims {
		if s != p.inner && !s.shared.Load() && d.configured.Rate.N > 0 {
			continue // the innermost scope has a copy of it
		}
		if !s.concerns(d, kind, wait, noRequests) {
			continue
		}
		used := d.used.in(now, d.limit.Rate.Window) + part(d.limit.Unit, cost)
		old := d.limit
		full := d.full(m.of(d))
		lawful := d.doubted(now, m.of(d), true)
		if lawful && d.law.found() {
			s.gaveUp(d, now)
		}
		window := late && !first && d.waits.sends != nil && d.heedWait(now, part(d.limit.Unit, cost), named)
		if !late && d.waits.full() {
			d.heedCrowd(now, named)
		}
		if !window && late && !first && !full && max(used, p.outside(now, s, d)) < d.explains() {
			s.heed(now) // a cut of another process is the one to be deepened
			d.cut.deepen(now, d.sustained(now, used))
			s.agree(d, sent, part(d.limit.Unit, cost))
			s.note(noteCut+d.limit.Name, d.cut.String())
			if d.limit.Unit != limit.Requests && s.charge.Load() > 0 && s.doubt.struck(now) {
				s.charge.Store(0)
				s.note(noteCharge, strconv.Itoa(noCharge))
			}
		}
		d.newest.refused = now
		s.apply(d, now)
		if lawful || d.waits.sends != nil && d.limit.Law.Shape != old.Law.Shape {
			changes = append(changes, change{old, d.limit, true})
		}
		if late {
			d.refused = now
		}
		concerned = append(concerned, drained{s, d.limit, !d.born.Before(sent), d.waits.full()})
	}
	return concerned, changes
}

// outside is the use of the original of d, by all who take from it. The caller holds s.mu; those of the scopes further out come after it.
func (p *Path) outside(now time.Time, s *Scope, d *dimension) (most int64) {
	if !d.copied {
		return 0
	}
	for _, o := range p.scopes {
		if o == s {
			break
		}
		most = max(most, o.inWindow(now, d.limit.Unit, d.limit.Rate.Window))
	}
	return most
}

// concerns reports whether a refusal of that kind speaks of d. Of a unit's
// windows it speaks of the short ones for a short wait, and of the long ones for
// a long wait: a day's credit is not void because a minute's was. noRequests says
// that the header left no request. The caller holds s.mu.
func (s *Scope) concerns(d *dimension, kind string, wait time.Duration, noRequests bool) bool {
	if long := d.limit.Rate.Window > time.Minute; long != (wait > time.Minute) && s.hasBoth(d.limit.Unit) {
		return false
	} else if long && wait <= time.Minute {
		return false
	}
	if !d.guessed.IsZero() {
		return true // it stands for whatever limit there is
	}
	u := d.limit.Unit
	switch kind {
	case "requests":
		return u == limit.Requests
	case "tokens":
		return u != limit.Requests
	case "input":
		return u == limit.Input || u == limit.Tokens
	case "output":
		return u == limit.Output || u == limit.Tokens
	}
	return (u == limit.Requests) == noRequests
}

// hasBoth reports whether a unit has a window up to a minute and a longer one.
// The caller holds s.mu.
func (s *Scope) hasBoth(u limit.Unit) bool {
	var short, long bool
	for _, d := range s.dims {
		if d.limit.Unit == u {
			if d.limit.Rate.Window > time.Minute {
				long = true
			} else {
				short = true
			}
		}
	}
	return short && long
}

// drain leaves keep of each of those limits after wait, and nothing beyond. Calls under
// way will give back owed, which nobody charged: so much has to be refilled first. To a
// young limit they give nothing back.
// before is set while the refused attempt still holds what it will give back.
func drain(limits []drained, keep, owed limit.Cost, wait time.Duration, before bool) {
	for _, l := range limits {
		if before && l.young || l.full {
			continue
		}
		left, debt := max(0, part(l.limit.Unit, keep)), part(l.limit.Unit, owed)
		if l.young {
			debt = 0
		}
		less := min(left, debt)
		l.scope.ledger.DrainScope(l.scope.name, l.limit.Name, left-less, wait+earns(debt-less, l.limit.Rate))
	}
}

// earns is the time in which a rate refills units.
func earns(units int64, r limit.Rate) time.Duration {
	return time.Duration(min(float64(units)/float64(max(1, r.N)), mostRefill) * float64(r.Window))
}
