package budget

import (
	"errors"
	"math"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/usage"
)

// A spend is what a call takes of its tenant's day and month. It is nil for a call
// whose tenant has no allowances.
type spend struct {
	price  ModelPrice
	tokens limit.Cost        // what it is asked for
	stated limit.Cost        // of that, what the request itself states
	beside limit.Reservation // in Budget.beside
}

// plan prices what the call may cost its tenant.
func (c *Call) plan() {
	if c.who.Tenant == "" {
		return
	}
	t := c.path.budget.payer(c.who.Tenant)
	if t == nil {
		c.spend = nil
		return
	}
	p := &c.price
	c.spend = &spend{
		price:  t.priceOf(p.learns.Model),
		tokens: limit.Cost{Input: p.input, Output: max(p.output, p.reserve)},
		stated: limit.Cost{Input: p.stated.Input, Output: p.reserveStated},
	}
}

// asked is what the call asks of the allowances.
func (s *spend) asked() limit.Spend {
	if s == nil {
		return limit.Spend{}
	}
	return s.spends(s.tokens.Input, 0, s.tokens.Output)
}

// spends is what tokens cost the tenant.
func (s *spend) spends(input, cached, output int64) limit.Spend {
	if s == nil {
		return limit.Spend{}
	}
	return limit.Spend{Tokens: addSat(input, output), Money: s.price.cost(input, cached, output)}
}

// cutSpend cuts a guess to what an allowance has left, and reports whether the call
// may be asked for again. Only what the request itself states can be too much. A day
// or a month that has nothing left refuses also a guess.
func (c *Call) cutSpend(err error) bool {
	s := c.spend
	if err == nil || s == nil {
		return false // before e, which is on the heap
	}
	var e *limit.Error
	if !errors.As(err, &e) || e.Scope != c.who.Tenant || e.Capacity <= 0 {
		return false
	}
	before := s.tokens
	switch e.Dimension {
	case DayTokens, MonthTokens:
		s.tokens = cut1(s.tokens, s.stated, limit.Tokens, e.Capacity)
	case DayMoney, MonthMoney:
		s.tokens = s.price.cut(s.tokens, s.stated, e.Capacity)
	}
	return s.tokens != before
}

// held is what is taken in the limiter beside a foreign ledger.
func (s *spend) held() limit.Reservation {
	if s == nil {
		return limit.Reservation{}
	}
	return s.beside
}

// used is the use that an answer states for the call. The provider may charge
// something else against its limits. A count that is not known is as it was
// charged.
func (s *spend) used(r *usage.Result, input, output int64) limit.Spend {
	if s == nil {
		return limit.Spend{}
	}
	u := used(r)
	if u.Input < 0 {
		u.Input = input
	}
	if u.Output < 0 || !r.Complete {
		u.Output = max(u.Output, output)
	}
	return s.spends(u.Input, u.Cached, u.Output)
}

func addSat(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
