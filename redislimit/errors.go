package redislimit

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrAway: the store does not answer.
	ErrAway = errors.New("the store is away")

	// ErrClosed: the limiter was closed.
	ErrClosed = errors.New("the limiter is closed")
)

// An AwayError is what a call gets while the store is away. It matches
// [ErrAway], what the local share said, such as [limit.ErrLimited], and why the
// store cannot be reached, under [errors.Is].
type AwayError struct {
	Policy  Away
	Since   time.Time // when the store was seen last
	Members int       // by how many the budget was divided
	Err     error     // what the local share said; nil if the policy is Closed
	Store   error     // why the store cannot be reached
}

// Error reads like "redislimit: the store is away since 12:00:01 (i/o timeout):
// a share of 1/4 is in force: limit: no credit now: ...".
func (e *AwayError) Error() string {
	s := fmt.Sprintf("redislimit: %v since %s", ErrAway, e.Since.Format("15:04:05"))
	if e.Store != nil {
		s += fmt.Sprintf(" (%v)", e.Store)
	}
	switch {
	case e.Err == nil:
		return s + ": calls are refused until it answers"
	case e.Policy == Share:
		s += fmt.Sprintf(": a share of 1/%d is in force", e.Members)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap gives [errors.Is] all three.
func (e *AwayError) Unwrap() []error {
	errs := []error{ErrAway}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	if e.Store != nil {
		errs = append(errs, e.Store)
	}
	return errs
}

// A LayoutError says that the store keeps the budget in the layout of another version of
// this package, or of another program. Nothing was read or changed there. [New] returns
// it in a [*StoreError]. A process that finds it later has its local share, and calls get
// it in an [*AwayError].
//
// Two versions would read each other's numbers wrong, so they never share a budget. With
// another [Options.Name] each version has a budget of its own: both together may then send
// twice as much, until the processes of one have ended.
type LayoutError struct {
	Budget string // Options.Name
	Found  int64  // the layout in the store; 0 before layouts had numbers
	Want   int64  // the layout of this version
}

// Error says what to do.
func (e *LayoutError) Error() string {
	return fmt.Sprintf("the store keeps the budget %q in layout %d, and this version reads layout %d: "+
		"use one version in all processes; or end the others and delete the keys %q, which forgets what is owed; or set another Options.Name",
		e.Budget, e.Found, e.Want, prefix+e.Budget+"}:*")
}

// A StoreError is why the store cannot serve a budget at all, such as a server
// that refuses TIME in a script.
type StoreError struct {
	Err    error
	Advice string // what to do
}

// Error reads like "redislimit: NOPERM ...: let the user run eval".
func (e *StoreError) Error() string {
	s := "redislimit: " + e.Err.Error()
	if e.Advice != "" {
		s += ": " + e.Advice
	}
	return s
}

// Unwrap gives the client's error.
func (e *StoreError) Unwrap() error { return e.Err }
