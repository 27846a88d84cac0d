package limit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a [Limiter]. Zero means unset, that is unlimited, in every
// field. A negative or contradictory value is a [*ConfigError].
type Options struct {
	// Limits are granted together or not at all. Any number, of any windows.
	Limits []Limit

	// MaxInFlight is how many reservations may be open at once.
	MaxInFlight int

	// MaxQueue is how many callers may wait; one more is refused with
	// [ErrQueueFull]. Unset, 4,194,304 may: the bound that keeps the line's
	// sums inside 63 bits, which also holds for those of AcquireFirst.
	MaxQueue int

	// MaxWait is the longest a caller waits in the line. A wait known to be
	// longer is refused at once, any other when it has lasted that long.
	MaxWait time.Duration

	// Floor is the share of each limit, in per cent, that Batch calls get while
	// Interactive ones wait for it too. From 1 to 100; unset, it is 10.
	Floor int

	// Open says what a scope has that is used for the first time, or again after
	// it was forgotten. It is called without any lock, by the goroutine that names
	// the scope; two at once may both call it. Impossible options or limits are
	// the error of that call. Nil: the zero ScopeOptions and no limits.
	Open func(scope string) (ScopeOptions, []Limit)

	// KeepIdle is how many idle scopes are kept though they could be forgotten.
	// A scope is idle while no call waits or is in flight in it. It can be
	// forgotten when its limits are full, no pause holds it and it was not set by
	// hand: then it comes back as it was. Unset, 1024 are kept.
	KeepIdle int
}

// A Limiter admits costs under several limits at once, in one scope or many. It
// is a [Ledger]; the methods without a scope work on the root, and are made for
// the common tenant.
//
// All limits and places in flight on the path of a call grant together, or none
// is touched. A grant is a [Reservation] with exactly one end. The
// package comment says who goes first among those who wait.
//
// The zero Limiter is not usable; call [New]. A Limiter may be used by any
// number of goroutines, holds no goroutine of its own, and holds a timer only
// while somebody waits. It must not be copied.
type Limiter struct {
	// What every call writes comes first, in few cache lines: a core that takes
	// the lock from another has to fetch each line that the other wrote.
	mu      sync.Mutex // guards all below; never held while waiting
	last    int64      // latest instant seen
	waiting int        // callers that wait
	open    table
	root    scope

	// What changes only while somebody waits, or seldom.
	base    time.Time // instants are nanoseconds since; its monotonic reading counts
	young   marks
	timer   *time.Timer
	armed   int64       // instant the timer is set for, 0 = not set
	wake    int64       // instant before which run has nothing to do, unless something changes
	due     heap[*line] // lines with somebody in them, by the instant to look at
	lanes   map[laneKey]*lane
	parked  []*lane // all of lanes, in no order
	recent  *lane   // that was asked for last
	oldest  *waiter // those who wait, in order of arrival
	newest  *waiter
	tickets int                    // that did not end
	lostAt  int64                  // instant at which to look for forgotten ones
	lost    atomic.Pointer[waiter] // of tickets that the collector found; not guarded
	claims  uint64                 // the last number given to a lane with claims
	lines   uint64                 // the last number given to a line
	free    spare
	waiters sync.Pool // of *waiter, to be used again
	maxWait time.Duration
	floor   int64

	scopes   index // all but the root
	opener   func(string) (ScopeOptions, []Limit)
	idle     *scope // ring of those nobody uses; the oldest is idle.next
	idlers   int
	keepIdle int
	shared   [8]*Limit // some limits in use, to be used again
	shares   int
	allowed  [8]*Allowances // some in use, to be used again
	allows   int
	counts   bool     // a limit had a window: see scope.counted
	path     []*scope // of the call that is being decided, or of the last one; all of them are there
}

var _ Ledger = (*Limiter)(nil)

// spare keeps a few lanes and flows for those who come next.
type spare struct {
	lanes []*lane
	flows []*flow
	busy  []*busy
}

const spares = 64

// New returns a limiter whose limits are full, or empty where they say so.
func New(o Options) (*Limiter, error) {
	switch {
	case o.MaxInFlight < 0:
		return nil, &ConfigError{"MaxInFlight", o.MaxInFlight, "must not be negative"}
	case o.MaxQueue < 0 || o.MaxQueue > hardQueue:
		return nil, &ConfigError{"MaxQueue", o.MaxQueue, fmt.Sprintf("must be from 0 to %d", hardQueue)}
	case o.MaxWait < 0:
		return nil, &ConfigError{"MaxWait", o.MaxWait, "must not be negative"}
	case o.Floor < 0 || o.Floor > 100:
		return nil, &ConfigError{"Floor", o.Floor, "must be from 0 to 100"}
	case o.KeepIdle < 0:
		return nil, &ConfigError{"KeepIdle", o.KeepIdle, "must not be negative"}
	}
	l := &Limiter{
		base: time.Now(), maxWait: o.MaxWait, floor: int64(o.Floor), opener: o.Open, keepIdle: o.KeepIdle,
		root: scope{busy: &busy{}, opt: ScopeOptions{MaxInFlight: o.MaxInFlight, MaxQueue: o.MaxQueue}},
	}
	if l.floor == 0 {
		l.floor = 10
	}
	if l.keepIdle == 0 {
		l.keepIdle = 1024
	}
	if err := l.root.configure(l, o.Limits, 0, 0); err != nil {
		return nil, err
	}
	return l, nil
}

// Admit waits until a is admitted in every scope of its path and returns the
// reservation, which must be ended: see [Reservation]. It does not wait when there is credit
// and nobody waits for the same limits.
//
// A refusal is an [*Error] and has changed nothing. It matches
//
//   - [ErrInvalid]: the cost is negative
//   - [ErrTooLarge]: no wait can admit the cost
//   - [ErrQueueFull]: the line is full
//   - [ErrWaitTooLong]: the wait must outlast the context's deadline or the longest
//     wait; with the deadline it matches context.DeadlineExceeded too
//   - [ErrCanceled], the context's error and its cause: ctx ended first
//
// A name of a scope that cannot be is a [*ConfigError].
//
// A deadline refuses only a call that could not go in time at the Likely cost of
// all open and all earlier waiting calls. Any other call waits until the deadline.
// Where a turn and a deadline fall on the same instant, the turn wins.
func (l *Limiter) Admit(ctx context.Context, a Ask) (Reservation, error) {
	return l.acquire(ctx, &a, true)
}

// Acquire is [Limiter.Admit] of cost in the root scope, for the common tenant.
// When nobody waits and there is credit it neither waits nor allocates.
func (l *Limiter) Acquire(ctx context.Context, cost Cost) (Reservation, error) {
	return l.acquireRoot(ctx, cost, true)
}

// AcquireFirst is Acquire before the others of the common tenant that wait, and
// after those who came this way earlier. It is for a call that was admitted once
// and is charged again, such as a retry.
func (l *Limiter) AcquireFirst(ctx context.Context, cost Cost) (Reservation, error) {
	return l.acquire(ctx, &Ask{Cost: cost, First: true}, true)
}

// Wait spends cost as soon as it is admissible. There is no reservation to
// end, so it takes no place in flight. Errors are those of [Limiter.Acquire].
func (l *Limiter) Wait(ctx context.Context, cost Cost) error {
	_, err := l.acquireRoot(ctx, cost, false)
	return err
}

func (l *Limiter) acquireRoot(ctx context.Context, cost Cost, place bool) (Reservation, error) {
	if err := ctx.Err(); err != nil {
		return Reservation{}, ended(ctx, err)
	}
	stamp, stale := l.clock(), false
	if !l.mu.TryLock() { // l.lock, which is not inlined
		l.lockSlow()
		stale = true
	}
	if l.waiting == 0 {
		if r, ok := l.admitRoot(cost, place, l.see(stamp)); ok {
			l.mu.Unlock()
			return r, nil
		}
	}
	if stale {
		stamp = l.clock()
	}
	w := want{tenant: &l.root, place: place}
	w.price(cost, Cost{})
	return l.await(ctx, &w, stamp)
}

func (l *Limiter) acquire(ctx context.Context, a *Ask, place bool) (Reservation, error) {
	if err := ctx.Err(); err != nil {
		return Reservation{}, ended(ctx, err)
	}
	l.lock()
	var w want
	if err := l.want(&w, a, place); err != nil {
		l.mu.Unlock()
		return Reservation{}, err
	}
	return l.await(ctx, &w, l.clock())
}

// await admits w or waits, at the instant stamp. It is called with the lock held,
// and releases it.
func (l *Limiter) await(ctx context.Context, w *want, stamp int64) (Reservation, error) {
	deadline, _ := ctx.Deadline()
	t, r, err := l.enter(w, deadline, stamp)
	l.mu.Unlock()
	if t == nil || err != nil {
		return r, err
	}
	end, woken := ctx.Done(), true
	if end == nil {
		<-t.done
	} else {
		select {
		case <-t.done:
		case <-end:
			woken = false
		}
	}
	if err = ctx.Err(); err == nil {
		r, err = t.r, t.err
	} else {
		r, err = t.leave(err, context.Cause(ctx))
		if !woken {
			<-t.done // there by now, or before: t was decided
		}
	}
	t.drop()
	return r, err
}

// ended is the error for a context that ended with err before anything was done.
func ended(ctx context.Context, err error) *Error {
	return &Error{Reason: ErrCanceled, Cause: context.Cause(ctx), ctx: other(err, context.Cause(ctx)), Dimension: "line", Cost: 1}
}

// TryAdmit admits a now or returns an error at once: [ErrLimited] with the time
// it would have taken, or one of those that [Limiter.Admit] returns at once. A
// refusal changes nothing.
func (l *Limiter) TryAdmit(a Ask) (Reservation, error) {
	l.lock()
	defer l.mu.Unlock()
	var w want
	if err := l.want(&w, &a, true); err != nil {
		return Reservation{}, err
	}
	now := l.catchUp()
	if r, ok := l.admit(&w, now); ok {
		return r, nil
	}
	defer l.unwant(&w)
	return l.try(&w, now)
}

// TryAcquire is [Limiter.TryAdmit] of cost in the root scope.
func (l *Limiter) TryAcquire(cost Cost) (Reservation, error) {
	stamp := l.clock()
	l.lock()
	defer l.mu.Unlock()
	if l.waiting == 0 {
		if r, ok := l.admitRoot(cost, true, l.see(stamp)); ok {
			return r, nil
		}
	}
	w := want{tenant: &l.root, place: true}
	w.price(cost, Cost{})
	return l.try(&w, l.catchUp())
}

// try is TryAdmit for a want.
func (l *Limiter) try(w *want, now int64) (Reservation, error) {
	if e := l.impossible(w); e != nil {
		return Reservation{}, e
	}
	if e := l.beyond(w, now); e != nil {
		return Reservation{}, e
	}
	k := l.laneOf(w)
	if k == nil {
		if _, lacks := l.lacks(w, nil, now); !lacks {
			return l.pass(w, now), nil
		}
	}
	return Reservation{}, l.refusal(ErrLimited, w, l.estimate(w, k, now, false))
}

// Allow spends cost if it is admissible now, and reports whether it was. There
// is no reservation to end, so it takes no place in flight.
func (l *Limiter) Allow(cost Cost) bool {
	stamp := l.clock()
	l.lock()
	defer l.mu.Unlock()
	if l.waiting == 0 {
		if _, ok := l.admitRoot(cost, false, l.see(stamp)); ok {
			return true
		}
	}
	w := want{tenant: &l.root}
	w.price(cost, Cost{})
	now := l.catchUp()
	if l.impossible(&w) != nil || l.laneOf(&w) != nil {
		return false
	}
	if _, lacks := l.lacks(&w, nil, now); lacks {
		return false
	}
	l.pass(&w, now)
	return true
}

// Pause holds everybody for d from now on: [Limiter.PauseScope] of the root.
func (l *Limiter) Pause(d time.Duration) { l.PauseScope("", Pause{For: d}) }

// Drain lowers a limit of the root because the other side refused and wants d
// waited: after d the limit holds what the refused call needs, keep units, and
// nothing beyond. So credit falls to what will be keep at d from now; a d of
// zero or less is now, and a keep below zero is nothing. Return the reservation
// of the refused call before, or it is added. Drain reports whether credit
// fell, and does nothing for an unknown name.
func (l *Limiter) Drain(name string, keep int64, d time.Duration) bool {
	return l.DrainScope("", name, keep, d)
}

// SetLimit adds a limit to the root, or changes the one of that name, or removes
// it if its Rate is zero. Until now the old rate earned; credit is kept, cut to
// the new burst, and never raised: a higher burst has to be earned. What
// [Limiter.Pause] or [Limiter.Drain] wants there to be at an instant to come is
// there at the new rate. A burst that was left to the default follows the new
// rate. Empty is read only when the limit is added. An impossible value is a
// [*ConfigError] and changes nothing.
//
// The line is timed anew at once. If the largest admissible cost fell, callers
// who can never go any more are refused with [ErrTooLarge]. Reservations older
// than a limit, or than a change of its unit, were not charged to it and give
// nothing back to it.
func (l *Limiter) SetLimit(lim Limit) error { return l.SetScopeLimit("", lim) }

// SetMaxInFlight changes how many reservations may be open; 0 is unlimited.
// Those already open stay.
func (l *Limiter) SetMaxInFlight(n int) error {
	if n < 0 {
		return &ConfigError{"MaxInFlight", n, "must not be negative"}
	}
	l.lock()
	defer l.mu.Unlock()
	now := l.catchUp()
	l.root.opt.MaxInFlight = n
	if q := l.root.busy.places; q != nil {
		l.look(q, now)
	}
	l.run(now)
	return nil
}

// clock reads the monotonic clock: nanoseconds since the limiter was made.
func (l *Limiter) clock() int64 { return int64(time.Since(l.base)) }

// now is the instant, read inside the lock.
func (l *Limiter) now() int64 { return l.see(l.clock()) }

// see takes a stamp for the instant, unless a later one was seen: an older
// stamp never earns, and never moves the clock back. So a caller that does not
// wait may read the clock before it takes the lock, which is then held for a
// shorter time. A stale stamp can only make it look too poor: a caller that had to
// wait for the lock, and is turned down, is looked at again with the clock read
// inside.
func (l *Limiter) see(stamp int64) int64 {
	if stamp > l.last {
		l.last = stamp
	}
	return l.last
}

// admitRoot spends cost in the root scope while nobody waits, if it may go at
// now: there is a place in flight, if it wants one, no pause, and credit in each
// limit. Else, or if the cost is unusual, it leaves all of them as they were.
func (l *Limiter) admitRoot(cost Cost, place bool, now int64) (r Reservation, ok bool) {
	s := &l.root
	if place && s.full() || now < s.pausedUntil || !cost.usual() {
		return Reservation{}, false
	}
	a := cost.amounts()
	if !s.take(now, &a) {
		return Reservation{}, false
	}
	l.debit(s, cost, now)
	if !place {
		return l.unheld(cost, nil, now), true
	}
	s.busy.open++
	e := l.open.put(l, cost)
	return Reservation{by: e, seq: e.seq}, true
}
