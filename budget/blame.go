package budget

import (
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// blames are refusals of one model that spoke of the whole account, while other models
// of it were answered. The zero blames has seen none.
//
// A model that is sick may refuse for ever with words of the account. It must not stop
// the models that are well. So its words count for the account until others were
// answered in spite of them: once, where only a mention says so, and three times where a
// code or clear words do. After an answer of its own they count again.
type blames struct {
	wrong int       // that others contradicted
	last  time.Time // when the last attempt that was refused so had left
}

const (
	mostMentions = 1
	mostCodes    = 3
)

// speaks is the path up to the scope that a refusal of the attempt that left at sent
// speaks of: to the account, or all of p.
func (p *Path) speaks(sent time.Time, r *Refusal) *Path {
	if p.inner == p.account {
		return p
	}
	sure := r.ScopeSure
	switch r.Scope {
	case "account":
	case "":
		if !p.accounts(r) {
			return p
		}
		sure = true
	default:
		return p
	}
	s := p.inner
	s.mu.Lock()
	defer s.mu.Unlock()
	s.some.Store(true) // an answer ends the blames
	if by := p.account.answered.Load(); by != nil && by != s {
		others := p.budget.born.Add(time.Duration(p.account.answeredSent.Load()))
		since, known := s.blames.last, !s.blames.last.IsZero()
		if !known {
			since, known = sent, !sure // answered while this one was refused
		}
		if known && !others.Before(since) {
			s.blames.wrong++
		}
	}
	s.blames.last = sent
	most := mostCodes
	if !sure {
		most = mostMentions
	}
	if s.blames.wrong >= most {
		return p
	}
	for i, o := range p.scopes {
		if o == p.account {
			return &Path{budget: p.budget, host: p.host, scopes: p.scopes[:i+1], account: o, inner: o}
		}
	}
	return p
}

// accounts reports whether recorded traffic shows that limits of the kind that refused
// are those of the account.
func (p *Path) accounts(r *Refusal) bool {
	window := time.Minute
	if r.Wait > time.Minute {
		window = 24 * time.Hour
	}
	return r.Dimension != "" && p.account.speaksOf(p.account.unitOf(r.Dimension), window) == profile.ScopeAccount
}

// unitOf is the unit of the dimension that a refusal names: tokens, as the provider
// counts them, where it names none.
func (s *Scope) unitOf(dimension string) limit.Unit {
	switch dimension {
	case "requests":
		return limit.Requests
	case "input":
		return limit.Input
	case "output":
		return limit.Output
	}
	return s.shape.tokens
}

// below are the limits of all models of the account p.inner, of a minute or less. They
// stand in for an account whose own limits nobody knows: else all of its models would
// leave at once after the wait, with what they have saved up.
func (p *Path) below() (all []drained) {
	b, begins := p.budget, p.inner.name+"/"
	var scopes []*Scope
	b.mu.RLock()
	for name, s := range b.scopes {
		if s.some.Load() && strings.HasPrefix(name, begins) {
			scopes = append(scopes, s)
		}
	}
	b.mu.RUnlock()
	for _, s := range scopes {
		for _, l := range s.limits() {
			if l.Rate.Window <= time.Minute {
				all = append(all, drained{scope: s, limit: l})
			}
		}
	}
	return all
}
