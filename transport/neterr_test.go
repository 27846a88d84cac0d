package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/transport"
)

// What net/http will not send it is asked to send once. The error is its own.
func TestUnsendableIsTriedOnce(t *testing.T) {
	spoilt := map[string]struct {
		two   bool // only HTTP/2 minds
		spoil func(*http.Request)
	}{
		"trailer key":    {false, func(r *http.Request) { r.ContentLength, r.Trailer = -1, http.Header{"Content-Length": {"1"}} }},
		"host":           {true, func(r *http.Request) { r.Host = "a b" }},
		"body too long":  {true, func(r *http.Request) { r.ContentLength = 3 }},
		"connection":     {true, func(r *http.Request) { r.Header.Set("Connection", "x, y") }},
		"upgrade":        {true, func(r *http.Request) { r.Header.Set("Upgrade", "websocket") }},
		"coding":         {true, func(r *http.Request) { r.Header.Set("Transfer-Encoding", "gzip") }},
		"path":           {true, func(r *http.Request) { r.URL.Opaque = "//other/x" }},
		"header too big": {true, func(r *http.Request) { r.Header.Set("X-Big", strings.Repeat("x", 3<<20)) }},
	}
	for _, two := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
		s.EnableHTTP2 = two
		s.StartTLS()
		for name, c := range spoilt {
			if c.two && !two {
				continue
			}
			request := func() *http.Request {
				req, err := http.NewRequest("POST", s.URL, strings.NewReader(letter))
				if err != nil {
					t.Fatal(err)
				}
				c.spoil(req)
				return req
			}
			// HTTP/2 learns the size of header that the server takes from its first answer.
			warm, _ := http.NewRequest("GET", s.URL, nil)
			if _, _, err := finish(s.Client().Transport.RoundTrip(warm)); err != nil {
				t.Fatal(err)
			}
			_, _, want := finish(s.Client().Transport.RoundTrip(request()))
			if want == nil {
				t.Errorf("HTTP/2 %v, %s: net/http sends it", two, name)
				continue
			}
			b := new(books)
			o := transport.Options{Base: s.Client().Transport, Trace: b.trace()}
			o.Retry.MinBackoff, o.Retry.MaxBackoff = 1, 1
			_, _, err := finish(gate(t, o).RoundTrip(request()))
			if err == nil || err.Error() != want.Error() || b.answered != 1 {
				t.Errorf("HTTP/2 %v, %s: %d attempts, %v; without us: %v", two, name, b.answered, err, want)
			}
		}
		s.Close()
	}
}

// A net.Error answers as it does without us, also if we have wrapped it.
func TestNetErrorIsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slowly := rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		})
		broken := rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			return nil, os.ErrDeadlineExceeded // of a read, which is a net.Error
		})
		full := gate(t, transport.Options{Base: script("200"), Limits: slow(1, 1e6)})
		if _, _, err := finish(full.RoundTrip(ask(t, t.Context(), letter))); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name       string
			bare, ours http.RoundTripper
		}{
			{"tried again", broken, gate(t, transport.Options{Base: broken})},
			{"in line", slowly, full},
			{"on the wire", slowly, gate(t, transport.Options{Base: slowly})},
		} {
			var said [2]string
			for i, rt := range []http.RoundTripper{c.bare, c.ours} {
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				_, err := (&http.Client{Transport: rt}).Do(ask(t, ctx, letter))
				stop()
				var ne net.Error
				if !errors.As(err, &ne) {
					t.Fatalf("%s: %v is no net.Error", c.name, err)
				}
				inner, ok := errors.Unwrap(err).(net.Error)
				said[i] = fmt.Sprint(ne.Timeout(), ne.Temporary(), ok && inner.Timeout()) //lint:ignore SA1019 callers ask still
			}
			if said[0] != said[1] {
				t.Errorf("%s: %s without us, %s with", c.name, said[0], said[1])
			}
		}
	})
}
