package retry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// body is the caller's request body and the way to have it again.
//
// GetBody is the one way: a reader that can seek is not rewound, since nobody
// knows where its owner wanted it to begin.
type body struct {
	first io.ReadCloser // for the first attempt; owned by the base from then on
	get   func() (io.ReadCloser, error)
	next  io.ReadCloser // for the attempt about to be made
	sent  *sending      // of the latest attempt; nil if nothing need be known of it
}

func (b *body) init(req *http.Request) {
	b.first = req.Body
	b.get = req.GetBody
}

func (b *body) empty() bool { return b.first == nil || b.first == http.NoBody }

// again reports whether the body can be sent again.
func (b *body) again() bool { return b.empty() || b.get != nil }

// rewind gets the body for one more attempt, once the last attempt has let go of
// its own.
func (b *body) rewind(ctx context.Context) error {
	if b.empty() {
		return nil
	}
	if b.sent != nil {
		if err := b.sent.end(ctx); err != nil {
			return err
		}
	}
	next, err := b.get()
	if err == nil && next == nil {
		err = errNilBody
	}
	if err != nil {
		return fmt.Errorf("Request.GetBody: %w", err)
	}
	b.next = next
	return nil
}

// drop closes a body that was got for an attempt that is not made.
func (b *body) drop() {
	if b.next != nil {
		b.next.Close()
		b.next = nil
	}
}

// fit puts the body into a copy of the request. Its length is the caller's.
func (b *body) fit(out *http.Request) {
	src := b.first
	if b.next != nil {
		src, b.next = b.next, nil
	}
	out.Body, b.sent = src, nil
	if !b.empty() && b.get != nil && !fresh(b.get) {
		b.sent = &sending{src: src}
		out.Body = b.sent
	}
	out.GetBody = b.get // net/http replays on its own after an HTTP/2 GOAWAY
}

// failed is the error that the body of the latest attempt failed with by itself,
// nil if it did not.
func (b *body) failed() error {
	if b.sent == nil {
		return nil
	}
	b.sent.mu.Lock()
	defer b.sent.mu.Unlock()
	return b.sent.err
}

// fresh reports whether get is one that http.NewRequest made: of bytes in memory,
// which never fail, and with a reader of its own for each attempt. The code
// pointer of the function shows that, so the common body needs no wrapper.
func fresh(get func() (io.ReadCloser, error)) bool {
	return slices.Contains(ofNewRequest, reflect.ValueOf(get).Pointer())
}

var ofNewRequest = func() (code []uintptr) {
	for _, body := range []io.Reader{new(bytes.Buffer), new(bytes.Reader), new(strings.Reader)} {
		switch r := body.(type) { // an empty body has a GetBody of another kind
		case *bytes.Buffer:
			r.WriteByte('x')
		case *bytes.Reader:
			r.Reset([]byte("x"))
		case *strings.Reader:
			r.Reset("x")
		}
		if req, err := http.NewRequest(http.MethodPost, "http://nowhere.invalid", body); err == nil && req.GetBody != nil {
			code = append(code, reflect.ValueOf(req.GetBody).Pointer())
		}
	}
	return code
}()

// sending is the body of one attempt. The base may read it after RoundTrip has
// returned, on a goroutine of its own. Some GetBody hand out the same reader,
// wound back: azcore's SetBody, and openai-go's for a bytes.Reader. So end takes
// the body away from an attempt before GetBody is called for the next one.
type sending struct {
	src io.ReadCloser

	mu      sync.Mutex
	reading bool          // a Read is under way
	idle    chan struct{} // closed when that Read returns; nil unless end waits for it
	closed  bool
	err     error // of a Read before Close, without io.EOF
}

func (s *sending) Read(p []byte) (n int, err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	s.reading = true
	s.mu.Unlock()
	defer func() { // also if src panics
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil && err != io.EOF && !s.closed {
			s.err = err
		}
		if s.reading = false; s.idle != nil {
			close(s.idle)
			s.idle = nil
		}
	}()
	return s.src.Read(p)
}

func (s *sending) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if !first {
		return nil
	}
	return s.src.Close()
}

// end closes the body, and waits for the Read that is under way. No Read begins
// after that. The error is that of ctx.
func (s *sending) end(ctx context.Context) error {
	s.Close()
	s.mu.Lock()
	if !s.reading {
		s.mu.Unlock()
		return nil
	}
	idle := make(chan struct{})
	s.idle = idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return contextError(ctx)
	}
}

var errNilBody = fmt.Errorf("returned no body")

// buffer reads a body that can be read only once into memory, if MaxBuffer allows
// it and the body is small enough. A larger body is sent as a stream.
func (c *call) buffer() error {
	limit := c.t.opts.MaxBuffer
	b := &c.body
	if limit == 0 || c.limit == 1 || b.again() || c.req.ContentLength > limit {
		return nil
	}
	src, ctx := b.first, c.req.Context()
	// A body that is written as it is read may never end. Closing it is how
	// net/http stops reading one, too.
	stop := context.AfterFunc(ctx, func() { src.Close() })
	data, err := io.ReadAll(io.LimitReader(src, limit+1))
	if !stop() {
		err = contextError(ctx)
	}
	if err != nil {
		src.Close()
		return err
	}
	if int64(len(data)) > limit {
		b.first = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(data), src), src}
		return nil
	}
	if err := src.Close(); err != nil {
		return err
	}
	b.get = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	b.first, _ = b.get()
	return nil
}
