package retry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// Report: hashicorp/go-retryablehttp#129
func TestTheLastAnswerSurvivesTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A deadline is known beforehand: the caller has the answer at once.
		s := play(answer(429, tooFast, "Retry-After", "30"))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if r := send(t, mustNew(t, s, Options{}), post(ctx, t, chat)); r.status != 429 || r.body != tooFast || r.elapsed != 0 {
			t.Errorf("deadline: %+v", r)
		}
		// A cancel is not: the error has the answer.
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		r := send(t, mustNew(t, s, Options{}), post(ctx, t, chat))
		var e *Error
		if !errors.As(r.err, &e) || !errors.Is(r.err, context.Canceled) || r.elapsed != 2*time.Second {
			t.Fatalf("cancel: %+v", r)
		}
		if e.Status != 429 || string(e.Body) != tooFast || e.Header.Get("Retry-After") != "30" || e.Attempts != 1 || e.Reason != Ended {
			t.Errorf("cancel: %+v", e)
		}
		s.allClosed(t)
		// The same when the context ends the attempt after.
		s = play(answer(503, "why"), after(time.Hour, answer(200, "")))
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r = send(t, mustNew(t, s, Options{}), post(ctx, t, chat))
		if !errors.As(r.err, &e) || !errors.Is(r.err, context.DeadlineExceeded) || e.Status != 503 || string(e.Body) != "why" || e.Attempts != 2 {
			t.Errorf("in flight: %+v, %+v", r, e)
		}
		if !e.Timeout() {
			t.Error("a deadline is not a timeout")
		}
	})
}

// Report: hashicorp/go-retryablehttp#22
func TestCancelIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(after(time.Hour, answer(200, "")))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r := send(t, mustNew(t, s, Options{Attempts: 5}), post(ctx, t, chat))
		if s.calls() != 1 || r.elapsed != time.Second || r.err != context.Canceled {
			t.Errorf("%d calls, %+v", s.calls(), r)
		}
	})
}

// Report: pulumi/pulumi#24276, homeylab/tdarr-exporter#105
// Report: workos/workos-go#485
func TestCancelEndsTheWait(t *testing.T) {
	for name, cancelIt := range map[string]func(*http.Request) *http.Request{
		"context": func(r *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(r.Context())
			time.AfterFunc(500*time.Millisecond, cancel)
			return r.WithContext(ctx)
		},
		"Request.Cancel": func(r *http.Request) *http.Request {
			ch := make(chan struct{})
			time.AfterFunc(500*time.Millisecond, func() { close(ch) })
			r.Cancel = ch //lint:ignore SA1019 it still has to work
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			// The bubble fails the test when a goroutine is left.
			synctest.Test(t, func(t *testing.T) {
				s := play(answer(503, "busy"))
				rt := mustNew(t, s, Options{MinBackoff: 30 * time.Second, MaxBackoff: 30 * time.Second})
				r := send(t, rt, cancelIt(post(t.Context(), t, chat)))
				if r.elapsed != 500*time.Millisecond || !errors.Is(r.err, context.Canceled) || s.calls() != 1 {
					t.Errorf("%+v after %d calls", r, s.calls())
				}
				s.allClosed(t)
			})
		})
	}
}

// Report: avast/retry-go#74
func TestBothErrorsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tlsError := &net.OpError{Op: "read", Net: "tcp", Err: errors.New("tls: bad record MAC")}
		why := errors.New("the user left")
		s := play(fail(tlsError))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		r := send(t, mustNew(t, s, Options{}), post(ctx, t, chat))
		for _, want := range []error{context.Canceled, tlsError, why} {
			if !errors.Is(r.err, want) {
				t.Errorf("%v does not match %v", r.err, want)
			}
		}
		// Cancelled while the attempt after it runs.
		s = play(fail(tlsError), after(time.Hour, answer(200, "")))
		ctx, cancel2 := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel2()
		r = send(t, mustNew(t, s, Options{}), post(ctx, t, chat))
		if !errors.Is(r.err, tlsError) || !errors.Is(r.err, context.DeadlineExceeded) || s.calls() != 2 {
			t.Errorf("%v after %d calls", r.err, s.calls())
		}
	})
}

// Report: oracle/nosql-go-sdk#63
func TestTheDeadlineCoversAttemptsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(after(4*time.Second, answer(503, "busy")))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		tr := new(Tally)
		rt := mustNew(t, s, Options{MinBackoff: 3 * time.Second, MaxBackoff: 3 * time.Second})
		r := send(t, rt, post(WithTally(ctx, tr), t, chat))
		if r.status != 503 || r.elapsed != 4*time.Second || s.calls() != 1 || tr.Reason() != OutOfTime {
			t.Errorf("%+v after %d calls, %v", r, s.calls(), tr.Reason())
		}
		// A wait in Admit counts.
		s = play(answer(503, "busy"))
		rt = mustNew(t, s, Options{Admit: func(ctx context.Context, _ Event) error { <-ctx.Done(); return ctx.Err() }})
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r = send(t, rt, post(ctx, t, chat))
		if !errors.Is(r.err, context.DeadlineExceeded) || r.elapsed != 5*time.Second || s.calls() != 1 {
			t.Errorf("%+v after %d calls", r, s.calls())
		}
		// So it does when Admit does not look at the context.
		rt = mustNew(t, s, Options{Admit: func(context.Context, Event) error { time.Sleep(time.Minute); return nil }})
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if r = send(t, rt, post(ctx, t, chat)); !errors.Is(r.err, context.DeadlineExceeded) || s.calls() != 2 {
			t.Errorf("%+v after %d calls", r, s.calls())
		}
		s.allClosed(t)
		// MaxElapsed is the same promise without a context.
		s = play(after(4*time.Second, answer(503, "busy")))
		rt = mustNew(t, s, Options{Attempts: 9, MaxElapsed: 9500 * time.Millisecond, MinBackoff: time.Second, MaxBackoff: time.Second})
		send(t, rt, post(t.Context(), t, chat))
		if n := s.calls(); n != 2 || s.at[1] > 9500*time.Millisecond {
			t.Errorf("%d calls at %v", n, s.at)
		}
	})
}

// A context that ends while the refusal is read, or while the hook runs: nothing is
// announced, and nothing is sent, any more.
func TestEndedBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		s := play(func(r *http.Request) (*http.Response, error) {
			resp := rttest.Response(r, 503, nil, "")
			resp.Body = trickle(context.Background(), time.Minute, "0123456789")
			return resp, nil
		})
		rt := mustNew(t, s, Options{Deciding: func(Event) { t.Error("announced") }})
		r := send(t, rt, post(ctx, t, chat))
		var e *Error
		if !errors.As(r.err, &e) || e.Status != 503 || r.elapsed != 50*time.Millisecond || s.calls() != 1 {
			t.Errorf("%+v after %d calls", r, s.calls())
		}
		s.allClosed(t)
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			s := play(answer(429, "", "Retry-After", "0"))
			rt := mustNew(t, s, Options{
				MinBackoff: 1, MaxBackoff: 1,
				Deciding: func(Event) { cancel() },
				Admit:    func(context.Context, Event) error { t.Error("asked"); return nil },
			})
			if r := send(t, rt, post(ctx, t, chat)); !errors.Is(r.err, context.Canceled) || s.calls() != 1 {
				t.Fatalf("%+v after %d calls", r, s.calls())
			}
		}
	})
}
