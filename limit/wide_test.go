package limit

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// big is x as an integer of any size: the oracle for 128 bits.
func (x wide) big() *big.Int {
	v := new(big.Int).Lsh(big.NewInt(x.hi), 64)
	return v.Add(v, new(big.Int).SetUint64(x.lo))
}

// checkWide holds every operation on x, y and the given factors to math/big.
// x and y are cut to 126 bits, windows to 55: the bounds of the package.
func checkWide(t *testing.T, x, y wide, n, from, to uint64) {
	t.Helper()
	const window = uint64(MaxWindow)
	x.hi, y.hi = x.hi>>1, y.hi>>1
	n, from, to = n%MaxUnits+1, from%window+1, to%window+1
	bx, by, bn := x.big(), y.big(), new(big.Int).SetUint64(n)

	eq := func(op string, got, want *big.Int) {
		t.Helper()
		if got.Cmp(want) != 0 {
			t.Fatalf("%s of %v, %v, n %d, %d to %d: %v, want %v", op, bx, by, n, from, to, got, want)
		}
	}
	eq("add", x.add(y).big(), new(big.Int).Add(bx, by))
	eq("sub", x.sub(y).big(), new(big.Int).Sub(bx, by))
	eq("mul", mul(n, from).big(), new(big.Int).Mul(bn, new(big.Int).SetUint64(from)))
	eq("mulSigned", mulSigned(x.hi, from).big(), new(big.Int).Mul(big.NewInt(x.hi), new(big.Int).SetUint64(from)))
	if got, want := x.less(y), bx.Cmp(by) < 0; got != want {
		t.Fatalf("%v < %v: %v", bx, by, got)
	}

	// Euclidean division by a positive n rounds towards minus infinity.
	held := func(v *big.Int) *big.Int {
		if top := big.NewInt(math.MaxInt64); v.CmpAbs(top) > 0 {
			return top.Mul(top, big.NewInt(int64(v.Sign())))
		}
		return v
	}
	eq("floorDiv", big.NewInt(x.floorDiv(n)), held(new(big.Int).Div(bx, bn)))
	if bx.Sign() > 0 {
		up := new(big.Int).Neg(new(big.Int).Div(new(big.Int).Neg(bx), bn))
		eq("ceilDiv", big.NewInt(x.ceilDiv(n)), held(up))
	}

	scaled := new(big.Int).Mul(bx, new(big.Int).SetUint64(to))
	scaled.Div(scaled, new(big.Int).SetUint64(from))
	if top := floor.big(); scaled.CmpAbs(top) > 0 {
		scaled.Abs(top).Mul(scaled, big.NewInt(int64(bx.Sign())))
	}
	eq("rescale", x.rescale(from, to).big(), scaled)
}

func FuzzWide(f *testing.F) {
	f.Add(int64(0), uint64(0), int64(0), uint64(0), uint64(1), uint64(1), uint64(1))
	f.Add(int64(-1), uint64(math.MaxUint64), int64(1), uint64(1), uint64(7), uint64(60_000_000_000), uint64(1_000_000))
	f.Add(int64(math.MaxInt64), uint64(math.MaxUint64), int64(math.MinInt64), uint64(0), uint64(MaxUnits-1), uint64(MaxWindow-1), uint64(999_999))
	f.Add(int64(math.MinInt64), uint64(0), int64(math.MinInt64), uint64(0), uint64(0), uint64(0), uint64(MaxWindow-1))
	f.Fuzz(func(t *testing.T, xh int64, xl uint64, yh int64, yl, n, from, to uint64) {
		checkWide(t, wide{xh, xl}, wide{yh, yl}, n, from, to)
	})
}

func TestWide(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() uint64 { return r.Uint64() >> r.IntN(64) } // all magnitudes alike
	for range 50_000 {
		x, y := wide{int64(word()), word()}, wide{int64(word()), word()}
		if r.IntN(2) == 0 {
			x = wide{}.sub(x)
		}
		checkWide(t, x, y, word(), word(), word())
	}
}

// A cost has one amount in each unit.
func TestAmounts(t *testing.T) {
	a := Cost{Requests: 1, Input: 20, Output: 300}.amounts()
	for u, want := range map[Unit]int64{Requests: 1, Input: 20, Output: 300, Tokens: 320} {
		if got := a.in(u); got != want {
			t.Errorf("%v: %d, want %d", u, got, want)
		}
	}
}
