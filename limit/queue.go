package limit

import (
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

	// Guarded by l.mu until done is closed, unchanging after.
	in         *line // nil once decided
	prev, next *Ticket
	r          Reservation
	err        error
}

// Reserve takes a place in the line, or returns an [*Error] at once like
// [Limiter.Acquire]. Unlike it, nothing waits: the ticket's Ready channel
// closes at its turn.
func (l *Limiter) Reserve(cost Cost) (*Ticket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.join(cost.bounded(), true, time.Time{}, &l.line)
}

// Ready closes when the ticket's turn has come, or when it was refused after
// all (the longest wait is over, or the limit was lowered below its cost).
func (t *Ticket) Ready() <-chan struct{} { return t.done }

// Take returns the reservation once Ready is closed. Before that it returns
// [ErrLimited], and the ticket keeps its place. It does not wait.
func (t *Ticket) Take() (Reservation, error) {
	select {
	case <-t.done:
		return t.r, t.err
	default:
		t.l.mu.Lock()
		defer t.l.mu.Unlock()
		t.l.now()
		if t.in == nil {
			return t.r, t.err
		}
		return Reservation{}, t.l.refusal(ErrLimited, t.cost, t.slot, t.in)
	}
}

// Cancel leaves the line. If the turn had come already, the reservation is
// returned: either way the ledger is as if the ticket had never been.
func (t *Ticket) Cancel() { t.cancel(nil) }

// cancel leaves the line because of cause. Where grant and cancel meet, the
// cancel wins: the grant is given back, and the next in line is looked at.
func (t *Ticket) cancel(cause error) error {
	t.l.mu.Lock()
	if t.in == nil { // decided
		t.l.mu.Unlock()
		if t.err != nil {
			return t.err
		}
		t.undo()
		return &Error{Reason: ErrCanceled, Cause: cause, Dimension: "line", Cost: 1}
	}
	defer t.l.mu.Unlock()
	now := t.l.now()
	err := t.l.refusal(ErrCanceled, t.cost, t.slot, t.in)
	err.Cause = cause
	err.Waited = time.Duration(now - t.joined)
	t.decide(Reservation{}, err)
	t.l.schedule(now)
	return err
}

// undo gives back what was granted, slot or not.
func (t *Ticket) undo() {
	if t.slot {
		t.r.Return()
		return
	}
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	t.l.giveBack(t.cost, t.l.now())
	t.l.schedule(t.l.last)
}

// decide takes t out of the line and tells its owner: the one wake.
func (t *Ticket) decide(r Reservation, err error) {
	t.in.remove(t)
	t.r, t.err = r, err
	close(t.done)
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
	now := l.now()
	if err := l.impossible(cost); err != nil {
		return nil, err
	}
	// Whoever comes first was counted when it came the first time.
	if where == &l.line && l.line.n >= l.maxQueue {
		e := l.refusal(ErrQueueFull, cost, slot, where)
		e.Dimension, e.Cost, e.Capacity = "line", 1, int64(l.maxQueue)
		return nil, e
	}
	at, _, _ := l.earliest(cost, l.ahead(where), slot, now)
	expires := int64(math.MaxInt64)
	if l.maxWait > 0 {
		expires = later(now, int64(l.maxWait))
	}
	if at > expires {
		return nil, l.refusal(ErrWaitTooLong, cost, slot, where)
	}
	if !deadline.IsZero() && at > now && time.Duration(at-now) > time.Until(deadline) {
		e := l.refusal(ErrWaitTooLong, cost, slot, where)
		e.Cause = errDeadline
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
		if err := l.impossible(t.cost); err != nil { // a limit was lowered
			t.decide(Reservation{}, err)
			continue
		}
		if now >= t.expires {
			l.expire(t, now)
			continue
		}
		at, _, _ := l.earliest(t.cost, Cost{}, t.slot, now)
		full := t.slot && l.maxInFlight > 0 && l.inFlight >= l.maxInFlight
		if at <= now && !full {
			t.decide(l.grant(t.cost, t.slot), nil)
			continue
		}
		if full {
			at = math.MaxInt64
		}
		// Everybody has the same longest wait, so within a line the first to
		// come is the first to run out: two heads stand for all.
		at = min(at, t.expires)
		if t.in == &l.first && l.line.head != nil {
			if back := l.line.head; now >= back.expires {
				l.expire(back, now)
				continue
			}
			at = min(at, l.line.head.expires)
		}
		l.arm(at, now)
		return
	}
}

func (l *Limiter) head() *Ticket {
	if l.first.head != nil {
		return l.first.head
	}
	return l.line.head
}

func (l *Limiter) expire(t *Ticket, now int64) {
	err := l.refusal(ErrWaitTooLong, t.cost, t.slot, t.in)
	err.Waited = time.Duration(now - t.joined)
	t.decide(Reservation{}, err)
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = 0
	l.schedule(l.now())
}
