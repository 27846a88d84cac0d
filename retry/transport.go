package retry

import (
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// Transport is an [http.RoundTripper] that tries failed calls again; the package
// comment says which, when, and what the caller gets. Make one with [New] and
// share it: it may be used by several goroutines. Between calls it holds the budget
// of further attempts, and nothing else.
type Transport struct {
	base      http.RoundTripper
	opts      Options
	engine    engine
	orders    OrderReader    // the base, if it has read the headers already
	creations CreationReader // the base, if it knows what a request is for
	owned     bool           // requests are ours to send
	budget    budget
	born      time.Time    // on the monotonic clock
	answered  atomic.Int64 // when the last call was, in nanoseconds since born; never if none was
}

// New returns a Transport that sends through base, or through
// [http.DefaultTransport] when base is nil. It fails when an option is negative or
// contradicts another, and names it.
func New(base http.RoundTripper, o Options) (*Transport, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport
	}
	t := &Transport{base: base, opts: o, engine: newLibrary(), born: time.Now()}
	t.answered.Store(never)
	t.orders, _ = base.(OrderReader)
	t.creations, _ = base.(CreationReader)
	if b, ok := base.(RequestOwner); ok {
		t.owned = b.OwnsRequests()
	}
	return t, nil
}

// CloseIdleConnections closes the idle connections of the base, if it can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip sends req, again if that can help, and returns the provider's own
// response. If nothing was or could be tried again, an error is the base's own.
// Otherwise it is an [*Error], and so is an error whose text holds a secret of the
// request.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c := newCall(t, req)
	finished := false
	defer func() {
		if !finished && c.resp != nil { // a hook panicked
			c.closeRefusal()
		}
	}()
	if c.err = c.buffer(); c.err != nil {
		if c.reason = errorReason(req, c.err, false); c.reason == Answered {
			c.reason = Broken
		}
		finished = true
		return c.finish()
	}
	c.attempt()
	if !c.judge() {
		resp, err := c.finish()
		finished = true
		c.release()
		return resp, err
	}
	stop, ctx := c.watchCancel()
	defer stop()
	if err := t.engine.run(ctx, c); err != nil && c.reason == Answered {
		c.end(ctx) // the context ended the wait
	}
	resp, err := c.finish()
	finished = true
	return resp, err
}

// String says what this is, and nothing of what it holds: the base may well
// carry a key.
func (t *Transport) String() string { return "retry transport" }

// GoString is String, for %#v.
func (t *Transport) GoString() string { return t.String() }

// LogValue is String, for package log/slog.
func (t *Transport) LogValue() slog.Value { return slog.StringValue(t.String()) }

var errNoResponse = errors.New("retry: the base transport returned neither a response nor an error")
