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
	l   *Limiter
	seq uint64 // names this reservation among all that ever had the entry
	i   uint32 // entry in the limiter's table
}

// entry is an open reservation.
type entry struct {
	seq    uint64 // 0 = free
	cost   Cost
	parked bool // holds no place in flight
	mark   mark
	next   uint32 // next free entry, plus 1
}

// table keeps open reservations in reused entries, so that a handle is a plain
// value and a second end is told from the first by its number.
type table struct {
	entries []entry
	free    uint32 // first free entry, plus 1
	seq     uint64
	n       int
}

func (t *table) put(cost Cost) (i uint32, seq uint64) {
	t.seq++
	t.n++
	if t.free == 0 {
		t.entries = append(t.entries, entry{})
		i = uint32(len(t.entries) - 1)
	} else {
		i = t.free - 1
		t.free = t.entries[i].next
	}
	e := &t.entries[i]
	e.seq, e.cost, e.parked, e.mark.set = t.seq, cost, false, false
	return i, t.seq
}

// get is the entry of an open reservation, or nil.
func (t *table) get(i uint32, seq uint64) *entry {
	if int(i) >= len(t.entries) || t.entries[i].seq != seq {
		return nil
	}
	return &t.entries[i]
}

func (t *table) drop(i uint32) {
	t.entries[i].seq = 0
	t.entries[i].next = t.free
	t.free = i + 1
	t.n--
	if t.n == 0 && len(t.entries) > 1024 { // after a peak, let it go
		t.entries, t.free = nil, 0
	}
}

// end closes the reservation and gives back its place in flight. It returns
// false if it was ended before.
func (r Reservation) end() (cost Cost, ok bool) {
	e := r.l.open.get(r.i, r.seq)
	if e == nil {
		return Cost{}, false
	}
	cost = e.cost
	if !e.parked {
		r.l.inFlight--
	}
	r.l.open.drop(r.i)
	return cost, true
}

// Settle ends the reservation with the tokens that it really cost. Less than
// reserved is refunded at once, and may let the head of the line go; more is
// charged, and may leave debt, which later callers wait off. The request
// itself stays counted: one that was sent cannot be unsent, so actual.Requests
// is not read. A negative count is taken as 0, one above [MaxUnits] as that.
func (r Reservation) Settle(actual Cost) {
	if r.l == nil {
		return
	}
	l := r.l
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
	if r.l == nil {
		return
	}
	l := r.l
	l.lock()
	l.moving()
	if _, ok := r.end(); ok {
		l.moved()
	}
	l.mu.Unlock()
}

// Return ends the reservation of a call that was never made.
func (r Reservation) Return() {
	if r.l == nil {
		return
	}
	l := r.l
	l.lock()
	l.moving()
	if cost, ok := r.end(); ok {
		l.correct(cost, r.seq)
		l.moved()
	}
	l.mu.Unlock()
}

// Park gives back the place in flight and leaves the reservation open: for a
// call that waits, with its cost taken, before it is tried again.
func (r Reservation) Park() {
	if r.l == nil {
		return
	}
	l := r.l
	l.lock()
	l.moving()
	if e := l.open.get(r.i, r.seq); e != nil && !e.parked {
		e.parked = true
		l.inFlight--
		l.moved()
	}
	l.mu.Unlock()
}

// Cost is what is reserved; zero once the reservation has ended.
func (r Reservation) Cost() Cost {
	if r.l == nil {
		return Cost{}
	}
	r.l.lock()
	defer r.l.mu.Unlock()
	if e := r.l.open.get(r.i, r.seq); e != nil {
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
