package transport

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// wire tells whether an attempt that ended with an error can have left. It
// asks net/http: a connection was looked for and none was got, so nothing was
// sent. A base that is not net/http's is not asked, and is taken to have sent.
type wire struct {
	state atomic.Uint32
	trace httptrace.ClientTrace
	err   error // of the attempt
}

const (
	dialing   = 1
	connected = 2
)

// watch returns ctx with hooks that note the connection of a new attempt.
func (w *wire) watch(ctx context.Context) context.Context {
	w.state.Store(0)
	if w.trace.GetConn == nil {
		w.trace.GetConn = func(string) { w.state.Store(dialing) }
		w.trace.GotConn = func(httptrace.GotConnInfo) { w.state.Store(connected) }
	}
	return httptrace.WithClientTrace(ctx, &w.trace)
}

func (w *wire) unsent() bool {
	if w.state.Load() == dialing {
		return true
	}
	var op *net.OpError
	return w.state.Load() != connected && errors.As(w.err, &op) && op.Op == "dial"
}
