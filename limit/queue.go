package limit

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"
)

// hardQueue * 2 * (MaxUnits+1) < 2^63: the sum of input and output over all who
// wait cannot overflow.
const hardQueue = 1 << 22

// lostTime is how often the limiter looks for forgotten tickets, while somebody
// waits and there are tickets.
const lostTime = time.Second

// A waiter is one call that waits, in its lane.
type waiter struct {
	l            *Limiter
	cost, likely Cost
	spend        Spend
	pricer       Pricer
	first        bool
	seq          uint64        // order of arrival
	joined       int64         // instant
	went         int64         // instant of the decision
	expires      int64         // instant at which it is refused
	done         chan struct{} // gets one value at the decision; of a ticket, it is closed
	ticket       bool
	stop         func() bool // of a ticket: forgets its context

	// Guarded by l.mu until the decision, unchanging after, but for leave.
	lane         *lane // nil once decided
	prev, next   *waiter
	older, newer *waiter // among all who wait
	r            Reservation
	err          error
	taken        bool    // of a ticket: it ended, or its owner has the outcome
	lost         *waiter // the next in Limiter.lost
}

// before is the order of two waiters of one tenant and class.
func (t *waiter) before(o *waiter) bool {
	if t.first != o.first {
		return t.first
	}
	return t.seq < o.seq
}

// push puts t at the end of the lane, or behind those who go first.
func (k *lane) push(t *waiter) {
	t.lane, t.prev = k, k.tail
	if t.first {
		t.prev = k.last
		k.last = t
		k.firstLikely = k.firstLikely.plus(t.likely)
	}
	if t.prev == nil {
		t.next, k.head = k.head, t
	} else {
		t.next, t.prev.next = t.prev.next, t
	}
	if t.next == nil {
		k.tail = t
	} else {
		t.next.prev = t
	}
	k.n++
	k.likely = k.likely.plus(t.likely)
}

func (k *lane) remove(t *waiter) {
	if t.first {
		k.firstLikely = k.firstLikely.minus(t.likely)
		if k.last == t {
			k.last = t.prev
		}
	}
	if t.prev == nil {
		k.head = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		k.tail = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.lane, t.prev, t.next = nil, nil, nil
	k.n--
	k.likely = k.likely.minus(t.likely)
}

// ask admits a now, or lets it wait, or refuses it without changing anything. A
// caller that waits gets a waiter. The lock is held.
func (l *Limiter) ask(a *Ask, place bool, deadline time.Time) (*waiter, Reservation, error) {
	var w want
	if err := l.want(&w, a, place); err != nil {
		return nil, Reservation{}, err
	}
	return l.enter(&w, deadline, l.clock())
}

// enter is ask for a want, at the instant stamp. It lets go of the want.
func (l *Limiter) enter(w *want, deadline time.Time, stamp int64) (t *waiter, r Reservation, err error) {
	now := l.catchUpTo(stamp)
	if r, ok := l.admit(w, now); ok {
		return nil, r, nil
	}
	if e := l.impossible(w); e != nil {
		l.unwant(w)
		return nil, r, e
	}
	if e := l.beyond(w, now); e != nil {
		l.unwant(w)
		return nil, r, e
	}
	k := l.laneOf(w)
	var st stop
	lacks := true
	if k == nil {
		st, lacks = l.lacks(w, nil, now)
	}
	if lacks {
		t, err = l.join(w, k, &st, now, deadline)
	} else {
		r = l.pass(w, now)
	}
	l.unwant(w)
	return t, r, err
}

// join lets w wait in the lane k, or in a new one that lacks st. It takes O(log n)
// for n lanes, with any number of waiters in them.
func (l *Limiter) join(w *want, k *lane, st *stop, now int64, deadline time.Time) (*waiter, error) {
	if s := l.crowded(w); s != nil {
		e := l.refusal(ErrQueueFull, w, l.estimate(w, k, now, false))
		e.Scope, e.Dimension, e.Cost, e.Capacity = s.name, "line", 1, int64(s.most())
		return nil, e
	}
	expires := int64(never)
	if l.maxWait > 0 {
		expires = later(now, int64(l.maxWait))
	}
	if bounded := !deadline.IsZero(); bounded || l.maxWait > 0 {
		o := l.estimate(w, k, now, true)
		late := bounded && o.at > now && time.Duration(o.at-now) > time.Until(deadline)
		if late || o.at > expires {
			e := l.refusal(ErrWaitTooLong, w, o)
			if late {
				e.Cause = context.DeadlineExceeded
			}
			return nil, e
		}
	}
	l.open.seq++
	t := l.newWaiter()
	t.spend, t.pricer = w.spend, w.pricer
	t.cost, t.likely, t.first, t.seq, t.joined, t.expires = w.cost, w.likely, w.first, l.open.seq, now, expires
	if t.older = l.newest; l.newest == nil {
		l.oldest = t
	} else {
		l.newest.newer = t
	}
	l.newest = t
	l.waiting++
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		s.join(l, w.cost)
	}
	if k == nil {
		k = l.newLane(w)
		k.push(t)
		l.park(k, *st, now)
	} else {
		head := k.head
		k.push(t)
		k.in.count(k, t.likely)
		if k.head == head && l.tickets == 0 {
			return t, nil // nothing is due earlier than before
		}
		if k.head != head {
			k.in.moved(k)
			l.look(k.in, now)
		}
	}
	l.run(now)
	return t, nil
}

// newWaiter is a waiter for a call, perhaps one that was used before.
func (l *Limiter) newWaiter() *waiter {
	if t, ok := l.waiters.Get().(*waiter); ok {
		return t
	}
	return &waiter{l: l, done: make(chan struct{}, 1)}
}

// drop gives back t, which was decided and is no ticket, and whose done is empty.
func (t *waiter) drop() {
	t.r, t.err, t.pricer = Reservation{}, nil, nil
	t.l.waiters.Put(t)
}

// join notes that one more waits in s, for c.
func (s *scope) join(l *Limiter, c Cost) {
	l.use(s)
	s.busy.waiting++
	s.busy.asked = s.busy.asked.plus(c)
}

// part notes that one who waited in s for c does not any more.
func (s *scope) part(l *Limiter, c Cost) {
	s.busy.waiting--
	s.busy.asked = s.busy.asked.minus(c)
	l.done(s)
}

func (s *scope) most() int {
	if s.opt.MaxQueue > 0 {
		return s.opt.MaxQueue
	}
	return hardQueue
}

// crowded is the scope whose line is full for w, or nil. A caller that goes first
// was counted when it came the first time.
func (l *Limiter) crowded(w *want) *scope {
	if l.waiting >= hardQueue {
		return &l.root
	}
	for i := 0; i <= len(w.path) && !w.first; i++ {
		if s := l.at(w.path, i); s.waiting() >= s.most() {
			return s
		}
	}
	return nil
}

const needsPlace = 1 << Tokens // in laneKey.needs; a cost in tokens is one in two units

// key is the key of the lane of w.
func (l *Limiter) key(w *want) laneKey {
	k := laneKey{tenant: w.tenant, inner: l.at(w.path, 0), depth: len(w.path), class: w.class}
	if w.cost.Requests != 0 {
		k.needs = 1 << Requests
	}
	if w.cost.Input != 0 {
		k.needs |= 1 << Input
	}
	if w.cost.Output != 0 {
		k.needs |= 1 << Output
	}
	if w.place {
		k.needs |= needsPlace
	}
	return k
}

// laneOf is the lane in which calls like w wait, or nil if none does.
func (l *Limiter) laneOf(w *want) *lane {
	if l.waiting == 0 {
		return nil
	}
	key := l.key(w)
	if k := l.recent; k != nil && k.laneKey == key && (key.depth == 0 || slices.Equal(k.path, w.path)) {
		return k
	}
	k := l.lanes[key]
	for k != nil && !slices.Equal(k.path, w.path) {
		k = k.twin
	}
	if k != nil {
		l.recent = k
	}
	return k
}

func (l *Limiter) newLane(w *want) *lane {
	var k *lane
	if n := len(l.free.lanes); n > 0 {
		k, l.free.lanes = l.free.lanes[n-1], l.free.lanes[:n-1]
	} else {
		k = &lane{}
	}
	key := l.key(w)
	*k = lane{laneKey: key, path: append(k.path[:0], w.path...), pos: -1, twin: l.lanes[key], slot: len(l.parked)}
	l.parked = append(l.parked, k)
	if l.lanes == nil {
		l.lanes = map[laneKey]*lane{}
	}
	l.lanes[key] = k
	return k
}

func (l *Limiter) dropLane(k *lane) {
	if l.recent == k {
		l.recent = nil
	}
	n := len(l.parked) - 1
	last := l.parked[n]
	l.parked[k.slot], last.slot = last, k.slot
	l.parked[n], l.parked = nil, l.parked[:n]
	switch first := l.lanes[k.laneKey]; {
	case first != k:
		for first.twin != k {
			first = first.twin
		}
		first.twin = k.twin
	case k.twin == nil:
		delete(l.lanes, k.laneKey)
	default:
		l.lanes[k.laneKey] = k.twin
	}
	if len(l.free.lanes) < spares {
		clear(k.path)
		*k = lane{path: k.path[:0]}
		l.free.lanes = append(l.free.lanes, k)
	}
}

func (l *Limiter) newFlow(key flowKey) *flow {
	var f *flow
	if n := len(l.free.flows); n > 0 {
		f, l.free.flows = l.free.flows[n-1], l.free.flows[:n-1]
	} else {
		f = &flow{}
	}
	*f = flow{flowKey: key, lanes: f.lanes[:0], pos: -1, weight: int64(max(1, key.tenant.opt.Weight))}
	return f
}

func (l *Limiter) dropFlow(f *flow) {
	if len(l.free.flows) < spares {
		*f = flow{lanes: f.lanes[:0]}
		l.free.flows = append(l.free.flows, f)
	}
}

// park puts k in the line of what its head lacks.
func (l *Limiter) park(k *lane, st stop, now int64) {
	q := st.line()
	if q == nil {
		l.lines++
		q = &line{s: st.s, b: st.b, door: st.door, id: l.lines, pos: -1, floor: l.floor}
		switch {
		case st.b != nil:
			st.b.line = q
		case st.door:
			st.s.busy.door = q
		default:
			st.s.busy.places = q
		}
	}
	q.enter(l, k)
	switch {
	case q.first() != k:
	case st.at == never: // it was behind others, and may not be any more
		l.lookAt(q, now)
	default:
		l.lookAt(q, st.at)
	}
}

// unpark takes k out of its line, whose next one is looked at.
func (l *Limiter) unpark(k *lane, now int64) {
	q := k.in
	q.leave(l, k)
	if q.n > 0 {
		l.look(q, now)
	} else if q.pos >= 0 {
		l.due.remove(q)
	}
}

// look has q looked at now, as soon as the limiter runs.
func (l *Limiter) look(q *line, now int64) {
	if q.n > 0 && q.at > now { // else it will be looked at anyway
		l.lookAt(q, now)
	}
}

func (l *Limiter) lookAt(q *line, at int64) {
	q.at = at
	if q.pos < 0 {
		l.due.push(q)
	} else {
		l.due.fix(q)
	}
}

// run lets everybody go whose turn it is and sets the timer for the next. It is
// called, with the lock held, after every change that may move a line.
func (l *Limiter) run(now int64) {
	if l.waiting == 0 {
		l.disarm()
		return
	}
	for {
		// A wait of just the longest is granted: running out comes after the turn.
		if q := l.due.first(); q != nil && q.at <= now {
			l.turn(q, now)
			continue
		}
		// Everybody has the same longest wait, so the first to come is the first
		// to run out.
		if t := l.oldest; t != nil && now >= t.expires {
			l.refuse(t, l.waited(t, ErrWaitTooLong), now)
			continue
		}
		break
	}
	at := int64(never)
	if q := l.due.first(); q != nil {
		at = q.at
	}
	if t := l.oldest; t != nil {
		at = min(at, t.expires)
		if l.tickets > 0 {
			if l.lostAt <= now {
				l.lostAt = later(now, int64(lostTime))
			}
			at = min(at, l.lostAt)
		}
	}
	l.arm(at, now)
}

// turn looks at the first lane of q: it goes, or moves to the line of something
// else that it lacks, or stays until an instant that is now known.
//
// Fairness is decided here. Only the first of a line is looked at, and a call
// goes only if it is before all others at everything it needs; so nobody takes
// what an earlier one waits for, and a large cost is not overtaken by a stream of
// small ones. A lane that moves on keeps nothing of what it had enough of: that
// would idle while it waits elsewhere.
func (l *Limiter) turn(q *line, now int64) {
	k := q.first()
	if at, stays := l.stays(q, k, now); stays {
		l.lookAt(q, at)
		return
	}
	if l.reprice(k) {
		if q.first() != k {
			return // it costs more than the floor has earned: q is looked at again
		}
		if at, stays := l.stays(q, k, now); stays {
			l.lookAt(q, at)
			return
		}
	}
	l.goOn(k, now)
}

// reprice takes over what the head of k costs now, and reports whether that is
// another cost than before. It is asked at its turn alone: in a long line most prices
// would be asked for in vain.
func (l *Limiter) reprice(k *lane) (changed bool) {
	t := k.head
	if t.pricer == nil {
		return false
	}
	var w want
	k.want(&w)
	w.price(t.pricer.Price())
	if w.cost == t.cost && w.likely == t.likely || l.key(&w).needs != k.needs || l.impossible(&w) != nil {
		return false
	}
	more, likely := w.cost.minus(t.cost), w.likely.minus(t.likely)
	for i := 0; i <= len(k.path); i++ {
		s := l.at(k.path, i)
		s.busy.asked = s.busy.asked.plus(more)
	}
	k.likely = k.likely.plus(likely)
	if t.first {
		k.firstLikely = k.firstLikely.plus(likely)
	}
	k.in.count(k, likely)
	t.cost, t.likely = w.cost, w.likely
	return more != Cost{}
}

// goOn lets the head of k go, or takes k to the line of something else.
func (l *Limiter) goOn(k *lane, now int64) {
	var w want
	k.want(&w)
	if e := l.beyond(&w, now); e != nil {
		e.Waited = time.Duration(now - k.head.joined)
		l.refuse(k.head, e, now)
	} else if st, lacks := l.lacks(&w, k, now); lacks {
		l.move(k, st, now)
	} else {
		l.grant(k, &w, now)
	}
}

// want fills w in with what the head of k wants.
func (k *lane) want(w *want) {
	t := k.head
	w.cost, w.likely, w.spend, w.a = t.cost, t.likely, t.spend, t.cost.amounts()
	w.place, w.first, w.class, w.tenant, w.path = k.needs&needsPlace != 0, t.first, k.class, k.tenant, k.path
}

// grant admits the head of k.
func (l *Limiter) grant(k *lane, w *want, now int64) {
	r := l.take(w, k, now)
	l.unclaim(k, now)
	l.decide(k.head, r, nil, now)
}

// refuse takes t out of its lane with an error.
func (l *Limiter) refuse(t *waiter, err error, now int64) {
	if t.lane.head == t {
		l.unclaim(t.lane, now)
	}
	l.decide(t, Reservation{}, err, now)
}

// decide takes t out of its lane and wakes its owner: the one wake.
func (l *Limiter) decide(t *waiter, r Reservation, err error, now int64) {
	k := t.lane
	q, head := k.in, k.head == t
	if k.n == 1 {
		l.unpark(k, now) // first, as the order in a line is that of heads
	} else {
		q.count(k, Cost{}.minus(t.likely))
	}
	k.remove(t)
	if head && k.n > 0 {
		q.moved(k)
		l.look(q, now)
	}
	if t.older == nil {
		l.oldest = t.newer
	} else {
		t.older.newer = t.newer
	}
	if t.newer == nil {
		l.newest = t.older
	} else {
		t.newer.older = t.older
	}
	t.older, t.newer = nil, nil
	l.waiting--
	for i := 0; i <= len(k.path); i++ {
		l.at(k.path, i).part(l, t.cost)
	}
	if k.n == 0 {
		l.dropLane(k)
	}
	t.r, t.err, t.went = r, err, now
	if t.ticket {
		close(t.done)
	} else {
		t.done <- struct{}{} // there is room: it is the only one
	}
}

// catchUp reads the clock and first lets everything happen that was due by then. So
// an answer depends on instants alone, not on how late a timer or a goroutine is.
func (l *Limiter) catchUp() (now int64) { return l.catchUpTo(l.clock()) }

func (l *Limiter) catchUpTo(stamp int64) (now int64) {
	now = l.see(stamp)
	if l.lost.Load() != nil {
		l.bury(now)
	}
	if l.waiting > 0 && now >= l.wake {
		l.run(now)
	}
	return now
}

// waited describes why t does not go now. How long it still had is known only
// for the first of a line: behind it, it would take counting everybody before t,
// which a storm of cancels cannot afford under the lock.
func (l *Limiter) waited(t *waiter, reason error) *Error {
	k, now := t.lane, l.last
	var w want
	k.want(&w)
	w.cost, w.a, w.first = t.cost, t.cost.amounts(), t.first
	var e *Error
	if k.in.first() == k && (t.prev == nil || !t.first && t.prev == k.last) {
		if w.first = true; t.prev == nil {
			e = l.refusal(reason, &w, l.estimate(&w, nil, now, false))
		} else { // behind those who go first only
			e = l.refusal(reason, &w, l.estimate(&w, k, now, false))
		}
	} else {
		e = l.refusal(reason, &w, l.estimate(&w, k, now, false))
		e.Wait, e.Earliest = 0, time.Time{}
	}
	e.Waited = time.Duration(now - t.joined)
	return e
}

// leave ends the wait of a caller whose context ended with err and cause. Where
// grant and cancel meet, the cancel wins: the grant is given back and the next one
// is looked at. Where turn and deadline meet at one instant, the turn wins, since
// the wait that was named is then the wait there was.
func (t *waiter) leave(err, cause error) (Reservation, error) {
	l := t.l
	l.lock()
	defer l.mu.Unlock()
	now := l.catchUp()
	if t.lane == nil && (t.err != nil || errors.Is(err, context.DeadlineExceeded)) {
		return t.r, t.err
	}
	return Reservation{}, l.quit(t, err, cause, now)
}

// quit takes t out of the line, or gives back its grant.
func (l *Limiter) quit(t *waiter, err, cause error, now int64) error {
	var e *Error
	if t.lane != nil {
		e = l.waited(t, ErrCanceled)
		e.Cause, e.ctx = cause, other(err, cause)
		l.refuse(t, e, now)
		l.run(now)
		return e
	}
	e = &Error{Reason: ErrCanceled, Cause: cause, ctx: other(err, cause), Dimension: "line", Cost: 1, Waited: time.Duration(now - t.joined)}
	if own, ok := t.r.by.(*entry); !ok {
		// Wait is of the root and the common tenant, and took no place.
		a := t.cost.amounts()
		l.uncounted(t)
		l.correct(&l.root, &entry{seq: t.r.seq, taken: t.went, mark: mark{free: true}}, &a)
	} else if own.end(t.r.seq, returned, Cost{}, nil) {
		t.r, t.err = Reservation{}, e // for the one who takes it after all
	}
	l.run(now)
	return e
}

// refuseImpossible refuses all who can never go under the changed limits of s.
func (l *Limiter) refuseImpossible(s *scope) {
	if s.waiting() == 0 {
		return
	}
	for t := l.oldest; t != nil; {
		next := t.newer
		if k := t.lane; s == &l.root || slices.Contains(k.path, s) {
			var w want
			k.want(&w)
			w.cost, w.a = t.cost, t.cost.amounts()
			if e := l.impossible(&w); e != nil {
				e.Waited = time.Duration(l.last - t.joined)
				l.refuse(t, e, l.last)
			}
		}
		t = next
	}
}

// scatter lets those in q, which is a line for nothing now, find another one.
func (l *Limiter) scatter(q *line, now int64) {
	for q != nil && q.n > 0 {
		l.goOn(q.first(), now)
	}
}

// arm sets the one timer for instant at. A timer that already stands for an
// earlier instant is moved, not kept: a needless wake costs more than a Reset.
func (l *Limiter) arm(at, now int64) {
	l.wake = at
	switch {
	case at == math.MaxInt64:
		l.disarm()
		return
	case at == l.armed:
		return
	case l.timer == nil:
		l.timer = time.AfterFunc(time.Duration(at-now), l.tick)
	default:
		l.timer.Reset(time.Duration(at - now))
	}
	l.armed = at
}

func (l *Limiter) disarm() {
	if l.armed != 0 {
		l.timer.Stop()
		l.armed = 0
	}
}

// tick is the timer's function. One that was overtaken by a change finds
// nothing to do and sets the timer anew.
func (l *Limiter) tick() {
	l.lock()
	defer l.mu.Unlock()
	l.armed, l.wake = 0, 0
	l.catchUp()
}
