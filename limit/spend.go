package limit

import (
	"math"
	"slices"
	"time"
)

// A Spend is what a call uses, for the party that pays for it. Tokens are those
// used, even if a provider charges another number against its limits. Money is in a
// unit of the caller's choice. A negative number counts as 0. The zero Spend uses
// nothing.
type Spend struct{ Tokens, Money int64 }

// Allowances are what a scope may spend in a day and in a month. 0 is any amount.
//
// A call beyond an allowance is refused at once, as nobody waits for weeks. That is
// part of the one decision about the call: an allowance is charged in the instant in
// which all limits of the path are, or nothing is. A call that waits in a line holds
// nothing of an allowance. If it is used up when its turn comes, it is refused then.
//
// What a call spends belongs to the instant at which it was admitted. Its settlement
// corrects that day and that month, and nothing if they are over.
type Allowances struct {
	DayTokens, DayMoney, MonthTokens, MonthMoney int64

	// Rolling counts the last 24 hours and the last 30 days. Unset, it is the
	// calendar's day and month, in UTC. What is used in one of [RollingSlots] parts of
	// a rolling period is forgotten together, with the latest of it: never too early,
	// and late by one part at most.
	Rolling bool
}

// RollingSlots is in how many parts a rolling day and a rolling month are counted:
// of five minutes, and of 150 minutes.
const RollingSlots = 288

// The names of allowances in errors and snapshots.
const (
	DayTokens   = "tokens used per day"
	DayMoney    = "money per day"
	MonthTokens = "tokens per month"
	MonthMoney  = "money per month"
)

const (
	rollingDay   = 24 * time.Hour
	rollingMonth = 30 * rollingDay
)

// An allowance is one of the Allowances.
type allowance struct {
	name  string
	most  int64
	month bool
	money bool
}

func (a *Allowances) all() [4]allowance {
	return [4]allowance{
		{DayTokens, a.DayTokens, false, false}, {DayMoney, a.DayMoney, false, true},
		{MonthTokens, a.MonthTokens, true, false}, {MonthMoney, a.MonthMoney, true, true},
	}
}

func (a *Allowances) check() error {
	for _, one := range a.all() {
		if one.most < 0 {
			return &ConfigError{"Allowances: " + one.name, one.most, "must not be negative; zero is any amount"}
		}
	}
	return nil
}

// bounded keeps sums of spends within 63 bits.
func (p Spend) bounded() Spend {
	const most = math.MaxInt64 / 4
	return Spend{max(0, min(p.Tokens, most)), max(0, min(p.Money, most))}
}

func (p Spend) minus(q Spend) Spend { return Spend{p.Tokens - q.Tokens, p.Money - q.Money} }

func (p Spend) of(money bool) int64 {
	if money {
		return p.Money
	}
	return p.Tokens
}

// add is p and q. It saturates, and is never negative.
func (p Spend) add(q Spend) Spend {
	sum := func(a, b int64) int64 {
		if b > 0 && a > math.MaxInt64-b {
			return math.MaxInt64
		}
		return max(0, a+b)
	}
	return Spend{sum(p.Tokens, q.Tokens), sum(p.Money, q.Money)}
}

// spentSoFar is what a scope has spent in its day and its month.
type spentSoFar struct {
	born       uint64 // table.seq when it came: older reservations are not in it
	day, month spendPeriod
}

// A spendPeriod is what was spent in one day or month: in its last part, and in the older
// parts of a rolling one, in order of time.
type spendPeriod struct {
	spendPart             // the last one; until is 0 if nothing counts
	older     *spendParts // nil if there are none
	month     bool
	rolling   bool
}

// A spendPart is what was spent at instants in [from, until).
type spendPart struct {
	from, until int64
	Spend
}

type spendParts struct {
	all  Spend
	list []spendPart
}

// newSpent begins to count at a scope.
func (l *Limiter) newSpent(rolling bool) *spentSoFar {
	l.open.seq++
	return &spentSoFar{born: l.open.seq, day: spendPeriod{rolling: rolling}, month: spendPeriod{rolling: rolling, month: true}}
}

func (p *spendPeriod) window() int64 {
	if p.month {
		return int64(rollingMonth)
	}
	return int64(rollingDay)
}

// at is the part without use that an instant belongs to. epoch is the instant 0,
// counted from 1970.
func (p *spendPeriod) at(now, epoch int64) spendPart {
	if p.rolling {
		grid := p.window() / RollingSlots
		from := edgeBefore(now, 0, grid)
		return spendPart{from: from, until: from + grid}
	}
	t := time.Unix(0, epoch+now).UTC()
	y, m, d := t.Date()
	from, until := time.Date(y, m, d, 0, 0, 0, 0, time.UTC), time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
	if p.month {
		from, until = time.Date(y, m, 1, 0, 0, 0, 0, time.UTC), time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return spendPart{from: from.UnixNano() - epoch, until: until.UnixNano() - epoch}
}

// ends is when one counts no more.
func (p *spendPeriod) ends(one *spendPart) int64 {
	if p.rolling {
		return one.until + p.window()
	}
	return one.until
}

// all is what counts.
func (p *spendPeriod) all() Spend {
	if p.older == nil {
		return p.Spend
	}
	return p.Spend.add(p.older.all)
}

// advance forgets what counts no more at now. Each part is forgotten once.
func (p *spendPeriod) advance(now int64) {
	if p.until != 0 && p.ends(&p.spendPart) <= now {
		p.spendPart, p.older = spendPart{}, nil
		return
	}
	if p.older == nil || p.ends(&p.older.list[0]) > now {
		return
	}
	gone := 0
	for gone < len(p.older.list) && p.ends(&p.older.list[gone]) <= now {
		gone++
	}
	if p.older.list = slices.Delete(p.older.list, 0, gone); len(p.older.list) == 0 {
		p.older = nil
		return
	}
	p.older.all = Spend{}
	for i := range p.older.list {
		p.older.all = p.older.all.add(p.older.list[i].Spend)
	}
}

// charge adds what is spent at now.
func (p *spendPeriod) charge(now, epoch int64, c Spend) {
	p.advance(now)
	if now >= p.until {
		if p.until != 0 {
			if p.older == nil {
				p.older = &spendParts{}
			}
			p.older.list = append(p.older.list, p.spendPart)
			p.older.all = p.older.all.add(p.Spend)
		}
		p.spendPart = p.at(now, epoch)
	}
	p.Spend = p.Spend.add(c)
}

// correct adds c, which may be negative, to what was spent at an instant, if that
// still counts at now.
func (p *spendPeriod) correct(now, at int64, c Spend) {
	p.advance(now)
	switch {
	case p.until == 0 || at >= p.until:
	case at >= p.from:
		p.Spend = p.Spend.add(c)
	case p.older != nil:
		i, _ := slices.BinarySearchFunc(p.older.list, at, func(one spendPart, at int64) int {
			if one.until <= at {
				return -1
			}
			return 1
		})
		if i < len(p.older.list) && at >= p.older.list[i].from {
			one := &p.older.list[i]
			before := one.Spend
			one.Spend = before.add(c)
			p.older.all = p.older.all.add(one.Spend.minus(before))
		}
	}
}

// room is the instant from which cost fits within most, if nothing else is spent. It
// is now if it fits.
func (p *spendPeriod) room(now, cost, most int64, money bool) int64 {
	p.advance(now)
	used := p.all().of(money)
	if cost <= most-used {
		return now
	}
	if p.older != nil {
		for i := range p.older.list {
			if used -= p.older.list[i].of(money); cost <= most-used {
				return p.ends(&p.older.list[i])
			}
		}
	}
	return p.ends(&p.spendPart)
}

// empty reports whether nothing counts any more at now.
func (p *spentSoFar) empty(now int64) bool {
	p.day.advance(now)
	p.month.advance(now)
	return p.day.until == 0 && p.month.until == 0
}

// of is the period of an allowance.
func (p *spentSoFar) of(a *allowance) *spendPeriod {
	if a.month {
		return &p.month
	}
	return &p.day
}

// beyond is the error for a want that goes beyond an allowance of its path at now,
// or nil. Of several allowances it names that which holds the call for longest.
func (l *Limiter) beyond(w *want, now int64) *Error {
	if w.spend == (Spend{}) {
		return nil
	}
	var e *Error
	var until int64
	for i := 0; i <= len(w.path); i++ {
		s := l.at(w.path, i)
		if s.opt.Allowances == nil {
			continue
		}
		for _, a := range s.opt.Allowances.all() {
			c := w.spend.of(a.money)
			if a.most == 0 || c == 0 {
				continue
			}
			if c > a.most {
				return &Error{Reason: ErrTooLarge, Scope: s.name, Dimension: a.name, Cost: c, Capacity: a.most}
			}
			if s.spent == nil {
				continue
			}
			p := s.spent.of(&a)
			at := p.room(now, c, a.most, a.money)
			if at <= now || at <= until {
				continue
			}
			until = at
			e = &Error{
				Reason: ErrWaitTooLong, Scope: s.name, Dimension: a.name, Cost: c, Capacity: max(0, a.most-p.all().of(a.money)),
				Wait: time.Duration(at - now), Earliest: l.base.Add(time.Duration(at)),
			}
		}
	}
	return e
}

// spend charges s with what w spends at now.
func (l *Limiter) spend(s *scope, w *want, now int64) {
	if s.spent == nil {
		a := s.opt.Allowances
		if a == nil {
			return
		}
		s.spent = l.newSpent(a.Rolling)
	}
	epoch := l.base.UnixNano()
	s.spent.day.charge(now, epoch, w.spend)
	s.spent.month.charge(now, epoch, w.spend)
}

// respend corrects what e has spent to how it ended. A nil spent is as reserved.
func (l *Limiter) respend(e *entry, how ending, spent *Spend) {
	var d Spend
	switch {
	case how == returned:
		d = e.spend
	case how == settled && spent != nil:
		d = e.spend.minus(*spent)
	}
	l.unspend(&l.root, e, d)
	for i := range e.path {
		l.unspend(e.path[i].s, e, d)
	}
}

// unspend takes d off what e has spent in s, or adds it where negative.
func (l *Limiter) unspend(s *scope, e *entry, d Spend) {
	if d == (Spend{}) || s.spent == nil || s.spent.born > e.seq {
		return
	}
	now, more := l.now(), Spend{}.minus(d)
	s.spent.day.correct(now, e.taken, more)
	s.spent.month.correct(now, e.taken, more)
}

// allow takes over the allowances of s.opt: a copy of them, which many scopes share.
func (l *Limiter) allow(s *scope) {
	a := s.opt.Allowances
	if a == nil {
		return // what was spent counts until its period is over
	}
	for _, one := range l.allowed {
		if one != nil && *one == *a {
			a = one
		}
	}
	if a == s.opt.Allowances { // else it is kept already
		a = &Allowances{}
		*a = *s.opt.Allowances
		l.allowed[l.allows%len(l.allowed)] = a
		l.allows++
	}
	s.opt.Allowances = a
	if s.spent != nil && s.spent.day.rolling != a.Rolling {
		l.recount(s, a.Rolling)
	}
}

// recount counts what s has spent in periods of the other kind. Each part counts as
// spent at its last instant.
func (l *Limiter) recount(s *scope, rolling bool) {
	now, epoch, old := l.now(), l.base.UnixNano(), s.spent
	s.spent = l.newSpent(rolling)
	s.spent.born = old.born
	for _, p := range [...]struct{ from, to *spendPeriod }{{&old.day, &s.spent.day}, {&old.month, &s.spent.month}} {
		p.from.advance(now)
		var all []spendPart
		if p.from.older != nil {
			all = p.from.older.list
		}
		for _, one := range append(all, p.from.spendPart) {
			if one.until != 0 {
				p.to.charge(min(now, one.until-1), epoch, one.Spend)
			}
		}
	}
}

// snapshotSpent appends the state of the allowances of s.
func (s *scope) snapshotSpent(l *Limiter, states []LimitState, now int64) []LimitState {
	if s.opt.Allowances == nil {
		return states
	}
	var day, month Spend
	if s.spent != nil {
		s.spent.day.advance(now)
		s.spent.month.advance(now)
		day, month = s.spent.day.all(), s.spent.month.all()
	}
	return append(states, s.opt.Allowances.States(l.base.Add(time.Duration(now)), day, month)...)
}

// States are the allowances at an instant, when that was spent of the day and of the
// month: one for each that is limited, as a [Snapshot] shows it. It is for ledgers that
// keep their sums elsewhere.
func (a *Allowances) States(at time.Time, day, month Spend) (states []LimitState) {
	for _, one := range a.all() {
		if one.most == 0 {
			continue
		}
		p, used := spendPeriod{rolling: a.Rolling, month: one.month}, day.of(one.money)
		if one.month {
			used = month.of(one.money)
		}
		window, law := time.Duration(p.window()), Law{Shape: ShapeLog}
		if !p.rolling {
			part := p.at(0, at.UnixNano())
			window, law = time.Duration(part.until-part.from), Law{Shape: ShapeFixed, Edge: time.Duration(at.UnixNano() + part.from)}
		}
		lim := Limit{Name: one.name, Unit: Tokens, Rate: Rate{one.most, window}, Law: law}
		states = append(states, LimitState{
			Limit: lim, Configured: lim, Capacity: one.most, Credit: max(0, one.most-used), Debt: max(0, used-one.most),
		})
	}
	return states
}
