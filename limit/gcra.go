package limit

import "time"

// GCRA is the same limit as a theoretical arrival time (TAT): the instant
// at which, had all costs so far come evenly spaced, the next would be due. A
// cost is admitted when the TAT it would lead to is at most a full burst
// ahead. It answers exactly as [Bucket] does, instant for instant; a fuzz test
// holds the two to it. Some find one easier to reason about, some the other.
//
// TAT is kept in grains too (N of them to a nanosecond), so it is a whole
// number at any rate:
//
//	level(t) = burst*W - max(0, TAT - N*t)
//
// The zero GCRA is not usable; call [NewGCRA]. It must not be used by several
// goroutines at once.
type GCRA struct {
	n, w  uint64
	tat   wide // grains since the base instant
	tau   wide // how far TAT may lie ahead: the burst, in grains
	burst int64
	at    int64 // last instant, nanoseconds
}

// NewGCRA returns a limit with its whole burst to give at instant 0. Errors
// are those of [NewBucket]. A burst of 1 is strict pacing: no two units closer
// than the rate says.
func NewGCRA(r Rate, burst int64) (*GCRA, error) {
	if err := checkBucket("GCRA", r, burst); err != nil {
		return nil, err
	}
	g := &GCRA{}
	g.set(r, burst)
	return g, nil
}

func (g *GCRA) set(r Rate, burst int64) {
	g.n, g.w, g.burst = uint64(r.N), uint64(r.Window), burst
	g.tau = mul(uint64(burst), g.w)
}

// Take is [Bucket.Take].
func (g *GCRA) Take(now time.Duration, cost int64) (wait time.Duration, err error) {
	switch {
	case cost < 0:
		return 0, ErrInvalid
	case cost > g.burst:
		return 0, ErrTooLarge
	case int64(now) < g.at:
		return 0, ErrBackwards
	}
	g.advance(int64(now))
	if cost == 0 {
		return 0, nil
	}
	next := g.tat.add(mul(uint64(cost), g.w))
	limit := g.clock().add(g.tau)
	if limit.less(next) {
		return time.Duration(next.sub(limit).ceilDiv(g.n)), nil
	}
	g.tat = next
	return 0, nil
}

// Return is [Bucket.Return]: TAT moves back, never behind the clock for good.
func (g *GCRA) Return(units int64) {
	g.tat = g.tat.sub(mul(uint64(clampUnits(units)), g.w))
	g.pull()
}

// Charge is [Bucket.Charge].
func (g *GCRA) Charge(now time.Duration, units int64) {
	g.advance(int64(now))
	g.tat = g.tat.add(mul(uint64(clampUnits(units)), g.w))
	g.saturate()
}

// Lower is [Bucket.Lower].
func (g *GCRA) Lower(now time.Duration, units int64) {
	g.advance(int64(now))
	tat := g.clock().add(g.tau).sub(mulSigned(max(-MaxUnits, min(units, MaxUnits)), g.w))
	if g.tat.less(tat) {
		g.tat = tat
		g.saturate()
	}
}

// SetRate is [Bucket.SetRate]. Grains change with the rate, so TAT is computed anew
// from the credit that there was.
func (g *GCRA) SetRate(now time.Duration, r Rate, burst int64) error {
	if err := checkBucket("GCRA", r, burst); err != nil {
		return err
	}
	g.advance(int64(now))
	credit := g.credit().rescale(g.w, uint64(r.Window))
	g.set(r, burst)
	g.tat = g.clock().add(g.tau).sub(credit)
	g.pull() // a smaller burst cuts credit
	return nil
}

// Credit is [Bucket.Credit].
func (g *GCRA) Credit() int64 { return g.credit().floorDiv(g.w) }

// credit is the room left below tau, in grains: Bucket's level.
func (g *GCRA) credit() wide { return g.clock().add(g.tau).sub(g.tat) }

func (g *GCRA) clock() wide { return mul(g.n, uint64(g.at)) }

func (g *GCRA) advance(now int64) {
	if now > g.at {
		g.at = now
	}
	g.pull()
}

// pull keeps TAT from lying in the past: idle time earns a burst at most.
func (g *GCRA) pull() {
	if c := g.clock(); g.tat.less(c) {
		g.tat = c
	}
}

// saturate keeps debt within the same floor as Bucket's.
//
// Overflow: the clock is below 2^103 and tau below 2^95 grains, so TAT stays
// below 2^126 + 2^104.
func (g *GCRA) saturate() {
	if top := g.clock().add(g.tau).sub(floor); top.less(g.tat) {
		g.tat = top
	}
}
