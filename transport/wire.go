package transport

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"

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
	state     atomic.Uint32
	undialled bool // the attempt's error says that nothing left
	hooks     atomic.Pointer[httptrace.ClientTrace]
	slot      limit.Reservation // of the attempt
}

const (
	idle      = iota // nothing heard
	dialing          // a connection is looked for
	connected        // there is one: bytes may have left
)

// begin starts a new attempt, which leaves now. It leaves again when it has its
// connection: while one is made, others overtake, and the balance that the
// provider shows is of the time when the request came.
func (w *wire) begin(slot limit.Reservation) {
	w.state.Store(idle)
	w.slot, w.undialled = slot, false
}

// failed notes the error that the attempt ended with.
func (w *wire) failed(err error) { w.undialled = neterr.Unsent(err) }

// unsent reports whether nothing of the attempt can have left.
func (w *wire) unsent() bool {
	switch w.state.Load() {
	case dialing:
		return true
	case connected:
		return false
	}
	return w.undialled
}

// trace returns hooks that note the connection, after the hooks that ctx has.
// Once connected, an attempt stays so: net/http may dial again to replay a
// request on a connection that was closed under it.
func (w *wire) trace(ctx context.Context) *httptrace.ClientTrace {
	if h := w.hooks.Load(); h != nil {
		return h
	}
	h := &httptrace.ClientTrace{
		GetConn: func(string) { w.state.CompareAndSwap(idle, dialing) },
		GotConn: func(httptrace.GotConnInfo) {
			w.state.Store(connected)
			w.slot.Sent()
		},
	}
	if httptrace.ContextClientTrace(ctx) != nil {
		httptrace.WithClientTrace(ctx, h) // adds the caller's own hooks to h
	}
	if !w.hooks.CompareAndSwap(nil, h) {
		return w.hooks.Load()
	}
	return h
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
