package transport

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/tripmeter/tripmeter/estimate"
)

// inspect reads what the estimate needs of a request. It returns the request to
// send: req itself, or, where its body could be read only once, a copy whose
// body starts with what was read. A body that cannot be read is an error, as it
// would be when sending.
func (t *Transport) inspect(req *http.Request) (*http.Request, estimate.Request, error) {
	o := estimate.Options{Path: req.URL.Path, Counter: t.o.Counter}
	if req.Body == nil || req.Body == http.NoBody {
		return req, estimate.Request{}, nil
	}
	size := req.ContentLength
	if size == 0 { // net/http: a body with length 0 is of unknown length
		size = -1
	}
	contentType := req.Header.Get("Content-Type")
	if req.GetBody != nil || size > t.o.MaxBody || !estimate.Readable(contentType) {
		return req, estimate.Body(req.GetBody, contentType, size, o), nil
	}

	// One-shot: read up to the bound. If that was all of it, the copy can be
	// sent again.
	stop := context.AfterFunc(req.Context(), func() { req.Body.Close() })
	head, err := io.ReadAll(io.LimitReader(req.Body, t.o.MaxBody+1))
	if !stop() && err == nil {
		err = req.Context().Err()
	}
	if err != nil {
		if ctx := req.Context().Err(); ctx != nil {
			err = ctx
		}
		return nil, estimate.Request{}, err
	}
	out := req.WithContext(req.Context())
	if int64(len(head)) > t.o.MaxBody {
		out.Body = &spliced{io.MultiReader(bytes.NewReader(head), req.Body), req.Body}
		return out, estimate.Unread(contentType, size), nil
	}
	out.GetBody = func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(head)), nil
	}
	out.Body = &spliced{bytes.NewReader(head), req.Body}
	return out, estimate.Inspect(head, o), nil
}

// spliced reads what was read ahead and closes the caller's body.
type spliced struct {
	io.Reader
	io.Closer
}
