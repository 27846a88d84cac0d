package transport

import (
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
	var c budget.Call
	if req.Body == nil || req.Body == http.NoBody {
		c.Open(t.path(req, ""), (*observer)(nil), nil)
	} else {
		prompt := t.preview(req)
		c.Open(t.path(req, prompt.Model), (*observer)(nil), &prompt)
	}
	c.For(t.who(req, ""))
	return c.Forecast(time.Now())
}

// preview reads as much of a body as the estimate needs, and leaves it as it is.
func (t *Transport) preview(req *http.Request) estimate.Request {
	size := req.ContentLength
	if size == 0 {
		size = -1
	}
	contentType := field(req.Header, "Content-Type")
	again := copies(req.Body)
	if again == nil {
		again = req.GetBody
	}
	if !estimate.Readable(contentType) {
		again = nil
	}
	return estimate.Body(again, contentType, size, estimate.Options{Path: req.URL.Path, Counter: t.o.Counter})
}
