package transport

import (
	"context"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/internal/neterr"
	"github.com/tripmeter/tripmeter/limit"
)

// A wire knows whether an attempt that ended with an error can have left. The
// hooks of net/http say so: it looked for a connection and got none, so nothing
// was sent. A base that is not net/http's calls no hook; its attempts count as
// sent unless their error says otherwise.
//
// The hooks are made when net/http asks for them. A base in memory never does.
type wire struct {
	undialled   bool // the attempt's error says that nothing left
	unprocessed bool // the server says that it has taken in nothing

	mu    sync.Mutex // guards below: a base may ask on goroutines of its own
	slot  limit.Reservation
	books *budget.Call // of the call
	seen  *connection  // nil until the base asks for the hooks
}

// A connection is what the hooks of one attempt have seen. Each attempt has its
// own: a base that hedges may get a second connection when the next attempt is
// under way already.
type connection struct {
	state atomic.Uint32
	slot  limit.Reservation
	hooks httptrace.ClientTrace
}

const (
	idle      = iota // nothing heard
	dialing          // a connection is looked for
	connected        // there is one: bytes may have left
)

// begin starts a new attempt, which leaves now. It leaves again when it has its
// connection: while one is made, others overtake, and the balance that the
// provider shows is of the time when the request came.
//
// It waits while everybody is paused. A connection may come long after the attempt was
// admitted, if the base has MaxConnsPerHost or dials slowly. net/http sends as soon as
// the hook returns, so the hook waits.
func (w *wire) begin(slot limit.Reservation, books *budget.Call) {
	w.undialled, w.unprocessed = false, false
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slot, w.seen, w.books = slot, nil, books
}

// failed notes the error that the attempt ended with.
func (w *wire) failed(err error) {
	w.undialled, w.unprocessed = neterr.Unsent(err), neterr.Unprocessed(err)
}

// unsent reports whether nothing of the attempt can have been taken in.
func (w *wire) unsent() bool {
	if w.unprocessed {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen != nil {
		switch w.seen.state.Load() {
		case dialing:
			return true
		case connected:
			return false
		}
	}
	return w.undialled
}

// trace returns hooks that note the connection, after the hooks that ctx has.
// Once connected, an attempt stays so: net/http may dial again to replay a
// request on a connection that was closed under it.
func (w *wire) trace(ctx context.Context) *httptrace.ClientTrace {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen != nil {
		return &w.seen.hooks
	}
	c, books := &connection{slot: w.slot}, w.books
	c.hooks.GetConn = func(string) { c.state.CompareAndSwap(idle, dialing) }
	c.hooks.GotConn = func(httptrace.GotConnInfo) {
		if books != nil {
			books.Opens(ctx)
		}
		c.state.Store(connected)
		c.slot.Sent()
	}
	if httptrace.ContextClientTrace(ctx) != nil {
		httptrace.WithClientTrace(ctx, &c.hooks) // adds the caller's own hooks
	}
	w.seen = c
	return &c.hooks
}

// traceKey is the key by which httptrace finds its hooks in a context. It is not
// exported, so a context that keeps the key it is asked for reveals it. Answering
// to it in [call.Value] spares each attempt a context and a copy of its request.
var traceKey = func() any {
	var k keyKeeper
	httptrace.ContextClientTrace(&k)
	return k.key
}()

// keyKeeper keeps the last key that was asked for.
type keyKeeper struct {
	context.Context
	key any
}

func (k *keyKeeper) Value(key any) any {
	k.key = key
	return nil
}
