package transport

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/usage"
)

// Trace is a set of hooks into the life of a call. Each may be nil. They are
// called with no lock held, on the goroutine that does the work, so a slow one
// slows its own call; they may be called for several calls at once. Requests
// are the caller's and must not be changed. The other fields hold no key and no
// prompt, except [Attempt.Err], which is the base's own error in its own words.
type Trace struct {
	// Who: for whom a call is made. It is called just before Queued. The tenant is
	// named as its scope in a Snapshot, without the "@"; "" is the common tenant.
	Who func(r *http.Request, tenant string, c limit.Class)

	// Queued: priced, about to be admitted.
	Queued func(*http.Request, limit.Cost)

	// Granted: admitted after wait in the line.
	Granted func(r *http.Request, cost limit.Cost, wait time.Duration)

	// Refused: not admitted. Nothing was sent, or, for a call that was granted
	// before, no further attempt. err is what RoundTrip returns, or would.
	Refused func(r *http.Request, err error)

	// Answered: an attempt on the wire ended, with a response or an error.
	Answered func(Attempt)

	// Lowered: what the provider says is left was less than the ledger thought.
	Lowered func(r *http.Request, dimension string, remaining int64)

	// Paused: nothing leaves for so long. The Pause says who asked for it and why;
	// r is the call whose answer said so.
	Paused func(r *http.Request, p limit.Pause)

	// LimitChanged: a limit was learned from headers, or follows them.
	LimitChanged func(old, new limit.Limit)

	// LawChanged: another law is believed of a limit, or none any more. The
	// limits say which, since when and why: Law, LawSince and LawWhy.
	LawChanged func(old, new limit.Limit)

	// Settled: the call is over. It is called once for every Granted.
	Settled func(Settlement)

	// Doubted: headers say that calls are charged by another rule than the
	// profile's; see [Options.FollowRule].
	Doubted func(profile, seen string)
}

// Attempt is one request on the wire.
type Attempt struct {
	Request  *http.Request
	N        int           // from 1
	Status   int           // 0 if there was no response
	Err      error         // nil if there was one
	Duration time.Duration // until the response header
	Left     Left          // what the response header says is left
}

// String names the numbers, and nothing of the request.
func (a Attempt) String() string {
	return fmt.Sprintf("attempt %d: status %d after %v, left %v", a.N, a.Status, a.Duration, a.Left)
}

// LogValue is String, for package log/slog.
func (a Attempt) LogValue() slog.Value { return slog.StringValue(a.String()) }

// Left is what a response header says is left, for watching the headroom
// shrink. A negative number is unknown.
type Left struct {
	Requests, Tokens, Input, Output int64
}

// Settlement is the end of a call in the ledger.
type Settlement struct {
	Request  *http.Request
	Reserved limit.Cost // tokens as priced, and one request for each attempt charged
	Charged  limit.Cost // what the ledger keeps
	Usage    Usage      // what the response reported
	Attempts int        // on the wire
	Status   int        // of the last attempt, 0 if it had none
	Complete bool       // the body was read to its end

	// FirstChunk is the time from the start of the last attempt to the first byte of
	// a stream of events. Zero: the answer was none, or nothing of it was read.
	FirstChunk time.Duration
}

// String names the numbers, and nothing of the request.
func (s Settlement) String() string {
	return fmt.Sprintf("settled: reserved %v; charged %v; %d attempts, status %d, complete %v", s.Reserved, s.Charged, s.Attempts, s.Status, s.Complete)
}

// LogValue is String, for package log/slog.
func (s Settlement) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Usage is what a response reported of its tokens. Zero and Found false when
// it reported nothing usable.
type Usage struct {
	Input, CachedInput, Output int64
	Found                      bool
}

// reported is the usage of a response, for people.
func reported(r *usage.Result) Usage {
	if !r.Found {
		return Usage{}
	}
	return Usage{Input: r.Input.N, CachedInput: r.CachedInput.N, Output: r.Output.N, Found: true}
}
