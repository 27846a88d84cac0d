package limit

import (
	"math"
	"math/bits"
)

// wide is a signed 128-bit integer, hi*2^64 + lo. Credit is kept in it so that
// refilling needs one multiplication and no division, and so no remainder can
// be dropped.
type wide struct {
	hi int64
	lo uint64
}

// mul is a*b. The callers keep a*b below 2^127.
func mul(a, b uint64) wide {
	hi, lo := bits.Mul64(a, b)
	return wide{int64(hi), lo}
}

// mulSigned is a*b for an a of either sign.
func mulSigned(a int64, b uint64) wide {
	if a < 0 {
		return wide{}.sub(mul(uint64(-a), b))
	}
	return mul(uint64(a), b)
}

func (x wide) add(y wide) wide {
	lo, carry := bits.Add64(x.lo, y.lo, 0)
	return wide{x.hi + y.hi + int64(carry), lo}
}

func (x wide) sub(y wide) wide {
	lo, borrow := bits.Sub64(x.lo, y.lo, 0)
	return wide{x.hi - y.hi - int64(borrow), lo}
}

func (x wide) less(y wide) bool {
	return x.hi < y.hi || x.hi == y.hi && x.lo < y.lo
}

// ceilDiv is x/n rounded up, for x > 0; MaxInt64 when it is larger.
func (x wide) ceilDiv(n uint64) int64 {
	if uint64(x.hi) >= n {
		return math.MaxInt64
	}
	q, r := bits.Div64(uint64(x.hi), x.lo, n)
	if r > 0 {
		q++ // cannot wrap: q = 2^64-1 only if x = n*2^64-1, and then r = n-1 with hi = n-1
	}
	if q == 0 || q > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(q)
}

// floorDiv is x/n rounded towards minus infinity, held within int64.
func (x wide) floorDiv(n uint64) int64 {
	if x.hi < 0 {
		d := wide{}.sub(x).ceilDiv(n)
		return -d
	}
	if uint64(x.hi) >= n {
		return math.MaxInt64
	}
	q, _ := bits.Div64(uint64(x.hi), x.lo, n)
	return int64(min(q, math.MaxInt64))
}

// rescale is floor(x*to/from): credit in grains of one window, told in grains
// of another. Rounding down never mints. |x| < 2^126 and from, to < 2^55.
func (x wide) rescale(from, to uint64) wide {
	if from == to {
		return x
	}
	neg := x.hi < 0
	if neg {
		x = wide{}.sub(x)
	}
	// Long division by from, then both parts times to.
	qhi, rem := uint64(x.hi)/from, uint64(x.hi)%from
	qlo, rem := bits.Div64(rem, x.lo, from)
	part := mul(rem, to)
	frac, rest := bits.Div64(uint64(part.hi), part.lo, from)
	if qhi > 0 && bits.Len64(qhi)+64+bits.Len64(to) > 126 {
		y := floor
		if !neg {
			y = wide{}.sub(floor)
		}
		return y
	}
	y := mul(qlo, to)
	y.hi += int64(qhi * to)
	y = y.add(wide{0, frac})
	if !neg {
		return y
	}
	if rest > 0 {
		y = y.add(wide{0, 1}) // away from zero: debt is rounded up
	}
	return wide{}.sub(y)
}

// floor is where debt saturates: -2^126 grains, 2^71 units of the longest
// window. At MaxUnits a debit it takes two thousand million debits to get there.
var floor = wide{-1 << 62, 0}
