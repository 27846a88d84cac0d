package law

import (
	"fmt"
	"math"
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
}

// A Mark is what the books of each law held at one instant. It is kept with a
// call and handed back with what the call's answer says.
type Mark struct {
	at    time.Time
	n     int64 // the limit then
	epoch int   // of the books
	spent int64 // own charges ever
	own   int64
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
	resets [instants]resets
	named  int // which of them the windows from a reset begin by
	votes  votes
	pairs  [books]fit
	bucket fit // on the same pairs
	struck struct {
		n  int
		at time.Time
	}
}

// charged is what was charged in all by an instant.
type charged struct {
	at    time.Time
	spent int64
}

// onTheWay is how far apart two calls must leave to arrive in the same order.
const onTheWay = 250 * time.Millisecond

// A flow is what was charged and corrected in all by some instants of the last
// minute, each amount as if above zero: one for each slot of 2^26 nanoseconds, as it
// was at the end of the slot. A sum of what is charged and given back would hide both.
type flow struct {
	sums [1024]int64
	last int64 // the number of the newest slot
	sum  int64
}

const flowSlot = 26 // bits of nanoseconds

func (f *flow) add(at, units int64) {
	k := int64(len(f.sums))
	slot := at >> flowSlot
	for i := max(f.last, slot-k); i < slot; i++ {
		f.sums[uint64(i)%uint64(k)] = f.sum
	}
	f.last = max(f.last, slot)
	f.sum = addUpTo(f.sum, abs(units))
}

// by is what flowed by the end of the slot of an instant, false if that is forgotten.
func (f *flow) by(at int64) (int64, bool) {
	k := int64(len(f.sums))
	switch slot := at >> flowSlot; {
	case slot >= f.last:
		return f.sum, true
	case slot < 0:
		return 0, f.last < k
	case slot <= f.last-k:
		return 0, false
	default:
		return f.sums[uint64(slot)%uint64(k)], true
	}
}

// addUpTo is a + b, and no more than an int64 holds.
func addUpTo(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// near is what left, or was corrected, so shortly before or after m that its reading
// may have it or not. It is false if that is too long ago to be known.
func (l *Learner) near(m *Mark) (int64, bool) {
	t := int64(m.at.Sub(l.base))
	first, ok := l.flow.by(t - int64(onTheWay) - 1<<flowSlot)
	last, _ := l.flow.by(t + int64(onTheWay))
	return max(0, last-first-m.own), ok
}

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

// charge enters units that count from at on, as is known from now on.
func (l *Learner) charge(at, now time.Time, units int64) {
	l.spent += units
	if l.n > 0 { // else no books are open
		for i := range l.windows {
			l.enter(i, at, units)
		}
	}
	l.recent[l.charges%len(l.recent)] = charged{at, l.spent}
	l.charges++
	l.flow.add(int64(now.Sub(l.base)), units)
}

// Mark returns what the books hold at an instant.
func (l *Learner) Mark(at time.Time) (m Mark) {
	l.start(at)
	l.mark(&m, at)
	return m
}

func (l *Learner) mark(m *Mark, at time.Time) {
	*m = Mark{at: at, n: l.n, epoch: l.epoch, spent: l.spent}
	if l.n == 0 {
		return
	}
	for i, w := range l.windows {
		if w == nil {
			continue
		}
		l.roll(i, at)
		w.Charge(max(0, at.Sub(l.base)), 0)
		m.used[i] = l.n - w.Credit()
		m.edge[i], m.fresh[i] = l.edge[i], l.fresh[i]
	}
}

// roll follows the edges of a window.
func (l *Learner) roll(i int, at time.Time) {
	w, t := l.windows[i], int64(max(0, at.Sub(l.base)))
	if w.Law().FirstCall {
		w.Charge(time.Duration(t), 0)
		if t-l.edge[i] >= int64(l.o.Window) && w.Credit() == l.n {
			l.edge[i], l.fresh[i] = t, 0
		}
	}
	edge := int64(w.Law().Edge)
	if w.Law().FirstCall {
		edge = l.edge[i]
	}
	past := (t - edge) % int64(l.o.Window)
	if past < 0 {
		past += int64(l.o.Window)
	}
	if now := t - past; now > l.edge[i] {
		l.edge[i], l.fresh[i] = now, 0
	}
}

// open begins the books of the windows anew, for a limit of n of which used
// counted at an instant. Remembered charges are entered, so that windows begin with
// the first of them. The rest of used is the use of others.
func (l *Learner) open(n int64, at time.Time, used int64) {
	l.n = n
	l.epoch++
	first := max(0, l.charges-len(l.recent))
	begin, before := at, int64(0)
	if first < l.charges {
		begin = l.recent[first%len(l.recent)].at
		if first > 0 {
			before = l.recent[first%len(l.recent)].spent
			first++
		}
	}
	if begin.After(at) {
		begin = at
	}
	clock := time.Duration(l.base.Truncate(l.o.Window).Sub(l.base))
	for i, law := range [...]limit.Law{
		aLog:              {Shape: limit.ShapeLog},
		weightedFromFirst: {Shape: limit.ShapeTwoWindows, FirstCall: true},
		fixedFromFirst:    {Shape: limit.ShapeFixed, FirstCall: true},
		weightedFromClock: {Shape: limit.ShapeTwoWindows, Edge: clock},
		fixedFromClock:    {Shape: limit.ShapeFixed, Edge: clock},
	} {
		l.begin(i, law, begin, 0)
		last, others := before, used
		for k := first; k < l.charges; k++ {
			c := l.recent[k%len(l.recent)]
			if c.at.After(at) && others > 0 {
				l.enter(i, at, others)
				others = 0
			}
			l.enter(i, c.at, c.spent-last)
			others -= c.spent - last
			last = c.spent
		}
		if l.charges == first || !l.recent[(l.charges-1)%len(l.recent)].at.After(at) {
			l.enter(i, at, max(0, others))
		}
	}
	l.windows[weightedFromReset], l.windows[fixedFromReset] = nil, nil
	l.votes, l.pairs, l.resets, l.last.ok = votes{}, [books]fit{}, [instants]resets{}, false
	l.bucket, l.chosen = fit{}, none
}

// enter charges the books of one window, or returns where units are below zero.
func (l *Learner) enter(i int, at time.Time, units int64) {
	w := l.windows[i]
	if w == nil || units == 0 {
		return
	}
	t := max(0, at.Sub(l.base))
	if units < 0 {
		w.Return(t, -units)
	} else {
		l.roll(i, at)
		w.Charge(t, units)
	}
	if int64(t) >= l.edge[i] { // else what comes back was charged before the edge
		l.fresh[i] += units
	}
}

func (l *Learner) begin(i int, law limit.Law, at time.Time, used int64) {
	w, err := limit.NewWindow(limit.Rate{N: l.n, Window: l.o.Window}, law)
	if err != nil {
		return // an impossible limit teaches nothing
	}
	t := max(0, at.Sub(l.base))
	l.windows[i], l.edge[i], l.fresh[i] = w, 0, 0
	if law.FirstCall {
		l.edge[i] = int64(t)
	}
	l.roll(i, at)
	w.Charge(t, used)
	l.fresh[i] = used
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
		e.Remaining.N < 0 || e.Remaining.N > e.Limit.N:
	default:
		l.read(e)
		l.conclude(e.Answered)
	}
	return l.belief, l.belief.Law != before
}

// refused strikes the law whose books had room. Calls that left before it was
// believed, or before the last strike, say nothing of it.
func (l *Learner) refused(e Evidence) {
	if !e.Room || l.belief.Law.Shape == limit.ShapeUnknown {
		return
	}
	if e.Mark.at.Before(l.belief.Since) || l.struck.n > 0 && !e.Mark.at.After(l.struck.at) {
		return
	}
	l.struck.n++
	l.struck.at = e.Answered
	if l.struck.n < 2 {
		return
	}
	old := l.belief.Law.Shape
	l.belief.Law = limit.Law{}
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
	switch rest := l.o.Window - holds; {
	case l.resets[0].stands(grain) || l.resets[1].stands(grain):
		// An edge. A window that is used at the rate passes a bucket's fields once.
		l.votes.byReset = 0
		if l.belief.Law.Shape == limit.ShapeBucket && l.o.Known.Shape != limit.ShapeBucket {
			l.belief.Law, l.belief.Since, l.chosen = limit.Law{}, e.Answered, none
			l.belief.Why = "answers name one and the same instant: it is no bucket"
		}
	case full < 2*grain && (missing != 1 || full < grain):
		// nearly full: any law says so
	case rest >= -slack && rest <= slack+late:
		l.votes.byReset++
	case last.ok && moved > 2*slack && (holds-last.d).Abs() <= slack:
		l.votes.byReset++
	case last.ok && missing > 1 && moved > 2*slack:
		l.votes.against++
	}
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
	if l.resets[0].constant() {
		l.votes.byReset, l.votes.against = 0, 0
	}
}

// toFill is the time in which a bucket earns units.
func (l *Learner) toFill(units int64) time.Duration {
	return time.Duration(float64(units) / float64(l.n) * float64(l.o.Window))
}

// compare asks, of two readings and what was charged between, which law explains
// the second by the first.
// near is what each of the readings may have or not.
func (l *Learner) compare(m Mark, remaining, near int64) {
	p := &l.last.mark
	dt, spent := m.at.Sub(p.at), m.spent-p.spent
	refill := limit.Rate{N: l.n, Window: l.o.Window}
	tol := 1 + abs(spent)*l.o.Unsure/100 + l.o.Round + near
	jitter := refill.In(150 * time.Millisecond)
	bucket := min(max(l.shown-m.own, remaining), l.last.remaining+refill.In(dt)-spent)
	still := l.last.remaining - spent

	// A bucket or a window? Where a window has given something back, by any of its
	// books, standing still is not what it foretells.
	quiet := true
	var foretold [books]int64
	for i, w := range l.windows {
		if w == nil || m.epoch != p.epoch {
			continue
		}
		foretold[i] = l.last.remaining + p.used[i] - m.used[i]
		if m.edge[i] != p.edge[i] && i != aLog && w.Law().Shape == limit.ShapeFixed {
			// A window before this one is gone, with what others used in it.
			foretold[i] = l.n - m.fresh[i]
		}
		if abs(foretold[i]-still) > tol {
			quiet = false
		}
	}
	if wide := bucket - still; wide > 3*(tol+jitter) && quiet {
		switch {
		case abs(remaining-bucket) <= tol+jitter:
			l.votes.byRise++
		case abs(remaining-still) <= tol:
			l.votes.still++
		}
	}

	// A window never holds more than the limit less own charges: what does refutes it.
	l.prove(m, remaining, tol)
	refuted := 0
	for i, w := range l.windows {
		slack := tol + m.used[i]*l.o.Unsure/100
		if w != nil && w.Law().Shape == limit.ShapeTwoWindows {
			slack += limit.Rate{N: m.used[i], Window: l.o.Window}.In(150 * time.Millisecond)
		}
		if w != nil && remaining > l.n-m.used[i]+slack {
			l.pairs[i].fade()
			l.pairs[i].misses++
			refuted++
		} else if w == nil {
			refuted++
		}
	}
	if refuted == books && abs(remaining-bucket) <= tol+jitter {
		l.votes.byRise++
	}

	// Which window? Only pairs count on which they differ.
	lo, hi := foretold[aLog], foretold[aLog]
	for i, w := range l.windows {
		if w != nil {
			lo, hi = min(lo, foretold[i]), max(hi, foretold[i])
		}
	}
	if hi-lo <= 3*tol {
		return
	}
	l.bucket.fade()
	if abs(remaining-bucket) > tol+jitter {
		l.bucket.misses++
	} else {
		l.bucket.hits++
	}
	for i, w := range l.windows {
		if w == nil {
			continue
		}
		f := &l.pairs[i]
		f.fade()
		if abs(remaining-foretold[i]) > tol+tol/2 {
			f.misses++
			continue
		}
		f.hits++
		if m.edge[i] != p.edge[i] && p.used[i] > 3*tol && foretold[i]-still > 3*tol {
			f.edges++
		}
	}
	// A bucket that moves as none of the windows would.
	apart := abs(remaining-bucket) <= tol+jitter
	for i, w := range l.windows {
		apart = apart && (w == nil || abs(bucket-foretold[i]) > 3*(tol+jitter))
	}
	if apart {
		l.votes.byRise++
	}
}

// prove looks for answers that only an edge explains: all but the charges since the
// edge is back, while the other books still count enough of the use before it.
func (l *Learner) prove(m Mark, remaining, tol int64) {
	least := m.used[aLog]
	for i, w := range l.windows {
		if w != nil && w.Law().Shape == limit.ShapeTwoWindows {
			least = min(least, m.used[i])
		}
	}
	for i, w := range l.windows {
		if w == nil || w.Law().Shape != limit.ShapeFixed {
			continue
		}
		switch f := &l.pairs[i]; {
		case abs(remaining-(l.n-m.fresh[i])) > tol:
			f.proofs = 0
		case least-m.fresh[i] > 3*tol:
			f.proofs++
		}
	}
}

// conclude believes what the votes say.
func (l *Learner) conclude(now time.Time) {
	if now.Before(l.belief.Until) {
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
	return best >= 0 && l.votes.byRise*2 <= l.pairs[best].hits
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
		if f := l.pairs[i]; l.windows[i] != nil && f.proofs >= 2 && f.misses <= f.hits+f.proofs {
			return i
		}
	}
	for i, w := range l.windows {
		f := l.pairs[i]
		if w == nil || f.hits < 3 || f.misses*4 > f.hits ||
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
		law.Edge = max(1, time.Duration(l.edge[best]))
	}
	return law
}

// believe reports whether that is another law than before.
func (l *Learner) believe(now time.Time, law limit.Law) bool {
	old := l.belief.Law
	if old.Shape == law.Shape && (old.Edge-law.Edge)%l.o.Window == 0 {
		return false
	}
	if old.Shape == l.o.Known.Shape && old.Shape.Windowed() && law.Shape == limit.ShapeSliding {
		return false // it says less than what is known
	}
	if old.Shape != law.Shape {
		l.belief.Since, l.struck.n = now, 0
	}
	l.belief.Law, l.belief.Until = law, time.Time{}
	return true
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

func abs(x int64) int64 { return max(x, -x) }
