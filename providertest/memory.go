package providertest

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
)

// RoundTripper reaches p without a socket: each call runs ServeHTTP in a goroutine
// and streams its answer through memory. It keeps the contract of http.RoundTripper
// and does not decompress. Its goroutine ends when the body is closed or read to
// the end, or the request's context ends.
//
// A connection that p cuts is a *net.OpError with ECONNRESET before the
// answer's header, and io.ErrUnexpectedEOF inside its body.
func (p *Provider) RoundTripper() http.RoundTripper { return memory{p} }

type memory struct{ p *Provider }

// errReset is what a client sees when the connection is cut.
var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

func (m memory) RoundTrip(req *http.Request) (*http.Response, error) {
	body := &onceCloser{ReadCloser: req.Body}
	if req.Body == nil {
		body.ReadCloser = http.NoBody
	}
	if req.URL == nil {
		body.Close()
		return nil, errors.New("providertest: request has no URL")
	}
	caller := req.Context()
	if err := caller.Err(); err != nil {
		body.Close()
		return nil, context.Cause(caller)
	}
	ctx, cancel := context.WithCancel(caller)
	inner := req.Clone(ctx)
	inner.Body = body
	inner.RequestURI, inner.RemoteAddr = req.URL.RequestURI(), "memory"
	if inner.Host == "" {
		inner.Host = req.URL.Host
	}

	w := &memoryWriter{req: req, header: make(http.Header), ready: make(chan struct{}), pipe: newPipe(cancel)}
	// The caller's context, not the handler's: the handler's ends with the
	// handler, when the client may still read what is buffered.
	stop := context.AfterFunc(caller, func() {
		w.pipe.fail(context.Cause(caller))
		body.Close()
	})
	w.pipe.stop = stop
	go func() {
		defer cancel()
		defer body.Close()
		defer func() {
			// A handler that panics has cut the connection, as in net/http.
			w.end(recover() != nil)
		}()
		m.p.ServeHTTP(w, inner)
	}()

	select {
	case <-w.ready:
	case <-caller.Done():
		cancel()
		return nil, context.Cause(caller)
	}
	if w.response == nil {
		stop()
		return nil, errReset
	}
	return w.response, nil
}

// onceCloser closes once, also if several goroutines ask for it.
type onceCloser struct {
	io.ReadCloser
	once sync.Once
	err  error
}

func (c *onceCloser) Close() error {
	c.once.Do(func() { c.err = c.ReadCloser.Close() })
	return c.err
}

// memoryWriter is the server's side of one exchange. Only the handler's
// goroutine calls it.
type memoryWriter struct {
	req    *http.Request
	header http.Header
	pipe   *pipe

	response *http.Response // set before ready is closed, if there is one
	ready    chan struct{}
	left     int64 // bytes that Content-Length still promises, or -1
}

func (w *memoryWriter) Header() http.Header { return w.header }

func (w *memoryWriter) WriteHeader(status int) {
	if w.response != nil {
		return
	}
	w.left = -1
	if n, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64); err == nil {
		w.left = n
	}
	w.response = &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: maps.Clone(w.header), Body: w.pipe, ContentLength: w.left, Request: w.req,
	}
	close(w.ready)
}

func (w *memoryWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n, err := w.pipe.write(b)
	if w.left >= 0 {
		w.left -= int64(n)
	}
	return n, err
}

func (w *memoryWriter) Flush() { w.WriteHeader(http.StatusOK) }

// end closes the answer. Cut short, or shorter than promised, it ends in an
// error.
func (w *memoryWriter) end(cut bool) {
	if w.response == nil {
		if !cut {
			w.WriteHeader(http.StatusOK)
		} else {
			close(w.ready)
		}
	}
	if cut || w.left > 0 {
		w.pipe.end(io.ErrUnexpectedEOF)
		return
	}
	w.pipe.end(io.EOF)
}

// pipeSize is how many bytes the server may be ahead of the reader, about
// what two socket buffers hold.
const pipeSize = 256 << 10

// pipe is a response body: a bounded buffer between the handler and the
// reader. Read and Close are the client's; write and end the handler's.
type pipe struct {
	cancel func()      // ends the handler
	stop   func() bool // stops watching the caller's context

	mu     sync.Mutex
	moved  *sync.Cond
	buf    []byte
	ended  error // what the reader gets after buf; nil while it goes on
	broken error // what both get at once
}

func newPipe(cancel func()) *pipe {
	p := &pipe{cancel: cancel}
	p.moved = sync.NewCond(&p.mu)
	return p
}

func (p *pipe) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.broken != nil:
			return 0, p.broken
		case len(p.buf) > 0:
			n := copy(b, p.buf)
			p.buf = p.buf[n:]
			p.moved.Broadcast()
			return n, nil
		case p.ended != nil:
			p.stop()
			return 0, p.ended
		}
		p.moved.Wait()
	}
}

// errClosed is what Read returns after Close.
var errClosed = errors.New("http: read on closed response body")

// Close ends the exchange. What the handler writes from now on fails.
func (p *pipe) Close() error {
	p.stop()
	p.fail(errClosed)
	return nil
}

// fail breaks the pipe for both sides, unless the reader has had the end.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken == nil {
		p.broken = err
	}
	p.moved.Broadcast()
	p.cancel()
}

func (p *pipe) write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(b) > 0 {
		if p.broken != nil {
			return n, p.broken
		}
		free := pipeSize - len(p.buf)
		if free <= 0 {
			p.moved.Wait()
			continue
		}
		k := min(free, len(b))
		p.buf = append(p.buf, b[:k]...)
		b, n = b[k:], n+k
		p.moved.Broadcast()
	}
	return n, nil
}

func (p *pipe) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = err
	p.moved.Broadcast()
}
