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

// The wait of every attempt lies where the package comment says, whatever the
// options, and the ceiling doubles.
func TestBackoffStaysInItsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lo, hi = 100 * time.Millisecond, time.Second
		longest := make([]time.Duration, 6)
		for range 300 {
			s := play(answer(503, ""))
			send(t, mustNew(t, s, Options{Attempts: 7, MinBackoff: lo, MaxBackoff: hi}), post(t.Context(), t, chat))
			for i := range 6 {
				w := s.at[i+1] - s.at[i]
				if w < lo || w > min(hi, lo<<(i+1)) {
					t.Fatalf("wait %d is %v", i+1, w)
				}
				longest[i] = max(longest[i], w)
			}
		}
		for i, w := range longest {
			if ceiling := min(hi, lo<<(i+1)); w < ceiling*9/10 {
				t.Errorf("wait %d reached %v of %v in 300 draws", i+1, w, ceiling)
			}
		}
	})
}

func TestCeiling(t *testing.T) {
	const top = time.Duration(1<<63 - 1)
	for _, c := range []struct {
		lo, hi time.Duration
		n      int
		want   time.Duration
	}{
		{1, 8, 0, 1}, {1, 8, 2, 4}, {1, 8, 3, 8}, {1, 8, 1000, 8}, {3, 8, 2, 8},
		{1, top, 1 << 30, top}, {top, top, 5, top}, {top - 1, top, 1, top}, {5, 5, 9, 5},
	} {
		if got := ceiling(c.lo, c.hi, c.n); got != c.want {
			t.Errorf("ceiling(%d, %d, %d) = %d, want %d", c.lo, c.hi, c.n, got, c.want)
		}
	}
}

// Jitter is the part that gives way to a deadline; the order is not.
func TestJitterGivesWayToTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			s := play(answer(429, "", "Retry-After", "2"), answer(200, ""))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+2*time.Millisecond)
			r := send(t, mustNew(t, s, Options{MinBackoff: time.Minute, MaxBackoff: time.Minute}), post(ctx, t, chat))
			if r.status != 200 || r.elapsed < 2*time.Second {
				t.Fatalf("%+v", r)
			}
			cancel()
			s = play(answer(429, "", "Retry-After", "2"), answer(200, ""))
			o := Options{MinBackoff: time.Minute, MaxBackoff: time.Minute, MaxElapsed: 2*time.Second + 2*time.Millisecond}
			r = send(t, mustNew(t, s, o), post(t.Context(), t, chat))
			if r.status != 200 || r.elapsed < 2*time.Second || r.elapsed > o.MaxElapsed {
				t.Fatalf("MaxElapsed: %+v", r)
			}
		}
		// At the deadline is too late.
		s := play(answer(429, "", "Retry-After", "2"))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if r := send(t, mustNew(t, s, Options{}), post(ctx, t, chat)); r.status != 429 || r.elapsed != 0 {
			t.Errorf("%+v", r)
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
		tr := new(Trace)
		o := Options{Admit: func(context.Context, Event) error { return no }}
		// A response: the caller has it, whole.
		for _, body := range []string{"", tooFast, strings.Repeat("x", heldBytes-1), strings.Repeat("y", heldBytes), strings.Repeat("z", 3*heldBytes)} {
			s := play(answer(429, body, "X-Request-Id", "r1"))
			r := send(t, mustNew(t, s, o), post(WithTrace(t.Context(), tr), t, chat))
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

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A refused body that is closed unread, or half read, ends its reader.
func TestHeldBodyIsClosedHalfRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Admit: func(context.Context, Event) error { return errors.New("no") }}
		for _, n := range []int{0, 2} {
			rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
				rttest.Drain(r)
				resp := rttest.Response(r, 503, nil, "")
				resp.Body = trickle(r.Context(), time.Minute, "0123456789")
				return resp, nil
			}), o)
			resp, err := rt.RoundTrip(post(t.Context(), t, chat))
			if err != nil {
				t.Fatal(err)
			}
			io.ReadFull(resp.Body, make([]byte, n))
			reading := make(chan error, 1)
			go func() { _, err := io.ReadAll(resp.Body); reading <- err }()
			synctest.Wait()
			resp.Body.Close()
			resp.Body.Close()
			if err := <-reading; err == nil {
				t.Error("a read goes on after Close")
			}
			if _, err := resp.Body.Read(make([]byte, 1)); err == nil {
				t.Error("a read after Close succeeds")
			}
		}
	})
}

func TestShouldRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			status int
			values []string
			calls  int
		}{
			{503, []string{"false"}, 1}, {429, []string{"False"}, 1}, {500, []string{" false "}, 1},
			{400, []string{"true"}, 2}, {404, []string{"TRUE"}, 2}, {501, []string{"true"}, 2},
			{400, []string{"true", "false"}, 1}, {503, []string{"true", "false"}, 1},
			{503, []string{"maybe"}, 2}, {400, []string{"maybe"}, 1}, {400, []string{"1"}, 1},
			{200, []string{"true"}, 1}, {302, []string{"true"}, 1},
		} {
			fields := []string{}
			for _, v := range c.values {
				fields = append(fields, "X-Should-Retry", v)
			}
			s := play(answer(c.status, "x", fields...), answer(200, ""))
			send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
			if s.calls() != c.calls {
				t.Errorf("%d %q: %d calls", c.status, c.values, s.calls())
			}
		}
		// True does not help what cannot be helped.
		s := play(answer(400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`, "X-Should-Retry", "true"))
		send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
		if s.calls() != 1 {
			t.Errorf("a prompt that is too long was sent %d times", s.calls())
		}
	})
}

func TestErrorsOfTheConnection(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	noName := &net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}
	reset := &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			method, key       string
			err               error
			careful, standard int
		}{
			{"POST", "", reset, 1, 2},
			{"PATCH", "", io.ErrUnexpectedEOF, 1, 2},
			{"POST", "Idempotency-Key", reset, 2, 2},
			{"POST", "X-Idempotency-Key", io.EOF, 2, 2},
			{"GET", "", reset, 2, 2}, {"", "", reset, 2, 2}, {"HEAD", "", io.EOF, 2, 2}, {"OPTIONS", "", io.EOF, 2, 2},
			{"TRACE", "", io.EOF, 2, 2}, {"PUT", "", io.EOF, 2, 2}, {"DELETE", "", io.EOF, 2, 2},
			{"POST", "", refused, 2, 2}, {"POST", "", noName, 2, 2},
			{"POST", "", fmt.Errorf("net/http: TLS handshake timeout"), 2, 2},
			{"POST", "", context.DeadlineExceeded, 1, 2}, // the base's own time limit
			{"GET", "", context.Canceled, 1, 1},          // somebody below meant it
			{"GET", "", errors.New(`unsupported protocol scheme "ftp"`), 1, 1},
			{"GET", "", errors.New("http: ContentLength=5 with Body length 4"), 1, 1},
		} {
			for _, careful := range []bool{true, false} {
				s := play(fail(c.err), answer(200, ""))
				req := post(t.Context(), t, chat)
				req.Method = c.method
				if c.key != "" {
					req.Header.Set(c.key, "k")
				}
				send(t, mustNew(t, s, Options{IdempotentOnly: careful}), req)
				want := c.standard
				if careful {
					want = c.careful
				}
				if s.calls() != want {
					t.Errorf("%s %s %v, careful %v: %d calls, want %d", c.method, c.key, c.err, careful, s.calls(), want)
				}
			}
		}
	})
}

// What net/http itself says is recognised, so that its wording cannot drift away.
func TestUnsendableRequests(t *testing.T) {
	for name, spoil := range map[string]func(*http.Request){
		"scheme":  func(r *http.Request) { r.URL.Scheme = "gopher" },
		"header":  func(r *http.Request) { r.Header["Bad Name"] = []string{"x"} },
		"value":   func(r *http.Request) { r.Header.Set("X", "a\nb") },
		"trailer": func(r *http.Request) { r.Trailer = http.Header{"Bad Name": nil} },
		"method":  func(r *http.Request) { r.Method = "BAD METHOD" },
		"host":    func(r *http.Request) { r.URL.Host = "" },
		"URL":     func(r *http.Request) { r.URL = nil },
		"headers": func(r *http.Request) { r.Header = nil },
	} {
		n := 0
		rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
			n++
			return http.DefaultTransport.RoundTrip(r)
		}), Options{MinBackoff: 1, MaxBackoff: 1})
		req := post(t.Context(), t, chat)
		spoil(req)
		if r := send(t, rt, req); r.err == nil || n != 1 {
			t.Errorf("%s: %d attempts, %v", name, n, r.err)
		}
	}
}

func TestGetBodyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the file is gone")
		admitted := 0
		rt := func(a answerFunc) *Transport {
			return mustNew(t, play(a), Options{Admit: func(context.Context, Event) error { admitted++; return nil }})
		}
		for _, get := range []func() (io.ReadCloser, error){
			func() (io.ReadCloser, error) { return nil, gone },
			func() (io.ReadCloser, error) { return nil, nil },
		} {
			req := post(t.Context(), t, chat)
			req.GetBody = get
			if r := send(t, rt(answer(503, "busy")), req); r.status != 503 || r.body != "busy" {
				t.Errorf("%+v", r)
			}
			req = post(t.Context(), t, chat)
			req.GetBody = get
			if r := send(t, rt(fail(errReset)), req); !errors.Is(r.err, errReset) {
				t.Errorf("%v", r.err)
			}
		}
		if admitted != 0 {
			t.Errorf("%d attempts were charged and not made", admitted)
		}
	})
}

func TestBufferedBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Each attempt has the same bytes and the declared length.
		for size := range 6 {
			text := strings.Repeat("x", size)
			s := play(answer(503, ""), answer(200, ""))
			req := post(t.Context(), t, "")
			b := rttest.NewBody(text)
			req.Body, req.GetBody, req.ContentLength = b, nil, -1
			send(t, mustNew(t, s, Options{MaxBuffer: 4}), req)
			want := []string{text, text}
			if size > 4 {
				want = want[:1]
			}
			if !reflect.DeepEqual(s.bodies, want) {
				t.Errorf("%d bytes: sent %q", size, s.bodies)
			}
			if _, closes, _ := b.Counts(); closes == 0 {
				t.Errorf("%d bytes: open", size)
			}
		}
		// A declared length above the bound is not even begun.
		b := rttest.NewBody(strings.Repeat("x", 10))
		req := post(t.Context(), t, "")
		req.Body, req.GetBody, req.ContentLength = b, nil, 10
		rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
			if reads, _, _ := b.Counts(); reads != 0 || r.Body != io.ReadCloser(b) {
				t.Error("the body was touched")
			}
			rttest.Drain(r)
			return rttest.Response(r, 503, nil, ""), nil
		}), Options{MaxBuffer: 4})
		send(t, rt, req)
		// A body that never comes does not hold the call.
		r, w := io.Pipe()
		defer w.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req = post(ctx, t, "")
		req.Body, req.GetBody, req.ContentLength = r, nil, -1
		s := play(answer(200, ""))
		done := 0
		res := send(t, mustNew(t, s, Options{MaxBuffer: 4, Done: func(e Event) { done++ }}), req)
		if !errors.Is(res.err, context.DeadlineExceeded) || res.elapsed != time.Second || s.calls() != 0 || done != 1 {
			t.Errorf("%+v, %d calls, %d done", res, s.calls(), done)
		}
		// A body that breaks is the caller's own error.
		broken := errors.New("disk")
		req = post(t.Context(), t, "")
		req.Body, req.GetBody = io.NopCloser(readerFunc(func([]byte) (int, error) { return 0, broken })), nil
		if res := send(t, mustNew(t, s, Options{MaxBuffer: 4}), req); res.err != broken {
			t.Errorf("%v", res.err)
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

func TestOptionsAreChecked(t *testing.T) {
	for field, o := range map[string]Options{
		"Attempts":   {Attempts: -1},
		"MinBackoff": {MinBackoff: -1},
		"MaxBackoff": {MaxBackoff: -time.Second},
		"MaxWait":    {MaxWait: -1},
		"MaxElapsed": {MaxElapsed: -1},
		"MaxBuffer":  {MaxBuffer: -1},
		"above":      {MinBackoff: 2, MaxBackoff: 1},
	} {
		if rt, err := New(nil, o); err == nil || rt != nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, %v", field, rt, err)
		}
	}
	for _, c := range []struct{ in, want Options }{
		{Options{}, Options{Attempts: 3, MinBackoff: 500 * time.Millisecond, MaxBackoff: 8 * time.Second, MaxWait: time.Minute}},
		{Options{MinBackoff: time.Minute}, Options{Attempts: 3, MinBackoff: time.Minute, MaxBackoff: time.Minute, MaxWait: time.Minute}},
		{Options{MaxBackoff: time.Millisecond}, Options{Attempts: 3, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond, MaxWait: time.Minute}},
	} {
		got, err := c.in.withDefaults()
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v becomes %+v, %v", c.in, got, err)
		}
	}
	if rt := mustNew(t, nil, Options{}); rt.base != http.DefaultTransport {
		t.Error("nil is not the default transport")
	}
}

func TestReasonString(t *testing.T) {
	seen := map[string]bool{}
	for r := Answered; r <= Ended; r++ {
		s := r.String()
		if s == "" || seen[s] {
			t.Errorf("%d: %q", r, s)
		}
		seen[s] = true
	}
	if Reason(200).String() != "unknown reason" {
		t.Error(Reason(200))
	}
}

// A refusal too long to be read ahead is closed when it is done with: by the next
// attempt, or by the end of the context.
func TestLongRefusalsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("x", 2*heldBytes)
		s := play(answer(503, long), answer(200, "ok"))
		if r := send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat)); r.body != "ok" {
			t.Errorf("%+v", r)
		}
		s.allClosed(t)

		s = play(answer(503, long))
		tr := new(Trace)
		ctx, cancel := context.WithCancel(WithTrace(t.Context(), tr))
		time.AfterFunc(100*time.Millisecond, cancel)
		r := send(t, mustNew(t, s, Options{}), post(ctx, t, chat))
		var e *Error
		if !errors.As(r.err, &e) || len(e.Body) != heldBytes || tr.Waited() != 100*time.Millisecond {
			t.Errorf("%v, waited %v", r.err, tr.Waited())
		}
		s.allClosed(t)
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
