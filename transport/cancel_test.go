package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// Report: BerriAI/litellm#30020, mcowger/plexus#442
func TestAnAbandonedStreamFreesItsPlace(t *testing.T) {
	for name, leave := range map[string]func(*http.Response, context.CancelFunc){
		"closed":    func(r *http.Response, _ context.CancelFunc) { r.Body.Close() },
		"cancelled": func(_ *http.Response, cancel context.CancelFunc) { cancel() },
	} {
		synctest.Test(t, func(t *testing.T) {
			rt := gate(t, transport.Options{Base: script("stall 200"), MaxInFlight: 1})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := rt.RoundTrip(ask(t, ctx, letter))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Read(make([]byte, 10))
			start := time.Now()
			time.AfterFunc(3*time.Second, func() { leave(resp, cancel) })
			if status, _, err := finish(rt.RoundTrip(ask(t, t.Context(), letter))); status != 200 || err != nil {
				t.Errorf("%s: %d %v", name, status, err)
			}
			if d := time.Since(start); d != 3*time.Second {
				t.Errorf("%s: the next call left after %v", name, d)
			}
		})
	}
}

// A call waits in line, sends, is refused, waits, stands in line again, sends, and
// reads a slow answer. It is cancelled at each of a thousand instants, beside four
// calls that are not. Nothing stays in flight, nothing is lost.
// Report: Soju06/codex-lb#466, LMCache/LMCache#2957
func TestCancelAtEachAwaitPoint(t *testing.T) {
	outcomes := map[string]int{}
	for i := range 1000 {
		synctest.Test(t, func(t *testing.T) {
			b := new(books)
			w := script("429;Retry-After=1 429;Retry-After=0 503 200 429;Retry-After=1 stall 200")
			w.took = 300 * time.Millisecond
			o := transport.Options{Base: w, Limits: slow(1000, 1e6), MaxInFlight: 2, Trace: b.trace()}
			o.Attempts = 4
			rt := gate(t, o)
			others, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { finish(rt.RoundTrip(ask(t, others, letter))) })
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(i)*7*time.Millisecond, cancel)
			wg.Go(func() {
				_, _, err := finish(rt.RoundTrip(ask(t, ctx, letter)))
				switch {
				case err == nil:
					outcomes["done"]++
				case errors.Is(err, limit.ErrCanceled):
					outcomes["in line"]++
				case errors.As(err, new(*retry.Error)):
					outcomes["between attempts"]++
				default:
					outcomes["on the wire"]++
				}
			})
			wg.Wait()
			stop()
			cancel()
			synctest.Wait()
			b.balanced(t, rt)
			if t.Failed() {
				t.Logf("cancelled after %d ms", i*7)
			}
		})
	}
	t.Log(outcomes)
	for _, o := range []string{"in line", "between attempts", "on the wire"} {
		if outcomes[o] == 0 {
			t.Errorf("no call was cancelled %s", o)
		}
	}
}

// Report: gofr-dev/gofr#3765
func TestAPlaceIsReleasedOnce(t *testing.T) {
	b := new(books)
	rt := gate(t, transport.Options{Base: script("200"), Limits: slow(10, 1e6), MaxInFlight: 5, Trace: b.trace()})
	open, err := rt.RoundTrip(ask(t, t.Context(), letter))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	for range 3 {
		resp.Body.Read(make([]byte, 1))
		resp.Body.Close()
	}
	if n := rt.Snapshot().InFlight; n != 1 || len(b.settled) != 1 {
		t.Errorf("%d in flight, %d settled", n, len(b.settled))
	}
	finish(open, nil)
	b.balanced(t, rt)
}
