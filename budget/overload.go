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
// good. So while others are answered, rests take a tenth of the time at most. Where
// none is answered, one call at a time goes until one is (see [opening]): a crowd
// after each rest would be refused as a whole, and some providers charge that.
type overload struct {
	rested time.Time // when the last rest ended
	row    bool      // no attempt that left after it was answered
	n      int       // rests in the row

	since    time.Time // when the last named wait ends
	together int       // attempts refused with it
}

// crowded is from how many rests in a row on one call at a time goes.
const crowded = 2

// rest is how long everybody rests after an overload at now: wait, or nothing.
func (o *overload) rest(now time.Time, wait time.Duration) time.Duration {
	if now.Sub(o.rested) > streakAge {
		o.row = false // as a streak of refusals ages
	}
	if !o.row && now.Before(o.rested.Add(9*wait)) {
		return 0
	}
	if !o.row {
		o.n = 0
	}
	// Each call counts its own attempts, and begins with a short wait. So rests double
	// here where they go on for longer than the attempts of two calls.
	wait = max(wait, min(shortRest<<max(0, min(o.n, 10)-5), mostRest))
	o.n++
	o.rested, o.row = now.Add(wait), true
	return wait
}

// crowd takes in a named wait until then, for an attempt that left at sent. It reports
// whether attempts that left together were refused. They would be again at the end of
// the wait, if all went at once.
func (o *overload) crowd(sent, until time.Time) bool {
	if !sent.Before(o.since) {
		o.together = 0
	}
	if until.After(o.since) {
		o.since = until
	}
	o.together++
	return o.together == crowded
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

// mostRest is the longest rest that nobody named: the longest backoff of package
// retry. Rests in a row double up to it.
const mostRest = 8 * time.Second

// Overloaded takes in that the provider had no capacity for an attempt. wait is how
// long nothing leaves if the provider said so (named), and else when the next
// attempt goes; 0 is none. The attempt must still be ended.
func (c *Call) Overloaded(now time.Time, wait time.Duration, named bool) {
	s := c.scope
	if named {
		c.together(now, wait)
	} else {
		s.mu.Lock()
		if wait <= 0 {
			wait = shortRest
		}
		s.takeBack(c.number)
		wait = s.overload.rest(now, wait)
		if wait > 0 && s.overload.n >= crowded && s.own {
			s.reopen()
		}
		s.some.Store(true) // an answer ends the row
		s.mu.Unlock()
	}
	if wait <= 0 {
		return
	}
	c.watch.Paused(s.hold(now, limit.Pause{For: wait, Why: "it is overloaded", KeepCredit: true}))
}

// together notes that the provider has named a wait d that is not for the rate. If
// attempts that left together were answered so, calls go one at a time after it.
func (c *Call) together(now time.Time, d time.Duration) {
	s := c.scope
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeBack(c.number)
	if s.overload.crowd(c.sent, now.Add(d)) && s.own {
		s.reopen()
	}
}
