// Package shadow tries limits without using them: everything is decided and
// written down, nothing is delayed or refused.
//
// A [Ledger] stands before a ledger on paper, which has the limits. It admits
// every call at once, and lets the paper decide beside it: what would have
// waited, for what and how long, what would have been refused, and how many
// refusals of the provider (429) would have been spared.
//
//	paper, err := limit.New(limit.Options{Limits: limits})
//	l := shadow.New(paper, shadow.Options{})
//	...
//	fmt.Println(l.Report())
//
// # What the paper assumes
//
//   - A call that waits on paper would have taken as long as it took in truth,
//     from its own turn on, and would have cost the same.
//   - A caller's deadline holds on paper. A caller who left did not wait longer
//     for it than it did, unless its call was served.
//   - What answers say of the present balance (remaining, Retry-After) is not
//     applied to the paper: it speaks of a provider that was not spared. Limits
//     that answers teach are applied. So the waits are those of the limits alone.
//   - A 429 is spared if its call waited on paper, or if others did when it came:
//     then more was sent than the limits allow. One that is not spared says that the
//     limits are set too high, or that somebody else uses them.
//
// # The refusal
//
// The paper never changes what happens. It costs a goroutine for each call that
// waits on paper; calls beyond Options.Follow are counted and not followed.
package shadow

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// Options configure [New]. The zero value is fine.
type Options struct {
	// Follow is how many calls may wait on paper at once; 0 is 10,000. More are
	// admitted as well, and counted in Report.Unfollowed.
	Follow int
}

// Ledger is a [limit.Ledger] that admits at once. Make one with [New].
type Ledger struct {
	limit.Ledger // the paper: scopes and limits are its own
	follow       int
	life         context.Context
	end          context.CancelFunc

	mu     sync.Mutex // guards below, and is held for no call outside
	handle uint64
	calls  map[limit.Reservation]*call
	report Report
}

// call is an admitted call with its fate on paper.
type call struct {
	cost  limit.Cost
	sent  time.Time
	paper limit.Reservation
	state state
	ended bool               // in truth
	close func()             // ends the reservation on paper
	took  time.Duration      // in truth
	wait  time.Duration      // on paper
	leave context.CancelFunc // takes it from the line on paper
}

type state uint8

const (
	admitted state = iota // on paper, as soon as in truth
	waiting               // on paper
	late                  // admitted on paper, after a wait
	out                   // not on paper: refused there, or not followed
)

// New returns a Ledger that decides on paper. The paper must be used for nothing
// else.
func New(paper limit.Ledger, o Options) *Ledger {
	if o.Follow <= 0 {
		o.Follow = 10_000
	}
	life, end := context.WithCancel(context.Background())
	return &Ledger{
		Ledger: paper, follow: o.Follow, life: life, end: end,
		calls:  map[limit.Reservation]*call{},
		report: Report{Since: time.Now(), For: map[string]Waits{}, Refused: map[string]int64{}},
	}
}

// Close takes all that wait from the line on paper. The Ledger goes on admitting.
func (l *Ledger) Close() { l.end() }

// Admit implements [limit.Ledger]: it admits at once.
func (l *Ledger) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	return l.admit(ctx, a), nil
}

// TryAdmit implements [limit.Ledger]: it admits at once.
func (l *Ledger) TryAdmit(a limit.Ask) (limit.Reservation, error) {
	return l.admit(context.Background(), a), nil
}

// Forecast implements [limit.Ledger]: nobody waits. What a call would wait is the
// paper's Forecast.
func (l *Ledger) Forecast(limit.Ask) limit.Forecast { return limit.Forecast{Known: true} }

// PauseScope implements [limit.Ledger] and does nothing.
func (l *Ledger) PauseScope(string, limit.Pause) {}

// DrainScope implements [limit.Ledger] and does nothing.
func (l *Ledger) DrainScope(string, string, int64, time.Duration) bool { return false }

func (l *Ledger) admit(ctx context.Context, a limit.Ask) limit.Reservation {
	c := &call{cost: a.Cost, sent: time.Now(), leave: func() {}}
	paper, err := l.Ledger.TryAdmit(a)
	var wait *limit.Error
	what := ""
	switch {
	case err == nil:
		c.paper = paper
	case errors.Is(err, limit.ErrLimited):
		c.state = waiting
		if errors.As(err, &wait) {
			what = wait.Dimension
		}
		if f := l.Ledger.Forecast(a); f.Dimension != "" {
			if what = f.Dimension; f.Scope != "" {
				what = f.Scope + ": " + what
			}
		}
	default:
		c.state = out
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.handle++
	r := limit.Hold(l, l.handle)
	l.calls[r] = c
	l.report.Asked++
	switch c.state {
	case out:
		l.report.Refused[reason(err)]++
	case waiting:
		if l.report.Waiting >= l.follow {
			c.state = out
			l.report.Unfollowed++
			break
		}
		l.report.Waiting++
		l.report.Waited++
		a.Scopes = append([]string(nil), a.Scopes...) // not the caller's for as long
		var line context.Context
		line, c.leave = l.line(ctx)
		go l.wait(line, c, a, what)
	}
	return r
}

// line is the context of a wait on paper: it ends with the caller's deadline and
// with the Ledger, and not when the caller is served.
func (l *Ledger) line(ctx context.Context) (context.Context, context.CancelFunc) {
	if d, ok := ctx.Deadline(); ok {
		return context.WithDeadline(l.life, d)
	}
	return context.WithCancel(l.life)
}

// wait stands in the line on paper.
func (l *Ledger) wait(ctx context.Context, c *call, a limit.Ask, what string) {
	paper, err := l.Ledger.Admit(ctx, a)
	waited := time.Since(c.sent)
	l.mu.Lock()
	l.report.Waiting--
	if err != nil {
		c.state = out
		if errors.Is(err, limit.ErrCanceled) && !errors.Is(err, context.DeadlineExceeded) {
			l.report.Waited-- // it left: its call came again, or was never made
		} else {
			l.report.Waited--
			l.report.Refused[reason(err)]++
		}
		l.mu.Unlock()
		c.leave()
		return
	}
	c.paper, c.state, c.wait = paper, late, waited
	w := l.report.For[what]
	w.add(waited)
	l.report.For[what] = w
	l.report.Wait.add(waited)
	ended := c.ended
	l.mu.Unlock()
	c.leave()
	if ended { // it takes as long on paper, from its turn there on
		time.AfterFunc(c.took, c.close)
	}
}

func reason(err error) string {
	var e *limit.Error
	if errors.As(err, &e) {
		return e.Reason.Error()
	}
	return "other"
}

// Refused notes that the provider refused the attempt of r for its rate. It is
// called before r is ended.
func (l *Ledger) Refused(r limit.Reservation) {
	l.mu.Lock()
	c := l.calls[r]
	l.report.RateLimited++
	leave := func() {}
	if l.report.Waiting > 0 || c != nil && c.state == late {
		l.report.Spared++
	}
	if c != nil && c.state == waiting { // its call comes again, as another
		leave = c.leave
	}
	l.mu.Unlock()
	leave()
}

// finish ends a call in truth; how ends it on paper.
func (l *Ledger) finish(handle uint64, how func(limit.Reservation)) {
	l.mu.Lock()
	r := limit.Hold(l, handle)
	c := l.calls[r]
	if c == nil {
		l.mu.Unlock()
		return
	}
	delete(l.calls, r)
	c.ended, c.took = true, time.Since(c.sent)
	c.close = func() { how(c.paper) }
	state := c.state
	l.mu.Unlock()
	switch state {
	case admitted:
		c.close()
	case late: // its turn on paper was so much later
		time.AfterFunc(c.wait, c.close)
	}
}

// Settle implements [limit.Holder].
func (l *Ledger) Settle(handle uint64, actual limit.Cost) {
	l.finish(handle, func(r limit.Reservation) { r.Settle(actual) })
}

// Keep implements [limit.Holder].
func (l *Ledger) Keep(handle uint64) { l.finish(handle, limit.Reservation.Keep) }

// Return implements [limit.Holder].
func (l *Ledger) Return(handle uint64) {
	l.mu.Lock()
	leave := func() {}
	if c := l.calls[limit.Hold(l, handle)]; c != nil {
		leave = c.leave
	}
	l.mu.Unlock()
	leave() // it was never made
	l.finish(handle, limit.Reservation.Return)
}

// Cost implements [limit.Holder].
func (l *Ledger) Cost(handle uint64) limit.Cost {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.calls[limit.Hold(l, handle)]; c != nil {
		return c.cost
	}
	return limit.Cost{}
}

// Sent implements [limit.Holder].
func (l *Ledger) Sent(uint64) {}

// Lower implements [limit.Holder] and does nothing.
func (l *Ledger) Lower(uint64, string, string, int64, limit.Cost) bool { return false }
