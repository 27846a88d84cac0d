package retry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// The body's own error is the caller's, once: the next body would fail alike.
func TestABodyThatFailsIsSentOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	own := errors.New("the disk is gone")
	for _, err := range []error{
		own, io.ErrUnexpectedEOF, io.ErrClosedPipe, fmt.Errorf("read upload: %w", own), net.ErrClosed,
	} {
		t.Run(err.Error(), func(t *testing.T) {
			var bodies atomic.Int32
			get := func() (io.ReadCloser, error) {
				bodies.Add(1)
				return io.NopCloser(io.MultiReader(strings.NewReader(`{"model":"m"`), failing{err})), nil
			}
			req, _ := http.NewRequestWithContext(t.Context(), "POST", server.URL, nil)
			req.Body, _ = get()
			req.GetBody, req.ContentLength = get, 100
			n := 0
			rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
				n++
				return http.DefaultTransport.RoundTrip(r)
			}), Options{MinBackoff: 1, MaxBackoff: 1})
			_, got := rt.RoundTrip(req)
			if !errors.Is(got, err) || n != 1 {
				t.Errorf("%d attempts: %v", n, got)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// An error that a Read has because the connection broke first is no error of the
// body's own.
func TestABodyThatIsClosedUnderItsReaderIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n int
		rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
			if n++; n > 1 {
				rttest.Drain(r)
				return rttest.Response(r, 200, nil, ""), nil
			}
			go func() {
				time.Sleep(time.Second)
				r.Body.Close()
			}()
			io.Copy(io.Discard, r.Body)
			return nil, errReset
		}), Options{})
		req := post(t.Context(), t, "")
		get := func() (io.ReadCloser, error) {
			if n > 0 {
				return io.NopCloser(strings.NewReader("ab")), nil
			}
			r, w := io.Pipe()
			go w.Write([]byte("a"))
			return r, nil
		}
		req.Body, _ = get()
		req.GetBody, req.ContentLength = get, 2
		if r := send(t, rt, req); r.status != 200 || n != 2 {
			t.Errorf("%d attempts: %v", n, r.err)
		}
	})
}

// rewound is a body whose GetBody winds the same reader back, as azcore's SetBody
// does. Reading it on two goroutines is a race.
type rewound struct {
	r    *bytes.Reader
	pace time.Duration
	busy atomic.Int32
	late *atomic.Int32 // reads that met another
}

func (b *rewound) Read(p []byte) (int, error) {
	if b.busy.Add(1) > 1 {
		b.late.Add(1)
	}
	defer b.busy.Add(-1)
	time.Sleep(b.pace)
	return b.r.Read(p[:min(len(p), 1)])
}

func (b *rewound) Close() error { return nil }

func (b *rewound) get() (io.ReadCloser, error) {
	if b.busy.Load() > 0 {
		b.late.Add(1)
	}
	_, err := b.r.Seek(0, io.SeekStart)
	return b, err
}

// The server answers before it has read the body, and the base goes on reading.
// The next attempt does not ask for the body before that has ended.
func TestARewoundBodyIsReadByOneAttemptAtATime(t *testing.T) {
	for _, c := range []struct {
		name string
		a    answerFunc
	}{
		{"503", answer(503, "")},
		{"429", answer(429, tooFast, "Retry-After", "0")},
		{"500", answer(500, "")},
		{"broken", fail(errReset)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var late atomic.Int32
				b := &rewound{r: bytes.NewReader([]byte("0123456789")), pace: 300 * time.Millisecond, late: &late}
				n, got := 0, ""
				rt := mustNew(t, rttest.Func(func(r *http.Request) (*http.Response, error) {
					if n++; n > 1 {
						got = string(rttest.Drain(r))
						return rttest.Response(r, 200, nil, ""), nil
					}
					go rttest.Drain(r) // as net/http does after an early answer
					time.Sleep(time.Millisecond)
					return c.a(r)
				}), Options{MinBackoff: 1, MaxBackoff: 1})
				req := post(t.Context(), t, "")
				req.Body, req.GetBody, req.ContentLength = b, b.get, 10
				r := send(t, rt, req)
				if late.Load() > 0 || got != "0123456789" || r.status != 200 {
					t.Errorf("%d reads at once; the second attempt had %q: %v", late.Load(), got, r.err)
				}
			})
		})
	}
}

// creating is a base that knows what makes something.
type creating struct{ http.RoundTripper }

func (creating) Creates(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/batches") }

// Another arrival of a request that makes something would make it twice.
func TestWhatMakesSomethingIsNotMadeTwice(t *testing.T) {
	overloaded := `{"error":{"type":"overloaded_error","message":"Overloaded"}}`
	for _, c := range []struct {
		name string
		a    answerFunc
		want int // attempts
		key  bool
		path string
	}{
		{"reset after sending", fail(errReset), 1, false, "/v1/batches"},
		{"time-out of a gateway", answer(504, ""), 1, false, "/v1/batches"},
		{"server error", answer(500, ""), 1, false, "/v1/batches"},
		{"time-out", answer(408, ""), 1, false, "/v1/batches"},
		{"server error, with a key", answer(500, ""), 3, true, "/v1/batches"},
		{"reset, with a key", fail(errReset), 3, true, "/v1/batches"},
		{"nobody listens", fail(&net.OpError{Op: "dial", Err: errors.New("connection refused")}), 3, false, "/v1/batches"},
		{"refused for the rate", answer(429, tooFast), 3, false, "/v1/batches"},
		{"overloaded", answer(529, overloaded), 3, false, "/v1/batches"},
		{"unavailable", answer(503, ""), 3, false, "/v1/batches"},
		{"asked to", answer(500, "", "X-Should-Retry", "true"), 3, false, "/v1/batches"},
		{"a chat", fail(errReset), 3, false, "/v1/chat/completions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := play(c.a)
				var reason Reason
				rt := mustNew(t, creating{s}, Options{Done: func(e Event) { reason = e.Reason }})
				req := post(t.Context(), t, chat)
				req.URL.Path = c.path
				if c.key {
					req.Header.Set("Idempotency-Key", "1")
				}
				send(t, rt, req)
				if s.calls() != c.want || c.want == 1 && reason != NotSafe {
					t.Errorf("%d attempts, %v", s.calls(), reason)
				}
			})
		})
	}
}

// The body says that the limit refused, and the status is another.
func TestAForbiddenThatIsARate(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       int
	}{
		{"Google", `{"error":{"code":403,"message":"Rate Limit Exceeded","errors":[{"domain":"usageLimits","reason":"rateLimitExceeded","message":"Rate Limit Exceeded"}]}}`, 3},
		{"Google, of a user", `{"error":{"code":403,"message":"User Rate Limit Exceeded","errors":[{"domain":"usageLimits","reason":"userRateLimitExceeded"}]}}`, 3},
		{"no right", `{"error":{"message":"You are not allowed to sample from this model","type":"invalid_request_error","code":"forbidden"}}`, 1},
		{"a quota", `{"statusCode":403,"message":"Quota exceeded. Try again in 3 hours."}`, 1},
		{"no JSON", "<html>Forbidden</html>", 1},
		{"nothing", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := play(answer(403, c.body, "Content-Type", "application/json"))
				r := send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
				if s.calls() != c.want || r.body != c.body {
					t.Errorf("%d attempts, body %q", s.calls(), r.body)
				}
			})
		})
	}
}

// What a refusal says is read in every coding that a caller may ask for.
func TestAPackedRefusalIsRead(t *testing.T) {
	for coding, body := range map[string]string{
		"gzip": pack(noCredit), "x-gzip": pack(noCredit), "GZIP": pack(noCredit),
		"gzip, gzip": pack(pack(noCredit)), "identity": noCredit,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := play(answer(429, body, "Content-Encoding", coding))
			r := send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat))
			if s.calls() != 1 || r.body != body {
				t.Errorf("%s: %d attempts", coding, s.calls())
			}
		})
	}
}

// Only what http.NewRequest made of bytes in memory goes without a wrapper.
func TestWhatIsFresh(t *testing.T) {
	own := func() (io.ReadCloser, error) { return http.NoBody, nil }
	for _, c := range []struct {
		body io.Reader
		want bool
	}{
		{strings.NewReader("x"), true},
		{bytes.NewReader([]byte("x")), true},
		{bytes.NewBufferString("x"), true},
		{strings.NewReader(""), false},
	} {
		req, _ := http.NewRequest("POST", "https://api.example.com", c.body)
		if got := fresh(req.GetBody); got != c.want {
			t.Errorf("%T: %v", c.body, got)
		}
	}
	if fresh(own) {
		t.Error("a function of the caller's is taken for net/http's")
	}
}

// A base may edit its header in any way: by field, by line, and by adding to a field
// that has room behind its last line.
func TestBaseEditsItsHeaderAlone(t *testing.T) {
	roomy := append(make([]string, 0, 4), "a", "b")
	h := http.Header{"One": {"1"}, "Two": roomy, "Single": roomy[:1], "None": {}, "Nil": nil}
	want := h.Clone()
	out := copyOf(h)
	if !reflect.DeepEqual(out, want) {
		t.Fatalf("copy is %v, want %v", out, want)
	}
	out["One"][0] = "x"
	out["Two"][1] = "x"
	for name := range h {
		out[name] = append(out[name], "added")
	}
	for name, lines := range h {
		if got := out[name]; len(got) != len(lines)+1 || got[len(lines)] != "added" {
			t.Errorf("%s of the copy is %q", name, got)
		}
	}
	out.Del("One")
	if !reflect.DeepEqual(h, want) || roomy[:3][2] != "" {
		t.Errorf("the header is %v, want %v", h, want)
	}
	if copyOf(nil) != nil {
		t.Error("the copy of no header is one")
	}
}
