package budget

import (
	"time"

	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// A reading is what a header says is left of one dimension.
type reading struct {
	scope     *Scope // nil: there is none
	limit     limit.Limit
	unit      limit.Unit
	remaining int64
	most      int64 // the largest balance there can be, as far as is known
	atEnd     bool  // it has the call's own charge, which the ledger learns at the end
	hidden    int64 // as much less may be left: the balance is rounded
}

// A change is a limit that follows what a header says.
type change struct {
	old, new limit.Limit
	law      bool // another law is believed
}

// learn takes in what a quota says of the limit of that unit and window at now. It
// returns the remaining balance, if it is known. It also returns the changes of the
// limit, if the limit follows the quota or another law is believed. m are the marks
// of an attempt that was not refused, or nil; it left at sent. See [Path.learn].
func (s *Scope) learn(now time.Time, u limit.Unit, q headers.Quota, window time.Duration, own limit.Cost, m *marks, sent time.Time) (left reading, changes []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.find(u, window)
	if !s.counts(u, window, now) {
		return reading{}, nil
	}
	if d == nil {
		if !q.Limit.OK || q.Limit.N <= 0 {
			return reading{}, nil
		}
		if window > s.maxPause {
			return reading{}, nil // a wait of a month would stop everybody: its refusals say it
		}
		if s.learnsNoMore() {
			return reading{}, nil
		}
		d = &dimension{limit: limit.Limit{Name: NameOf(u, window), Unit: u, Rate: limit.Rate{Window: window}}, born: now}
		s.add(d)
	}
	d.heard(now, own == (limit.Cost{}))
	ceiling := d.ceiling()
	if q.Limit.OK && q.Limit.N > 0 {
		d.nameLimit(q)
	}
	if q.Remaining.OK && q.Remaining.N <= d.most() && q.Remaining.N >= -d.most() {
		if n := q.Remaining.N + part(u, own); n > d.shown {
			d.shown = min(n, d.most())
		}
		d.law.full = d.law.full && q.Remaining.N+d.used.in(now, window) >= d.most()/4*3 // else it holds less, or others use it
		d.grain.saw(q.Remaining.N)
		left = reading{s, d.limit, u, max(q.Remaining.N, s.least(d)), d.most(), d.law.atEnd && d.law.row.When == profile.WhenAnswered, d.grain.hides()}
		s.balanced(d, now, sent, q.Remaining.N)
	}
	was := d.limit
	lawful := m != nil && d.saw(now, m.of(d), q)
	if e, k := d.law.ends, m.ends(d); e != nil && k != nil {
		before := d.belief().Law
		e.saw(now, k, q, d.said)
		lawful = s.concludes(d, now, before) || lawful
	}
	if old, changed := s.apply(d, now); changed && ceiling != d.ceiling() {
		changes = append(changes, change{old: old, new: d.limit})
	}
	left.limit.Margin = d.limit.Margin // as it is lowered with
	if lawful {
		changes = append(changes, change{was, d.limit, true})
	}
	return left, changes
}

// visit calls f for every quota of a header, by unit. A quota of tokens counts
// what tokens says.
func visit(i *headers.Info, tokens limit.Unit, f func(limit.Unit, headers.Quota)) {
	f(limit.Requests, i.Requests)
	f(tokens, i.Tokens)
	f(limit.Input, i.Input)
	f(limit.Output, i.Output)
	for _, w := range i.Windows {
		switch w.Dimension {
		case "requests":
			f(limit.Requests, w.Quota)
		case "tokens":
			f(tokens, w.Quota)
		case "input_tokens":
			f(limit.Input, w.Quota)
		case "output_tokens":
			f(limit.Output, w.Quota)
		}
	}
}

// swapped reports whether a header allows fewer tokens than requests in one
// window. Every request takes a token at least, so the two fields have been mixed
// up, and neither is believed.
func swapped(i *headers.Info) bool {
	r, t := i.Requests, i.Tokens
	return r.Limit.OK && t.Limit.OK && t.Limit.N < r.Limit.N && r.Window == t.Window &&
		(r.Inferred == 0 || t.Inferred == 0 || r.Inferred == t.Inferred) && !ofADay(r)
}

// ofADay reports whether a quota's reset fits only a day's window.
func ofADay(q headers.Quota) bool {
	return q.Inferred > time.Hour || q.Reset.OK && q.Reset.D > time.Minute
}

// window returns the window that a quota speaks of, 0 if that is not known. The
// caller holds s.mu. In this order:
//
//   - the window that the header states, or its arithmetic gives
//   - the window of a limit of the same size, seen or configured before
//   - where the profile's reset is the time to full of a bucket (Linear), the
//     shortest window that explains the reset
//   - none, if the reset is above a minute: it is another period's
//   - none, if the field names no dimension and the reset is short: such fields
//     are a second's as often as a minute's
//   - none for a first limit on requests without a reset: it is a day's as often
//     as a minute's
//   - a minute, by the custom of these APIs; only then custom is set, and for a size
//     that was taken for a minute's before, or for that of a window that was found
func (p *Path) window(u limit.Unit, q headers.Quota, unnamed bool) (window time.Duration, custom bool) {
	if q.Window > 0 {
		return q.Window, false
	}
	if q.Inferred > 0 && !(unnamed && q.Reset.D%time.Second == 0) { // whole seconds fit by chance
		return q.Inferred, false
	}
	if q.Limit.OK {
		for i := len(p.scopes) - 1; i >= 0; i-- {
			if w := p.scopes[i].sized(u, q.Limit.N); w > 0 {
				return w, p.inner.byCustom(u, w)
			}
		}
	}
	if p.account.profile.Linear && q.Reset.OK && q.Limit.OK && q.Remaining.OK && q.Remaining.N < q.Limit.N && q.Limit.N > 0 {
		return refilledIn(q), false
	}
	if q.Reset.OK && q.Reset.D > time.Minute+time.Second || unnamed && q.Reset.D <= 10*time.Second {
		return 0, false
	}
	if u == limit.Requests && !q.Reset.OK && !p.has(u, time.Minute) {
		return 0, false
	}
	return time.Minute, true
}

// refilledIn is the shortest window in which a bucket that misses what q misses
// would be full at q's reset; 0 if none is.
func refilledIn(q headers.Quota) time.Duration {
	missing := float64(q.Limit.N - q.Remaining.N)
	for _, w := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
		full := time.Duration(missing / float64(q.Limit.N) * float64(w))
		if q.Reset.D <= full+full/50+2*time.Millisecond {
			return w
		}
	}
	return 0
}
