package transport

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
)

// Forecast is what a request would wait in the line if it were sent now, and for
// what. Nothing is sent, taken or kept, and the body is not used up: it is read
// where it lies in memory, or through GetBody. One that cannot be had twice is
// priced by its size. A request that is skipped waits for nothing.
func (t *Transport) Forecast(req *http.Request) limit.Forecast {
	if req.URL == nil || t.o.Skip != nil && t.o.Skip(req) {
		return limit.Forecast{Known: true}
	}
	seen := t.preview(req)
	p := t.path(req, seen.Model)
	r, requests := seen.price(t.paths.endpoint(p.Profile(), req.Method, req.URL.Path))
	var c budget.Call
	c.Open(p, (*observer)(nil), r, requests)
	c.For(t.who(req, ""))
	return c.Forecast(time.Now())
}

// preview reads as much of a body as the estimate needs, and leaves it as it is.
func (t *Transport) preview(req *http.Request) prompt {
	if req.Body == nil || req.Body == http.NoBody {
		return prompt{}
	}
	unread := prompt{
		payload: payload{body: req.Body}, Request: estimate.Unread(field(req.Header, "Content-Type"), req.ContentLength),
	}
	if req.GetBody == nil {
		return unread
	}
	if copies(req.Body) == nil { // it would be read ahead
		body, err := req.GetBody()
		if err != nil {
			return unread
		}
		b, err := io.ReadAll(io.LimitReader(body, t.o.MaxBody+1))
		body.Close()
		if err != nil || int64(len(b)) > t.o.MaxBody {
			return unread
		}
		req = req.WithContext(req.Context())
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	}
	seen, err := inspect(req, t.o.MaxBody, t.o.Counter)
	if err != nil {
		return unread
	}
	return seen
}
