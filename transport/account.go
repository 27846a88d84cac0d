package transport

import "github.com/tripmeter/tripmeter/limit"

// An account is what one call holds in the ledger: the reservation of the
// attempt on the wire. Its methods are the endings that an attempt can have;
// each reservation gets exactly one. The zero account holds nothing.
//
// A refused attempt does not hold its tokens for the next one, as it could: many
// that were refused together would then come back together, and only one of
// them finds what it needs. It takes them again, in line, and the budget was
// drained so that the first finds just enough and the others are paced behind.
type account struct {
	open    limit.Reservation // zero between attempts
	cost    limit.Cost        // of open
	charged limit.Cost        // what the ledger keeps of the call so far
}

// take starts an attempt.
func (a *account) take(r limit.Reservation, cost limit.Cost) {
	a.open, a.cost = r, cost
	a.charged = plus(a.charged, cost)
}

// waiting reports whether no attempt is on the wire.
func (a *account) waiting() bool { return a.open == limit.Reservation{} }

// unsent ends an attempt that never left.
func (a *account) unsent() {
	a.open.Return()
	a.close(limit.Cost{})
}

// spent ends an attempt that may have cost all it holds, and will never say.
func (a *account) spent() {
	a.open.Keep()
	a.close(a.cost)
}

// settle ends an attempt with the tokens that it really cost. Its request stays
// counted.
func (a *account) settle(input, output int64) {
	actual := limit.Cost{Requests: a.cost.Requests, Input: input, Output: output}
	a.open.Settle(actual)
	a.close(actual)
}

func (a *account) close(actual limit.Cost) {
	a.charged = plus(a.charged, minus(actual, a.cost))
	a.open = limit.Reservation{}
}

func plus(a, b limit.Cost) limit.Cost {
	return limit.Cost{Requests: a.Requests + b.Requests, Input: a.Input + b.Input, Output: a.Output + b.Output}
}

func minus(a, b limit.Cost) limit.Cost {
	return limit.Cost{Requests: a.Requests - b.Requests, Input: a.Input - b.Input, Output: a.Output - b.Output}
}
