package retry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/tripmeter/tripmeter/internal/neterr"
	"github.com/tripmeter/tripmeter/internal/refusal"
)

// judge decides whether the call is sent again, and when. Nothing else in the
// package does. It announces every refused attempt, final or not.
func (c *call) judge() bool {
	if c.err == nil && c.resp.StatusCode < 400 {
		c.t.budget.earn()
		if c.t.opts.RateLimitFor > 0 {
			c.t.answered.Store(int64(time.Since(c.t.born)))
		}
		return false
	}
	c.arrived = time.Now()
	if c.resp != nil {
		c.readHeader()
	}
	again := c.worthAnother()
	if c.t.opts.Refused != nil && c.refusedByServer() {
		if c.held == nil && !hasEnded(c.req) {
			c.readBody()
		}
		e := c.event()
		if !again {
			e.Wait = 0
		}
		c.t.opts.Refused(e)
	}
	if again && c.t.opts.Deciding != nil {
		c.t.opts.Deciding(c.event())
	}
	return again
}

// refusedByServer reports whether the response is a refusal: by its status, or
// because its header names a wait.
func (c *call) refusedByServer() bool {
	if c.resp == nil {
		return false
	}
	switch c.resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, statusCapacity, statusOverloaded:
		return true
	}
	return c.order.Named || c.held != nil && c.limited()
}

// Statuses that providers use and net/http does not name.
const (
	statusCapacity   = 498 // Groq: flex tier capacity exceeded
	statusOverloaded = 529 // Anthropic: overloaded_error
)

// limited reports whether the body speaks of a limit or an overload, under any
// status. Some gateways, and Google's older interfaces, answer 403; the JSON
// protocols of Amazon answer 400.
func (c *call) limited() bool {
	switch v := &c.reading.Body; v.Class {
	case refusal.RateLimit, refusal.Overload, refusal.Quota:
		return v.Known
	}
	return false
}

// passing reports whether the next attempt may end in another way. The reason says
// why not.
func (c *call) passing() bool {
	if c.err == nil {
		return c.worthIt()
	}
	if err := c.body.failed(); err != nil && !hasEnded(c.req) {
		c.reason = Broken // the body's own error, and the next one would fail alike
		if !errors.Is(c.err, err) {
			c.err = fmt.Errorf("%w: %w", c.err, err)
		}
		return false
	}
	c.reason = errorReason(c.req, c.err, c.t.opts.IdempotentOnly || c.creates())
	return c.reason == Answered
}

// worthAnother asks what costs nothing first. It reads the body of a response
// only if everything else speaks for another attempt.
func (c *call) worthAnother() bool {
	switch {
	case !c.passing():
		return false
	case c.n-c.rated >= c.limit && !c.patient():
		c.reason = Exhausted
		return false
	case hasEnded(c.req):
		c.reason = Ended
		return false
	case !c.body.again():
		c.reason = OneShot
		return false
	}

	var order time.Duration
	var ordered bool
	if c.resp != nil {
		order, ordered = c.order.Wait, c.order.Named
		if c.reason = c.fits(order, ordered); c.reason != Answered {
			return false
		}
		c.readBody()
		order, ordered = c.reading.Order(c.ignoresBodyWait())
		if v := &c.reading.Body; v.Known && !v.Retryable {
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
	if c.waits() {
		if c.arrived.Add(order).Sub(c.refused) > c.t.opts.RateLimitFor {
			c.reason = Elapsed
			return false
		}
		c.rated++
	} else if c.n-c.rated >= c.limit {
		c.reason = Exhausted
		return false
	}
	if !c.t.opts.Unbudgeted && !c.ownRate() && !c.t.budget.take(c.arrived) {
		c.reason = Unaffordable
		return false
	}
	c.draw(order, ordered)
	return true
}

// patient reports whether the response may be a refusal for the rate that counts by
// time and not as an attempt. Not that of a call which makes a lasting thing: no
// model's rate refused it, and its caller wants to know soon.
func (c *call) patient() bool {
	if c.t.opts.RateLimitFor <= 0 || c.limit <= 1 || c.per.attempts > 0 || c.resp == nil {
		return false
	}
	s := c.resp.StatusCode
	return s == http.StatusTooManyRequests && !c.creates() || s == http.StatusBadRequest && c.ownRate()
}

// waits reports whether the response is a refusal for the rate that counts by time, and
// notes when the first such came. A 429 without a word about a rate is one if other
// calls were answered since the first: a server that refuses everything gets no more
// than the attempts.
func (c *call) waits() bool {
	if !c.patient() || !c.ownRate() {
		return false
	}
	since := c.refused
	if since.IsZero() {
		c.refused = c.arrived
	}
	return c.reading.Body.Known || !since.IsZero() && c.t.answered.Load() > int64(since.Sub(c.t.born))
}

// never is before every instant.
const never = math.MinInt64

// ownRate reports whether the caller was too fast for its own limit.
func (c *call) ownRate() bool {
	return c.resp != nil && c.reading.Body.Class == refusal.RateLimit
}

// creates reports whether a second arrival of the request makes a second thing.
func (c *call) creates() bool {
	return c.t.creations != nil && !idempotent(c.req) && c.t.creations.Creates(c.req)
}

// worthIt reports whether the status and the server's own word speak for another
// attempt.
func (c *call) worthIt() bool {
	s := c.resp.StatusCode
	if s > 599 {
		return false
	}
	switch {
	case c.order.Forbidden:
		c.reason = Refused
		return false
	case c.order.Asked:
		return true
	}
	switch s {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, statusCapacity, statusOverloaded:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false // the server will not learn it
	case http.StatusForbidden, http.StatusBadRequest: // Google and gateways; Amazon and Alibaba
		if !hasEnded(c.req) {
			c.readBody()
		}
		return c.held != nil && c.limited() && c.reading.Body.Retryable
	case http.StatusRequestTimeout, http.StatusConflict:
	default:
		if s < 500 {
			return false
		}
	}
	if c.creates() {
		c.reason = NotSafe
		return false
	}
	return true
}

// readHeader reads what the header of the response orders, once. The base is
// asked if it has read it already.
func (c *call) readHeader() {
	if c.t.orders != nil {
		c.order = c.t.orders.Order(c.req, c.resp)
		return
	}
	h := refusal.ReadHeader(c.resp.StatusCode, c.resp.Header, c.arrived)
	c.order = Order{Wait: h.Wait, Named: h.Named, Reset: h.Reset, Asked: h.Asked, Forbidden: h.Forbidden}
}

// readBody reads the beginning of the refused body and classifies it, once. The
// body stays whole for the caller.
func (c *call) readBody() {
	if c.held != nil {
		return
	}
	if c.resp.Body == nil {
		c.resp.Body = http.NoBody
	}
	planned := max(c.order.Wait, c.t.opts.MinBackoff)
	c.held = hold(c.resp, min(max(planned, heldAtLeast), heldAtMost), c.req.Context().Done())
	c.resp = c.held.to
	text := plain(c.resp.Header, c.held.seen())
	o := &c.order
	h := refusal.Header{
		Wait: o.Wait, Named: o.Named, Reset: o.Reset, Asked: o.Asked, Forbidden: o.Forbidden,
		Type: refusal.TypeOf(c.resp.Header), Dated: c.resp.Header,
	}
	c.reading = refusal.Read(c.resp.StatusCode, h, text, c.arrived)
}

func (c *call) ignoresBodyWait() bool { return c.t.opts.IgnoreBodyWait || c.order.IgnoreBodyWait }

// fits says why a wait of d from the outcome's arrival cannot be slept, or
// Answered if it can. A wait without an order is at least MinBackoff.
func (c *call) fits(d time.Duration, ordered bool) Reason {
	if !ordered {
		d = c.t.opts.MinBackoff
	} else if d > c.t.opts.MaxRetryAfter {
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

// draw draws the wait. With an order, the wait is the order and a jitter that
// doubles with each attempt. Without, it lies between MinBackoff and a ceiling
// that doubles. Full jitter, as in "Exponential Backoff And Jitter" (AWS
// Architecture Blog), but never below the order: many that are ordered to wait
// 7 s come back spread over the time after the 7 s.
func (c *call) draw(order time.Duration, ordered bool) {
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
	if !c.refused.IsZero() && c.patient() {
		spread = min(spread, o.RateLimitFor-c.arrived.Sub(c.refused)-base)
	}
	if spread > 0 {
		base += time.Duration(rand.Int64N(int64(spread) + 1))
	}
	// The time spent on reading the body has been part of the wait.
	c.wait = max(0, time.Until(c.arrived.Add(base)))
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
	case errors.Is(err, context.Canceled), errors.Is(err, errNoResponse), !neterr.Mendable(err):
		return Broken
	case idempotentOnly && !idempotent(req) && !neterr.Unsent(err) && !neterr.Unprocessed(err):
		return NotSafe
	}
	return Answered
}
