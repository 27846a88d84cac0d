package limit

// A Reservation is an admitted cost. It must be ended, once, in one of three ways.
// Ends after the first do nothing, from any goroutine. The ways are:
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
	by  Holder // of a Limiter: the entry
	seq uint64 // the handle: names this reservation among all that ever had the entry
}

// entry is an open reservation, or a free place for one.
type entry struct {
	l     *Limiter
	seq   uint64 // 0 = free
	taken int64  // instant
	cost  Cost
	next  *entry // of the free ones

	// The rest is as in a new entry, unless more is set.
	more   bool
	class  Class
	tenant *scope // nil for the root
	spare  Cost   // how much of the cost is expected to come back
	spend  Spend
	mark   mark   // in the root
	path   []hold // the other scopes it takes from, outermost first
}

// flow is the key of those whom e belongs to.
func (l *Limiter) flow(e *entry) flowKey {
	if e.tenant == nil {
		return flowKey{&l.root, e.class}
	}
	return flowKey{e.tenant, e.class}
}

// hold is an entry in one scope other than the root.
type hold struct {
	s    *scope
	sums sums // at the mark
}

// table keeps open reservations in reused entries, so that a handle is a plain
// value. The number in the handle tells a second end from the first.
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
	e.seq, e.taken, e.cost = t.seq, l.last, cost
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

// end ends the reservation seq of e, with its actual cost if it is settled, and
// reports whether it was open. Places are given back in every scope, and credit
// where less was used. The lines are looked at before, for what is due by now, and
// after. Nobody waiting is the common case, and needs no clock.
//
// It is called with the lock held.
func (e *entry) end(seq uint64, how ending, actual Cost, spent *Spend) bool {
	l := e.l
	if l.waiting > 0 {
		l.catchUp()
	}
	if e.seq != seq {
		return false
	}
	l.root.busy.open--
	if e.more || l.root.pause != nil || l.waiting > 0 {
		l.vacate(e, how)
	}
	if how != kept {
		e.mark.free = how == returned || e.mark.set && e.mark.free
		diff := e.cost
		if how == settled {
			diff = Cost{
				Input:  e.cost.Input - clampUnits(actual.Input),
				Output: e.cost.Output - clampUnits(actual.Output),
			}
		}
		a := diff.amounts()
		l.correct(&l.root, e, &a)
		if e.more {
			for i := range e.path {
				l.correct(e.path[i].s, e, &a)
			}
		}
	}
	if l.counts {
		l.counted(e, how, actual)
	}
	if e.spend != (Spend{}) {
		l.respend(e, how, spent)
	}
	if e.more {
		l.clean(e)
	}
	l.open.drop(e)
	if l.waiting > 0 {
		l.run(l.last)
	}
	return true
}

// ending is how a reservation ends.
type ending uint8

const (
	kept ending = iota
	settled
	returned
)

// vacate gives the places of e back, but for the count of the root.
func (l *Limiter) vacate(e *entry, how ending) {
	l.young.remove(e)
	l.leave(&l.root, e, how)
	for i := range e.path {
		s := e.path[i].s
		s.busy.open--
		l.leave(s, e, how)
	}
}

// leave notes that e gave its place in s back.
func (l *Limiter) leave(s *scope, e *entry, how ending) {
	if e.spare != (Cost{}) {
		s.busy.spare = s.busy.spare.minus(e.spare)
	}
	if s.pause != nil {
		l.probed(s, e.seq, how)
	}
	if l.waiting > 0 && s.busy.places != nil {
		l.look(s.busy.places, l.last)
	}
}

// clean makes e as new, and lets go of its scopes.
func (l *Limiter) clean(e *entry) {
	for i := range e.path {
		l.done(e.path[i].s)
	}
	clear(e.path)
	e.more, e.class, e.tenant, e.spare, e.spend, e.mark.set, e.mark.unsure, e.path = false, Interactive, nil, Cost{}, Spend{}, false, false, e.path[:0]
}

// Settle ends the reservation with the tokens that it really cost. Less than
// reserved is refunded at once, and may let the head of the line go; more is
// charged, and may leave debt, which later callers wait off. The request
// itself stays counted: one that was sent cannot be unsent, so actual.Requests
// is not read. A negative count is taken as 0, one above [MaxUnits] as that.
func (r Reservation) Settle(actual Cost) {
	if r.by != nil {
		r.by.Settle(r.seq, actual)
	}
}

// SettleSpent is Settle with what was spent of the [Allowances] on the path. What
// Settle alone ends has spent what [Ask.Spend] said. A ledger that does not read
// that does not read spent.
func (r Reservation) SettleSpent(actual Cost, spent Spend) {
	switch by := r.by.(type) {
	case *entry:
		spent = spent.bounded()
		by.l.lock()
		by.end(r.seq, settled, actual, &spent)
		by.l.mu.Unlock()
	case SpendHolder:
		by.SettleSpent(r.seq, actual, spent)
	default:
		r.Settle(actual)
	}
}

// Keep ends the reservation as it is: the reserved cost is spent.
func (r Reservation) Keep() {
	if r.by != nil {
		r.by.Keep(r.seq)
	}
}

// Return ends the reservation of a call that was never made.
func (r Reservation) Return() {
	if r.by != nil {
		r.by.Return(r.seq)
	}
}

// Cost is what is reserved; zero once the reservation has ended.
func (r Reservation) Cost() Cost {
	if r.by == nil {
		return Cost{}
	}
	return r.by.Cost(r.seq)
}

var _ Holder = (*entry)(nil)

func (e *entry) Settle(seq uint64, actual Cost) {
	l := e.l
	if !l.mu.TryLock() { // l.lock, which is not inlined
		l.lockSlow()
	}
	e.end(seq, settled, actual, nil)
	l.mu.Unlock()
}

func (e *entry) Keep(seq uint64) {
	l := e.l
	l.lock()
	e.end(seq, kept, Cost{}, nil)
	l.mu.Unlock()
}

func (e *entry) Return(seq uint64) {
	l := e.l
	l.lock()
	e.end(seq, returned, Cost{}, nil)
	l.mu.Unlock()
}

func (e *entry) Cost(seq uint64) Cost {
	e.l.lock()
	defer e.l.mu.Unlock()
	if e.seq != seq {
		return Cost{}
	}
	return e.cost
}

// correct gives back to s (or, where negative, charges) the difference between what
// e reserved and the actual cost. A limit that came after the reservation was not
// charged for it; giving back to it would mint credit, unless a balance has charged it:
// see [bound.earlier].
//
// Input above its estimate was charged on the other side when the call came. A reading
// of a later instant has it, and has lowered credit by it: it is not taken twice. Taken
// twice, estimates that were 32 % low during the first seconds cost 1.5 s of the rate
// for the whole of a drain. Output is not counted so: its charge comes at the end, and
// only the reading of [Reservation.Made] has it.
func (l *Limiter) correct(s *scope, e *entry, a *amounts) {
	s.busy.refunds = s.busy.refunds.plus(Cost{a[Requests], a[Input], a[Output]})
	s.busy.owed += max(0, -a[Input])
	limits := s.limits
	for i := range limits {
		b := &limits[i]
		d := a.in(b.unit)
		if b.rare != nil && b.born <= e.seq {
			if n := b.knew(e, a); n > 0 {
				b.advance(l.now())
				b.found(n)
			}
		}
		switch {
		case b.born > e.seq:
			if b.earlier(l, e, a) && b.line != nil {
				l.look(b.line, l.last)
			}
			continue
		case d == 0:
			continue
		case d < 0:
			b.advance(l.now()) // a charge does depend on what was full before it
			b.charge(-d)
		case b.more == nil: // asked here, as a call costs more
			b.Bucket.refund(d)
		default:
			b.refund(e.taken, d)
		}
		if q := b.line; q != nil && q.n > 0 {
			q.settle(l, l.flow(e), e.seq, d)
			l.look(q, l.last)
		}
	}
}
