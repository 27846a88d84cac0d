package limit

import (
	"fmt"
	"math"
	"time"
)

// A Bucket is one limit in its credit form: credit fills at a rate up to a
// burst and is spent by costs. It is a plain value with neither lock nor
// clock: instants are arguments, counted in nanoseconds from a base that the
// caller chooses, so it can be checked with a pencil. [Limiter] wraps several
// of them in one lock and one line.
//
// It is exact. With a rate of N units in W nanoseconds, credit is kept in
// grains, W of them to a unit; each nanosecond earns N grains. Both are whole
// numbers, so nothing is ever rounded:
//
//	level(t) = min(burst*W, level(t0) + N*(t - t0))
//	wait(c)  = ceil((c*W - level) / N)   nanoseconds
//
// The zero Bucket is not usable; call [NewBucket]. It must not be used by
// several goroutines at once.
type Bucket struct {
	level wide   // grains; below zero is debt
	at    int64  // the instant that level belongs to, nanoseconds, never negative
	n     uint64 // grains earned each nanosecond: the rate's N
	w     uint64 // grains to a unit: the rate's window in nanoseconds
	cap   wide   // burst, in grains
	burst int64  // units
	max   int64  // largest admissible cost, units
	over  wide   // grains by which a reading is below the own books: see read
	early wide   // grains set aside, which giveEarly adds to level
}

// NewBucket returns a full bucket at instant 0. The burst, in units, bounds
// what may go in one instant after idling and is the largest admissible cost.
// A rate or a burst of zero or less, or out of bounds, is a [*ConfigError].
func NewBucket(r Rate, burst int64) (*Bucket, error) {
	if err := checkBucket("Bucket", r, burst); err != nil {
		return nil, err
	}
	b := newBucket(r, burst, burst, 0)
	return &b, nil
}

func checkBucket(field string, r Rate, burst int64) error {
	if err := r.check(field); err != nil {
		return err
	}
	if burst <= 0 || burst > MaxUnits {
		return &ConfigError{field + ".Burst", burst, fmt.Sprintf("must be from 1 to %d", int64(MaxUnits))}
	}
	return nil
}

func newBucket(r Rate, burst, largest, now int64) Bucket {
	b := Bucket{n: uint64(r.N), w: uint64(r.Window), burst: burst, max: largest, at: now}
	b.cap = mul(uint64(burst), b.w)
	b.level = b.cap
	return b
}

// Take spends cost, in units, at instant now if there is credit for it, and
// returns 0. Otherwise nothing is spent and it returns how long to wait: under
// no other use the take succeeds at exactly now+wait, and not a nanosecond
// before. (A wait of more than 292 years is given as that.)
//
// A negative cost is [ErrInvalid], a cost above the burst [ErrTooLarge], and an
// instant earlier than the last one [ErrBackwards]. Errors change neither credit
// nor clock.
func (b *Bucket) Take(now time.Duration, cost int64) (wait time.Duration, err error) {
	switch {
	case cost < 0:
		return 0, ErrInvalid
	case cost > b.max:
		return 0, ErrTooLarge
	case int64(now) < b.at:
		return 0, ErrBackwards
	}
	if !b.take(int64(now), cost) {
		return time.Duration(b.waitFrom(int64(now), 0, cost)), nil
	}
	return 0, nil
}

// Return gives credit back, in units, at most up to the burst. A negative
// number gives back nothing.
func (b *Bucket) Return(units int64) {
	b.refund(clampUnits(units))
}

// Charge spends units at instant now whether or not there is credit: what is
// not there becomes debt, which later takes wait off. A negative number charges
// nothing, and an instant earlier than the last counts as the last.
func (b *Bucket) Charge(now time.Duration, units int64) {
	b.advance(int64(now))
	b.charge(clampUnits(units))
}

// Lower brings credit at instant now down to units (which may be negative), if
// it is above. An instant earlier than the last counts as the last.
func (b *Bucket) Lower(now time.Duration, units int64) {
	b.advance(int64(now))
	b.lower(mulSigned(max(-MaxUnits, min(units, MaxUnits)), b.w))
}

// SetRate changes rate and burst at instant now. Until then the old
// rate earned; credit above the new burst is cut, and is
// otherwise kept: exactly when the window stays the same, rounded down to the
// new grain (a millionth of a unit at most) when it does not. Errors are those
// of [NewBucket] and change nothing.
func (b *Bucket) SetRate(now time.Duration, r Rate, burst int64) error {
	if err := checkBucket("Bucket", r, burst); err != nil {
		return err
	}
	b.advance(int64(now))
	b.set(r, burst, burst)
	return nil
}

// Credit is the whole units there at the last instant, rounded down; negative
// is debt.
func (b *Bucket) Credit() int64 { return b.level.floorDiv(b.w) }

// advance earns up to now. An instant older than the last earns nothing and
// does not move the clock back; otherwise alternating stamps would earn the
// same time over and over.
//
// Overflow: N < 2^40 and a span below 2^63 ns earn less than 2^103 grains.
func (b *Bucket) advance(now int64) {
	if now > b.at {
		b.level = b.levelAt(now)
		b.at = now
	}
}

// levelAt is the level at an instant not before the last, if nothing happens
// until then.
func (b *Bucket) levelAt(now int64) wide {
	level := b.level.add(mul(b.n, uint64(now-b.at)))
	if b.cap.less(level) {
		return b.cap
	}
	return level
}

// need is the credit, in grains, at which cost is admitted: the cost itself,
// or a full bucket for one that is larger than the bucket.
func (b *Bucket) need(cost int64) wide {
	if cost > b.burst {
		return b.cap
	}
	return mul(uint64(cost), b.w)
}

// take spends cost if it is admissible at now. A cost of zero always is: it
// does not wait for debt. One larger than the bucket leaves debt, and one above
// max never goes, not even where there is credit for it.
func (b *Bucket) take(now, cost int64) bool {
	b.advance(now)
	rest := b.level.sub(mul(uint64(cost), b.w))
	if cost > b.max || rest.hi < 0 && b.lacks(cost) {
		return false
	}
	if b.over != (wide{}) || b.early != (wide{}) {
		b.trim()
	}
	b.level = rest
	return true
}

// lacks tells of a cost that credit does not cover whether it must wait.
func (b *Bucket) lacks(cost int64) bool {
	return cost != 0 && b.level.less(b.need(cost))
}

// short reports whether cost must wait at now.
func (b *Bucket) short(now, cost int64) bool {
	b.advance(now)
	return b.lacks(cost)
}

// waitFrom is how long after the instant start cost is admissible, in nanoseconds.
// start is not before the last instant. Before cost, ahead units are spent, each at
// the earliest possible instant from start on. 0 means at start.
//
// It is exact when nobody is ahead, and when this bucket alone holds those ahead
// up. When something else does, credit may overflow meanwhile, and the true wait
// is longer; it is never shorter. So it is where a cost ahead takes the whole
// burst, by the part of a nanosecond in which the bucket fills.
//
// Overflow: ahead < 2^63 units of 2^55 grains, less a debt of 2^126.
func (b *Bucket) waitFrom(start, ahead, cost int64) int64 {
	need := b.need(cost)
	if cost == 0 {
		// It goes with the last of those ahead. A cost larger than the bucket
		// goes at a full bucket, so the last may leave max-burst unpaid.
		ahead = max(0, ahead-max(0, b.max-b.burst))
		if ahead == 0 {
			return 0
		}
	}
	need = need.add(mul(uint64(ahead), b.w))
	level := b.levelAt(start)
	if !level.less(need) {
		return 0
	}
	return need.sub(level).ceilDiv(b.n)
}

// charge takes without asking.
func (b *Bucket) charge(units int64) {
	b.trim()
	b.level = b.level.sub(mul(uint64(units), b.w))
	b.saturate()
}

// refund gives back. It needs no clock: filling and giving back both add under
// the same cap, so their order cannot be seen.
func (b *Bucket) refund(units int64) {
	b.level = b.level.add(mul(uint64(units), b.w))
	if b.cap.less(b.level) {
		b.level = b.cap
	}
}

// lower brings the level down to that, and reports whether it was above. The level with
// what was set aside comes down to it too.
func (b *Bucket) lower(level wide) bool {
	if b.early != (wide{}) {
		b.trim()
		b.early = b.level.add(b.early).min(level).sub(b.level.min(level))
	}
	if !level.less(b.level) {
		return false
	}
	b.trim()
	b.level = level
	b.saturate()
	return true
}

// read is lower for a balance that the other side states. It remembers how far that is
// below the own books, which nobody but the caller and time change:
//
//	own books = level + over, and at most the burst
//
// A charge that the reading has in it, and the own books learn of later, brings them
// nearer to each other: see found.
func (b *Bucket) read(level wide) bool {
	before := b.level
	if !b.lower(level) {
		return false
	}
	b.over = b.over.add(before.sub(b.level))
	return true
}

// found enters in the own books, at the last instant, a charge that the reading had in
// it. The level falls by what is charged, as far as the reading did not take it before:
// this gives that back, and the charge itself follows.
func (b *Bucket) found(units int64) {
	b.trim()
	back := b.over.min(mul(uint64(units), b.w))
	b.level, b.over = b.level.add(back), b.over.sub(back)
}

// trim lets the own books, and the level with what was set aside, be no more than the
// burst. It comes before anything that makes the level fall: up to then it was highest.
func (b *Bucket) trim() {
	room := b.cap.sub(b.level)
	b.over, b.early = b.over.min(room), b.early.min(room)
}

// giveEarly gives back what was set aside, at the last instant.
func (b *Bucket) giveEarly() {
	b.trim()
	b.level, b.early = b.level.add(b.early), wide{}
}

func (b *Bucket) saturate() {
	if b.level.less(floor) {
		b.level = floor
	}
}

func (b *Bucket) set(r Rate, burst, largest int64) {
	b.trim()
	w := uint64(r.Window)
	b.level, b.over, b.early = b.level.rescale(b.w, w), b.over.rescale(b.w, w), b.early.rescale(b.w, w)
	b.n, b.w = uint64(r.N), uint64(r.Window)
	b.burst, b.max = burst, largest
	b.cap = mul(uint64(burst), b.w)
	if b.cap.less(b.level) {
		b.level = b.cap
	}
}

func clampUnits(u int64) int64 { return max(0, min(u, MaxUnits)) }

// later is at+d without wrapping, for an at and a d that are not negative.
func later(at, d int64) int64 {
	if d > math.MaxInt64-at {
		return math.MaxInt64
	}
	return at + d
}
