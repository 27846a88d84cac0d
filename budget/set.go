package budget

import (
	"errors"
	"slices"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// SetLimit configures a limit of each account while calls run: it adds the limit,
// or changes the one of that name, or removes it if its Rate is zero. It stays set:
// what is learned and cut is measured against it from now on. Credit is kept as
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

// set changes a limit that is configured for accounts: in an account, and where it
// was copied. all are those that are configured now.
func (s *Scope) set(now time.Time, l limit.Limit, all []limit.Limit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account && !s.started {
		s.configured = all
		return
	}
	at := slices.IndexFunc(s.dims, func(d *dimension) bool { return d.limit.Name == l.Name && (s.account || d.copied) })
	if l.Rate == (limit.Rate{}) {
		if at >= 0 {
			s.dims = slices.Delete(s.dims, at, at+1)
			s.publish()
			s.ledger.SetScopeLimit(s.name, l)
		}
		return
	}
	if at < 0 {
		if !s.account {
			return
		}
		d := &dimension{limit: s.starts([]limit.Limit{l})[0], configured: l, born: now}
		s.add(d)
		s.publish()
		s.ledger.SetScopeLimit(s.name, d.limit)
		at = len(s.dims) - 1
	}
	d := s.dims[at]
	d.configured = l
	d.limit.Unit, d.limit.Rate.Window = l.Unit, l.Rate.Window
	if d.configured.Unit == limit.Tokens {
		d.configured.Unit = s.shape.tokens
	}
	s.apply(d, now)
}
