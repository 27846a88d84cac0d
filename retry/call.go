package retry

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/internal/refusal"
)

// A call is one RoundTrip: the caller's request and the outcome of the latest
// attempt. It is the steps of an engine. One goroutine uses it.
type call struct {
	t      *Transport
	req    *http.Request // the caller's, never altered unless the base owns it
	header http.Header   // as the caller gave it
	body   body
	per    perCall
	limit  int       // attempts allowed
	start  time.Time // zero unless MaxElapsed bounds the call

	rated   int       // attempts that were refused for the rate and do not count
	refused time.Time // when the first of them was

	// The latest attempt. Either resp or err is set once one was made.
	n       int
	resp    *http.Response
	err     error
	arrived time.Time       // when its outcome was there; set when it is to be judged
	order   Order           // what its header says, of a status of 400 or more
	held    *held           // resp.Body, once it has been read ahead
	reading refusal.Reading // header and body, once the body has been read

	wait     time.Duration // decided; from the moment of the decision
	sleeping time.Time     // since when; zero when not
	waited   time.Duration
	reason   Reason // why there is no further attempt; Answered until known
	ended    error  // the context's error, or Admit's

	// The latest refusal that another attempt replaced, for the error of a context
	// that ends before that attempt has an outcome.
	last snapshot
}

// calls holds zero calls. It spares most calls an allocation: those that need
// one attempt, and so are in nobody else's hands.
var calls = sync.Pool{New: func() any { return new(call) }}

func (c *call) release() {
	*c = call{}
	calls.Put(c)
}

func newCall(t *Transport, req *http.Request) *call {
	c := calls.Get().(*call)
	c.t, c.req, c.header, c.limit, c.per = t, req, req.Header, t.opts.Attempts, perCallFrom(req.Context())
	if c.per.attempts > 0 {
		c.limit = c.per.attempts
	}
	if t.opts.MaxElapsed > 0 {
		c.start = time.Now()
	}
	c.body.init(req)
	return c
}

// attempt sends the request once. The base gets a request and a header map of its
// own for each attempt. So a base that edits them changes neither the caller's
// nor those of the next attempt. The copy is shallow otherwise: the caller may
// set trailers while the body is read, and they must be seen.
func (c *call) attempt() {
	if c.n > 0 {
		c.last = c.snapshot()
		if c.held != nil {
			c.held.Close() // frees the connection if it is still busy with the refusal
		}
	}
	out := c.req
	if c.n > 0 || !c.t.owned {
		out = c.req.WithContext(c.req.Context())
	}
	out.Header = copyOf(c.header)
	c.body.fit(out)
	c.n++
	resp, err := c.t.base.RoundTrip(out)
	switch {
	case resp != nil && err != nil: // against the contract: one of them must go
		if resp.Body != nil {
			resp.Body.Close()
		}
		resp = nil
	case resp == nil && err == nil:
		err = errNoResponse
	case resp != nil && resp.Request == out:
		resp.Request = c.req
	}
	c.resp, c.err = resp, err
	c.order, c.held, c.reading = Order{}, nil, refusal.Reading{}
}

// copyOf is h.Clone(), in one pass: a map is slow to walk, and most fields have one value.
func copyOf(h http.Header) http.Header {
	if h == nil {
		return nil
	}
	out, firsts := make(http.Header, len(h)), make([]string, len(h))
	for name, lines := range h {
		if len(lines) == 1 {
			firsts[0] = lines[0]
			out[name], firsts = firsts[:1:1], firsts[1:]
		} else {
			out[name] = slices.Clone(lines)
		}
	}
	return out
}

// pause is how long the engine sleeps.
func (c *call) pause() time.Duration {
	c.sleeping = time.Now()
	return c.wait
}

// admit is asked when the wait is over. ctx ends when the caller loses interest.
func (c *call) admit(ctx context.Context) error {
	c.wake()
	if ctx.Err() != nil {
		c.end(ctx)
		return c.ended
	}
	// The body first: one that cannot be had again is found out before the attempt
	// is charged.
	if err := c.body.rewind(ctx); err != nil {
		if ctx.Err() != nil {
			c.end(ctx)
			return c.ended
		}
		c.reason, c.ended = OneShot, err
		return err
	}
	if f := c.t.opts.Admit; f != nil {
		if err := f(ctx, c.event()); err != nil {
			c.reason, c.ended = NotAdmitted, err
		}
		if c.reason == Answered && c.over() {
			c.reason, c.ended = Elapsed, errElapsed
		}
		if ctx.Err() != nil {
			c.end(ctx)
		}
		if c.reason != Answered {
			c.body.drop()
			return c.ended
		}
	}
	return nil
}

var errElapsed = errors.New("admitted only after MaxElapsed")

// over reports whether MaxElapsed has passed.
func (c *call) over() bool {
	return !c.start.IsZero() && time.Since(c.start) > c.t.opts.MaxElapsed
}

// end notes that the context ended the call while it was not on the wire.
func (c *call) end(ctx context.Context) {
	c.wake()
	c.reason, c.ended = Ended, contextError(ctx)
}

func (c *call) wake() {
	if !c.sleeping.IsZero() {
		c.waited += time.Since(c.sleeping)
		c.sleeping = time.Time{}
	}
}

// watchCancel returns a context that also ends with the request's deprecated
// Cancel channel. http.Client.Timeout still uses that channel above transports
// that are not net/http's own.
func (c *call) watchCancel() (stop func(), ctx context.Context) {
	ctx = c.req.Context()
	canceled := cancelOf(c.req)
	if canceled == nil {
		return func() {}, ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-canceled:
			cancel(errCanceled)
		case <-ctx.Done():
		}
	}()
	return func() { cancel(nil) }, ctx
}

func cancelOf(req *http.Request) <-chan struct{} {
	//lint:ignore SA1019 callers and http.Client set it
	return req.Cancel
}

// hasEnded reports whether the caller has lost interest in req.
func hasEnded(req *http.Request) bool {
	select {
	case <-cancelOf(req):
		return true
	default:
		return req.Context().Err() != nil
	}
}

var errCanceled = errors.New("request canceled by Request.Cancel")

// finish hands the outcome to the caller.
func (c *call) finish() (*http.Response, error) {
	resp, err := c.resp, c.err
	switch {
	case c.reason == Ended && resp != nil && c.ended != nil:
		// The context ended the wait, and a response must not come with an error:
		// the error carries it.
		err = c.failure(c.ended, nil)
		c.closeRefusal()
		resp = nil
	case err != nil && c.ended != nil:
		err = c.failure(c.ended, err)
	case err != nil && (c.n > 1 || c.reason.held() || redact(scrub(err.Error(), c.req)) != err.Error()):
		err = c.failure(err, nil)
	}
	if c.per.tally != nil {
		c.per.tally.add(c.n, c.waited, c.reason)
	}
	if f := c.t.opts.Done; f != nil {
		e := Event{Request: c.req, Err: err, Attempt: c.n, Waited: c.waited, Refusal: c.public(), Reason: c.reason}
		if resp != nil {
			e.Response = c.view(nil)
		}
		f(e)
	}
	return resp, err
}

func (c *call) closeRefusal() {
	if c.held != nil {
		c.held.Close()
	} else if c.resp.Body != nil {
		c.resp.Body.Close()
	}
}

// event is what the hooks get.
func (c *call) event() Event {
	e := Event{
		Request: c.req, Err: c.err, Attempt: c.n,
		Wait: c.wait, Waited: c.waited, Refusal: c.public(), Reason: c.reason,
	}
	if c.resp != nil {
		var seen []byte
		if c.held != nil {
			seen = c.held.seen()
		}
		e.Response = c.view(seen)
	}
	return e
}

// public is what the response said, zero if its body was not read.
func (c *call) public() Refusal {
	if c.held == nil {
		return Refusal{Wait: c.order.Wait, Named: c.order.Named}
	}
	return public(&c.reading, c.ignoresBodyWait())
}
