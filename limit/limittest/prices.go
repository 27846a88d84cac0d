package limittest

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// priced is a price that is asked when the turn comes.
type priced struct {
	cost  limit.Cost
	asked int
}

func (p *priced) Price() (cost, likely limit.Cost) {
	p.asked++
	return p.cost, p.cost
}

// pricePromises are those of ledgers that say they ask for prices.
var pricePromises = []promise{
	{"a call that waited takes what it costs then", func(s *script) {
		const unit = 10 * time.Millisecond
		for _, x := range []struct{ old, now int64 }{{20, 40}, {40, 20}} {
			l := s.limiter(tokensPer(limit.Rate{N: 1, Window: unit}, 100, true))
			if !s.prices(l) {
				return
			}
			w := s.waitAs(l, limit.Ask{Cost: tokens(x.old), Pricer: &priced{cost: tokens(x.now)}}, 0)
			<-w.done
			s.must(w.err == nil && w.r.Cost() == tokens(x.now), "%+v: took %v: %v", x, w.r.Cost(), w.err)
			earned, late := time.Duration(x.now)*unit, time.Duration(max(x.old, x.now))*unit+4*s.clock.Slack
			s.check(w.at >= earned && w.at <= late, "%+v: it went at %v, want from %v to %v", x, w.at, earned, late)
			w.r.Keep()
			next := s.wait(l, tokens(30), 0)
			<-next.done
			earned = time.Duration(x.now+30) * unit
			late = max(earned, w.at) + 5*s.clock.Slack
			s.check(next.err == nil && next.at >= earned && next.at <= late, "%+v: the next one went at %v, want from %v to %v: %v", x, next.at, earned, late, next.err)
			next.r.Keep()
		}
	}},

	{"a call that does not wait keeps its price", func(s *script) {
		l := s.limiter(tokensPer(limit.PerHour(1), 100, false))
		if !s.prices(l) {
			return
		}
		p := &priced{cost: tokens(10)}
		r := s.takeAs(l, limit.Ask{Cost: tokens(60), Pricer: p})
		s.check(p.asked == 0 && r.Cost() == tokens(60), "asked %d times, took %v", p.asked, r.Cost())
		s.take(l, tokens(40)).Keep()
		r.Keep()
	}},

	{"a price that no wait can make admissible is not taken", func(s *script) {
		for _, c := range []limit.Cost{tokens(11), {Requests: 1}, {Input: 5, Output: 1}, tokens(-1), {}} {
			l := s.limiter(tokensPer(limit.PerSecond(100), 10, true))
			if !s.prices(l) {
				return
			}
			w := s.waitAs(l, limit.Ask{Cost: tokens(10), Pricer: &priced{cost: c}}, 0)
			<-w.done
			s.check(w.err == nil && w.r.Cost() == tokens(10) && w.at >= 100*time.Millisecond, "%v: took %v at %v: %v", c, w.r.Cost(), w.at, w.err)
			w.r.Keep()
		}
	}},
}

// prices reports whether l says that it asks for prices.
func (s *script) prices(l ledger) bool {
	if limit.MetersOf(l.Ledger).Prices {
		return true
	}
	s.check(true, "")
	return false
}
