package limit

import "time"

// A meter is what a limit of a [Limiter] counts with: a bucket, and where more is
// known of the limit or less is trusted, a window in its stead or a guard before
// it. The bucket alone is the common case; it costs one comparison more than a
// [Bucket] does.
//
//	nothing more     the bucket decides
//	guard            the guard must have room too
//	window           the window decides, and its end books if its law is AtEnd; the bucket
//	                 is charged along with it
//	both             the bucket and the guard; and the window, unless a reading shows
//	                 for sure that there is room, or its law is a guess (ShapeSliding)
//	                 and none was heard yet
//
// A cost goes through all that decides, or through nothing. All books are charged
// with all that goes. Readings lower the bucket, and a window whose law is known:
// in a window that is a guess, what others seem to use would stay for all of it. It is
// held back while the reading is new.
//
// A window that is the law no more is asked for a while beside the bucket: see leave.
//
// Another law, and a guard that comes or goes, change which books are asked. No credit
// rises by that: see [meter.hold].
type meter struct {
	Bucket
	more *meterMore
}

type meterMore struct {
	guard   Guard
	guarded bool
	window  *Window
	ends    *endBooks // beside a window whose law is AtEnd, or may be; else nil
	atEnd   bool      // they are asked
	open    int64     // units of open reservations, since there was a window
	young   int64     // of them, those taken since that instant
	input   int64     // of those, input
	since   int64
	joint   int64 // until then the bucket is asked beside a window that decides
	over    int64 // units that a window behind a guard has above the newest reading
	stands  int64 // until then
	leaves  int64 // if set, the window is the law no more, and is asked until then
	before  meterBefore
}

// at is the window that is asked at now, or nil.
func (x *meterMore) at(now int64) *Window {
	if x.leaves > 0 && now >= x.leaves {
		return nil
	}
	return x.window
}

// forget lets go of a window that is asked no more at now.
func (x *meterMore) forget(now int64) {
	if x.window != nil && x.at(now) == nil {
		x.lose()
	}
}

// lose lets go of the window. Open reservations are noted beside one alone.
func (x *meterMore) lose() {
	x.window, x.leaves, x.open, x.young, x.input, x.since = nil, 0, 0, 0, 0, 0
}

// opens notes a reservation that was charged just now.
func (x *meterMore) opens(cost int64) {
	x.open += cost
	if !x.window.counts(x.since) {
		x.young, x.input, x.since = 0, 0, x.window.at
	}
	x.young += cost
}

// closes notes the end of a reservation, which may be older than the window.
func (x *meterMore) closes(taken, held, input int64) {
	x.open = max(0, x.open-held)
	if taken >= x.since {
		x.young, x.input = max(0, x.young-held), max(0, x.input-input)
	}
}

// asks reports whether the window is asked. Behind a guard the law of ShapeSliding is a
// guess, which counts only once an answer has said what is left: that may lift the guard.
func (x *meterMore) asks() bool { return !x.guarded || !x.unheard() }

// unheard reports whether the window is a guess of which no answer has said anything. Any
// shape but ShapeSliding is one that somebody has seen.
func (x *meterMore) unheard() bool { return !x.guard.heard && x.window.law.Shape == ShapeSliding }

// trusts reports whether cost needs no room in the window behind a guard: a reading
// shows for sure that there is room, or nothing was heard yet.
func (x *meterMore) trusts(cost int64) bool {
	return x.guarded && (x.unheard() || x.guard.Covers(cost))
}

// admits reports whether the window and the end books have room for cost at now.
func (x *meterMore) admits(now, cost int64) bool {
	return x.window.admits(cost) && (!x.atEnd || x.ends.admits(now, cost))
}

// admitsGuess is admits for a window behind a guard: see [meter.sawOver].
func (x *meterMore) admitsGuess(now, cost int64) bool {
	if cost > 0 && now < x.stands {
		cost += x.over
	}
	return x.admits(now, cost)
}

// meterBefore is what the last take found, so that it can be undone exactly.
type meterBefore struct {
	guard  Guard
	panes  panes
	latest int64 // of the log's slot
	young  int64
	input  int64
	since  int64
}

// take spends cost at now if all that decides has room, else nothing. It is not
// inlined: a hot loop compares more with nil itself and saves a call.
func (m *meter) take(now, cost int64) bool {
	if m.more == nil {
		return m.Bucket.take(now, cost)
	}
	return m.takeMore(now, cost)
}

func (m *meter) takeMore(now, cost int64) bool {
	x := m.more
	x.forget(now)
	if x.guarded && !x.guard.passes(now, cost) {
		return false
	}
	if w := x.window; w != nil {
		w.advance(now)
		x.before.panes, x.before.young, x.before.input, x.before.since = w.panes, x.young, x.input, x.since
		if w.log != nil {
			x.before.latest = w.log.latest(w.at)
		}
		switch {
		case cost > m.max:
			return false
		case x.guarded:
			if !x.trusts(cost) && !x.admitsGuess(now, cost) || !m.Bucket.take(now, cost) {
				return false
			}
		case now < x.joint && m.Bucket.short(now, cost), !x.admits(now, cost):
			return false
		default:
			m.Bucket.advance(now)
			m.Bucket.charge(cost)
		}
		w.charge(w.at, cost)
		x.opens(cost)
	} else if !m.Bucket.take(now, cost) {
		return false
	}
	if x.guarded {
		x.before.guard = x.guard
		x.guard.spend(cost)
	}
	return true
}

// untake undoes the last take, which succeeded at the last instant. No trace is
// left.
func (m *meter) untake(cost int64) {
	m.Bucket.refund(cost)
	x := m.more
	if x == nil {
		return
	}
	if x.guarded {
		x.guard = x.before.guard
	}
	if w := x.window; w != nil {
		w.panes = x.before.panes
		if w.log != nil {
			w.log.undo(w.at, cost, x.before.latest)
		}
		x.open, x.young, x.input, x.since = x.open-cost, x.before.young, x.before.input, x.before.since
	}
}

// admits reports whether takeMore would take cost at now, which is the last
// instant.
func (m *meter) admits(now, cost int64) bool {
	x := m.more
	if x.guarded && !x.guard.passes(now, cost) {
		return false
	}
	covers := func() bool { return cost <= m.max && !m.Bucket.lacks(cost) }
	w := x.at(now)
	if w == nil {
		return covers()
	}
	if x.guarded {
		return covers() && (x.trusts(cost) || x.admitsGuess(now, cost))
	}
	return cost <= m.max && x.admits(now, cost) && (now >= x.joint || !m.Bucket.lacks(cost))
}

// waitFrom is [Bucket.waitFrom]: the longest wait of all that decides.
func (m *meter) waitFrom(start, ahead, cost int64) int64 {
	x := m.more
	if x == nil {
		return m.Bucket.waitFrom(start, ahead, cost)
	}
	w := x.at(start)
	if w != nil && !x.guarded && x.leaves == 0 {
		if start >= x.joint {
			return x.waitFrom(start, ahead, cost)
		}
		wait := min(m.Bucket.waitFrom(start, ahead, cost), x.joint-start)
		return later(wait, x.waitFrom(later(start, wait), ahead, cost))
	}
	wait := m.Bucket.waitFrom(start, ahead, cost)
	if w != nil && !x.trusts(ahead+cost) {
		more := x.waitFrom(start, ahead, cost)
		if x.guarded && start < x.stands {
			more = min(x.waitFrom(start, ahead, cost+x.over), max(more, x.stands-start))
		}
		if x.leaves > 0 {
			more = min(more, x.leaves-start)
		}
		wait = max(wait, more)
	}
	if x.guarded {
		wait = max(wait, x.guard.waitFrom(start, ahead, cost))
	}
	return wait
}

// waitFrom is the longer wait of the window and the end books.
func (x *meterMore) waitFrom(start, ahead, cost int64) int64 {
	wait := x.window.waitFrom(start, ahead, cost)
	if x.atEnd {
		wait = max(wait, x.ends.waitFrom(start, ahead, cost))
	}
	return wait
}

func (m *meter) advance(now int64) {
	m.Bucket.advance(now)
	if x := m.more; x != nil && x.window != nil {
		if x.forget(now); x.window != nil {
			x.window.advance(now)
		}
	}
}

// charge spends without asking, at the last instant.
func (m *meter) charge(units int64) {
	m.Bucket.charge(units)
	x := m.more
	if x == nil {
		return
	}
	if x.guarded {
		x.guard.pace.advance(m.at)
		x.guard.spend(units)
	}
	if x.window != nil {
		x.window.advance(m.at)
		x.window.charge(x.window.at, units)
	}
}

// refund gives back what was charged at instant taken.
func (m *meter) refund(taken, units int64) {
	m.Bucket.refund(units)
	x := m.more
	if x == nil {
		return
	}
	if x.guarded {
		x.guard.refund(units)
	}
	if x.window != nil {
		x.window.refund(taken, units)
	}
}

// credit is the whole units there, rounded down; negative is debt.
func (m *meter) credit() int64 { return m.there().floorDiv(m.w) }

// there is the credit in grains.
func (m *meter) there() wide {
	x := m.more
	if x == nil || x.at(m.at) == nil || !x.asks() {
		return m.level
	}
	at := max(m.at, x.window.at)
	if x.atEnd {
		at = x.ends.at(at)
	}
	level := x.window.levelAt(at)
	if x.atEnd {
		level = level.min(x.ends.levelAt(at))
	}
	if x.guarded || m.at < x.joint { // which of them decides is open
		level = level.min(m.level)
	}
	return level
}

// hold lets no more be there than level, in grains, after the books that are asked
// have changed. What the new ones have on top comes as time passes: a bucket is
// lowered, and a window asks the bucket too, up to its next edge or for a sixth of a
// window. Else an edge or a law that answers made believe would raise credit, and
// a window that is found late would open a second time. For a whole window, a sliding
// minute was used at 98.2 % of the ideal instead of 99.1 %. It reports whether it took
// something.
func (m *meter) hold(level wide) bool {
	if !level.less(m.there()) {
		return false
	}
	m.lower(level)
	if x := m.more; x != nil && x.window != nil && !x.guarded && level.less(m.there()) {
		x.joint = later(m.at, int64(m.w/6))
		if w := x.window; w.law.Shape == ShapeFixed && w.panes.open {
			x.joint = min(x.joint, later(w.panes.edge, int64(w.w)))
		}
	}
	return true
}

// reading is what an answer said was left, in units, and what moved since its call
// was sent.
type reading struct {
	remaining int64
	margin    int64 // of it, held back from bucket and guard
	charged   int64 // since, without what left too soon after it to be later for sure
	unsure    int64 // of it, held back from a guard alone
	told      bool  // the limit was configured
	near      int64 // what left so soon before or after it, without its own charge
	returned  int64 // since
}

// lowerSent takes in a reading of a call sent at that instant. It reports whether
// credit fell.
func (m *meter) lowerSent(sent int64, r reading) bool {
	left := r.remaining - r.margin - r.charged + r.returned
	fell := m.lower(mulSigned(left, m.w).add(mul(m.n, uint64(max(0, m.at-sent)))))
	if m.more == nil {
		return fell
	}
	return m.sawMore(sent, r) || fell
}

// sawMore takes in a reading in the guard and the window.
func (m *meter) sawMore(sent int64, r reading) (fell bool) {
	x := m.more
	left := r.remaining - r.margin - r.charged + r.returned
	if g := &x.guard; x.guarded {
		m.sawOver(sent, r)
		left -= r.unsure
		// left does not subtract r.near, which may be in the reading already. So it
		// is too high by all that went at the same time and is not in the reading.
		// It may lower the units shown, and only sure may raise them. Otherwise a
		// crowd's first answers, which name what each call left, would let a second
		// crowd go.
		units, sure := left, left-r.near
		if g.known {
			units = min(units, g.shown)
		} else {
			units = sure
		}
		g.Shown(time.Duration(sent), max(units, sure), sure)
		if r.unsure > 0 && !r.told {
			x.doubts(m.at, sent, left, r.unsure)
		}
	}
	switch {
	case x.window == nil || x.guarded:
		return false
	case x.atEnd:
		x.window.advance(m.at)
		n := x.ends.lowerSent(m.at, sent, r.remaining, x.open)
		x.window.charge(sent, n)
		return n > 0
	}
	x.window.advance(m.at)
	return x.window.lowerSent(sent, r.remaining, r.charged, r.returned)
}

// doubts takes in that units of a balance are held back by the guard, which had left besides
// at sent. The pace knows neither: of a small bucket it would let all go. It holds them back
// of what may have been refilled by now. They go as soon as a later reading shows them.
// What is held back did not go: it is no burst that passed. A configured limit keeps its
// pace: buckets of a minute and less lost 0.3 to 1.4 % of the ideal, and hardly any was
// refused before.
func (x *meterMore) doubts(now, sent, left, unsure int64) {
	p := &x.guard.pace
	p.advance(now)
	there := mulSigned(left+unsure, p.w).add(mul(p.n, uint64(max(0, now-sent)))).min(p.cap)
	if p.lower(there.sub(mul(uint64(unsure), p.w))) {
		x.guard.full = false
	}
}

// sawOver notes by how much a reading shows less than a window behind a guard has. Prices
// are low until usage is heard, and calls under way then are in no books: of eight
// drains of a sliding minute five had a call refused after 8 to 18 s, and waited 50 s. The
// window is not lowered, for it may be the wrong one. It is asked for so much more, up to
// a newer reading or for a sixth of a window: without calls there is none. What came
// back near to a reading may be in it already, so one reading does not take all of that
// back: when it took a quarter, three of twelve drains had a call refused.
func (m *meter) sawOver(sent int64, r reading) {
	x := m.more
	if x.window == nil || sent < x.guard.newest {
		return
	}
	w := x.window
	w.advance(m.at)
	if missing, known := w.missing(sent, r.remaining, r.charged, r.returned); known {
		x.over = max(x.over-x.over/16, w.law.Spare-wide{}.sub(missing).floorDiv(w.w))
		x.over = max(0, min(x.over, MaxUnits))
		x.stands = later(m.at, int64(m.w/6))
	}
}

// drain lets keep be there at d from now, and nothing beyond.
func (m *meter) drain(keep, d int64) bool {
	fell := m.lower(mul(uint64(keep), m.w).sub(mul(m.n, uint64(d))))
	if x := m.more; x != nil && x.window != nil {
		return x.drain(m, keep, d)
	}
	return fell
}

// drain drains the window that decides. Beside end books it is the bucket that is
// asked too after d, for a sixth of a window: what the other side knows of calls that
// have ended is on its way, and would be charged twice.
func (x *meterMore) drain(m *meter, keep, d int64) (fell bool) {
	x.window.advance(m.at)
	if !x.atEnd {
		return x.window.drain(keep, d)
	}
	before := m.there()
	x.joint = max(x.joint, later(m.at, later(d, int64(m.w/6))))
	return m.there().less(before)
}

// refusedMore takes in a refusal at now: the guard is as at the start. Without one
// the law is known, and after d the window holds keep units and nothing beyond. Of
// an unknown law the bucket and the guard are drained alone. A charge that enters
// the window now would stay there for all of it, with any wait of the refusal.
func (m *meter) refusedMore(now, keep, d int64) (fell bool) {
	x := m.more
	if x.guarded {
		x.guard.Refused(time.Duration(now))
	} else if x.window != nil {
		fell = x.drain(m, keep, d)
	}
	return fell
}

// atOnce is how much a guard lets go at now, in units.
func (m *meter) atOnce(now int64) int64 {
	x := m.more
	if x == nil || !x.guarded || x.guard.open {
		return MaxUnits
	}
	x.guard.pace.advance(now)
	n := x.guard.pace.Credit()
	if x.guard.known {
		n = max(n, x.guard.shown)
	}
	return n
}

// capacity is how much may go at once after a rest, in units, as far as is known.
func (m *meter) capacity() int64 {
	n := m.burst
	if x := m.more; x != nil {
		if x.guarded {
			n = min(n, x.guard.Burst())
		} else if x.window != nil && x.leaves == 0 {
			n = int64(m.n)
		}
	}
	return max(0, n)
}

// set changes the rate at the last instant.
func (m *meter) set(r Rate, burst, largest int64) {
	m.Bucket.set(r, burst, largest)
	x := m.more
	if x == nil {
		return
	}
	if x.guarded {
		x.guard.set(m.at, r, x.guard.base)
	}
	if x.window != nil {
		x.window.advance(m.at)
		x.window.set(r)
	}
	if x.ends != nil {
		x.ends.each(m.at, func(w *Window) { w.set(r) })
	}
}

// follow makes the meter one of that law, at the last instant. The first window
// begins as if all that the bucket has not were used now; a later one with what
// was used by the books so far. Under a bucket, or an unknown law, the bucket
// decides, which was charged all along. Only the first window's rate and law can
// be wrong: a [*ConfigError], which changes nothing.
func (m *meter) follow(l Law, halves bool) error {
	r := Rate{int64(m.n), time.Duration(m.w)}
	if !l.Shape.Windowed() {
		m.leave()
		return nil
	}
	if err := l.check(r); err != nil {
		return err
	}
	if m.more == nil {
		m.more = &meterMore{}
	}
	x, credit, input, starts := m.more, m.credit(), int64(0), l
	x.forget(m.at)
	x.leaves = 0
	if l.AtEnd {
		starts.Spare = 0
	}
	if w := x.window; w != nil {
		if w.advance(m.at); w.counts(x.since) {
			credit, input = credit+x.young, x.input
		}
		x.window = w.become(starts)
	} else {
		x.window = &Window{law: starts, keeps: true}
		x.window.start(r, m.at)
		x.window.charge(m.at, r.N-min(m.Bucket.Credit(), r.N))
	}
	// A window that is a guess has end books that are not asked yet. Begun when charges at
	// the end are found, they had all use of the window before at that instant. A burst
	// waited for 27 s.
	switch {
	case !l.AtEnd && l.Shape != ShapeSliding:
		x.ends = nil
	case x.ends == nil:
		// What open calls hold is charged when they end. Charged now as well, it held a
		// whole window back for a minute. What left before the last edge is in no credit:
		// taken off as well, it made as much as had ended since the edge free.
		x.ends = newEndBooks(r, l, halves, m.at, credit, input)
	default:
		x.ends.become(m.at, l)
	}
	x.atEnd = l.AtEnd
	return nil
}

// leave ends the law of the window, if there is one. Where the bucket holds more, both are
// asked until a third of the rate would have refilled that, a sixth of a window at most.
// With the whole rate, one call more of 1,000 was refused. With a sixth each time, a bucket
// of 10 s lost 3 to 15 % of its first minute. A bucket that is lowered at once instead lacks
// for good what was refilled while the window stood: up to 3 s of the rate in a drain.
func (m *meter) leave() {
	x := m.more
	if x == nil || x.window == nil || x.leaves > 0 {
		return
	}
	x.ends, x.atEnd = nil, false
	left := x.window.levelAt(max(m.at, x.window.at))
	if !left.less(m.level) {
		x.lose()
		return
	}
	x.leaves = later(m.at, min(int64(m.w/6), max(1, 3*min(int64(m.w), m.level.sub(left).ceilDiv(m.n)))))
	x.joint = x.leaves
}

// protect puts a guard of that burst before the bucket; 0 takes it away.
func (m *meter) protect(burst int64) {
	if burst == 0 {
		if m.more != nil {
			m.more.guarded = false
		}
		return
	}
	if m.more == nil {
		m.more = &meterMore{}
	}
	m.more.guard = newGuard(Rate{int64(m.n), time.Duration(m.w)}, burst, m.at)
	m.more.guarded = true
}
