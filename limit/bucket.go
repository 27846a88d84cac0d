package limit

import (
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
	n     uint64 // grains earned each nanosecond: the rate's N
	w     uint64 // grains to a unit: the rate's window in nanoseconds
	level wide   // grains; below zero is debt
	cap   wide   // burst, in grains
	burst int64  // units
	max   int64  // largest admissible cost, units; at least burst
	at    int64  // the instant that level belongs to, nanoseconds
}

// NewBucket returns a full bucket at instant 0. The burst, in units, bounds
// what may go in one instant after idling and is the largest admissible cost.
// A rate or a burst of zero or less, or out of bounds, is a [*ConfigError].
func NewBucket(r Rate, burst int64) (*Bucket, error) {
	if err := r.check("Bucket"); err != nil {
		return nil, err
	}
	if err := checkBurst("Bucket.Burst", burst); err != nil {
		return nil, err
	}
	b := newBucket(r, burst, burst, 0)
	return &b, nil
}

func checkBurst(field string, burst int64) error {
	if burst <= 0 || burst > MaxUnits {
		return &ConfigError{field, burst, "must be from 1 to 1000000000000"}
	}
	return nil
}

func newBucket(r Rate, burst, largest, now int64) Bucket {
	b := Bucket{n: uint64(r.N), w: uint64(r.Window), burst: burst, max: largest, at: now}
	b.cap = mul(uint64(burst), b.w)
	b.level = b.cap
	return b
}

// Take spends cost at instant now if there is credit for it, and returns 0.
// Otherwise nothing is spent and it returns how long to wait: the take would
// succeed at exactly now+wait, under no other use, and not a nanosecond
// before.
//
// A negative cost, a cost above the burst, and an instant earlier than the
// last one are errors ([ErrInvalid], [ErrTooLarge], [ErrBackwards]) and change
// neither credit nor clock.
func (b *Bucket) Take(now time.Duration, cost int64) (wait time.Duration, err error) {
	if err := b.valid(int64(now), cost); err != nil {
		return 0, err
	}
	b.advance(int64(now))
	if d := b.wait(cost); d > 0 {
		return time.Duration(d), nil
	}
	b.spend(cost)
	return 0, nil
}

// Return gives credit back, at most up to the burst.
func (b *Bucket) Return(units int64) {
	b.refund(clampUnits(units))
}

// Charge spends at instant now whether or not there is credit: what is not
// there becomes debt, which later takes wait off.
func (b *Bucket) Charge(now time.Duration, units int64) {
	b.advance(int64(now))
	b.charge(clampUnits(units))
}

// Lower brings credit at instant now down to units (which may be negative), if
// it is above.
func (b *Bucket) Lower(now time.Duration, units int64) {
	b.advance(int64(now))
	b.lower(mulSigned(max(-MaxUnits, min(units, MaxUnits)), b.w))
}

// SetRate changes rate and burst at instant now. What was earned until then
// was earned at the old rate; credit above the new burst is cut, and is
// otherwise kept: exactly when the window stays the same, rounded down to the
// new grain (less than a billionth of a unit) when it does not.
func (b *Bucket) SetRate(now time.Duration, r Rate, burst int64) error {
	if err := r.check("Bucket"); err != nil {
		return err
	}
	if err := checkBurst("Bucket.Burst", burst); err != nil {
		return err
	}
	b.advance(int64(now))
	b.set(r, burst, burst)
	return nil
}

// Credit is the whole units there at the last instant, rounded down; negative
// is debt.
func (b *Bucket) Credit() int64 { return b.level.floorDiv(b.w) }

func (b *Bucket) valid(now, cost int64) error {
	switch {
	case cost < 0:
		return ErrInvalid
	case cost > b.max:
		return ErrTooLarge
	case now < b.at:
		return ErrBackwards
	}
	return nil
}

// advance earns up to now. An instant older than the last earns nothing and
// does not move the clock back; otherwise alternating stamps would earn the
// same time over and over.
//
// Overflow: N <= 2^40 and a span of 2^63 ns give at most 2^103 grains.
func (b *Bucket) advance(now int64) {
	dt := now - b.at
	if dt <= 0 {
		return
	}
	b.at = now
	b.level = b.level.add(mul(b.n, uint64(dt)))
	if b.cap.less(b.level) {
		b.level = b.cap
	}
}

// need is the credit, in grains, at which cost is admitted: the cost itself,
// or a full bucket for one that is larger than the bucket.
func (b *Bucket) need(cost int64) wide {
	if cost > b.burst {
		return b.cap
	}
	return mul(uint64(cost), b.w)
}

// has reports whether cost is admissible now. A cost of zero always is: it
// waits for nobody's debt.
func (b *Bucket) has(cost int64) bool {
	return cost == 0 || !b.level.less(b.need(cost))
}

// wait is the nanoseconds until cost is admissible, 0 when it is.
func (b *Bucket) wait(cost int64) int64 { return b.waitBehind(0, cost) }

// waitBehind is the same with ahead units to be spent first by others.
func (b *Bucket) waitBehind(ahead, cost int64) int64 {
	if cost == 0 {
		return 0
	}
	need := b.need(cost).add(mul(uint64(ahead), b.w))
	if !b.level.less(need) {
		return 0
	}
	return need.sub(b.level).ceilDiv(b.n)
}

// spend takes an admitted cost. A cost larger than the bucket leaves debt.
func (b *Bucket) spend(cost int64) { b.level = b.level.sub(mul(uint64(cost), b.w)) }

// charge takes without asking.
func (b *Bucket) charge(units int64) {
	b.spend(units)
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

func (b *Bucket) lower(level wide) {
	if level.less(b.level) {
		b.level = level
		b.saturate()
	}
}

func (b *Bucket) saturate() {
	if b.level.less(floor) {
		b.level = floor
	}
}

func (b *Bucket) set(r Rate, burst, largest int64) {
	b.level = b.level.rescale(b.w, uint64(r.Window))
	b.n, b.w = uint64(r.N), uint64(r.Window)
	b.burst, b.max = burst, largest
	b.cap = mul(uint64(burst), b.w)
	if b.cap.less(b.level) {
		b.level = b.cap
	}
}

func clampUnits(u int64) int64 { return max(0, min(u, MaxUnits)) }

// later is at+d without wrapping.
func later(at, d int64) int64 {
	if d > math.MaxInt64-at {
		return math.MaxInt64
	}
	return at + d
}
