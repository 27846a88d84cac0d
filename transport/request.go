package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tripmeter/tripmeter/estimate"
)

// inspect reads what the estimate needs of a request. It returns what to send:
// the body and GetBody of req, or, where its body could be read only once and
// was read ahead, others that begin with what was read. An error is that of
// reading the body, as it would be when sending.
func (t *Transport) inspect(req *http.Request) (payload, estimate.Request, error) {
	own := payload{req.Body, req.GetBody}
	if req.Body == nil || req.Body == http.NoBody {
		return own, estimate.Request{}, nil
	}
	size := req.ContentLength
	if size == 0 { // net/http: a body with length 0 is of unknown length
		size = -1
	}
	contentType := field(req.Header, "Content-Type")
	o := estimate.Options{Path: req.URL.Path, Counter: t.o.Counter}
	if req.GetBody != nil || size > t.o.MaxBody || !estimate.Readable(contentType) || waits(req) {
		return own, estimate.Body(req.GetBody, contentType, size, o), nil
	}

	if ctx := req.Context(); ctx.Err() != nil {
		return own, estimate.Request{}, ended(ctx)
	}
	a := readAhead(req.Body, t.o.MaxBody, req.Context().Done())
	head, whole, err := a.seen()
	if ctx := req.Context(); ctx.Err() != nil {
		err = ended(ctx)
	}
	switch {
	case err != nil:
		return payload{a, nil}, estimate.Request{}, err
	case !whole:
		return payload{a, nil}, estimate.Unread(contentType, size), nil
	}
	// All of it is there, so that it can be sent again.
	get := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(head)), nil }
	return payload{a, get}, estimate.Inspect(head, o), nil
}

// field is the first line of a field. The name is in canonical form: Get would
// make it so each time.
func field(h http.Header, name string) string {
	if lines := h[name]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// A payload is a request body and the way to have it again, nil if there is
// none.
type payload struct {
	body io.ReadCloser
	get  func() (io.ReadCloser, error)
}

func (p payload) close() {
	if p.body != nil {
		p.body.Close()
	}
}

// waits reports whether the body is not to be read before the server asks for
// it (RFC 9110, section 10.1.1).
func waits(req *http.Request) bool {
	return strings.EqualFold(req.Header.Get("Expect"), "100-continue")
}

// interest is a context that ends when the caller is no longer interested in
// the call: with the request's own, or with its deprecated Cancel channel,
// which nobody else looks at while the request stands in line.
func interest(req *http.Request) (context.Context, context.CancelFunc) {
	//lint:ignore SA1019 callers set it still
	canceled := req.Cancel
	if canceled == nil {
		return req.Context(), func() {}
	}
	ctx, cancel := context.WithCancel(req.Context())
	go func() {
		select {
		case <-canceled:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// ended is why ctx ended: its error, and its cause where that is another.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
