package limit

import "slices"

// Reopen asks Options.Open again for a scope that is there, and gives the scope
// what it says now: options, and limits by name. Credit is kept as
// [Limiter.SetLimit] says. A scope that is not there is not made: it will be asked
// for when it is used. Unlike the settings of [Limiter.SetScope], these may be
// forgotten when the scope is idle, as Open says them again.
func (l *Limiter) Reopen(scope string) error {
	l.lock()
	s := l.lookup(scope)
	if s == nil || scope == "" || l.opener == nil {
		l.mu.Unlock()
		return nil
	}
	l.use(s)
	edited := s.edited
	l.mu.Unlock()
	defer func() {
		l.lock()
		s.edited = edited
		l.done(s)
		l.mu.Unlock()
	}()
	opt, limits := l.opener(scope)
	if err := l.SetScope(scope, opt); err != nil {
		return err
	}
	l.lock()
	var gone []string
	for i := range s.limits {
		name := s.limits[i].cfg.Name
		if !slices.ContainsFunc(limits, func(n Limit) bool { return n.Name == name }) {
			gone = append(gone, name)
		}
	}
	l.mu.Unlock()
	for _, name := range gone {
		if err := l.SetScopeLimit(scope, Limit{Name: name}); err != nil {
			return err
		}
	}
	for _, lim := range limits {
		if err := l.SetScopeLimit(scope, lim); err != nil {
			return err
		}
	}
	return nil
}
