package limit

import "time"

// Sent notes that an attempt under this reservation leaves now. What the other
// side says of its balance on that attempt is handed to [Reservation.Lower].
// Calling it again, for a further attempt, moves the note.
func (r Reservation) Sent() {
	if r.by != nil {
		r.by.Sent(r.seq)
	}
}

func (e *entry) Sent(seq uint64) { e.note(seq, false) }

// note sets the mark of e. made is true if all of the attempt is charged by now.
func (e *entry) note(seq uint64, made bool) {
	l := e.l
	l.lock()
	now := l.catchUp()
	if e.seq == seq {
		l.young.settle(l)
		l.young.remove(e)
		if !made || !e.mark.set {
			e.mark.left = now
		}
		e.more, e.mark.set, e.mark.made, e.mark.free, e.mark.at = true, true, made, false, now
		l.root.sumsAt(now, &e.mark.sums)
		for i := range e.path {
			e.path[i].s.sumsAt(now, &e.path[i].sums)
		}
		l.young.push(e)
	}
	l.mu.Unlock()
}

// Made notes that the other side has charged all of the attempt by now, its output too:
// it stated its balance at the end of the answer. It moves the note of [Reservation.Sent]
// to now. A ledger that does not tell the two apart notes it as Sent.
func (r Reservation) Made() {
	switch by := r.by.(type) {
	case nil:
	case interface{ Made(handle uint64) }:
		by.Made(r.seq)
	default:
		by.Sent(r.seq)
	}
}

func (e *entry) Made(seq uint64) { e.note(seq, true) }

// Unsure notes, after [Reservation.Sent], that costs are estimates, and that too few
// settlements have shown how far they are off. A [Guard] then lets go seven eighths of the tokens
// that the reading of this attempt shows: a crowd that goes at once may cost a seventh
// more than its estimates. No credit is lost by that, and later readings count in full.
// It does nothing for requests, which are no estimate, nor in a ledger without guards.
func (r Reservation) Unsure() {
	if by, ok := r.by.(interface{ Unsure(handle uint64) }); ok {
		by.Unsure(r.seq)
	}
}

func (e *entry) Unsure(seq uint64) {
	e.l.lock()
	defer e.l.mu.Unlock()
	if e.seq == seq && e.mark.set {
		e.mark.unsure = true
	}
}

// unsurePart is the part of a balance that a guard holds back while costs are estimates of
// which nothing was heard. With none, prompts that were estimated 32 % low had two calls of
// the first 60 refused.
const unsurePart = 8

// unsureOf is what a guard holds back of a balance that e brought, in units.
func (e *entry) unsureOf(u Unit, remaining int64) int64 {
	if !e.mark.unsure || u == Requests {
		return 0
	}
	return max(0, remaining) / unsurePart
}

// Lower tells the limit of that name that the other side, on the attempt noted
// by [Reservation.Sent], had remaining units left. Credit can only fall by it:
//
//	bound = remaining + rate*(now - sent) - debits since + refunds since
//	level = min(level, bound)
//
// The balance was true when the attempt was admitted there; since then it
// refilled at the rate and was charged for what left later. Stale and
// out-of-order readings need no special case: each carries its own instant and
// sums. Debits made within 250 ms after sending may be in the reading already
// and are not counted again. [Limit.ReadAt] may say that the balance is that
// of another instant. Two rules that look simpler are wrong:
// min(level, remaining) throws away what refilled while a slow answer ran, and
// remaining less everything in flight charges each call twice.
//
// The other side charges the input of a call when it comes. If a settlement finds more
// input than was reserved, a reading of a later instant has that already. So such a
// difference is no refund below zero in the formula, and the settlement charges only
// what the reading has not taken. It never gives credit beyond the own books: what
// was taken and settled here, without readings.
//
// own is what this attempt still holds that the other side did not charge: its
// cost if it was refused, else the zero Cost. A negative count in it is taken
// as 0. Of a limit that came after the reservation it holds nothing. Lower reports
// whether credit fell. It does nothing for an unknown name, without Sent, or after the end.
func (r Reservation) Lower(name string, remaining int64, own Cost) bool {
	return r.LowerIn("", name, remaining, own)
}

// LowerIn is [Reservation.Lower] for a limit of another scope that the
// reservation takes from. It does nothing for a scope that is not on its path.
func (r Reservation) LowerIn(scope, name string, remaining int64, own Cost) bool {
	return r.by != nil && r.by.Lower(r.seq, scope, name, remaining, own)
}

func (e *entry) Lower(seq uint64, scope, name string, remaining int64, own Cost) bool {
	l := e.l
	l.lock()
	defer l.mu.Unlock()
	now := l.catchUp()
	if e.seq != seq || !e.mark.set {
		return false
	}
	s, then := e.marked(scope)
	if s == nil {
		return false
	}
	b := s.find(name)
	if b == nil {
		return false
	}
	b.advance(now)
	var since Cost
	if !e.mark.young { // else nothing was debited after the first 250 ms
		since = s.busy.debits.minus(then.debits)
	}
	back := s.busy.refunds.minus(then.refunds)
	own = own.bounded()
	own = Cost{max(0, own.Requests), max(0, own.Input), max(0, own.Output)}
	back.Input += s.busy.owed - then.owed // the reading has it: see correct
	held, out, in := own.amounts(), since.amounts(), back.amounts()
	e.mark.free = e.mark.free || held != (amounts{})
	remaining = max(-MaxUnits, min(remaining, MaxUnits)) - e.holds(b, &held)
	level := mulSigned(remaining-b.cfg.Margin, b.w).
		add(mul(b.n, uint64(now-e.mark.at))).
		sub(mulSigned(out.in(b.unit), b.w)).
		add(mulSigned(in.in(b.unit), b.w))
	at := e.mark.at
	late, sent := e.isLate(s, b, then, remaining)
	if then := mulSigned(remaining-b.cfg.Margin, b.w); !sent && level.less(then) {
		level = then
		if late {
			at = now // else a settlement pays for what this reading may not have in it
		}
	}
	fell := b.heard(level, at, e.seq)
	if b.more != nil && held == (amounts{}) { // what a refusal shows is no balance to go by
		at, r := e.mark.at, reading{
			remaining: remaining, margin: b.cfg.Margin, charged: out.in(b.unit), returned: in.in(b.unit),
			near: l.near(e, s, then, b.unit), unsure: e.unsureOf(b.unit, remaining), told: b.conf != nil,
		}
		if late {
			at, r.charged, r.returned = now, 0, 0
		}
		fell = b.sawMore(at, r) || fell
		if b.line != nil {
			l.look(b.line, now) // a reading may let more go at once
		}
		l.run(now)
	} else if fell {
		l.run(now)
	}
	return fell
}

// holds is the part of held that e will give back to b: nothing of it if b came later.
func (e *entry) holds(b *bound, held *amounts) int64 {
	if b.born > e.seq {
		return 0
	}
	return held.in(b.unit)
}

// marked is the scope of a name on the path of e, with its sums at the mark. It is nil
// if e takes from no such scope.
func (e *entry) marked(name string) (*scope, sums) {
	if name == "" {
		return &e.l.root, e.mark.sums
	}
	for i := range e.path {
		if e.path[i].s.name == name {
			return e.path[i].s, e.path[i].sums
		}
	}
	return nil, sums{}
}

// isLate reports whether the reading of b that e brought now is a balance of now, and
// not of the mark. sent reports whether it is taken for one of the mark. While answers
// speak for neither, a guard and a window do so. The credit of a bucket falls to the
// higher of the two bounds then. Lowered to that of the mark, the ledger paid twice for all
// that left since. An unconfigured Anthropic lost 20 s of its limit so in the first 15 s.
func (e *entry) isLate(s *scope, b *bound, then sums, remaining int64) (late, sent bool) {
	if b.cfg.ReadAt == ReadAtSending {
		return false, true
	}
	l := e.l
	now := l.last
	x := b.needsRare()
	if x.when == nil {
		x.when = &instant{}
		if b.cfg.ReadAt == ReadAtAnswer {
			x.when.late = sureLate
		}
	}
	late = x.when.saw(b, snap{remaining, now, s.used(b.unit), s.lately(now, b.unit)},
		snap{remaining, e.mark.at, then.used(b.unit), l.near(e, s, then, b.unit)})
	window := b.more != nil && b.more.window != nil
	if window && !b.more.guarded {
		late = b.cfg.ReadAt == ReadAtAnswer
	}
	return late, !late && (window || x.when.late < 0)
}

// near is the charge in s, in units, so near to the mark of e that the reading of e
// may include it or not. The charge of e itself is left out.
func (l *Limiter) near(e *entry, s *scope, then sums, u Unit) int64 {
	if s.busy.trail == nil {
		return 0 // not kept: no guard, and no window
	}
	upTo := then.debits
	if e.mark.young {
		upTo = s.busy.debits
	}
	c := upTo.minus(then.before)
	if e.taken >= e.mark.at-settleTime {
		c = c.minus(e.cost)
	}
	a := c.amounts()
	return max(0, a.in(u))
}

// lately is what was charged in s so shortly before now that a reading of now may not
// have it yet, in units.
func (s *scope) lately(now int64, u Unit) int64 {
	if s.busy.trail == nil {
		return 0
	}
	a := s.busy.debits.minus(s.busy.trail.at(now-settleTime, s.busy.debits)).amounts()
	return max(0, a.in(u))
}

// Passed notes that the other side has not refused the attempt noted by
// [Reservation.Sent]. Where a [Limit.Guard] let a whole burst go with it, the next
// one may be twice as large. It does nothing without Sent, or after the end.
func (r Reservation) Passed() {
	if p, ok := r.by.(interface{ Passed(handle uint64) }); ok {
		p.Passed(r.seq)
	}
}

func (e *entry) Passed(seq uint64) {
	l := e.l
	l.lock()
	defer l.mu.Unlock()
	if e.seq != seq || !e.mark.set {
		return
	}
	grown := l.root.passed(l, e)
	for i := range e.path {
		grown = e.path[i].s.passed(l, e) || grown
	}
	if grown {
		l.run(l.last)
	}
}

// passed lets the guards of s grow after e. It reports whether one did.
func (s *scope) passed(l *Limiter, e *entry) (grown bool) {
	if s.busy.trail == nil {
		return false
	}
	for i := range s.limits {
		b := &s.limits[i]
		if b.more == nil || !b.more.guarded || b.more.guard.open || !b.more.guard.proves(e.mark.at) {
			continue
		}
		now := l.catchUp()
		burst := b.more.guard.pace.burst
		b.more.guard.Passed(time.Duration(now), time.Duration(e.mark.at))
		if b.more.guard.pace.burst != burst {
			grown = true
			if b.line != nil {
				l.look(b.line, now)
			}
		}
	}
	return grown
}

// used is what is charged of a unit in all, as settled so far.
func (s *scope) used(u Unit) int64 {
	return sums{debits: s.busy.debits, refunds: s.busy.refunds}.used(u)
}

func (s sums) used(u Unit) int64 {
	a := s.debits.minus(s.refunds).amounts()
	return a.in(u)
}

// An instant learns of which instant readings speak: that at which the call was
// sent, or that at which its answer came. Some providers look when they admit a
// call and some when they answer, and nothing else says which. Of two answers in a
// row the second balance follows from the first, what was charged between, and the
// refill, or none in a window. A pair votes for the instant that foretells it to
// half a second of the refill, if the other is four times as far off. A charge so
// near to a reading that the reading may include it or not is no miss. As much is
// allowed again for what came back then. In a window that decides there is no
// refill to tell the two apart, and chance speaks too often. There [Limit.ReadAt]
// stands: a wrong reading would stay for a window.
type instant struct {
	set            bool
	answered, sent snap
	late           int8 // votes for the answer, less those for the sending
}

const sureLate = 3 // votes

// A snap is a balance, and what had been charged by its instant: in all, and so near
// to it that the balance may have it or not.
type snap struct {
	remaining, at, used, near int64
}

// saw takes in one reading in two forms: answered if it speaks of the instant of
// the answer, sent if it speaks of the sending. It reports whether readings speak
// of the answer.
func (i *instant) saw(b *bound, answered, sent snap) (late bool) {
	if i.set && sent.remaining < b.cfg.Rate.N-b.cfg.Rate.N/50 {
		a, s := answered.apart(i.answered, b.cfg.Rate), sent.apart(i.sent, b.cfg.Rate)
		near := b.cfg.Rate.In(time.Second / 2)
		unsureA, unsureS := 2*(answered.near+i.answered.near), 2*(sent.near+i.sent.near)
		switch {
		case a <= near && s > 2*near+unsureS && 4*a < s:
			i.late = min(i.late+1, 2*sureLate)
		case s <= near && a > 2*near+unsureA && 4*s < a:
			i.late = max(i.late-1, -2*sureLate)
		}
	}
	i.set, i.answered, i.sent = true, answered, sent
	return i.late >= sureLate
}

// apart is how far s is from what the snap before foretells.
func (s snap) apart(before snap, r Rate) int64 {
	still := before.remaining - (s.used - before.used)
	refill := r.In(time.Duration(max(0, s.at-before.at)))
	if s.at < before.at {
		refill = -r.In(time.Duration(before.at - s.at))
	}
	return min(distance(s.remaining, still), distance(s.remaining, still+refill))
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// A mark remembers the sums at the instant an attempt was sent. With them, what the
// other side later says of that instant can be carried forward.
type mark struct {
	set    bool
	made   bool // the attempt is charged in full by then
	unsure bool // costs were estimates of which nothing had been heard
	young  bool // less than 250 ms old, and in the list of those
	free   bool // the other side did not charge the attempt, or not all of it
	at     int64
	left   int64 // when the attempt left: at, unless made moved that
	sums   sums  // of the root; those of other scopes are in entry.path

	older, newer *entry // in that list
}

// sums are those of a scope at the instant of a mark.
type sums struct {
	debits  Cost // final, once the mark is no longer young
	refunds Cost
	owed    int64
	before  Cost // debits when the mark was settleTime away; where there is a trail
}

// sumsAt writes to n what the sums of s are at now.
func (s *scope) sumsAt(now int64, n *sums) {
	b := s.busy
	n.debits, n.refunds, n.owed, n.before = b.debits, b.refunds, b.owed, Cost{}
	if b.trail != nil {
		n.before = b.trail.at(now-settleTime, b.debits)
	}
}

// A trail is what had been charged in a scope by some instants of the last half of
// a second: one for each slot of 2^24 nanoseconds, as it was when the slot began.
type trail struct {
	debits [32]Cost
	last   int64 // the number of the present slot
}

func (t *trail) note(now int64, debits Cost) {
	k := int64(len(t.debits))
	slot := now >> 24
	for i := max(t.last+1, slot-k+1); i <= slot; i++ {
		t.debits[i%k] = debits
	}
	t.last = max(t.last, slot)
}

// at is what had been charged by an instant at most, if debits are the present ones.
func (t *trail) at(now int64, debits Cost) Cost {
	k := int64(len(t.debits))
	switch slot := max(0, now) >> 24; {
	case slot > t.last:
		return debits
	case slot <= t.last-k:
		return t.debits[(t.last+1)%k] // the oldest
	default:
		return t.debits[slot%k]
	}
}

// settleTime is how long after an attempt left its debits may already be in
// the snapshot it brings back. Debits of that time are not counted again.
const settleTime = int64(250 * time.Millisecond)

// marks lists the open reservations whose marks are younger than settleTime.
type marks struct {
	oldest, newest *entry
}

func (q *marks) push(e *entry) {
	e.mark.young, e.mark.older = true, q.newest
	if q.newest == nil {
		q.oldest = e
	} else {
		q.newest.mark.newer = e
	}
	q.newest = e
}

func (q *marks) remove(e *entry) {
	m := &e.mark
	if !m.young {
		return
	}
	if m.older == nil {
		q.oldest = m.newer
	} else {
		m.older.mark.newer = m.newer
	}
	if m.newer == nil {
		q.newest = m.older
	} else {
		m.newer.mark.older = m.older
	}
	m.young, m.older, m.newer = false, nil, nil
}

// settle fixes the debits of marks that are old enough. It runs before every
// debit, so each mark holds just those of its first 250 ms.
func (q *marks) settle(l *Limiter) {
	for e := q.oldest; e != nil && l.last-e.mark.at > settleTime; e = q.oldest {
		e.mark.sums.debits = l.root.busy.debits
		for i := range e.path {
			e.path[i].sums.debits = e.path[i].s.busy.debits
		}
		q.remove(e)
	}
}
