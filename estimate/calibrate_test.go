package estimate

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestCalibratorKnowsNothingAtFirst(t *testing.T) {
	var c Calibrator
	for n := range firstRatios {
		if got := c.Scale("m", 1000); got != 1000 {
			t.Errorf("after %d answers 1000 is scaled to %d", n, got)
		}
		c.Observe("m", 1000, 1300)
	}
	if got := c.Scale("m", 1000); got != 1300 {
		t.Errorf("after %d answers 1000 is scaled to %d, want 1300", firstRatios, got)
	}
	if got := c.Factor("m"); got != 1_300_000 {
		t.Errorf("factor %d", got)
	}
	if got := c.Scale("other", 1000); got != 1000 {
		t.Errorf("another model is scaled to %d", got)
	}
}

// A tokenizer that the weights know nothing of comes right, whichever way it differs.
func TestCalibratorLearnsAForeignTokenizer(t *testing.T) {
	for _, truth := range []float64{0.3, 0.5, 0.8, 1, 1.25, 1.7, 3, 3.9} {
		var c Calibrator
		r := rand.New(rand.NewPCG(5, 50))
		var after measured
		for n := range 550 {
			estimated := 50 + r.Int64N(5000)
			actual := int64(float64(estimated)*truth*(1+0.07*r.NormFloat64())) + 8 // the wrapping of a message
			actual = max(actual, 1)
			if n >= 50 {
				after = append(after, float64(c.Scale("m", estimated))/float64(actual)-1)
			}
			c.Observe("m", estimated, actual)
		}
		if m, u := after.meanSize(), after.under(); m > 0.09 || u > 0.15 {
			t.Errorf("true factor %v: mean error %.3f, p95 underestimate %.3f", truth, m, u)
		}
	}
}

// Nothing that a server sends takes a factor out of its bounds.
func TestCalibratorIsBounded(t *testing.T) {
	for _, pair := range [][2]int64{{1, math.MaxInt64}, {math.MaxInt64, 1}, {math.MaxInt64, math.MaxInt64}, {1 << 40, 100}, {100, 1 << 40}} {
		var c Calibrator
		for range 100 {
			c.Observe("m", pair[0], pair[1])
		}
		if f := c.Factor("m"); f < minFactor || f > maxFactor {
			t.Errorf("%v: factor %d", pair, f)
		}
		for _, e := range []int64{0, 1, 1000, math.MaxInt64} {
			if got := c.Scale("m", e); got < e/4 || e < math.MaxInt64/4 && got > 4*e {
				t.Errorf("%v: %d scaled to %d", pair, e, got)
			}
		}
	}
	var c Calibrator
	for _, pair := range [][2]int64{{0, 100}, {100, 0}, {-5, 100}, {100, -5}, {0, 0}, {1, 15}, {15, 1}} {
		for range 100 {
			c.Observe("m", pair[0], pair[1])
		}
	}
	if c.Factor("m") != million || len(c.models.m) != 0 {
		t.Errorf("factor %d from pairs that say nothing", c.Factor("m"))
	}
	if got := c.Scale("m", -7); got != 0 {
		t.Errorf("-7 scaled to %d", got)
	}
}

// A wild answer in three moves the factor by no more than the spread of the
// honest ones.
func TestCalibratorIsRobust(t *testing.T) {
	for _, wild := range []int64{1, 3_000_000} {
		var c Calibrator
		r := rand.New(rand.NewPCG(3, 3))
		for n := range 300 {
			actual := 1150 + r.Int64N(101)
			if n%3 == 2 {
				actual = wild
			}
			c.Observe("m", 1000, actual)
			if n < 32 {
				continue
			}
			if f := c.Factor("m"); f < 1_150_000 || f > 1_250_000 {
				t.Fatalf("wild answers of %d: factor %d after %d answers", wild, f, n)
			}
		}
	}
}

func TestCalibratorFollowsChange(t *testing.T) {
	var c Calibrator
	for range 10_000 {
		c.Observe("m", 1000, 1500)
	}
	answers := 0
	for c.Factor("m") != 800_000 && answers < 100 {
		c.Observe("m", 1000, 800)
		answers++
	}
	if answers > 20 {
		t.Errorf("%d answers to follow a change down", answers)
	}
	answers = 0
	for c.Factor("m") != 1_500_000 && answers < 100 {
		c.Observe("m", 1000, 1500)
		answers++
	}
	if answers > 20 {
		t.Errorf("%d answers to follow a change up", answers)
	}
}

func FuzzScale(f *testing.F) {
	f.Add(int64(1), int64(1), int64(1))
	f.Add(int64(math.MaxInt64), int64(4_000_000), int64(1_000_000))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(1))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add(int64(7), int64(1_000_001), int64(1_000_000))
	f.Fuzz(func(t *testing.T, a, b, c int64) {
		if a <= 0 || b <= 0 || c <= 0 {
			return
		}
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want.Add(want, big.NewInt(c-1)).Div(want, big.NewInt(c))
		if most := big.NewInt(math.MaxInt64); want.Cmp(most) > 0 {
			want = most
		}
		if got := scale(a, b, c); want.Cmp(big.NewInt(got)) != 0 {
			t.Errorf("scale(%d, %d, %d) = %d, want %v", a, b, c, got, want)
		}
	})
}

func BenchmarkCalibrator(b *testing.B) {
	var c Calibrator
	b.Run("Observe", func(b *testing.B) {
		b.ReportAllocs()
		n := int64(0)
		for b.Loop() {
			n++
			c.Observe("m", 1000, 1000+n*7919%500)
		}
	})
	b.Run("Scale", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Scale("m", 1000)
		}
	})
}
