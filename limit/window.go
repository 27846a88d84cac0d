package limit

import (
	"fmt"
	"math"
	"time"
)

// A Shape is how a limit gives back what was used.
type Shape uint8

const (
	// ShapeUnknown is a limit whose shape nobody knows. It is metered as a bucket.
	ShapeUnknown Shape = iota

	// ShapeBucket refills evenly: [Bucket].
	ShapeBucket

	// ShapeFixed counts from an edge to the next one and then forgets:
	//
	//	used(t) = what was charged since the last edge
	ShapeFixed

	// ShapeLog counts what was charged in the window that ends now:
	//
	//	used(t) = what was charged after t - window
	ShapeLog

	// ShapeTwoWindows weights the last window by what is left of this one:
	//
	//	used(t) = charged in this window + charged in the last * rest / window
	ShapeTwoWindows

	// ShapeSliding is a sliding window of which nobody knows whether it is a log or
	// two weighted windows. Both are kept, and both must have room.
	ShapeSliding
)

// String names the shape as snapshots do.
func (s Shape) String() string {
	switch s {
	case ShapeUnknown:
		return "unknown"
	case ShapeBucket:
		return "bucket"
	case ShapeFixed:
		return "fixed window"
	case ShapeLog:
		return "sliding log"
	case ShapeTwoWindows:
		return "two weighted windows"
	case ShapeSliding:
		return "sliding window"
	}
	return fmt.Sprintf("Shape(%d)", uint8(s))
}

// Windowed reports whether the shape is metered by a [Window], not a [Bucket].
func (s Shape) Windowed() bool { return s >= ShapeFixed && s <= ShapeSliding }

// A Law is a shape with what is known of its instants. The zero Law is a limit
// of unknown shape.
type Law struct {
	Shape Shape

	// Edge is any instant at which a window begins, before or after now. The
	// windows of ShapeFixed, ShapeTwoWindows and ShapeSliding are counted from it.
	Edge time.Duration

	// FirstCall: a window begins with the first charge after a rest. For ShapeFixed
	// a rest is the end of a window; for the weighted windows two windows without
	// use. An Edge other than 0 is where a window began that is not at rest yet.
	FirstCall bool

	// Margin is added to the window of a log, for the time a call is under way.
	// The other windows are exactly their length: a longer one would drift.
	Margin time.Duration

	// Quiet is the time before an edge of ShapeFixed in which nothing is admitted:
	// a call that leaves then may be counted after the edge.
	Quiet time.Duration

	// Spare is how many units of the limit a window leaves unused, less than the
	// limit: two clocks and two ways of counting differ a little. A bucket does not
	// read it.
	Spare int64

	// AtEnd: the other side charges a call, or its output, when it ends. Then the limit
	// has two further books. One counts each call from the end of its reservation, at the
	// actual cost. The other, of a limit on Tokens, counts input from the start and output
	// from the end. A cost needs room in all books. Only the further ones leave Spare
	// unused, for calls that end while another is on its way. A [Window] alone, a bucket,
	// and a ledger without [Meters].Ends do not read it.
	AtEnd bool
}

// From is l with its Edge counted from now instead of from 1970.
func (l Law) From(now time.Time) Law {
	if l.FirstCall && l.Edge == 0 {
		return l
	}
	l.Edge -= time.Duration(now.UnixNano())
	if l.FirstCall && l.Edge == 0 {
		l.Edge = 1 // 0 would be none
	}
	return l
}

func (l Law) check(r Rate) error {
	switch {
	case !l.Shape.Windowed():
		return &ConfigError{"Law.Shape", l.Shape, "must be a window"}
	case l.Margin < 0 || l.Margin > r.Window:
		return &ConfigError{"Law.Margin", l.Margin, "must be from 0 to the window"}
	case l.Spare < 0 || l.Spare >= r.N:
		return &ConfigError{"Law.Spare", l.Spare, "must be from 0 to less than the limit"}
	case l.Quiet < 0 || l.Quiet >= r.Window:
		return &ConfigError{"Law.Quiet", l.Quiet, "must be from 0 to less than the window"}
	}
	return nil
}

// A Window is one limit that counts what was used, in one of the shapes of
// [Law]. Like [Bucket] it is a plain value with neither lock nor clock: instants
// are arguments, counted in nanoseconds from a base that the caller chooses.
//
// It is exact. Charges are whole units; the weight of the last window is kept in
// grains, as many to a unit as the window has nanoseconds. What a log may forget
// is bounded: it has [logSlots] slots to a window. Charges of one slot age
// together, when the latest of them does. So a log errs by a slot at most, 0.2 %
// of the window, and always waits rather than sends.
//
// What was charged beyond the limit counts as the rest does, and is forgotten
// when the window that it belongs to is. The zero Window is not usable; call
// [NewWindow]. It must not be used by several goroutines at once.
type Window struct {
	law   Law
	rate  Rate
	n     int64
	w     uint64  // window in nanoseconds, and grains to a unit
	at    int64   // the last instant
	keeps bool    // a log, whatever the shape
	panes panes   // ShapeFixed, ShapeTwoWindows, ShapeSliding
	log   *useLog // ShapeLog, ShapeSliding; of others what a later law is begun with
}

// NewWindow returns a window at instant 0 in which nothing was used. The largest
// admissible cost is the rate's N. A rate or a law that cannot be is a
// [*ConfigError].
func NewWindow(r Rate, l Law) (*Window, error) {
	if err := r.check("Window"); err != nil {
		return nil, err
	}
	if err := l.check(r); err != nil {
		return nil, err
	}
	w := &Window{law: l}
	w.start(r, 0)
	return w, nil
}

// start forgets all use.
func (w *Window) start(r Rate, now int64) {
	w.rate, w.n, w.w, w.at = r, max(1, r.N-w.law.Spare), uint64(r.Window), now
	w.panes = panes{open: !w.law.FirstCall || w.law.Edge != 0, named: w.law.FirstCall}
	if w.panes.open {
		w.panes.edge = edgeBefore(now, int64(w.law.Edge), int64(r.Window))
	}
	w.log = nil
	if w.logged() || w.keeps {
		w.log = newLog(int64(r.Window + w.law.Margin))
	}
}

// edgeBefore is the last instant not after now that is whole windows from edge.
func edgeBefore(now, edge, window int64) int64 {
	past := (now%window - edge%window) % window
	if past < 0 {
		past += window
	}
	return now - past
}

// Law is the law that w was made with.
func (w *Window) Law() Law { return w.law }

// Take spends cost, in units, at instant now if there is room for it, and
// returns 0. Otherwise nothing is spent, and it returns how long to wait. Under
// no other use the take succeeds at exactly now+wait and not a nanosecond before.
// Errors are those of [Bucket.Take].
func (w *Window) Take(now time.Duration, cost int64) (wait time.Duration, err error) {
	switch {
	case cost < 0:
		return 0, ErrInvalid
	case cost > w.n:
		return 0, ErrTooLarge
	case int64(now) < w.at:
		return 0, ErrBackwards
	}
	if !w.take(int64(now), cost) {
		return time.Duration(w.waitFrom(int64(now), 0, cost)), nil
	}
	return 0, nil
}

// Return gives back units of a charge made at instant taken. They come back only
// if that charge still counts: what a window has forgotten it gives back to
// nobody. No more comes back than was charged at that time.
func (w *Window) Return(taken time.Duration, units int64) {
	w.refund(int64(taken), clampUnits(units))
}

// Charge is [Bucket.Charge]: it spends units at now whether or not there is room.
func (w *Window) Charge(now time.Duration, units int64) {
	w.advance(int64(now))
	w.charge(w.at, clampUnits(units))
}

// Lower brings credit at instant now down to units, if it is above, rounded down
// to whole units used. The missing units count as used now, which is the latest
// possible. An instant earlier than the last counts as the last.
func (w *Window) Lower(now time.Duration, units int64) {
	w.advance(int64(now))
	w.lower(max(-MaxUnits, min(units, MaxUnits)))
}

// LowerSent takes in that at instant sent, not after now, the other side had
// remaining units left. charged and returned are what was charged and given back
// since. What was used by others shows as a difference, counts from sent on, and
// is forgotten with what else was used then. It reports whether credit fell.
func (w *Window) LowerSent(now, sent time.Duration, remaining, charged, returned int64) bool {
	w.advance(int64(now))
	return w.lowerSent(int64(sent), max(-MaxUnits, min(remaining, MaxUnits)), charged, returned)
}

// Drain brings credit down so that at now+d no more than keep units are there. It
// can only do so while use of now still counts then: after the edge of a fixed
// window it does not. It reports whether credit fell.
func (w *Window) Drain(now time.Duration, keep int64, d time.Duration) bool {
	w.advance(int64(now))
	return w.drain(clampUnits(keep), int64(max(0, d)))
}

// SetRate changes the limit at instant now. A higher limit leaves credit as it
// is: the difference counts as used now. Under a lower one use stands, so credit
// falls by the difference. Another window begins
// with the credit that there was, at most the new limit. Errors are those of
// [NewWindow] and change nothing.
func (w *Window) SetRate(now time.Duration, r Rate) error {
	if err := r.check("Window"); err != nil {
		return err
	}
	if err := w.law.check(r); err != nil {
		return err
	}
	w.advance(int64(now))
	w.set(r)
	return nil
}

// Credit is the whole units there at the last instant, rounded down; negative is
// use beyond the limit.
func (w *Window) Credit() int64 { return w.levelAt(w.at).floorDiv(w.w) }

// logged reports whether the log decides.
func (w *Window) logged() bool {
	return w.law.Shape == ShapeLog || w.law.Shape == ShapeSliding
}

// counts reports whether all that was charged from that instant on counts in full now.
func (w *Window) counts(since int64) bool {
	if w.paned() {
		return w.panes.open && since >= w.panes.edge
	}
	return since > w.at-int64(w.w)
}

func (w *Window) paned() bool { return w.law.Shape != ShapeLog }

func (w *Window) advance(now int64) {
	if now <= w.at {
		return
	}
	w.at = now
	if w.paned() {
		w.panes = w.panes.rolled(now, w)
	}
}

// levelAt is the credit at an instant not before the last, in grains, if nothing
// happens until then.
func (w *Window) levelAt(now int64) wide {
	all := mul(uint64(w.n), w.w)
	level := all
	if w.paned() {
		level = all.sub(w.panes.rolled(now, w).used(now, w))
	}
	if w.logged() {
		level = level.min(all.sub(mul(uint64(w.log.used(now)), w.w)))
	}
	return level
}

// take spends cost if there is room. A cost of zero always goes, and one above the
// limit where nothing else counts.
func (w *Window) take(now, cost int64) bool {
	w.advance(now)
	if cost == 0 {
		return true
	}
	if !w.admits(cost) {
		return false
	}
	w.charge(w.at, cost)
	return true
}

// admits reports whether cost may go at the last instant.
func (w *Window) admits(cost int64) bool {
	return cost == 0 || !w.quiet(w.at) && !w.levelAt(w.at).less(mul(uint64(min(cost, w.n)), w.w))
}

// quiet reports whether at is too near to the next edge. A window that begins
// with the first call has no edge before that.
func (w *Window) quiet(at int64) bool {
	return w.law.Shape == ShapeFixed && w.law.Quiet > 0 && w.panes.open &&
		at >= w.panes.edge+int64(w.w)-int64(w.law.Quiet)
}

// charge enters units used at instant at, which is not after the last.
func (w *Window) charge(at, units int64) {
	if units <= 0 {
		return
	}
	if w.paned() {
		w.panes.charge(at, units, w)
	}
	if w.log != nil {
		w.log.charge(at, units)
	}
}

func (w *Window) refund(taken, units int64) {
	if units <= 0 {
		return
	}
	if w.paned() {
		if p := w.panes.of(taken, w); p != nil {
			*p -= min(*p, units)
		}
		w.panes = w.panes.rested(w)
	}
	if w.log != nil {
		w.log.refund(taken, units)
	}
}

// lower charges what credit is above units. Both books of ShapeSliding are
// charged alike: use by others counts in each.
func (w *Window) lower(units int64) bool {
	return w.others(w.at, w.levelAt(w.at).sub(mulSigned(units, w.w)))
}

// others charges what others used at instant at, in grains, and reports whether
// credit fell.
func (w *Window) others(at int64, grains wide) bool {
	if grains.hi < 0 || grains == (wide{}) {
		return false
	}
	before := w.levelAt(w.at)
	w.charge(at, min(grains.ceilDiv(w.w), 4*MaxUnits))
	return w.levelAt(w.at).less(before)
}

// lowerSent: the use at sent is the use since then, less later charges, plus later
// returns. That holds for every shape. Of
// the two books of ShapeSliding one is wrong. So a reading that one of them
// explains shows no use by others: entered in the other, it would stay there for
// a window.
func (w *Window) lowerSent(sent, remaining, charged, returned int64) bool {
	missing, known := w.missing(sent, remaining, charged, returned)
	return known && w.others(min(sent, w.at), missing)
}

// missing is what others used by sent, in grains; not above zero is nothing. It is
// false where the use of that time is forgotten.
func (w *Window) missing(sent, remaining, charged, returned int64) (missing wide, known bool) {
	sent = min(sent, w.at)
	left := mulSigned(w.n-remaining+charged-returned, w.w)
	if w.paned() {
		if then, ok := w.panes.usedSince(sent, w); ok {
			missing, known = left.sub(then), true
		}
	}
	if w.logged() && sent > w.at-w.log.span {
		m := left.sub(mul(uint64(w.log.since(sent-w.log.span)), w.w))
		if !known || m.less(missing) {
			missing, known = m, true
		}
	}
	return missing, known
}

func (w *Window) drain(keep, d int64) bool {
	then := later(w.at, d)
	fell := false
	if w.paned() {
		over := mulSigned(w.n-keep, w.w).sub(w.panes.rolled(then, w).used(then, w))
		if weight := w.panes.weight(then, w); weight > 0 && over.hi >= 0 && over != (wide{}) {
			w.panes.charge(w.at, min(over.ceilDiv(weight), MaxUnits), w)
			fell = true
		}
	}
	if w.logged() && d < w.log.span {
		if x := w.n - keep - w.log.used(then); x > 0 {
			w.log.charge(w.at, x)
			fell = true
		}
	}
	return fell
}

func (w *Window) set(r Rate) {
	if uint64(r.Window) == w.w {
		n := max(1, r.N-w.law.Spare)
		if more := n - w.n; more > 0 {
			w.charge(w.at, more)
		}
		w.rate, w.n = r, n
		return
	}
	credit := w.Credit()
	w.start(r, w.at)
	w.charge(w.at, w.n-min(credit, w.n))
}

// become returns w under another law of the same rate, with the use that w has
// kept. w must keep a log. An edge that moves raises no credit: an edge that is
// found late would else open a window that was used up already.
func (w *Window) become(l Law) *Window {
	next := &Window{law: l, keeps: true}
	from := max(0, w.at-2*int64(w.w))
	next.start(w.rate, from)
	for slot := max(w.log.oldest(), from/w.log.grid); slot <= w.log.head; slot++ {
		if c := w.log.at(slot); c.units > 0 && c.at >= from {
			next.advance(c.at)
			next.charge(c.at, c.units)
		}
	}
	next.advance(w.at)
	if more := next.Credit() - w.Credit(); more > 0 && l.Shape == w.law.Shape {
		next.charge(next.at, more)
	}
	return next
}

// Copy returns a window with the same use. From then on each counts for itself.
func (w *Window) Copy() *Window {
	c := *w
	if w.log != nil {
		log := *w.log
		c.log = &log
	}
	return &c
}

// waitFrom is [Bucket.waitFrom] for a window: the nanoseconds after start until
// cost is admissible when ahead units are spent first, each as early as it can
// be. It is exact when nobody is ahead. Else it is never too late: those ahead
// are taken as if they could be divided at will.
func (w *Window) waitFrom(start, ahead, cost int64) int64 {
	if cost == 0 && ahead == 0 {
		return 0
	}
	cost = min(cost, w.n)
	wait := int64(0)
	if w.paned() {
		wait = w.panes.rolled(start, w).wait(start, ahead, cost, w)
	}
	if w.logged() {
		wait = max(wait, w.log.wait(start, ahead, cost, w.n))
	}
	return wait
}

// panes are the windows counted from an edge: this one and the two before. The
// third is kept for readings that were sent in the second.
type panes struct {
	edge             int64 // where this window began
	cur, last, prior int64 // units used
	open             bool  // false: the next charge begins a window
	named            bool  // a window that Law.Edge names, not charged yet
}

// mostUsed keeps sums of units within 62 bits; more use than that saturates.
const mostUsed = 1 << 61

// rolled is p at now.
func (p panes) rolled(now int64, w *Window) panes {
	window := int64(w.w)
	if !p.open || now-p.edge < window {
		return p
	}
	switch k := (now - p.edge) / window; k {
	case 1:
		p.edge, p.cur, p.last, p.prior = p.edge+window, 0, p.cur, p.last
	case 2:
		p.edge, p.cur, p.last, p.prior = p.edge+2*window, 0, 0, p.cur
	default:
		p.edge, p.cur, p.last, p.prior = p.edge+k*window, 0, 0, 0
	}
	return p.rested(w)
}

// rested closes windows that begin with a call, once nothing in them counts.
func (p panes) rested(w *Window) panes {
	if w.law.FirstCall && !p.named && p.cur == 0 && (p.last == 0 || w.law.Shape == ShapeFixed) {
		p.open = false
	}
	return p
}

// used is in grains, at an instant within this window.
func (p panes) used(now int64, w *Window) wide {
	if !p.open {
		return wide{}
	}
	used := mul(uint64(p.cur), w.w)
	if w.law.Shape != ShapeFixed {
		used = used.add(mul(uint64(p.last), w.w-uint64(now-p.edge)))
	}
	return used
}

// of is the count of the window that at lies in, nil if it is forgotten.
func (p *panes) of(at int64, w *Window) *int64 {
	window := int64(w.w)
	switch {
	case at >= p.edge:
		return &p.cur
	case w.law.Shape == ShapeFixed:
		return nil
	case at >= p.edge-window:
		return &p.last
	case at >= p.edge-2*window:
		return &p.prior
	}
	return nil
}

func (p *panes) charge(at, units int64, w *Window) {
	if !p.open {
		*p = panes{edge: w.at, open: true}
		at = w.at
	}
	p.named = false
	if c := p.of(at, w); c != nil {
		*c = min(*c+units, mostUsed)
	}
}

// weight is what a unit charged now counts at instant then, in grains.
func (p panes) weight(then int64, w *Window) uint64 {
	edge := p.edge
	if !p.open {
		edge = w.at
	}
	switch age := uint64(then - edge); {
	case age < w.w:
		return w.w
	case w.law.Shape != ShapeFixed && age < 2*w.w:
		return 2*w.w - age
	}
	return 0
}

// usedSince is what counted at instant at together with all that was charged
// since, in grains. It is false where the windows of that time are forgotten.
func (p *panes) usedSince(at int64, w *Window) (wide, bool) {
	window := int64(w.w)
	switch {
	case !p.open:
		// Nothing counts any more, or nothing was charged yet.
		return wide{}, w.law.FirstCall && at == w.at
	case at >= p.edge:
		return p.used(at, w), true
	case w.law.Shape == ShapeFixed || at < p.edge-window:
		return wide{}, false
	}
	used := mul(uint64(p.cur)+uint64(p.last), w.w)
	return used.add(mul(uint64(p.prior), uint64(p.edge-at))), true
}

// wait is for p rolled to start.
func (p panes) wait(start, ahead, cost int64, w *Window) int64 {
	if !p.open {
		p = panes{edge: start, open: true}
	}
	window, need := int64(w.w), ahead+cost
	if w.law.Shape == ShapeFixed {
		room := max(0, w.n-p.cur)
		if start >= p.edge+window-int64(w.law.Quiet) {
			room = 0
		}
		if need <= room {
			return 0
		}
		return laterBy(p.edge+window-start, (need-room-1)/w.n, window)
	}
	if room := max(0, w.n-p.cur); need > room {
		// Not in this window. What is ahead fills it to the brim, one alone leaves
		// it as it is.
		last, rest := p.cur, need
		if ahead > 0 {
			last, rest = max(p.cur, w.n), need-room
		}
		k := (rest - 1) / w.n
		if k > 0 {
			last = w.n
		}
		e := age(rest-k*w.n, last, 0, w)
		return laterBy(later(p.edge+window-start, e), k, window)
	}
	return max(0, p.edge+age(need, p.last, p.cur, w)-start)
}

// age is how old a window must be, in nanoseconds, for need to fit beside cur
// and the weighted last.
func age(need, last, cur int64, w *Window) int64 {
	if last == 0 {
		return 0
	}
	room := mul(uint64(w.n-cur-need), w.w)
	return int64(w.w) - min(int64(w.w), room.floorDiv(uint64(last)))
}

// laterBy is d + k*window without wrapping.
func laterBy(d, k, window int64) int64 {
	if k > (math.MaxInt64-d)/window {
		return math.MaxInt64
	}
	return d + k*window
}
