package limit

// endBooks are the further books of a limit whose [Law] is AtEnd. The first book counts
// a call from its start, at what is reserved. Nobody has seen which of them the other
// side keeps, so a cost needs room in all:
//
//	first    all from the start
//	whole    all from the end
//	halves   input from the start, output from the end; of a limit on tokens only
//
// Against one that keeps another book, each alone had thousands of refusals for 1,000
// calls, or 20 to 50. By the second, with what open calls hold in it, nothing is
// refused; but a call counts for its own time and a window more, and 91 % of the quota
// were used. All of them together use 98 %.
type endBooks struct {
	whole  *Window
	halves *Window // nil of a limit that counts one of them
}

// newEndBooks are the books for a law at an instant at which all is used but credit. Input
// of open calls is used in halves too.
func newEndBooks(r Rate, l Law, halves bool, now, credit, input int64) *endBooks {
	e := &endBooks{whole: &Window{law: l, keeps: true}}
	e.whole.start(r, now)
	e.whole.charge(now, max(0, e.whole.n-max(0, credit)))
	if halves {
		e.halves = e.whole.Copy()
		e.halves.charge(now, input)
	}
	return e
}

func (e *endBooks) copy() *endBooks {
	c := *e
	c.whole = e.whole.Copy()
	if e.halves != nil {
		c.halves = e.halves.Copy()
	}
	return &c
}

// each calls f for each book at instant now.
func (e *endBooks) each(now int64, f func(w *Window)) {
	e.whole.advance(now)
	f(e.whole)
	if e.halves != nil {
		e.halves.advance(now)
		f(e.halves)
	}
}

func (e *endBooks) become(now int64, l Law) {
	e.whole.advance(now)
	e.whole = e.whole.become(l)
	if e.halves != nil {
		e.halves.advance(now)
		e.halves = e.halves.become(l)
	}
}

func (e *endBooks) admits(now, cost int64) bool {
	e.whole.advance(now)
	if e.halves != nil {
		e.halves.advance(now)
	}
	return e.whole.admits(cost) && (e.halves == nil || e.halves.admits(cost))
}

func (e *endBooks) waitFrom(start, ahead, cost int64) int64 {
	wait := e.whole.waitFrom(start, ahead, cost)
	if e.halves != nil {
		wait = max(wait, e.halves.waitFrom(start, ahead, cost))
	}
	return wait
}

// at is the last instant of all books, and not before now.
func (e *endBooks) at(now int64) int64 {
	now = max(now, e.whole.at)
	if e.halves != nil {
		now = max(now, e.halves.at)
	}
	return now
}

func (e *endBooks) levelAt(now int64) wide {
	level := e.whole.levelAt(now)
	if e.halves != nil {
		level = level.min(e.halves.levelAt(now))
	}
	return level
}

// started enters the start of a call at now. That it is open is entered when it is
// taken.
func (e *endBooks) started(now int64, c Cost) {
	if e.halves != nil {
		e.halves.advance(now)
		e.halves.charge(e.halves.at, c.Input)
	}
}

// ended enters at now the end of a call that was taken at that instant, held that and
// was charged this.
func (e *endBooks) ended(now, taken int64, unit Unit, held, charged Cost) {
	b := charged.amounts()
	e.whole.advance(now)
	e.whole.charge(e.whole.at, b.in(unit))
	if e.halves != nil {
		e.halves.advance(now)
		e.halves.refund(taken, held.Input-charged.Input)
		e.halves.charge(e.halves.at, max(0, charged.Input-held.Input)+charged.Output)
	}
}

// lowerSent takes in a reading of instant sent, and returns the units that others used
// for sure. Each call that was open then may be in the reading or not. It is open still,
// or has ended since, and so it is in the book or open.
func (e *endBooks) lowerSent(now, sent, remaining, open int64) int64 {
	e.whole.advance(now)
	m, known := e.whole.missing(sent, remaining, 0, open)
	if !known || m.hi < 0 {
		return 0
	}
	n := min(m.ceilDiv(e.whole.w), 4*MaxUnits)
	e.each(now, func(w *Window) { w.charge(sent, n) })
	return n
}

// begins enters the start of a reservation of c in the end books of s.
func (s *scope) begins(now int64, c Cost) {
	for i := range s.limits {
		x := s.limits[i].more
		if x == nil || x.window == nil {
			continue
		}
		x.input += c.Input
		if x.ends != nil {
			x.ends.started(now, c)
		}
	}
}

// counted ends the reservation e in the end books of its scopes.
func (l *Limiter) counted(e *entry, how ending, actual Cost) {
	charged := e.cost
	switch how {
	case returned:
		charged = Cost{}
	case settled:
		charged.Input, charged.Output = clampUnits(actual.Input), clampUnits(actual.Output)
	}
	l.root.counted(l, e, charged)
	for i := range e.path {
		e.path[i].s.counted(l, e, charged)
	}
}

// uncounted takes a grant without a reservation, which is given back, out of the end books.
// There it had ended when it went.
func (l *Limiter) uncounted(t *waiter) {
	a := t.cost.amounts()
	for i := range l.root.limits {
		b := &l.root.limits[i]
		if b.more != nil && b.more.ends != nil && b.born <= t.r.seq {
			b.more.ends.each(l.last, func(w *Window) { w.refund(t.went, a.in(b.unit)) })
		}
	}
}

func (s *scope) counted(l *Limiter, e *entry, charged Cost) {
	if s.busy.trail == nil {
		return // no window
	}
	held := e.cost.amounts()
	for i := range s.limits {
		b := &s.limits[i]
		if b.more == nil || b.more.window == nil || b.born > e.seq {
			continue
		}
		b.more.closes(e.taken, held.in(b.unit), e.cost.Input)
		if b.more.ends != nil {
			b.more.ends.ended(l.now(), e.taken, b.unit, e.cost, charged)
		}
	}
}
