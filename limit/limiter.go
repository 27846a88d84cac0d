package limit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
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
}

// hardQueue * 2 * (MaxUnits+1) < 2^63: the sum of input and output over both
// lines cannot overflow.
const hardQueue = 1 << 22

// A Limiter admits costs under several limits at once. Everybody who must wait
// stands in one line; only its head is timed, and it is looked at again
// whenever credit comes back. Nobody overtakes, except through
// [Limiter.AcquireFirst].
//
// All limits and the in-flight gate grant together, or none is touched. What
// is granted is a [Reservation], which has exactly one end.
//
// The zero Limiter is not usable; call [New]. A Limiter may be used by any
// number of goroutines, holds no goroutine of its own, and holds a timer only
// while somebody waits. It must not be copied.
type Limiter struct {
	// What every call writes comes first, in two cache lines: a core that takes
	// the lock from another has to fetch each line that the other wrote.
	mu          sync.Mutex // guards all below; never held while waiting
	last        int64      // latest instant seen
	maxInFlight int
	pausedUntil int64 // instant; 0 = not paused
	open        table

	// Sums over all time, modulo 2^64: differences between two readings are
	// exact as long as they are below 2^63.
	debits, refunds Cost

	// What changes only while somebody waits, or seldom.
	base     time.Time // instants are nanoseconds since; its monotonic reading counts
	limits   []bound
	line     line // the line
	first    line // the few who go before it
	timer    *time.Timer
	armed    int64 // instant the timer is set for, 0 = not set
	maxQueue int
	maxWait  time.Duration
	young    marks
}

// bound is a Limit at work.
type bound struct {
	Bucket
	unit Unit
	born uint64 // open.seq when it came; see correct
	cfg  *Limit

	held int64 // the instant until which Pause or Drain set the level back
	took wide  // how far, in grains
}

// setBack lowers b, at now, so that then is there after d, in grains. It reports
// whether b was above.
func (b *bound) setBack(now int64, then wide, d time.Duration) bool {
	b.advance(now)
	real := b.real(now)
	if !b.lower(then.sub(mul(b.n, uint64(d)))) {
		return false
	}
	b.held, b.took = later(now, int64(d)), real.sub(b.level)
	return true
}

// real is what the level would be had it not been set back.
func (b *bound) real(now int64) wide {
	real := b.level
	if now < b.held {
		real = real.add(b.took)
	}
	if b.cap.less(real) {
		return b.cap
	}
	return real
}

// change is set at now. A level that was set back is told anew, to be what it
// would have been when that ends: at the old rate's distance a slower one would
// take long to come up, and a faster one would be early. That may take off debt
// that setting back has made, but no other, and raises no credit.
//
// Overflow: a debt of 2^126, what was taken from it, and 2^103 earned meanwhile.
func (b *bound) change(now int64, r Rate, burst, largest int64) {
	w, left := uint64(r.Window), uint64(max(0, b.held-now))
	real := b.real(now).rescale(b.w, w)
	then := b.level.add(mul(b.n, left)).rescale(b.w, w).sub(mul(uint64(r.N), left))
	b.set(r, burst, largest)
	if left == 0 {
		return
	}
	most := b.level
	if most.hi < 0 {
		most = wide{}
	}
	b.level = then.min(most).min(real)
	b.saturate()
	b.took = real.sub(b.level)
}

// New returns a limiter whose limits are full, or empty where they say so.
func New(o Options) (*Limiter, error) {
	switch {
	case o.MaxInFlight < 0:
		return nil, &ConfigError{"MaxInFlight", o.MaxInFlight, "must not be negative"}
	case o.MaxQueue < 0 || o.MaxQueue > hardQueue:
		return nil, &ConfigError{"MaxQueue", o.MaxQueue, fmt.Sprintf("must be from 0 to %d", hardQueue)}
	case o.MaxWait < 0:
		return nil, &ConfigError{"MaxWait", o.MaxWait, "must not be negative"}
	}
	l := &Limiter{base: time.Now(), maxInFlight: o.MaxInFlight, maxQueue: o.MaxQueue, maxWait: o.MaxWait}
	if l.maxQueue == 0 {
		l.maxQueue = hardQueue
	}
	for i, lim := range o.Limits {
		field := fmt.Sprintf("Limits[%d]", i)
		lim, err := lim.checked(field)
		if err != nil {
			return nil, err
		}
		if lim.Rate == (Rate{}) {
			const lone = "is set, but Rate is not: no rate means no limit"
			switch {
			case lim.Burst != 0:
				return nil, &ConfigError{field + ".Burst", lim.Burst, lone}
			case lim.Largest != 0:
				return nil, &ConfigError{field + ".Largest", lim.Largest, lone}
			}
			continue
		}
		if l.find(lim.Name) != nil {
			return nil, &ConfigError{field + ".Name", lim.Name, "is there twice"}
		}
		l.limits = append(l.limits, newBound(lim, 0))
	}
	return l, nil
}

func newBound(cfg Limit, now int64) bound {
	burst, largest := cfg.sizes()
	b := bound{Bucket: newBucket(cfg.Rate, burst, largest, now), unit: cfg.Unit, cfg: &cfg}
	if cfg.Empty {
		b.level = wide{}
	}
	return b
}

// Acquire waits until cost is admitted and returns its reservation, which must
// be ended: see [Reservation]. When the line is empty and there is credit it
// neither waits nor allocates.
//
// It returns an [*Error] without having changed anything when cost is negative
// ([ErrInvalid]) or can never be admitted ([ErrTooLarge]), the line is full
// ([ErrQueueFull]), the wait must outlast the context's deadline or the longest
// wait ([ErrWaitTooLong], which is also context.DeadlineExceeded if the
// deadline was the bound), or ctx ends first ([ErrCanceled], and the context's
// own error). The estimate of the wait counts on nobody's refund. Where a turn
// and a deadline fall on the same instant, the turn wins.
func (l *Limiter) Acquire(ctx context.Context, cost Cost) (Reservation, error) {
	return l.acquire(ctx, cost.bounded(), true, &l.line)
}

// AcquireFirst is Acquire at the head of the line: before everybody in it, and
// after those who came this way earlier. It is for what was admitted once and
// must be charged again, such as a retry; used for everything it would be a
// second line that starves the first.
func (l *Limiter) AcquireFirst(ctx context.Context, cost Cost) (Reservation, error) {
	return l.acquire(ctx, cost.bounded(), true, &l.first)
}

// Wait spends cost as soon as it is admissible. There is no reservation to
// end, so it takes no place in flight. Errors are those of [Limiter.Acquire].
func (l *Limiter) Wait(ctx context.Context, cost Cost) error {
	_, err := l.acquire(ctx, cost.bounded(), false, &l.line)
	return err
}

func (l *Limiter) acquire(ctx context.Context, cost Cost, slot bool, where *line) (Reservation, error) {
	if err := ctx.Err(); err != nil {
		return Reservation{}, &Error{Reason: ErrCanceled, Cause: err, Dimension: "line", Cost: 1}
	}
	stamp := l.clock()
	l.lock()
	if l.head() == nil {
		if r, ok := l.admit(cost, slot, l.see(stamp)); ok {
			l.mu.Unlock()
			return r, nil
		}
	}
	return l.wait(ctx, cost, slot, where) // unlocks
}

// wait is acquire for who must wait. It is called with the lock held, and
// releases it.
func (l *Limiter) wait(ctx context.Context, cost Cost, slot bool, where *line) (Reservation, error) {
	deadline, _ := ctx.Deadline()
	t, err := l.join(cost, slot, deadline, where)
	l.mu.Unlock()
	if err != nil {
		return Reservation{}, err
	}
	select {
	case <-t.done:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return t.leave(err)
	}
	return t.r, t.err
}

// TryAcquire admits cost now or returns an [*Error] at once: [ErrLimited] with
// the time it would have taken, [ErrTooLarge] or [ErrInvalid]. A refusal
// changes nothing.
func (l *Limiter) TryAcquire(cost Cost) (Reservation, error) {
	cost = cost.bounded()
	stamp := l.clock()
	l.lock()
	defer l.mu.Unlock()
	if r, ok := l.admitNow(cost, true, stamp); ok {
		return r, nil
	}
	if e := l.impossible(cost); e != nil {
		return Reservation{}, e
	}
	return Reservation{}, l.refusal(ErrLimited, cost, true, l.ahead(&l.line))
}

// Allow spends cost if it is admissible now, and reports whether it was. There
// is no reservation to end, so it takes no place in flight.
func (l *Limiter) Allow(cost Cost) bool {
	cost = cost.bounded()
	stamp := l.clock()
	l.lock()
	defer l.mu.Unlock()
	_, ok := l.admitNow(cost, false, stamp)
	return ok
}

// Pause holds everybody until d from now. The later of two pauses wins; a
// shorter one, or a d of zero or less, changes nothing. When it opens the line
// moves at the refill rate, not as a herd: limits of a minute or less start
// again from nothing (one request, for requests). Longer ones keep their
// credit, which a short pause says nothing about.
func (l *Limiter) Pause(d time.Duration) {
	l.lock()
	defer l.mu.Unlock()
	now := l.catchUp()
	if d <= 0 || later(now, int64(d)) <= l.pausedUntil {
		return
	}
	l.pausedUntil = later(now, int64(d))
	for i := range l.limits {
		b := &l.limits[i]
		if b.w > uint64(time.Minute) {
			continue
		}
		then := wide{} // what there shall be when it opens
		if b.unit == Requests {
			then = mul(1, b.w)
		}
		b.setBack(now, then, d)
	}
	l.schedule(now)
}

// SetLimit adds a limit, or changes the one of that name, or removes it if its
// Rate is zero. Until now the old rate earned; credit is kept, cut to the new
// burst, and never raised: a higher burst has to be earned. What [Limiter.Pause]
// or [Limiter.Drain] wants there to be at an instant to come is there at the new
// rate. A burst that was left to the default follows the new rate. Empty is read
// only when the limit is added. An impossible value is a [*ConfigError] and
// changes nothing.
//
// Whoever waits is timed anew at once, and is refused with [ErrTooLarge] if the
// new limit can never admit it. Reservations older than a limit, or than a
// change of its unit, were not charged to it and give nothing back to it.
func (l *Limiter) SetLimit(lim Limit) error {
	lim, err := lim.checked("Limit")
	if err != nil {
		return err
	}
	l.lock()
	defer l.mu.Unlock()
	now := l.catchUp()
	b := l.find(lim.Name)
	switch {
	case lim.Rate == (Rate{}):
		l.limits = slices.DeleteFunc(l.limits, func(b bound) bool { return b.cfg.Name == lim.Name })
	case b == nil:
		l.open.seq++
		fresh := newBound(lim, now)
		fresh.born = l.open.seq
		l.limits = append(l.limits, fresh)
	default:
		b.advance(now)
		burst, largest := lim.sizes()
		b.change(now, lim.Rate, burst, largest)
		if b.unit != lim.Unit {
			l.open.seq++
			b.unit, b.born = lim.Unit, l.open.seq
		}
		b.cfg = &lim
	}
	l.refuseImpossible(&l.first)
	l.refuseImpossible(&l.line)
	l.schedule(now)
	return nil
}

// SetMaxInFlight changes how many reservations may be open; 0 is unlimited.
// Those already open stay.
func (l *Limiter) SetMaxInFlight(n int) error {
	if n < 0 {
		return &ConfigError{"MaxInFlight", n, "must not be negative"}
	}
	l.lock()
	defer l.mu.Unlock()
	now := l.catchUp()
	l.maxInFlight = n
	l.schedule(now)
	return nil
}

// clock reads the monotonic clock: nanoseconds since the limiter was made.
func (l *Limiter) clock() int64 { return int64(time.Since(l.base)) }

// now is the instant, read inside the lock.
func (l *Limiter) now() int64 { return l.see(l.clock()) }

// see takes a stamp for the instant, unless a later one was seen: an older
// stamp never earns, and never moves the clock back. So a caller that does not
// wait may read the clock before it takes the lock, which is then held for a
// shorter time. A stale stamp can only make it look too poor; whoever is turned
// down is looked at again with the clock read inside.
func (l *Limiter) see(stamp int64) int64 {
	if stamp > l.last {
		l.last = stamp
	}
	return l.last
}

func (l *Limiter) find(name string) *bound {
	for i := range l.limits {
		if l.limits[i].cfg.Name == name {
			return &l.limits[i]
		}
	}
	return nil
}

func (l *Limiter) full() bool { return l.maxInFlight > 0 && l.open.n >= l.maxInFlight }

// admit spends cost in every limit and enters it in the books, if it may go at
// now: there is a place in flight, if it wants one, no pause, and credit in each
// limit. Else it leaves all of them as they were.
func (l *Limiter) admit(cost Cost, slot bool, now int64) (r Reservation, ok bool) {
	if slot && l.full() || now < l.pausedUntil || !cost.valid() {
		return Reservation{}, false
	}
	a, limits := cost.amounts(), l.limits
	for i := range limits {
		b := &limits[i]
		if !b.take(now, a.in(b.unit)) {
			for j := range i { // advanced to the same instant: exactly undone
				limits[j].refund(a.in(limits[j].unit))
			}
			return Reservation{}, false
		}
	}
	if l.young.oldest != nil {
		l.young.settle(l)
	}
	l.debits = l.debits.plus(cost)
	if !slot {
		return Reservation{seq: l.open.seq}, true // no handle, but the age is kept
	}
	e := l.open.put(l, cost)
	return Reservation{e: e, seq: e.seq}, true
}

// admitNow is admit for a newcomer to the line who does not wait. One who is
// turned down is looked at again, at the clock as it is and after those whose
// turn has come.
func (l *Limiter) admitNow(cost Cost, slot bool, stamp int64) (r Reservation, ok bool) {
	if l.head() == nil {
		if r, ok = l.admit(cost, slot, l.see(stamp)); ok {
			return r, true
		}
	}
	if now := l.catchUp(); l.head() == nil {
		return l.admit(cost, slot, now)
	}
	return Reservation{}, false
}

// impossible is the error for a cost that no wait can make admissible, or nil.
func (l *Limiter) impossible(cost Cost) *Error {
	if !cost.valid() {
		return &Error{Reason: ErrInvalid, Dimension: "cost", Cost: min(cost.Requests, cost.Input, cost.Output)}
	}
	a := cost.amounts()
	for i := range l.limits {
		b := &l.limits[i]
		if c := a.in(b.unit); c > b.max {
			return &Error{Reason: ErrTooLarge, Dimension: b.cfg.Name, Cost: c, Capacity: b.max}
		}
	}
	return nil
}

// earliest is the instant at which cost could go with the given costs ahead of
// it, under no other use, and the limit that sets it: nil if none makes it
// wait, or only a pause does. The in-flight gate is not in it, for nobody
// knows when a call will end.
//
// It is O(1) for any line, and never too late. When it is exact, see Error.
func (l *Limiter) earliest(cost, ahead Cost, now int64) (at int64, which *bound) {
	start := max(now, l.pausedUntil)
	at = start
	a, before := cost.amounts(), ahead.amounts()
	for i := range l.limits {
		b := &l.limits[i]
		b.advance(now)
		if t := later(start, b.waitFrom(start, before.in(b.unit), a.in(b.unit))); t > at {
			at, which = t, b
		}
	}
	return at, which
}

// refusal describes why a possible cost is not admitted now, in numbers.
func (l *Limiter) refusal(reason error, cost Cost, slot bool, ahead Cost) *Error {
	now := l.last
	at, b := l.earliest(cost, ahead, now)
	e := &Error{Reason: reason}
	switch {
	case slot && l.full() && reason != ErrWaitTooLong:
		e.Dimension, e.Cost, e.Capacity = "in-flight", 1, int64(l.maxInFlight)
		return e // it could go when a call ends, and nobody knows when
	case b != nil:
		a := cost.amounts()
		e.Dimension, e.Cost, e.Capacity = b.cfg.Name, a.in(b.unit), b.max
	case now < l.pausedUntil:
		e.Dimension = "pause"
	case slot && l.full():
		e.Dimension, e.Cost, e.Capacity = "in-flight", 1, int64(l.maxInFlight)
	default:
		e.Dimension, e.Cost = "line", 1
	}
	switch {
	case at == math.MaxInt64: // or later: longer than can be told, but not unknown
		e.Wait = math.MaxInt64
		e.Earliest = l.base.Add(math.MaxInt64)
	case at > now:
		e.Wait = time.Duration(at - now)
		e.Earliest = l.base.Add(time.Duration(at))
	}
	return e
}
