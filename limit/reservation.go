package limit

import "runtime"

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
	l    *Limiter
	seq  uint64 // 0 = free
	cost Cost
	next *entry // of the free ones
	mark mark
}

// table keeps open reservations in reused entries, so that a handle is a plain
// value and a second end is told from the first by its number.
type table struct {
	free *entry
	seq  uint64 // the last that was given
	n    int    // open ones: those in flight
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
	e.seq, e.cost, e.mark.set = t.seq, cost, false
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

// end closes the reservation and gives back its place in flight. It returns
// false if it was ended before.
func (r Reservation) end() (cost Cost, ok bool) {
	e := r.open()
	if e == nil {
		return Cost{}, false
	}
	e.l.young.remove(e)
	e.l.open.drop(e)
	return e.cost, true
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
	l := r.e.l
	l.lock()
	l.moving()
	if cost, ok := r.end(); ok {
		l.correct(Cost{
			Input:  cost.Input - clampUnits(actual.Input),
			Output: cost.Output - clampUnits(actual.Output),
		}, r.seq)
		l.moved()
	}
	l.mu.Unlock()
}

// Keep ends the reservation as it is: what was reserved is spent.
func (r Reservation) Keep() {
	if r.e == nil {
		if r.by != nil {
			r.by.Keep(r.seq)
		}
		return
	}
	l := r.e.l
	l.lock()
	l.moving()
	if _, ok := r.end(); ok {
		l.moved()
	}
	l.mu.Unlock()
}

// Return ends the reservation of a call that was never made.
func (r Reservation) Return() {
	if r.e == nil {
		if r.by != nil {
			r.by.Return(r.seq)
		}
		return
	}
	l := r.e.l
	l.lock()
	l.moving()
	if cost, ok := r.end(); ok {
		l.correct(cost, r.seq)
		l.moved()
	}
	l.mu.Unlock()
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

// KeepOnCollect ends r as kept when the garbage collector finds that p, the
// thing whose life the reservation covers, was forgotten without ending it. It
// is a net under a leak, not a way to end: it costs an allocation, and the
// collector comes when it likes. Stop the returned cleanup to spare it.
func KeepOnCollect[T any](p *T, r Reservation) runtime.Cleanup {
	return runtime.AddCleanup(p, Reservation.Keep, r)
}

// correct gives back (or, where negative, charges) the difference between
// reserved and actual. A limit that came after the reservation was not charged
// for it; giving back to it would mint credit.
func (l *Limiter) correct(diff Cost, seq uint64) {
	l.refunds = l.refunds.plus(diff)
	a := diff.amounts()
	for i := range l.limits {
		b := &l.limits[i]
		switch d := a.in(b.unit); {
		case d == 0 || b.born > seq:
		case d > 0:
			b.refund(d)
		default:
			b.advance(l.now()) // a charge does depend on what was full before it
			b.charge(-d)
		}
	}
}

// moving and moved stand around a change that gives back credit or a place: the
// line is looked at before, for what is due by now, and after. Nobody waiting is
// the common case, and needs no clock.
func (l *Limiter) moving() {
	if l.head() != nil {
		l.catchUp()
	}
}

func (l *Limiter) moved() {
	if l.head() != nil {
		l.schedule(l.last)
	}
}
