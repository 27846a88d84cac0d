package redislimit

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// Allowances are counted in the store, by its calendar, in the one decision about a
// call. A call carries what it spends; the script has the arithmetic of package limit.
// Sums are exact up to mostSpent, the largest whole number that the script adds to
// another one. A larger allowance counts as that.
const mostSpent = 1 << 52

// spendGrain divides every part of every period. Calls that were admitted within one
// grain spend of the same parts, so their ends travel as one sum.
const spendGrain = 5 * 60 * 1_000_000 // microseconds

// boundedSpend keeps what a call spends within what the script can add up. More than
// mostSpent stays more, and every allowance refuses it.
func boundedSpend(p limit.Spend) limit.Spend {
	return limit.Spend{Tokens: max(0, min(p.Tokens, mostSpent+1)), Money: max(0, min(p.Money, mostSpent+1))}
}

func less(p, q limit.Spend) limit.Spend {
	return limit.Spend{Tokens: p.Tokens - q.Tokens, Money: p.Money - q.Money}
}

var _ limit.SpendHolder = (*Limiter)(nil)

// SettleSpent ends the reservation of handle: see [limit.Reservation.SettleSpent].
func (l *Limiter) SettleSpent(handle uint64, actual limit.Cost, spent limit.Spend) {
	spent = boundedSpend(spent)
	l.settle(handle, actual, &spent)
}

// spending holds the sums of a scope's allowances in the last answer.
type spending struct {
	day, month limit.Spend
	at         int64 // the store's instant; 0: no answer had any
}

func (p *spending) read(r *reader, now int64) {
	p.at = now
	p.day = limit.Spend{Tokens: r.num(), Money: r.num()}
	p.month = limit.Spend{Tokens: r.num(), Money: r.num()}
}

// epoch is the store's instant 0, the first of January 1970.
var epoch = time.Time{}.AddDate(1969, 0, 0)

// instant is one of the store, by its own clock.
func instant(us int64) time.Time { return epoch.Add(time.Duration(us) * time.Microsecond) }

// names are the allowances in the script's order.
var names = [...]string{limit.DayTokens, limit.DayMoney, limit.MonthTokens, limit.MonthMoney}

// Codes of a call that goes beyond an allowance.
const (
	codeSpent   = 8 // too much for what is left
	codeTooMuch = 9 // too much for all of it
)

// beyond reads why a call goes beyond an allowance.
func (l *Limiter) beyond(r *reader, code int64) *limit.Error {
	e := &limit.Error{Reason: limit.ErrWaitTooLong}
	if code == codeTooMuch {
		e.Reason = limit.ErrTooLarge
	}
	e.Scope = r.str()
	if k := r.num(); k >= 1 && k <= int64(len(names)) {
		e.Dimension = names[k-1]
	}
	e.Cost, e.Capacity = r.num(), r.num()
	if d := r.num(); d > 0 {
		e.Wait = time.Duration(d) * time.Microsecond
		e.Earliest = l.lastAt.Add(e.Wait)
	}
	return e
}

// readSpending takes over what an answer says of the allowances of s.
func (s *scope) readSpending(r *reader, now int64) {
	told := r.num()
	if told == 0 {
		return
	}
	s.spends.read(r, now)
	if told < 2 {
		return
	}
	a := &limit.Allowances{DayTokens: r.num(), DayMoney: r.num(), MonthTokens: r.num(), MonthMoney: r.num()}
	if a.Rolling = r.num() == 1; *a == (limit.Allowances{Rolling: a.Rolling}) {
		a = nil // they were taken away; the sums stay
	}
	s.allowances = a
}

// rest are the allowances of a scope for the share of this process while the store is away:
// its part of what is left. Zero would be any amount. So where nothing is left the share
// gets 1, and burn says what of that is gone.
func (p *spending) rest(a *limit.Allowances, members int) (left *limit.Allowances, burn limit.Spend) {
	if a == nil {
		return nil, limit.Spend{}
	}
	part := func(most, used int64, burn *int64) int64 {
		if most == 0 {
			return 0
		}
		n := max(0, most-used) / int64(members)
		if n == 0 {
			*burn = 1
		}
		return max(1, n)
	}
	return &limit.Allowances{
		DayTokens: part(a.DayTokens, p.day.Tokens, &burn.Tokens), DayMoney: part(a.DayMoney, p.day.Money, &burn.Money),
		MonthTokens: part(a.MonthTokens, p.month.Tokens, &burn.Tokens), MonthMoney: part(a.MonthMoney, p.month.Money, &burn.Money),
		Rolling: a.Rolling,
	}, burn
}

// OpenWith has open asked how a scope begins that nobody has set: see [limit.Opener].
// It changes nothing where [Options.Open] is set.
func (l *Limiter) OpenWith(open func(scope string) (limit.ScopeOptions, []limit.Limit)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.o.Open != nil {
		return false
	}
	l.o.Open = open
	return true
}
