package retry

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// An Event is what a hook gets.
type Event struct {
	Request  *http.Request  // the caller's; not to be changed
	Response *http.Response // a copy with a readable, bounded body; nil if the attempt had no response
	Err      error          // the attempt's own error; nil if it had a response
	Attempt  int            // attempts made so far, from 1
	Wait     time.Duration  // the wait before the next attempt: to come in Refused and Deciding, over in Admit, 0 if there is none
	Waited   time.Duration  // time slept in this call so far
	Refusal  Refusal        // what header and body said
	Reason   Reason         // why there is no further attempt; Answered if there is one
}

// String says how the attempt went. It leaves out the request, the response's
// header and body, and the text of an error: each may hold a key.
func (e Event) String() string {
	s := fmt.Sprintf("attempt %d", e.Attempt)
	if e.Response != nil {
		s += fmt.Sprintf(": status %d", e.Response.StatusCode)
	} else if e.Err != nil {
		s += fmt.Sprintf(": %T", e.Err)
	}
	return s + fmt.Sprintf(", wait %v, waited %v, %v", e.Wait, e.Waited, e.Reason)
}

// LogValue is String, for package log/slog.
func (e Event) LogValue() slog.Value { return slog.StringValue(e.String()) }

// A Reason says why a call ended when it did. Its zero value is Answered.
type Reason uint8

const (
	Answered     Reason = iota // the outcome is not one that is retried
	Refused                    // the server, in header or body, says another attempt cannot succeed
	Broken                     // an error that another attempt cannot mend
	NotSafe                    // the request may have reached the server; see Options.IdempotentOnly
	Exhausted                  // no attempts left
	OneShot                    // the request body cannot be sent again
	TooLong                    // the server orders a wait above Options.MaxRetryAfter
	OutOfTime                  // the wait would outlast the context's deadline
	Elapsed                    // the wait would outlast Options.MaxElapsed
	NotAdmitted                // Options.Admit refused
	Ended                      // the context ended
	Unaffordable               // the budget of further attempts is spent; see Options.Unbudgeted
)

var reasons = [...]string{
	Answered:    "answered",
	Refused:     "the server says that another attempt cannot succeed",
	Broken:      "the error is not one that another attempt can mend",
	NotSafe:     "the request may have reached the server and is not idempotent",
	Exhausted:   "no attempts left",
	OneShot:     "the request body can be sent only once",
	TooLong:     "the server orders a wait above MaxRetryAfter",
	OutOfTime:   "the wait would outlast the context's deadline",
	Elapsed:     "the wait would outlast MaxElapsed",
	NotAdmitted: "the next attempt was not admitted",
	Ended:       "the context ended",

	Unaffordable: "the budget of further attempts is spent, because too many calls fail",
}

// String returns the reason as part of a sentence.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "unknown reason"
}

// A Tally counts what the calls made with one context really did; see
// [WithTally]. Several calls may share it, as the hops of a redirect do. The zero
// value is ready for use, also by several goroutines.
type Tally struct {
	mu       sync.Mutex
	attempts int
	waited   time.Duration
	reason   Reason
}

// Attempts is the number of requests handed to the base transport.
func (t *Tally) Attempts() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attempts
}

// Waited is the time slept between attempts.
func (t *Tally) Waited() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waited
}

// Reason says why the latest call to end was not tried again.
func (t *Tally) Reason() Reason {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reason
}

func (t *Tally) add(attempts int, waited time.Duration, r Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempts += attempts
	t.waited += waited
	t.reason = r
}

// held reports whether r kept a further attempt from being made that would
// otherwise have been. An error then says so.
func (r Reason) held() bool {
	switch r {
	case NotSafe, OneShot, OutOfTime, Elapsed, NotAdmitted, Unaffordable:
		return true
	}
	return false
}
