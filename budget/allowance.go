package budget

import (
	"fmt"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// An Allowance is what a provider says of one that is used up. The zero Allowance
// says nothing, and holds nobody.
type Allowance struct {
	// Until is how long until it is there again, from now on, as the provider names
	// it. 0 is not named.
	Until time.Duration

	// Window is the window of the allowance: a day, or 30 days for a month. 0 is
	// unknown.
	Window time.Duration

	// Wide is set if it is of more than the model: of the models that
	// [profile.Profile.Together] names, if the model is one of them, else of the
	// account.
	Wide bool

	// Dimension, Scope and ScopeSure are as in [Refusal]. They are read unless Wide is set.
	Dimension, Scope string
	ScopeSure        bool
}

// The first probe for an allowance whose reset is a guess goes after leastProbe, and
// each further one after twice the time, up to mostProbe. Some providers say "day" of
// a limit that is back within the minute (diegosouzapw/OmniRoute#9504), and some count
// days that slide. A day of refusals costs some thirty probes.
const (
	leastProbe = 5 * time.Minute
	mostProbe  = time.Hour
)

// UsedUp takes in that an allowance of a day or longer is used up. If the provider
// names a reset, no call goes before it. Else all calls wait for the reset that the
// profile or the UTC calendar makes likely. Meanwhile one call at a time goes as a
// probe. The attempt must still be ended.
func (c *Call) UsedUp(now time.Time, a Allowance) {
	var s *Scope
	if a.Wide {
		s = c.path.wide()
	} else {
		s = c.path.speaks(c.sent, &Refusal{Wait: max(a.Until, a.Window), Dimension: a.Dimension, Scope: a.Scope, ScopeSure: a.ScopeSure}).inner
	}
	switch {
	case a.Until > 0:
		c.watch.Paused(s.hold(now, limit.Pause{For: a.Until, Why: fmt.Sprintf("an allowance is used up for %v", a.Until.Round(time.Millisecond))}))
	case a.Window > 0:
		next := nextReset(s.profile.Name, a.Window, now)
		c.watch.Paused(s.hold(now, limit.Pause{For: next.Sub(now), ProbeAfter: s.probeAfter(now, c.number, next), Why: fmt.Sprintf("an allowance of %v is used up, and it named no reset", a.Window)}))
	}
}

// wide is the scope of an allowance that other models have used up too.
func (p *Path) wide() *Scope {
	if t := together(p.account.profile, p.key.model); t != "" {
		if s, _ := p.budget.scope(p.budget.togetherName(p.account.name, t), p.host); s != nil {
			s.shared.Store(true)
			s.Adopt(time.Now(), *p.account.profile)
			return s
		}
	}
	return p.account
}

// together is the pattern of models with a common allowance that a model is one of, or
// "".
func together(p *profile.Profile, model string) string {
	for _, t := range p.Together {
		if model != "" && glob(t, model) {
			return t
		}
	}
	return ""
}

// togetherName is the name of the scope of models with a common allowance.
func (b *Budget) togetherName(account, pattern string) string {
	return account + ofModel + "together " + b.clean(pattern, 70, "")
}

// join adds the scope of models with a common allowance to the path, if the path's
// model is one of them. It takes effect from the next call on.
func (p *Path) join() {
	if s := p.wide(); s != p.account {
		p.insert(s, "")
	}
}

// allowances holds what one scope knows of its used-up allowances.
type allowances struct {
	probes int       // in a row that were refused
	last   time.Time // of the last refusal
	until  time.Time // the reset that was likely then
}

// probeAfter is how long until the first call may go as a probe, after the refusal at now of
// the attempt of that number.
func (s *Scope) probeAfter(now time.Time, number uint64, next time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.some.Store(true) // an answer ends the row
	u := &s.usedUp
	s.takeBack(number)
	if !now.Before(u.until) {
		u.probes = 0
	}
	d := min(leastProbe<<min(u.probes, 4), mostProbe)
	u.probes, u.last, u.until = u.probes+1, now, next
	return d
}

// answered notes that the attempt that left at sent was not refused.
func (u *allowances) answered(sent time.Time) {
	if sent.After(u.last) {
		u.probes = 0
	}
}

// nextReset is when an allowance of that window is likely to be there again: when the
// day ends where the provider counts it, or the month.
func nextReset(provider string, window time.Duration, now time.Time) time.Time {
	zone := time.UTC
	if l, ok := profile.LawFor(provider, "requests-day", now); ok && l.Zone != "" {
		if z, err := time.LoadLocation(l.Zone); err == nil {
			zone = z
		}
	}
	y, m, d := now.In(zone).Date()
	if window > 7*24*time.Hour {
		return time.Date(y, m+1, 1, 0, 0, 0, 0, zone)
	}
	return time.Date(y, m, d+1, 0, 0, 0, 0, zone)
}

// insert puts a scope before the innermost one, in the path that the next call gets.
// Scopes whose names begin with instead of are left out; "" leaves out none.
func (p *Path) insert(s *Scope, instead string) {
	q := &Path{budget: p.budget, key: p.key, host: p.host, account: p.account, inner: p.inner}
	add := func(of *Scope) {
		q.scopes = append(q.scopes, of)
		if of != p.budget.root {
			q.names = append(q.names, of.name)
		}
	}
	for _, of := range p.scopes {
		if of == s {
			return
		}
	}
	for _, of := range p.scopes {
		if of == p.inner {
			add(s)
		}
		if instead == "" || !strings.HasPrefix(of.name, instead) {
			add(of)
		}
	}
	q.adopted.Store(true)
	b := p.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.paths[p.key]; f != nil && f.path == p {
		b.paths[p.key] = &found{p.key, q}
		p.replaced.Store(true)
	}
}
