package providertest

import (
	"math"
	"math/bits"
)

// A gauge judges one limit. Instants are nanoseconds since the provider's
// start and never go back from one changing call to the next. The methods that
// take an instant and return something do not change the gauge, so a refusal
// leaves no trace.
type gauge interface {
	// wait is how long after at the gauge first has room for n units, 0 if it
	// has now, never if waiting cannot help.
	wait(at, n int64) int64
	// take charges n units whether or not there is room.
	take(at, n int64)
	// correct adds n units (negative: gives back) to a charge made at stamp.
	correct(at, stamp, n int64)
	// level is the credit in whole units, rounded down; negative is debt.
	level(at int64) int64
	// holds is the largest level, in whole units.
	holds(at int64) int64
	// full is how long after at the gauge would be back to holds.
	full(at int64) int64
	// set changes the limit; what was charged stays charged.
	set(at, limit int64)
}

// never is the wait of what can never be admitted.
const never = math.MaxInt64

// mulDiv is a*b/c rounded down, and the remainder, for a, b >= 0 and c > 0.
// ok is false when the quotient does not fit an int64.
func mulDiv(a, b, c int64) (q, r int64, ok bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return 0, 0, false
	}
	uq, ur := bits.Div64(hi, lo, uint64(c))
	if uq > math.MaxInt64 {
		return 0, 0, false
	}
	return int64(uq), int64(ur), true
}

// bucket refills limit units per window nanoseconds, continuously, and holds
// limit x depth / window units, at least one.
//
// The level is units + rem/window with 0 <= rem < window: an integer and the
// exact remainder, so polling never gains or loses anything.
type bucket struct {
	limit, window, depth int64 // units, ns, ns
	oversize             bool

	capUnits, capRem int64
	units, rem       int64 // level at last
	last             int64 // ns
}

func newBucket(limit, window, depth int64, oversize bool) *bucket {
	b := &bucket{window: window, depth: depth, oversize: oversize}
	b.set(0, limit)
	b.units, b.rem = b.capUnits, b.capRem
	return b
}

// at is the level at an instant not before last.
func (b *bucket) at(at int64) (units, rem int64) {
	q, r, ok := mulDiv(b.limit, max(at-b.last, 0), b.window)
	if !ok || q > b.capUnits-b.units {
		return b.capUnits, b.capRem
	}
	units, rem = b.units+q, b.rem+r
	if rem >= b.window {
		units, rem = units+1, rem-b.window
	}
	return b.clamp(units, rem)
}

func (b *bucket) clamp(units, rem int64) (int64, int64) {
	if units > b.capUnits || units == b.capUnits && rem > b.capRem {
		return b.capUnits, b.capRem
	}
	return units, rem
}

// until is how long after at the level first is units + rem/window:
// ((units - level) x window) / limit, rounded up to the nanosecond.
func (b *bucket) until(at, units, rem int64) int64 {
	u, r := b.at(at)
	units, rem = units-u, rem-r
	if rem < 0 {
		units, rem = units-1, rem+b.window
	}
	if units < 0 || units == 0 && rem == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(units), uint64(b.window))
	lo, carry := bits.Add64(lo, uint64(rem), 0)
	hi += carry
	if hi >= uint64(b.limit) {
		return never
	}
	q, left := bits.Div64(hi, lo, uint64(b.limit))
	if q >= never {
		return never
	}
	if left > 0 {
		q++
	}
	return int64(q)
}

func (b *bucket) wait(at, n int64) int64 {
	if n <= b.capUnits {
		return b.until(at, n, 0)
	}
	if b.oversize && n <= b.limit {
		return b.until(at, b.capUnits, b.capRem)
	}
	return never
}

func (b *bucket) take(at, n int64) {
	b.units, b.rem = b.at(at)
	b.units -= n
	b.last = at
}

func (b *bucket) correct(at, _, n int64) {
	b.take(at, n)
	b.units, b.rem = b.clamp(b.units, b.rem)
}

func (b *bucket) level(at int64) int64 { u, _ := b.at(at); return u }
func (b *bucket) holds(int64) int64    { return b.capUnits }
func (b *bucket) full(at int64) int64  { return b.until(at, b.capUnits, b.capRem) }

func (b *bucket) set(at, limit int64) {
	if b.limit != 0 {
		b.take(at, 0)
	}
	b.limit = limit
	b.capUnits, b.capRem, _ = mulDiv(limit, b.depth, b.window)
	if b.capUnits < 1 {
		b.capUnits, b.capRem = 1, 0
	}
	b.units, b.rem = b.clamp(b.units, b.rem)
}
