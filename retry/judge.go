package retry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/internal/refusal"
	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// judge decides whether the call is sent again, and when. Nothing else in the
// package does. A refusal for the rate is shown to the hint also when it is
// final, since the layer that hints keeps a balance of all of them.
func (c *call) judge() bool {
	again := c.worthAnother()
	if !again && c.err == nil && c.resp.StatusCode == http.StatusTooManyRequests &&
		c.refusal == nil && c.t.opts.ResetHint != nil && !hasEnded(c.req) {
		c.readRefusal(0)
	}
	return again
}

// worthAnother asks what costs nothing first; the body of a response is read
// only when everything else is for another attempt.
func (c *call) worthAnother() bool {
	var order time.Duration
	var ordered bool
	if c.err == nil {
		if !worthIt(c.resp) {
			if c.resp.StatusCode >= 400 && shouldRetry(c.resp.Header) == no {
				c.reason = Refused
			}
			return false
		}
	} else if c.reason = errorReason(c.req, c.err, c.t.opts.IdempotentOnly); c.reason != Answered {
		return false
	}
	switch {
	case c.n >= c.limit:
		c.reason = Exhausted
		return false
	case hasEnded(c.req):
		c.reason = Ended
		return false
	case !c.body.again():
		c.reason = OneShot
		return false
	}

	c.arrived = time.Now()
	if c.resp != nil {
		w := retryafter.Parse(c.resp.Header, c.arrived)
		order, ordered = w.Longest, w.OK
		if c.reason = c.fits(order, ordered); c.reason != Answered {
			return false
		}
		if more, ok := c.readRefusal(order); ok {
			order, ordered = max(order, more), true
		}
		if c.verdict.Known && !c.verdict.Retryable {
			c.reason = Refused
			return false
		}
		if hasEnded(c.req) { // while the body was read: nothing is announced any more
			c.end(c.req.Context())
			return false
		}
	}
	if c.reason = c.fits(order, ordered); c.reason != Answered {
		return false
	}
	c.decide(order, ordered)
	return true
}

// worthIt reports whether the status and x-should-retry speak for another attempt.
func worthIt(resp *http.Response) bool {
	s := resp.StatusCode
	if s < 400 || s > 599 {
		return false
	}
	switch shouldRetry(resp.Header) {
	case yes:
		return true
	case no:
		return false
	}
	switch s {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false // the server will not learn it
	}
	return s >= 500
}

type advice int8

const (
	no advice = iota - 1
	unsaid
	yes
)

// shouldRetry reads x-should-retry: "true" or "false", anything else is unsaid. Of
// several lines that disagree, the one that forbids counts.
func shouldRetry(h http.Header) advice {
	a := unsaid
	for _, v := range h["X-Should-Retry"] {
		switch v = strings.TrimSpace(v); {
		case strings.EqualFold(v, "false"):
			return no
		case strings.EqualFold(v, "true"):
			a = yes
		}
	}
	return a
}

// readRefusal reads the beginning of the refused body, classifies it, and returns
// the wait that it or the reset hint orders. The body stays whole for the caller.
func (c *call) readRefusal(order time.Duration) (more time.Duration, ok bool) {
	if c.resp.Body == nil {
		c.resp.Body = http.NoBody
	}
	planned := max(order, c.t.opts.MinBackoff)
	c.refusal = hold(c.resp, min(max(planned, heldAtLeast), heldAtMost), c.req.Context().Done())
	c.resp = c.refusal.to
	seen := c.refusal.seen()
	text, unpacked := plain(c.resp.Header, seen)
	c.verdict = refusal.Classify(c.resp.StatusCode, text)
	if !c.t.opts.IgnoreBodyWait && c.verdict.Wait > 0 {
		more, ok = c.verdict.Wait, true
	}
	if f := c.t.opts.ResetHint; f != nil {
		view := c.view(text)
		if unpacked { // and looks as net/http's own unpacking leaves it
			view.Header, view.ContentLength, view.Uncompressed = view.Header.Clone(), -1, true
			view.Header.Del("Content-Encoding")
			view.Header.Del("Content-Length")
		}
		if d := f(view); d > 0 {
			more, ok = max(more, d), true
		}
	}
	return min(more, retryafter.Max), ok
}

// fits says why a wait of d from the outcome's arrival cannot be slept, or
// Answered if it can. A wait without an order is at least MinBackoff.
func (c *call) fits(d time.Duration, ordered bool) Reason {
	if !ordered {
		d = c.t.opts.MinBackoff
	} else if d > c.t.opts.MaxWait {
		return TooLong
	}
	if at, ok := c.req.Context().Deadline(); ok && !c.arrived.Add(d).Before(at) {
		return OutOfTime
	}
	if !c.start.IsZero() && c.arrived.Add(d).Sub(c.start) > c.t.opts.MaxElapsed {
		return Elapsed
	}
	return Answered
}

// decide draws the wait and announces it. With an order, the wait is the order and
// a jitter that doubles with each attempt. Without, it lies between MinBackoff and
// a ceiling that doubles. Full jitter, as in "Exponential Backoff And Jitter" (AWS
// Architecture Blog), but never downwards from what was asked: a herd told to come
// back in 7 s is spread over what follows the 7 s.
func (c *call) decide(order time.Duration, ordered bool) {
	o := &c.t.opts
	base, spread := order, ceiling(o.MinBackoff, o.MaxBackoff, c.n-1)
	if !ordered {
		base = o.MinBackoff
		spread = ceiling(o.MinBackoff, o.MaxBackoff, c.n) - o.MinBackoff
	}
	// Jitter is ours: it gives way to the caller's time, which the order fits.
	if at, ok := c.req.Context().Deadline(); ok {
		spread = min(spread, at.Sub(c.arrived)-base-1)
	}
	if !c.start.IsZero() {
		spread = min(spread, o.MaxElapsed-c.arrived.Sub(c.start)-base)
	}
	if spread > 0 {
		base += time.Duration(rand.Int64N(int64(spread) + 1))
	}
	// The time spent on reading the body has been part of the wait.
	c.wait = max(0, time.Until(c.arrived.Add(base)))
	if o.Deciding != nil {
		o.Deciding(c.event())
	}
}

// ceiling is lo doubled n times, at most hi.
func ceiling(lo, hi time.Duration, n int) time.Duration {
	for ; n > 0 && lo < hi; n-- {
		if lo > hi/2 {
			return hi
		}
		lo *= 2
	}
	return min(lo, hi)
}

// view is a copy of the response for a hook, with a body of its own to read.
func (c *call) view(body []byte) *http.Response {
	r := *c.resp
	r.Body = io.NopCloser(bytes.NewReader(body))
	return &r
}

// errorReason says why an attempt that failed with err is not made again, or
// Answered if it may be.
func errorReason(req *http.Request, err error, idempotentOnly bool) Reason {
	switch {
	case hasEnded(req):
		return Ended
	case errors.Is(err, context.Canceled), !mendable(err):
		return Broken
	case idempotentOnly && !idempotent(req) && !neverSent(err):
		return NotSafe
	}
	return Answered
}
