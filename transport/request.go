package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/tripmeter/tripmeter/estimate"
)

// inspect reads as much of a request as the estimate needs. It returns the payload
// to send: the body and GetBody of req, or others if the body was read ahead. An
// error is that of reading the body, as it would be when sending.
//
// GetBody would spare the reading ahead. But some hand out the body itself, wound
// back: azcore's SetBody, and openai-go's and anthropic-sdk-go's for a
// bytes.Reader. Reading such a copy reads the body that will be sent. net/http
// calls GetBody only when it is done with the body before, and so do we.
func inspect(req *http.Request, most int64, counter estimate.Counter) (payload, estimate.Request, error) {
	own := payload{req.Body, req.GetBody}
	if req.Body == nil || req.Body == http.NoBody {
		return own, estimate.Request{}, nil
	}
	size := req.ContentLength
	if size == 0 { // net/http: a body with length 0 is of unknown length
		size = -1
	}
	contentType := field(req.Header, "Content-Type")
	o := estimate.Options{Path: req.URL.Path, Counter: counter}
	readable := estimate.Readable(contentType)
	var again func() (io.ReadCloser, error)
	if readable && req.GetBody != nil {
		again = copies(req.Body)
	}
	if again != nil || !readable || size > most || waits(req) {
		return own, estimate.Body(again, contentType, size, o), nil
	}

	if ctx := req.Context(); ctx.Err() != nil {
		return own, estimate.Request{}, causeOf(ctx)
	}
	a := readAhead(req.Body, most, req.Context().Done())
	head, whole, err := a.seen()
	if ctx := req.Context(); ctx.Err() != nil {
		err = causeOf(ctx)
	}
	switch {
	case err != nil:
		return payload{a, nil}, estimate.Request{}, err
	case !whole:
		return payload{a, req.GetBody}, estimate.Unread(contentType, size), nil
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

// copies returns a way to read a body in memory without taking from it, as
// http.NewRequest does for those that it knows; nil if body is not one of them.
func copies(body io.ReadCloser) func() (io.ReadCloser, error) {
	switch reflect.TypeOf(body) {
	case nopCloser, nopCloserWriterTo:
	default:
		return nil
	}
	switch r := reflect.ValueOf(body).Field(0).Interface().(type) {
	case *bytes.Reader:
		r = new(*r)
		return func() (io.ReadCloser, error) { return io.NopCloser(r), nil }
	case *strings.Reader:
		r = new(*r)
		return func() (io.ReadCloser, error) { return io.NopCloser(r), nil }
	case *bytes.Buffer:
		return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Bytes())), nil }
	}
	return nil
}

// What io.NopCloser makes of a reader, and of one that has WriteTo.
var (
	nopCloser         = reflect.TypeOf(io.NopCloser(struct{ io.Reader }{}))
	nopCloserWriterTo = reflect.TypeOf(io.NopCloser(strings.NewReader("")))
)

// A payload is a request body and the way to have it again, nil if there is
// none.
type payload struct {
	body io.ReadCloser
	get  func() (io.ReadCloser, error)
}

// waits reports whether the body is not to be read before it is sent: the server
// is to ask for it first (RFC 9110, section 10.1.1), or who reads it fills the
// trailer, whose names net/http looks at before that.
func waits(req *http.Request) bool {
	return len(req.Trailer) > 0 || strings.EqualFold(req.Header.Get("Expect"), "100-continue")
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

// causeOf is why ctx ended: its error, and its cause where that is another.
func causeOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

func closeIdleConnections(rt http.RoundTripper) {
	if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
