package budget

import (
	"fmt"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// speaksOf is the scope that recorded traffic of the provider shows for a limit of
// that unit and window: [profile.LawFor]. Few kinds are asked for again and again,
// so answers are kept.
func (s *Scope) speaksOf(u limit.Unit, window time.Duration) profile.Scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kinds {
		if k.unit == u && k.window == window {
			return k.of
		}
	}
	of := profile.ScopeUnknown
	for _, field := range fieldsOf(u, window, u == s.shape.tokens) {
		if l, ok := profile.LawFor(s.profile.Name, field, latest); ok {
			of = l.Scope
			break
		}
	}
	if len(s.kinds) < 16 { // there are no more in one provider's headers
		s.kinds = append(s.kinds, kind{u, window, of})
	}
	return of
}

// latest is after every record: what a field speaks of now is what the last ones
// show.
var latest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// A kind of limit, and what its fields speak of.
type kind struct {
	unit   limit.Unit
	window time.Duration
	of     profile.Scope
}

// fieldsOf are the names that the fields of such a limit have, the most exact
// first. tokens is set for the unit that a limit on tokens counts.
func fieldsOf(u limit.Unit, window time.Duration, tokens bool) []string {
	names := map[limit.Unit][]string{
		limit.Requests: {"requests", "req"}, limit.Tokens: {"tokens"},
		limit.Input: {"input-tokens"}, limit.Output: {"output-tokens"},
	}[u]
	if tokens && u != limit.Tokens {
		names = append(names, "tokens")
	}
	suffix := ""
	switch window {
	case 10 * time.Second:
		suffix = "-10-second"
	case time.Minute:
		suffix = "-minute"
	case 24 * time.Hour:
		suffix = "-day"
	case 30 * 24 * time.Hour:
		suffix = "-month"
	}
	var all []string
	for _, n := range names {
		if suffix != "" {
			all = append(all, n+suffix)
		}
	}
	return append(all, names...)
}

// sameLimit is the scope of the models of an account that name the same limit of n
// units. p takes from it from the next call on; it takes from none of another size
// any more.
func (p *Path) sameLimit(u limit.Unit, window time.Duration, n int64) *Scope {
	kind := p.account.name + ofModel + "same " + NameOf(u, window) + " "
	name := kind + fmt.Sprint(n)
	for _, s := range p.scopes {
		if s.name == name {
			return s
		}
	}
	b := p.budget
	s, _ := b.scope(name, p.host)
	if s == nil {
		return p.inner
	}
	s.shared.Store(true)
	s.Adopt(time.Now(), *p.account.profile)
	p.insert(s, kind)
	return s
}
