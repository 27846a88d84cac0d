package limit

import (
	"errors"
	"fmt"
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
	Cause  error // the context's error, or nil

	// Dimension is what decided: the name of a limit, "in-flight", "pause",
	// "line" (others come first), or "cost" (the cost itself is no cost).
	Dimension string
	Cost      int64 // what was asked of it, in its unit; 0 for a pause
	Capacity  int64 // the most it could admit, in its unit; 0 = that is not it

	// Wait is how long it would have taken from then, under no other use, and
	// Earliest the instant it could have gone. They are exact for the head of
	// the line. Behind it they are exact where one limit holds the line up,
	// this cost is not 0 in it, and each of those ahead is below its burst;
	// otherwise they are never too late. Zero is unknown: a place in flight
	// comes back when somebody's call ends. A wait above 292 years is told as
	// that.
	Wait     time.Duration
	Earliest time.Time

	Waited time.Duration // how long the caller stood in the line
}

// Error reads like "limit: no credit now: tpm: cost 900, capacity 1000, could
// go in 1.2s".
func (e *Error) Error() string {
	s := fmt.Sprintf("limit: %v: %s", e.Reason, e.Dimension)
	if e.Cost != 0 {
		s += fmt.Sprintf(": cost %d", e.Cost)
	}
	if e.Capacity != 0 {
		s += fmt.Sprintf(", capacity %d", e.Capacity)
	}
	if e.Wait > 0 {
		s += fmt.Sprintf(", could go in %v", e.Wait)
	}
	if e.Waited > 0 {
		s += fmt.Sprintf(", waited %v", e.Waited)
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap lets [errors.Is] see the reason and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Cause}
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
