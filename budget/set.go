package budget

import (
	"errors"
	"slices"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// SetLimit configures a limit of each account while calls run: it adds the limit,
// or changes the one of that name, or removes it if its Rate is zero. It stays set:
// from now on, learned limits and cuts are measured against it. Credit is kept as
// [limit.Limiter.SetLimit] says. A limit without a name gets that of [NameOf]. An
// impossible value is an error and changes nothing.
func (b *Budget) SetLimit(l limit.Limit) error {
	if l.Name == "" {
		if l.Rate == (limit.Rate{}) {
			return errors.New("budget: SetLimit needs a name to remove a limit")
		}
		l.Name = NameOf(l.Unit, l.Rate.Window)
	}
	if _, err := checkLimits([]limit.Limit{l}, 0); err != nil {
		return err
	}
	b.setting.Lock()
	defer b.setting.Unlock()
	b.mu.Lock()
	all := slices.DeleteFunc(slices.Clone(b.configured), func(o limit.Limit) bool { return o.Name == l.Name })
	if l.Rate != (limit.Rate{}) {
		all = append(all, l)
	}
	b.configured = all
	scopes := slices.Clone(b.ring)
	b.mu.Unlock()
	now := time.Now()
	for _, s := range scopes {
		s.set(now, l, all)
	}
	return nil
}

// SetModels replaces what [Options.Models] says while calls run, also for those
// that wait. Credit, debts and pauses of the models stay. A limit that is new for a
// model that calls have used begins empty. An impossible value is an error and
// changes nothing.
func (b *Budget) SetModels(models []Model) error {
	var checked []Model
	for i, m := range models {
		m, err := m.checked(i, b.burst)
		if err != nil {
			return err
		}
		m.Names = slices.Clone(m.Names)
		checked = append(checked, m)
	}
	b.setting.Lock()
	defer b.setting.Unlock()
	b.mu.Lock()
	b.models = checked
	b.changed++
	for _, f := range b.paths {
		f.path.replaced.Store(true) // one of other scopes may be right now
	}
	scopes := slices.Clone(b.ring)
	b.mu.Unlock()
	now := time.Now()
	for _, s := range scopes {
		s.mu.Lock()
		of := s.of
		s.mu.Unlock()
		if of.models == "" {
			continue
		}
		var m Model
		for i := range checked {
			if c := &checked[i]; of.shared && c.Shared && c.Names[0] == of.models || !of.shared && c.fits(of.models) {
				if c.Shared == of.shared {
					m = *c
				}
				break
			}
		}
		s.reset(now, m.Limits, limit.ScopeOptions{MaxInFlight: m.MaxInFlight})
	}
	return nil
}

// SetRoot sets how many calls of all accounts together may be under way, and how
// many may wait, while calls run. 0 is any number.
func (b *Budget) SetRoot(maxInFlight, maxQueue int) error {
	return b.ledger.SetScope("", limit.ScopeOptions{MaxInFlight: maxInFlight, MaxQueue: maxQueue})
}

// belongs says which models a scope is of.
type belongs struct {
	models string // the model, or the first name of those that share limits
	shared bool
}

// reset gives a scope of models other limits than were configured before.
func (s *Scope) reset(now time.Time, limits []limit.Limit, o limit.ScopeOptions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.configured
	s.configured = limits
	differs := s.opt() != o
	s.options.Store(&o)
	if differs && s.started {
		s.ledger.SetScope(s.name, o)
	}
	if !s.started {
		return
	}
	for _, l := range was {
		if !slices.ContainsFunc(limits, func(n limit.Limit) bool { return n.Name == l.Name }) {
			s.change(now, limit.Limit{Name: l.Name})
		}
	}
	for _, l := range limits {
		if slices.Contains(was, l) {
			continue
		}
		if s.change(now, l) {
			s.ledger.DrainScope(s.name, l.Name, 0, 0)
		}
	}
}

// set changes a limit that is configured for accounts: in an account, and where it
// was copied. all are those that are configured now.
func (s *Scope) set(now time.Time, l limit.Limit, all []limit.Limit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account && !s.started {
		s.configured = all
		return
	}
	if s.account || slices.ContainsFunc(s.dims, func(d *dimension) bool { return d.limit.Name == l.Name && d.copied }) {
		s.change(now, l)
	}
}

// change adds, changes or removes a configured limit of the scope. It reports
// whether it is new. The caller holds s.mu.
func (s *Scope) change(now time.Time, l limit.Limit) (added bool) {
	at := slices.IndexFunc(s.dims, func(d *dimension) bool { return d.limit.Name == l.Name })
	if l.Rate == (limit.Rate{}) {
		if at >= 0 {
			s.dims = slices.Delete(s.dims, at, at+1)
			s.countEnds()
			s.publish()
			s.ledger.SetScopeLimit(s.name, l)
		}
		return false
	}
	if at < 0 {
		d := &dimension{limit: s.starts([]limit.Limit{l})[0], configured: l, born: now}
		s.add(d)
		s.publish()
		s.ledger.SetScopeLimit(s.name, d.limit)
		at, added = len(s.dims)-1, true
	}
	d := s.dims[at]
	d.configured = l
	d.limit.Unit, d.limit.Rate.Window = l.Unit, l.Rate.Window
	if d.configured.Unit == limit.Tokens {
		d.configured.Unit = s.shape.tokens
	}
	s.study(d, now)
	s.apply(d, now)
	return added
}
