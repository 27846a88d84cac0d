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
	hi, _ := bits.Add64(uint64(x.hi), uint64(y.hi), carry)
	return wide{int64(hi), lo}
}

func (x wide) sub(y wide) wide {
	lo, borrow := bits.Sub64(x.lo, y.lo, 0)
	hi, _ := bits.Sub64(uint64(x.hi), uint64(y.hi), borrow)
	return wide{int64(hi), lo}
}

// less is x < y, for a difference that fits: see Bounds in the package
// documentation.
func (x wide) less(y wide) bool { return x.sub(y).hi < 0 }

func (x wide) min(y wide) wide {
	if y.less(x) {
		return y
	}
	return x
}

// ceilDiv is x/n rounded up, for x > 0; MaxInt64 when it is larger.
func (x wide) ceilDiv(n uint64) int64 {
	if uint64(x.hi) >= n {
		return math.MaxInt64
	}
	q, r := bits.Div64(uint64(x.hi), x.lo, n)
	if r > 0 {
		q = max(q, q+1) // q+1 unless that wraps
	}
	return int64(min(q, math.MaxInt64))
}

// floorDiv is x/n rounded towards minus infinity, held within ±MaxInt64.
func (x wide) floorDiv(n uint64) int64 {
	if x.hi < 0 {
		return -wide{}.sub(x).ceilDiv(n)
	}
	if uint64(x.hi) >= n {
		return math.MaxInt64
	}
	q, _ := bits.Div64(uint64(x.hi), x.lo, n)
	return int64(min(q, math.MaxInt64))
}

// rescale is floor(x*to/from): credit in grains of one window, told in grains
// of another. Rounding down never mints, and rounds debt up. It saturates at
// the floor, and at the same distance above zero; from and to are < 2^55.
func (x wide) rescale(from, to uint64) wide {
	if from == to {
		return x
	}
	neg := x.hi < 0
	if neg {
		x = wide{}.sub(x)
	}
	// Long division by from gives a quotient of two words and a remainder;
	// both are then multiplied by to, and the remainder's part divided again.
	qhi, rem := uint64(x.hi)/from, uint64(x.hi)%from
	qlo, rem := bits.Div64(rem, x.lo, from)
	part := mul(rem, to) // below from*to, so the division by from is in range
	frac, rest := bits.Div64(uint64(part.hi), part.lo, from)
	if neg && rest > 0 {
		frac++ // at most to, no carry out of the word
	}
	over, top := bits.Mul64(qhi, to)
	hi, lo := bits.Mul64(qlo, to)
	lo, carry := bits.Add64(lo, frac, 0)
	hi, carry = bits.Add64(hi, top, carry)
	y := wide{int64(hi), lo}
	if over != 0 || carry != 0 || hi >= 1<<62 {
		y = wide{}.sub(floor)
	}
	if neg {
		return wide{}.sub(y)
	}
	return y
}

// floor is where debt saturates: -2^126 grains. In the longest window that is
// 2^71 units, two thousand million debits of MaxUnits each; in shorter ones more.
var floor = wide{-1 << 62, 0}
