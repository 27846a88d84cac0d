package budget

import (
	"math/rand/v2"
	"testing"
	"time"
)

// share lets each cut be a process on a limit of which lower is there, for that long.
// Each second the processes together want more than that, one of them is refused: the
// more likely the higher its rate. It returns the mean of each rate in parts, over the
// second half, and how many refusals there were.
func share(cuts []cut, lower float64, seconds int, seed uint64) (mean []float64, refusals int) {
	r := rand.New(rand.NewPCG(seed, 3))
	start := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	for i := range cuts {
		cuts[i].since = start
	}
	mean = make([]float64, len(cuts))
	for s := 1; s <= seconds; s++ {
		now := start.Add(time.Duration(s) * time.Second)
		sum := 0.0
		for i := range cuts {
			sum += float64(whole - cuts[i].left(now))
		}
		if sum > lower*whole {
			refusals++
			at := r.Float64() * sum
			for i := range cuts {
				rate := float64(whole - cuts[i].left(now))
				if at -= rate; at <= 0 {
					cuts[i].deepen(now, whole)
					break
				}
			}
		}
		for i := range cuts {
			if s > seconds/2 {
				mean[i] += float64(whole-cuts[i].left(now)) / float64(seconds-seconds/2)
			}
		}
	}
	return mean, refusals
}

// Processes that share a limit without knowing each other come to equal shares, from
// any start, and use nearly all of it.
func TestCutsComeToEqualShares(t *testing.T) {
	for n := 2; n <= 8; n *= 2 {
		for seed := range uint64(5) {
			cuts := make([]cut, n)
			for i := range cuts {
				cuts[i] = cut{missing: deepest, trouble: deepest, slow: firstSlow, others: steady}
			}
			cuts[0] = cut{missing: 300_000, trouble: 300_000, slow: firstSlow, others: steady}
			mean, refusals := share(cuts, 1, 3600, seed)
			sum := 0.0
			for i, m := range mean {
				if fair := whole / float64(n); m < fair*.6 || m > fair*1.5 {
					t.Errorf("%d processes, seed %d: process %d has %.0f parts on average, a fair share is %.0f", n, seed, i, m, fair)
				}
				sum += m
			}
			if sum < .85*whole {
				t.Errorf("%d processes, seed %d: %.0f parts are used", n, seed, sum)
			}
			t.Logf("%d processes: %.0f, %d refusals in an hour", n, mean, refusals)
		}
	}
}

// A process alone on a lower limit than it was configured with uses nearly all of it,
// and its refusals get rarer.
func TestACutKeepsToALowerLimit(t *testing.T) {
	for _, lower := range []float64{.9, .5, .2} {
		mean, all := share(make([]cut, 1), lower, 3600, 1)
		_, first := share(make([]cut, 1), lower, 900, 1)
		if mean[0] < .93*lower*whole {
			t.Errorf("%.0f of %.0f parts are used", mean[0], lower*whole)
		}
		if later := (all - first) / 3; later >= first {
			t.Errorf("a limit of %v: %d refusals in an hour, %d of them in its first quarter", lower, all, first)
		}
		t.Logf("a limit of %v: %.0f used, %d refusals in an hour, %d in its first quarter", lower, mean[0], all, first)
	}
}

// A cut takes no more back than it took off, never sinks, and is over six minutes after
// the last refusal.
func TestACutIsOverInSixMinutes(t *testing.T) {
	start := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	for _, same := range []int{0, 1, 2, 3, 9} {
		var c cut
		for range 30 {
			c.deepen(start, whole)
		}
		for range same {
			c.trouble = c.left(start) // as if the same rate was refused again
			c.deepen(start, whole)
		}
		last := c.left(start)
		if last != deepest {
			t.Errorf("%d parts are off, want %d", last, deepest)
		}
		for d := time.Duration(0); d <= 6*time.Minute; d += 250 * time.Millisecond {
			m := c.left(start.Add(d))
			if m > last || m < 0 {
				t.Fatalf("after %v %d parts are off, %d before", d, m, last)
			}
			if last-m > regrowth/4+1 {
				t.Fatalf("after %v the rate grew by %d parts in a quarter of a second", d, last-m)
			}
			last = m
		}
		if last != 0 {
			t.Errorf("six minutes later %d parts are off", last)
		}
	}
}

// Another process reads the cut that was written.
func TestCutsAreRead(t *testing.T) {
	start := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	var c cut
	for i := range 20 {
		c.deepen(start.Add(time.Duration(i)*time.Minute), whole-int64(i)*10_000)
		got, ok := readCut(c.String(), c.since)
		if !ok || got != c {
			t.Fatalf("%+v was read as %+v, %v", c, got, ok)
		}
	}
	for _, text := range []string{"", "1", "1 2 3", "-1 2 4 0", "960000 2 4 0", "1 -2 4 0", "1 2 -1 0", "1 2 9 0", "1 2 4 -1", "1 2 4 9"} {
		if c, ok := readCut(text, start); ok {
			t.Errorf("%q was read as %+v", text, c)
		}
	}
}
