package redislimit

import (
	"context"
	"errors"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// away is what a process does while the store does not answer: it admits under a
// ledger of its own, which has its share of the budget.
type away struct {
	l       *Limiter
	since   time.Time
	members int
	share   limit.Ledger // nil: calls are refused
	opened  map[string]bool

	ctx  context.Context // ends when the store is back
	stop context.CancelFunc
	used map[*path]*end // what was admitted, below zero, and what came back
}

// goAway begins a local share. c is the call that was not answered; those who wait
// for it are sent on. It is called with the lock held.
func (l *Limiter) goAway(err error, c *call) {
	a := &away{l: l, since: l.since, members: l.members, used: map[*path]*end{}, opened: map[string]bool{}}
	a.ctx, a.stop = context.WithCancel(l.ctx)
	l.away, l.err = a, err
	if l.o.Away != Closed {
		a.share = newShare(l.part(l.root.inForce()), l.places(l.root.open), l.o.MaxQueue)
	}
	for _, s := range l.scopes {
		if left := time.Duration(s.paused-l.storeNow()) * time.Microsecond; left > 0 {
			a.pause(s.name, limit.Pause{For: left, By: "store", Why: "as last known"})
		}
	}

	l.sendOn(c)
	if q := l.query; q != nil {
		l.query = nil
		close(q.done)
	}
	if c != nil {
		if q := c.query; q != nil {
			q.once.Do(func() { close(q.done) })
		}
		for _, x := range c.controls {
			x.close()
		}
	}
	for _, x := range l.controls {
		x.close()
	}
}

// sendOn has everybody who waits ask anew, in the order of coming.
func (l *Limiter) sendOn(c *call) {
	var all []*waiter
	if c != nil {
		for i, w := range c.asks {
			if w != nil && w.state == asked {
				all = append(all, w)
			}
			c.asks[i] = nil
		}
	}
	for _, w := range l.line {
		l.leaveLine(w)
		all = append(all, w)
	}
	clear(l.line)
	for _, w := range l.pending {
		if w.state == queued {
			l.drop(w.path)
			all = append(all, w)
		}
	}
	clear(l.pending)
	l.pending = l.pending[:0]
	sortByOrder(all)
	for _, w := range all {
		w.again = true
		w.tell(limit.Reservation{}, nil)
	}
}

// inForce are the limits that the store has last reported, or else the definition.
func (s *scope) inForce() []limit.Limit {
	var limits []limit.Limit
	for _, k := range s.limits {
		limits = append(limits, k.Limit)
	}
	if limits == nil && s.def != nil {
		limits = append(limits, s.def.limits...)
	}
	return limits
}

// part are limits as this process has them while the store is away: its share of
// each, and no credit to begin with.
func (l *Limiter) part(limits []limit.Limit) []limit.Limit {
	for i := range limits {
		if l.o.Away == Share {
			limits[i] = Split(limits[i], l.members)
		}
		limits[i] = paced(limits[i])
	}
	return limits
}

// places is the share of places in flight, at least one.
func (l *Limiter) places(n int) int {
	if n == 0 || l.o.Away != Share {
		return n
	}
	return max(1, n/l.members)
}

// open gives the share a scope that it does not have yet.
func (a *away) open(p *path) {
	for _, s := range p.all {
		if a.opened[s.name] {
			continue
		}
		a.opened[s.name] = true
		o := limit.ScopeOptions{}
		if s.def != nil {
			o = s.def.options
		}
		if s.open > 0 {
			o.MaxInFlight = s.open
		}
		a.allow(s, o)
		if s == a.l.root {
			continue // it has its limits
		}
		for _, lim := range a.l.part(s.inForce()) {
			a.share.SetScopeLimit(s.name, lim)
		}
	}
}

func (a *away) setScope(name string, o limit.ScopeOptions) {
	if a.share != nil {
		a.allow(a.l.scopeOf(name), o)
	}
}

// allow gives a scope of the share its options: its part of the places, and of what its
// allowances have left as last known.
func (a *away) allow(s *scope, o limit.ScopeOptions) {
	o.MaxInFlight = a.l.places(o.MaxInFlight)
	if o.Allowances == nil {
		o.Allowances = s.allowances
	}
	members := a.members
	if a.l.o.Away != Share {
		members = 1
	}
	var burn limit.Spend
	o.Allowances, burn = s.spends.rest(o.Allowances, members)
	a.share.SetScope(s.name, o)
	if burn != (limit.Spend{}) {
		if r, err := a.share.TryAdmit(limit.Ask{Tenant: s.name, Spend: burn}); err == nil {
			r.Keep()
		}
	}
}

func (a *away) setLimit(name string, lim limit.Limit) {
	if a.share != nil {
		a.share.SetScopeLimit(name, a.l.part([]limit.Limit{lim})[0])
	}
}

func (a *away) pause(name string, p limit.Pause) {
	if a.share != nil {
		a.share.PauseScope(name, p)
	}
}

func (a *away) resume(name string) {
	if a.share != nil {
		a.share.ResumeScope(name)
	}
}

func (a *away) drain(name, lim string, keep int64, d time.Duration) bool {
	return a.share != nil && a.share.DrainScope(name, lim, keep, d)
}

// spent notes what a reservation of the share came to.
func (a *away) spent(p *path, c limit.Cost, spend limit.Spend) {
	if a.l.away != a {
		return // it was handed over already
	}
	x := a.used[p]
	if x == nil {
		x = &end{}
		a.used[p] = x
		p.refs++
	}
	x.add(end{refund: cost(limit.Cost{}, c), unspent: less(limit.Spend{}, spend)})
}

func (a *away) end() { a.stop() }

func (l *Limiter) awayError(err error) error {
	return &AwayError{Policy: l.o.Away, Since: l.away.since, Members: l.away.members, Err: err, Store: l.err}
}

// admitAway admits w under the local share. back says that the store answers
// again, and w is to ask there. It takes w's use of its path.
func (l *Limiter) admitAway(ctx context.Context, a *away, w *waiter, ask *limit.Ask) (r limit.Reservation, back bool, err error) {
	if a.share == nil {
		return l.failAway(a, w, nil)
	}
	l.mu.Lock()
	if l.away == a {
		a.open(w.path)
	}
	l.mu.Unlock()
	var got limit.Reservation
	switch w.mode {
	case modeAsk:
		return l.forecastAway(a, w, ask)
	case modeNow:
		got, err = a.share.TryAdmit(*ask)
	default:
		got, back, err = a.wait(ctx, w, ask)
	}
	if back || err != nil && ctx.Err() != nil && errors.As(err, new(*limit.Error)) {
		l.leaveAway(w) // the store is back, or the caller's own context ended
		return limit.Reservation{}, back, err
	}
	if err != nil {
		return l.failAway(a, w, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away != a { // it came back in between: the share is no more
		got.Return()
		l.drop(w.path)
		return limit.Reservation{}, true, nil
	}
	e := l.entries.put()
	e.id, e.cost, e.spend, e.path, e.local, e.away = w.id, got.Cost(), w.spend, w.path, got, a
	return limit.Hold(l, e.handle()), false, nil
}

// wait waits in the line of the share, until the store is back.
func (a *away) wait(ctx context.Context, w *waiter, ask *limit.Ask) (r limit.Reservation, back bool, err error) {
	merged, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(a.ctx, stop)()
	if !w.deadline.IsZero() {
		bounded, end := context.WithDeadline(merged, w.deadline)
		defer end()
		merged = bounded
	}
	r, err = a.share.Admit(merged, *ask)
	if err != nil && a.ctx.Err() != nil && ctx.Err() == nil {
		return r, true, nil
	}
	return r, false, err
}

// forecastAway is what w would have to wait for the share.
func (l *Limiter) forecastAway(a *away, w *waiter, ask *limit.Ask) (r limit.Reservation, back bool, err error) {
	f := a.share.Forecast(*ask)
	switch {
	case f.Err != nil:
		return l.failAway(a, w, f.Err)
	case f.Wait > 0 || !f.Known:
		return l.failAway(a, w, &limit.Error{Reason: limit.ErrLimited, Dimension: f.Dimension, Wait: f.Wait})
	}
	l.leaveAway(w)
	return limit.Reservation{}, false, nil
}

func (l *Limiter) leaveAway(w *waiter) {
	l.mu.Lock()
	l.drop(w.path)
	l.mu.Unlock()
}

// failAway refuses w, unless the store is back.
func (l *Limiter) failAway(a *away, w *waiter, err error) (limit.Reservation, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(w.path)
	if l.away != a {
		return limit.Reservation{}, true, nil
	}
	return limit.Reservation{}, false, l.awayError(err)
}

// comeBack hands the share back. Its places are entered in the store, and its costs
// are charged there. gap says that the store was away from all
// members, or lost its state: then it has set every level to nothing, and the
// members' shares, which began with nothing, were spent out of the time since. An
// allowance earns nothing, so it is charged in any case.
func (l *Limiter) comeBack(gap bool) {
	a := l.away
	for _, e := range l.entries.all() {
		if e.away != a {
			continue
		}
		a.spent(e.path, e.cost, e.spend)
		e.local.Keep()
		e.away, e.local, e.over = nil, limit.Reservation{}, true
		e.epoch, e.taken = l.epoch, l.lastSrv
		for _, s := range e.path.all {
			l.holds[s]++
		}
	}
	l.away = nil
	for p, x := range a.used {
		if gap {
			x.refund = limit.Cost{}
		}
		if *x != (end{}) {
			l.addEnd(endKey{path: p, epoch: l.epoch}, *x)
		}
		l.drop(p)
	}
	l.urgent = true
	a.stop()
}
