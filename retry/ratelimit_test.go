package retry_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/retry"
)

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Refusals for the rate are bounded by time; other failures keep their attempts.
func TestRateRefusalsAreBoundedByTime(t *testing.T) {
	for _, c := range []struct {
		refusals, status int
		limit            time.Duration
		sent, last       int
	}{
		{20, 429, time.Minute, 21, 200},
		{20, 429, 0, 2, 429},
		{20, 500, time.Minute, 2, 500},
		{1000, 429, 5 * time.Second, 0, 429},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			rt, err := retry.New(tripper(func(r *http.Request) (*http.Response, error) {
				status := 200
				if n++; n <= c.refusals {
					status = c.status
				}
				return &http.Response{
					StatusCode: status, Request: r, Header: http.Header{"Retry-After": {"1"}},
					Body: io.NopCloser(strings.NewReader(`{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached"}}`)),
				}, nil
			}), retry.Options{Attempts: 2, RateLimitFor: c.limit, MaxBackoff: 500 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			req, _ := http.NewRequest("GET", "http://x.example/", nil)
			start := time.Now()
			resp, err := rt.RoundTrip(req)
			if err != nil || resp.StatusCode != c.last || c.sent > 0 && n != c.sent {
				t.Fatalf("%+v: %v after %d attempts, %v", c, resp, n, err)
			}
			if d := time.Since(start); c.sent == 0 && d > c.limit {
				t.Errorf("%v, want at most %v", d, c.limit)
			}
			resp.Body.Close()
		})
	}
}
