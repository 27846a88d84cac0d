package limit

// A Reservation is an admitted cost. It must be ended, once, in one of three
// ways; ends after the first do nothing, from whichever goroutine they come:
//
//   - [Reservation.Settle]: the actual cost is known, and the difference is
//     refunded, or paid as debt.
//   - [Reservation.Keep]: the actual cost is not known, and the estimate
//     stands.
//   - [Reservation.Return]: the call was never made, and it is as if the cost
//     had never been taken.
//
// It is a small value: copies are the same reservation, and keeping one costs
// no allocation. The zero Reservation is an ended one.
type Reservation struct {
	by  Holder // nil for those of a Limiter
	e   *entry // nil for those of another ledger
	seq uint64 // names this reservation among all that ever had the entry; the Holder's handle
}

// entry is an open reservation, or a free place for one.
type entry struct {
	l      *Limiter
	seq    uint64 // 0 = free
	taken  int64  // instant
	cost   Cost
	spare  Cost // how much of it is expected to come back
	tenant *scope
	class  Class
	next   *entry // of the free ones
	mark   mark   // in the root
	path   []hold // the other scopes it takes from, outermost first
}

// hold is an entry in one scope other than the root.
type hold struct {
	s    *scope
	sums sums // at the mark
}

// table keeps open reservations in reused entries, so that a handle is a plain
// value and a second end is told from the first by its number.
type table struct {
	free *entry
	seq  uint64 // the last that was given
	n    int    // open ones
	made int    // entries there are
}

func (t *table) put(l *Limiter, cost Cost) *entry {
	if t.free == nil {
		t.grow(l)
	}
	e := t.free
	t.free = e.next
	t.n++
	t.seq++
	e.seq, e.taken, e.cost, e.spare, e.class, e.mark.set = t.seq, l.last, cost, Cost{}, Interactive, false
	return e
}

// grow makes a few entries at a time. They never move.
func (t *table) grow(l *Limiter) {
	const few = 32
	t.made += few
	entries := make([]entry, few)
	for i := range entries {
		entries[i].l = l
		entries[i].next, t.free = t.free, &entries[i]
	}
}

func (t *table) drop(e *entry) {
	e.seq = 0
	e.next, t.free = t.free, e
	t.n--
	if t.n == 0 && t.made > 1024 { // after a peak, let them go
		for e := t.free; e != nil; { // each by itself: an old handle holds only its own
			e, e.next = e.next, nil
		}
		t.free, t.made = nil, 0
	}
}

// open is the entry of r if it has not ended, or nil.
func (r Reservation) open() *entry {
	if r.e.seq != r.seq {
		return nil
	}
	return r.e
}

// ending is how a reservation ends.
type ending uint8

const (
	kept ending = iota
	settled
	returned
)

// finish ends r, with its actual cost if it is settled, and reports whether it
// was open. Places are given back in every scope, and credit where less was used.
func (r Reservation) finish(how ending, actual Cost) bool {
	e := r.open()
	if e == nil {
		return false
	}
	l := e.l
	l.young.remove(e)
	l.leave(&l.root, e, how)
	for i := range e.path {
		l.leave(e.path[i].s, e, how)
	}
	switch how {
	case settled:
		l.correct(Cost{
			Input:  e.cost.Input - clampUnits(actual.Input),
			Output: e.cost.Output - clampUnits(actual.Output),
		}, r.seq, e.taken, flowKey{e.tenant, e.class}, e.path)
	case returned:
		l.correct(e.cost, r.seq, e.taken, flowKey{e.tenant, e.class}, e.path)
	}
	if len(e.path) > 0 {
		for i := range e.path {
			l.done(e.path[i].s)
		}
		clear(e.path)
		e.path = e.path[:0]
	}
	l.open.drop(e)
	return true
}

// leave gives the place of e in s back.
func (l *Limiter) leave(s *scope, e *entry, how ending) {
	s.open--
	if e.spare != (Cost{}) {
		s.spare = s.spare.minus(e.spare)
	}
	if s.pause != nil {
		l.probed(s, e.seq, how)
	}
	if l.waiting > 0 && s.queue != nil && s.queue.places != nil {
		l.look(s.queue.places, l.last)
	}
}

// Settle ends the reservation with the tokens that it really cost. Less than
// reserved is refunded at once, and may let the head of the line go; more is
// charged, and may leave debt, which later callers wait off. The request
// itself stays counted: one that was sent cannot be unsent, so actual.Requests
// is not read. A negative count is taken as 0, one above [MaxUnits] as that.
func (r Reservation) Settle(actual Cost) {
	if r.e == nil {
		if r.by != nil {
			r.by.Settle(r.seq, actual)
		}
		return
	}
	r.end(settled, actual)
}

// Keep ends the reservation as it is: what was reserved is spent.
func (r Reservation) Keep() {
	if r.e == nil {
		if r.by != nil {
			r.by.Keep(r.seq)
		}
		return
	}
	r.end(kept, Cost{})
}

// Return ends the reservation of a call that was never made.
func (r Reservation) Return() {
	if r.e == nil {
		if r.by != nil {
			r.by.Return(r.seq)
		}
		return
	}
	r.end(returned, Cost{})
}

// Cost is what is reserved; zero once the reservation has ended.
func (r Reservation) Cost() Cost {
	if r.e == nil {
		if r.by != nil {
			return r.by.Cost(r.seq)
		}
		return Cost{}
	}
	l := r.e.l
	l.lock()
	defer l.mu.Unlock()
	if e := r.open(); e != nil {
		return e.cost
	}
	return Cost{}
}

// end ends a reservation of a Limiter. The lines are looked at before, for what
// is due by now, and after. Nobody waiting is the common case, and needs no
// clock.
func (r Reservation) end(how ending, actual Cost) {
	l := r.e.l
	l.lock()
	if l.waiting > 0 {
		l.catchUp()
	}
	if r.finish(how, actual) && l.waiting > 0 {
		l.run(l.last)
	}
	l.mu.Unlock()
}

// correct gives back (or, where negative, charges) the difference between
// reserved at instant taken and actual, in the root and in path. A limit that came after the
// reservation was not charged for it; giving back to it would mint credit.
func (l *Limiter) correct(diff Cost, seq uint64, taken int64, key flowKey, path []hold) {
	a := diff.amounts()
	l.correctIn(&l.root, diff, &a, seq, taken, key)
	for i := range path {
		l.correctIn(path[i].s, diff, &a, seq, taken, key)
	}
}

func (l *Limiter) correctIn(s *scope, diff Cost, a *amounts, seq uint64, taken int64, key flowKey) {
	s.refunds = s.refunds.plus(diff)
	for i := range s.limits {
		b := &s.limits[i]
		d := a.in(b.unit)
		switch {
		case d == 0 || b.born > seq:
			continue
		case d > 0:
			b.refund(taken, d)
		default:
			b.advance(l.now()) // a charge does depend on what was full before it
			b.charge(-d)
		}
		if b.line != nil && b.line.n > 0 {
			b.line.settle(l, key, seq, d)
			l.look(b.line, l.last)
		}
	}
}
