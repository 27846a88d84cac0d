package transport_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/transport"
)

// wireOrder is the order on the wire of calls a, b, c and d, which come in this order.
// The attempts of those numbers, from 0, are refused.
func wireOrder(t *testing.T, refused ...int) (order string) {
	t.Helper()
	const rated = `{"error":{"message":"Rate limit reached for requests","type":"requests","code":"rate_limit_exceeded"}}`
	var mu sync.Mutex
	rt := gate(t, transport.Options{RPM: 30, Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
		rttest.Drain(r)
		mu.Lock()
		n := len(order)
		order += r.Header.Get("X-Name")
		mu.Unlock()
		if slices.Contains(refused, n) {
			resp := response(r, 429, "application/json", rated)
			resp.Header.Set("Retry-After", "1")
			return resp, nil
		}
		return response(r, 200, "application/json", `{}`), nil
	})})
	var wg sync.WaitGroup
	for i, name := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			time.Sleep(time.Duration(i))
			req := ask(t, t.Context(), letter)
			req.Header.Set("X-Name", name)
			if status, _, err := finish(rt.RoundTrip(req)); status != 200 || err != nil {
				t.Error(name, status, err)
			}
		})
	}
	wg.Wait()
	return order
}

// A refused call keeps its place in the line. After its third refusal in a row of
// refusals it lets the others go first: it may be one that is always refused.
func TestARefusedCallKeepsItsPlace(t *testing.T) {
	for want, refused := range map[string][]int{
		"abcd":    nil,
		"aabcd":   {0},
		"aaabcd":  {0, 1},
		"aaabcda": {0, 1, 2},
		"abbbcd":  {1, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			if order := wireOrder(t, refused...); order != want {
				t.Errorf("attempts %v are refused: order on the wire %q, want %q", refused, order, want)
			}
		})
	}
}
