package redislimit

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A control changes what all members share. It rides with the next call.
type control struct {
	kind  int64
	scope *scope
	path  *path // of a probe that ended
	name  string
	nums  []int64
	lim   limit.Limit // of ctlLimit and ctlEnforce
	opt   limit.ScopeOptions
	until time.Time // of a pause: what is left of it counts when it leaves
	by    string
	why   string

	done   chan struct{} // nil if nobody waits for the answer
	fell   bool
	closed bool
}

const (
	ctlPause   = 1
	ctlResume  = 2
	ctlDrain   = 3
	ctlLower   = 4
	ctlLimit   = 5
	ctlScope   = 6
	ctlKnown   = 7
	ctlEnforce = 8
	ctlProbe   = 9
	ctlPassed  = 10
	ctlNote    = 11
	ctlSpent   = 12
)

func (l *Limiter) control(c *control) {
	l.controls = append(l.controls, c)
	l.urgent = true
	l.wake()
}

// answer waits for the store's answer to c, one round trip, bounded by the
// Timeout, and reports whether credit fell.
func (l *Limiter) answer(c *control) bool {
	timer := time.NewTimer(2 * l.o.Timeout)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.fell
	case <-timer.C:
		return false
	case <-l.ended:
		return false
	}
}

// change sends c and waits for the store; while it is away, the change waits and
// the error says so.
func (l *Limiter) change(c *control) error {
	c.done = make(chan struct{})
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	c.scope.pinned = true
	l.control(c)
	l.mu.Unlock()
	l.answer(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away != nil {
		return l.awayError(nil)
	}
	return nil
}

// SetScope sets the options of a scope, for all members. While the store is away
// it returns an [*AwayError], and the change is made when it answers.
func (l *Limiter) SetScope(name string, o limit.ScopeOptions) error {
	if err := checkScope(name); err != nil {
		return err
	}
	if err := checkOptions(o); err != nil {
		return err
	}
	l.mu.Lock()
	s := l.scopeOf(name)
	if s.def == nil {
		s.def = &definition{}
	}
	if o.Allowances != nil { // the caller keeps its own
		a := *o.Allowances
		o.Allowances = &a
	}
	s.def.options = o
	if l.away != nil {
		l.away.setScope(name, o)
	}
	l.mu.Unlock()
	return l.change(&control{kind: ctlScope, scope: s, opt: o})
}

// SetScopeLimit configures one limit of a scope, for all members. While the store
// is away it returns an [*AwayError], and the change is made when it answers.
func (l *Limiter) SetScopeLimit(name string, lim limit.Limit) error {
	return l.setLimit(ctlLimit, name, lim)
}

// EnforceScopeLimit puts a limit in force for all members, and leaves what was
// configured to be seen and restored. Errors are those of SetScopeLimit.
//
// The Edge of an enforced Law was seen on the clock of this process. It is moved to
// the clock of the store. A configured Edge is UTC, by the store's clock.
func (l *Limiter) EnforceScopeLimit(name string, lim limit.Limit) error {
	return l.setLimit(ctlEnforce, name, lim)
}

func (l *Limiter) setLimit(kind int64, name string, lim limit.Limit) error {
	if err := checkScope(name); err != nil {
		return err
	}
	lim, err := checked(lim, "Limit")
	if err != nil {
		return err
	}
	l.mu.Lock()
	if kind == ctlEnforce {
		lim.Law = onStore(lim.Law, l.storeNow())
	}
	s := l.scopeOf(name)
	if kind == ctlLimit {
		if s.def == nil {
			s.def = &definition{}
		}
		s.def.set(lim)
	}
	if l.away != nil {
		l.away.setLimit(name, lim)
	}
	l.mu.Unlock()
	return l.change(&control{kind: kind, scope: s, name: lim.Name, lim: lim})
}

// PauseScope holds every call of every member that takes from the scope. It
// returns when the store has it, or after the Timeout. While the store is away the
// pause holds the local share; the store gets the rest of it when it answers.
func (l *Limiter) PauseScope(name string, p limit.Pause) {
	if checkScope(name) != nil || p.For <= 0 && p.ProbeAfter <= 0 {
		return
	}
	l.mu.Lock()
	s := l.scopeOf(name)
	if l.away != nil {
		l.away.pause(name, p)
	}
	l.mu.Unlock()
	c := &control{kind: ctlPause, scope: s, by: p.By, why: p.Why, nums: []int64{max(0, micros(p.ProbeAfter)), bit(p.KeepCredit)}}
	if p.For > 0 {
		c.until = time.Now().Add(p.For)
	}
	l.change(c)
}

// ResumeScope ends the pause of a scope, for all members.
func (l *Limiter) ResumeScope(name string) {
	if checkScope(name) != nil {
		return
	}
	l.mu.Lock()
	s := l.scopeOf(name)
	if l.away != nil {
		l.away.resume(name)
	}
	l.mu.Unlock()
	l.change(&control{kind: ctlResume, scope: s})
}

// DrainScope lowers the credit of a limit so that it holds keep units after d, for
// all members, and reports whether credit fell. See [limit.Limiter.Drain].
func (l *Limiter) DrainScope(name, lim string, keep int64, d time.Duration) bool {
	if checkScope(name) != nil {
		return false
	}
	l.mu.Lock()
	s := l.scopeOf(name)
	if l.away != nil {
		fell := l.away.drain(name, lim, keep, d)
		l.mu.Unlock()
		return fell
	}
	l.mu.Unlock()
	c := &control{kind: ctlDrain, scope: s, name: lim, nums: []int64{clamp(keep), max(0, micros(d))}}
	l.change(c)
	return c.fell
}

func (c *control) write(w *writer, store int64) {
	switch c.kind {
	case ctlPause:
		span := int64(0)
		if !c.until.IsZero() {
			span = max(0, micros(time.Until(c.until)))
		}
		w.num(span)
		w.num(c.nums[0])
		w.num(c.nums[1])
		w.str(c.by)
		w.str(c.why)
		return
	case ctlLimit, ctlEnforce:
		w.str(c.name)
		writeLimit(w, c.lim, store)
	case ctlScope:
		w.options(c.opt)
	case ctlNote:
		w.str(c.name)
		w.str(c.why)
	case ctlDrain, ctlLower, ctlKnown:
		w.str(c.name)
	case ctlProbe, ctlPassed:
		w.num(int64(c.path.at))
	}
	for _, n := range c.nums {
		w.num(n)
	}
}
