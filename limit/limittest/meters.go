package limittest

import (
	"errors"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// meterPromises are those of ledgers that say they keep windows and guards. Of any
// other ledger only the last is asked.
var meterPromises = []promise{
	{"a fixed window begins anew at its edge", func(s *script) {
		const window = time.Second
		edge := 400*time.Millisecond + 4*s.clock.Slack
		l := s.windowed(limit.Limit{Rate: limit.Rate{N: 100, Window: window}, Law: limit.Law{Shape: limit.ShapeFixed}}, edge)
		if l == nil {
			return
		}
		s.takeAs(*l, limit.Ask{Cost: tokens(100), Scopes: []string{"model"}}).Keep()
		_, err := l.TryAdmit(limit.Ask{Cost: tokens(1), Scopes: []string{"model"}})
		s.check(errors.Is(err, limit.ErrLimited), "a call beyond the window: %v", err)
		w := s.waitAs(*l, limit.Ask{Cost: tokens(100), Scopes: []string{"model"}}, 0)
		<-w.done
		near := 5*time.Millisecond + s.clock.Slack // edges of other clocks are rounded
		if s.clock.Slack == 0 {
			near = 0
		}
		s.check(w.err == nil && w.at >= edge-near && w.at <= edge+4*s.clock.Slack+near, "the next window at %v, want %v: %v", w.at, edge, w.err)
		w.r.Keep()
		_, err = l.TryAdmit(limit.Ask{Cost: tokens(1), Scopes: []string{"model"}})
		s.check(errors.Is(err, limit.ErrLimited), "two windows at once: %v", err)
	}},

	{"a log gives back what was used a window ago", func(s *script) {
		const window = 511 * time.Millisecond
		l := s.windowed(limit.Limit{Rate: limit.Rate{N: 100, Window: window}, Law: limit.Law{Shape: limit.ShapeLog}}, 0)
		if l == nil {
			return
		}
		before := s.since()
		s.takeAs(*l, limit.Ask{Cost: tokens(60), Scopes: []string{"model"}}).Keep()
		s.clock.Sleep(100 * time.Millisecond)
		s.takeAs(*l, limit.Ask{Cost: tokens(40), Scopes: []string{"model"}}).Keep()
		w := s.waitAs(*l, limit.Ask{Cost: tokens(60), Scopes: []string{"model"}}, 0)
		<-w.done
		s.check(w.err == nil && w.at >= before+window && w.at <= before+window+4*s.clock.Slack+time.Millisecond, "at %v, want %v: %v", w.at, before+window, w.err)
		w.r.Return() // what came back is there at once
		s.takeAs(*l, limit.Ask{Cost: tokens(60), Scopes: []string{"model"}}).Keep()
	}},

	{"a guard lets a short burst go, and a reading lifts it", func(s *script) {
		l := s.windowed(limit.Limit{Rate: limit.PerHour(1000), Burst: 1000, Guard: 100}, 0)
		if l == nil {
			return
		}
		a := limit.Ask{Cost: tokens(50), Scopes: []string{"model"}}
		r := s.takeAs(*l, a)
		s.takeAs(*l, a).Keep()
		_, err := l.TryAdmit(a)
		s.check(errors.Is(err, limit.ErrLimited), "beyond the guard: %v", err)
		got := of(*l, "model").Limits[0]
		s.check(got.Credit >= 900 && got.Held >= 850, "the guard is not shown: %+v", got)
		w := s.waitAs(*l, a, 0)
		s.check(w.waiting(), "admitted beyond the guard")
		r.Sent()
		r.LowerIn("model", "tokens", 800, limit.Cost{}) // 800 are left on the other side
		s.end(time.Minute, w)
		s.check(w.err == nil, "the reading lifted nothing: %v", w.err)
		r.Keep()
		for range 10 {
			s.takeAs(*l, a).Keep()
		}
		l.DrainScope("model", "tokens", 0, time.Second)
		_, err = l.TryAdmit(a)
		s.check(errors.Is(err, limit.ErrLimited), "a refusal left the guard open: %v", err)
	}},

	{"a pause that keeps credit takes none", func(s *script) {
		l := s.limiter(limit.Options{})
		s.perSecond(l, "model", 10, 100)
		l.PauseScope("model", limit.Pause{For: 200 * time.Millisecond, KeepCredit: true})
		a := limit.Ask{Cost: tokens(100), Scopes: []string{"model"}}
		_, err := l.TryAdmit(a)
		s.check(errors.Is(err, limit.ErrLimited), "admitted in a pause: %v", err)
		w := s.waitAs(l, a, 0)
		<-w.done
		s.check(w.err == nil && w.at >= 200*time.Millisecond && w.at <= 200*time.Millisecond+4*s.clock.Slack, "at %v: %v", w.at, w.err)
	}},
}

// windowed is a ledger whose scope "model" has that limit, which a window begins `edge`
// after the script; nil if the ledger has no such meters.
func (s *script) windowed(lim limit.Limit, edge time.Duration) *ledger {
	l := s.limiter(limit.Options{})
	m := limit.MetersOf(l.Ledger)
	if !m.Windows || !m.Guards {
		s.check(true, "")
		return nil
	}
	lim.Name, lim.Unit = "tokens", limit.Tokens
	if edge != 0 {
		lim.Law.Edge = time.Duration(s.start.Add(edge).UnixNano())
	}
	err := l.EnforceScopeLimit("model", lim)
	s.must(err == nil, "%v", err)
	return &l
}
