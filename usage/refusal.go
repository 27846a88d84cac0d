package usage

import "time"

// A RefusalClass is why a provider refused. The zero value is an error of no
// known kind.
type RefusalClass string

// The classes of a refusal.
const (
	RateLimit RefusalClass = "rate_limit" // too fast for this limit; waiting helps
	Quota     RefusalClass = "quota"      // money or an allowance is used up; waiting a little does not help
	TooLarge  RefusalClass = "too_large"  // larger than anything that the limit or the model admits
	Overload  RefusalClass = "overload"   // shared capacity, not the caller's own limit
	Server    RefusalClass = "server"     // the provider failed
	Timeout   RefusalClass = "timeout"    // the provider or a proxy gave up waiting
	Invalid   RefusalClass = "invalid"    // the request itself is at fault
)

// A Refusal is what an error inside a body says. It holds no text of the message,
// which may repeat the caller's own words.
type Refusal struct {
	// Class is why, or "" where the error is of no known kind.
	Class RefusalClass
	// Retryable: the very same request may succeed within minutes.
	Retryable bool
	// Account: no other call of the account can succeed either.
	Account bool
	// Wait is the time that the error asks for; 0 is unknown. It is 0 for what is
	// not retryable.
	Wait time.Duration
	// Reset is the time until an allowance that is used up is there again; 0 is
	// unknown. It is there for what is not retryable too.
	Reset time.Duration
	// Window is the window of an allowance that is used up: 24 hours, or 30 days for a
	// month; 0 is unknown. Wide: it is of more than the model, see
	// [github.com/tripmeter/tripmeter/budget.Allowance].
	Window time.Duration
	Wide   bool
	// Dimension is the limit that refused: "requests", "tokens", "input",
	// "output", or "" where the error does not say.
	Dimension string
	// Scope is what a refusal for the rate speaks of: "model", "account" (all its
	// models), or "" unknown. ScopeSure is unset where only a mention of the account
	// says so.
	Scope     string
	ScopeSure bool
	// Code, Type and Status are the provider's own words, "" where there are none.
	Code, Type, Status string
	// Limit, Used and Requested are the numbers that the error names, in units of
	// Dimension; 0 is unknown.
	Limit, Used, Requested int64
	// InStream: the error stood in an event of a stream; else it was the body.
	InStream bool
	// AfterOutput: output had come before it, so the model ran.
	AfterOutput bool
}
