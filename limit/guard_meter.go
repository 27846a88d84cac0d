package limit

import "time"

// A meter is what a limit of a [Limiter] counts with: a bucket, and where more is
// known of the limit or less is trusted, a window in its stead or a guard before
// it. The bucket alone is the common case; it costs one comparison more than a
// [Bucket] does.
//
//	nothing more     the bucket decides
//	guard            the bucket and the guard must both have room
//	window           the window decides; the bucket stands still
//
// A cost goes through all that decides, or through nothing.
type meter struct {
	Bucket
	more *meterMore
}

type meterMore struct {
	guard   Guard
	guarded bool
	window  *Window
	before  meterBefore
}

// meterBefore is what the last take found, so that it can be undone exactly.
type meterBefore struct {
	guard  Guard
	panes  panes
	latest int64 // of the log's slot
}

// take spends cost at now if all that decides has room, else nothing.
func (m *meter) take(now, cost int64) bool {
	if m.more == nil {
		return m.Bucket.take(now, cost)
	}
	return m.takeMore(now, cost)
}

func (m *meter) takeMore(now, cost int64) bool {
	x := m.more
	switch {
	case x.window != nil:
		m.Bucket.advance(now) // the clock of both
		x.window.advance(now)
		x.before.panes = x.window.panes
		if l := x.window.log; l != nil {
			x.before.latest = l.latest(now)
		}
		return cost <= m.max && x.window.take(now, cost)
	case !x.guarded:
		return m.Bucket.take(now, cost)
	case !x.guard.passes(now, cost) || !m.Bucket.take(now, cost):
		return false
	}
	x.before.guard = x.guard
	x.guard.spend(cost)
	return true
}

// untake undoes the last take, which succeeded at the last instant: the meter is
// as if it had been refused.
func (m *meter) untake(cost int64) {
	x := m.more
	switch {
	case x == nil || x.window == nil:
		m.Bucket.refund(cost)
		if x != nil && x.guarded {
			x.guard = x.before.guard
		}
	default:
		x.window.panes = x.before.panes
		if l := x.window.log; l != nil {
			l.undo(m.at, cost, x.before.latest)
		}
	}
}

// waitFrom is [Bucket.waitFrom]: the longest wait of all that decides.
func (m *meter) waitFrom(start, ahead, cost int64) int64 {
	x := m.more
	switch {
	case x == nil:
		return m.Bucket.waitFrom(start, ahead, cost)
	case x.window != nil:
		return x.window.waitFrom(start, ahead, cost)
	case x.guarded:
		return max(m.Bucket.waitFrom(start, ahead, cost), x.guard.waitFrom(start, ahead, cost))
	}
	return m.Bucket.waitFrom(start, ahead, cost)
}

func (m *meter) advance(now int64) {
	m.Bucket.advance(now)
	if m.more != nil && m.more.window != nil {
		m.more.window.advance(now)
	}
}

// charge spends without asking, at the last instant.
func (m *meter) charge(units int64) {
	x := m.more
	if x != nil && x.window != nil {
		x.window.advance(m.at)
		x.window.charge(m.at, units)
		return
	}
	m.Bucket.charge(units)
	if x != nil && x.guarded {
		x.guard.pace.advance(m.at)
		x.guard.spend(units)
	}
}

// refund gives back what was charged at instant taken.
func (m *meter) refund(taken, units int64) {
	x := m.more
	if x != nil && x.window != nil {
		x.window.refund(taken, units)
		return
	}
	m.Bucket.refund(units)
	if x != nil && x.guarded {
		x.guard.refund(units)
	}
}

// credit is the whole units there, rounded down; negative is debt.
func (m *meter) credit() int64 {
	if m.more != nil && m.more.window != nil {
		return m.more.window.Credit()
	}
	return m.Bucket.Credit()
}

// lowerSent takes in a reading: at instant sent the other side had remaining
// units left; charged and returned are what moved since. It reports whether
// credit fell.
func (m *meter) lowerSent(sent, remaining, charged, returned int64) bool {
	x := m.more
	if x != nil && x.guarded {
		x.guard.Shown(time.Duration(sent), remaining-charged+returned)
	}
	if x != nil && x.window != nil {
		x.window.advance(m.at)
		return x.window.lowerSent(sent, remaining, charged, returned)
	}
	return m.lower(mulSigned(remaining-charged+returned, m.w).
		add(mul(m.n, uint64(max(0, m.at-sent)))))
}

// drain lets keep be there at d from now, and nothing beyond.
func (m *meter) drain(keep, d int64) bool {
	if x := m.more; x != nil && x.window != nil {
		x.window.advance(m.at)
		return x.window.drain(keep, d)
	}
	return m.lower(mul(uint64(keep), m.w).sub(mul(m.n, uint64(d))))
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
}

// follow makes the meter one of that law, at the last instant. Credit is carried
// over and never raised: a window begins as if all that the bucket has not were
// used now, and a bucket with what the window had, cut to its burst.
func (m *meter) follow(l Law) error {
	r := Rate{int64(m.n), time.Duration(m.w)}
	credit := m.credit()
	if !l.Shape.Windowed() {
		if m.more != nil && m.more.window != nil {
			m.more.window = nil
			m.level = m.cap.min(mulSigned(credit, m.w))
			m.saturate()
		}
		return nil
	}
	if err := l.check(r); err != nil {
		return err
	}
	if m.more == nil {
		m.more = &meterMore{}
	}
	w := &Window{law: l}
	w.start(r, m.at)
	w.charge(m.at, r.N-min(credit, r.N))
	m.more.window = w
	return nil
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
