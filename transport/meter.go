package transport

import (
	"net/http"
	"time"

	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/internal/neterr"
	"github.com/tripmeter/tripmeter/internal/refusal"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/retry"
)

// A meter is the inner face of a Transport, below the retry layer: it sees every
// attempt on the wire.
type meter struct {
	base http.RoundTripper
	o    *Options
}

func (m *meter) RoundTrip(req *http.Request) (*http.Response, error) {
	c := callFrom(req.Context())
	if req.Context().Err() != nil { // since it was admitted
		closeBody(req)
		return nil, causeOf(req.Context())
	}
	c.step(sent)
	c.attempts++
	c.status, c.order, c.asked, c.read = 0, retry.Order{}, false, false
	c.sent = time.Now()
	c.wire.begin(c.books.Leave(c.sent), &c.books)

	resp, err := m.base.RoundTrip(req)
	returned := false
	defer func() {
		if !returned && resp != nil && resp.Body != nil { // a hook panicked
			resp.Body.Close()
		}
	}()
	if err != nil {
		if c.wire.failed(err); neterr.TooMuch(err) {
			c.books.Overloaded(time.Now(), 0, false)
		}
	}
	left := nothingLeft
	switch {
	case resp != nil && err == nil:
		if resp.Request == nil {
			resp.Request = req
		}
		c.status = resp.StatusCode
		left = m.hear(c, resp)
	case c.wire.unsent():
		c.books.Stay()
	}
	if f := m.o.Trace.Answered; f != nil {
		f(Attempt{
			Request: c.req, N: c.attempts, Status: c.status, Err: err,
			Duration: time.Since(c.sent), Left: left,
		})
	}
	returned = true
	return resp, err
}

// CloseIdleConnections closes the idle connections of the base, if it can.
func (m *meter) CloseIdleConnections() { closeIdleConnections(m.base) }

// OwnsRequests spares the retry layer a copy: RoundTrip has made one.
func (m *meter) OwnsRequests() bool { return true }

// Creates tells the retry layer what must not arrive twice.
func (m *meter) Creates(req *http.Request) bool { return callFrom(req.Context()).creates }

// Order gives the retry layer what hear has read.
func (m *meter) Order(req *http.Request, _ *http.Response) retry.Order {
	return callFrom(req.Context()).order
}

// parseHeader is the one parser of response headers; a test counts its calls.
var parseHeader = headers.Parse

// hear takes in a response header: it lowers credit, follows limits, and pauses
// the budget. That must not wait for the body, which may last. It returns what
// the header says is left.
func (m *meter) hear(c *call, resp *http.Response) Left {
	now, p := time.Now(), c.books.Profile()
	c.order.IgnoreBodyWait = m.ignoresBodyWait(p)
	refused := resp.StatusCode == http.StatusTooManyRequests
	if resp.StatusCode >= 500 || overloaded(resp.StatusCode) {
		c.books.Busy()
	}
	if !refused && !headers.Any(resp.Header) {
		c.books.Pass(now)
		return nothingLeft
	}
	i := parseHeader(resp.Header, headers.Options{Status: resp.StatusCode, Now: now, Dialect: p.Dialect})
	c.asked = i.ShouldRetry.V
	if resp.StatusCode >= 400 {
		h := refusal.HeaderOf(&i)
		c.order.Wait, c.order.Named, c.order.Reset = h.Wait, h.Named, h.Reset
		c.order.Asked, c.order.Forbidden = h.Asked, h.Forbidden
	}
	c.books.Hear(now, &i, refused)
	return leftOf(&i)
}

func (m *meter) ignoresBodyWait(p *profile.Profile) bool {
	return m.o.Retry.IgnoreBodyWait || p.IgnoreBodyWait
}

// nothingLeft is the Left of a header that says nothing.
var nothingLeft = Left{-1, -1, -1, -1}

// leftOf is what a header says is left, for people.
func leftOf(i *headers.Info) Left {
	n := func(q headers.Quota) int64 {
		if !q.Remaining.OK {
			return -1
		}
		return max(0, q.Remaining.N)
	}
	return Left{n(i.Requests), n(i.Tokens), n(i.Input), n(i.Output)}
}
