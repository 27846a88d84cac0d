package budget

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// An overload is the provider's lack of capacity. It says nothing of the credit, so
// nothing is drained and no rate is cut. Everybody rests a moment, as long as the
// refused call itself would. The zero overload has seen none.
//
// Where one answer in ten is an overload, a rest for each would stop everybody for
// good. So while others are answered, rests take a tenth of the time at most.
type overload struct {
	rested time.Time // when the last rest ended
	row    bool      // no attempt that left after it was answered
}

// rest is how long everybody rests after an overload at now: wait, or nothing.
func (o *overload) rest(now time.Time, wait time.Duration) time.Duration {
	if !o.row && now.Before(o.rested.Add(9*wait)) {
		return 0
	}
	o.rested, o.row = now.Add(wait), true
	return wait
}

// answered notes that the attempt that left at sent was not refused.
func (o *overload) answered(sent time.Time) {
	if !sent.Before(o.rested) {
		o.row = false
	}
}

// shortRest is the rest where no further attempt is planned, and its wait known:
// the least backoff of package retry.
const shortRest = 500 * time.Millisecond

// Overloaded takes in that the provider had no capacity for an attempt. wait is how
// long nothing leaves if the provider said so (named), and else when the next
// attempt goes; 0 is none. The attempt must still be ended.
func (c *Call) Overloaded(now time.Time, wait time.Duration, named bool) {
	s := c.scope
	if !named {
		s.mu.Lock()
		if wait <= 0 {
			wait = shortRest
		}
		s.takeBack(c.number)
		wait = s.overload.rest(now, wait)
		s.some.Store(true) // an answer ends the row
		s.mu.Unlock()
	}
	if wait <= 0 {
		return
	}
	c.watch.Paused(s.hold(now, limit.Pause{For: wait, Why: "it is overloaded", KeepCredit: true}))
}
