package retry

import (
	"net/http"
	"time"

	"github.com/tripmeter/tripmeter/internal/refusal"
)

// An Order is what the header of a response says about another attempt. The zero
// Order says nothing.
type Order struct {
	// Wait is the longest wait that the header names, from the arrival of the
	// response on. Named reports whether it names one, if only of zero.
	Wait  time.Duration
	Named bool

	// Reset is how long until the exhausted limits are restored, 0 if that is
	// not known. It is waited for if neither header nor body names a wait.
	Reset time.Duration

	// Asked and Forbidden are the server's own word on another attempt
	// (X-Should-Retry); both false if it says nothing.
	Asked, Forbidden bool

	// IgnoreBodyWait is Options.IgnoreBodyWait for this response.
	IgnoreBodyWait bool
}

// An OrderReader is a base that has read the headers of its responses already. If
// the base of a [Transport] is one, the Transport does not read a header itself.
// It calls Order once for each response with a status of 400 or more, with the
// caller's request. Order must not touch the body.
type OrderReader interface {
	Order(*http.Request, *http.Response) Order
}

// A CreationReader is a base that knows what a request is for. Creates reports
// whether another arrival of the request would make another lasting thing, such as
// a batch or a file. If the base of a [Transport] is a CreationReader and Creates
// is true, a request is sent again only if that makes no second thing: it has an
// Idempotency-Key, there was no connection, or the answer is a refusal (403, 429,
// 498, 503, 529). Creates gets the caller's request.
type CreationReader interface {
	Creates(*http.Request) bool
}

// A RequestOwner is a base whose requests are not used again: a layer above the
// [Transport] made each of them for one call. If the base of a Transport is one
// and OwnsRequests is true, the first attempt sends the request itself and not a
// copy of it.
type RequestOwner interface {
	OwnsRequests() bool
}

// A Class is the kind of a refusal. The zero Class is not known.
type Class string

const (
	ClassRateLimit Class = refusal.RateLimit // too fast for this limit; waiting helps
	ClassQuota     Class = refusal.Quota     // credit, entitlement or a daily allowance is used up
	ClassTooLarge  Class = refusal.TooLarge  // larger than the limit or the model admits
	ClassOverload  Class = refusal.Overload  // shared capacity, not the caller's own limit
	ClassServer    Class = refusal.Server    // the provider failed
	ClassTimeout   Class = refusal.Timeout   // the provider or a proxy gave up waiting
	ClassInvalid   Class = refusal.Invalid   // the request itself is at fault
)

// A Refusal is what a refused response said, in header and body. The zero Refusal
// is that of an attempt without a response, or whose body was not read.
type Refusal struct {
	// Wait is the longest wait that header or body names, from the arrival of
	// the response on. Named reports whether they name one.
	Wait  time.Duration
	Named bool

	// Reset is how long until a used-up allowance is there again, as header or body
	// say, 0 if that is not known. It is there for what is not retryable too.
	Reset time.Duration

	// Window is the window of an allowance that is used up: 24 hours, or 30 days for a
	// month. 0 is unknown, or no such refusal. Wide reports whether that allowance is of
	// more than the model: of the account, or of a group of its models.
	Window time.Duration
	Wide   bool

	// Read reports whether the body was read. The fields below are zero if not.
	Read bool

	// Known is false if the body said nothing usable. Class and Retryable are
	// then those of the status alone.
	Known bool

	Class     Class
	Retryable bool   // the same request may succeed within minutes
	Account   bool   // the whole account is concerned: billing or entitlement
	Dimension string // "requests", "tokens", "input", "output", or "" unknown

	// Scope is what a refusal for the rate speaks of: "model", "account" (all its
	// models), or "" unknown. ScopeSure is unset where only a mention of the account
	// says so, as some providers name it where a model's limit refused.
	Scope     string
	ScopeSure bool

	// Code and Type are the provider's own words, as given; "" is missing.
	Code, Type string

	// Limit, Used and Requested are the numbers of the message, in units of
	// Dimension. 0 is unknown.
	Limit, Used, Requested int64
}

// public is a reading without its internal types.
func public(r *refusal.Reading, ignoreBodyWait bool) Refusal {
	v := &r.Body
	wait, named := r.NamedWait(ignoreBodyWait)
	return Refusal{
		Wait: wait, Named: named, Reset: r.UntilReset(), Window: v.Span, Wide: v.Wide, Read: true, Known: v.Known,
		Class: Class(v.Class), Retryable: v.Retryable, Account: v.Account, Dimension: v.Dimension,
		Scope: v.Scope, ScopeSure: v.ScopeSure, Code: v.Code, Type: v.Type, Limit: v.Limit, Used: v.Used, Requested: v.Requested,
	}
}
