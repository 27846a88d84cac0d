package budget

// A grain is what balances that are shown are rounded to: the largest number that divides
// all of them. The zero grain has seen none.
type grain struct {
	of   int64
	last int64
	seen int
}

// grains is how many balances show a grain, each another than the one before. Fewer have
// a large divisor by chance.
const grains = 8

// saw takes in a balance that was shown. One that stands still says nothing: after eight
// lone calls half of a limit was left unused.
func (g *grain) saw(n int64) {
	if n <= 0 || n == g.last {
		return
	}
	g.last = n
	g.seen = min(g.seen+1, grains)
	for n > 0 {
		g.of, n = n, g.of%n
	}
}

// hides is by how much a balance that is shown may be too high: half a grain, where
// balances are rounded to the nearest.
func (g *grain) hides() int64 {
	if g.seen < grains {
		return 0
	}
	return g.of / 2
}
