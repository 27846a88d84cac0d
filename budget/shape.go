package budget

import (
	"slices"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// A shape is how the limits of a provider behave.
type shape struct {
	requestBurst, tokenBurst time.Duration // capacity, as a time of the rate
	headroom                 int64         // per cent of each limit that is used
	tokens                   limit.Unit    // what a limit on tokens counts
}

// shapeOf reads a profile. A burst that the user set replaces the profile's, for
// learned limits too.
func shapeOf(p *profile.Profile, burst time.Duration) shape {
	s := shape{requestBurst: time.Second, tokenBurst: 10 * time.Second, headroom: 100, tokens: limit.Tokens}
	if p.RequestBurst > 0 {
		s.requestBurst = p.RequestBurst
	}
	if p.TokenBurst > 0 {
		s.tokenBurst = p.TokenBurst
	}
	if p.Headroom > 0 {
		s.headroom = p.Headroom
	}
	if p.InputOnly {
		s.tokens = limit.Input
	}
	if burst > 0 {
		s.requestBurst, s.tokenBurst = burst, burst
	}
	return s
}

// burst is the capacity of a limit that has none of its own: a time of the rate
// for windows of a minute or less, the whole window for longer ones. A day's
// allowance is there to be used in bursts.
func (s shape) burst(l limit.Limit) int64 {
	if l.Rate.Window > time.Minute {
		return l.Rate.N
	}
	span := s.tokenBurst
	if l.Unit == limit.Requests {
		span = s.requestBurst
	}
	return max(1, min(l.Rate.In(span), l.Rate.N))
}

// starts returns the configured limits as they start: with all the credit that the
// provider may hold, and what may go at once while nothing is known. Credit can be
// cut later, but not raised. The caller holds s.mu.
func (s *Scope) starts(configured []limit.Limit) []limit.Limit {
	ls := slices.Clone(configured)
	for i := range ls {
		l := &ls[i]
		if l.Burst != 0 || l.Rate.N <= 0 || l.Rate.Window <= 0 || l.Rate.N > limit.MaxUnits {
			continue
		}
		d := &dimension{limit: *l, configured: *l}
		s.study(d, time.Now())
		rate := l.Rate
		*l = d.effective(s.shape, time.Now())
		l.Rate, l.Unit = rate, configured[i].Unit
	}
	return ls
}
