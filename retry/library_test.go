package retry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// The pitfalls of using go-retryablehttp v0.7.8 as a round tripper. Each check
// returns the fault it found, or "". It runs on our transport, which must have no
// fault, and on the library used plainly, which must have one. A check that is
// clean there proves nothing; after an upgrade it shows a change.

// A maker builds a layer with a number of attempts and a shortest wait.
type maker func(base http.RoundTripper, attempts int, wait time.Duration) http.RoundTripper

func ours(base http.RoundTripper, attempts int, wait time.Duration) http.RoundTripper {
	t, err := New(base, Options{Attempts: attempts, MinBackoff: wait, MaxBackoff: wait, MaxRetryAfter: time.Hour})
	if err != nil {
		panic(err)
	}
	return t
}

func stock(base http.RoundTripper, attempts int, wait time.Duration) http.RoundTripper {
	c := retryablehttp.NewClient()
	c.HTTPClient = &http.Client{Transport: base}
	c.RetryMax = attempts - 1
	c.RetryWaitMin, c.RetryWaitMax = wait, wait
	c.Logger = nil
	return &retryablehttp.RoundTripper{Client: c}
}

// stockPassthrough is the library with its own answer to pitfall 6.
func stockPassthrough(base http.RoundTripper, attempts int, wait time.Duration) http.RoundTripper {
	rt := stock(base, attempts, wait).(*retryablehttp.RoundTripper)
	rt.Client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return rt
}

// stockLogging is the library as it comes.
func stockLogging(base http.RoundTripper, attempts int, wait time.Duration) http.RoundTripper {
	rt := stock(base, attempts, wait).(*retryablehttp.RoundTripper)
	rt.Client.Logger = retryablehttp.NewClient().Logger
	return rt
}

type pitfall struct {
	name  string
	stock maker
	real  bool // needs real connections, so cannot run in a bubble
	check func(t *testing.T, make maker) string
}

func (p pitfall) run(t *testing.T) {
	t.Helper()
	hold := func(t *testing.T) { compare(t, p.name, ours, p.stock, p.check) }
	if p.real {
		hold(t)
		return
	}
	synctest.Test(t, hold)
}

// compare fails if mine is wrong, and if the library alone is not.
func compare(t *testing.T, name string, mine, library maker, check func(*testing.T, maker) string) {
	t.Helper()
	if wrong := check(t, mine); wrong != "" {
		t.Errorf("%s: %s", name, wrong)
	}
	if check(t, library) == "" {
		t.Errorf("%s: the library alone is right too, so the check proves nothing", name)
	}
}

func TestTheBodyIsNotReadIntoMemory(t *testing.T) {
	pitfall{"a body with GetBody is read, and never closed", stock, false, func(t *testing.T, mk maker) string {
		body := rttest.NewBody(chat)
		req := post(t.Context(), t, chat)
		req.Body = body
		reads := 0
		rt := mk(rttest.Func(func(r *http.Request) (*http.Response, error) {
			reads, _, _ = body.Counts()
			rttest.Drain(r)
			return rttest.Response(r, 200, nil, ""), nil
		}), 3, time.Second)
		send(t, rt, req)
		if _, closes, _ := body.Counts(); reads > 0 || closes == 0 {
			return fmt.Sprintf("%d reads before the base's, %d closes", reads, closes)
		}
		return ""
	}}.run(t)
}

// Fixing 1 with SetBody(ReaderFunc) brings this one.
func TestTheLengthIsKept(t *testing.T) {
	withReaderFunc := func(base http.RoundTripper, attempts int, wait time.Duration) http.RoundTripper {
		client := stock(base, attempts, wait).(*retryablehttp.RoundTripper).Client
		return rttest.Func(func(req *http.Request) (*http.Response, error) {
			clone := req.Clone(req.Context())
			clone.Body = nil
			r, err := retryablehttp.FromRequest(clone)
			if err != nil {
				return nil, err
			}
			r.SetBody(retryablehttp.ReaderFunc(func() (io.Reader, error) { return req.GetBody() }))
			return client.Do(r)
		})
	}
	pitfall{"the request goes out chunked", withReaderFunc, false, func(t *testing.T, mk maker) string {
		var lengths []int64
		rt := mk(rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			lengths = append(lengths, r.ContentLength)
			return rttest.Response(r, []int{503, 200}[min(len(lengths)-1, 1)], nil, ""), nil
		}), 3, time.Second)
		send(t, rt, post(t.Context(), t, chat))
		if len(lengths) != 2 || lengths[0] != int64(len(chat)) || lengths[1] != int64(len(chat)) {
			return fmt.Sprint("lengths ", lengths)
		}
		return ""
	}}.run(t)
}

func TestTheRequestIsNotChanged(t *testing.T) {
	pitfall{"req.Body is replaced", stock, false, func(t *testing.T, mk maker) string {
		req := post(t.Context(), t, chat)
		before := *req
		send(t, mk(play(answer(503, ""), answer(200, "")), 3, time.Second), req)
		if req.Body != before.Body || req.ContentLength != before.ContentLength {
			return "the caller's request was changed"
		}
		return ""
	}}.run(t)
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	pitfall{"a 302 becomes the answer of its target", stock, false, func(t *testing.T, mk maker) string {
		s := play(answer(302, "", "Location", "/target"), answer(204, ""))
		if r := send(t, mk(s, 3, time.Second), post(t.Context(), t, chat)); r.status != 302 || s.calls() != 1 {
			return fmt.Sprint("status ", r.status, " after ", s.calls(), " calls")
		}
		return ""
	}}.run(t)
	// ErrUseLastResponse would not be enough: net/http reads the Location before it
	// asks, and fails when that is no URL.
	useLast := func(base http.RoundTripper, attempts int, wait time.Duration) http.RoundTripper {
		rt := stock(base, attempts, wait).(*retryablehttp.RoundTripper)
		rt.Client.HTTPClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		return rt
	}
	pitfall{"a Location that is no URL fails the call", useLast, false, func(t *testing.T, mk maker) string {
		s := play(answer(302, "moved", "Location", "http://[bad%zz"))
		resp, err := mk(s, 1, time.Second).RoundTrip(post(t.Context(), t, chat))
		if err != nil {
			return err.Error()
		}
		resp.Body.Close()
		return ""
	}}.run(t)
}

func TestNothingIsLogged(t *testing.T) {
	pitfall{"a line on stderr for every request", stockLogging, false, func(t *testing.T, mk maker) string {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		stderr := os.Stderr
		os.Stderr = w
		defer func() { os.Stderr = stderr }()
		rt := mk(play(answer(503, ""), answer(200, "")), 3, time.Second)
		if l, ok := rt.(*retryablehttp.RoundTripper); ok {
			l.Client.Logger = logTo(w) // its default logger was made with the stderr of the start
		}
		send(t, rt, post(t.Context(), t, chat))
		w.Close()
		if b, _ := io.ReadAll(r); len(b) > 0 {
			return string(b)
		}
		return ""
	}}.run(t)
}

func TestTheLastResponseIsReturned(t *testing.T) {
	check := func(status int) func(*testing.T, maker) string {
		return func(t *testing.T, mk maker) string {
			s := play(answer(status, "why"))
			resp, err := mk(s, 2, time.Second).RoundTrip(post(t.Context(), t, chat))
			if err != nil || resp == nil {
				return fmt.Sprint(resp, err)
			}
			defer resp.Body.Close()
			if b, _ := io.ReadAll(resp.Body); string(b) != "why" {
				return fmt.Sprintf("body %q", b)
			}
			return ""
		}
	}
	pitfall{"an error instead of the response", stock, false, check(503)}.run(t)
	pitfall{"an error instead of the response", stock, false, check(429)}.run(t)
	pitfall{"a context that ends with the headers leaves a response open, or with an error", stockPassthrough, false, func(t *testing.T, mk maker) string {
		ctx, cancel := context.WithCancel(t.Context())
		s := play(func(r *http.Request) (*http.Response, error) {
			resp, err := answer(429, "why")(r)
			cancel()
			return resp, err
		})
		resp, err := mk(s, 2, time.Second).RoundTrip(post(ctx, t, chat))
		if resp != nil && err != nil {
			return "both"
		}
		if resp != nil {
			resp.Body.Close()
		}
		if _, closes, _ := s.open[0].Counts(); closes == 0 {
			return "open"
		}
		return ""
	}}.run(t)
}

func TestThePoolIsNotFlushed(t *testing.T) {
	pitfall{"CloseIdleConnections after each failure", stock, false, func(t *testing.T, mk maker) string {
		base := &flushed{RoundTripper: play(answer(503, ""))}
		if resp, err := mk(base, 2, time.Second).RoundTrip(post(t.Context(), t, chat)); err == nil {
			resp.Body.Close()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		base.RoundTripper = play(fail(errReset))
		mk(base, 2, 500*time.Millisecond).RoundTrip(post(ctx, t, chat))
		if base.n > 0 {
			return fmt.Sprint(base.n, " times")
		}
		return ""
	}}.run(t)
}

type flushed struct {
	http.RoundTripper
	n int
}

func (f *flushed) CloseIdleConnections() { f.n++ }

func TestAPOSTThatMayHaveArrived(t *testing.T) {
	// The default follows openai-go and tries again, and tells the hooks. The option
	// is for calls that must not happen twice.
	careful := func(base http.RoundTripper, attempts int, wait time.Duration) http.RoundTripper {
		return mustNew(t, base, Options{Attempts: attempts, MinBackoff: wait, MaxBackoff: wait, IdempotentOnly: true})
	}
	p := pitfall{"", stock, false, func(t *testing.T, mk maker) string {
		s := play(fail(errReset))
		mk(s, 4, time.Second).RoundTrip(post(t.Context(), t, chat))
		if s.calls() != 1 {
			return fmt.Sprint("reached the server ", s.calls(), " times")
		}
		return ""
	}}
	synctest.Test(t, func(t *testing.T) {
		if wrong := p.check(t, careful); wrong != "" {
			t.Error(wrong)
		}
		if p.check(t, stock) == "" {
			t.Error("the library alone is right too, so the check proves nothing")
		}
	})
}

func TestEveryWaitIsReadAndBounded(t *testing.T) {
	for _, v := range []struct {
		field, value string
		want         time.Duration
	}{
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After", " 2", 2 * time.Second},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond},
	} {
		pitfall{v.field + " " + v.value, stock, false, func(t *testing.T, mk maker) string {
			s := play(answer(429, "", v.field, v.value), answer(200, ""))
			if r := send(t, mk(s, 2, time.Millisecond), post(t.Context(), t, chat)); r.elapsed < v.want {
				return fmt.Sprint("waited ", r.elapsed)
			}
			return ""
		}}.run(t)
	}
	pitfall{"500 is looked at", stock, false, func(t *testing.T, mk maker) string {
		s := play(answer(500, "", "Retry-After", "3"), answer(200, ""))
		if r := send(t, mk(s, 2, time.Millisecond), post(t.Context(), t, chat)); r.elapsed < 3*time.Second {
			return fmt.Sprint("waited ", r.elapsed)
		}
		return ""
	}}.run(t)
	for _, v := range []string{"86400", "9223372036854775807"} {
		pitfall{v, stock, false, func(t *testing.T, mk maker) string {
			s := play(answer(429, "", "Retry-After", v), answer(200, ""))
			if r := send(t, mk(s, 2, time.Second), post(t.Context(), t, chat)); r.elapsed > 0 || s.calls() > 1 {
				return fmt.Sprint("waited ", r.elapsed, ", ", s.calls(), " calls")
			}
			return ""
		}}.run(t)
	}
}

func TestADeadlineBeforeTheWaitIsNotSleptOut(t *testing.T) {
	pitfall{"", stock, false, func(t *testing.T, mk maker) string {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r := send(t, mk(play(answer(429, "why", "Retry-After", "30")), 2, time.Second), post(ctx, t, chat))
		if r.elapsed > 0 || r.body != "why" {
			return fmt.Sprint(r.elapsed, r.err)
		}
		return ""
	}}.run(t)
}

// Every attempt that was admitted leaves: none is admitted and then found to be one
// too many.
func TestNothingIsAdmittedInVain(t *testing.T) {
	asked := 0
	counting := func(base http.RoundTripper, attempts int, wait time.Duration) http.RoundTripper {
		return mustNew(t, base, Options{Attempts: attempts, Admit: func(context.Context, Event) error { asked++; return nil }})
	}
	inCheckRetry := func(base http.RoundTripper, attempts int, wait time.Duration) http.RoundTripper {
		rt := stock(base, attempts, wait).(*retryablehttp.RoundTripper)
		rt.Client.CheckRetry = func(context.Context, *http.Response, error) (bool, error) { asked++; return true, nil }
		return rt
	}
	check := func(t *testing.T, mk maker) string {
		asked = 0
		s := play(answer(503, ""))
		if resp, err := mk(s, 3, time.Second).RoundTrip(post(t.Context(), t, chat)); err == nil {
			resp.Body.Close()
		}
		if asked != s.calls()-1 {
			return fmt.Sprint(asked, " admitted, ", s.calls()-1, " sent again")
		}
		return ""
	}
	synctest.Test(t, func(t *testing.T) { compare(t, "", counting, inCheckRetry, check) })
}

func TestWaitsAreSpread(t *testing.T) {
	withRoom := func(base http.RoundTripper, attempts int, wait time.Duration) http.RoundTripper {
		return mustNew(t, base, Options{Attempts: attempts, MinBackoff: wait, MaxBackoff: 10 * wait})
	}
	check := func(t *testing.T, mk maker) string {
		waits := map[time.Duration]bool{}
		for range 20 {
			r := send(t, mk(play(answer(503, ""), answer(200, "")), 2, time.Second), post(t.Context(), t, chat))
			waits[r.elapsed] = true
		}
		if len(waits) < 15 {
			return fmt.Sprint(len(waits), " different waits")
		}
		return ""
	}
	synctest.Test(t, func(t *testing.T) { compare(t, "", withRoom, stock, check) })
}

func TestTheRefusalFreesTheConnection(t *testing.T) {
	pitfall{"a 10 kB body costs a connection per attempt", stock, true, func(t *testing.T, mk maker) string {
		var n atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) < 4 {
				w.WriteHeader(429)
				w.Write(bytes.Repeat([]byte("x"), 10<<10))
			}
		}))
		defer server.Close()
		dialled := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if !i.Reused {
				dialled++
			}
		}})
		req, _ := http.NewRequestWithContext(ctx, "POST", server.URL, strings.NewReader(chat))
		r := send(t, mk(server.Client().Transport, 4, time.Millisecond), req)
		if dialled != 1 || r.status != 200 {
			return fmt.Sprint(dialled, " connections, status ", r.status)
		}
		return ""
	}}.run(t)
	pitfall{"a body that trickles delays the attempt", stock, false, func(t *testing.T, mk maker) string {
		s := play(func(r *http.Request) (*http.Response, error) {
			resp := rttest.Response(r, 429, http.Header{"Retry-After": {"1"}}, "")
			resp.Body = trickle(r.Context(), 700*time.Millisecond, "0123456789")
			return resp, nil
		}, answer(200, ""))
		r := send(t, mk(s, 2, time.Millisecond), post(t.Context(), t, chat))
		if r.elapsed > 1100*time.Millisecond || r.elapsed < time.Second || r.status != 200 {
			return fmt.Sprint("took ", r.elapsed, ", status ", r.status)
		}
		return ""
	}}.run(t)
}

// trickle is a body that gives a byte every d, until it is closed.
func trickle(ctx context.Context, d time.Duration, s string) io.ReadCloser {
	ctx, stop := context.WithCancel(ctx)
	r, w := io.Pipe()
	go func() {
		for i := range s {
			select {
			case <-time.After(d):
			case <-ctx.Done():
				w.CloseWithError(ctx.Err())
				return
			}
			if _, err := io.WriteString(w, s[i:i+1]); err != nil {
				return
			}
		}
		w.Close()
	}()
	return struct {
		io.Reader
		io.Closer
	}{r, closerFunc(func() error { stop(); return r.Close() })}
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

// Hooks know which call they are asked about, under concurrency too. The library's
// Backoff and ErrorHandler see no request.
func TestHooksKnowTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(answer(503, ""))
		var wrong atomic.Int32
		var told atomic.Int32
		note := func(e Event) {
			told.Add(1)
			if e.Request.Header.Get("X-N") != e.Request.Context().Value(nKey{}) {
				wrong.Add(1)
			}
		}
		rt := mustNew(t, s, Options{
			Deciding: note,
			Admit:    func(ctx context.Context, e Event) error { note(e); return nil },
			Done:     note,

			Unbudgeted: true,
		})
		done := make(chan bool)
		for i := range 50 {
			go func() {
				n := fmt.Sprint(i)
				req := post(context.WithValue(t.Context(), nKey{}, n), t, chat)
				req.Header.Set("X-N", n)
				send(t, rt, req)
				done <- true
			}()
		}
		for range 50 {
			<-done
		}
		if wrong.Load() != 0 || told.Load() != 50*(2+2+1) {
			t.Errorf("%d of %d wrong", wrong.Load(), told.Load())
		}
	})
}

type nKey struct{}

func TestOneSentenceForEachError(t *testing.T) {
	pitfall{"the text is nested", stock, false, func(t *testing.T, mk maker) string {
		_, err := mk(play(fail(errReset)), 2, time.Second).RoundTrip(post(t.Context(), t, chat))
		if n := strings.Count(err.Error(), "api.example.com"); n > 0 || !errors.Is(err, errReset) {
			return err.Error()
		}
		return ""
	}}.run(t)
}

func TestABodyThatCanBeReadOnceIsStreamed(t *testing.T) {
	pitfall{"a body without GetBody is buffered", stock, false, func(t *testing.T, mk maker) string {
		body := rttest.NewBody(chat)
		req := post(t.Context(), t, chat)
		req.Body, req.GetBody = body, nil
		before := 0
		calls := 0
		rt := mk(rttest.Func(func(r *http.Request) (*http.Response, error) {
			calls++
			before, _, _ = body.Counts()
			rttest.Drain(r)
			return rttest.Response(r, 503, nil, ""), nil
		}), 2, time.Second)
		if resp, err := rt.RoundTrip(req); err == nil {
			resp.Body.Close()
		}
		if before > 0 || calls != 1 {
			return fmt.Sprint("read ", before, " times beforehand, sent ", calls, " times")
		}
		return ""
	}}.run(t)
}
