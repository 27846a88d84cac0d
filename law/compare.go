package law

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// compare asks, of two readings and what was charged between, which law explains
// the second by the first.
// near is what each of the readings may have or not.
func (l *Learner) compare(m Mark, remaining, near int64) {
	p := &l.last.mark
	dt, spent := m.at.Sub(p.at), m.spent-p.spent
	refill := limit.Rate{N: l.n, Window: l.o.Window}
	c := comparison{
		m: m, remaining: remaining, still: l.last.remaining - spent,
		bucket: min(max(l.shown-m.own, remaining), l.last.remaining+refill.In(dt)-spent),
		tol:    1 + abs(spent)*l.o.Unsure/100 + l.o.Round + near,
		jitter: refill.In(150 * time.Millisecond),
		near:   near,
	}
	c.crowded = near > c.tol-near+c.jitter
	l.foretell(&c)
	if l.o.AtEnd {
		l.exactly(&c)
	}
	if wide := c.bucket - c.still; wide > 3*(c.tol+c.jitter) && c.quiet {
		switch {
		case c.rose():
			l.votes.byRise++
		case abs(remaining-c.still) <= c.tol:
			l.votes.still++
		}
	}
	l.refute(&c)
	l.matchLevels(&c)
	l.tellWindowsApart(&c)
}

// A comparison is of a reading with what each law foretells from the one before.
type comparison struct {
	m         Mark
	remaining int64        // the reading
	still     int64        // if nothing was given back since
	bucket    int64        // of a bucket
	windows   [books]int64 // of each window whose books are kept
	kept      [books]bool
	quiet     bool  // no window has given anything back
	tol       int64 // what may be wrong in any of them
	jitter    int64 // and in what a bucket refills, for the time on the way
	near      int64 // charges that the readings may have or not
	crowded   bool  // they are most of tol
}

// rose reports whether the reading is what a bucket foretells.
func (c *comparison) rose() bool { return abs(c.remaining-c.bucket) <= c.tol+c.jitter }

// foretell fills in what the windows foretell. Where one has given something back, by
// any of its books, standing still is not what a window foretells.
func (l *Learner) foretell(c *comparison) {
	p := &l.last.mark
	c.quiet = true
	for i, w := range l.windows {
		if w == nil || c.m.epoch != p.epoch {
			continue
		}
		c.kept[i] = true
		c.windows[i] = l.last.remaining + p.used[i] - c.m.used[i]
		if c.m.edge[i] != p.edge[i] && i != aLog && w.Law().Shape == limit.ShapeFixed {
			// A window before this one is gone, with what others used in it.
			c.windows[i] = l.n - c.m.fresh[i]
		}
		if abs(c.windows[i]-c.still) > c.tol {
			c.quiet = false
		}
	}
}

// refute gives up the windows of which the reading shows more than they can hold: the
// limit less own charges. If it gives up all, the limit is a bucket. A reading from a
// crowd does not say so: a fixed window whose edge is not known was taken for one.
func (l *Learner) refute(c *comparison) {
	if c.m.at.Sub(l.last.mark.at) >= onTheWay { // else it is the last reading again
		l.prove(c)
	}
	refuted := 0
	for i, w := range l.windows {
		if w == nil {
			refuted++
			continue
		}
		used := c.m.used[i]
		slack := c.tol + used*l.o.Unsure/100
		if w.Law().Shape == limit.ShapeTwoWindows {
			slack += limit.Rate{N: used, Window: l.o.Window}.In(150 * time.Millisecond)
		}
		if c.remaining > l.n-used+slack {
			l.pairs[i].fade()
			l.pairs[i].misses++
			refuted++
		}
	}
	if refuted == books && !c.crowded && c.rose() {
		l.votes.byRise++
	}
}

// tellWindowsApart counts for and against each window, where they foretell different
// balances.
func (l *Learner) tellWindowsApart(c *comparison) {
	p := &l.last.mark
	lo, hi := c.windows[aLog], c.windows[aLog]
	for i, w := range l.windows {
		if w != nil {
			lo, hi = min(lo, c.windows[i]), max(hi, c.windows[i])
		}
	}
	if hi-lo <= 3*c.tol {
		return
	}
	good := c.good()
	l.bucket.fade()
	switch off := abs(c.remaining - c.bucket); {
	case off > c.tol+c.jitter:
		l.bucket.misses++
	case off <= good:
		l.bucket.hits++
	}
	apart := c.rose() // a bucket that moves as none of the windows would
	for i, w := range l.windows {
		if w == nil {
			continue
		}
		apart = apart && abs(c.bucket-c.windows[i]) > 3*(c.tol+c.jitter)
		f := &l.pairs[i]
		f.fade()
		off := abs(c.remaining - c.windows[i])
		if off > c.tol+c.tol/2 {
			f.misses++
			continue
		}
		if off > good {
			continue
		}
		f.hits++
		if c.m.edge[i] != p.edge[i] && p.used[i] > 3*c.tol && c.windows[i]-c.still > 3*c.tol {
			f.edges++
		}
	}
	if apart {
		l.votes.byRise++
	}
}

// good is the error up to which books have foretold a reading as well as the best did.
// What may be wrong is mostly far more than what is: on a log its books were off by 10
// tokens and those of the clock's windows by 5,000 of the 30,000 that may be wrong. While
// both counted, chance made one law of the other every few minutes.
func (c *comparison) good() int64 {
	least := abs(c.remaining - c.bucket)
	for i, x := range c.windows {
		if c.kept[i] {
			least = min(least, abs(c.remaining-x))
		}
	}
	return 2*least + c.tol/16 + c.jitter
}

// prove looks for answers that only an edge explains: all but the charges since the
// edge is back, while the other books still count enough of the use before it.
func (l *Learner) prove(c *comparison) {
	m, remaining, tol := &c.m, c.remaining, c.tol
	least := m.used[aLog]
	for i, w := range l.windows {
		if w != nil && w.Law().Shape == limit.ShapeTwoWindows {
			least = min(least, m.used[i])
		}
	}
	if m.at.Before(l.gone) {
		// The books have all of it at the instant at which they began. It was used
		// before, and leaves a sliding window before: that looks like an edge.
		least -= max(0, l.lump)
	}
	for i, w := range l.windows {
		if w == nil || w.Law().Shape != limit.ShapeFixed {
			continue
		}
		switch f := &l.pairs[i]; {
		case abs(remaining-(l.n-m.fresh[i])) > tol:
			f.proofs = 0
		case i < weightedFromReset && c.rose():
			// So would a bucket: of one that is full most of the time, four answers in a
			// row look like this.
		case least-m.fresh[i] > 3*tol:
			f.proofs++
		}
	}
}
