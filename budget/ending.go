package budget

import (
	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
)

// An Ending is how one attempt of a call ended, as far as the ledger is
// concerned. The zero Ending is Unknown, which keeps all.
type Ending uint8

const (
	// Unknown: it may have cost all that it holds, and nothing will say. A server
	// error, a time-out, a connection that broke after sending.
	Unknown Ending = iota
	// Unsent: nothing left.
	Unsent
	// Refused: the provider refused it for its rate.
	Refused
	// Overloaded: the provider had no capacity, and no model ran.
	Overloaded
	// Free: it was answered, and no model ran. A redirect, a request that was
	// wrong, an upgrade; also a success of a call without a body.
	Free
	// Answered: a model ran, and the response may say what it cost.
	Answered
)

func (e Ending) String() string { return endings[e].name }

// fate is what happens to one part of what an attempt holds.
type fate uint8

const (
	kept fate = iota
	returned
	settled  // to the usage
	byRule   // returned, unless refused calls are charged
	byRefuse // kept, unless refused calls are free
)

// endings is the one table of what the ledger does. Retry and settlement both
// read it through [Call].
var endings = [...]struct {
	name             string
	requests, tokens fate
}{
	Unknown:    {"unknown", kept, kept},
	Unsent:     {"unsent", returned, returned},
	Refused:    {"refused", byRefuse, byRule},
	Overloaded: {"overloaded", kept, returned},
	Free:       {"free", kept, returned},
	Answered:   {"answered", kept, settled},
}

// EndingOf is the ending of an attempt by its status, 0 if no response came.
// left is false if nothing of the attempt can have left. prompt is false if the
// call has no body, so that no model runs.
func EndingOf(status int, left, prompt bool) Ending {
	switch {
	case status == 0 && !left:
		return Unsent
	case status == 0:
		return Unknown
	case status == 429: // RFC 6585, section 4
		return Refused
	case status == 503, status == 529: // 529: Anthropic, overloaded
		return Overloaded
	case status >= 500:
		return Unknown
	case status >= 200 && status < 300 && prompt:
		return Answered
	}
	return Free
}

// back is the part of its cost that an attempt gets back at an ending, under a
// rule and with refused calls free or not. Settled tokens are not in it.
func (e Ending) back(cost limit.Cost, rule *estimate.Rule, refusedFree bool) limit.Cost {
	gives := func(f fate) bool {
		return f == returned || f == byRule && !rule.RefusedCount || f == byRefuse && refusedFree && !rule.RefusedCount
	}
	var back limit.Cost
	if gives(endings[e].requests) {
		back.Requests = cost.Requests
	}
	if gives(endings[e].tokens) {
		back.Input, back.Output = cost.Input, cost.Output
	}
	return back
}
