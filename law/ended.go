package law

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// exact is how often a balance fell by just what the calls were charged that had ended
// meanwhile. It counts the last pairs of answers that tell: see [Learner.exactly].
type exact struct{ hits, misses int }

// A third of the pairs must be exact, and six at least. Calls that end while a balance is
// on its way make about half of them miss. Under a rule that charges calls when they come
// one pair of a hundred is exact, by chance.
const (
	exactHits   = 6
	exactMisses = 2 // for each hit
	exactMemory = 32
)

// Begin enters that a call leaves which holds units, for a learner of Options.AtEnd.
func (l *Learner) Begin(units int64) { l.begun += units }

// Ended enters at an instant that a call has ended which held so much, and is charged
// units. It writes to m what the books hold with it.
func (l *Learner) Ended(m *Mark, at time.Time, held, units int64) {
	l.over += held
	l.Enter(m, at, units)
}

// Exact reports whether answers have shown that calls are charged when they end, in
// windows. It is false without Options.AtEnd.
func (l *Learner) Exact() bool {
	e := &l.exact
	return e.hits >= exactHits && e.misses <= exactMisses*e.hits && l.belief.Law.Shape.Windowed()
}

// exactly counts a pair of answers for or against charges at the end.
//
// Where one call leaves for each that ends, as of many alike, a rule that reserves foretells
// the same fall. So a pair tells only if those that left held more or less, by a quarter,
// than those that ended. At the bottom, or where it stands still, a balance tells nothing.
// What leaves a window meanwhile is as sure as the instants are.
func (l *Learner) exactly(c *comparison) {
	const little = 16 // tokens
	p := &l.last.mark
	spent, left, ended := c.m.spent-p.spent, c.m.begun-p.begun, c.m.over-p.over
	if spent < little || abs(left-ended)*4 <= max(left, ended) || c.remaining == 0 || c.remaining == l.last.remaining {
		return
	}
	hit := false
	for i, x := range c.windows {
		unsure := 2 + min(abs(x-c.still)/10, spent/20)
		hit = hit || c.kept[i] && abs(c.remaining-x) <= unsure
	}
	e := &l.exact
	if e.hits+e.misses >= exactMemory {
		e.hits, e.misses = e.hits/2, e.misses/2
	}
	if hit {
		e.hits++
	} else {
		e.misses++
	}
}

// leavesOut reports whether a book is not kept. Nobody has seen charges at the end in fixed
// minutes of the clock. At a wrong edge all who waited went together, and 180 of 2,000 calls were refused.
func (l *Learner) leavesOut(book int) bool { return l.o.AtEnd && book == fixedFromClock }

// follows reports whether a meter goes from the one law to the other by itself: it knows
// the first call after a rest as well. With a new edge each minute, the bucket decided beside
// the window for a sixth of each, and 96 % of a quota were used instead of 107.
func (l *Learner) follows(old, law limit.Law) bool {
	return l.o.AtEnd && old.Shape == law.Shape && old.FirstCall && law.FirstCall
}
