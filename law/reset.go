package law

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// byReset asks whether the reset is the time a bucket takes to fill, and whether
// answers agree on the instant.
func (l *Learner) byReset(e Evidence) {
	if !e.Reset.OK || e.Reset.D <= 0 || e.Reset.D > 2*l.o.Window {
		return
	}
	grain := max(e.Precise, time.Millisecond)
	whole := grain
	if e.Reset.D%time.Second == 0 { // of milliseconds one in a thousand is
		whole = max(grain, time.Second)
	}
	for i, from := range [instants]time.Time{e.Answered, e.Mark.at} {
		l.resets[i].saw(from, e.Reset.D, e.Remaining.N, whole, l.o.Window)
	}
	l.likeABucket(e, grain)
	l.nameEdge(e, whole)
	if l.resets[0].constant() {
		l.votes.byReset, l.votes.against = 0, 0
	}
}

// likeABucket counts whether the reset is the time a bucket takes to fill.
func (l *Learner) likeABucket(e Evidence, grain time.Duration) {
	missing := l.n - e.Remaining.N
	full := l.toFill(missing)
	// Rounded down, and what went while the answer was under way.
	slack := grain + 2*time.Millisecond + e.Reset.D/50 + l.toFill(l.o.Round)
	late := e.Answered.Sub(e.Mark.at) / 8
	// Reset and remaining together are what the bucket holds, as a time: the whole
	// window, or less, then the same on each answer.
	holds := e.Reset.D + l.toFill(e.Remaining.N)
	last := l.holds
	l.holds.ok, l.holds.d, l.holds.remaining = true, holds, e.Remaining.N
	moved := l.toFill(abs(e.Remaining.N - last.remaining))
	rest := l.o.Window - holds
	fills := rest >= -slack && rest <= slack+late
	switch stands := l.resets[0].stands(grain) || l.resets[1].stands(grain); {
	case stands && fills:
		// A bucket that is left alone is full at one and the same instant.
	case stands:
		// An edge. A window that is used at the rate passes a bucket's fields once.
		l.votes.byReset = 0
		if l.belief.Law.Shape == limit.ShapeBucket && l.o.Known.Shape != limit.ShapeBucket {
			l.belief.Law, l.belief.Learned = limit.Law{}, false
			l.belief.Since, l.chosen = e.Answered, none
			l.belief.Why = "answers name one and the same instant: it is no bucket"
		}
	case l.o.NamesEdge && (l.resets[0].sure() || l.resets[1].sure()):
		// Near the rate an edge looks like the time to fill.
	case full < 2*grain && (missing != 1 || full < grain):
		// nearly full: any law says so
	case fills:
		l.votes.byReset++
	case last.ok && moved > 2*slack && (holds-last.d).Abs() <= slack:
		l.votes.byReset++
	case last.ok && missing > 1 && moved > 2*slack:
		l.votes.against++
	}
}

// nameEdge begins the windows that end where the resets of answers agree, if they do.
func (l *Learner) nameEdge(e Evidence, whole time.Duration) {
	named := none
	for i := range l.resets {
		if r := &l.resets[i]; r.sure() && (named == none || r.breaks < l.resets[named].breaks) {
			named = i
		}
	}
	if named != none && (l.windows[fixedFromReset] == nil || l.named != named && !l.resets[l.named].sure()) {
		l.named = named
		edge := l.resets[named].middle().Sub(l.base) + whole/2
		used := l.n - e.Remaining.N
		l.begin(weightedFromReset, limit.Law{Shape: limit.ShapeTwoWindows, Edge: edge}, e.Mark.at, used)
		l.begin(fixedFromReset, limit.Law{Shape: limit.ShapeFixed, Edge: edge}, e.Mark.at, used)
		l.pairs[weightedFromReset], l.pairs[fixedFromReset] = fit{}, fit{}
		l.epoch++ // marks of before know nothing of them
		l.last.ok = false
	}
}

// toFill is the time in which a bucket earns units.
func (l *Learner) toFill(units int64) time.Duration {
	return time.Duration(float64(units) / float64(l.n) * float64(l.o.Window))
}

// instants are those from which a reset may count: when its answer came, and when the
// call left. Some providers read the clock when they admit a call.
const instants = 2

// resets are the instants that answers name.
type resets struct {
	edge    time.Time
	lo, hi  time.Duration // of those that agree, from edge
	since   time.Time     // when the first of them came
	until   time.Time     // and the last
	left    int64         // remaining on the last
	first   time.Duration
	agree   int // answers in a row that named the same instant, with another remaining
	all     int // of them in all
	breaks  int // answers that named another before the next edge
	n       int
	same    bool // all named the same time from now on
	changed bool // although remaining was another
}

// saw takes in that an answer names the instant at d from another.
func (r *resets) saw(from time.Time, d time.Duration, remaining int64, grain, window time.Duration) {
	at := from.Add(d)
	r.n++
	switch {
	case r.n == 1:
		r.edge, r.left, r.first, r.same, r.since, r.until = at, remaining, d, true, from, from
		return
	case d != r.first:
		r.same = false
	case remaining != r.left:
		r.changed = true
	}
	diff := at.Sub(r.edge)
	if far := diff < -grain-time.Second/4 || diff > grain+time.Second/4; far {
		if diff < window/2 { // else it is the next edge
			r.breaks++
			r.agree = 0
		}
		r.edge, r.lo, r.hi, r.since = at, 0, 0, from
	} else if r.lo, r.hi = min(r.lo, diff), max(r.hi, diff); remaining != r.left && d != r.first {
		r.agree++
		if r.all++; r.all >= 4*memory {
			r.all, r.breaks = r.all/2, r.breaks/2
		}
	}
	r.left, r.until = remaining, from
}

// stands reports whether the instant has been named for long, by at least three
// answers with different remaining. That of a bucket that is used moves on with time.
func (r *resets) stands(grain time.Duration) bool {
	return r.agree >= 2 && r.until.Sub(r.since) >= 5*time.Second+2*grain
}

// sure reports whether three answers in a row, with different remaining, have named
// one instant, and few have named another before the next edge.
func (r *resets) sure() bool { return r.agree >= 2 && r.breaks*4 <= r.all }

// middle is the instant that they name.
func (r *resets) middle() time.Time { return r.edge.Add((r.lo + r.hi) / 2) }

// constant reports whether the reset is the same text on every answer.
func (r *resets) constant() bool { return r.n >= 3 && r.same && r.changed }
