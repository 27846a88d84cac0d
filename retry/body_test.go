package retry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// Report: davesavic/clink#5, maximilien/softlayer-go#142
// Report: newrelic/newrelic-telemetry-sdk-go#17
func TestEveryAttemptHasTheSameBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(answer(503, ""), answer(500, ""), answer(200, "ok"))
		var lengths []int64
		rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
			lengths = append(lengths, r.ContentLength)
			return s.RoundTrip(r)
		}), Options{})
		body := strings.Repeat("x", 358)
		if r := send(t, rt, post(t.Context(), t, body)); r.status != 200 {
			t.Fatalf("%+v", r)
		}
		if want := []string{body, body, body}; !reflect.DeepEqual(s.bodies, want) {
			t.Errorf("bodies %.30q", s.bodies)
		}
		if want := []int64{358, 358, 358}; !reflect.DeepEqual(lengths, want) {
			t.Errorf("lengths %v", lengths)
		}
		s.allClosed(t)
	})
}

// Report: davesavic/clink#5, maximilien/softlayer-go#142
// Report: newrelic/newrelic-telemetry-sdk-go#17
func TestABodyThatCanBeReadOnceHasOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, length := range []int64{-1, 0, int64(len(chat))} {
			s := play(answer(503, "busy"), answer(200, "ok"))
			req := post(t.Context(), t, chat)
			req.Body, req.GetBody, req.ContentLength = rttest.NewBody(chat), nil, length
			tr := new(Tally)
			r := send(t, mustNew(t, s, Options{}), req.WithContext(WithTally(t.Context(), tr)))
			if r.status != 503 || r.body != "busy" || s.calls() != 1 || tr.Reason() != OneShot {
				t.Errorf("%+v after %d calls, %v", r, s.calls(), tr.Reason())
			}
		}
	})
}

// Report: golang/oauth2#269, golang/go#48341, golang/go#35015
// Report: quic-go/quic-go#4873, improbable-eng/kedge#152
func TestBodiesAreClosedOnEveryPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := func(context.Context, Event) error { return errors.New("no") }
		for name, c := range map[string]struct {
			o       Options
			answers []answerFunc
		}{
			"exhausted":        {Options{}, []answerFunc{answer(503, "")}},
			"errors":           {Options{}, []answerFunc{fail(errReset)}},
			"not admitted":     {Options{Admit: refuse}, []answerFunc{answer(503, "")}},
			"not admitted err": {Options{Admit: refuse}, []answerFunc{fail(errReset)}},
			"too long":         {Options{}, []answerFunc{answer(429, "", "Retry-After", "99")}},
			"refused":          {Options{}, []answerFunc{answer(429, noCredit)}},
			"cancelled":        {Options{Deciding: nil}, []answerFunc{answer(503, "")}},
		} {
			s := play(c.answers...)
			ctx, cancel := context.WithCancel(t.Context())
			if name == "cancelled" {
				c.o.Deciding = func(Event) { cancel() }
			}
			first := rttest.NewBody(chat)
			bodies := []*rttest.Body{first}
			req := post(ctx, t, chat)
			req.Body = first
			req.GetBody = func() (io.ReadCloser, error) {
				b := rttest.NewBody(chat)
				bodies = append(bodies, b)
				return b, nil
			}
			send(t, mustNew(t, s, c.o), req)
			for i, b := range bodies {
				if _, closes, late := b.Counts(); closes == 0 || late > 0 {
					t.Errorf("%s: body %d closed %d times, read %d times after", name, i, closes, late)
				}
			}
			s.allClosed(t)
			cancel()
		}
	})
}

// Report: DataDog/dd-trace-go#1090, census-instrumentation/opencensus-go#892
// Report: aws/aws-sdk-go#684
func TestAttemptsShareNoHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			seen = append(seen, strings.Join(r.Header["Traceparent"], ","))
			r.Header.Add("Traceparent", "a")
			return rttest.Response(r, 503, nil, ""), nil
		}), Options{})
		req := post(t.Context(), t, chat)
		before := req.Header.Clone()
		send(t, rt, req)
		if !reflect.DeepEqual(seen, []string{"", "", ""}) || !reflect.DeepEqual(req.Header, before) {
			t.Errorf("attempts saw %q, the caller %v", seen, req.Header)
		}
	})
}

// A server that leaves with GOAWAY while a request is under way is net/http's own
// to retry; it needs the GetBody that we pass on.
// Report: goadesign/goa#3725, celo-org/celo-blockchain#957, golang/go#39086
// Report: golang/go#32441
func TestGetBodyReachesTheBase(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		req  func(*http.Request)
	}{
		{"the caller's", Options{}, func(*http.Request) {}},
		{"of a buffered body", Options{MaxBuffer: 1 << 10}, func(r *http.Request) { r.Body, r.GetBody = rttest.NewBody(chat), nil }},
	} {
		req := post(t.Context(), t, chat)
		c.req(req)
		before := *req
		rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			b, err := r.GetBody()
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := io.ReadAll(b); string(got) != chat {
				t.Errorf("%s: GetBody gives %q", c.name, got)
			}
			return rttest.Response(r, 200, nil, ""), nil
		}), c.o)
		send(t, rt, req)
		if req.Body != before.Body || (req.GetBody == nil) != (before.GetBody == nil) {
			t.Errorf("%s: the caller's request was altered", c.name)
		}
	}
}

// Report: golang/go#18241
func TestNothingIsRewound(t *testing.T) {
	name := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(name, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, buffer := range []int64{0, 3, 100} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		f.Seek(5, io.SeekStart)
		s := play(answer(503, ""), answer(200, ""))
		req, _ := http.NewRequest("POST", "https://api.example.com/", f)
		send(t, mustNew(t, s, Options{MaxBuffer: buffer, MinBackoff: time.Nanosecond, MaxBackoff: time.Nanosecond}), req)
		want := []string{"56789"}
		if buffer == 100 {
			want = append(want, "56789")
		}
		if !reflect.DeepEqual(s.bodies, want) {
			t.Errorf("buffer %d: %q", buffer, s.bodies)
		}
		if _, err := f.Read(nil); !errors.Is(err, os.ErrClosed) {
			t.Errorf("buffer %d: the file is open", buffer)
		}
	}
}

func TestNoBodyIsSentEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, length := range []int64{-1, int64(len(chat))} {
			for buffer, want := range map[int64]int{0: 1, 10: 1, 1 << 10: 2} {
				s := play(answer(429, "", "Retry-After", "1"), answer(200, ""))
				req := post(t.Context(), t, chat)
				req.Body, req.GetBody, req.ContentLength = rttest.NewBody(chat), nil, length
				send(t, mustNew(t, s, Options{MaxBuffer: buffer}), req)
				if s.calls() != want {
					t.Errorf("length %d, buffer %d: %d calls", length, buffer, s.calls())
				}
				for _, b := range s.bodies {
					if b != chat {
						t.Errorf("length %d, buffer %d: sent %q", length, buffer, b)
					}
				}
			}
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
		tr := new(Tally)
		ctx, cancel := context.WithCancel(WithTally(t.Context(), tr))
		time.AfterFunc(100*time.Millisecond, cancel)
		r := send(t, mustNew(t, s, Options{}), post(ctx, t, chat))
		var e *Error
		if !errors.As(r.err, &e) || len(e.Body) != heldBytes || tr.Waited() != 100*time.Millisecond {
			t.Errorf("%v, waited %v", r.err, tr.Waited())
		}
		s.allClosed(t)
	})
}
