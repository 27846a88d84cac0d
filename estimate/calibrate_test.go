package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// prompt is a request of a model whose prompt was estimated at a number of tokens.
func prompt(model string, k Traits, tokens int64) Request {
	return Request{Model: model, Traits: k, Input: tokens, Understood: true, Kind: "chat"}
}

// teach gives the calibrator one answer.
func teach(c *Calibrator, model string, k Traits, estimated, charged int64) {
	c.Observe(prompt(model, k, estimated).Prompt(), charged)
}

// corrected is what the calibrator makes of an estimate.
func corrected(c *Calibrator, model string, k Traits, estimated int64) int64 {
	return c.Correct(prompt(model, k, estimated)).Input
}

// near reports whether two numbers differ by no more than a part of the second.
func near(got, want int64, part float64) bool {
	return math.Abs(float64(got-want)) <= part*float64(want)
}

func TestNothingIsCorrectedBeforeThreeAnswers(t *testing.T) {
	var c Calibrator
	for n := range firstPairs {
		if got := corrected(&c, "m", 0, 1000); got != 1000 {
			t.Errorf("after %d answers 1000 becomes %d", n, got)
		}
		teach(&c, "m", 0, 1000, 1300)
	}
	if got := corrected(&c, "m", 0, 1000); got <= 1000 {
		t.Errorf("after %d answers 1000 becomes %d", firstPairs, got)
	}
	if got := corrected(&c, "other", 0, 1000); got != 1000 {
		t.Errorf("another model: 1000 becomes %d", got)
	}
}

// An instruction of 500 tokens that comes with every tool, learned from small prompts,
// stays 500 tokens in a large one.
func TestAnOverheadIsLearnedAsAnOffset(t *testing.T) {
	var c Calibrator
	for range 8 {
		teach(&c, "claude", WithTools, 120, 660)
	}
	if got := corrected(&c, "claude", WithTools, 120); !near(got, 660, 0.1) {
		t.Errorf("120 becomes %d, was charged 660", got)
	}
	if got := corrected(&c, "claude", WithTools, 31_700); got < 31_700 || got > 32_700 {
		t.Errorf("31,700 becomes %d; about 32,200 will be charged", got)
	}
}

func TestAForeignTokenizerIsLearnedAsAFactor(t *testing.T) {
	for _, truth := range []float64{0.5, 0.8, 1, 1.25, 1.7, 2.5} {
		var c Calibrator
		r := rand.New(rand.NewPCG(5, 50))
		var after measured
		for n := range 550 {
			estimated := 50 + r.Int64N(5000)
			charged := max(int64(float64(estimated)*truth*(1+0.07*r.NormFloat64()))+8, 1)
			if n >= 50 {
				after = append(after, float64(corrected(&c, "m", 0, estimated))/float64(charged)-1)
			}
			teach(&c, "m", 0, estimated, charged)
		}
		if m, u := after.meanSize(), after.under(); m > 0.09 || u > 0.15 {
			t.Errorf("true factor %v: mean error %.3f, p95 underestimate %.3f", truth, m, u)
		}
	}
}

// The calibrator separates offset from factor, in any order of small and large
// prompts.
func TestOffsetAndFactorAreToldApart(t *testing.T) {
	for _, truth := range []struct{ offset, factor float64 }{{0, 1}, {500, 1}, {0, 1.3}, {500, 1.3}, {-50, 0.9}, {2000, 1}} {
		var c Calibrator
		r := rand.New(rand.NewPCG(1, 9))
		for range 40 {
			x := math.Exp(4.5 + 6*r.Float64()) // 90 to 36,000
			teach(&c, "m", WithTools, int64(x), int64(truth.offset+truth.factor*x*(1+0.04*r.NormFloat64())))
		}
		for _, x := range []float64{200, 3000, 30_000} {
			want := truth.offset + truth.factor*x
			if got := corrected(&c, "m", WithTools, int64(x)); !near(got, int64(want), 0.06) {
				o, f := c.Line(prompt("m", WithTools, 1).Prompt())
				t.Errorf("%v: %v becomes %d, want %.0f (offset %.0f, factor %.2f)", truth, x, got, want, o, f)
			}
		}
	}
}

// A search at the provider brings pages into a prompt. Neither its own kind nor any
// other learns from that.
func TestUnpredictablePromptsTeachNothing(t *testing.T) {
	var c Calibrator
	for range 50 {
		teach(&c, "m", WithTools|Unpredictable, 60, 18_000)
		teach(&c, "m", Unpredictable, 60, 300_000)
	}
	for _, k := range []Traits{0, WithTools, WithTools | Unpredictable} {
		if got := corrected(&c, "m", k, 500); got != 500 {
			t.Errorf("kind %d: 500 becomes %d", k, got)
		}
	}
}

func TestKindsOfPromptsLearnApart(t *testing.T) {
	var c Calibrator
	for range 20 {
		teach(&c, "m", WithTools, 100, 700)
		teach(&c, "m", 0, 100, 104)
	}
	if got := corrected(&c, "m", 0, 100); !near(got, 104, 0.05) {
		t.Errorf("without tools 100 becomes %d, want 104", got)
	}
	if got := corrected(&c, "m", WithSchema, 100); got != 100 {
		t.Errorf("with a schema 100 becomes %d, although nothing was learned", got)
	}
}

// What the request states is counted in it; learning adds to the guess beside it.
func TestWhatIsStatedIsNeverRaised(t *testing.T) {
	var c Calibrator
	for range 20 {
		teach(&c, "up", WithTools, 100, 800)
		teach(&c, "down", 0, 1000, 600)
	}
	up := c.Correct(Request{Model: "up", Traits: WithTools, Input: 120, Guess: 20, Understood: true})
	if up.Input < 700 || up.Input-up.Guess != 100 {
		t.Errorf("%d tokens, %d of them stated; the request states 100", up.Input, up.Input-up.Guess)
	}
	down := c.Correct(Request{Model: "down", Input: 1000, Understood: true})
	if down.Input > 650 || down.Input-down.Guess > down.Input {
		t.Errorf("%d tokens, %d of them stated", down.Input, down.Input-down.Guess)
	}
}

// Traffic of small and large prompts, with and without tools, whose price has a fixed
// and a proportional part: from the 50th answer on every mix is nearer the truth with
// the calibrator than without, or as near.
func TestEveryMixOfPromptsIsBetterCorrectedThanNot(t *testing.T) {
	small := func(r *rand.Rand) float64 { return 20 + 200*r.Float64() }
	large := func(r *rand.Rand) float64 { return 5000 + 40_000*r.Float64() }
	mixes := map[string]func(r *rand.Rand) (float64, Traits){
		"small plain": func(r *rand.Rand) (float64, Traits) { return small(r), 0 },
		"small tools": func(r *rand.Rand) (float64, Traits) { return small(r), WithTools },
		"large plain": func(r *rand.Rand) (float64, Traits) { return large(r), 0 },
		"large tools": func(r *rand.Rand) (float64, Traits) { return large(r), WithTools },
		"small and large": func(r *rand.Rand) (float64, Traits) {
			if r.IntN(10) == 0 {
				return large(r), 0
			}
			return small(r), 0
		},
		"everything": func(r *rand.Rand) (float64, Traits) {
			x, k := small(r), Traits(r.IntN(2))
			if r.IntN(4) == 0 {
				x = large(r)
			}
			return x, k
		},
		"one large in fifty": func(r *rand.Rand) (float64, Traits) {
			if r.IntN(50) == 0 {
				return large(r), WithTools
			}
			return small(r), WithTools
		},
	}
	for _, truth := range []struct {
		offset [2]float64 // without tools, with
		factor float64
	}{{[2]float64{0, 0}, 1.05}, {[2]float64{0, 540}, 1.1}, {[2]float64{6, 340}, 0.93}, {[2]float64{75, 230}, 1}, {[2]float64{0, -20}, 1.3}} {
		for name, mix := range mixes {
			var c Calibrator
			r := rand.New(rand.NewPCG(17, 3))
			with, without, sum, estimatedSum, chargedSum := 0.0, 0.0, 0.0, 0.0, 0.0
			for n := range 400 {
				x, k := mix(r)
				y := math.Max(truth.offset[k]+truth.factor*x*(1+0.05*r.NormFloat64()), 1)
				got := float64(corrected(&c, "m", k, int64(x)))
				if n >= 50 {
					with += math.Abs(got/y - 1)
					without += math.Abs(x/y - 1)
					sum, estimatedSum, chargedSum = sum+got, estimatedSum+x, chargedSum+y
				}
				teach(&c, "m", k, int64(x), int64(y))
			}
			if with > 1.03*without { // where there is nothing to learn, learning costs next to nothing
				t.Errorf("%v, %s: mean error %.3f corrected, %.3f not", truth, name, with/350, without/350)
			}
			if a, b := math.Abs(sum/chargedSum-1), math.Abs(estimatedSum/chargedSum-1); a > 0.05 && a > b {
				t.Errorf("%v, %s: the sum is wrong by %.3f corrected, %.3f not", truth, name, a, b)
			}
		}
	}
}

// One answer in three is wild, and the others still set the line.
func TestWildAnswersDoNotMoveTheLine(t *testing.T) {
	for _, wild := range []int64{1, 3_000_000} {
		var c Calibrator
		r := rand.New(rand.NewPCG(3, 3))
		for n := range 300 {
			charged := 1150 + r.Int64N(101)
			if n%3 == 2 {
				charged = wild
			}
			teach(&c, "m", 0, 1000, charged)
			if n < 32 {
				continue
			}
			if got := corrected(&c, "m", 0, 1000); got < 1150 || got > 1250 {
				t.Fatalf("wild answers of %d: 1000 becomes %d after %d answers", wild, got, n)
			}
		}
	}
}

// No answer moves the line further than the documented step.
func TestOneAnswerMovesTheLineByAStep(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 4))
	var c Calibrator
	o, f := 0.0, 1.0
	for range 2000 {
		teach(&c, "m", 0, 1+r.Int64N(int64(math.Pow(10, 1+8*r.Float64()))), 1+r.Int64N(int64(math.Pow(10, 1+8*r.Float64()))))
		o2, f2 := c.Line(prompt("m", 0, 1).Prompt())
		if math.Abs(o2-o) > offsetStep+1e-6 || math.Abs(f2-f) > factorStep+1e-9 {
			t.Fatalf("one answer took the line from (%.1f, %.3f) to (%.1f, %.3f)", o, f, o2, f2)
		}
		o, f = o2, f2
	}
}

// Nothing that a server sends takes the line out of its bounds.
func TestHostileUsageStaysWithinTheBounds(t *testing.T) {
	for _, p := range [][2]int64{{1, math.MaxInt64}, {math.MaxInt64, 1}, {1 << 40, 100}, {100, 1 << 40}, {1, 1 << 40}, {1 << 40, 1}, {1 << 40, 1 << 40}, {1, 1}} {
		var c Calibrator
		for range 100 {
			teach(&c, "m", 0, p[0], p[1])
		}
		o, f := c.Line(prompt("m", 0, 1).Prompt())
		if math.IsNaN(o+f) || f < minFactor || f > maxFactor || math.Abs(o) > maxOffset {
			t.Errorf("%v: offset %v, factor %v", p, o, f)
		}
		for _, e := range []int64{0, 1, 1000, 1 << 40, math.MaxInt64} {
			got := corrected(&c, "m", 0, e)
			if got < e/3 || float64(got) > 3*float64(e)+maxOffset+1 {
				t.Errorf("%v: %d becomes %d", p, e, got)
			}
		}
	}
	var c Calibrator
	for _, p := range [][2]int64{{0, 100}, {100, 0}, {-5, 100}, {100, -5}, {0, 0}} {
		teach(&c, "m", 0, p[0], p[1])
	}
	if len(c.models.m) != 0 {
		t.Error("pairs that say nothing were kept")
	}
}

func TestAChangeIsFollowed(t *testing.T) {
	var c Calibrator
	for range 1000 {
		teach(&c, "m", 0, 1000, 1500)
	}
	for _, charged := range []int64{800, 1500} {
		answers := 0
		for !near(corrected(&c, "m", 0, 1000), charged, 0.02) && answers < 100 {
			teach(&c, "m", 0, 1000, charged)
			answers++
		}
		if answers > windowSize {
			t.Errorf("%d answers to follow a change to %d", answers, charged)
		}
	}
}

// Bodies that were not understood are neither corrected by nor teach a line.
func TestBodiesNotUnderstoodTeachNothing(t *testing.T) {
	if p := Unread("application/json", 400).Prompt(); p.Tokens != 0 {
		t.Errorf("%d tokens to learn from", p.Tokens)
	}
}

func FuzzCorrect(f *testing.F) {
	f.Add(int64(100), int64(700), int64(50), int64(10), uint8(1))
	f.Fuzz(func(t *testing.T, estimated, charged, input, guess int64, k uint8) {
		var c Calibrator
		for range 5 {
			teach(&c, "m", Traits(k), estimated, charged)
		}
		r := prompt("m", Traits(k), input)
		r.Guess = min(max(guess, 0), max(input, 0))
		got := c.Correct(r)
		if input > 0 && (got.Input < 1 || got.Guess < 0 || got.Guess > got.Input || got.Input-got.Guess > input-r.Guess) {
			t.Errorf("%d (%d guessed) became %d (%d guessed)", input, r.Guess, got.Input, got.Guess)
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
			teach(&c, "m", 0, 1000, 1000+n*7919%500)
		}
	})
	b.Run("Correct", func(b *testing.B) {
		r := prompt("m", 0, 1000)
		b.ReportAllocs()
		for b.Loop() {
			c.Correct(r)
		}
	})
}

func ExampleCalibrator_Line() {
	// Every prompt with tools is charged an instruction of 500 tokens.
	var c Calibrator
	for _, tokens := range []int64{60, 900, 4000, 12_000, 80, 2000, 20_000, 300} {
		c.Observe(Prompt{Model: "m", Traits: WithTools, Tokens: tokens}, tokens+500)
	}
	offset, factor := c.Line(Prompt{Model: "m", Traits: WithTools})
	fmt.Printf("%.0f + %.1f x estimate\n", math.Round(offset/50)*50, factor)
	// Output: 500 + 1.0 x estimate
}
