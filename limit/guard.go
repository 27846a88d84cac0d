package limit

import "time"

// BackOff is how long a guard does not grow again to the burst that was refused.
const BackOff = 10 * time.Minute

// A Guard stands before a limit of which nobody knows yet how much may go at
// once. The ledger behind it holds all that the limit holds; the guard lets a
// small burst go, and then the rate. Evidence lifts it:
//
//   - [Guard.Shown]: what the other side had left, less own charges since, may go
//     at once, whatever the law of the limit is.
//   - [Guard.Passed]: a burst that took more than half of a full guard and was not
//     refused doubles it. A steady load at the rate proves nothing of bursts.
//   - [Guard.Refused] brings it back to where it began. For [BackOff] it does
//     not grow to the refused burst again. After two refusals for which a reading
//     had shown enough, readings do not count for as long.
//   - [Guard.Open] takes it away, where the law is known.
//
// A guard holds no credit of its own: a call needs room in the ledger too, and
// nothing here raises that. Like [Bucket] it has neither lock nor clock, and all
// is exact. The zero Guard is not usable; call [NewGuard].
type Guard struct {
	pace Bucket // refills at the rate up to the burst that may go now
	base int64  // the burst it began with, units
	open bool

	shown  int64 // what the newest reading had left, less own charges since
	sure   int64 // the same, less what may have arrived after it
	known  bool
	newest int64 // when that reading was sent
	heard  bool  // there was a reading once

	full  bool  // the whole burst was there, and less than half of it went since
	spent bool  // more than half of a whole burst went
	since int64 // then
	deaf  int64 // readings do not count before that
	wrong int   // refusals in a row although a reading showed enough
	bad   int64 // a burst that was refused; 0 = none
	until int64 // no growth to bad before that
}

// NewGuard returns a guard of a limit of that rate, at instant 0, that lets burst
// units go at once. Errors are those of [NewBucket].
func NewGuard(r Rate, burst int64) (*Guard, error) {
	if err := checkBucket("Guard", r, burst); err != nil {
		return nil, err
	}
	g := newGuard(r, burst, 0)
	return &g, nil
}

func newGuard(r Rate, burst, now int64) Guard {
	burst = min(burst, r.N)
	return Guard{pace: newBucket(r, burst, MaxUnits, now), base: burst}
}

// Take lets cost through at instant now, if it may go, and returns 0. Otherwise
// it returns how long to wait; that is exact, as with [Bucket.Take]. A cost above
// the burst goes when the guard is full, or when that much was shown. A negative
// cost and an instant earlier than the last are errors.
func (g *Guard) Take(now time.Duration, cost int64) (wait time.Duration, err error) {
	switch {
	case cost < 0:
		return 0, ErrInvalid
	case int64(now) < g.pace.at:
		return 0, ErrBackwards
	}
	if g.passes(int64(now), cost) {
		g.spend(cost)
		return 0, nil
	}
	return time.Duration(g.waitFrom(int64(now), 0, cost)), nil
}

// Return gives back units of what went through.
func (g *Guard) Return(units int64) { g.refund(clampUnits(units)) }

// Charge lets units through at instant now whether or not they may go.
func (g *Guard) Charge(now time.Duration, units int64) {
	g.pace.advance(int64(now))
	g.spend(clampUnits(units))
}

// Shown takes in that units may go at once. They are what a reading of a call sent
// at that instant had left, less charges since, plus returns since. Calls that
// leave together arrive in any order. So there are two counts: units is less only
// what left too late to be in the reading; sure is less all that may have arrived
// after it. Readings of calls that left earlier than the newest are
// ignored.
func (g *Guard) Shown(sent time.Duration, units, sure int64) {
	if int64(sent) < g.newest || int64(sent) < g.deaf {
		return
	}
	bounded := func(n int64) int64 { return max(-MaxUnits, min(n, MaxUnits)) }
	g.known, g.heard, g.newest, g.shown, g.sure = true, true, int64(sent), bounded(units), bounded(sure)
}

// Passed takes in that a call sent at that instant was not refused.
func (g *Guard) Passed(now, sent time.Duration) {
	if !g.proves(int64(sent)) {
		return
	}
	g.spent = false
	burst := min(2*g.pace.burst, int64(g.pace.n))
	if g.bad > 0 && int64(now) < g.until && burst >= g.bad {
		return
	}
	g.pace.advance(int64(now))
	g.resize(burst)
}

// proves reports whether a whole burst went before a call that was sent at that
// instant: if it is not refused, the burst was not.
func (g *Guard) proves(sent int64) bool { return g.spent && sent >= g.since }

// Refused takes in a refusal at instant now: the guard is as at the start, with
// nothing shown, and an open one is closed.
func (g *Guard) Refused(now time.Duration) {
	g.pace.advance(int64(now))
	if g.known && g.sure >= 0 {
		// The reading had room for what was refused. Once that may be chance.
		if g.wrong++; g.wrong >= 2 {
			g.wrong, g.deaf = 0, later(int64(now), int64(BackOff))
		}
		g.newest = int64(now)
	}
	if g.pace.burst > g.base {
		g.bad, g.until = g.pace.burst, later(int64(now), int64(BackOff))
	}
	g.open, g.known, g.full, g.spent, g.shown, g.sure = false, false, false, false, 0, 0
	g.resize(g.base)
}

// Covers reports whether the newest reading shows for sure that there is room for
// cost: it may go at once under every law.
func (g *Guard) Covers(cost int64) bool { return g.known && cost <= g.sure }

// Open lets everything through until the next refusal.
func (g *Guard) Open() { g.open = true }

// SetRate changes the rate of the limit at instant now, and the burst that the
// guard begins with. Errors are those of [NewGuard] and change nothing.
func (g *Guard) SetRate(now time.Duration, r Rate, burst int64) error {
	if err := checkBucket("Guard", r, burst); err != nil {
		return err
	}
	g.set(int64(now), r, burst)
	return nil
}

// Burst is how much may go at once after a rest, in units, as far as is known
// now; the limit's N for an open guard.
func (g *Guard) Burst() int64 {
	if g.open {
		return int64(g.pace.n)
	}
	if g.known {
		return max(g.pace.burst, g.shown)
	}
	return g.pace.burst
}

func (g *Guard) set(now int64, r Rate, burst int64) {
	g.pace.advance(now)
	grown := g.pace.burst > g.base
	g.base = min(burst, r.N)
	next := g.base
	if grown {
		next = max(g.base, min(g.pace.burst, r.N))
	}
	g.pace.set(r, next, MaxUnits)
}

func (g *Guard) resize(burst int64) {
	g.pace.set(Rate{int64(g.pace.n), time.Duration(g.pace.w)}, burst, MaxUnits)
}

// passes reports whether cost may go at now.
func (g *Guard) passes(now, cost int64) bool {
	g.pace.advance(now)
	return g.open || cost == 0 || g.known && cost <= g.shown || !g.pace.lacks(cost)
}

// spend enters a cost that went. Where the reading covers it, the pace makes no debt.
func (g *Guard) spend(cost int64) {
	p := &g.pace
	g.full = g.full || p.level == p.cap
	covered := g.open || g.known && cost <= g.shown
	level := p.level.sub(mul(uint64(cost), p.w))
	if covered && level.hi < 0 {
		level = p.level.min(wide{}) // nothing, or the debt that was there
	}
	p.level = level
	p.saturate()
	if g.known {
		g.shown = max(-mostUsed, g.shown-cost)
		g.sure = max(-mostUsed, g.sure-cost)
	}
	if g.full && p.level.add(p.level).less(p.cap) {
		g.full, g.spent, g.since = false, true, p.at
	}
}

func (g *Guard) refund(units int64) {
	g.pace.refund(units)
	if g.known {
		g.shown = min(g.shown+units, MaxUnits)
		g.sure = min(g.sure+units, MaxUnits)
	}
}

// waitFrom is [Bucket.waitFrom] for a guard: exact when nobody is ahead, never
// too late otherwise.
func (g *Guard) waitFrom(start, ahead, cost int64) int64 {
	if g.open || cost == 0 && ahead == 0 || g.known && ahead+cost <= g.shown {
		return 0
	}
	if g.known && ahead > 0 && g.shown > 0 {
		// Those ahead are paid by what was shown first.
		ahead = max(0, ahead-g.shown)
		if ahead == 0 {
			return 0
		}
	}
	return g.pace.waitFrom(start, ahead, cost)
}
