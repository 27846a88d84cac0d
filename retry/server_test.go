package retry

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// Over real connections. The waits are nanoseconds.

var atOnce = Options{MinBackoff: 1, MaxBackoff: 1}

// A connection that breaks after the request was read, and one that is cut in the
// middle of the answer's header.
func TestBrokenConnections(t *testing.T) {
	for name, parting := range map[string]string{"reset": "", "half a header": "HTTP/1.1 200 OK\r\nContent-Le"} {
		var n atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			if string(b) != chat || r.ContentLength != int64(len(chat)) {
				t.Errorf("%s: received %q, length %d", name, b, r.ContentLength)
			}
			if n.Add(1) < 3 {
				conn, _, _ := w.(http.Hijacker).Hijack()
				io.WriteString(conn, parting)
				conn.(*net.TCPConn).SetLinger(0)
				conn.Close()
				return
			}
			io.WriteString(w, "ok")
		}))
		tr := new(Trace)
		req, _ := http.NewRequestWithContext(WithTrace(t.Context(), tr), "POST", server.URL, strings.NewReader(chat))
		rt := mustNew(t, server.Client().Transport, atOnce)
		if r := send(t, rt, req); r.body != "ok" || tr.Attempts() != 3 {
			t.Errorf("%s: %+v after %d attempts", name, r, tr.Attempts())
		}
		rt.CloseIdleConnections()
		server.Close()
	}
	rttest.NoLeaks(t)
}

// A port nobody listens on: the last error, and how often it was tried.
func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	tr := new(Trace)
	req, _ := http.NewRequestWithContext(WithTrace(t.Context(), tr), "POST", "http://"+l.Addr().String()+"/?key=SECRET", strings.NewReader(chat))
	r := send(t, mustNew(t, &http.Transport{}, atOnce), req)
	var op *net.OpError
	if !errors.As(r.err, &op) || op.Op != "dial" || tr.Attempts() != 3 || strings.Contains(r.err.Error(), "SECRET") {
		t.Errorf("%v after %d attempts", r.err, tr.Attempts())
	}
}

// A server that refuses before it has read the upload; the next attempt has all of
// it.
func TestEarlyRefusalOfALargeBody(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 1<<18) // 4 MB
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	for _, two := range []bool{false, true} {
		var n atomic.Int32
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) < 3 {
				w.Header().Set("Connection", "close") // over HTTP/2: GOAWAY
				w.WriteHeader(429)
				return
			}
			h := sha256.New()
			size, _ := io.Copy(h, r.Body)
			fmt.Fprintf(w, "%d %d %x", r.ContentLength, size, h.Sum(nil))
		}))
		server.EnableHTTP2 = two
		server.Config.ErrorLog = discard
		server.StartTLS()
		rt := mustNew(t, server.Client().Transport, Options{Attempts: 9, MinBackoff: 1, MaxBackoff: 1})
		req, _ := http.NewRequestWithContext(t.Context(), "POST", server.URL, strings.NewReader(text))
		if r := send(t, rt, req); r.body != fmt.Sprint(len(text), " ", len(text), " ", want) {
			t.Errorf("HTTP/2 %v: %d %.80q", two, r.status, r.body)
		}
		rt.CloseIdleConnections()
		server.Close()
	}
	rttest.NoLeaks(t)
}

// 64 callers, a server that refuses three of four, an Admit that refuses some:
// every attempt is one that was admitted, and every caller has a whole answer.
func TestCrowd(t *testing.T) {
	for _, two := range []bool{false, true} {
		var served, admitted, decided, refusedByUs, n atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served.Add(1)
			b, _ := io.ReadAll(r.Body)
			if served.Load()%4 != 0 {
				w.WriteHeader(429)
				io.WriteString(w, tooFast)
				return
			}
			w.Write(b)
		}))
		server.EnableHTTP2 = two
		server.Config.ErrorLog = discard
		server.StartTLS()
		o := atOnce
		o.Deciding = func(Event) { decided.Add(1) }
		o.Admit = func(context.Context, Event) error {
			if n.Add(1)%7 == 0 {
				refusedByUs.Add(1)
				return errors.New("full")
			}
			admitted.Add(1)
			return nil
		}
		base := server.Client().Transport.(*http.Transport)
		base.MaxIdleConnsPerHost = 64
		rt := mustNew(t, base, o)
		var wg sync.WaitGroup
		for g := range 64 {
			wg.Go(func() {
				for i := range 5 {
					body := fmt.Sprintf(`{"g":%d,"i":%d}`, g, i)
					req, _ := http.NewRequest("POST", server.URL, strings.NewReader(body))
					r := send(t, rt, req)
					if r.status == 200 && r.body != body || r.status == 429 && r.body != tooFast || r.err != nil {
						t.Errorf("%+v", r)
					}
				}
			})
		}
		wg.Wait()
		if served.Load() != 320+admitted.Load() || decided.Load() != admitted.Load()+refusedByUs.Load() || refusedByUs.Load() == 0 {
			t.Errorf("HTTP/2 %v: served %d, admitted %d, decided %d, refused %d", two, served.Load(), admitted.Load(), decided.Load(), refusedByUs.Load())
		}
		rt.CloseIdleConnections()
		server.Close()
	}
	rttest.NoLeaks(t)
}

// http.Client.Timeout above us ends a wait, and is told as a timeout.
func TestClientTimeout(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }))
	defer server.Close()
	blocked := make(chan struct{})
	rt := mustNew(t, server.Client().Transport, Options{MinBackoff: 1, MaxBackoff: 1,
		Admit: func(ctx context.Context, _ Event) error { close(blocked); <-ctx.Done(); return ctx.Err() }})
	client := http.Client{Transport: rt, Timeout: 200 * time.Millisecond}
	_, err := client.Post(server.URL, "application/json", strings.NewReader(chat))
	<-blocked
	// http.Client turns the error of a timeout into text; ours says what it knew.
	var ne net.Error
	if !errors.As(err, &ne) || !ne.Timeout() || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "last status 503") {
		t.Errorf("%v", err)
	}
	rt.CloseIdleConnections()
	rttest.NoLeaks(t)
}
