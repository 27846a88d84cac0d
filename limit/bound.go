package limit

import "time"

// bound is a Limit at work in a scope: a meter, and what belongs to it. The
// limiter uses the meter by the methods of Bucket and those in this file only.
// Another meter of the same methods changes nothing elsewhere.
type bound struct {
	meter
	unit Unit
	born uint64 // table.seq when it came; see correct

	cfg  *Limit // in force
	conf *Limit // as configured; nil if it was only put in force

	line *line // of those who lack it; nil until somebody does
	rare *rare // nil if all of it is zero
}

// rare is what few limits have. All others take less memory.
type rare struct {
	held int64    // the instant until which Pause or Drain set the level back
	took wide     // how far, in grains
	when *instant // of which readings speak; nil before the first

	// The reading that lowered the bucket last: the instant that it speaks of, and the
	// reservation that brought it.
	read   int64
	reader uint64

	charged bool // calls from before the limit were charged on the other side: see earlier
}

// held is rare.held.
func (b *bound) held() int64 {
	if b.rare == nil {
		return 0
	}
	return b.rare.held
}

// needsRare is rare, made if it is not there.
func (b *bound) needsRare() *rare {
	if b.rare == nil {
		b.rare = &rare{}
	}
	return b.rare
}

// newBound makes a limit at instant now. epoch is the instant 0, counted from 1970.
func newBound(cfg *Limit, now, epoch int64) bound {
	burst, largest := cfg.sizes()
	b := bound{meter: meter{Bucket: newBucket(cfg.Rate, burst, largest, now)}, unit: cfg.Unit, cfg: cfg}
	if cfg.Empty {
		b.level = wide{}
	}
	b.obey(&Limit{}, epoch)
	return b
}

// obey takes over the law and the guard of b.cfg, at the last instant, where they
// differ from those of old.
func (b *bound) obey(old *Limit, epoch int64) {
	before := b.there()
	if law := b.cfg.Law; law != old.Law {
		if !law.FirstCall || law.Edge != 0 {
			law.Edge -= time.Duration(epoch)
			if law.FirstCall && law.Edge == 0 {
				law.Edge = 1
			}
		}
		b.follow(law, b.unit == Tokens) // cannot fail: checked with the limit
	}
	switch g := b.cfg.Guard; {
	case g == old.Guard:
	case g > 0 && old.Guard > 0:
		b.more.guard.set(b.at, b.cfg.Rate, g)
	case g == 0 && b.burst < b.cfg.Rate.N && b.more.window == nil:
		// A short burst instead of the guard: what went through that is not there.
		b.more.guard.pace.advance(b.at)
		b.lower(b.more.guard.pace.level)
		b.protect(0)
	default:
		b.protect(g)
	}
	if x := b.more; x != nil && x.window == nil && !x.guarded {
		b.more = nil
	}
	if b.hold(before) && b.rare != nil {
		b.rare.took = wide{} // what is taken now does not come back with the end of a pause
	}
}

// beginAs gives b, which is new, the use that is counted in the window of like, if both
// are the same limit. Calls of the scope of b are some of those of like, so b holds no
// more than it may. Drained instead, a window was empty for all of its length.
func (b *bound) beginAs(like *bound) {
	x, of := b.more, like.more
	if x == nil || of == nil || x.window == nil || of.window == nil || b.cfg.Law != like.cfg.Law || b.cfg.Rate != like.cfg.Rate {
		return
	}
	x.window = of.window.Copy()
	if x.ends != nil {
		x.ends = of.ends.copy() // of the same law
	}
}

// short reports whether c must wait at now, and until when.
func (b *bound) short(now, c int64) (at int64, lacks bool) {
	if b.more != nil {
		return b.shortMore(now, c)
	}
	b.Bucket.advance(now)
	if !b.lacks(c) {
		return 0, false
	}
	return later(now, b.Bucket.waitFrom(now, 0, c)), true
}

func (b *bound) shortMore(now, c int64) (at int64, lacks bool) {
	b.advance(now)
	if b.admits(now, c) {
		return 0, false
	}
	return later(now, max(1, b.waitFrom(now, 0, c))), true
}

// leaves reports whether, with c spent at now, next can still go at the instant
// then.
func (b *bound) leaves(now, c, then, next int64) bool {
	if b.more != nil {
		return later(now, b.waitFrom(now, c, next)) <= then
	}
	rest := b.level.sub(mul(uint64(c), b.w)).add(mul(b.n, uint64(then-now))).min(b.cap)
	return !rest.less(b.need(next))
}

// full reports whether b holds at now what a new one of its kind would hold.
func (b *bound) full(now int64) bool {
	b.advance(now)
	return b.held() <= now && !b.level.less(b.cap) && (b.more == nil || b.more.window == nil || b.credit() >= int64(b.n))
}

// setBack lowers the bucket of b, at now, so that then is there after d, in
// grains. It reports whether it was above.
func (b *bound) setBack(now int64, then wide, d time.Duration) bool {
	b.advance(now)
	real := b.real(now)
	if !b.lower(then.sub(mul(b.n, uint64(d)))) {
		return false
	}
	x := b.needsRare()
	x.held, x.took = later(now, int64(d)), real.sub(b.level)
	return true
}

// heard lowers b to the level that a reading of the instant at shows, and reports
// whether it was above. The reservation reader brought the reading.
func (b *bound) heard(level wide, at int64, reader uint64) bool {
	if b.read(level) {
		x := b.needsRare()
		x.took, x.read, x.reader = wide{}, at, reader
		return true
	}
	if x := b.rare; x != nil {
		x.took = x.took.min(level.sub(b.level).sub(b.early)) // what was taken below it
	}
	return false
}

// earlier takes in what e gives back, which left before b came. If the other side charges
// what a call reserves, the balance that made b known has the charge of e in it. The level
// was lowered by that, so it is given back; earlier reports that.
// Lost instead, the calls under way when a limit was learned cost a fresh process two
// seconds of the rate for good. Until [Limiter.EarlyScope] says so, it is set aside:
//
//	level + early = the level of a limit that was there when e left
//
// What e used beyond its reservation is charged at its end by any rule, and is taken off.
// An attempt that the other side did not charge is in no balance. It gives back only if its
// debit came after the balance, and was taken off that.
func (b *bound) earlier(l *Limiter, e *entry, a *amounts) bool {
	x := b.rare
	if x == nil || x.reader == 0 {
		return false // no balance has lowered b
	}
	b.advance(l.now())
	d := a.in(b.unit) + b.knew(e, a)
	switch {
	case d < 0:
		b.Bucket.charge(-d)
		return false
	case e.mark.free && e.taken <= later(x.read, settleTime):
		return false
	}
	b.early = b.early.add(mul(uint64(d), b.w))
	if x.charged {
		b.giveEarly()
	}
	return x.charged
}

// knew is how many units, of those that a settlement of e charges, the reading that
// lowered b last has in it: of input, or of all if that reading came at the end of e.
func (b *bound) knew(e *entry, a *amounts) int64 {
	x := b.rare
	if x == nil || !e.mark.set {
		return 0
	}
	own := e.seq == x.reader && e.mark.at <= x.read
	switch {
	case own && e.mark.made:
		return max(0, -a.in(b.unit))
	case b.unit != Input && b.unit != Tokens:
		return 0
	case own || e.mark.left <= x.read-settleTime:
		return max(0, -a[Input])
	}
	return 0
}

// refused lowers b, at now, so that keep units are there after d. It reports
// whether credit fell.
func (b *bound) refused(now, keep int64, d time.Duration) bool {
	fell := b.setBack(now, mul(uint64(keep), b.w), d)
	if b.more != nil {
		fell = b.refusedMore(now, keep, int64(d)) || fell
	}
	return fell
}

// real is what the level would be had it not been set back.
func (b *bound) real(now int64) wide {
	real := b.level
	if now < b.held() {
		real = real.add(b.rare.took)
	}
	if b.cap.less(real) {
		return b.cap
	}
	return real
}

// release ends at now what setBack began: b holds now what it should have held
// then, and never more than it would hold had it not been set back.
func (b *bound) release(now int64) {
	b.advance(now)
	held := b.held()
	if now >= held {
		return
	}
	b.level = b.level.add(mul(b.n, uint64(held-now))).min(b.real(now))
	b.rare.held, b.rare.took = 0, wide{}
}

// change is set at now. A level that was set back is computed anew, to be what
// it would have been when that ends: at the old rate's distance a slower one
// would take long to come up, and a faster one would be early. That may take off
// debt that setting back has made, but no other, and raises no credit.
//
// Overflow: a debt of 2^126, what was taken from it, and 2^103 earned meanwhile.
func (b *bound) change(now int64, r Rate, burst, largest int64) {
	w, left := uint64(r.Window), uint64(max(0, b.held()-now))
	real := b.real(now).rescale(b.w, w)
	then := b.level.add(mul(b.n, left)).rescale(b.w, w).sub(mul(uint64(r.N), left))
	b.set(r, burst, largest)
	if left == 0 {
		return
	}
	anew := func(set wide) wide { // the level, if so much that was set aside is in it
		most := b.level.add(set)
		if most.hi < 0 {
			most = wide{}
		}
		return then.add(set).min(most).min(real.add(set))
	}
	level := anew(wide{})
	b.level, b.early = level, anew(b.early).sub(level)
	b.saturate()
	b.rare.took = real.sub(b.level)
}
