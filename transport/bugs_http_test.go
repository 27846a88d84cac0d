package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// Public reports about layers that break the contract of a RoundTripper. The
// suite in contract_test.go holds for a transport that has nothing to do; here
// it limits, refuses and retries.

// The request's body is closed on every path on which nothing is sent.
func TestB089_TheRequestBodyIsClosed(t *testing.T) {
	for _, c := range []struct {
		path string
		o    transport.Options
		want error
	}{
		{"too large", transport.Options{TPM: 50}, limit.ErrTooLarge},
		{"the line is full", transport.Options{RPM: 60, MaxQueue: 1}, limit.ErrQueueFull},
		{"the wait is too long", transport.Options{RPM: 1, MaxWait: time.Second}, limit.ErrWaitTooLong},
		{"cancelled in line", transport.Options{RPM: 1}, limit.ErrCanceled},
		{"its deadline is too near", transport.Options{RPM: 1}, limit.ErrWaitTooLong},
		{"cancelled before", transport.Options{}, context.Canceled},
		{"sent", transport.Options{}, nil},
		{"skipped", transport.Options{Skip: func(*http.Request) bool { return true }}, nil},
		{"no URL", transport.Options{}, errAny},
		{"refused for ever", transport.Options{Base: script("429")}, nil},
		{"broken for ever", transport.Options{Base: script("reset")}, errReset},
	} {
		for _, again := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				if c.o.Base == nil {
					c.o.Base = script("200")
				}
				rt := gate(t, c.o)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var waiting context.CancelFunc = func() {}
				switch {
				case errors.Is(c.want, limit.ErrCanceled):
					finish(rt.RoundTrip(ask(t, ctx, letter)))
					time.AfterFunc(time.Second, cancel)
				case errors.Is(c.want, limit.ErrWaitTooLong):
					finish(rt.RoundTrip(ask(t, ctx, letter)))
					if c.o.MaxWait == 0 {
						ctx, cancel = context.WithTimeout(ctx, time.Second)
						defer cancel()
					}
				case errors.Is(c.want, limit.ErrQueueFull):
					finish(rt.RoundTrip(ask(t, ctx, letter)))
					var other context.Context
					other, waiting = context.WithCancel(ctx)
					go rt.RoundTrip(ask(t, other, letter))
					synctest.Wait()
				case errors.Is(c.want, context.Canceled):
					cancel()
				}
				body := rttest.NewBody(letter)
				req := ask(t, ctx, letter)
				req.Body = body
				if !again {
					req.GetBody = nil
				}
				if c.want == errAny {
					req.URL = nil
				}
				resp, err := rt.RoundTrip(req)
				if err == nil {
					resp.Body.Close()
				}
				if c.want == nil && err != nil || c.want != nil && c.want != errAny && !errors.Is(err, c.want) || c.want == errAny && err == nil {
					t.Errorf("%s: error %v, want %v", c.path, err, c.want)
				}
				waiting()
				synctest.Wait()
				if _, closes, late := body.Counts(); closes == 0 || late > 0 {
					t.Errorf("%s, GetBody %v: closed %d times, read %d times after", c.path, again, closes, late)
				}
			})
		}
	}
}

var errAny = errors.New("any error")

func TestB090_AFreshBodyForEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, "dial 503 200")
		resp, err := d.post(t, t.Context())
		if status, _, err := finish(resp, err); status != 200 || err != nil {
			t.Fatal(status, err)
		}
		if len(d.wire.bodies) != 2 || d.wire.bodies[0] != letter || d.wire.bodies[1] != letter {
			t.Errorf("%q", d.wire.bodies)
		}
	})
}

// No response is left open: neither one that an attempt replaced, nor one that
// an error came after, nor one that came with an error.
func TestB091_NoResponseIsLeftOpen(t *testing.T) {
	for _, words := range []string{"429 200", "500 500 500", "429;Retry-After=1 reset", "both", "429 both", "503 hang"} {
		synctest.Test(t, func(t *testing.T) {
			w := script(words)
			var bodies []*rttest.Body
			base := rttest.Func(func(r *http.Request) (*http.Response, error) {
				word := w.script[0]
				if word == "both" {
					rttest.Drain(r)
					b := rttest.NewBody("x")
					bodies = append(bodies, b)
					resp := response(r, 200, "", "")
					resp.Body = b
					return resp, errReset
				}
				resp, err := w.RoundTrip(r)
				if err == nil {
					b := rttest.NewBody("")
					b.Reader = resp.Body
					bodies = append(bodies, b)
					resp.Body = b
				}
				return resp, err
			})
			rt := gate(t, transport.Options{Base: base})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			finish(rt.RoundTrip(ask(t, ctx, letter)))
			synctest.Wait()
			for i, b := range bodies {
				if _, closes, _ := b.Counts(); closes == 0 {
					t.Errorf("%s: body %d of %d is open", words, i+1, len(bodies))
				}
			}
			if len(bodies) == 0 {
				t.Errorf("%s: no response at all", words)
			}
		})
	}
}

// The caller's request is what it was, after each ending, also for whoever looks
// at it while it is sent.
func TestB092_TheRequestIsNotAltered(t *testing.T) {
	for _, words := range []string{"200", "429 200", "500", "reset", "dial", "429;Retry-After=3600", "cut"} {
		w := script(words)
		base := rttest.Func(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("Authorization", "edited below")
			r.Header["Content-Type"][0] = "edited/below"
			return w.RoundTrip(r)
		})
		o := transport.Options{Base: base}
		o.Retry.MinBackoff, o.Retry.MaxBackoff = 1, 1
		rt := gate(t, o)
		req := ask(t, t.Context(), letter)
		req.Header.Set("Authorization", "Bearer k")
		header, url, before := req.Header.Clone(), *req.URL, *req
		stop, looked := make(chan struct{}), make(chan struct{})
		go func() { // a race, were it written to
			defer close(looked)
			for {
				select {
				case <-stop:
					return
				default:
					_ = req.Header.Get("Authorization") + req.URL.Path
				}
			}
		}()
		finish(rt.RoundTrip(req))
		close(stop)
		<-looked
		if !reflect.DeepEqual(req.Header, header) || *req.URL != url || req.Body != before.Body || req.ContentLength != before.ContentLength ||
			req.Context() != before.Context() || reflect.ValueOf(req.GetBody).Pointer() != reflect.ValueOf(before.GetBody).Pointer() {
			t.Errorf("%s: altered: %+v", words, req)
		}
	}
}

func TestB093_AFreshTransportUnderAHundredCalls(t *testing.T) {
	var n atomic.Int64
	base := rttest.Func(func(r *http.Request) (*http.Response, error) {
		rttest.Drain(r)
		if n.Add(1)%5 == 0 {
			return response(r, 429, "", ""), nil
		}
		resp := response(r, 200, "application/json", `{"usage":{"prompt_tokens":11,"completion_tokens":7}}`)
		resp.Header.Set("X-Ratelimit-Limit-Requests", "100000")
		resp.Header.Set("X-Ratelimit-Remaining-Requests", "99999")
		return resp, nil
	})
	b := new(books)
	o := transport.Options{Base: base, Limits: slow(1e6, 1e9), MaxInFlight: 20, Trace: b.trace(), FollowRule: true}
	o.Retry.MinBackoff, o.Retry.MaxBackoff = 1, 1
	rt := gate(t, o)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if _, _, err := finish(rt.RoundTrip(ask(t, context.Background(), letter))); err != nil {
				t.Error(err)
			}
			rt.Snapshot()
		})
	}
	wg.Wait()
	b.balanced(t, rt)
}

// closing counts how often its idle connections were closed.
type closing struct {
	http.RoundTripper
	n int
}

func (c *closing) CloseIdleConnections() { c.n++ }

func TestB094_CloseIdleConnectionsReachesTheBase(t *testing.T) {
	base := &closing{RoundTripper: script("500")}
	o := transport.Options{Base: base}
	o.Retry.MinBackoff, o.Retry.MaxBackoff = 1, 1
	inner := gate(t, o)
	over, err := retry.New(gate(t, transport.Options{Base: inner, Attempts: 1}), retry.Options{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: over}
	resp, err := client.Do(ask(t, t.Context(), letter))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if base.n != 0 {
		t.Error("a failed call flushed the pool")
	}
	client.CloseIdleConnections()
	if base.n != 1 {
		t.Errorf("forwarded %d times", base.n)
	}
}

func TestB095_ABodyOf101CanBeWrittenTo(t *testing.T) {
	rt := gate(t, transport.Options{Base: script("101")})
	resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, ok := resp.Body.(io.ReadWriteCloser); !ok {
		t.Errorf("the body is a %T", resp.Body)
	}
	resp, err = gate(t, transport.Options{Base: script("200")}).RoundTrip(ask(t, t.Context(), letter))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, ok := resp.Body.(io.Writer); ok {
		t.Error("a body that cannot be written to pretends that it can")
	}
}

// What is sent can be had again by net/http, which needs that after a GOAWAY,
// also where the caller gave a body that can be read once.
func TestB096_GetBodyWorksBelow(t *testing.T) {
	for _, again := range []bool{true, false} {
		rt := gate(t, transport.Options{Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			for range 2 {
				b, err := r.GetBody()
				if err != nil {
					t.Fatal(err)
				}
				if got, _ := io.ReadAll(b); string(got) != letter {
					t.Errorf("GetBody gives %q", got)
				}
			}
			return response(r, 200, "", ""), nil
		})})
		req := ask(t, t.Context(), letter)
		if !again {
			req.Body, req.GetBody = io.NopCloser(strings.NewReader(letter)), nil
		}
		finish(rt.RoundTrip(req))
	}
}

// A server that says goodbye to the connection with every other answer.
func TestB096_GoAway(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%2 == 0 {
			w.Header().Set("Connection", "close")
		}
		io.Copy(w, r.Body)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = quiet
	s.StartTLS()
	defer s.Close()
	rt := gate(t, transport.Options{Base: s.Client().Transport})
	defer rt.CloseIdleConnections()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				req := ask(t, context.Background(), letter)
				req.URL.Host = s.Listener.Addr().String()
				if status, text, err := finish(rt.RoundTrip(req)); status != 200 || text != letter || err != nil {
					t.Errorf("%d %q %v", status, text, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestB097_NoGoroutineIsLeft(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }))
	rt := gate(t, transport.Options{Base: s.Client().Transport, RPM: 1e9, TPM: 1e12})
	req := ask(t, context.Background(), letter)
	req.URL.Scheme, req.URL.Host = "http", s.Listener.Addr().String()
	if status, _, err := finish(rt.RoundTrip(req)); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	rt.CloseIdleConnections()
	s.Close()
	rttest.NoLeaks(t)
}

// A file is sent from where it stands, and never rewound.
func TestB098_AFileIsSentFromItsOffset(t *testing.T) {
	name := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(name, []byte(strings.Repeat("#", 100)+letter), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, contentType := range []string{"application/json", "application/octet-stream"} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Seek(100, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		w := script("503 200")
		o := transport.Options{Base: w}
		o.Retry.MinBackoff, o.Retry.MaxBackoff = 1, 1
		req, _ := http.NewRequest("POST", "https://api.example.com/v1/chat/completions", f)
		req.Header.Set("Content-Type", contentType)
		status, _, err := finish(gate(t, o).RoundTrip(req))
		for _, b := range w.bodies {
			if b != letter {
				t.Errorf("%s: sent %q", contentType, b)
			}
		}
		// Read ahead, the first can be sent again; the other is an upload, sent once.
		want := map[bool]int{true: 2, false: 1}[contentType == "application/json"]
		if len(w.bodies) != want || err != nil {
			t.Errorf("%s: %d attempts, %d, %v", contentType, len(w.bodies), status, err)
		}
		if _, err := f.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: the file is open", contentType)
		}
	}
}
