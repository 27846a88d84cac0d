package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
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

// A deadline that ends a call in the line says what to do. Who left by himself knows.
func TestTheErrorSaysWhatADeadlineNeeds(t *testing.T) {
	const held = "the local limiter held it, not the server"
	for want, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		held + "; give the context more time, close every response's body, or raise MaxInFlight": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
		held: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			rt := gate(t, transport.Options{Base: script("bare"), MaxInFlight: 1})
			open, err := rt.RoundTrip(ask(t, t.Context(), letter))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := end(t.Context())
			defer cancel()
			if _, err = rt.RoundTrip(ask(t, ctx, letter)); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%v, want the end %q", err, want)
			}
			finish(open, nil)
		})
	}
}

// An error says what the cost is made of, and what to lower. Durations are
// written as durations.
func TestTheErrorNamesTheParts(t *testing.T) {
	rt := gate(t, transport.Options{Base: script("200"), TPM: 1000})
	body := `{"model":"gpt-4o","max_tokens":16384,"messages":[{"role":"user","content":"hi"}]}`
	_, err := rt.RoundTrip(ask(t, t.Context(), body))
	var e *transport.Error
	if !errors.As(err, &e) || e.Cost.Output != 16384 || e.Cost.Input < 8 {
		t.Fatalf("%v", err)
	}
	for _, part := range []string{fmt.Sprintf("cost %d (%d prompt + 16384 max_tokens), capacity 1000", e.Cost.Input+16384, e.Cost.Input), "lower max_tokens"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	for want, o := range map[string]transport.Options{
		"transport: Options.Burst is -1s: must not be negative; zero is unset":                                       {Burst: -time.Second},
		"transport: Options.MaxWait is -1m0s: must not be negative":                                                  {MaxWait: -time.Minute},
		`Options.Provider is "opnai" and nothing else: get it with profile.ByName; the names are anthropic, azure, `: {Provider: profile.Profile{Name: "opnai"}},
	} {
		if _, err := transport.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if got := fmt.Sprint(transport.Options{Burst: 90 * time.Second, RPM: 7}); got != "tripmeter options: RPM 7 Burst 1m30s" {
		t.Errorf("%q", got)
	}
}

// The cause of a context that ended before the line or in it is found in the
// error, beside the context's own error.
func TestTheCauseOfACancelIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := gate(t, transport.Options{Base: script("200"), Limits: slow(1, 1e6)})
		if _, _, err := finish(rt.RoundTrip(ask(t, t.Context(), letter))); err != nil {
			t.Fatal(err)
		}
		why := errors.New("the user closed the window")
		for name, wait := range map[string]time.Duration{"before": 0, "in line": time.Second} {
			ctx, cancel := context.WithCancelCause(t.Context())
			if wait == 0 {
				cancel(why)
			} else {
				time.AfterFunc(wait, func() { cancel(why) })
			}
			start := time.Now()
			_, err := rt.RoundTrip(ask(t, ctx, letter))
			if !errors.Is(err, why) || !errors.Is(err, context.Canceled) || time.Since(start) != wait {
				t.Errorf("%s: %v after %v", name, err, time.Since(start))
			}
			cancel(nil)
		}
	})
}
