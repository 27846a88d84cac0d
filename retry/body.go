package retry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// body is the caller's request body and the way to have it again.
//
// GetBody is the one way: a reader that can seek is not rewound, since nobody
// knows where its owner wanted it to begin.
type body struct {
	first io.ReadCloser // for the first attempt; owned by the base from then on
	get   func() (io.ReadCloser, error)
	next  io.ReadCloser // for the attempt about to be made
}

func (b *body) init(req *http.Request) {
	b.first = req.Body
	b.get = req.GetBody
}

func (b *body) empty() bool { return b.first == nil || b.first == http.NoBody }

// again reports whether the body can be sent again.
func (b *body) again() bool { return b.empty() || b.get != nil }

// rewind gets the body for one more attempt.
func (b *body) rewind() error {
	if b.empty() {
		return nil
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
	if b.next != nil {
		out.Body, b.next = b.next, nil
	} else {
		out.Body = b.first
	}
	out.GetBody = b.get // net/http replays on its own after an HTTP/2 GOAWAY
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
