package headers

import "time"

// Count is a number of requests, tokens or other units. The zero value is
// unknown; a known zero has OK set.
type Count struct {
	N  int64
	OK bool
}

// Span is a length of time, never negative and never above 146 years. The zero
// value is unknown; a known zero has OK set.
type Span struct {
	D  time.Duration
	OK bool
}

// Flag is an answer. The zero value is unknown.
type Flag struct {
	V  bool
	OK bool
}

// Quota is what a response says about one limit. The zero value says nothing.
type Quota struct {
	// Limit is how many units the limit allows per window. It is known to be
	// zero only on a 429, where it means that the caller is not entitled at all.
	Limit Count

	// Remaining is how many units were left when the server looked. It may be
	// negative, which is debt. It is never above a known Limit and never below
	// minus a known Limit; where Limit is unknown, a debt above the limit that the
	// caller knows is no balance. Most providers look when they admit the call,
	// some after it.
	Remaining Count

	// Reset is how long, from the response on, until the limit is restored. Most
	// providers mean the time until it is full, the IETF drafts the time until
	// there is more. It is not a time to wait for: see Info.ResetWait.
	Reset Span

	// Window is the length of the window that a field name, a policy, or the
	// provider's documentation states. Zero is unknown.
	Window time.Duration

	// Inferred is the length that arithmetic gives where nobody states one. It
	// is a hint. Zero is unknown.
	Inferred time.Duration
}

// known reports whether anything beside a window was said. A window alone is a
// field name with a value that could not be read.
func (q Quota) known() bool { return q.Limit.OK || q.Remaining.OK || q.Reset.OK }

// exhausted reports whether q is known to have nothing left.
func (q Quota) exhausted() bool { return q.Remaining.OK && q.Remaining.N <= 0 }

// Named is the quota of a further dimension, for example "input_images" or
// "project_tokens". Words of a name are joined by underscores.
type Named struct {
	Name string
	Quota
}

// Window is a further window of a dimension whose shortest, or binding, window
// is reported elsewhere in Info.
type Window struct {
	// Dimension is "requests", "tokens", "input_tokens", "output_tokens" or the
	// name of a further dimension.
	Dimension string
	// Name is "month" or "year" where the window has no fixed length and
	// Quota.Window is zero; else empty.
	Name string
	Quota
}

// Policy is one item of the IETF RateLimit and RateLimit-Policy fields. Quota's
// Limit is the item's q, Remaining its r, Reset its t and Window its w.
type Policy struct {
	Name string
	// Unit is the item's qu as given; empty means requests
	// (draft-ietf-httpapi-ratelimit-headers-10).
	Unit string
	// Partition is the item's pk: an opaque text, for a byte sequence the base64
	// as it was sent. Two partitions of one name are two quotas.
	Partition string
	Quota
}

// Info is what a response's header says about limits. The zero value says
// nothing, and a member that could not be read is unknown. Info is a plain
// value: it keeps no reference to the header it was read from, apart from
// strings that are names.
type Info struct {
	// Requests, Tokens, Input and Output hold the shortest window of each
	// dimension, or, from the IETF fields, the window that binds. A value that names
	// no dimension counts requests and never tokens.
	Requests, Tokens, Input, Output Quota

	// Unnamed is set when Requests comes from fields that name neither a dimension
	// nor a window, such as X-RateLimit-Limit: they count requests by custom, but a
	// second's as often as a minute's.
	Unnamed bool

	Other    []Named  // further dimensions, by name
	Windows  []Window // further windows of a dimension, by dimension and length
	Policies []Policy // IETF items, in the order of the fields

	// NotBefore is the longest wait that any field gives: nothing should be sent
	// before.
	NotBefore Span

	// Applies reports whether NotBefore may delay anything. It is set on a 429,
	// a 503 and a 529, and where a provider refuses a stream after it said 200.
	// On any other answer some providers send a Retry-After that means nothing.
	Applies bool

	// ShouldRetry is the provider's word on trying this very call again.
	ShouldRetry Flag

	// Unread counts the fields whose name was understood and whose value was
	// not, an empty value apart. It is for logs and metrics: a provider that
	// starts to spell its values in another way shows here and nowhere else.
	Unread int
}

// ResetWait returns how long a refused caller has to wait: NotBefore when the
// server named a wait, else the longest reset among all dimensions, windows and
// policies that are known to be exhausted, else unknown.
//
// Call it on a refusal only. On any other answer a reset is the time until the
// limit is full again, which nobody has to wait for. A reset of zero beside
// nothing remaining contradicts itself and is not used: Azure OpenAI sends it
// while the minute is empty.
func (i *Info) ResetWait() Span {
	if i.NotBefore.OK {
		return i.NotBefore
	}
	var wait Span
	look := func(q Quota) {
		if q.exhausted() && q.Reset.OK && q.Reset.D > wait.D {
			wait = q.Reset
		}
	}
	for _, q := range [...]Quota{i.Requests, i.Tokens, i.Input, i.Output} {
		look(q)
	}
	for _, o := range i.Other {
		look(o.Quota)
	}
	for _, w := range i.Windows {
		look(w.Quota)
	}
	for _, p := range i.Policies {
		look(p.Quota)
	}
	return wait
}
