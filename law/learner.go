package law

import (
	"fmt"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// Forgotten is how long nothing is believed of a limit after its law was given up.
const Forgotten = 10 * time.Minute

// A Count is a number that an answer may state.
type Count struct {
	N  int64
	OK bool // false: not stated, or unreadable
}

// A Span is a time that an answer may state.
type Span struct {
	D  time.Duration
	OK bool // false: not stated, or unreadable
}

// Options say what is known of a limit beforehand. Zero means unset.
type Options struct {
	// Window is the limit's window. 0 is a minute.
	Window time.Duration

	// Known is a law that recorded traffic has shown, believed from the start.
	// Shape 0 is none. Known.Edge is counted from Base. Why says where it is from.
	Known limit.Law
	Why   string

	// NamesEdge: Known is a fixed window whose edge is not known, but answers name it.
	// Once they agree on an instant the window begins there.
	NamesEdge bool

	// Base is the instant from which edges are counted. Zero: the first call.
	Base time.Time

	// Unsure is how far the debit of a call may be wrong, in per cent. Requests
	// are counted exactly: 0. Tokens that are estimated: 25.
	Unsure int64

	// Round: what remains is rounded to the nearest multiple of it.
	Round int64

	// Before: what remains is read before the call's own debit.
	Before bool

	// Guessed: nobody knows yet by which rule calls are charged. A rule that
	// charges too much makes a window seem to rise. See [Learner.Rule].
	Guessed bool

	// AtEnd: charges are entered when calls end, at what usage says. See [Learner.Ended].
	// A balance of the whole limit is no evidence then: another counter may show it, of
	// which nothing was used.
	AtEnd bool
}

// A Mark is what the books of each law held at one instant. It is kept with a
// call and handed back with what the call's answer says.
type Mark struct {
	at    time.Time
	n     int64 // the limit then
	epoch int   // of the books
	spent int64 // own charges ever
	own   int64
	begun int64        // held by all calls that left; of Options.AtEnd
	over  int64        // held by those that have ended
	used  [books]int64 // by each window, units, rounded up
	edge  [books]int64 // when its window began, nanoseconds from the base
	fresh [books]int64 // charged since that edge
}

// Evidence is what one answer says of one limit.
type Evidence struct {
	Mark      Mark // from Charged at sending, or from Mark where the answer speaks of its end
	Answered  time.Time
	Limit     Count
	Remaining Count
	Reset     Span          // from Answered on
	Precise   time.Duration // the unit in which Reset is written; 0 is a millisecond
	Refused   bool
	Room      bool // of a refused call: the books of the law had room for it
}

// A Belief is the law that is believed of a limit.
type Belief struct {
	Law      limit.Law     // Law.Edge is from Base
	Base     time.Time     // the instant that Law.Edge is counted from; zero before the first call
	Limit    int64         // units in Window; 0 is not known
	Window   time.Duration //
	Capacity int64         // the most that was shown to be there at once, less 0.25 s of refill
	Since    time.Time     // when it began, or was given up
	Learned  bool          // answers have shown the law; else it was known beforehand, or is none
	Why      string        // for people
	Until    time.Time     // given up: nothing is believed before that
}

// At is the law for a meter whose instants are counted from base. Before the first
// call nothing is known of edges.
func (b Belief) At(base time.Time) limit.Law {
	l := b.Law
	if b.Base.IsZero() {
		return l
	}
	if l.Edge != 0 || !l.FirstCall && l.Shape.Windowed() && l.Shape != limit.ShapeLog {
		l.Edge += b.Base.Sub(base)
	}
	return l
}

// String reads like "bucket: 500 in 1m0s, since 12:00:00: reset is missing / rate on 3 answers".
func (b Belief) String() string {
	return fmt.Sprintf("%v: %d in %v, since %s: %s", b.Law.Shape, b.Limit, b.Window, b.Since.Format(time.TimeOnly), b.Why)
}

// The windows whose books are kept, to see which of them foretells what remains.
const (
	aLog = iota
	weightedFromFirst
	fixedFromFirst
	weightedFromClock
	fixedFromClock
	weightedFromReset // these two once answers agree on an instant
	fixedFromReset
	books
	none = -1
)

// A Learner learns the law of one limit. Its methods take instants and must not
// be called by several goroutines at once. The zero Learner is not usable; call
// [New].
type Learner struct {
	o      Options
	base   time.Time
	belief Belief

	n       int64 // the limit
	shown   int64 // the largest balance shown
	spent   int64
	epoch   int
	windows [books]*limit.Window
	fresh   [books]int64 // charged since the edge of each
	edge    [books]int64
	lump    int64        // used when the books began, nobody knows when
	gone    time.Time    // when all of it has left every window
	recent  [256]charged // in a ring
	flow    flow
	charges int
	chosen  int // whose window is believed, or none

	last struct { // the newest reading, by sending
		ok        bool
		mark      Mark
		remaining int64
		near      int64 // around it
	}
	holds struct { // of the newest reading with a reset
		ok        bool
		d         time.Duration
		remaining int64
	}
	resets  [instants]resets
	named   int // which of them the windows from a reset begin by
	votes   votes
	pairs   [books]fit
	bucket  fit              // on the same pairs
	matched [books]time.Time // when a reading was counted as exact last
	begun   int64
	over    int64
	exact   exact
	struck  struct {
		n  int
		at time.Time
	}
}

// New returns a learner for one limit.
func New(o Options) *Learner {
	if o.Window <= 0 {
		o.Window = time.Minute
	}
	b := Belief{Window: o.Window, Base: o.Base, Why: "nothing is known yet"}
	if o.Known.Shape != limit.ShapeUnknown {
		b.Law, b.Why = o.Known, o.Why
	}
	return &Learner{o: o, chosen: none, belief: b}
}

// Copy returns a learner of the same limit that knows the same, for a limit that is
// copied. From then on each learns for itself. Marks of l say nothing of the copy.
func (l *Learner) Copy() *Learner {
	c := *l
	for i, w := range l.windows {
		if w != nil {
			c.windows[i] = w.Copy()
		}
	}
	return &c
}

func (l *Learner) start(at time.Time) {
	if !l.base.IsZero() {
		return
	}
	l.base, l.belief.Since = at, at
	if !l.o.Base.IsZero() {
		l.base = l.o.Base
	}
	l.belief.Base = l.base
}

// Belief is what is believed now.
func (l *Learner) Belief() Belief { return l.belief }

// AtAnswer reports whether the fields of answers name an edge that fits the instants
// at which answers came, and not those at which calls left. The provider reads its
// clock when it answers, and so its balance too. Where both fit, or none was named,
// it is false.
func (l *Learner) AtAnswer() bool {
	return l.windows[fixedFromReset] != nil && l.named == 0 && l.resets[0].sure() && !l.resets[1].sure()
}

// Rule says that charges which are entered from now on are by the right rule. changed
// says that those before were by another: the books begin anew at that instant, and
// what they have foretold counts no more.
func (l *Learner) Rule(now time.Time, changed bool) {
	l.o.Guessed = false
	if changed && l.n > 0 {
		l.start(now)
		used := int64(0)
		if l.last.ok {
			used = l.n - l.last.remaining
		}
		l.charges = 0
		l.open(l.n, now, used)
	}
}

// Charged enters units of a call that leaves at an instant, and returns what the
// books hold with it.
func (l *Learner) Charged(at time.Time, units int64) (m Mark) {
	l.Enter(&m, at, units)
	return m
}

// Enter is Charged that writes into a Mark of the caller's, as one is large.
func (l *Learner) Enter(m *Mark, at time.Time, units int64) {
	l.start(at)
	l.charge(at, at, units)
	l.mark(m, at)
	m.own = max(0, units)
}

// Corrected corrects at an instant what was charged to a call that left at sent.
// Units below zero come back and count from then; others count from now on.
func (l *Learner) Corrected(sent, now time.Time, units int64) {
	l.start(now)
	if units < 0 {
		l.charge(sent, now, units)
	} else if units > 0 {
		l.charge(now, now, units)
	}
}

// Mark returns what the books hold at an instant.
func (l *Learner) Mark(at time.Time) (m Mark) {
	l.start(at)
	l.mark(&m, at)
	return m
}

// Saw takes in what an answer says. It returns the belief, and whether its law has
// changed.
func (l *Learner) Saw(e Evidence) (b Belief, changed bool) {
	l.start(e.Answered)
	before := l.belief.Law
	switch {
	case e.Refused:
		l.refused(e)
	case !e.Remaining.OK || !e.Limit.OK || e.Limit.N <= 0 || e.Limit.N > limit.MaxUnits ||
		e.Remaining.N < 0 || e.Remaining.N > e.Limit.N || l.o.AtEnd && e.Remaining.N == e.Limit.N:
	default:
		l.read(e)
		l.conclude(e.Answered)
	}
	return l.belief, l.belief.Law != before
}

// Room reports whether the books of the law that is believed had room, for sure, for
// the call of m: more was left than their error, which is a tenth of the limit where
// debits are estimates. It is true if there are none, as of a bucket, or if the books
// began anew since.
//
// A window in use is used to its last unit, so an error of a thousandth is refused.
// When that was a strike, two ended a right belief, and a sliding minute was used at
// 77 % instead of 87. Its books had counted 92 to 99 % of the limit. Of a wrong law
// they count 80 and less as well: a quarter of the limit as the error let one stay.
func (l *Learner) Room(m *Mark) bool {
	s := l.belief.Law.Shape
	if !s.Windowed() || l.n == 0 || m.epoch != l.epoch || m.n != l.n {
		return true
	}
	used := int64(0)
	for i, w := range l.windows {
		if w != nil && (i == l.chosen || l.chosen == none && (s == limit.ShapeSliding || w.Law().Shape == s)) {
			used = max(used, m.used[i])
		}
	}
	return used+1+l.o.Round+l.n*min(l.o.Unsure, 10)/100 < l.n
}

// strikesFor is for how many windows a strike counts. A wrong law is refused again and
// again; two refusals far apart are chance.
const strikesFor = 5

// refused strikes the law whose books had room. Calls that left before it was
// believed, or before the last strike, say nothing of it.
func (l *Learner) refused(e Evidence) {
	if !e.Room || l.belief.Law.Shape == limit.ShapeUnknown {
		return
	}
	if e.Mark.at.Before(l.belief.Since) || l.struck.n > 0 && !e.Mark.at.After(l.struck.at) {
		return
	}
	if e.Answered.Sub(l.struck.at) > strikesFor*l.o.Window {
		l.struck.n = 0
	}
	l.struck.n++
	l.struck.at = e.Answered
	if l.struck.n < 2 {
		return
	}
	old := l.belief.Law.Shape
	l.belief.Law, l.belief.Learned = limit.Law{}, false
	l.belief.Since, l.belief.Until = e.Answered, e.Answered.Add(Forgotten)
	l.belief.Why = fmt.Sprintf("%v was given up: refused twice although its books had room", old)
	l.struck.n = 0
	l.votes, l.pairs, l.resets, l.last.ok = votes{}, [books]fit{}, [instants]resets{}, false
	l.bucket, l.chosen = fit{}, none
	l.o.Known = limit.Law{} // what was recorded once holds no more
}

// read compares a reading with the one before it.
func (l *Learner) read(e Evidence) {
	n, m := e.Limit.N, e.Mark
	own := m.own
	if l.o.Before {
		own = 0
	}
	left := e.Remaining.N + own
	l.belief.Limit = n
	if n != l.n {
		l.shown = 0
		l.open(n, m.at, max(m.own, n-e.Remaining.N))
	}
	l.shown = max(l.shown, min(left, n))
	l.belief.Capacity = max(1, min(n, l.shown-limit.Rate{N: n, Window: l.o.Window}.In(250*time.Millisecond)))
	l.votes.fade()
	l.byReset(e)
	if m.epoch != l.epoch || m.n != n {
		return // sent before the books began
	}
	remaining := e.Remaining.N
	if l.o.Before {
		remaining = max(0, remaining-m.own) // as it is after the call
	}
	if l.last.ok && m.at.Before(l.last.mark.at) {
		return // out of order
	}
	near, ok := l.near(&m)
	if l.last.ok = l.last.ok && ok; l.last.ok && m.at.Sub(l.last.mark.at) <= 2*l.o.Window {
		l.compare(m, remaining, near+l.last.near)
	}
	l.last.ok, l.last.mark, l.last.remaining, l.last.near = ok, m, remaining, near
}

func abs(x int64) int64 { return max(x, -x) }

// Edge is the last edge before t, if answers name one now: an instant that stays the
// same for several answers with different balances. A limit that is taken for a bucket
// has none.
func (l *Learner) Edge(t time.Time) (edge time.Time, ok bool) {
	r := &l.resets[l.named]
	if l.windows[fixedFromReset] == nil || !r.sure() || l.belief.Law.Shape == limit.ShapeBucket {
		return time.Time{}, false
	}
	past := t.Sub(r.middle()) % l.o.Window
	if past < 0 {
		past += l.o.Window
	}
	return t.Add(-past), true
}
