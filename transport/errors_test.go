package transport_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// The error says that it was the limiter, for how long, and which dimension.
// Report: kubernetes/kubernetes#108342, kubernetes/kubernetes#114866
func TestTheErrorSaysItWasTheLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := gate(t, transport.Options{Base: script("bare"), TPM: 6000, MaxInFlight: 1})
		open, err := rt.RoundTrip(ask(t, t.Context(), letter))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = rt.RoundTrip(ask(t, ctx, letter)) // nobody knows when the other will end
		var here *transport.Error
		var e *limit.Error
		if !errors.As(err, &here) || !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || !here.Timeout() {
			t.Fatalf("%v", err)
		}
		if e.Waited != 2*time.Second || e.Dimension != "in-flight" {
			t.Errorf("%+v", e)
		}
		for _, part := range []string{"tripmeter: request not sent", "in-flight", "waited 2s", "the local limiter held it, not the server", context.DeadlineExceeded.Error()} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q lacks %q", err, part)
			}
		}
		finish(open, nil)
		for range 8 { // use up what is there at once
			finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		}
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = rt.RoundTrip(ask(t, ctx, letter))
		if !errors.As(err, &e) || e.Dimension != "tokens per minute" || e.Wait <= 100*time.Millisecond || e.Capacity == 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%+v", e)
		}
		if !strings.Contains(err.Error(), "tokens per minute") || !strings.Contains(err.Error(), "could go in") {
			t.Errorf("%q", err)
		}
		// A client whose own timeout ended it says so.
		_, err = (&http.Client{Transport: rt, Timeout: 50 * time.Millisecond}).Do(ask(t, t.Context(), letter))
		var timeout interface{ Timeout() bool }
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%v is no time-out", err)
		}
	})
}
