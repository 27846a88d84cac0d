package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
)

// answer hands a response over: its body is wrapped, and its end will settle
// the call. A response whose body cannot be read, or is known to be empty, is
// settled at once.
func (c *call) answer(resp *http.Response) {
	if resp.Body == nil || resp.Body == http.NoBody || c.req.Method == http.MethodHead {
		c.end(true)
		return
	}
	c.metered = resp.StatusCode != http.StatusSwitchingProtocols
	c.contentType, c.contentEncoding = resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding")
	b := &body{c: c, rc: resp.Body}
	// A body that is forgotten must not keep its place in flight for ever: the
	// place comes back when the request's context ends, or when the body is
	// found to be garbage. A finalizer, since a cleanup allocates twice.
	if c.Context.Done() != nil {
		c.mu.Lock() // it may run at once
		c.stop = context.AfterFunc(c.Context, c.cut)
		c.mu.Unlock()
	}
	runtime.SetFinalizer(b, (*body).forgotten)
	if w, ok := resp.Body.(io.Writer); ok {
		resp.Body = &duplex{body: b, w: w}
		return
	}
	resp.Body = b
}

// body passes bytes through as they come and shows them to the meter.
type body struct {
	c  *call
	rc io.ReadCloser
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
		runtime.SetFinalizer(b, nil)
	}
}

// forgotten ends the call of a body that nobody has. Hooks may be slow, and the
// collector's goroutine must not be.
func (b *body) forgotten() {
	if !b.c.over() {
		go b.c.cut()
	}
}

// duplex is the body of a 101 response, which can be written to.
type duplex struct {
	*body
	w io.Writer
}

func (d *duplex) Write(p []byte) (int, error) { return d.w.Write(p) }

func bodyOf(resp *http.Response) []byte {
	if resp.Body == nil {
		return nil
	}
	var b bytes.Buffer
	b.ReadFrom(resp.Body) // the retry layer's bounded copy
	return b.Bytes()
}
