package box

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/tripmeter/tripmeter/transport"
)

// A Count counts what passes through a Transport that has its Trace.
type Count struct {
	mu sync.Mutex

	Calls    int      // that entered and were admitted
	Wire     int      // attempts
	Charged  int64    // requests in the ledger
	Input    int64    // tokens in the ledger
	Output   int64    // tokens in the ledger
	NotSent  int      // calls, or further attempts, that the limiter did not admit
	Retries  []string // what each call said of the retries before it: X-Stainless-Retry-Count
	Reported int      // calls whose response reported its usage
}

// Trace counts into c. Read c when the calls are over.
func (c *Count) Trace() transport.Trace {
	return transport.Trace{
		Refused: func(*http.Request, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.NotSent++
		},
		Settled: func(s transport.Settlement) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.Calls++
			c.Wire += s.Attempts
			c.Charged += s.Charged.Requests
			c.Input += s.Charged.Input
			c.Output += s.Charged.Output
			c.Retries = append(c.Retries, s.Request.Header.Get("X-Stainless-Retry-Count"))
			if s.Usage.Found {
				c.Reported++
			}
		},
	}
}

// Overloaded is a RoundTripper that answers 503 to every call.
type Overloaded struct{}

func (Overloaded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	const body = `{"error":{"code":503,"message":"overloaded"}}`
	return &http.Response{
		Status: "503 Service Unavailable", StatusCode: http.StatusServiceUnavailable,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		Request: r,
	}, nil
}
