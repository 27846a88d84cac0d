package limit

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Why a call was not admitted. Test with [errors.Is]; read the numbers from
// [*Error] with [errors.As].
var (
	// ErrTooLarge: the cost is more than the limit can ever admit. Waiting
	// does not help; ask for less, or raise the limit.
	ErrTooLarge = errors.New("cost can never be admitted")

	// ErrQueueFull: as many callers wait already as the limiter allows.
	ErrQueueFull = errors.New("the line is full")

	// ErrWaitTooLong: the wait would outlast the caller's deadline, or the
	// longest wait the limiter was given.
	ErrWaitTooLong = errors.New("the wait is too long")

	// ErrLimited: there is no credit at this moment, and the caller asked not
	// to wait.
	ErrLimited = errors.New("no credit now")

	// ErrCanceled: the caller gave up. Its context ended, or its ticket was
	// canceled.
	ErrCanceled = errors.New("gave up waiting")

	// ErrInvalid: a negative cost.
	ErrInvalid = errors.New("negative cost")

	// ErrBackwards: an instant earlier than the last one, given to a bare
	// [Bucket] or [GCRA].
	ErrBackwards = errors.New("time went backwards")
)

// Error says why a call was not admitted, in numbers. It holds nothing of the
// call itself. It matches its Reason, and its Cause where a context ended or
// its deadline was the bound, under [errors.Is].
type Error struct {
	Reason error // one of the package's Err values
	Cause  error // context.Cause of the context that ended, or nil
	ctx    error // the error of that context, where its cause is another one

	// Dimension is what decided, in the scope of that name (empty: the root): the
	// name of a limit, "in-flight", "pause", "line" (others come first, or too
	// many wait), or "cost" (a count in it is negative).
	Dimension string
	Scope     string
	Cost      int64  // what was asked of it, in its unit; 0 for a pause
	Parts     string // what Cost is made of, as the text shows it; the ledger leaves it empty
	Capacity  int64  // the most it could admit, in its unit; 0 = that is not it

	// By and Why are those of the pause that holds the scope, if one does.
	By, Why string

	// Wait is how long it would have taken from then, under no other use, and
	// Earliest the instant it could have gone. They are exact for the first of
	// a line. Behind it, among calls of one tenant, they are exact on two
	// conditions: one limit holds the line up, and each call ahead is below the
	// burst and costs its Likely. Otherwise they are never too late. With other tenants they are an
	// expectation: see [Limiter.Forecast]. Zero is unknown:
	// a place in flight comes back when another call ends. A wait above 292
	// years is given as that.
	Wait     time.Duration
	Earliest time.Time

	Waited time.Duration // how long the caller stood in the line
}

// Error reads like "limit: no credit now: tpm of model/large: cost 900, capacity
// 1000, could go in 1.2s".
func (e *Error) Error() string {
	s := fmt.Sprintf("limit: %v: %s", e.Reason, e.Dimension)
	if e.Scope != "" {
		s += " of " + e.Scope
	}
	switch {
	case e.By == "":
	case e.Dimension == "pause":
		s += " asked for by " + e.By
	default:
		s += ", in a pause asked for by " + e.By
	}
	if e.Why != "" {
		s += " (" + e.Why + ")"
	}
	if e.Cost != 0 {
		s += fmt.Sprintf(": cost %d", e.Cost)
		if e.Parts != "" {
			s += " (" + e.Parts + ")"
		}
	}
	if e.Capacity != 0 {
		s += fmt.Sprintf(", capacity %d", e.Capacity)
	}
	if e.Wait > 0 {
		s += fmt.Sprintf(", could go in %v", round(e.Wait))
	}
	if e.Waited > 0 {
		s += fmt.Sprintf(", waited %v", round(e.Waited))
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// round cuts d to three or four digits, upwards, as texts show it.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 10_000 && unit < time.Second {
		unit *= 10
	}
	if rest := d % unit; rest > 0 && d < math.MaxInt64-unit {
		d += unit - rest
	}
	return d
}

// other is err, unless the cause is the same.
func other(err, cause error) error {
	if err == cause {
		return nil
	}
	return err
}

// Unwrap lets [errors.Is] see the reason, the cause, and the error of the
// context.
func (e *Error) Unwrap() []error {
	all := []error{e.Reason}
	if e.Cause != nil {
		all = append(all, e.Cause)
	}
	if e.ctx != nil {
		all = append(all, e.ctx)
	}
	return all
}

// ConfigError names an option that cannot be.
type ConfigError struct {
	Field   string // for example "Limits[1].Rate.N"
	Value   any    // what it was
	Problem string // what it must be
}

// Error reads like "limit: MaxWait is -1s: must not be negative".
func (e *ConfigError) Error() string {
	return fmt.Sprintf("limit: %s is %v: %s", e.Field, e.Value, e.Problem)
}
