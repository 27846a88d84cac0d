package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// The request's body is closed on every path on which nothing is sent.
// Report: golang/oauth2#269, golang/go#48341, golang/go#35015
// Report: quic-go/quic-go#4873
func TestTheRequestBodyIsClosedWhenNothingIsSent(t *testing.T) {
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

// Report: improbable-eng/kedge#152
func TestEachAttemptHasAFreshBody(t *testing.T) {
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

// net/http can get the body again, as it must after a GOAWAY. That holds also for a
// body of the caller's that can be read only once.
// Report: goadesign/goa#3725, celo-org/celo-blockchain#957, golang/go#39086
// Report: golang/go#32441
func TestGetBodyWorksBelow(t *testing.T) {
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
// Report: goadesign/goa#3725, celo-org/celo-blockchain#957, golang/go#39086
// Report: golang/go#32441
func TestAServerThatSaysGoAway(t *testing.T) {
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

// A file is sent from where it stands, and never rewound.
// Report: golang/go#18241
func TestAFileIsSentFromItsOffset(t *testing.T) {
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
