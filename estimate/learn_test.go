package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

func TestNothingIsLearnedOfOutputsBeforeTenAnswers(t *testing.T) {
	var o Output
	for n := range 10 {
		for _, c := range []struct{ limit, want int64 }{{0, 512}, {-1, 512}, {4000, 512}, {512, 512}, {100, 100}, {1, 1}} {
			if got := o.Expect("m", c.limit); got != c.want {
				t.Errorf("after %d answers, limit %d: %d expected, want %d", n, c.limit, got, c.want)
			}
		}
		o.Observe("m", 90)
	}
	if got := o.Expect("m", 4000); got != 90 {
		t.Errorf("after ten answers of 90: %d expected", got)
	}
	if got := o.Expect("other", 4000); got != 512 {
		t.Errorf("another model: %d expected, want 512", got)
	}
}

// Reserving the cap wastes the budget, reserving a fixed share of it is
// poor. 1000 calls with a cap of 4000 and a real mean of 200.
func TestWhatIsReservedIsNearWhatIsProduced(t *testing.T) {
	for _, d := range []struct {
		name string
		draw func(r *rand.Rand) int64
	}{
		{"even", func(r *rand.Rand) int64 { return 150 + r.Int64N(101) }},
		{"exponential", func(r *rand.Rand) int64 { return int64(200 * r.ExpFloat64()) }},
		{"two kinds", func(r *rand.Rand) int64 {
			if r.IntN(10) == 0 {
				return 1100
			}
			return 100
		}},
	} {
		t.Run(d.name, func(t *testing.T) {
			var o Output
			r := rand.New(rand.NewPCG(7, 2))
			reserved, used, most := int64(0), int64(0), int64(0)
			for n := range 1000 {
				expect, actual := o.Expect("m", 4000), d.draw(r)
				if expect < 1 || expect > 4000 {
					t.Fatalf("%d expected with a limit of 4000", expect)
				}
				if n >= 10 {
					reserved, used, most = reserved+expect, used+actual, max(most, expect)
				}
				o.Observe("m", actual)
			}
			if reserved > used*3/2 || reserved < used/3 {
				t.Errorf("%d reserved for %d used", reserved, used)
			}
			if most > 1000 {
				t.Errorf("up to %d reserved, where the mean is 200", most)
			}
		})
	}
}

// Where some answers are long and most are short, the expected outputs add up to the
// produced outputs.
func TestExpectedOutputsAddUpToWhatIsProduced(t *testing.T) {
	for name, draw := range map[string]func(n int, r *rand.Rand) int64{
		"one in four long":    func(n int, r *rand.Rand) int64 { return long(n%4 == 0) },
		"one in five long":    func(n int, r *rand.Rand) int64 { return long(n%5 == 0) },
		"a quarter by chance": func(n int, r *rand.Rand) int64 { return long(r.IntN(4) == 0) },
		"a fifth by chance":   func(n int, r *rand.Rand) int64 { return long(r.IntN(5) == 0) },
		"a tenth by chance":   func(n int, r *rand.Rand) int64 { return long(r.IntN(10) == 0) },
		"exponential":         func(n int, r *rand.Rand) int64 { return int64(400 * r.ExpFloat64()) },
		"log-normal":          func(n int, r *rand.Rand) int64 { return int64(math.Exp(5.5 + r.NormFloat64())) },
		"bursts of long ones": func(n int, r *rand.Rand) int64 { return long(n%40 < 8) },
	} {
		var o Output
		r := rand.New(rand.NewPCG(21, 3))
		expected, produced := int64(0), int64(0)
		for n := range 2000 {
			v := draw(n, r)
			if e := o.Learned("m"); e > 0 {
				expected, produced = expected+e, produced+v
			}
			o.Observe("m", v)
		}
		if !near(expected, produced, 0.15) {
			t.Errorf("%s: %d expected, %d produced", name, expected, produced)
		}
	}
}

func long(is bool) int64 {
	if is {
		return 3000
	}
	return 50
}

// One wild answer among many is taken for no more than the next below it.
func TestOneWildAnswerDoesNotRaiseWhatIsExpected(t *testing.T) {
	var o Output
	for n := range 32 {
		if n == 7 {
			o.Observe("m", 1_000_000)
		} else {
			o.Observe("m", 50)
		}
	}
	if got := o.Expect("m", 0); got != 50 {
		t.Errorf("%d expected, want 50", got)
	}
}

func TestExpectedOutputFollowsAChange(t *testing.T) {
	var o Output
	for range 1000 {
		o.Observe("m", 100)
	}
	for range 32 {
		o.Observe("m", 3000)
	}
	if got := o.Expect("m", 0); got != 3000 {
		t.Errorf("%d expected after a window of 3000", got)
	}
	for range 32 {
		o.Observe("m", 0)
	}
	if got := o.Expect("m", 0); got != 1 {
		t.Errorf("%d expected after a window of nothing, want 1", got)
	}
}

func TestHostileOutputsStayWithinTheBounds(t *testing.T) {
	var o Output
	for _, n := range []int64{-1, -1 << 63} {
		for range 20 {
			o.Observe("m", n)
		}
	}
	if got := o.Expect("m", 0); got != 512 {
		t.Errorf("%d expected, although nothing was learned", got)
	}
	for range 100 {
		o.Observe("m", 1<<63-1)
	}
	if got := o.Expect("m", 0); got != maxOutput {
		t.Errorf("%d expected, want %d", got, int64(maxOutput))
	}
	if got := o.Expect("m", 64); got != 64 {
		t.Errorf("%d expected with a limit of 64", got)
	}
}

// Names come from requests: any number of them leaves a bounded number in memory, and
// the ones in use stay.
func TestTheModelUnusedLongestIsForgotten(t *testing.T) {
	var o Output
	var c Calibrator
	learn := func(model string) {
		o.Observe(model, 77)
		teach(&c, model, 0, 1000, 2000)
	}
	for range 20 {
		learn("in use")
	}
	for i := range 10 * maxModels {
		learn(fmt.Sprintf("model-%d", i))
		if i%100 == 0 {
			learn("in use")
		}
		if n := max(len(o.models.m), len(c.models.m)); n > maxModels {
			t.Fatalf("%d models held", n)
		}
	}
	if got := o.Expect("in use", 0); got != 77 {
		t.Errorf("%d expected of the model in use, want 77", got)
	}
	if got := corrected(&c, "in use", 0, 1000); !near(got, 2000, 0.02) {
		t.Errorf("1000 becomes %d for the model in use, want 2000", got)
	}
	if got := o.Expect("model-0", 0); got != 512 {
		t.Errorf("%d expected of a forgotten model", got)
	}
	long := strings.Repeat("x", maxModelName+1)
	for range 20 {
		learn(long)
	}
	if o.Expect(long, 0) != 512 || corrected(&c, long, 0, 1000) != 1000 {
		t.Error("a name without bound was kept")
	}
}

func TestManyMayLearnAtOnce(t *testing.T) {
	var o Output
	var c Calibrator
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				model := fmt.Sprint("m", (g+i)%5)
				o.Observe(model, 40)
				teach(&c, model, 0, 100, 150)
				if got := o.Expect(model, 1000); got != 40 && got != 512 {
					t.Errorf("%d expected", got)
				}
				if got := corrected(&c, model, 0, 100); got < 100 || got > 152 {
					t.Errorf("100 becomes %d", got)
				}
			}
		})
	}
	wg.Wait()
	for m := range 5 {
		model := fmt.Sprint("m", m)
		if got := corrected(&c, model, 0, 100); o.Expect(model, 0) != 40 || !near(got, 150, 0.02) {
			t.Errorf("%s: %d expected, 100 becomes %d", model, o.Expect(model, 0), got)
		}
	}
}

// The mean that a window keeps is that of a walk through its values.
func TestWindowMean(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		most := int64(1) << r.IntN(41) // few values, so that some come twice, or many
		var w window
		var all []int64
		for range r.IntN(3 * windowSize) {
			v := r.Int64N(most)
			w.add(v)
			if all = append(all, v); len(all) > windowSize {
				all = all[1:]
			}
			var sum, first, second int64
			for _, v := range all {
				sum += v
				switch {
				case v > first:
					first, second = v, first
				case v > second:
					second = v
				}
			}
			if len(all) > 1 {
				sum -= first - second
			}
			if got, want := w.mean(), ceilDiv(sum, int64(len(all))); got != want {
				t.Fatalf("round %d: the mean of %v is %d, want %d", round, all, got, want)
			}
		}
	}
}
