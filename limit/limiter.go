package limit

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"
)

// A Limit is one bound of a [Limiter]: so many units in so long.
type Limit struct {
	// Name is the dimension as errors and snapshots call it, unique within a
	// limiter. Empty means unit and window, such as "tokens/1m0s".
	Name string

	// Unit says what is counted. The zero value counts requests.
	Unit Unit

	// Rate is the refill. The zero Rate means unset: no limit.
	Rate Rate

	// Burst is how much may go in one instant after idling, in units. Set by
	// hand it is also the largest admissible cost: more is refused at once.
	//
	// Zero means the default: for windows up to a minute, one second of the
	// rate for requests and ten seconds for tokens, at least 1; the whole
	// window for longer ones, since a day's allowance is spent in bursts.
	// Costs above a default burst but within the rate's N wait for a full
	// bucket and leave debt; only a cost above N is refused.
	//
	// In any span of time d, at most Burst plus what the rate earns in d is
	// admitted, plus what the last cost was larger than the burst.
	Burst int64

	// Largest is the largest admissible cost, in units. Zero means the Burst
	// where that is set by hand, else the rate's N. It may be above the burst:
	// such a cost waits for a full bucket and leaves debt.
	Largest int64

	// Empty starts the limit with no credit instead of a full burst.
	Empty bool
}

// defaultBurst is the burst of a Limit that names none.
func (l Limit) defaultBurst() int64 {
	span := l.Rate.Window
	if span <= time.Minute {
		span = 10 * time.Second
		if l.Unit == Requests {
			span = time.Second
		}
	}
	return max(1, min(l.Rate.In(span), l.Rate.N))
}

// Options configure a [Limiter]. Zero means unset, that is unlimited, in every
// field. A negative or contradictory value is a [*ConfigError].
type Options struct {
	// Limits are granted together or not at all. Any number, of any windows.
	Limits []Limit

	// MaxInFlight is how many reservations may be open at once.
	MaxInFlight int

	// MaxQueue is how many callers may wait; one more is refused with
	// [ErrQueueFull]. Unset, 4,194,304 may: the bound that keeps the line's
	// sums inside 63 bits.
	MaxQueue int

	// MaxWait is the longest a caller waits in the line. A wait known to be
	// longer is refused at once, any other when it has lasted that long.
	MaxWait time.Duration
}

// hardQueue * 2 * (MaxUnits+1) < 2^63: the sum of input and output over the
// whole line cannot overflow. (The few in the first line were admitted before,
// and the table of open reservations bounds them.)
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
	base time.Time // instants are nanoseconds since; its monotonic reading counts

	mu          sync.Mutex // guards all below; never held while waiting
	limits      []bound
	maxInFlight int64
	maxQueue    int
	maxWait     time.Duration

	inFlight    int64
	pausedUntil int64 // instant; 0 = not paused
	last        int64 // latest instant seen

	line  line // the line
	first line // the few who go before it
	timer *time.Timer
	armed int64 // instant the timer is set for, 0 = not set

	open  table
	marks markQueue

	// Sums over all time, modulo 2^64: differences between two readings are
	// exact as long as they are below 2^63.
	debits, refunds Cost
}

// bound is a Limit at work.
type bound struct {
	Bucket
	unit Unit
	name string
	cfg  Limit
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
	l := &Limiter{base: time.Now(), maxInFlight: int64(o.MaxInFlight), maxQueue: o.MaxQueue, maxWait: o.MaxWait}
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
			continue
		}
		if l.find(lim.Name) != nil {
			return nil, &ConfigError{field + ".Name", lim.Name, "is there twice"}
		}
		l.limits = append(l.limits, newBound(lim, 0))
	}
	return l, nil
}

// checked validates and fills in the name.
func (l Limit) checked(field string) (Limit, error) {
	if l.Unit > Tokens {
		return l, &ConfigError{field + ".Unit", uint8(l.Unit), "is no unit"}
	}
	if l.Burst < 0 || l.Burst > MaxUnits {
		return l, &ConfigError{field + ".Burst", l.Burst, fmt.Sprintf("must be from 0 to %d", int64(MaxUnits))}
	}
	if l.Largest < 0 || l.Largest > MaxUnits {
		return l, &ConfigError{field + ".Largest", l.Largest, fmt.Sprintf("must be from 0 to %d", int64(MaxUnits))}
	}
	if l.Rate != (Rate{}) {
		if err := l.Rate.check(field); err != nil {
			return l, err
		}
	}
	if l.Name == "" {
		l.Name = fmt.Sprintf("%v/%v", l.Unit, l.Rate.Window)
	}
	return l, nil
}

// sizes are the burst and the largest admissible cost, in units.
func (l Limit) sizes() (burst, largest int64) {
	burst, largest = l.Burst, l.Burst
	if burst == 0 {
		burst, largest = l.defaultBurst(), l.Rate.N
	}
	if l.Largest > 0 {
		largest = l.Largest
	}
	return burst, largest
}

func newBound(cfg Limit, now int64) bound {
	burst, largest := cfg.sizes()
	b := bound{newBucket(cfg.Rate, burst, largest, now), cfg.Unit, cfg.Name, cfg}
	if cfg.Empty {
		b.level = wide{}
	}
	return b
}

// Acquire waits until cost is admitted and returns its reservation, which must
// be ended: see [Reservation]. When the line is empty and there is credit it
// neither waits nor allocates.
//
// It returns an [*Error] without having changed anything when cost can never
// be admitted ([ErrTooLarge]), the line is full ([ErrQueueFull]), the wait
// must outlast the context's deadline or the longest wait ([ErrWaitTooLong],
// which is also context.DeadlineExceeded if the deadline was the bound), or
// ctx ends first ([ErrCanceled], and the context's own error). The estimate of
// the wait counts on nobody's refund.
func (l *Limiter) Acquire(ctx context.Context, cost Cost) (Reservation, error) {
	return l.acquire(ctx, cost, &l.line)
}

// AcquireFirst is Acquire at the head of the line: before everybody in it, and
// after those who came this way earlier. It is for what was admitted once and
// must be charged again, such as a retry; used for everything it would be a
// second line that starves the first.
func (l *Limiter) AcquireFirst(ctx context.Context, cost Cost) (Reservation, error) {
	return l.acquire(ctx, cost, &l.first)
}

func (l *Limiter) acquire(ctx context.Context, cost Cost, where *line) (Reservation, error) {
	cost = cost.bounded()
	if err := ctx.Err(); err != nil {
		return Reservation{}, &Error{Reason: ErrCanceled, Cause: err, Dimension: "line", Cost: 1}
	}
	l.mu.Lock()
	if now := l.now(); l.free(where) && l.admits(cost, now) {
		r := l.grant(cost, true)
		l.mu.Unlock()
		return r, nil
	}
	deadline, _ := ctx.Deadline()
	t, err := l.join(cost, true, deadline, where)
	l.mu.Unlock()
	if err != nil {
		return Reservation{}, err
	}
	select {
	case <-t.done:
		return t.r, t.err
	case <-ctx.Done():
		return Reservation{}, t.cancel(ctx.Err())
	}
}

// TryAcquire admits cost now or returns an [*Error] at once: [ErrLimited] with
// the time it would have taken, or [ErrTooLarge].
func (l *Limiter) TryAcquire(cost Cost) (Reservation, error) {
	cost = cost.bounded()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); l.free(&l.line) && l.admits(cost, now) {
		return l.grant(cost, true), nil
	}
	if err := l.impossible(cost); err != nil {
		return Reservation{}, err
	}
	return Reservation{}, l.refusal(ErrLimited, cost, true, &l.line)
}

// Allow spends cost if it is admissible now, and reports whether it was. There
// is no reservation to end, so it takes no place in flight.
func (l *Limiter) Allow(cost Cost) bool {
	cost = cost.bounded()
	stamp := l.clock()
	l.mu.Lock()
	ok := l.free(&l.line) && l.affordable(cost, l.see(stamp))
	if ok {
		l.grant(cost, false)
	}
	l.mu.Unlock()
	return ok
}

// Wait spends cost as soon as it is admissible. There is no reservation to
// end, so it takes no place in flight. Errors are those of [Limiter.Acquire].
func (l *Limiter) Wait(ctx context.Context, cost Cost) error {
	cost = cost.bounded()
	if err := ctx.Err(); err != nil {
		return &Error{Reason: ErrCanceled, Cause: err, Dimension: "line", Cost: 1}
	}
	l.mu.Lock()
	if now := l.now(); l.free(&l.line) && l.affordable(cost, now) {
		l.grant(cost, false)
		l.mu.Unlock()
		return nil
	}
	deadline, _ := ctx.Deadline()
	t, err := l.join(cost, false, deadline, &l.line)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return t.cancel(ctx.Err())
	}
}

// Pause holds everybody until d from now. The later of two pauses wins. When
// it opens the line moves at the refill rate, not as a herd: limits of a
// minute or less start again from nothing (one request, for requests). Longer
// ones keep their credit, which a short pause says nothing about.
func (l *Limiter) Pause(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	until := later(now, int64(d))
	if d <= 0 || until <= l.pausedUntil {
		return
	}
	l.pausedUntil = until
	for i := range l.limits {
		if b := &l.limits[i]; b.w <= uint64(time.Minute) {
			one := int64(0)
			if b.unit == Requests {
				one = 1
			}
			b.advance(now)
			b.lower(mul(uint64(one), b.w).sub(mul(b.n, uint64(d))))
		}
	}
	l.schedule(now)
}

// SetLimit adds a limit, or changes the one of that name, or removes it if its
// Rate is zero. Until now the old rate earned; credit is kept, cut to the new
// burst, and never raised. Whoever waits is timed anew at once. A burst that
// was left to the default follows the new rate.
func (l *Limiter) SetLimit(lim Limit) error {
	lim, err := lim.checked("Limit")
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b := l.find(lim.Name)
	switch {
	case b == nil && lim.Rate != (Rate{}):
		l.limits = append(l.limits, newBound(lim, now))
	case b == nil:
		return nil
	case lim.Rate == (Rate{}):
		kept := make([]bound, 0, len(l.limits)-1)
		for _, other := range l.limits {
			if other.name != lim.Name {
				kept = append(kept, other)
			}
		}
		l.limits = kept
	default:
		b.advance(now)
		burst, largest := lim.sizes()
		b.set(lim.Rate, burst, largest)
		b.unit, b.cfg = lim.Unit, lim
	}
	l.schedule(now)
	return nil
}

// SetMaxInFlight changes how many reservations may be open; 0 is unlimited.
// Those already open stay.
func (l *Limiter) SetMaxInFlight(n int) error {
	if n < 0 {
		return &ConfigError{"MaxInFlight", n, "must not be negative"}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxInFlight = int64(n)
	l.schedule(l.now())
	return nil
}

// clock reads the monotonic clock: nanoseconds since the limiter was made.
func (l *Limiter) clock() int64 { return int64(time.Since(l.base)) }

// now is the instant, read inside the lock.
func (l *Limiter) now() int64 { return l.see(l.clock()) }

// see takes a stamp for the instant, unless a later one was seen: an older
// stamp never earns, and never moves the clock back. So a caller may read the
// clock before it takes the lock, which it then holds for a third of the time;
// the worst a stale stamp can do is to admit a moment late. Where a wait is
// computed the clock is read again, inside.
func (l *Limiter) see(stamp int64) int64 {
	if stamp > l.last {
		l.last = stamp
	}
	return l.last
}

func (l *Limiter) find(name string) *bound {
	for i := range l.limits {
		if l.limits[i].name == name {
			return &l.limits[i]
		}
	}
	return nil
}

// free reports whether nobody stands before a newcomer in that line.
func (l *Limiter) free(where *line) bool {
	return l.first.head == nil && (where == &l.first || l.line.head == nil)
}

// admits reports whether cost, with a place in flight, may go at now.
func (l *Limiter) admits(cost Cost, now int64) bool {
	return (l.maxInFlight == 0 || l.inFlight < l.maxInFlight) && l.affordable(cost, now)
}

// affordable reports whether every limit has credit for cost at now.
func (l *Limiter) affordable(cost Cost, now int64) bool {
	if now < l.pausedUntil || !cost.valid() {
		return false
	}
	for i := range l.limits {
		b := &l.limits[i]
		b.advance(now)
		c := b.unit.of(cost)
		if c > b.max || !b.has(c) {
			return false
		}
	}
	return true
}

// grant takes an admitted cost from every limit.
func (l *Limiter) grant(cost Cost, slot bool) Reservation {
	for i := range l.limits {
		b := &l.limits[i]
		b.spend(b.unit.of(cost))
	}
	l.marks.settle(l)
	l.debits = l.debits.plus(cost)
	if !slot {
		return Reservation{}
	}
	l.inFlight++
	i, seq := l.open.put(cost)
	return Reservation{l, seq, i}
}

// impossible is the error for a cost that no wait can make admissible, or nil.
func (l *Limiter) impossible(cost Cost) error {
	if !cost.valid() {
		return &Error{Reason: ErrInvalid, Dimension: "cost", Cost: min(cost.Requests, cost.Input, cost.Output)}
	}
	for i := range l.limits {
		b := &l.limits[i]
		if c := b.unit.of(cost); c > b.max {
			return &Error{Reason: ErrTooLarge, Dimension: b.name, Cost: c, Capacity: b.max}
		}
	}
	return nil
}

// earliest is the instant at which cost could go with the given costs ahead of
// it, under no other use, and the dimension that sets it. A full in-flight
// gate has no instant; it is reported by name if no limit binds.
func (l *Limiter) earliest(cost, ahead Cost, slot bool, now int64) (at int64, which *bound, gate string) {
	at = max(now, l.pausedUntil)
	if l.pausedUntil > now {
		gate = "pause"
	}
	for i := range l.limits {
		b := &l.limits[i]
		b.advance(now)
		if t := later(now, b.waitBehind(b.unit.of(ahead), b.unit.of(cost))); t > at {
			at, which, gate = t, b, ""
		}
	}
	if slot && l.maxInFlight > 0 && l.inFlight >= l.maxInFlight && which == nil && gate == "" {
		gate = "in-flight"
	}
	return at, which, gate
}

// refusal describes why cost is not admitted, in numbers.
func (l *Limiter) refusal(reason error, cost Cost, slot bool, where *line) *Error {
	now := l.last
	at, b, gate := l.earliest(cost, l.ahead(where), slot, now)
	e := &Error{Reason: reason, Dimension: gate, Cost: 1}
	switch {
	case b != nil:
		e.Dimension, e.Cost, e.Capacity = b.name, b.unit.of(cost), b.max
	case gate == "in-flight":
		e.Capacity = l.maxInFlight
	case gate == "":
		e.Dimension = "line"
	}
	if at > now && at < math.MaxInt64 {
		e.Wait = time.Duration(at - now)
		e.Earliest = l.base.Add(time.Duration(at))
	}
	return e
}
