package limit

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// MaxName is the longest name of a scope, in bytes.
const MaxName = 256

// scope is one scope at work. All of it is guarded by Limiter.mu.
type scope struct {
	name   string
	limits []bound
	busy   *busy // nil in an idle scope
	served Cost  // by calls before it became busy, as settled

	opt         ScopeOptions
	pausedUntil int64       // instant; past or 0 = not paused
	pause       *pause      // what else is known of the pause, or nil
	spent       *spentSoFar // nil until an allowance was charged
	refs        int32       // open reservations, and callers that wait or are being decided
	edited      bool        // set by hand: never forgotten
	atMost      int32       // places in flight besides opt.MaxInFlight: see HoldInFlight; 0 = any

	prev, next *scope // ring of the idle ones
	link       *scope // in the index
}

// busy is what a scope has only while it is in use. All others take less memory.
type busy struct {
	open int // reservations in flight

	// Sums over all time, modulo 2^64: differences between two readings are
	// exact as long as they are below 2^63.
	debits, refunds Cost
	owed            int64  // of refunds, input that settlements found to be above its estimate
	trail           *trail // of debits; nil while no limit has a guard

	spare        Cost // what open reservations are expected to give back
	waiting      int
	asked        Cost  // of those who wait
	places, door *line // of those who lack a place, or the end of a pause
}

func (s *scope) waiting() int {
	if s.busy == nil {
		return 0
	}
	return s.busy.waiting
}

func (s *scope) full() bool {
	n := s.places()
	return n > 0 && s.busy.open >= n
}

// places is how many reservations may be open; 0 is any number.
func (s *scope) places() int {
	if n := int(s.atMost); n > 0 && (s.opt.MaxInFlight == 0 || n < s.opt.MaxInFlight) {
		return n
	}
	return s.opt.MaxInFlight
}

func (s *scope) find(name string) *bound {
	for i := range s.limits {
		if s.limits[i].cfg.Name == name {
			return &s.limits[i]
		}
	}
	return nil
}

// follows keeps a trail of s while one of its limits has a guard or a window.
func (s *scope) follows(now int64) {
	kept := slices.ContainsFunc(s.limits, func(b bound) bool { return b.more != nil && (b.more.guarded || b.more.window != nil) })
	switch {
	case !kept:
		if s.busy != nil {
			s.busy.trail = nil
		}
	case s.busy == nil:
		s.busy = &busy{}
		fallthrough
	case s.busy.trail == nil:
		s.busy.trail = &trail{}
		s.busy.trail.note(now, s.busy.debits)
	}
}

// remember is called before debits of s grow at now.
func (l *Limiter) remember(s *scope, now int64) {
	l.young.settle(l)
	if s.busy.trail != nil {
		s.busy.trail.note(now, s.busy.debits)
	}
}

// relink tells the lines where their limits are, after these moved.
func (s *scope) relink() {
	for i := range s.limits {
		if q := s.limits[i].line; q != nil {
			q.b = &s.limits[i]
		}
	}
}

func (o ScopeOptions) check() error {
	switch {
	case o.Weight < 0 || o.Weight > MaxWeight:
		return &ConfigError{"Weight", o.Weight, fmt.Sprintf("must be from 0 to %d", MaxWeight)}
	case o.MaxInFlight < 0:
		return &ConfigError{"MaxInFlight", o.MaxInFlight, "must not be negative"}
	case o.MaxQueue < 0 || o.MaxQueue > hardQueue:
		return &ConfigError{"MaxQueue", o.MaxQueue, fmt.Sprintf("must be from 0 to %d", hardQueue)}
	case o.Allowances != nil:
		return o.Allowances.check()
	}
	return nil
}

// configure gives s the limits of a constructor.
func (s *scope) configure(l *Limiter, limits []Limit, now int64, born uint64) error {
	for i, lim := range limits {
		field := fmt.Sprintf("Limits[%d]", i)
		lim, err := lim.checked(field)
		if err != nil {
			return err
		}
		if lim.Rate == (Rate{}) {
			const lone = "is set, but Rate is not: no rate means no limit"
			switch {
			case lim.Burst != 0:
				return &ConfigError{field + ".Burst", lim.Burst, lone}
			case lim.Largest != 0:
				return &ConfigError{field + ".Largest", lim.Largest, lone}
			}
			continue
		}
		if s.find(lim.Name) != nil {
			return &ConfigError{field + ".Name", lim.Name, "must not be the name of two limits"}
		}
		b := newBound(l.share(lim), now, l.base.UnixNano())
		b.conf, b.born = b.cfg, born
		s.limits = append(s.limits, b)
		s.follows(now)
	}
	return nil
}

// scope is the scope of that name, made if it is not there. It is called with
// the lock held, and lets go of it while it asks Options.Open.
func (l *Limiter) scope(name string) (*scope, error) {
	if name == "" {
		return &l.root, nil
	}
	if s := l.scopes.find(name); s != nil {
		return s, nil
	}
	if len(name) > MaxName {
		return nil, &ConfigError{"Scope", fmt.Sprintf("%.20s...", name), fmt.Sprintf("must be at most %d bytes long", MaxName)}
	}
	var opt ScopeOptions
	var limits []Limit
	if l.opener != nil {
		l.mu.Unlock()
		opt, limits = l.opener(name)
		l.lock()
		if s := l.scopes.find(name); s != nil {
			return s, nil
		}
	}
	if err := opt.check(); err != nil {
		return nil, err
	}
	s := &scope{name: name, opt: opt}
	l.allow(s)
	l.open.seq++
	if err := s.configure(l, limits, l.now(), l.open.seq); err != nil {
		return nil, err
	}
	l.scopes.add(s)
	l.rest(s)
	return s, nil
}

// share returns a Limit that equals lim, which never changes: that of many
// tenants is the same, and kept once.
func (l *Limiter) share(lim Limit) *Limit {
	for _, old := range l.shared {
		if old != nil && *old == lim {
			return old
		}
	}
	l.counts = l.counts || lim.Law.Shape.Windowed()
	l.shared[l.shares%len(l.shared)] = &lim
	l.shares++
	return &lim
}

// use and done stand around everything that needs s to stay.
func (l *Limiter) use(s *scope) {
	if s.refs == 0 && s != &l.root {
		s.prev.next, s.next.prev = s.next, s.prev
		if l.idle == s {
			l.idle = s.prev
		}
		if l.idle == s {
			l.idle = nil
		}
		s.prev, s.next = nil, nil
		l.idlers--
		if s.busy == nil {
			s.busy = l.newBusy()
		}
	}
	s.refs++
}

func (l *Limiter) newBusy() *busy {
	n := len(l.free.busy)
	if n == 0 {
		return &busy{}
	}
	b := l.free.busy[n-1]
	l.free.busy = l.free.busy[:n-1]
	return b
}

func (l *Limiter) done(s *scope) {
	if s.refs--; s.refs == 0 && s != &l.root {
		for i := range s.limits {
			s.limits[i].line = nil
		}
		if b := s.busy; b.trail != nil { // it is needed for a while
			b.places, b.door = nil, nil
		} else {
			s.served = s.served.plus(b.debits).minus(b.refunds)
			s.busy, *b = nil, busy{}
			if len(l.free.busy) < spares {
				l.free.busy = append(l.free.busy, b)
			}
		}
		l.rest(s)
		l.forget()
	}
}

// rest puts s, which nobody uses now, behind the idle scopes.
func (l *Limiter) rest(s *scope) {
	if l.idle == nil {
		s.prev, s.next = s, s
	} else {
		s.prev, s.next = l.idle, l.idle.next
		s.prev.next, s.next.prev = s, s
	}
	l.idle = s
	l.idlers++
}

// forget drops idle scopes while there are more than l.keepIdle. It looks at two of
// them each time that a scope becomes idle, those first that have been idle for
// longest: a constant time, in which the number falls as long as one of two can go.
func (l *Limiter) forget() {
	for range 2 {
		if l.idlers <= l.keepIdle {
			return
		}
		l.scopes.count(1)
		s := l.idle.next
		l.idle = s // behind all the others, unless it goes
		if !s.fresh(l.last) {
			continue
		}
		if s.next == s {
			l.idle = nil
		} else {
			s.prev.next, s.next.prev = s.next, s.prev
			l.idle = s.prev
		}
		l.idlers--
		l.scopes.remove(s)
		if contains(l.path, s) {
			l.path = l.path[:0]
		}
	}
}

// fresh reports whether s, which nobody uses, is in the state of a new scope.
func (s *scope) fresh(now int64) bool {
	if s.edited || now < s.pausedUntil || s.spent != nil && !s.spent.empty(now) {
		return false
	}
	for i := range s.limits {
		if !s.limits[i].full(now) {
			return false
		}
	}
	return true
}

// SetScope sets the options of a scope, all of them; the zero ScopeOptions are
// the defaults. It takes effect at once: a changed weight counts from now on, and
// reservations above a lower MaxInFlight stay open. For the root, MaxInFlight is
// that of [Limiter.SetMaxInFlight] and MaxQueue that of [Options]. A value that
// cannot be is a [*ConfigError] and changes nothing.
//
// A scope with such options is kept: it is not forgotten, unless the options and
// the limits are taken off again.
func (l *Limiter) SetScope(scope string, o ScopeOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	l.lock()
	defer l.mu.Unlock()
	s, err := l.scope(scope)
	if err != nil {
		return err
	}
	now := l.catchUp()
	s.opt = o
	l.allow(s)
	s.edit(l)
	if s.busy != nil && s.busy.places != nil {
		l.look(s.busy.places, now)
	}
	l.run(now)
	return nil
}

// HoldInFlight bounds for a while how many reservations of a scope may be open, below
// the MaxInFlight that it has; 0 ends that. Unlike [Limiter.SetScope] it leaves the
// scope one that may be forgotten, and the bound with it. It is for a scope of which
// nothing is known yet. A negative n counts as 0. It returns how many callers waited
// for a place there before.
func (l *Limiter) HoldInFlight(scope string, n int) (waited int) {
	l.lock()
	defer l.mu.Unlock()
	s, err := l.scope(scope)
	if err != nil {
		return 0
	}
	now := l.catchUp()
	if s.busy != nil && s.busy.places != nil {
		for _, t := range s.busy.places.class {
			for _, f := range t.flows {
				for _, k := range f.lanes {
					waited += k.n
				}
			}
		}
	}
	s.atMost = int32(max(0, min(n, math.MaxInt32)))
	if s.busy != nil && s.busy.places != nil {
		l.look(s.busy.places, now)
	}
	l.run(now)
	return waited
}

// edit notes that s was set by hand.
func (s *scope) edit(l *Limiter) {
	s.edited = l.opener != nil || s.opt != ScopeOptions{} ||
		slices.ContainsFunc(s.limits, func(b bound) bool { return b.conf != nil })
}

// SetScopeLimit configures one limit of a scope: it adds the limit, or changes
// the one of that name, or removes it if its Rate is zero. See [Limiter.SetLimit]
// for what becomes of credit and of those who wait.
func (l *Limiter) SetScopeLimit(scope string, lim Limit) error {
	return l.setLimit(scope, lim, true, nil)
}

// EnforceScopeLimit puts lim in force in place of the limit of its name. The
// configured limit stays as it is: both are in a [LimitState]. With a zero Rate the
// configured limit is in force again, and a limit that was never configured is
// removed. SetScopeLimit of the same name ends it too.
//
// It is for what a program learns or decides for a time. A scope that is
// forgotten forgets what was only put in force.
func (l *Limiter) EnforceScopeLimit(scope string, lim Limit) error {
	return l.setLimit(scope, lim, false, nil)
}

// CopyScopeLimit is [Limiter.EnforceScopeLimit] for a limit like the one of its name in
// the scope from. If it is new, open reservations give back to it what they give back
// to that one. A window begins with the use of that one. A bucket begins full, so drain
// it: nothing that is open was charged to it.
// Without that limit in from it is EnforceScopeLimit.
func (l *Limiter) CopyScopeLimit(from, scope string, lim Limit) error {
	return l.setLimit(scope, lim, false, &from)
}

// setLimit sets a limit of a scope. A new one is as old as that of its name in from,
// if that is not nil.
func (l *Limiter) setLimit(scope string, lim Limit, configured bool, from *string) error {
	lim, err := lim.checked("Limit")
	if err != nil {
		return err
	}
	l.lock()
	defer l.mu.Unlock()
	s, err := l.scope(scope)
	if err != nil {
		return err
	}
	now := l.catchUp()
	b := s.find(lim.Name)
	if !configured && lim.Rate == (Rate{}) && b != nil && b.conf != nil {
		lim = *b.conf
	}
	switch {
	case lim.Rate == (Rate{}):
		if b != nil {
			l.dropLimit(s, b, now)
		}
	case b == nil:
		b = l.addLimit(s, lim, from, now)
	default:
		l.changeLimit(s, b, lim, now)
	}
	if lim.Rate != (Rate{}) {
		if configured {
			b.conf = b.cfg
		}
		if b.line != nil {
			l.look(b.line, now)
		}
	}
	if configured && s != &l.root {
		s.edit(l)
	}
	l.run(now)
	return nil
}

// dropLimit takes b out of the limits of s. Those who waited for it look again.
func (l *Limiter) dropLimit(s *scope, b *bound, now int64) {
	q, gone := b.line, *b
	if gone.line = nil; q != nil {
		q.b = &gone // where b was will be another one
	}
	s.limits = slices.DeleteFunc(s.limits, func(of bound) bool { return of.cfg.Name == gone.cfg.Name })
	s.relink()
	l.scatter(q, now)
}

// addLimit gives s a limit that it had not. What is said of the like limit of the scope
// from, if it is not nil, is said of this one too.
func (l *Limiter) addLimit(s *scope, lim Limit, from *string, now int64) *bound {
	l.open.seq++
	fresh := newBound(l.share(lim), now, l.base.UnixNano())
	fresh.born = l.open.seq
	if from != nil {
		if o := l.lookup(*from); o != nil {
			if like := o.find(lim.Name); like != nil && like.unit == lim.Unit {
				fresh.born = like.born
				fresh.beginAs(like)
			}
		}
	}
	s.limits = append(s.limits, fresh)
	s.follows(now)
	s.relink()
	l.refuseImpossible(s)
	return &s.limits[len(s.limits)-1]
}

// changeLimit puts lim in the place of b, which keeps its level.
func (l *Limiter) changeLimit(s *scope, b *bound, lim Limit, now int64) {
	most, unit, old := b.max, b.unit, b.cfg
	b.advance(now)
	burst, largest := lim.sizes()
	b.change(now, lim.Rate, burst, largest)
	b.cfg = l.share(lim)
	if unit != lim.Unit && b.more != nil {
		b.more.open, b.more.young, b.more.input = 0, 0, 0
	}
	b.obey(old, l.base.UnixNano())
	s.follows(now)
	var q *line
	if unit != lim.Unit {
		b.early = wide{}
		if x := b.rare; x != nil {
			x.read, x.reader, x.charged = 0, 0, false // no balance of this unit was heard
		}
		l.open.seq++
		b.unit, b.born = lim.Unit, l.open.seq
		q, b.line = b.line, nil
	}
	if b.max < most || unit != lim.Unit {
		l.refuseImpossible(s) // before anybody goes, who could not be charged
	}
	l.scatter(q, now)
}

// DrainScope is [Limiter.Drain] for a limit of any scope. It does nothing in a
// scope that is not there.
func (l *Limiter) DrainScope(scope, name string, keep int64, d time.Duration) bool {
	l.lock()
	defer l.mu.Unlock()
	now := l.catchUp()
	b := l.limitOf(scope, name)
	if b == nil || !b.refused(now, clampUnits(keep), max(0, d)) {
		return false
	}
	l.run(now)
	return true
}

// RecallScope charges the window of a limit of any scope with units that were used so
// long ago, before the limit was known. They are forgotten with what else was used then.
// A bucket and a guard are not charged: nobody knows how much they have earned since. It
// does nothing where there is no such window.
func (l *Limiter) RecallScope(scope, name string, ago time.Duration, units int64) {
	l.lock()
	defer l.mu.Unlock()
	now := l.catchUp()
	b, back := l.limitOf(scope, name), int64(max(0, ago))
	if b == nil || b.more == nil || b.more.window == nil || back >= 2*int64(b.w) {
		return // no window counts what is older than two of its length
	}
	b.advance(now)
	b.more.window.charge(max(0, now-back), clampUnits(units))
}

// EarlyScope says whether the other side charges what calls reserve. It is for calls that
// left before a limit of any scope came. The balances that the other side states have their
// charge in them, and [Reservation.Lower] took it off the limit. So their refunds are
// credit, as far as no later balance shows less: at once for those that have ended, and at
// their end for others. Before EarlyScope nothing comes back: had the other side charged
// nothing, credit would be minted. It is not said of windows and guards, nor of a limit that
// is not there yet.
func (l *Limiter) EarlyScope(scope, name string, charged bool) {
	l.lock()
	defer l.mu.Unlock()
	now := l.catchUp()
	b := l.limitOf(scope, name)
	if b == nil {
		return
	}
	b.advance(now)
	if b.needsRare().charged = charged; charged {
		b.giveEarly()
	}
	if b.line != nil {
		l.look(b.line, now)
	}
	l.run(now)
}

// limitOf is the limit of that name in a scope, or nil.
func (l *Limiter) limitOf(scope, name string) *bound {
	if s := l.lookup(scope); s != nil {
		return s.find(name)
	}
	return nil
}

// lookup is the scope of that name, or nil.
func (l *Limiter) lookup(name string) *scope {
	if name == "" {
		return &l.root
	}
	return l.scopes.find(name)
}
