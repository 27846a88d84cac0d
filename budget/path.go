package budget

import (
	"sync/atomic"
	"time"

	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// A Path is what a call takes from: the scope of all calls, the account, and the
// model if the call names one. [Budget.Path] finds it. All of them grant in one
// decision.
//
// It may be used by any number of goroutines.
type Path struct {
	budget  *Budget
	key     key      // by which Budget.paths has it
	host    string   // as in its Address
	names   []string // in the ledger, outermost first, without the root
	scopes  []*Scope // outermost first, the root included
	account *Scope
	inner   *Scope // the last of scopes: what an answer speaks of unless it says otherwise
	adopted atomic.Bool

	replaced atomic.Bool // by one with a scope more
}

// Scopes are the names of the path in the ledger, outermost first, without the
// root. The slice must not be changed.
func (p *Path) Scopes() []string { return p.names }

// Adopted reports whether the path has the profile of its provider.
func (p *Path) Adopted() bool { return p.adopted.Load() }

// Adopt gives the scopes of the path the profile of their provider, except those
// that have one. It reports whether the account had none.
func (p *Path) Adopt(now time.Time, pr profile.Profile) (first bool) {
	if p.Adopted() {
		return false
	}
	for _, s := range p.scopes {
		if s == p.account {
			first = s.Adopt(now, pr)
			pr = *s.profile // of another that was first
			continue
		}
		s.Adopt(now, pr)
	}
	p.adopted.Store(true)
	if together(p.account.profile, p.key.model) != "" {
		p.join()
	}
	return first
}

// gone reports whether the path must be found again: it was replaced, or a scope of
// it was dropped.
func (p *Path) gone() bool {
	if p.replaced.Load() {
		return true
	}
	for _, s := range p.scopes {
		if s.gone.Load() {
			return true
		}
	}
	return false
}

// start makes sure that the scopes have what was configured for them, also if
// nobody knows their provider.
func (p *Path) start() {
	if p.Adopted() {
		return
	}
	for _, s := range p.scopes {
		s.mu.Lock()
		s.start()
		s.mu.Unlock()
	}
}

// Profile is that of the account, the zero Profile before [Path.Adopt].
func (p *Path) Profile() *profile.Profile { return p.account.profile }

// ask, use and admitted note the same for every scope of the path.
func (p *Path) ask(now time.Time, c limit.Cost) {
	for _, s := range p.scopes {
		if s.some.Load() {
			s.ask(now, c)
		}
	}
}

func (p *Path) use(now, sent time.Time, c limit.Cost) {
	p.inner.tallies(now, sent, c)
	for _, s := range p.scopes {
		if s.some.Load() {
			s.use(now, sent, c)
		}
	}
}

// leave is use and enter, for an attempt that leaves at now: it takes c, of which the
// provider charges own on arrival.
func (p *Path) leave(now time.Time, c, own limit.Cost, m *marks) *marks {
	p.inner.tallies(now, now, c)
	if m != nil {
		m.all = m.all[:0]
	}
	for _, s := range p.scopes {
		if s.some.Load() {
			s.mu.Lock()
			s.notes(now, now, c)
			m = s.enter(now, c, own, m)
			s.mu.Unlock()
		}
	}
	return m
}

// settled is cleared, silence, correct and use in this order, for an attempt that left
// at sent and was answered. wrong is how far the entry of its charge was off, and
// rest what it took more.
func (p *Path) settled(now, sent time.Time, wrong, rest limit.Cost) (changes []change) {
	if rest != (limit.Cost{}) {
		p.inner.tallies(now, sent, rest)
	}
	for i, s := range p.scopes {
		if !s.some.Load() {
			continue
		}
		ch, gone := s.settled(now, sent, wrong, rest)
		changes = append(changes, ch...)
		for _, f := range gone {
			changes = append(changes, s.forget(now, f.d, configuredFor(p.scopes[:i], f.quota))...)
		}
	}
	return changes
}

func (p *Path) admitted(now, sent time.Time, number uint64, busy bool) {
	if a := p.account; a != p.inner {
		if a.answered.Load() != p.inner {
			a.answered.Store(p.inner)
		}
		a.answeredSent.Store(int64(sent.Sub(p.budget.born)))
	}
	for _, s := range p.scopes {
		if s.some.Load() {
			s.admitted(now, sent, number, busy)
		}
	}
}

// learn takes in what the header of an answer says of limits at now. It returns
// what is left, and the limits that changed. own is what the provider charged the
// attempt on arrival, zero if it refused it. m are the marks of an attempt that was
// not refused, or nil. Nothing here raises credit; the
// caller hands the readings to Reservation.LowerIn.
func (p *Path) learn(now time.Time, a attempt, i *headers.Info, own limit.Cost, m *marks) (left []reading, changes []change) {
	swapped := swapped(i)
	visit(i, p.account.shape.tokens, func(u limit.Unit, q headers.Quota) {
		if !q.Limit.OK && !q.Remaining.OK || swapped && u != limit.Requests {
			return
		}
		window, custom := p.window(u, q, i.Unnamed && u == limit.Requests)
		if custom {
			was := window
			if window = p.period(now, a, u, q, own); window != was {
				// Once the other limit is there: what waits would leave between the two.
				defer func(of *Scope) { of.unname(now, u, was) }(p.place(u, q, was))
			}
		}
		if window == 0 {
			return
		}
		at := p.place(u, q, window)
		of := p.original(at, u, q, window)
		if of != nil {
			r, ch := of.learn(now, u, q, window, own, m, a.sent)
			if r.scope != nil {
				left = append(left, r)
			}
			changes = append(changes, ch...)
		}
		r, ch := at.learn(now, u, q, window, own, m, a.sent)
		if r.scope != nil {
			left = append(left, r)
			for _, s := range p.scopes {
				if s == at {
					break
				}
				if s != of && s.some.Load() {
					s.outside(u, window, q.Limit.N, now)
				}
			}
		}
		changes = append(changes, ch...)
	})
	return left, changes
}

// place is the scope that a quota speaks of. In this order:
//
//   - the innermost scope, if it has a limit of that unit and window
//   - the scope for which a limit of that size is configured
//   - for a quota without a limit, the innermost scope that has one
//   - the scope that recorded traffic shows for the field: [profile.LawFor]
//   - the innermost scope
func (p *Path) place(u limit.Unit, q headers.Quota, window time.Duration) *Scope {
	if p.inner.has(u, window, 0) {
		return p.inner
	}
	for i := len(p.scopes) - 2; i >= 0; i-- {
		switch s := p.scopes[i]; {
		case !s.some.Load():
		case q.Limit.OK && s.has(u, window, q.Limit.N), !q.Limit.OK && s.has(u, window, 0):
			return s
		}
	}
	switch of := p.account.speaksOf(u, window); {
	case of == profile.ScopeAccount || of == profile.ScopeProject:
		return p.account
	case of == profile.ScopeSameLimit && q.Limit.OK && q.Limit.N > 0 && p.inner != p.account:
		return p.sameLimit(u, window, q.Limit.N)
	}
	return p.inner
}

// original is the scope of the limit that at has a copy of, if a quota speaks of one
// of its size. What the quota has left bounds both: the copy knows only the calls of
// one model, and the other models take from the same balance.
func (p *Path) original(at *Scope, u limit.Unit, q headers.Quota, window time.Duration) *Scope {
	if at != p.inner || !q.Limit.OK || !at.copies(u, window) {
		return nil
	}
	for i := len(p.scopes) - 2; i >= 0; i-- {
		if s := p.scopes[i]; s.some.Load() && s.has(u, window, q.Limit.N) {
			return s
		}
	}
	return nil
}

// has reports whether a scope of the path has a limit of that unit and window.
func (p *Path) has(u limit.Unit, window time.Duration) bool {
	for _, s := range p.scopes {
		if s.some.Load() && s.has(u, window, 0) {
			return true
		}
	}
	return false
}

// mirror gives the innermost scope limits like those that are configured further
// out, before it is paused or drained. A refusal may speak of the limit
// that the user configured for all, or of one of the model that nothing has shown
// yet. If it takes from the model's own copy, the other models go on. It
// returns the copies that are new.
func (p *Path) mirror(now time.Time) (copied []limit.Limit) {
	for _, s := range p.scopes[:len(p.scopes)-1] {
		if s.shared.Load() || !s.some.Load() {
			continue
		}
		for _, d := range s.configuredDims() {
			if p.inner.mirror(now, s, d) {
				copied = append(copied, d.limit)
			}
		}
	}
	return copied
}

// pause holds the calls of the innermost scope for d. What a pause empties is
// emptied also where it is copied only now.
func (p *Path) pause(now time.Time, d time.Duration) limit.Pause {
	held := p.inner.pause(now, d, named(d))
	d = min(d, p.inner.maxPause)
	for _, l := range p.mirror(now) {
		if l.Rate.Window <= time.Minute {
			p.inner.ledger.DrainScope(p.inner.name, l.Name, part(l.Unit, limit.Cost{Requests: 1}), d)
		}
	}
	return held
}

// failed is [Scope.failed] for every scope of the path.
func (p *Path) failed(now time.Time) {
	for _, s := range p.scopes {
		if s.some.Load() {
			s.failed(now)
		}
	}
}

// cleared notes for every scope of the path that an attempt which left at sent has ended
// the pauses that let probes go.
func (p *Path) cleared(sent time.Time) {
	for _, s := range p.scopes {
		if s.some.Load() {
			s.cleared(sent)
		}
	}
}

// configuredFor is the limit of that unit and window that is configured innermost of
// the scopes, or nil.
func configuredFor(scopes []*Scope, q quota) *dimension {
	for i := len(scopes) - 1; i >= 0; i-- {
		if !scopes[i].some.Load() {
			continue
		}
		for _, of := range scopes[i].configuredDims() {
			if of.limit.Unit == q.unit && of.limit.Rate.Window == q.window {
				return &of
			}
		}
	}
	return nil
}
