package providertest

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// counted judges windows by adding up every charge ever made, from the
// definition: which window each charge fell into, and what the last one weighs.
type counted struct {
	wall            int64
	first, weighted bool

	charges []windowed
	origin  int64
	begun   bool
}

type windowed struct{ at, n, window int64 } // window: instant of its beginning

// window is the beginning of the window at an instant; false if none runs.
func (c *counted) window(at int64) (int64, bool) {
	switch {
	case !c.first:
		return (c.wall+at)/minute*minute - c.wall, true
	case !c.begun || !c.weighted && at >= c.origin+minute:
		return 0, false
	}
	return c.origin + (at-c.origin)/minute*minute, true
}

func (c *counted) sum(window int64) (n int64) {
	for _, x := range c.charges {
		if x.window == window {
			n += x.n
		}
	}
	return n
}

func (c *counted) used(at int64) int64 {
	w, ok := c.window(at)
	if !ok {
		return 0
	}
	used := c.sum(w)
	if c.weighted {
		part := new(big.Int).Mul(big.NewInt(c.sum(w-minute)), big.NewInt(minute-(at-w)))
		q, r := part.QuoRem(part, big.NewInt(minute), new(big.Int))
		used += q.Int64()
		if r.Sign() > 0 {
			used++
		}
	}
	return used
}

func (c *counted) take(at, n int64) {
	if n == 0 {
		return
	}
	if c.first {
		rest := !c.begun
		if c.begun && c.weighted {
			rest = at >= c.charges[len(c.charges)-1].window+2*minute
		} else if c.begun {
			rest = at >= c.origin+minute
		}
		if rest {
			c.origin, c.begun = at, true
		}
	}
	w, _ := c.window(at)
	c.charges = append(c.charges, windowed{at, n, w})
}

// The windows of every phase hold what their definition says, and name the first
// instant at which a call fits. They take refunds back where they were charged.
func TestPhasesAgainstSums(t *testing.T) {
	start := time.Date(1999, 12, 31, 23, 59, 47, 3, time.UTC).UnixNano()
	own := start - int64(29*time.Second)
	for _, limit := range []int64{1, 7, 60, 1000, 90_001, 999_999_999_989} {
		for name, v := range map[string]struct {
			g gauge
			c *counted
		}{
			"fixed, own phase":     {&fixed{limit: limit, window: minute, start: own}, &counted{wall: own}},
			"fixed, first call":    {&fixed{limit: limit, window: minute, start: start, first: true}, &counted{first: true}},
			"weighted, wall clock": {&weighted{limit: limit, window: minute, start: start}, &counted{wall: start, weighted: true}},
			"weighted, first call": {&weighted{limit: limit, window: minute, start: start, first: true}, &counted{first: true, weighted: true}},
		} {
			t.Run(fmt.Sprintf("%s %d", name, limit), func(t *testing.T) {
				g, c := v.g, v.c
				r := rand.New(rand.NewPCG(uint64(limit), 4))
				at, admitted, waits := int64(0), 0, 0
				for range 600 {
					at += []int64{0, 1, r.Int64N(int64(time.Second)), r.Int64N(int64(20 * time.Second)), r.Int64N(2 * minute)}[r.IntN(5)]
					n := r.Int64N(limit + 2)
					room := limit - c.used(at)
					if g.level(at) != room {
						t.Fatalf("at %d: level %d, want %d", at, g.level(at), room)
					}
					wait := g.wait(at, n)
					if (wait == 0) != (n <= room) || (wait == never) != (n > limit) {
						t.Fatalf("at %d: wait %d for %d with room for %d", at, wait, n, room)
					}
					if wait > 0 && wait != never {
						waits++
						if got := limit - c.used(at+wait); n > got {
							t.Fatalf("at %d: room for %d, not for %d, after the wait named, %d", at, got, n, wait)
						}
						if got := limit - c.used(at+wait-1); n <= got {
							t.Fatalf("at %d: wait %d for %d is not the first instant", at, wait, n)
						}
						if r.IntN(2) == 0 {
							continue
						}
						at += wait
					}
					if full := g.full(at); full > 0 && (c.used(at+full) != 0 || c.used(at+full-1) == 0) {
						t.Fatalf("at %d: full in %d is not the first instant", at, full)
					}
					if wait != never {
						g.take(at, n)
						c.take(at, n)
						admitted++
					}
					if len(c.charges) > 0 && r.IntN(3) == 0 {
						x := &c.charges[r.IntN(len(c.charges))]
						back := r.Int64N(x.n + 1)
						g.correct(at, x.at, -back)
						if w, ok := c.window(at); ok && (x.window == w || c.weighted && x.window == w-minute) {
							x.n -= back
						}
					}
				}
				if admitted == 0 || waits == 0 {
					t.Fatalf("%d admitted, %d waited: nothing was compared", admitted, waits)
				}
			})
		}
	}
}
