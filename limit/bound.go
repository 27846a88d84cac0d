package limit

import "time"

// bound is a Limit at work in a scope: a meter, and what belongs to it. The
// limiter uses the meter by the methods of Bucket and those in this file only, so
// another meter of the same methods changes nothing elsewhere.
type bound struct {
	Bucket
	unit Unit
	born uint64 // table.seq when it came; see correct

	cfg  *Limit // in force
	conf *Limit // as configured; nil if it was only put in force

	held int64 // the instant until which Pause or Drain set the level back
	took wide  // how far, in grains

	line *line // of those who lack it; nil until somebody does
}

func newBound(cfg *Limit, now int64) bound {
	burst, largest := cfg.sizes()
	b := bound{Bucket: newBucket(cfg.Rate, burst, largest, now), unit: cfg.Unit, cfg: cfg}
	if cfg.Empty {
		b.level = wide{}
	}
	return b
}

// short reports whether c must wait at now, and until when.
func (b *bound) short(now, c int64) (at int64, lacks bool) {
	b.advance(now)
	if !b.lacks(c) {
		return 0, false
	}
	return later(now, b.waitFrom(now, 0, c)), true
}

// leaves reports whether, with c spent at now, next can still go at the instant
// then.
func (b *bound) leaves(now, c, then, next int64) bool {
	rest := b.level.sub(mul(uint64(c), b.w)).add(mul(b.n, uint64(then-now))).min(b.cap)
	return !rest.less(b.need(next))
}

// full reports whether b holds at now what a new one of its kind would hold.
func (b *bound) full(now int64) bool {
	b.advance(now)
	return b.held <= now && !b.level.less(b.cap)
}

// setBack lowers b, at now, so that then is there after d, in grains. It reports
// whether b was above.
func (b *bound) setBack(now int64, then wide, d time.Duration) bool {
	b.advance(now)
	real := b.real(now)
	if !b.lower(then.sub(mul(b.n, uint64(d)))) {
		return false
	}
	b.held, b.took = later(now, int64(d)), real.sub(b.level)
	return true
}

// real is what the level would be had it not been set back.
func (b *bound) real(now int64) wide {
	real := b.level
	if now < b.held {
		real = real.add(b.took)
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
	if now >= b.held {
		return
	}
	b.level = b.level.add(mul(b.n, uint64(b.held-now))).min(b.real(now))
	b.held, b.took = 0, wide{}
}

// change is set at now. A level that was set back is computed anew, to be what
// it would have been when that ends: at the old rate's distance a slower one
// would take long to come up, and a faster one would be early. That may take off
// debt that setting back has made, but no other, and raises no credit.
//
// Overflow: a debt of 2^126, what was taken from it, and 2^103 earned meanwhile.
func (b *bound) change(now int64, r Rate, burst, largest int64) {
	w, left := uint64(r.Window), uint64(max(0, b.held-now))
	real := b.real(now).rescale(b.w, w)
	then := b.level.add(mul(b.n, left)).rescale(b.w, w).sub(mul(uint64(r.N), left))
	b.set(r, burst, largest)
	if left == 0 {
		return
	}
	most := b.level
	if most.hi < 0 {
		most = wide{}
	}
	b.level = then.min(most).min(real)
	b.saturate()
	b.took = real.sub(b.level)
}
