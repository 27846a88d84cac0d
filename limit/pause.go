package limit

import (
	"math"
	"time"
)

// pause is what a scope knows of its pause besides its end.
type pause struct {
	by, why string
	after   int64  // between probes; 0 = no probes
	probeAt int64  // instant from which on a probe may go
	probe   uint64 // number of the reservation that is the probe; 0 = none
}

// probing reports whether a call may go as a probe of the pause of s at now. If
// not, at is the instant of the next look at the door of s.
func (s *scope) probing(now int64) (at int64, may bool) {
	p := s.pause
	switch {
	case p == nil || p.after == 0 || p.probe != 0:
		return s.pausedUntil, false
	case now < p.probeAt:
		return min(p.probeAt, s.pausedUntil), false
	}
	return 0, true
}

// holds reports whether the pause of s keeps a call from going at now. If so, at is
// the instant of the next look at the door of s. The end of a probe that takes no
// place goes unnoticed, so such a call cannot be one.
func (s *scope) holds(now int64, place bool) (at int64, held bool) {
	if now >= s.pausedUntil {
		return 0, false
	}
	at, may := s.probing(now)
	switch {
	case !may:
		return at, true
	case !place:
		return s.pausedUntil, true
	}
	return 0, false
}

// opens is the least instant at which anybody may go in s.
func (s *scope) opens() int64 {
	if p := s.pause; p != nil && p.after > 0 {
		return min(p.probeAt, s.pausedUntil)
	}
	return s.pausedUntil
}

// PauseScope holds every call that takes from a scope, the root for all calls.
// The later of two pauses wins, with who asked for it and why; a pause that ends
// earlier changes nothing, but that no probe goes before its end. When a pause
// ends, the line moves at the refill rate and not as a herd: limits of a minute
// or less start again from nothing (one request, for requests). Longer ones keep
// their credit, which a short pause says nothing about.
func (l *Limiter) PauseScope(scope string, p Pause) {
	l.lock()
	defer l.mu.Unlock()
	s, err := l.scope(scope)
	if err != nil {
		return
	}
	now := l.catchUp()
	if s.hold(now, p) {
		if s.busy != nil && s.busy.door != nil {
			l.look(s.busy.door, now) // the next probe may be due before the end
		}
		l.run(now)
	}
}

// hold pauses s, and reports whether that changed anything.
func (s *scope) hold(now int64, p Pause) bool {
	if p.For <= 0 && p.ProbeAfter <= 0 {
		return false
	}
	if p.For <= 0 {
		p.For = math.MaxInt64
	}
	closed := p.For // until then nobody goes at all
	if p.ProbeAfter > 0 && p.ProbeAfter < p.For {
		closed = p.ProbeAfter
	} else {
		p.ProbeAfter = 0
	}
	opens := later(now, int64(closed))
	old, paused := s.pause, now < s.pausedUntil
	if until := later(now, int64(p.For)); paused && until <= s.pausedUntil {
		if old == nil || old.after == 0 {
			return false // nobody goes before the later end anyway
		}
		old.probe, old.probeAt = 0, max(old.probeAt, opens)
		opens = old.probeAt
	} else {
		if paused {
			opens = max(opens, s.opens())
		}
		s.pausedUntil, s.pause = until, &pause{by: p.By, why: p.Why, after: int64(p.ProbeAfter), probeAt: opens}
	}
	for i := range s.limits {
		if b := &s.limits[i]; b.w <= uint64(time.Minute) && !p.KeepCredit {
			b.setBack(now, b.fresh(), time.Duration(opens-now))
		}
	}
	return true
}

// fresh is what a limit holds when a pause ends, in grains.
func (b *bound) fresh() wide {
	if b.unit == Requests {
		return mul(1, b.w)
	}
	return wide{}
}

// ResumeScope ends the pause of a scope now, no matter who asked for it. What the
// pause and [Limiter.DrainScope] took off its limits until an instant to come is
// given back, as far as it was there: limits hold now what they would have held
// then.
func (l *Limiter) ResumeScope(scope string) {
	l.lock()
	defer l.mu.Unlock()
	s := l.lookup(scope)
	if s == nil {
		return
	}
	now := l.catchUp()
	l.resume(s, now)
	l.run(now)
}

func (l *Limiter) resume(s *scope, now int64) {
	probed := now < s.pausedUntil && s.pause != nil && s.pause.after > 0 && s.pause.probeAt <= now
	s.pausedUntil, s.pause = 0, nil
	for i := range s.limits {
		b := &s.limits[i]
		if b.release(now); probed && b.w <= uint64(time.Minute) {
			b.setBack(now, b.fresh(), 0) // no herd after the probe either
		}
		if b.line != nil {
			l.look(b.line, now)
		}
	}
	if s.busy != nil && s.busy.door != nil {
		l.look(s.busy.door, now)
	}
}

// probed notes the end of the reservation with number seq, if it is the probe of
// a pause of s: an actual cost is success.
func (l *Limiter) probed(s *scope, seq uint64, how ending) {
	p := s.pause
	if p == nil || p.probe != seq {
		return
	}
	now := l.now()
	p.probe = 0
	switch how {
	case settled:
		if now < s.pausedUntil {
			l.resume(s, now)
		}
	case kept:
		p.probeAt = later(now, p.after)
	}
	if s.busy != nil && s.busy.door != nil {
		l.look(s.busy.door, now)
	}
}
