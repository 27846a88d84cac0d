package estimate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A statistic says what to expect of the next answer, given the last 32.
type statistic struct {
	name string
	of   func(w *window) int64
}

func (w *window) sortedCopy() []int64 { return slices.Sorted(slices.Values(w.at[:w.n])) }

func plainMean(w *window) int64 {
	sum := int64(0)
	for _, v := range w.at[:w.n] {
		sum += v
	}
	return sum / int64(w.n)
}

var statistics = []statistic{
	{"median", func(w *window) int64 { s := w.sortedCopy(); return s[len(s)/2] }},
	{"mean up to the 75th percentile", func(w *window) int64 { return min(plainMean(w), w.sortedCopy()[w.n*3/4]) }},
	{"mean without the longest", (*window).mean},
	{"mean", plainMean},
	{"90th percentile", func(w *window) int64 { return w.sortedCopy()[w.n*9/10] }},
}

// simulate lets calls through a ledger that takes what a statistic expects and corrects
// it five seconds later. The provider has the same quota, knows each answer when its call
// arrives, and refuses a call without enough credit. A refusal costs a second. simulate
// returns the used part of the quota and the refusals for a thousand calls. Its last
// result is the sum of the expected outputs over the sum of the produced outputs.
func simulate(s statistic, draw func(n int, r *rand.Rand) int64) (used, refused, sum float64) {
	const (
		rate     = 1000.0 // tokens a second
		capacity = 10 * rate
		lasts    = 5.0 // seconds
		places   = 64
		calls    = 4000
	)
	type flight struct{ end, expected, actual float64 }
	var flying []flight
	var w window
	r := rand.New(rand.NewPCG(2, 13))
	now, ours, theirs := 0.0, capacity, capacity
	wait := func(dt float64) {
		now += dt
		ours, theirs = min(ours+rate*dt, capacity), min(theirs+rate*dt, capacity)
		flying = slices.DeleteFunc(flying, func(f flight) bool {
			if f.end > now {
				return false
			}
			ours += f.expected - f.actual
			w.add(int64(f.actual))
			return true
		})
	}
	total, expectedSum, refusals := 0.0, 0.0, 0.0
	for n := range calls {
		actual := float64(draw(n, r))
		for {
			expected := float64(FirstOutput)
			if w.n >= firstAnswers {
				expected = float64(max(s.of(&w), 1))
			}
			expected = min(expected, capacity)
			if len(flying) >= places || ours < expected {
				wait(0.05)
				continue
			}
			if theirs < actual {
				refusals++
				wait(1)
				continue
			}
			ours -= expected
			theirs -= actual
			flying = append(flying, flight{now + lasts, expected, actual})
			total += actual
			expectedSum += expected
			break
		}
	}
	return total / (now * rate), 1000 * refusals / calls, expectedSum / total
}

var outputSequences = []struct {
	name string
	draw func(n int, r *rand.Rand) int64
}{
	{"all of 500", func(int, *rand.Rand) int64 { return 500 }},
	{"exponential, mean 500", func(_ int, r *rand.Rand) int64 { return int64(500*r.ExpFloat64()) + 1 }},
	{"3,000 one time in four", func(n int, r *rand.Rand) int64 { return long(r.IntN(4) == 0) }},
	{"3,000 one time in five", func(n int, r *rand.Rand) int64 { return long(r.IntN(5) == 0) }},
	{"3,000 one time in ten", func(n int, r *rand.Rand) int64 { return long(r.IntN(10) == 0) }},
	{"eight of 3,000 in forty", func(n int, _ *rand.Rand) int64 { return long(n%40 < 8) }},
}

// The mean without the longest answer is the statistic in use. It uses the quota as the
// plain mean does, and ignores one wild answer. It is refused less than a quantile that
// cuts the tail off.
func TestTheMeanWithoutTheLongestLosesNeitherTailNorQuota(t *testing.T) {
	refusals := map[string]float64{}
	for _, seq := range outputSequences {
		best := 0.0
		results := map[string][3]float64{}
		for _, s := range statistics {
			used, refused, sum := simulate(s, seq.draw)
			results[s.name] = [3]float64{used, refused, sum}
			refusals[s.name] += refused
			best = max(best, used)
			t.Logf("%-26s %-32s quota used %5.1f %%, refused %6.1f in 1000, expected/produced %.2f", seq.name, s.name, 100*used, refused, sum)
		}
		ours := results["mean without the longest"]
		if ours[0] < 0.93*best {
			t.Errorf("%s: %.3f of the quota is used, the best uses %.3f", seq.name, ours[0], best)
		}
		if math.Abs(ours[2]-1) > 0.15 {
			t.Errorf("%s: %.2f expected for 1 produced", seq.name, ours[2])
		}
	}
	if a, b := refusals["mean without the longest"], refusals["mean up to the 75th percentile"]; a > 0.85*b {
		t.Errorf("%.0f refusals, %.0f with the tail cut off", a, b)
	}
}
