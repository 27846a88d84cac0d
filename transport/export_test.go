package transport

import (
	"net/http"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/headers"
)

// CountParsedHeaders counts the response headers that are parsed until stop is
// called.
func CountParsedHeaders() (n *int, stop func()) {
	n = new(int)
	parse := parseHeader
	parseHeader = func(h http.Header, o headers.Options) headers.Info {
		*n++
		return parse(h, o)
	}
	return n, func() { parseHeader = parse }
}

// Know makes the account that a request without a model takes from known.
func Know(t *Transport, req *http.Request) {
	var c budget.Call
	c.Open(t.path(req, ""), nil, nil, 1)
	c.Forecast(time.Now())
}

// LegalSteps lists the states of a call, by name, and those that may follow each.
func LegalSteps() map[string][]string {
	legal := map[string][]string{}
	for from, to := range steps {
		legal[stateNames[from]] = []string{}
		for _, s := range to {
			legal[stateNames[from]] = append(legal[stateNames[from]], stateNames[s])
		}
	}
	return legal
}

// ForTenant is the request as it comes for a tenant.
func ForTenant(req *http.Request, name string) *http.Request {
	return req.WithContext(WithTenant(req.Context(), name))
}

// ReadAhead is how many bytes of memory bodies that were read ahead hold.
func ReadAhead() int64 {
	memory.mu.Lock()
	defer memory.mu.Unlock()
	return memory.used
}
