package retry

import "net/http"

// idempotent follows net/http, which replays the same requests on a connection
// that turns out to be closed (Transport, "retries ... idempotent"), and RFC 9110
// section 9.2.2.
func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace,
		http.MethodPut, http.MethodDelete:
		return true
	}
	_, a := req.Header["Idempotency-Key"]
	_, b := req.Header["X-Idempotency-Key"]
	return a || b
}
