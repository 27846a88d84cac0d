package transport

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"

	"github.com/tripmeter/tripmeter/usage"
)

// answer hands a response over: its body is wrapped, and its end will settle
// the call. A response whose body cannot be read, or is known to be empty, is
// settled at once.
func (c *call) answer(resp *http.Response) {
	if resp.Body == nil || resp.Body == http.NoBody || c.req.Method == http.MethodHead {
		c.end(true)
		return
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		c.meter = usage.NewMeter(resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding"))
	}
	b := &body{c: c, rc: resp.Body}
	// A body that is forgotten must not keep its place in flight for ever: the
	// place comes back when the request's context ends, or when the body is
	// found to be garbage.
	if c.Context.Done() != nil {
		c.mu.Lock() // it may run at once
		c.stop = context.AfterFunc(c.Context, c.cut)
		c.mu.Unlock()
	}
	runtime.AddCleanup(b, (*call).cut, c)
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

func (b *body) Read(p []byte) (int, error) {
	n, err := b.rc.Read(p)
	b.c.show(p[:n])
	if err != nil {
		b.c.end(err == io.EOF)
	}
	return n, err
}

func (b *body) Close() error {
	err := b.rc.Close()
	b.c.end(false)
	return err
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
