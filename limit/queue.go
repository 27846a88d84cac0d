package limit

import (
	"context"
	"errors"
	"math"
	"time"
)

// line is a first-in first-out list. Leaving it from any place is O(1).
type line struct {
	head, tail *Ticket
	n          int
	sum        Cost // of everybody in it
}

func (q *line) push(t *Ticket) {
	t.in, t.prev = q, q.tail
	if q.tail == nil {
		q.head = t
	} else {
		q.tail.next = t
	}
	q.tail = t
	q.n++
	q.sum = q.sum.plus(t.cost)
}

func (q *line) remove(t *Ticket) {
	if t.prev == nil {
		q.head = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		q.tail = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.in, t.prev, t.next = nil, nil, nil
	q.n--
	q.sum = q.sum.minus(t.cost)
}

// A Ticket is a place in the line that no goroutine is blocked on: it can be
// selected on beside other channels. Get one with [Limiter.Reserve]; end it
// with Take or Cancel.
type Ticket struct {
	l       *Limiter
	cost    Cost
	slot    bool          // wants a place in flight
	done    chan struct{} // closed at the decision
	joined  int64         // instant
	expires int64         // instant at which it is refused

	// Guarded by l.mu until done is closed, unchanging after, but for Cancel.
	in         *line // nil once decided
	prev, next *Ticket
	r          Reservation
	err        error
}

// Reserve takes a place in the line, or returns an [*Error] at once like
// [Limiter.Acquire]. Unlike it, nothing waits: the ticket's Ready channel
// closes at its turn, at once if that is now.
func (l *Limiter) Reserve(cost Cost) (*Ticket, error) {
	l.lock()
	defer l.mu.Unlock()
	return l.join(cost.bounded(), true, time.Time{}, &l.line)
}

// Ready closes when the ticket's turn has come, or when it was refused after
// all (the longest wait is over, or the limit was lowered below its cost), or
// was canceled.
func (t *Ticket) Ready() <-chan struct{} { return t.done }

// Take returns the reservation once Ready is closed, or the [*Error] with which
// the ticket was refused: [ErrCanceled] if Cancel gave the turn back. Before that
// it returns [ErrLimited], and the ticket keeps its place. It does not wait.
func (t *Ticket) Take() (Reservation, error) {
	t.l.lock()
	defer t.l.mu.Unlock()
	t.l.catchUp()
	if t.in == nil {
		return t.r, t.err
	}
	return Reservation{}, t.refusal(ErrLimited)
}

// Cancel leaves the line. If the turn had come already, the reservation is
// returned, unless it was ended before: either way the ledger is as if the
// ticket had never been. So Cancel may be deferred, and does nothing to a
// ticket whose reservation was settled or kept.
func (t *Ticket) Cancel() { t.leave(nil) }

// leave ends the wait because of cause, a context's error or nil. Where grant
// and cancel meet, the cancel wins: the grant is given back and the next in
// line is looked at. Where turn and deadline meet at one instant, the turn
// wins, since the wait that was named is then the wait there was.
func (t *Ticket) leave(cause error) (Reservation, error) {
	l := t.l
	l.lock()
	defer l.mu.Unlock()
	now := l.catchUp()
	late := errors.Is(cause, context.DeadlineExceeded)
	var e *Error
	switch {
	case t.in != nil:
		e = t.refusal(ErrCanceled)
		t.decide(Reservation{}, e)
	case t.err != nil || late:
		return t.r, t.err
	default:
		e = &Error{Reason: ErrCanceled, Dimension: "line", Cost: 1, Waited: time.Duration(now - t.joined)}
		if !t.slot {
			l.correct(t.cost, t.r.seq)
		} else if cost, ok := t.r.end(); ok {
			l.correct(cost, t.r.seq)
			t.r, t.err = Reservation{}, e // for who takes it after all
		}
	}
	e.Cause = cause
	l.schedule(now)
	return Reservation{}, e
}

// decide takes t out of the line and tells its owner: the one wake.
func (t *Ticket) decide(r Reservation, err error) {
	t.in.remove(t)
	t.r, t.err = r, err
	close(t.done)
}

// refusal describes why t does not go now. How long it still had is known only
// at the head: behind it, it would take counting everybody before t, which a
// storm of cancels cannot afford under the lock.
func (t *Ticket) refusal(reason error) *Error {
	l := t.l
	ahead := l.ahead(t.in).minus(t.cost)
	if t.prev == nil {
		ahead = Cost{}
		if t.in == &l.line {
			ahead = l.first.sum
		}
	}
	e := l.refusal(reason, t.cost, t.slot, ahead)
	if t.prev != nil {
		e.Wait, e.Earliest = 0, time.Time{}
	}
	e.Waited = time.Duration(l.last - t.joined)
	return e
}

// ahead is the sum of the costs that go before a newcomer to where.
func (l *Limiter) ahead(where *line) Cost {
	if where == &l.first {
		return l.first.sum
	}
	return l.first.sum.plus(l.line.sum)
}

// join takes a place for cost, or refuses without changing anything. It is
// O(1) whatever the length of the line: the sum of the costs ahead says when
// the last of them could have gone.
func (l *Limiter) join(cost Cost, slot bool, deadline time.Time, where *line) (*Ticket, error) {
	if e := l.impossible(cost); e != nil {
		return nil, e
	}
	now := l.catchUp()
	ahead := l.ahead(where)
	// Whoever comes first was counted when it came the first time.
	if where == &l.line && l.line.n >= l.maxQueue || l.line.n+l.first.n >= hardQueue {
		e := l.refusal(ErrQueueFull, cost, slot, ahead)
		e.Dimension, e.Cost, e.Capacity = "line", 1, int64(l.maxQueue)
		return nil, e
	}
	at, _ := l.earliest(cost, ahead, now)
	expires := int64(math.MaxInt64)
	if l.maxWait > 0 {
		expires = later(now, int64(l.maxWait))
	}
	late := !deadline.IsZero() && at > now && time.Duration(at-now) > time.Until(deadline)
	if late || at > expires {
		e := l.refusal(ErrWaitTooLong, cost, slot, ahead)
		if late {
			e.Cause = context.DeadlineExceeded
		}
		return nil, e
	}
	t := &Ticket{l: l, cost: cost, slot: slot, done: make(chan struct{}), joined: now, expires: expires}
	where.push(t)
	l.schedule(now)
	return t, nil
}

// schedule lets everybody go whose turn it is and sets the timer for the next.
// It is called, with the lock held, after every change that may move the line.
//
// Fairness is decided here: only a head is ever granted, and it waits for all
// of its dimensions, even while a later and smaller cost could go. Otherwise a
// large cost would starve behind a stream of small ones.
func (l *Limiter) schedule(now int64) {
	for {
		t := l.head()
		if t == nil {
			l.disarm()
			return
		}
		if r, ok := l.admit(t.cost, t.slot, now); ok {
			t.decide(r, nil)
			continue
		}
		// Everybody has the same longest wait, so within a line the first to
		// come is the first to run out: two heads stand for all. Running out
		// comes after the turn: a wait of just the longest is granted.
		if now >= t.expires {
			t.decide(Reservation{}, t.refusal(ErrWaitTooLong))
			continue
		}
		at := t.expires
		if !t.slot || !l.full() {
			turn, _ := l.earliest(t.cost, Cost{}, now)
			at = min(at, turn)
		}
		if back := l.line.head; back != nil && back != t {
			if now >= back.expires {
				back.decide(Reservation{}, back.refusal(ErrWaitTooLong))
				continue
			}
			at = min(at, back.expires)
		}
		l.arm(at, now)
		return
	}
}

// catchUp reads the clock and lets happen what was due by then, before
// something else is done. So an answer depends on instants alone, not on how
// late a timer or a goroutine is.
func (l *Limiter) catchUp() (now int64) {
	now = l.now()
	l.schedule(now)
	return now
}

func (l *Limiter) head() *Ticket {
	if l.first.head != nil {
		return l.first.head
	}
	return l.line.head
}

// refuseImpossible tells everybody in q who can never go under changed limits.
func (l *Limiter) refuseImpossible(q *line) {
	for t := q.head; t != nil; {
		next := t.next
		if e := l.impossible(t.cost); e != nil {
			e.Waited = time.Duration(l.last - t.joined)
			t.decide(Reservation{}, e)
		}
		t = next
	}
}

// arm sets the one timer for instant at. A timer that already stands for an
// earlier instant is moved, not kept: a needless wake costs more than a Reset.
func (l *Limiter) arm(at, now int64) {
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
	l.armed = 0
	l.schedule(l.now())
}
