package budget

import (
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/law"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// ends looks for charges at the end, in a limit on tokens of which nothing is recorded. It
// enters each call in further books when it ends, at what its usage says. Where those
// foretell what answers show to the token, pair after pair, calls are charged so
// ([law.Learner.Exact]). From then on the limit counts as one of recorded charges at the
// end does ([lawful.atEnd]). The learner whose books were right goes on to learn the window.
//
// Nobody knows of which instant the balances are. So there are books for the two that
// were recorded: before the call, and at its end with its own charge.
//
// The rule is never concluded from few answers alike: see [law.Learner.Exact]. Two refusals on
// which its books had room end it. The limit is then one of which nothing is known, and
// after ten minutes its charges are looked for again.
//
// Without it output caps were reserved that nobody charges: 82 % of the quota of xAI were
// used and 88 % of that of Mistral, instead of 97 %.
type ends struct {
	by      [instants]*law.Learner
	found   bool // one of them was right, and the other is gone
	answers int  // that were compared
}

// The instants of balances, as indexes of ends.by.
const (
	readBefore = iota // when the call comes, without its charge
	readAfter         // when it has ended, with its charge
	instants
)

// mostCompared is how many answers are compared. The books of a call take some
// microseconds, and most providers charge when calls come.
const mostCompared = 1000

// endMarks are those of an attempt in the books of ends, and what its answer had left.
type endMarks struct {
	of    *ends // which may be gone by now; nil: none were kept
	at    [instants]law.Mark
	heard time.Time // when its header came; zero: nothing was shown
	limit law.Count
	left  law.Count
}

// chargedAtEnd is the rule of a limit of which charges at the end were found.
func chargedAtEnd(r estimate.Rule) estimate.Rule {
	r.Charge, r.ReserveCap = estimate.ChargeSettle, false
	return r
}

// looks begins to look for charges at the end of d. o is what its learner knows. The
// caller holds s.mu.
func (s *Scope) looks(d *dimension, o law.Options) {
	if d.limit.Unit != limit.Tokens || o.Known.Shape != limit.ShapeUnknown || s.profile == nil || s.profile.Name != unknown ||
		!limit.MetersOf(s.ledger).Ends || d.shared() {
		return
	}
	o.AtEnd, o.Guessed, o.Unsure = true, false, 10
	o.Known, o.Why = limit.Law{Shape: limit.ShapeSliding, FirstCall: true}, "answers have shown that calls are charged when they end"
	d.law.ends = &ends{by: [instants]*law.Learner{law.New(o), law.New(o)}}
	s.looking.Store(true)
}

// countEnds notes whether charges at the end are found in a limit of s, which may be gone
// or be studied anew. The caller holds s.mu.
func (s *Scope) countEnds() {
	found := int32(0)
	for _, d := range s.dims {
		if !d.law.found() {
			continue
		}
		if found = readBefore + 1; d.law.ends.by[readBefore] == nil {
			found = readAfter + 1
		}
	}
	s.atEnd.Store(found)
}

// found reports whether calls turned out to be charged when they end.
func (l *lawful) found() bool { return l.ends != nil && l.ends.found }

// right are the marks in the books of e that were right; nil if the attempt left before
// they were kept.
func (m *endMarks) right(e *ends) *law.Mark {
	switch {
	case m.of != e:
		return nil
	case e.by[readBefore] != nil:
		return &m.at[readBefore]
	}
	return &m.at[readAfter]
}

// leave enters a call that leaves at now and holds units.
func (e *ends) leave(m *endMarks, now time.Time, units int64) {
	m.of, m.heard = e, time.Time{}
	for i, l := range e.by {
		if l != nil {
			l.Begin(units)
			m.at[i] = l.Mark(now)
		}
	}
}

// saw takes in what the header of an answer shows at now. most is the limit where it
// names none.
func (e *ends) saw(now time.Time, m *endMarks, q headers.Quota, most int64) {
	m.heard, m.limit, m.left = now, law.Count(q.Limit), law.Count(q.Remaining)
	if !q.Limit.OK && most > 0 {
		m.limit = law.Count{N: most, OK: true}
	}
	e.answers++
	if l := e.by[readBefore]; l != nil {
		l.Saw(law.Evidence{Mark: m.at[readBefore], Answered: now, Limit: m.limit, Remaining: m.left})
	}
}

// ended enters at now the end of a call that held so much and is charged units. m is nil
// for one that left before the limit was known. A stream goes on after its header, and its
// balance is not that of its end.
func (e *ends) ended(now time.Time, m *endMarks, held, units int64) {
	for i, l := range e.by {
		if l == nil {
			continue
		}
		var at law.Mark
		l.Ended(&at, now, held, units)
		if i == readAfter && m != nil && !m.heard.IsZero() && now.Sub(m.heard) < unseen {
			l.Saw(law.Evidence{Mark: at, Answered: now, Limit: m.limit, Remaining: m.left})
		}
	}
}

// concludes makes d a limit of charges at the end once its books show that. It reports whether
// another law is believed than before was. The caller holds s.mu.
func (s *Scope) concludes(d *dimension, now time.Time, before limit.Law) (changed bool) {
	e := d.law.ends
	if e.found {
		return d.belief().Law != before
	}
	for i, l := range e.by {
		if l.Exact() {
			e.by[instants-1-i], e.found = nil, true
			d.law.learner, d.law.atEnd = l, true
			d.law.row.When = [instants]profile.When{profile.WhenBefore, profile.WhenAnswered}[i]
			s.endCut(d, now) // these books explain what was refused
			s.countEnds()
			if s.settles.Load() {
				s.early(d)
			}
			return true
		}
	}
	if e.answers >= mostCompared {
		d.law.ends = nil
	}
	return false
}

// over ends a call at now in the books of charges at the end: it held so much, and is
// charged that. m are its marks.
func (p *Path) over(now time.Time, held, charged limit.Cost, m *marks) (changes []change) {
	for _, s := range p.scopes {
		if s.looking.Load() {
			s.mu.Lock()
			changes = append(changes, s.over(now, held, charged, m)...)
			s.mu.Unlock()
		}
	}
	return changes
}

// over is what [Path.over] does in one scope. The caller holds s.mu.
func (s *Scope) over(now time.Time, held, charged limit.Cost, m *marks) (changes []change) {
	for _, d := range s.dims {
		e := d.law.ends
		if e == nil {
			continue
		}
		before := d.belief().Law
		e.ended(now, m.ends(d), part(d.limit.Unit, held), part(d.limit.Unit, charged))
		if s.concludes(d, now, before) {
			if old, changed := s.apply(d, now); changed {
				changes = append(changes, change{old, d.limit, true})
			}
		}
	}
	return changes
}

// gaveUp ends charges at the end of d after refusals that its books do not explain. They
// are looked for again when the law is studied again. The caller holds s.mu.
func (s *Scope) gaveUp(d *dimension, now time.Time) {
	until := d.law.until
	s.study(d, now)
	d.law.ends, d.law.until = nil, until
}

// chargesAtEnd reports whether calls turned out to be charged when they end. readsAtEnd
// reports whether their balances are of that instant too.
func (p *Path) chargesAtEnd() bool { return p.atEnd() > 0 }
func (p *Path) readsAtEnd() bool   { return p.atEnd() == readAfter+1 }

func (p *Path) atEnd() int32 {
	for _, s := range p.scopes {
		if n := s.atEnd.Load(); n > 0 {
			return n
		}
	}
	return 0
}
