package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// Report: hashicorp/go-retryablehttp#215
func TestHooksCanReadTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const body = `{"error":{"message":"Rate limit reached. Please try again in 33s.","code":"rate_limit_exceeded"}}`
		s := play(answer(429, body), answer(200, "ok"))
		var seen []string
		read := func(r *http.Response) {
			b, err := io.ReadAll(r.Body)
			seen = append(seen, fmt.Sprint(string(b), err))
			r.Body.Close()
		}
		rt := mustNew(t, s, Options{
			Refused:  func(e Event) { read(e.Response) },
			Deciding: func(e Event) { read(e.Response) },
			Admit:    func(_ context.Context, e Event) error { read(e.Response); return errors.New("no") },
		})
		r := send(t, rt, post(t.Context(), t, chat))
		if want := body + "<nil>"; !reflect.DeepEqual(seen, []string{want, want, want}) {
			t.Errorf("hooks saw %q", seen)
		}
		if r.status != 429 || r.body != body || r.elapsed < 33*time.Second {
			t.Errorf("%+v", r)
		}
	})
}

// Report: snyk/parlay#98, ActiveState/cli#2511
func TestHooksWithoutAResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		s := play(fail(dial), answer(200, "ok"))
		var events []Event
		rt := mustNew(t, s, Options{
			Deciding: func(e Event) { events = append(events, e) },
			Admit:    func(_ context.Context, e Event) error { events = append(events, e); return nil },
			Refused:  func(Event) { t.Error("called without a response") },
		})
		if r := send(t, rt, post(t.Context(), t, chat)); r.status != 200 {
			t.Errorf("%+v", r)
		}
		if len(events) != 2 || events[0].Response != nil || events[0].Err != dial || events[1].Attempt != 1 {
			t.Errorf("events %+v", events)
		}
	})
}

func TestHooksInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var log []string
		note := func(what string, e Event) {
			status := 0
			if e.Response != nil {
				status = e.Response.StatusCode
			}
			log = append(log, fmt.Sprintf("%v %s attempt %d status %d err %v wait %v waited %v class %q, %v",
				time.Since(began), what, e.Attempt, status, e.Err, e.Wait, e.Waited, e.Refusal.Class, e.Reason))
		}
		base := play(answer(429, tooFast, "Retry-After", "2"), fail(errReset), answer(200, "ok"))
		rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
			log = append(log, fmt.Sprintf("%v sent", time.Since(began)))
			return base.RoundTrip(r)
		}), Options{
			MinBackoff: 1, MaxBackoff: 1,
			Deciding: func(e Event) { note("deciding", e) },
			Admit: func(_ context.Context, e Event) error {
				note("admit", e)
				time.Sleep(time.Second) // blocks, as a limiter does
				return nil
			},
			Done: func(e Event) { note("done", e) },
		})
		send(t, rt, post(t.Context(), t, chat))
		// 0 and 1 ns of jitter are drawn: cut what they add.
		got := strings.NewReplacer(".000000001s", "s", ".000000002s", "s").Replace(strings.Join(log, "\n"))
		want := strings.Join([]string{
			`0s sent`,
			`0s deciding attempt 1 status 429 err <nil> wait 2s waited 0s class "rate_limit", answered`,
			`2s admit attempt 1 status 429 err <nil> wait 2s waited 2s class "rate_limit", answered`,
			`3s sent`,
			`3s deciding attempt 2 status 0 err ` + errReset.Error() + ` wait 1ns waited 2s class "", answered`,
			`3s admit attempt 2 status 0 err ` + errReset.Error() + ` wait 1ns waited 2s class "", answered`,
			`4s sent`,
			`4s done attempt 3 status 200 err <nil> wait 0s waited 2s class "", answered`,
		}, "\n")
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestAdmitRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := errors.New("the queue is full")
		tr := new(Tally)
		o := Options{Admit: func(context.Context, Event) error { return no }}
		// A response: the caller has it, whole.
		for _, body := range []string{"", tooFast, strings.Repeat("x", heldBytes-1), strings.Repeat("y", heldBytes), strings.Repeat("z", 3*heldBytes)} {
			s := play(answer(429, body, "X-Request-Id", "r1"))
			r := send(t, mustNew(t, s, o), post(WithTally(t.Context(), tr), t, chat))
			if r.status != 429 || r.body != body || r.header.Get("X-Request-Id") != "r1" || s.calls() != 1 || tr.Reason() != NotAdmitted {
				t.Errorf("%d bytes: %d %d bytes, %v, %v", len(body), r.status, len(r.body), r.err, tr.Reason())
			}
			s.allClosed(t)
		}
		// A response that trickles, and one that breaks off.
		for _, broken := range []error{nil, io.ErrUnexpectedEOF} {
			rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
				rttest.Drain(r)
				resp := rttest.Response(r, 503, nil, "")
				tail := io.Reader(strings.NewReader(""))
				if broken != nil {
					tail = readerFunc(func([]byte) (int, error) { return 0, broken })
				}
				slow := trickle(r.Context(), 300*time.Millisecond, "0123456789")
				resp.Body = struct {
					io.Reader
					io.Closer
				}{io.MultiReader(slow, tail), slow}
				return resp, nil
			}), o)
			resp, err := rt.RoundTrip(post(t.Context(), t, chat))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			if string(b) != "0123456789" || !errors.Is(err, broken) {
				t.Errorf("read %q, %v", b, err)
			}
			resp.Body.Close()
		}
		// An error: both are matched.
		r := send(t, mustNew(t, play(fail(errReset)), o), post(t.Context(), t, chat))
		var e *Error
		if !errors.Is(r.err, no) || !errors.Is(r.err, errReset) || !errors.As(r.err, &e) || e.Reason != NotAdmitted {
			t.Errorf("%v", r.err)
		}
	})
}

func TestDoneHearsEveryEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			a      answerFunc
			o      Options
			reason Reason
			n      int
		}{
			{answer(200, "x"), Options{}, Answered, 1},
			{answer(404, "x"), Options{}, Answered, 1},
			{answer(503, "x", "X-Should-Retry", "false"), Options{}, Refused, 1},
			{answer(503, "x"), Options{}, Exhausted, 3},
			{fail(errReset), Options{}, Exhausted, 3},
			{fail(errReset), Options{IdempotentOnly: true}, NotSafe, 1},
			{fail(http.ErrSchemeMismatch), Options{}, Broken, 1},
			{answer(503, "x"), Options{MaxElapsed: 1}, Elapsed, 1},
			{answer(503, "x"), Options{MaxElapsed: 10 * time.Second, Admit: func(context.Context, Event) error { time.Sleep(time.Minute); return nil }}, Elapsed, 1},
		} {
			var events []Event
			c.o.Done = func(e Event) {
				if e.Response != nil {
					if b, _ := io.ReadAll(e.Response.Body); len(b) > 0 {
						t.Error("Done can take the caller's body")
					}
				}
				events = append(events, e)
			}
			r := send(t, mustNew(t, play(c.a), c.o), post(t.Context(), t, chat))
			if len(events) != 1 || events[0].Reason != c.reason || events[0].Attempt != c.n || events[0].Err != r.err {
				t.Errorf("want %v after %d: %+v", c.reason, c.n, events)
			}
			if r.err == nil && r.body != "x" {
				t.Errorf("body %q", r.body)
			}
		}
	})
}
