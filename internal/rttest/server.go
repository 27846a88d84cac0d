package rttest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

// A protocol is a real server and the transport that talks to it.
type protocol struct {
	name     string
	tls, two bool
}

var protocols = []protocol{
	{name: "HTTP1"},
	{name: "HTTP1-TLS", tls: true},
	{name: "HTTP2", tls: true, two: true},
}

type serverCase struct {
	name    string
	only    string // a protocol's name; "" is every one
	handler http.HandlerFunc
	client  func(t *testing.T, rt http.RoundTripper, url string)
}

func (p protocol) serve(t *testing.T, wrap wrapper, c serverCase) {
	s := httptest.NewUnstartedServer(c.handler)
	s.Config.ErrorLog = nil
	s.EnableHTTP2 = p.two
	if p.tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	defer s.Close()
	base := s.Client().Transport.(*http.Transport)
	base.ExpectContinueTimeout = patience
	rt := wrap(base)
	within(t, c.name, func() { c.client(t, rt, s.URL) })
	if i, ok := rt.(interface{ CloseIdleConnections() }); ok {
		i.CloseIdleConnections()
	}
}

var serverCases = []serverCase{
	{
		name: "a body of known length",
		handler: func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.ContentLength, " ", r.TransferEncoding, " ")
			io.Copy(w, r.Body)
		},
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			big := strings.Repeat("x", 300<<10)
			got := do(t, rt, newRequest(t.Context(), t, "POST", url, strings.NewReader(big)))
			if want := fmt.Sprint(len(big), " [] ", big); got != want {
				t.Errorf("answer begins %.40q", got)
			}
		},
	},
	{
		name:    "a body of unknown length",
		handler: func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.ContentLength, " "); io.Copy(w, r.Body) },
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			got := do(t, rt, newRequest(t.Context(), t, "POST", url, NewBody("some")))
			if got != "-1 some" {
				t.Errorf("answer %q", got)
			}
		},
	},
	{
		name: "HEAD",
		handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1234")
		},
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			resp, err := rt.RoundTrip(newRequest(t.Context(), t, "HEAD", url, nil))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if b, err := io.ReadAll(resp.Body); len(b) != 0 || err != nil || resp.ContentLength != 1234 {
				t.Errorf("body %q, %v, length %d", b, err, resp.ContentLength)
			}
		},
	},
	{
		name: "redirects are not followed",
		handler: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/target" {
				w.WriteHeader(204)
				return
			}
			http.Redirect(w, r, "/target", http.StatusTemporaryRedirect)
		},
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			resp, err := rt.RoundTrip(newRequest(t.Context(), t, "POST", url, strings.NewReader(chat)))
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode != 307 {
				t.Errorf("status %d", resp.StatusCode)
			}
		},
	},
	{
		// The server sends an event only when the caller has read the one before.
		name: "a stream arrives as it is sent",
		handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for n := range 3 {
				fmt.Fprintf(w, "data: {\"n\":%d}\n\n", n)
				w.(http.Flusher).Flush()
				token(r.URL.Query().Get("id")).wait(r.Context())
			}
		},
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			tok := newToken()
			defer tok.drop()
			resp, err := rt.RoundTrip(newRequest(t.Context(), t, "POST", url+"?id="+tok.id(), strings.NewReader(chat)))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			for n := range 3 {
				if !lines.Scan() || lines.Text() != fmt.Sprintf(`data: {"n":%d}`, n) {
					t.Errorf("event %d: %q, %v", n, lines.Text(), lines.Err())
					return
				}
				lines.Scan()
				tok.give()
			}
			if lines.Scan() {
				t.Errorf("more than was sent: %q", lines.Text())
			}
		},
	},
	{
		name:    "gzip that net/http unpacks",
		handler: gzipped,
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			resp, err := rt.RoundTrip(newRequest(t.Context(), t, "GET", url, nil))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			b, _ := io.ReadAll(resp.Body)
			if string(b) != "plain text" || !resp.Uncompressed || resp.ContentLength != -1 || resp.Header.Get("Content-Encoding") != "" {
				t.Errorf("%q, uncompressed %v, length %d, %v", b, resp.Uncompressed, resp.ContentLength, resp.Header)
			}
		},
	},
	{
		name:    "gzip that the caller asked for",
		handler: gzipped,
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			req := newRequest(t.Context(), t, "GET", url, nil)
			req.Header.Set("Accept-Encoding", "gzip")
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			b, _ := io.ReadAll(resp.Body)
			if !bytes.Equal(b, packed) || resp.Uncompressed || resp.Header.Get("Content-Encoding") != "gzip" {
				t.Errorf("%q, uncompressed %v, %v", b, resp.Uncompressed, resp.Header)
			}
		},
	},
	{
		name: "trailers both ways",
		handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			io.Copy(w, r.Body)
			w.Header().Set("X-Sum", r.Trailer.Get("X-Sum")+" too")
		},
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			req := newRequest(t.Context(), t, "POST", url, NewBody("some"))
			req.Trailer = http.Header{"X-Sum": {"42"}}
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if string(b) != "some" || err != nil || resp.Trailer.Get("X-Sum") != "42 too" {
				t.Errorf("%q, %v, trailer %v", b, err, resp.Trailer)
			}
		},
	},
	{
		name:    "100-continue, refused: the body is not read",
		only:    "HTTP1",
		handler: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) },
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			b := NewBody(strings.Repeat("x", 1<<20))
			req := newRequest(t.Context(), t, "POST", url, b)
			req.ContentLength = 1 << 20
			req.Header.Set("Expect", "100-continue")
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if reads, _, _ := b.Counts(); reads != 0 || resp.StatusCode != 413 {
				t.Errorf("status %d after %d reads", resp.StatusCode, reads)
			}
		},
	},
	{
		name:    "100-continue, accepted",
		handler: func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) },
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			req := newRequest(t.Context(), t, "POST", url, strings.NewReader(chat))
			req.Header.Set("Expect", "100-continue")
			if got := do(t, rt, req); got != chat {
				t.Errorf("answer %q", got)
			}
		},
	},
	{
		name: "early hints",
		handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</a>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			io.WriteString(w, "ok")
		},
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			hints := 0
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil },
			})
			if got := do(t, rt, newRequest(ctx, t, "GET", url, nil)); got != "ok" || hints != 1 {
				t.Errorf("answer %q, %d hints", got, hints)
			}
		},
	},
	{
		name:    "connections are used again",
		handler: func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) },
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			dialled := 0
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				GotConn: func(i httptrace.GotConnInfo) {
					if !i.Reused {
						dialled++
					}
				},
			})
			for range 5 {
				do(t, rt, newRequest(ctx, t, "POST", url, strings.NewReader(chat)))
			}
			if dialled != 1 {
				t.Errorf("%d connections for 5 calls", dialled)
			}
		},
	},
	{
		name: "cancelled while the answer is read",
		handler: func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "first")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // or the end of the body might overtake the end of the connection
		},
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := rt.RoundTrip(newRequest(ctx, t, "POST", url, strings.NewReader(chat)))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			p := make([]byte, 5)
			io.ReadFull(resp.Body, p)
			cancel()
			if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
				t.Errorf("read %q, then %v", p, err)
			}
		},
	},
	{
		name: "closed before the end",
		handler: func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "first")
			w.(http.Flusher).Flush()
			<-r.Context().Done() // the close reaches the server
		},
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			resp, err := rt.RoundTrip(newRequest(t.Context(), t, "GET", url, nil))
			if err != nil {
				t.Error(err)
				return
			}
			p := make([]byte, 5)
			io.ReadFull(resp.Body, p)
			resp.Body.Close()
			if n, err := resp.Body.Read(p); n != 0 || err == nil {
				t.Errorf("after Close: %d, %v", n, err)
			}
		},
	},
	{
		name: "a client's timeout covers the body",
		handler: func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "first")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		},
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			client := http.Client{Transport: rt, Timeout: 300 * time.Millisecond}
			resp, err := client.Do(newRequest(t.Context(), t, "GET", url, nil))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			var ne net.Error
			if !errors.As(err, &ne) || !ne.Timeout() {
				t.Errorf("error %v is not a timeout", err)
			}
		},
	},
	{
		name: "101 Switching Protocols",
		only: "HTTP1",
		handler: func(w http.ResponseWriter, r *http.Request) {
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			io.WriteString(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			rw.Flush()
			line, _ := rw.ReadString('\n')
			io.WriteString(rw, "echo "+line)
			rw.Flush()
		},
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			req := newRequest(t.Context(), t, "GET", url, nil)
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "echo")
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			w, ok := resp.Body.(io.ReadWriteCloser)
			if !ok {
				t.Errorf("the body is a %T without Write", resp.Body)
				return
			}
			io.WriteString(w, "ping\n")
			if got, _ := io.ReadAll(w); string(got) != "echo ping\n" {
				t.Errorf("received %q", got)
			}
		},
	},
	{
		// The caller goes on sending while it reads the answer.
		name: "both ways at once",
		only: "HTTP2",
		handler: func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			lines := bufio.NewScanner(r.Body)
			for lines.Scan() {
				fmt.Fprintf(w, "echo %s\n", lines.Text())
				w.(http.Flusher).Flush()
			}
		},
		client: func(t *testing.T, rt http.RoundTripper, url string) {
			r, w := io.Pipe()
			resp, err := rt.RoundTrip(newRequest(t.Context(), t, "POST", url, r))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			for n := range 3 {
				fmt.Fprintf(w, "%d\n", n)
				if !lines.Scan() || lines.Text() != fmt.Sprintf("echo %d", n) {
					t.Errorf("line %d: %q, %v", n, lines.Text(), lines.Err())
					break
				}
			}
			w.Close()
			io.Copy(io.Discard, resp.Body)
		},
	},
}

// do sends req and returns the answer's body.
func do(t *testing.T, rt http.RoundTripper, req *http.Request) string {
	t.Helper()
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

var packed = func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, "plain text")
	z.Close()
	return b.Bytes()
}()

func gzipped(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		io.WriteString(w, "plain text, as gzip was not accepted")
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Write(packed)
}
