package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"

	"github.com/tripmeter/tripmeter/usage"
)

// answer hands a response over: its body is wrapped, and its end will settle
// the call. A response whose body cannot be read, or is known to be empty, is
// settled at once.
//
// The caller gets a copy. net/http's connection keeps its own [http.Response] as
// long as the body is open. If the caller's were the same, the collector would
// never find a forgotten one.
func (c *call) answer(resp *http.Response) *http.Response {
	if resp.Body == nil || resp.Body == http.NoBody || c.req.Method == http.MethodHead {
		c.end(true)
		return resp
	}
	if resp.StatusCode == http.StatusSwitchingProtocols || c.read {
		c.step(passed)
	} else {
		c.step(metered)
	}
	c.contentType, c.contentEncoding = field(resp.Header, "Content-Type"), codingOf(resp.Header)
	if usage.FromHeader(resp.Header).Known() {
		c.usage = resp.Header.Clone()
	}
	// A body that is forgotten must not keep its place in flight for ever. The
	// place comes back when the request's context ends, or when the collector
	// finds the response.
	if c.Context.Done() != nil {
		c.mu.Lock() // it may run at once
		c.stop = context.AfterFunc(c.Context, c.cut)
		c.mu.Unlock()
	}
	h := &handed{Response: *resp, body: body{c: c, from: resp, rc: resp.Body, held: &held{c, resp.Body}}}
	h.body.to = &h.Response
	runtime.SetFinalizer(h.body.held, (*held).forgotten)
	h.Response.Body = &h.body
	if w, ok := resp.Body.(io.Writer); ok {
		d := &duplex{body: &h.body, w: w}
		h.Response.Body = d
		if half, ok := resp.Body.(halfCloser); ok {
			h.Response.Body = &halfDuplex{d, half}
		}
	}
	return &h.Response
}

// handed is a response as the caller gets it.
type handed struct {
	http.Response
	body body
}

// body passes bytes through as they come and shows them to the meter.
type body struct {
	c        *call
	rc       io.ReadCloser
	from, to *http.Response // the base's, and the caller's copy of it
	held     *held
}

func (b *body) Read(p []byte) (n int, err error) {
	err = errPanic
	defer func() {
		if err != nil {
			b.end(err == io.EOF)
		}
	}()
	n, err = b.rc.Read(p)
	b.c.show(p[:n])
	if err == io.EOF {
		b.to.Trailer = b.from.Trailer // net/http sets it now if it was not announced
	}
	return n, err
}

// errPanic stands for the error of a Read that never returned one.
var errPanic = errors.New("transport: the body panicked")

func (b *body) Close() error {
	defer b.end(false) // also if the base panics
	return b.rc.Close()
}

func (b *body) end(complete bool) {
	if b.c.end(complete) {
		runtime.SetFinalizer(b.held, nil)
	}
}

// held is garbage when the caller's response is. It is apart from the response
// because response and body refer to one another, and a finalizer never runs in
// such a circle. A cleanup would run, but allocates twice.
type held struct {
	c  *call
	rc io.Closer
}

// forgotten closes a body that nobody has, and with it its connection, and ends
// the call. Hooks may be slow, and the collector's goroutine must not be.
func (h *held) forgotten() {
	if h.c.over() {
		return
	}
	go func() {
		defer h.c.cut()
		h.rc.Close()
	}()
}

// duplex is the body of a 101 response, which can be written to.
type duplex struct {
	*body
	w io.Writer
}

func (d *duplex) Write(p []byte) (int, error) {
	defer runtime.KeepAlive(d.body) // or the collector closes what is written to
	return d.w.Write(p)
}

// halfDuplex is one whose writing side can be closed alone, as net/http's can.
// httputil.ReverseProxy asks for it.
type halfDuplex struct {
	*duplex
	halfCloser
}

type halfCloser interface{ CloseWrite() error }
