package limit

import (
	"math"
	"time"
)

// want is one call that is being decided, on the stack.
type want struct {
	cost, likely Cost
	spend        Spend
	pricer       Pricer
	a            amounts // of cost
	place        bool    // takes a place in flight
	first        bool
	class        Class
	tenant       *scope   // the root for the common tenant
	path         []*scope // outermost first, without the root
}

func (w *want) price(cost, likely Cost) {
	w.cost = cost.bounded()
	w.a = w.cost.amounts()
	w.likely = w.cost
	if likely != (Cost{}) && likely.valid() {
		w.likely = likely.bounded()
	}
}

// want fills w in from a, and keeps its scopes from being forgotten until unwant.
func (l *Limiter) want(w *want, a *Ask, place bool) error {
	w.price(a.Cost, a.Likely)
	if a.Spend != (Spend{}) {
		w.spend = a.Spend.bounded()
	}
	w.pricer = a.Pricer
	w.place, w.first, w.class, w.tenant = place, a.First, a.Class, &l.root
	if w.class >= classes {
		return &ConfigError{"Class", uint8(w.class), "must be Interactive or Batch"}
	}
	if len(a.Scopes) == 0 && a.Tenant == "" {
		return nil
	}
	// Making a scope may let go of the lock, so the path is gathered only when
	// all scopes are there. They may be forgotten meanwhile, but seldom for ever.
	for {
		made := false
		path := l.path[:0]
		for i := 0; i <= len(a.Scopes); i++ {
			name := a.Tenant
			if i < len(a.Scopes) {
				name = a.Scopes[i]
			}
			if name == "" {
				continue
			}
			s := l.sameAsLast(len(path), name)
			if s == nil {
				s = l.scopes.find(name)
			}
			if s == nil {
				made = true
				if _, err := l.scope(name); err != nil {
					return err
				}
				break
			}
			if i == len(a.Scopes) {
				w.tenant = s
			}
			if !contains(path, s) {
				path = append(path, s)
			}
		}
		if !made {
			l.path, w.path = path, path
			break
		}
	}
	for _, s := range w.path {
		l.use(s)
	}
	return nil
}

// sameAsLast is the i-th scope of the call before, if it has that name, or nil. Most
// calls of a program have one path, and looking names up takes longer.
func (l *Limiter) sameAsLast(i int, name string) *scope {
	if i < len(l.path) && l.path[i].name == name {
		return l.path[i]
	}
	return nil
}

func contains(path []*scope, s *scope) bool {
	for _, p := range path {
		if p == s {
			return true
		}
	}
	return false
}

func (l *Limiter) unwant(w *want) {
	for _, s := range w.path {
		l.done(s)
	}
}

func (w *want) flow() flowKey { return flowKey{w.tenant, w.class} }

// at is the i-th scope of the path from the inside: the root is the last.
func (l *Limiter) at(path []*scope, i int) *scope {
	if i < len(path) {
		return path[len(path)-1-i]
	}
	return &l.root
}

// A stop is the thing that a call lacks, and when to look again.
type stop struct {
	s    *scope
	b    *bound
	door bool
	at   int64
}

// line is the line of the stop, or nil if nobody was ever in it.
func (st *stop) line() *line {
	switch {
	case st.b != nil:
		return st.b.line
	case st.s.busy == nil:
		return nil
	case st.door:
		return st.s.busy.door
	}
	return st.s.busy.places
}

// lacks looks for what w lacks at now. It goes through the path from the inside
// out. So a call that is stopped by something of its own stands there, and blocks
// nobody at the limits that it shares.
//
// k is the lane whose head w is, first in the line where it stands, and has been
// looked at there; or it is nil for a newcomer. Others who stand in a line are
// before w, unless the order there says otherwise.
func (l *Limiter) lacks(w *want, k *lane, now int64) (st stop, lacks bool) {
	var in *line
	if k != nil {
		in = k.in
	}
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		if w.place && s.places() > 0 && (in == nil || s.busy.places != in) {
			if s.full() {
				return stop{s: s, at: never}, true
			}
			if at, behind := l.behind(s.busy.places, w, k, now, 1); behind {
				return stop{s: s, at: at}, true
			}
		}
		for j := range s.limits {
			b := &s.limits[j]
			c := w.a.in(b.unit)
			if c == 0 || in != nil && b.line == in {
				continue // what needs nothing of a limit delays nobody there
			}
			if at, short := b.short(now, c); short {
				return stop{s: s, b: b, at: at}, true
			}
			if b.line == nil {
				continue
			}
			if at, behind := l.behind(b.line, w, k, now, c); behind {
				return stop{s: s, b: b, at: at}, true
			}
		}
		if now < s.pausedUntil && (in == nil || s.busy.door != in) {
			at, held := s.holds(now, w.place)
			if !held {
				at, held = l.behind(s.busy.door, w, k, now, 0)
			}
			if held {
				return stop{s: s, door: true, at: at}, true
			}
		}
	}
	return stop{}, false
}

// stays reports whether k, the first of q, still lacks what q is about, and when
// to look again. A lane stays where it is until it has enough of that.
func (l *Limiter) stays(q *line, k *lane, now int64) (at int64, stays bool) {
	c := int64(1)
	switch {
	case q.b != nil:
		if q.b.line != q {
			return 0, false // a line for nothing now
		}
		a := k.head.cost.amounts()
		c = a.in(q.b.unit)
		if at, short := q.b.short(now, c); short {
			return at, true
		}
	case q.door:
		return q.s.holds(now, k.needs&needsPlace != 0)
	case q.s.full():
		return never, true
	case q.s.places() == 0:
		return 0, false
	}
	if q.claim != nil && q.claim != k {
		return l.claimed(q, k, now, c)
	}
	return 0, false
}

// behind reports whether w must wait for others in q, if there is such a line, though the c units that it
// wants are there. The instant is that until which it must, or never.
func (l *Limiter) behind(q *line, w *want, k *lane, now, c int64) (at int64, behind bool) {
	if q == nil {
		return 0, false
	}
	if q.n > 0 && (k == nil || k.in != q) {
		var head *waiter
		if k != nil {
			head = k.head
		}
		if !q.goesBefore(w.flow(), head, w.first, c) {
			return never, true
		}
	}
	if q.claim != nil && q.claim != k {
		return l.claimed(q, k, now, c)
	}
	return 0, false
}

// take spends what w wants in all scopes of its path. Nothing is lacking. k is the lane
// whose head w is, or nil for a newcomer.
func (l *Limiter) take(w *want, k *lane, now int64) Reservation {
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		for j := range s.limits {
			b := &s.limits[j]
			if c := w.a.in(b.unit); b.more == nil {
				b.Bucket.take(now, c)
			} else {
				b.takeMore(now, c)
			}
		}
		l.debit(s, w.cost, now)
	}
	if l.waiting > 0 {
		l.meet(w, k) // before the reservation gets its number: see flow.born
	}
	if w.spend != (Spend{}) {
		for i := 0; i <= len(w.path); i++ {
			l.spend(l.at(w.path, i), w, now)
		}
	}
	r := l.reserve(w, now)
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		if w.place && s != &l.root {
			l.use(s)
		}
		if l.waiting == 0 {
			continue
		}
		for j := range s.limits {
			b := &s.limits[j]
			if q := b.line; q != nil && q.n > 0 {
				if c := w.a.in(b.unit); c > 0 {
					l.charge(q, q.met(w, k), c, now)
				}
			}
		}
		if q := s.busy.places; w.place && q != nil && q.n > 0 {
			l.charge(q, q.met(w, k), 1, now)
		}
	}
	return r
}

// reserve makes the reservation of what w has taken. It keeps the scopes of its path
// from being forgotten: the caller uses each once more for it.
func (l *Limiter) reserve(w *want, now int64) Reservation {
	if !w.place {
		return l.unheld(w.cost, w.path, now)
	}
	e := l.open.put(l, w.cost)
	if len(w.path) > 0 || w.class != Interactive || w.likely != w.cost || w.spend != (Spend{}) {
		e.more, e.class, e.spare, e.spend = true, w.class, w.cost.minus(w.likely), w.spend
		if w.tenant != &l.root {
			e.tenant = w.tenant
		}
	}
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		s.busy.open++
		if s != &l.root {
			e.path = append(e.path, hold{s: s})
		}
		if e.more {
			s.busy.spare = s.busy.spare.plus(e.spare)
		}
		if p := s.pause; p != nil && now < s.pausedUntil {
			p.probe = e.seq
		}
	}
	return Reservation{by: e, seq: e.seq}
}

// unheld is the reservation of a cost that has no end. It has no handle, but its age is
// kept. Where calls count from their ends, it has ended now.
func (l *Limiter) unheld(cost Cost, path []*scope, now int64) Reservation {
	if l.counts {
		e := entry{l: l, seq: l.open.seq, taken: now, cost: cost}
		l.root.counted(l, &e, cost)
		for _, s := range path {
			s.counted(l, &e, cost)
		}
	}
	return Reservation{seq: l.open.seq}
}

// admit takes what w wants in all scopes of its path while nobody waits, if it may go
// at now: there are places in flight, no pause, and credit in each limit. The
// reservation then uses the scopes in place of w. Else, or if w is unusual, it leaves
// all as it was. It decides as lacks and take do, in one pass.
func (l *Limiter) admit(w *want, now int64) (r Reservation, ok bool) {
	if l.waiting > 0 || !w.place || w.spend != (Spend{}) || !w.cost.usual() {
		return Reservation{}, false
	}
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		if s.full() || now < s.pausedUntil || !s.take(now, &w.a) {
			for i--; i >= 0; i-- {
				s := l.at(w.path, i)
				s.untake(&w.a, len(s.limits))
			}
			return Reservation{}, false
		}
	}
	for i := 0; i <= len(w.path); i++ {
		l.debit(l.at(w.path, i), w.cost, now)
	}
	return l.reserve(w, now), true
}

// take spends a in all limits of s at now, if all have room for it.
func (s *scope) take(now int64, a *amounts) bool {
	limits := s.limits
	for i := range limits {
		b := &limits[i]
		var ok bool
		if c := a.in(b.unit); b.more == nil { // asked here, as a call costs more
			ok = b.Bucket.take(now, c)
		} else {
			ok = b.takeMore(now, c)
		}
		if !ok {
			s.untake(a, i)
			return false
		}
	}
	return true
}

// untake undoes take in the first n limits, exactly: they were advanced to the same
// instant.
func (s *scope) untake(a *amounts, n int) {
	for i := range s.limits[:n] {
		b := &s.limits[i]
		b.untake(a.in(b.unit))
	}
}

// debit notes what is taken of s at now.
func (l *Limiter) debit(s *scope, c Cost, now int64) {
	if l.young.oldest != nil || s.busy.trail != nil {
		l.remember(s, now)
	}
	s.busy.debits = s.busy.debits.plus(c)
	if l.counts {
		s.begins(now, c)
	}
}

// meet makes sure that w, the head of k or a newcomer, has a flow in each line that it
// will be charged in. A flow counts only reservations with a number after its own.
func (l *Limiter) meet(w *want, k *lane) {
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		for j := range s.limits {
			b := &s.limits[j]
			if q := b.line; q != nil && q.n > 0 && w.a.in(b.unit) > 0 {
				q.meet(l, w, k)
			}
		}
		if q := s.busy.places; w.place && q != nil && q.n > 0 {
			q.meet(l, w, k)
		}
	}
}

func (q *line) meet(l *Limiter, w *want, k *lane) {
	if k != nil && k.in == q {
		q.reweigh(l, k.flow)
	} else {
		q.flowOf(l, w.flow())
	}
}

// met is the flow of w, the head of k or a newcomer, after meet.
func (q *line) met(w *want, k *lane) *flow {
	if k != nil && k.in == q {
		return k.flow
	}
	return q.find(w.flow())
}

// pass is take for a newcomer who does not wait. It may change whose turn it is
// among those who do.
func (l *Limiter) pass(w *want, now int64) Reservation {
	r := l.take(w, nil, now)
	if l.waiting > 0 {
		l.run(now)
	}
	return r
}

// charge is line.charge, and has the line looked at again.
func (l *Limiter) charge(q *line, f *flow, c, now int64) {
	q.charge(l, f, c)
	l.look(q, now)
}

// impossible is the error for a want that no wait can make admissible, or nil.
func (l *Limiter) impossible(w *want) *Error {
	if c := w.cost; !c.valid() {
		return &Error{Reason: ErrInvalid, Dimension: "cost", Cost: min(c.Requests, c.Input, c.Output)}
	}
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		for j := range s.limits {
			b := &s.limits[j]
			if c := w.a.in(b.unit); c > b.max {
				return &Error{Reason: ErrTooLarge, Scope: s.name, Dimension: b.cfg.Name, Cost: c, Capacity: b.max}
			}
		}
	}
	return nil
}

// An outlook is when a call could go, under no other use, and what it waits for.
type outlook struct {
	at    int64
	s     *scope
	b     *bound // the limit that sets at; nil if a pause does, or nothing
	full  *scope // a scope without a place in flight, if there is one
	known bool
}

// estimate is the outlook of w behind the lane k, or alone if k is nil. Those
// who go before it are priced at what they will probably cost. Places in flight
// are not in it, for nobody knows when a call will end.
//
// The least estimate leaves out other tenants, who may leave, and counts what open
// reservations are expected to give back. An estimate takes constant time for any
// number of waiting calls. It is never too late for those of one lane. See Error
// for when it is exact.
func (l *Limiter) estimate(w *want, k *lane, now int64, least bool) outlook {
	o := outlook{known: true}
	start := now
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		if now < s.pausedUntil && s.opens() > start {
			start, o.s = s.opens(), s
		}
		if w.place && s.full() {
			o.full, o.known = s, false
		}
	}
	o.at = start
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		for j := range s.limits {
			b := &s.limits[j]
			c := w.a.in(b.unit)
			if c == 0 {
				continue
			}
			b.advance(now)
			ahead := l.ahead(w, k, b, c, least)
			if least {
				spare := s.busy.spare.amounts()
				ahead -= max(0, spare.in(b.unit))
				c = max(0, c+min(0, ahead))
				ahead = max(0, ahead)
			}
			if t := later(start, b.waitFrom(start, ahead, c)); t > o.at {
				o.at, o.s, o.b = t, s, b
			}
		}
	}
	return o
}

// ahead is the units of b that are expected to go before w, who wants c.
func (l *Limiter) ahead(w *want, k *lane, b *bound, c int64, least bool) int64 {
	var own Cost
	if k != nil {
		own = k.likely
		if w.first {
			own = k.firstLikely
		}
	}
	q := b.line
	if q == nil || q.n == 0 || w.first {
		a := own.amounts()
		return a.in(b.unit)
	}
	t := &q.class[w.class]
	others, weight := t.likely, t.weight
	mine := int64(max(1, w.tenant.opt.Weight))
	if f := q.find(w.flow()); f != nil && f.pos >= 0 {
		if k == nil || k.in != q {
			own = own.plus(f.likely)
		} else {
			own = own.plus(f.likely).minus(k.likely)
		}
		others, weight = others.minus(f.likely), weight-f.weight
	}
	a := own.amounts()
	ahead := a.in(b.unit)
	if least {
		return ahead
	}
	// While own and c are served, the others are served in proportion to their
	// weights, as far as they have that much waiting.
	o := others.amounts()
	turn := mul(uint64(ahead+c), uint64(weight)).floorDiv(uint64(mine))
	ahead += min(o.in(b.unit), turn)
	if w.class == Batch {
		o := q.class[Interactive].likely.amounts()
		turn := mul(uint64(ahead+c), uint64(100-q.floor)).floorDiv(uint64(q.floor))
		ahead += min(o.in(b.unit), turn)
	}
	return ahead
}

// refusal describes why a possible want is not admitted now, in numbers.
func (l *Limiter) refusal(reason error, w *want, o outlook) *Error {
	now := l.last
	e := &Error{Reason: reason}
	full := func() {
		e.Scope, e.Dimension, e.Cost, e.Capacity = o.full.name, "in-flight", 1, int64(o.full.places())
	}
	switch {
	case o.full != nil && reason != ErrWaitTooLong:
		full()
		return e // it could go when a call ends, and nobody knows when
	case o.b != nil:
		e.Scope, e.Dimension, e.Cost, e.Capacity = o.s.name, o.b.cfg.Name, w.a.in(o.b.unit), o.b.max
	case o.s != nil:
		e.Scope, e.Dimension = o.s.name, "pause"
	case o.full != nil:
		full()
	default:
		e.Dimension, e.Cost = "line", 1
	}
	if s := o.s; s != nil && now < s.pausedUntil && s.pause != nil {
		e.By, e.Why = s.pause.by, s.pause.why
	}
	switch {
	case o.at == math.MaxInt64: // or later: longer than can be said, but not unknown
		e.Wait = math.MaxInt64
		e.Earliest = l.base.Add(math.MaxInt64)
	case o.at > now:
		e.Wait = time.Duration(o.at - now)
		e.Earliest = l.base.Add(time.Duration(o.at))
	}
	return e
}
