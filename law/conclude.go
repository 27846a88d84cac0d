package law

import (
	"fmt"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// votes are answers, or pairs of them, that only one kind of law explains.
type votes struct {
	byReset, byRise int // a bucket
	still           int // a window
	against         int // a reset that is not missing / rate
}

// fit is how a window's books did on pairs on which the windows differ.
type fit struct {
	hits, misses int
	edges        int // edges that passed as foretold
	proofs       int // answers in a row that show an edge passed, which no other books explain
	exact        int // readings that were what its books hold, and nothing else foretold
}

// memory is how many pairs or answers count in full. What is older fades, since
// laws change on live services, and the first pairs do not know what was used
// before them.
const memory = 16

func (f *fit) fade() {
	if f.hits+f.misses >= memory {
		f.hits, f.misses = f.hits/2, f.misses/2
	}
}

func (v *votes) fade() {
	if v.byReset+v.against >= memory {
		v.byReset, v.against = v.byReset/2, v.against/2
	}
	if v.byRise+v.still >= memory {
		v.byRise, v.still = v.byRise/2, v.still/2
	}
}

// conclude believes what the votes say.
func (l *Learner) conclude(now time.Time) {
	if now.Before(l.belief.Until) {
		return
	}
	if w := l.windows[fixedFromReset]; w != nil && l.o.NamesEdge && l.belief.Law == l.o.Known {
		l.chosen = fixedFromReset
		l.believe(now, limit.Law{Shape: limit.ShapeFixed, Edge: w.Law().Edge})
		l.belief.Why += ", from the edge that answers name"
		return
	}
	v := l.votes
	rise, still := v.byRise, v.still
	// What is believed already takes twice as much to give way.
	bucket, window := 3, 3
	if s := l.belief.Law.Shape; s.Windowed() {
		bucket = 6
	} else if s == limit.ShapeBucket {
		window = 6
	}
	switch {
	case v.byReset >= bucket && v.against*4 <= v.byReset && still*4 <= v.byReset+rise:
		if l.believe(now, limit.Law{Shape: limit.ShapeBucket}) {
			l.belief.Why = fmt.Sprintf("reset is missing / rate on %d answers", v.byReset)
		}
	case rise >= bucket && still*4 <= rise && l.best() < 0 && l.o.Guessed:
		// Perhaps less was charged.
	case rise >= bucket && still*4 <= rise && l.best() < 0:
		if l.believe(now, limit.Law{Shape: limit.ShapeBucket}) {
			l.belief.Why = fmt.Sprintf("remaining rose at the rate in %d pairs of answers", rise)
		}
	case v.byReset >= 3 && v.against*4 <= v.byReset:
		// Resets say a bucket. When it runs near empty all the time, the books of
		// windows foretell as much as its own.
	case l.windowed():
		if l.believe(now, l.window()) {
			f := l.pairs[l.chosen]
			l.belief.Why = fmt.Sprintf("its books foretold %d of %d pairs of answers, and others did not", f.hits, f.hits+f.misses)
			if f.exact >= exactly {
				l.belief.Why = fmt.Sprintf("its books held what %d answers named, and others did not", f.exact)
			}
		}
	case still >= window && rise*4 <= still:
		if l.keeps() {
			break
		}
		if l.believe(now, l.window()) {
			l.belief.Why = fmt.Sprintf("remaining stood still between sends in %d pairs of answers", still)
		}
	}
}

// windowed reports whether the rhythm in which it gives back, or an edge, shows a
// window.
func (l *Learner) windowed() bool {
	best := l.best()
	return best >= 0 && l.votes.byRise*2 <= max(l.pairs[best].hits, l.pairs[best].exact)
}

// keeps reports whether the window that is believed stays, although its books foretell
// no better than others now: most pairs of answers tell no two windows apart. It goes
// when its own books fail.
func (l *Learner) keeps() bool {
	if c := l.chosen; c != none && l.windows[c] != nil && l.belief.Law.Shape == l.windows[c].Law().Shape {
		f := l.pairs[c]
		return f.misses <= f.hits+f.proofs
	}
	return false
}

// best is the one window that has foretold what the others have not, or -1.
func (l *Learner) best() int {
	best := -1
	for i := books - 1; i >= 0; i-- { // what an answer named before a guess
		// Fixed windows without a named reset were never recorded. On a sliding log two
		// chance proofs of one let all of it go at the supposed edge, to be refused.
		// With debits that are too high the proofs are of chance too: its books then
		// fail between them.
		if l.outNamed(i) {
			continue
		}
		f := l.pairs[i]
		sure := i >= weightedFromReset || (f.edges >= 1 || f.proofs >= 4) && f.misses <= f.hits
		if l.windows[i] != nil && sure && f.proofs >= 2 && f.misses <= f.hits+f.proofs {
			return i
		}
	}
	for i := range l.pairs {
		// Within a fixed window a log of the same use holds the same.
		if l.windows[i] != nil && l.pairs[i].exact >= exactly && l.belief.Law.Shape != limit.ShapeFixed {
			return i
		}
	}
	for i, w := range l.windows {
		f := l.pairs[i]
		if w == nil || l.outNamed(i) || f.hits < 3 || f.misses*4 > f.hits ||
			w.Law().Shape == limit.ShapeFixed && f.edges < 2 {
			continue
		}
		if best < 0 || f.hits-f.misses >= l.pairs[best].hits-l.pairs[best].misses {
			best = i // of equals the later: what an answer named before a guess
		}
	}
	// What is believed stays while it does well: beginnings that no send tells
	// apart fit alike, and other shapes do for a while.
	if c := l.chosen; c != none && l.windows[c] != nil {
		if f := l.pairs[c]; f.misses*3 <= f.hits && (best < 0 || l.pairs[best].hits-l.pairs[best].misses < f.hits-f.misses+memory/3) {
			return c
		}
	}
	if best < 0 || l.pairs[best].hits-l.pairs[best].misses < l.bucket.hits-l.bucket.misses+2 {
		return -1
	}
	for i, f := range l.pairs { // of another shape, as good
		if w := l.windows[i]; w != nil && w.Law().Shape != l.windows[best].Law().Shape &&
			l.pairs[best].hits-l.pairs[best].misses < f.hits-f.misses+2 {
			return -1
		}
	}
	return best
}

// outNamed reports whether window i is a fixed one of a guessed edge while answers name
// one. With crowds under way its books may do as well by chance, and all of it went 10 s
// before the edge: 42 calls were refused.
func (l *Learner) outNamed(i int) bool {
	w := l.windows[i]
	return i < weightedFromReset && w != nil && w.Law().Shape == limit.ShapeFixed &&
		l.windows[fixedFromReset] != nil && l.resets[l.named].sure()
}

// window is the law of the best window; of a sliding one if none is known. Where
// windows begin with the first call after a rest, Edge is the last such beginning.
func (l *Learner) window() limit.Law {
	best, law := l.best(), limit.Law{Shape: limit.ShapeSliding}
	if l.chosen = best; best < 0 {
		best = weightedFromFirst
	} else {
		law.Shape = l.windows[best].Law().Shape
	}
	if best != aLog {
		law.FirstCall = l.windows[best].Law().FirstCall
		edge := time.Duration(l.edge[best])
		if !law.FirstCall {
			// Before the first edge after the base there was none to follow.
			edge = l.windows[best].Law().Edge
			if edge <= 0 {
				edge += l.o.Window
			}
		}
		law.Edge = max(1, edge)
	}
	return law
}

// believe reports whether that is another law than before.
func (l *Learner) believe(now time.Time, law limit.Law) bool {
	old := l.belief.Law
	if old.Shape == law.Shape && (old.Edge-law.Edge)%l.o.Window == 0 {
		return false
	}
	if l.follows(old, law) {
		return false
	}
	if old.Shape == l.o.Known.Shape && old.Shape.Windowed() && law.Shape == limit.ShapeSliding {
		return false // it says less than what is known
	}
	if old.Shape != law.Shape {
		l.belief.Since, l.struck.n = now, 0
	}
	l.belief.Law, l.belief.Until = law, time.Time{}
	l.belief.Learned = law.Shape != l.o.Known.Shape
	return true
}
