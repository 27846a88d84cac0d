package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// A server of net/http and a client of it inside a bubble, over pipes.
func piped(t *testing.T, h http.HandlerFunc) *http.Transport {
	t.Helper()
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	tr := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		s.Close()
	})
	return tr
}

type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// Ten events, a second apart, after a first byte at three seconds: each reaches
// the caller at the instant it was sent, with the transport as without it.
func TestEachChunkArrivesWhenItWasSent(t *testing.T) {
	for _, kind := range []string{"bare", "tripmeter"} {
		synctest.Test(t, func(t *testing.T) {
			base := piped(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				time.Sleep(3 * time.Second)
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush()
				for n := range 10 {
					fmt.Fprintf(w, "data: {\"n\":%d}\n\n", n)
					w.(http.Flusher).Flush()
					time.Sleep(time.Second)
				}
			})
			var rt http.RoundTripper = base
			if kind == "tripmeter" {
				rt = gate(t, transport.Options{Base: base, RPM: 600, TPM: 60000})
			}
			start := time.Now()
			req := ask(t, t.Context(), strings.Replace(letter, "{", `{"stream":true,`, 1))
			req.URL.Scheme = "http"
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); d != 3*time.Second {
				t.Errorf("%s: header after %v", kind, d)
			}
			p := make([]byte, 4<<10)
			for n := range 10 {
				k, err := resp.Body.Read(p)
				want := fmt.Sprintf("data: {\"n\":%d}\n\n", n)
				if d := time.Since(start); string(p[:k]) != want || err != nil || d != time.Duration(3+n)*time.Second {
					t.Errorf("%s: event %d: %q, %v, after %v", kind, n, p[:k], err, d)
				}
			}
			if k, err := resp.Body.Read(p); k != 0 || err != io.EOF {
				t.Errorf("%s: end: %d, %v", kind, k, err)
			}
			resp.Body.Close()
		})
	}
}

// 200 MB of events pass in constant memory, byte for byte in number.
func TestB085_LongStreamInConstantMemory(t *testing.T) {
	const total = 200 << 20
	event := `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("some words ", 90) + `"}}]}` + "\n\n"
	base := rttest.Func(func(r *http.Request) (*http.Response, error) {
		rttest.Drain(r)
		resp := response(r, 200, "text/event-stream", "")
		resp.Body = io.NopCloser(io.LimitReader(&repeating{text: event}, total))
		resp.ContentLength = -1
		return resp, nil
	})
	b := new(books)
	rt := gate(t, transport.Options{Base: base, Limits: slow(10, 1e12), Trace: b.trace()})
	resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p := make([]byte, 64<<10)
	n, peak := int64(0), uint64(0)
	for next := int64(0); ; {
		k, err := resp.Body.Read(p)
		n += int64(k)
		if n >= next {
			runtime.ReadMemStats(&now)
			peak, next = max(peak, now.HeapAlloc), next+20<<20
		}
		if err != nil {
			break
		}
	}
	runtime.ReadMemStats(&now)
	if n != total {
		t.Errorf("%d bytes", n)
	}
	if grown, made := int64(peak)-int64(before.HeapAlloc), now.TotalAlloc-before.TotalAlloc; grown > 1<<20 || made > 4<<20 {
		t.Errorf("the heap grew by %d bytes, %d were allocated", grown, made)
	}
	b.balanced(t, rt)
	if got := spent(rt).Output; got < total/8 {
		t.Errorf("charged %d tokens of output: less than was seen", got)
	}
}

// repeating is its text without end.
type repeating struct {
	text string
	off  int
}

func (r *repeating) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.off:])
	r.off = (r.off + n) % len(r.text)
	return n, nil
}

// The place in flight comes back when the context ends, though nobody reads or
// closes the body.
func TestSlotComesBackWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := gate(t, transport.Options{Base: script("stall stall"), MaxInFlight: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := rt.RoundTrip(ask(t, ctx, letter)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("the second call left after %v", d)
		}
		resp.Body.Close()
	})
}

// It comes back, and so does the connection, when the response is forgotten
// altogether and the context never ends: over net/http, which holds on to its
// own response while the body is open.
func TestSlotComesBackWithTheCollector(t *testing.T) {
	for _, two := range []bool{false, true} {
		gone := make(chan struct{}, 10)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "data: x\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			gone <- struct{}{}
			panic(http.ErrAbortHandler)
		}))
		s.EnableHTTP2 = two
		s.StartTLS()
		b := new(books)
		rt := gate(t, transport.Options{Base: s.Client().Transport, Limits: slow(10, 1e6), MaxInFlight: 10, Trace: b.trace()})
		for n := range 3 {
			func() {
				req := ask(t, context.Background(), letter)
				req.URL.Host = s.Listener.Addr().String()
				resp, err := rt.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				if n == 1 {
					resp.Body.Read(make([]byte, 4))
				}
			}()
		}
		if n := rt.Snapshot().InFlight; n != 3 {
			t.Errorf("%d in flight", n)
		}
		eventually(t, "the places come back", func() bool { runtime.GC(); return rt.Snapshot().InFlight == 0 })
		for range 3 {
			<-gone // the server was told
		}
		b.balanced(t, rt)
		if got := spent(rt); got.Requests != 3 || got.Output != 300 {
			t.Errorf("HTTP/2 %v: charged %v", two, got)
		}
		rt.CloseIdleConnections()
		s.Close()
	}
	rttest.NoLeaks(t)
}

// A 101 leaves a connection that can be written to, for as long as it lasts.
func TestUpgradeStaysOpenBothWays(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		rw.Flush()
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(rw, "echo "+line)
			rw.Flush()
		}
	}))
	defer s.Close()
	b := new(books)
	rt := gate(t, transport.Options{Base: s.Client().Transport, Limits: slow(10, 1e6), MaxInFlight: 1, Trace: b.trace()})
	req, _ := http.NewRequest("GET", s.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatalf("the body is a %T", resp.Body)
	}
	lines := bufio.NewScanner(conn)
	for n := range 5 {
		fmt.Fprintf(conn, "%d\n", n)
		if !lines.Scan() || lines.Text() != fmt.Sprintf("echo %d", n) {
			t.Fatalf("line %d: %q, %v", n, lines.Text(), lines.Err())
		}
		if s := whole(rt); s.InFlight != 1 {
			t.Errorf("%d in flight while it is open", s.InFlight)
		}
	}
	conn.Close()
	b.balanced(t, rt)
	if got := spent(rt); got != (limit.Cost{Requests: 1}) {
		t.Errorf("charged %v", got)
	}
}

// One side of an upgraded connection can be closed alone, as it can without us,
// and through a proxy. What comes after that still arrives.
func TestUpgradeIsHalfClosed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: count\r\n\r\n")
		rw.Flush()
		n, _ := io.Copy(io.Discard, rw)
		fmt.Fprintf(conn, "%d bytes", n)
	}))
	defer s.Close()
	rt := gate(t, transport.Options{Base: s.Client().Transport, Limits: slow(10, 1e6), MaxInFlight: 1})
	req, _ := http.NewRequest("GET", s.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "count")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	conn, ok := resp.Body.(interface {
		io.Writer
		CloseWrite() error
	})
	if !ok {
		t.Fatalf("the body is a %T without Write or CloseWrite", resp.Body)
	}
	io.WriteString(conn, "hello")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(resp.Body); string(got) != "5 bytes" || err != nil {
		t.Errorf("received %q, %v", got, err)
	}
	if s := whole(rt); s.InFlight != 0 {
		t.Errorf("%d in flight", s.InFlight)
	}
}

// A connection that is being written to is not garbage, though nobody will look
// at the response again.
func TestUpgradeIsKeptWhileItIsWritten(t *testing.T) {
	b := &writable{closed: make(chan struct{})}
	rt := gate(t, transport.Options{Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
		resp := response(r, 101, "", "")
		resp.Body = b
		return resp, nil
	})})
	resp, err := rt.RoundTrip(ask(t, t.Context(), ""))
	if err != nil {
		t.Fatal(err)
	}
	w := resp.Body.(io.Writer)
	resp = nil
	if _, err := io.WriteString(w, "long"); err != nil {
		t.Error(err)
	}
}

// writable is a connection whose Write lasts for some rounds of the collector.
type writable struct{ closed chan struct{} }

func (b *writable) Read([]byte) (int, error) { return 0, io.EOF }
func (b *writable) Close() error             { close(b.closed); return nil }
func (b *writable) Write(p []byte) (int, error) {
	for range 20 {
		runtime.GC()
		runtime.Gosched()
		select {
		case <-b.closed:
			return 0, net.ErrClosed
		default:
		}
	}
	return len(p), nil
}

// A trailer that was not announced is the caller's, too.
func TestUnannouncedTrailer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "text")
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"X-Late", "42")
	}))
	defer s.Close()
	rt := gate(t, transport.Options{Base: s.Client().Transport})
	req, _ := http.NewRequest("GET", s.URL, nil)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.Trailer.Get("X-Late") != "42" {
		t.Errorf("trailer %v", resp.Trailer)
	}
}

// The caller's own connection hooks are called once an attempt, however many
// attempts there are.
func TestCallersHooksAreCalledOnce(t *testing.T) {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n < 3 {
			w.WriteHeader(500)
		}
	}))
	defer s.Close()
	o := transport.Options{Base: s.Client().Transport}
	o.Retry.MinBackoff, o.Retry.MaxBackoff = 1, 1
	rt := gate(t, o)
	var c connections
	req, _ := http.NewRequestWithContext(c.watch(t.Context()), "GET", s.URL, nil)
	if status, _, err := finish(rt.RoundTrip(req)); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	if c.got != 3 || c.asked != 3 {
		t.Errorf("GotConn %d times, GetConn %d times, for 3 attempts", c.got, c.asked)
	}
}

// A body that panics while it is read ahead panics on the caller's goroutine,
// as it would have without us, and nothing is held.
func TestPanickingRequestBody(t *testing.T) {
	b := new(books)
	rt := gate(t, transport.Options{Base: script("200"), Limits: slow(10, 1e6), Trace: b.trace()})
	req := ask(t, t.Context(), "")
	req.GetBody, req.ContentLength = nil, -1
	req.Body = io.NopCloser(panicking{})
	func() {
		defer func() {
			if recover() != errFire {
				t.Error("the panic did not come out")
			}
		}()
		rt.RoundTrip(req)
	}()
	b.balanced(t, rt)
	if got := spent(rt); got != (limit.Cost{}) {
		t.Errorf("charged %v", got)
	}
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic(errFire) }

// A body that is written only in answer to what comes back is not waited for.
func TestBodyWrittenWhileItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pr, pw := io.Pipe()
		base := rttest.Func(func(r *http.Request) (*http.Response, error) {
			first := make([]byte, 5)
			io.ReadFull(r.Body, first)
			go func() { io.WriteString(pw, " second"); pw.Close() }()
			rest, err := io.ReadAll(r.Body)
			r.Body.Close()
			return response(r, 200, "text/plain", string(first)+string(rest)), err
		})
		rt := gate(t, transport.Options{Base: base})
		req := ask(t, t.Context(), "")
		req.Body, req.GetBody, req.ContentLength = pr, nil, -1
		go io.WriteString(pw, "first")
		start := time.Now()
		if _, got, err := finish(rt.RoundTrip(req)); got != "first second" || err != nil {
			t.Errorf("the server read %q, %v", got, err)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("held back for %v", d)
		}
	})
}

// A body that can be read once and is whole is priced by its text, and can be sent
// again.
func TestOneShotBodyIsPricedAndSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, "500 200")
		d.o.Scopes.Budget = over(t, d.limiter)
		d.rt = gate(t, d.o)
		req := ask(t, t.Context(), letter)
		body := rttest.NewBody(letter)
		req.Body, req.GetBody = body, nil
		if status, _, err := finish(d.rt.RoundTrip(req)); status != 200 || err != nil {
			t.Fatal(status, err)
		}
		if got := spent(d.rt); got.Output != 107 {
			t.Errorf("charged %v", got)
		}
		if len(d.wire.bodies) != 2 || d.wire.bodies[1] != letter {
			t.Errorf("sent %q", d.wire.bodies)
		}
		if _, closes, late := body.Counts(); closes == 0 || late != 0 {
			t.Errorf("closed %d times, read %d times after", closes, late)
		}
	})
}

// An error of the body is the caller's to see, and costs nothing.
func TestBrokenRequestBody(t *testing.T) {
	b := new(books)
	rt := gate(t, transport.Options{Base: script("200"), Limits: slow(10, 1e6), Trace: b.trace()})
	bad := errors.New("the disk is gone")
	body := rttest.NewBody("")
	body.Reader = io.MultiReader(strings.NewReader("{"), broken{bad})
	req := ask(t, t.Context(), "")
	req.Body, req.GetBody, req.ContentLength = body, nil, -1
	if _, err := rt.RoundTrip(req); !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
	if _, closes, _ := body.Counts(); closes == 0 {
		t.Error("the body is open")
	}
	b.balanced(t, rt)
}

// A GetBody that winds the body itself back is not called before the body was sent:
// it would take its bytes. azcore's does so, and that of openai-go and
// anthropic-sdk-go for a bytes.Reader.
func TestGetBodyThatSharesTheBody(t *testing.T) {
	for _, c := range []struct {
		name string
		wrap func(*bytes.Reader) io.ReadCloser
	}{
		{"openai-go", func(r *bytes.Reader) io.ReadCloser { return io.NopCloser(r) }},
		{"azcore", func(r *bytes.Reader) io.ReadCloser { return struct{ io.ReadSeekCloser }{seekCloser{r}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, "500 200")
				d.o.Scopes.Budget = over(t, d.limiter)
				d.rt = gate(t, d.o)
				shared, calls := bytes.NewReader([]byte(letter)), 0
				req := ask(t, t.Context(), letter)
				req.Body = c.wrap(shared)
				req.GetBody = func() (io.ReadCloser, error) {
					calls++
					_, err := shared.Seek(0, io.SeekStart)
					return c.wrap(shared), err
				}
				if status, _, err := finish(d.rt.RoundTrip(req)); status != 200 || err != nil {
					t.Fatal(status, err)
				}
				if len(d.wire.bodies) != 2 || d.wire.bodies[0] != letter || d.wire.bodies[1] != letter {
					t.Errorf("sent %q", d.wire.bodies)
				}
				if got := spent(d.rt); got.Output != 107 {
					t.Errorf("charged %v", got)
				}
				if calls > 1 {
					t.Errorf("GetBody called %d times for one further attempt", calls)
				}
			})
		})
	}
}

type seekCloser struct{ *bytes.Reader }

func (seekCloser) Close() error { return nil }

// A refusal whose body panics is like any other if it is tried again. If it is
// handed over, it panics on the goroutine that reads it, as it would without us,
// and not on one that cannot recover.
func TestPanickingRefusal(t *testing.T) {
	const quota = `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`
	for _, said := range []string{"", quota} {
		synctest.Test(t, func(t *testing.T) {
			b, n := new(books), 0
			rt := gate(t, transport.Options{Limits: slow(10, 1e6), Trace: b.trace(), Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
				rttest.Drain(r)
				if n++; n > 1 {
					return response(r, 200, "text/plain", "fine"), nil
				}
				resp := response(r, 429, "application/json", "")
				resp.ContentLength = -1
				resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(said), panicking{}))
				return resp, nil
			})})
			resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
			if err != nil {
				t.Fatal(err)
			}
			p := make([]byte, len(quota))
			got, _ := resp.Body.Read(p)
			if said == "" {
				if string(p[:got]) != "fine" {
					t.Errorf("status %d, body %q", resp.StatusCode, p[:got])
				}
			} else {
				if string(p[:got]) != quota {
					t.Errorf("status %d, body %q", resp.StatusCode, p[:got])
				}
				func() {
					defer func() {
						if recover() != errFire {
							t.Error("the panic did not come out")
						}
					}()
					resp.Body.Read(p)
				}()
			}
			resp.Body.Close()
			b.closed(t, rt)
		})
	}
}

// The deprecated Cancel channel ends the second wait in line as it ends the first.
func TestCancelChannelInLineForARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(books)
		rt := gate(t, transport.Options{Base: script("429;Retry-After=1 200"), Limits: slow(1, 1e6), Trace: b.trace()})
		req := ask(t, t.Context(), letter)
		leave := make(chan struct{})
		req.Cancel = leave //lint:ignore SA1019 it still has to work
		time.AfterFunc(10*time.Second, func() { close(leave) })
		start := time.Now()
		resp, err := rt.RoundTrip(req)
		if resp != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("response %v, error %v", resp, err)
		}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("left the line after %v", d)
		}
		b.balanced(t, rt)
	})
}

// net/http sets a trailer that was not announced when the body ends, which may
// be while a refusal is handed over. Run it with -race.
func TestTrailerOfARefusalThatTrickles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := gate(t, transport.Options{Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			resp := response(r, 429, "application/json", "")
			resp.ContentLength = -1
			resp.Body = io.NopCloser(io.MultiReader(
				strings.NewReader(`{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`),
				&ending{resp}))
			return resp, nil
		})})
		resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Trailer.Get("X-Late") != "42" {
			t.Errorf("trailer %v, %v", resp.Trailer, err)
		}
	})
}

// ending is the end of a body that takes its time, as net/http's.
type ending struct{ resp *http.Response }

func (e *ending) Read([]byte) (int, error) {
	time.Sleep(10 * time.Second)
	e.resp.Trailer = http.Header{"X-Late": {"42"}}
	return 0, io.EOF
}

// A body may fill the trailer when it has been read. That is not while net/http
// looks at the trailer's names. Run it with -race.
func TestTrailerFilledByTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := gate(t, transport.Options{Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
			names := len(r.Trailer)
			for range r.Trailer {
				names--
			}
			rttest.Drain(r)
			return response(r, 200, "text/plain", fmt.Sprint(names, r.Trailer)), nil
		})})
		req := ask(t, t.Context(), "")
		req.Trailer = http.Header{"X-Sum": nil}
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(letter), filling{req.Trailer})), nil, -1
		if _, got, err := finish(rt.RoundTrip(req)); got != "0 map[X-Sum:[42]]" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// filling is the end of a body that takes its time and then fills a trailer.
type filling struct{ trailer http.Header }

func (f filling) Read([]byte) (int, error) {
	time.Sleep(time.Second)
	f.trailer["X-Sum"] = []string{"42"}
	return 0, io.EOF
}

// The decision is made from the response: nothing in the request says that a
// stream comes.
// Report: yusing/godoxy#206, Treblle/treblle-net-core#50
func TestAStreamThatWasNotAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pr, pw := io.Pipe()
		base := rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			resp := response(r, 200, "text/event-stream", "")
			resp.Body, resp.ContentLength = pr, -1
			go func() {
				for n := range 5 {
					time.Sleep(time.Second)
					fmt.Fprintf(pw, "data: %d\n\n", n)
				}
				pw.Close()
			}()
			return resp, nil
		})
		rt := gate(t, transport.Options{Base: base})
		start := time.Now()
		req := ask(t, t.Context(), letter)
		req.Header.Set("Accept", "*/*")
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		p := make([]byte, 100)
		if n, err := resp.Body.Read(p); string(p[:n]) != "data: 0\n\n" || err != nil || time.Since(start) != time.Second {
			t.Errorf("%q, %v after %v", p[:n], err, time.Since(start))
		}
		io.Copy(io.Discard, resp.Body)
	})
}

// None of our times is about the body.
// Report: openai/openai-go#132, PullRequestInc/go-gpt3#24
func TestNoTimeOfOursCutsAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			resp := response(r, 200, "text/event-stream", "")
			pr, pw := io.Pipe()
			go func() {
				for range 60 {
					time.Sleep(time.Second)
					io.WriteString(pw, "data: x\n\n")
				}
				pw.Close()
			}()
			resp.Body = pr
			return resp, nil
		})
		rt := gate(t, transport.Options{Base: base, MaxWait: 2 * time.Second, Retry: retry.Options{MaxRetryAfter: time.Second, MaxElapsed: 3 * time.Second}})
		start := time.Now()
		_, text, err := finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		if len(text) != 60*9 || err != nil || time.Since(start) != time.Minute {
			t.Errorf("%d bytes, %v after %v", len(text), err, time.Since(start))
		}
	})
}
