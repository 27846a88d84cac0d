package retry

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// Report: hashicorp/go-retryablehttp#201, hashicorp/go-retryablehttp#176
func TestCertificatesDoNotMend(t *testing.T) {
	handshakes := new(atomic.Int32)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = nil
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { handshakes.Add(1); return nil, nil }}
	server.Config.ErrorLog = discard
	server.StartTLS()
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	r := send(t, mustNew(t, base, Options{MinBackoff: time.Millisecond}), get(t, server.URL))
	if !errors.As(r.err, new(x509.UnknownAuthorityError)) || handshakes.Load() != 1 {
		t.Errorf("%v after %d handshakes", r.err, handshakes.Load())
	}

	synctest.Test(t, func(t *testing.T) {
		for _, err := range []error{
			x509.UnknownAuthorityError{}, x509.HostnameError{Certificate: &x509.Certificate{}},
			x509.CertificateInvalidError{Cert: &x509.Certificate{}}, x509.SystemRootsError{}, x509.ConstraintViolationError{},
			x509.UnhandledCriticalExtension{}, x509.InsecureAlgorithmError(1),
			&tls.CertificateVerificationError{Err: errors.New("pinned key differs")},
			tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
			&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")},
			&net.DNSError{Err: "no such host", Name: "api.example.invalid", IsNotFound: true},
			http.ErrSchemeMismatch,
		} {
			for _, err := range []error{err, fmt.Errorf("moved: %w", err)} {
				s := play(fail(err))
				if r := send(t, mustNew(t, s, Options{}), post(t.Context(), t, chat)); r.err != err || s.calls() != 1 {
					t.Errorf("%v: %d calls, %v", err, s.calls(), r.err)
				}
			}
		}
	})
}

// Report: newrelic/go-agent#153, pace/bricks#183
// Report: hashicorp/go-retryablehttp#89, hashicorp/go-retryablehttp#94
func TestParallelCallsOnAFreshTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(answer(503, ""), answer(503, ""), answer(503, ""), answer(200, ""))
		rt := mustNew(t, s, Options{Attempts: 5})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if r := send(t, rt, post(t.Context(), t, chat)); r.status != 200 {
					t.Errorf("%+v", r)
				}
			})
		}
		wg.Wait()
		s.allClosed(t)
	})
}

// failsafehttp opened 81 connections for this and left 248 goroutines.
// Report: hashicorp/go-retryablehttp#214
func TestRefusalsFreeTheConnection(t *testing.T) {
	var n atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%5 != 0 {
			w.WriteHeader(429)
			io.WriteString(w, tooFast)
			return
		}
		io.WriteString(w, "ok")
	}))
	defer server.Close()
	base := server.Client().Transport.(*http.Transport)
	rt := mustNew(t, base, Options{Attempts: 5, MinBackoff: 1, MaxBackoff: 1})
	dialled := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			dialled++
		}
	}})
	for range 20 {
		req, _ := http.NewRequestWithContext(ctx, "POST", server.URL, strings.NewReader(chat))
		if r := send(t, rt, req); r.status != 200 {
			t.Fatalf("%+v", r)
		}
	}
	if dialled != 1 {
		t.Errorf("%d connections", dialled)
	}
	rt.CloseIdleConnections()
	rttest.NoLeaks(t)
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
	for name, spoil := range rttest.Unsendable {
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
		tr := new(Tally)
		req, _ := http.NewRequestWithContext(WithTally(t.Context(), tr), "POST", server.URL, strings.NewReader(chat))
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
	tr := new(Tally)
	req, _ := http.NewRequestWithContext(WithTally(t.Context(), tr), "POST", "http://"+l.Addr().String()+"/?key=SECRET", strings.NewReader(chat))
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

// http.Client.Timeout above us ends a wait, and the error is a time-out.
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
