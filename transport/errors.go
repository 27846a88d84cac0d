package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/limit"
)

// Error is a request that was not sent, because the limiter did not admit it: it
// could never be admitted, the line is full, the wait is too long, or the
// caller's context ended in the line. [errors.As] finds the numbers in a
// [*limit.Error]. [errors.Is] finds its reason (such as [limit.ErrTooLarge]), the
// context's error and its cause. It names nothing of the request.
type Error struct {
	Err  *limit.Error
	Cost limit.Cost // what the call asked for

	cause error // the context's, if it is another than its error
}

func newError(e *limit.Error, cost limit.Cost, outputCap int64, ctx context.Context) *Error {
	e.Parts = parts(e.Cost, cost, outputCap)
	n := &Error{Err: e, Cost: cost}
	if cause := context.Cause(ctx); ctx.Err() != nil && !errors.Is(ctx.Err(), cause) {
		n.cause = cause
	}
	return n
}

// Error reads like "tripmeter: request not sent: limit: cost can never be admitted:
// tpm: cost 16392 (8 prompt + 16384 max_tokens), capacity 1000; lower max_tokens, or ...".
func (e *Error) Error() string {
	return fmt.Sprintf("tripmeter: request not sent: %v; %s", e.Err, advice(e.Err, e.Cost))
}

// Timeout reports whether the caller's deadline was the bound. [http.Client]
// asks, and so does code that tests for a net.Error.
func (e *Error) Timeout() bool { return errors.Is(e.Err, context.DeadlineExceeded) }

// Temporary makes an Error a [net.Error]. A deadline is temporary, as
// [context.DeadlineExceeded] says of itself.
func (e *Error) Temporary() bool { return e.Timeout() }

// Unwrap returns the [*limit.Error], and the cause of the context's end if it
// has one of its own.
func (e *Error) Unwrap() []error {
	if e.cause != nil {
		return []error{e.Err, e.cause}
	}
	return []error{e.Err}
}

// parts says what the units asked of a limit are made of, where it counts both
// tokens. outputCap is what the request states; 0 is none.
func parts(units int64, c limit.Cost, outputCap int64) string {
	in, out, kind := c.Input, c.Output, "output" // of several choices
	if in <= 0 || out <= 0 || units != in+out {
		return ""
	}
	switch outputCap {
	case out:
		kind = "max_tokens"
	case 0:
		kind = "expected output"
	}
	return fmt.Sprintf("%d prompt + %d %s", in, out, kind)
}

// allowances are the fields of TenantOptions by the name of their dimension.
var allowances = map[string]string{
	budget.DayTokens: "DayTokens", budget.DayMoney: "DayMoney", budget.MonthTokens: "MonthTokens", budget.MonthMoney: "MonthMoney",
}

// advice says what to do next.
func advice(e *limit.Error, c limit.Cost) string {
	if e.By != "" && e.Reason != limit.ErrTooLarge {
		return fmt.Sprintf("%s asked for a pause (%s), and all who take from it wait; use another model or key, or Transport.Resume", e.By, e.Why)
	}
	field, allowance := allowances[e.Dimension]
	raise := "or raise the limit or burst if the provider allows more"
	if allowance {
		raise = "or raise " + field + " of the tenant"
	}
	switch e.Reason {
	case limit.ErrTooLarge:
		if c.Output > c.Input && e.Cost >= c.Output {
			return "lower max_tokens, " + raise
		}
		return "send a smaller request, " + raise
	case limit.ErrQueueFull:
		return "try later, or raise MaxQueue"
	case limit.ErrWaitTooLong:
		if allowance {
			return "try again when it begins anew, " + raise
		}
		if e.Cause != nil {
			return "give the context more time, or send less"
		}
		return "try later, or raise MaxWait"
	}
	const held = "the local limiter held it, not the server"
	switch {
	case !errors.Is(e, context.DeadlineExceeded):
		return held // the caller left, and knows why
	case e.Dimension == "in-flight":
		return held + "; give the context more time, close every response's body, or raise MaxInFlight"
	}
	return held + "; give the context more time, or send less"
}

// ConfigError names an option that cannot be.
type ConfigError struct {
	Field   string
	Value   any
	Problem string
}

func (e *ConfigError) Error() string {
	if strings.HasPrefix(e.Field, "TenantOptions.") {
		return fmt.Sprintf("transport: %s is %v: %s", e.Field, e.Value, e.Problem)
	}
	return fmt.Sprintf("transport: Options.%s is %v: %s", e.Field, e.Value, e.Problem)
}
