package redislimit

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A query asks the store how scopes stand.
type query struct {
	scopes []*scope
	done   chan struct{}
	once   sync.Once
	ok     bool
	all    []limit.Snapshot
}

// mostShown bounds the scopes of a snapshot.
const mostShown = 256

// Snapshot is the state of the root scope, of all members together, with the
// scopes that this process has used lately in Scopes, up to 256. It waits for the
// store, one round trip, bounded by the Timeout. While the store is away it is
// that of the local share, and Degraded says so. Oldest counts this process alone.
func (l *Limiter) Snapshot() limit.Snapshot {
	q := &query{done: make(chan struct{})}
	l.mu.Lock()
	if l.away != nil || l.closed {
		defer l.mu.Unlock()
		return l.degraded()
	}
	if l.query != nil {
		q = l.query // one answer for all who ask
	} else {
		q.scopes = append(q.scopes, l.root)
		for _, s := range l.scopes {
			if s != l.root && len(q.scopes) < mostShown {
				q.scopes = append(q.scopes, s)
			}
		}
		l.query = q
	}
	l.mu.Unlock()
	l.wake()
	timer := time.NewTimer(2 * l.o.Timeout)
	defer timer.Stop()
	select {
	case <-q.done:
	case <-timer.C:
	case <-l.ended:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !q.ok || len(q.all) == 0 {
		return l.degraded()
	}
	root := q.all[0]
	root.Scopes = slices.Clone(q.all[1:])
	slices.SortFunc(root.Scopes, func(a, b limit.Snapshot) int { return strings.Compare(a.Scope, b.Scope) })
	return root
}

// degraded is the snapshot of what stands in for the store.
func (l *Limiter) degraded() limit.Snapshot {
	switch {
	case l.away == nil && l.closed:
		return limit.Snapshot{Degraded: ErrClosed.Error()}
	case l.away == nil:
		return limit.Snapshot{Degraded: "the store did not answer in time"}
	case l.away.share == nil:
		return limit.Snapshot{Degraded: l.awayError(nil).Error()}
	}
	s := l.away.share.Snapshot()
	s.Degraded = l.awayError(errShare).Error()
	return s
}

var errShare = errors.New("the snapshot shows that share")

// read takes the store's answer. It is called with the lock held.
func (q *query) read(r *reader, l *Limiter, c *call) {
	oldest := map[*scope]time.Duration{}
	for _, w := range l.line {
		for _, s := range w.path.all {
			oldest[s] = max(oldest[s], time.Since(w.arrived))
		}
	}
	for _, s := range c.scopes {
		if r.num() == 0 {
			continue
		}
		x := l.readScope(r, s)
		x.Oldest = oldest[s]
		for n := r.num(); n > 0 && r.err == nil; n-- {
			x.Limits = append(x.Limits, l.readState(r))
		}
		if a := s.allowances; a != nil {
			x.Options.Allowances = a
			x.Limits = append(x.Limits, a.States(instant(l.lastSrv), s.spends.day, s.spends.month)...)
		}
		q.all = append(q.all, x)
	}
	q.ok = r.err == nil
	q.once.Do(func() { close(q.done) })
}

// readScope reads how a scope stands, without its limits.
func (l *Limiter) readScope(r *reader, s *scope) limit.Snapshot {
	at := func(us int64) time.Time {
		if us <= l.lastSrv {
			return time.Time{}
		}
		return l.lastAt.Add(time.Duration(min(us-l.lastSrv, int64(limit.MaxWindow/time.Microsecond)*100)) * time.Microsecond)
	}
	x := limit.Snapshot{Scope: s.name}
	x.PausedUntil = at(r.num())
	x.PausedBy, x.PausedWhy = r.str(), r.str()
	x.MaxInFlight = int(r.num())
	x.InFlight = int(r.num())
	x.Options = limit.ScopeOptions{MaxInFlight: x.MaxInFlight, MaxQueue: int(r.num()), Weight: int(r.num())}
	x.Waiting = int(r.num())
	x.ProbeAt = at(r.num())
	x.Probing = r.num() == 1
	if x.PausedUntil.IsZero() {
		x.PausedBy, x.PausedWhy, x.ProbeAt, x.Probing = "", "", time.Time{}, false
	}
	var served [3]int64
	for k := range served {
		served[k] = ((s.sums.debits[k]-s.sums.refunds[k])%wrap + wrap) % wrap
	}
	x.Served = limit.Cost{Requests: served[0], Input: served[1], Output: served[2]}
	return x
}

// readState reads how a limit stands.
func (l *Limiter) readState(r *reader) limit.LimitState {
	var s limit.LimitState
	s.Name = r.str()
	s.Unit = limit.Unit(r.num())
	s.Rate = limit.Rate{N: r.num(), Window: time.Duration(r.num()) * time.Microsecond}
	r.num()
	r.num()
	s.Burst, s.Largest = r.num(), r.num()
	level := r.num() // a part of a unit is left out: credit is rounded down, and debt up
	s.Credit = max(0, level)
	if level < 0 {
		s.Debt = -level
	}
	s.Held, s.Capacity = r.num(), r.num()
	readMore(r.str(), &s.Limit, l.local)
	s.Law = s.Limit.Law
	s.Waiting = r.num()
	unit, n, w, burst, largest := r.num(), r.num(), r.num(), r.num(), r.num()
	more := r.str()
	if n > 0 {
		s.Configured = limit.Limit{Name: s.Name, Unit: limit.Unit(unit), Burst: burst, Largest: largest,
			Rate: limit.Rate{N: n, Window: time.Duration(w) * time.Microsecond}}
		readMore(more, &s.Configured, l.local)
	}
	return s
}
