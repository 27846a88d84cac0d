package transport

import "github.com/tripmeter/tripmeter/limit"

// An account is what one call holds in the ledger. Its methods are the endings
// that an attempt, and then the call, can have; each reservation gets exactly
// one. The zero account holds nothing.
type account struct {
	// open holds the tokens. slot holds the place in flight of the attempt on
	// the wire: it is open itself, or, for a further attempt after a refusal,
	// a reservation of one request. Between attempts slot is zero.
	open, slot limit.Reservation

	cost, extra limit.Cost // of open, and of slot where it is its own
	charged     limit.Cost // what the ledger keeps of the call so far
}

var none limit.Reservation

// take starts an attempt that is charged in full.
func (a *account) take(r limit.Reservation, cost limit.Cost) {
	a.open, a.slot, a.cost = r, r, cost
	a.charged = plus(a.charged, cost)
}

// again starts an attempt for which the tokens are held already.
func (a *account) again(r limit.Reservation, cost limit.Cost) {
	a.slot, a.extra = r, cost
	a.charged = plus(a.charged, cost)
}

// holds reports whether tokens are held for a further attempt.
func (a *account) holds() bool { return a.open != none }

// waiting reports whether no attempt is on the wire.
func (a *account) waiting() bool { return a.slot == none }

// refused ends an attempt that the provider did not charge: its request stays
// counted, its tokens stay held, its place in flight is given back.
func (a *account) refused() {
	if a.slot == a.open {
		a.open.Park()
	} else {
		a.slot.Keep()
	}
	a.slot = none
}

// unsent ends an attempt that never left.
func (a *account) unsent() {
	if a.slot == a.open {
		a.charged = minus(a.charged, a.cost)
		a.open.Return()
		a.open = none
	} else {
		a.charged = minus(a.charged, a.extra)
		a.slot.Return()
	}
	a.slot = none
}

// spent ends an attempt that may have cost all it holds, and will never say.
func (a *account) spent() {
	if a.slot != a.open {
		a.slot.Keep()
	}
	a.open.Keep()
	a.open, a.slot = none, none
}

// settle ends the call with the tokens that it really cost.
func (a *account) settle(input, output int64) {
	if a.slot != a.open {
		a.slot.Keep()
	}
	if a.open != none {
		actual := limit.Cost{Requests: a.cost.Requests, Input: input, Output: output}
		a.charged = plus(a.charged, minus(actual, a.cost))
		a.open.Settle(actual)
	}
	a.open, a.slot = none, none
}

func plus(a, b limit.Cost) limit.Cost {
	return limit.Cost{Requests: a.Requests + b.Requests, Input: a.Input + b.Input, Output: a.Output + b.Output}
}

func minus(a, b limit.Cost) limit.Cost {
	return limit.Cost{Requests: a.Requests - b.Requests, Input: a.Input - b.Input, Output: a.Output - b.Output}
}
