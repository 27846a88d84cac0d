package transport_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// strict is a body that belongs to one goroutine at a time. It notes reads that are
// under way when they must not be.
type strict struct {
	io.Reader
	pace time.Duration

	mu       sync.Mutex
	reading  bool
	closed   bool
	returned bool // RoundTrip has
	wrong    []string
}

func (b *strict) Read(p []byte) (int, error) {
	b.mu.Lock()
	switch {
	case b.closed:
		b.wrong = append(b.wrong, "a Read began after Close")
	case b.returned:
		b.wrong = append(b.wrong, "a Read began after RoundTrip had returned")
	}
	b.reading = true
	b.mu.Unlock()
	time.Sleep(b.pace)
	n, err := b.Reader.Read(p[:min(len(p), 1)])
	b.mu.Lock()
	b.reading = false
	if b.returned {
		b.wrong = append(b.wrong, "a Read was under way after RoundTrip had returned")
	}
	b.mu.Unlock()
	return n, err
}

func (b *strict) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reading {
		b.wrong = append(b.wrong, "a Read was under way at Close")
	}
	b.closed = true
	return nil
}

// The body is the caller's again: no Read begins after Close, and none is under way
// after RoundTrip has returned.
func TestTheBodyIsTheCallersAgain(t *testing.T) {
	for _, pace := range []time.Duration{time.Millisecond, 30 * time.Millisecond, 50 * time.Millisecond, 99 * time.Millisecond} {
		for name, o := range map[string]struct {
			o      transport.Options
			cancel time.Duration
		}{
			"cancelled while it is read":        {transport.Options{}, 10 * time.Millisecond},
			"cancelled in line":                 {transport.Options{RPM: 1}, time.Second},
			"refused at once":                   {transport.Options{RPM: 1, MaxWait: time.Millisecond}, time.Hour},
			"too large":                         {transport.Options{Limits: []limit.Limit{{Unit: limit.Requests, Rate: limit.PerMinute(1)}}, MaxQueue: 1, MaxWait: 1}, time.Hour},
			"cancelled before patience is over": {transport.Options{}, 95 * time.Millisecond},
		} {
			t.Run(fmt.Sprint(name, " ", pace), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o.o.Base = script("200")
					rt := gate(t, o.o)
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					b := &strict{Reader: strings.NewReader(strings.Repeat(" ", 10_000)), pace: pace}
					ctx, cancel := context.WithTimeout(t.Context(), o.cancel)
					defer cancel()
					req := ask(t, ctx, chat)
					req.Body, req.GetBody, req.ContentLength = b, nil, -1
					start := time.Now()
					_, _, err := finish(rt.RoundTrip(req))
					b.mu.Lock()
					b.returned = true
					b.mu.Unlock()
					if err == nil && o.cancel == time.Hour {
						t.Error("it was sent")
					}
					if d := time.Since(start); d > o.cancel+pace+200*time.Millisecond {
						t.Errorf("returned after %v", d)
					}
					time.Sleep(time.Minute)
					for _, w := range b.wrong {
						t.Error(w)
					}
				})
			})
		}
	}
}

// A Read that never returns does not hold its caller for ever.
func TestABodyThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := gate(t, transport.Options{Base: script("200")})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		stuck := make(chan struct{})
		req := ask(t, ctx, chat)
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(readerFunc(func([]byte) (int, error) { <-stuck; return 0, io.EOF })), nil, -1
		start := time.Now()
		if _, err := rt.RoundTrip(req); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("returned after %v", d)
		}
		close(stuck)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// The body's own error is the caller's, once, and is charged once at most.
func TestABodyThatFailsIsSentOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	own := errors.New("the disk is gone")
	for _, want := range []error{
		own, io.ErrUnexpectedEOF, io.ErrClosedPipe,
		// Those of a body that is itself an answer of another server look like failures of
		// our own connection.
		errReset, errDial, syscall.EPIPE, net.ErrClosed, os.ErrDeadlineExceeded, context.Canceled, context.DeadlineExceeded,
		http.ErrBodyReadAfterClose, io.ErrNoProgress, fmt.Errorf("cut: %w", io.EOF), &net.DNSError{Err: "no such host", IsNotFound: true},
		errors.New("http: server closed idle connection"), errors.New("http2: client connection lost"), errors.New("EOF"),
	} {
		for _, contentType := range []string{"application/octet-stream", "application/json"} {
			var opened atomic.Int32
			get := func() (io.ReadCloser, error) {
				opened.Add(1)
				return io.NopCloser(io.MultiReader(strings.NewReader("beginning"), broken{want})), nil
			}
			b := &books{}
			rt := gate(t, transport.Options{Limits: slow(100, 100_000), Trace: b.trace()})
			req := call(t, "POST", "", contentType, "")
			req.URL = ask(t, t.Context(), "").URL
			req.URL.Scheme, req.URL.Host = "http", strings.TrimPrefix(server.URL, "http://")
			req.Body, _ = get()
			req.GetBody, req.ContentLength = get, 100
			_, _, err := finish(rt.RoundTrip(req))
			if !errors.Is(err, want) || opened.Load() != 1 {
				t.Errorf("%s: %d bodies: %v", contentType, opened.Load(), err)
			}
			if b.answered > 1 {
				t.Errorf("%d attempts", b.answered)
			}
			b.closed(t, rt)
		}
	}
}

// What net/http refuses before it looks for a connection left nothing: all of it is
// returned, and it is not tried again.
func TestWhatNetHTTPRefusesIsReturned(t *testing.T) {
	for name, spoil := range map[string]func(*http.Request){
		"header value": func(r *http.Request) { r.Header["X"] = []string{"a\nb"} },
		"header name":  func(r *http.Request) { r.Header["a b"] = []string{"c"} },
		"scheme":       func(r *http.Request) { r.URL.Scheme = "gopher" },
		"method":       func(r *http.Request) { r.Method = "PO ST" },
		"no host":      func(r *http.Request) { r.URL.Host = "" },
		"nil header":   func(r *http.Request) { r.Header = nil },
		"no scheme":    func(r *http.Request) { r.URL.Scheme = "" },
		"a zero byte":  func(r *http.Request) { r.Header["X"] = []string{"a\x00b"} },
		"empty name":   func(r *http.Request) { r.Header[""] = []string{"c"} },
		"trailer name": func(r *http.Request) { r.Trailer = http.Header{"a b": {"1"}} },
	} {
		b := &books{}
		rt := gate(t, transport.Options{Limits: slow(100, 100_000), Trace: b.trace()})
		req := ask(t, t.Context(), chat)
		spoil(req)
		_, _, err := finish(rt.RoundTrip(req))
		if err == nil || b.answered != 1 {
			t.Errorf("%s: %d attempts: %v", name, b.answered, err)
		}
		if b.total != (limit.Cost{}) {
			t.Errorf("%s: %v was kept", name, b.total)
		}
		b.closed(t, rt)
	}
}

// A proxy in the environment that is no address is found before anything is sent.
func TestAProxyThatIsNoAddress(t *testing.T) {
	b := &books{}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.Proxy = func(*http.Request) (*url.URL, error) { // as golang.org/x/net/http/httpproxy words it
		return nil, errors.New(`invalid proxy address ":::bad": parse ":::bad": missing protocol scheme`)
	}
	rt := gate(t, transport.Options{Base: base, Limits: slow(100, 100_000), Trace: b.trace()})
	_, _, err := finish(rt.RoundTrip(ask(t, t.Context(), chat)))
	if err == nil || b.answered != 1 || b.total != (limit.Cost{}) {
		t.Errorf("%d attempts, %v was kept: %v", b.answered, b.total, err)
	}
	b.closed(t, rt)
}

// A body is priced by its text. Its type and its coding, in one line of the field or in
// several, do not hide it.
func TestABodyIsPricedByItsText(t *testing.T) {
	text := fmt.Sprintf(`{"model":"gpt-4o","max_tokens":1000,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("Tell me about token buckets. ", 400))
	plain, err := priced(t, transport.Options{}, call(t, "POST", "/v1/chat/completions", "application/json", text))
	if err != nil || plain.Output != 1000 {
		t.Fatal(plain, err)
	}
	gz := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	zl := func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
	br := func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }
	zs := func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }
	half := len(text) / 2
	for _, c := range []struct {
		typed, coding, bytes string // "|" parts the lines of coding
		memory               bool   // only if it is in memory: a stream may be an upload
	}{
		{"application/json", "gzip, br", pack(text, gz, br), false},
		{"application/json", "gzip|br", pack(text, gz, br), false},
		{"application/json", "identity|gzip", pack(text, gz), false},
		{"application/json", "deflate|identity|gzip", pack(text, zl, gz), false},
		{"application/json", " GZIP ,", pack(text, gz), false},
		{"application/json", "gzip", pack(text[:half], gz) + pack(text[half:], gz), false},
		{"application/json", "zstd", pack(text[:half], zs) + pack(text[half:], zs), false},
		{"application/json", "zstd", "\x50\x2a\x4d\x18\x04\x00\x00\x00abcd" + pack(text, zs), false},
		{"application/json", "utf-8", text, false},
		{"application/json", "none", text, false},
		{"application/json", "binary", text, false},
		{"application/json", "gzip", text, false},
		{"application/json", "br", text, false},
		{"application/json", "zstd", text, false},
		{"application/json", "", "\xef\xbb\xbf" + text, false},
		{"application/json", "", "\r\n\t " + text + "\n\n", false},
		{"Application/JSON; charset=UTF-8", "", text, false},
		{"", "", text, false},
		{"text/plain", "", text, false},
		{"application/x-json", "", text, false},
		{"application/x-www-form-urlencoded", "", text, false},
		{"application/x-www-form-urlencoded", "gzip", pack(text, gz), false},
		{"*/*", "", text, false},
		{"application/javascript", "", text, false},
		{"application/x-amz-json-1.1", "", text, false},
		{"application/octet-stream", "gzip", pack(text, gz), true},
		{"application/jsonlines", "", text, true},
		{"binary/octet-stream", "", " \n" + text, true},
	} {
		for _, how := range []string{"memory", "stream", "stream of known length"} {
			if c.memory && how != "memory" {
				continue
			}
			req := call(t, "POST", "/v1/chat/completions", c.typed, c.bytes)
			if c.coding != "" {
				req.Header["Content-Encoding"] = strings.Split(c.coding, "|")
			}
			if how != "memory" {
				req.Body, req.GetBody = io.NopCloser(hidden(c.bytes)), nil
			}
			if how == "stream" {
				req.ContentLength = -1
			}
			if cost, err := priced(t, transport.Options{}, req); err != nil || cost != plain {
				t.Errorf("%s, %q, %s: %v, %v; want %v", c.typed, c.coding, how, cost, err, plain)
			}
		}
	}
}

// An answer that the caller asked for packed is read by all lines of its field too.
func TestUsageOfAnAnswerPackedInSeveralLines(t *testing.T) {
	gz := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	for _, lines := range [][]string{{"gzip"}, {"identity", "gzip"}, {"gzip", "gzip"}, {"gzip, gzip"}} {
		synctest.Test(t, func(t *testing.T) {
			body := pack(`{"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`, gz)
			if strings.Count(strings.Join(lines, ""), "gzip") == 2 {
				body = pack(body, gz)
			}
			var got limit.Cost
			rt := gate(t, transport.Options{
				Trace: transport.Trace{Settled: func(s transport.Settlement) { got = s.Charged }},
				Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
					rttest.Drain(r)
					resp := response(r, 200, "application/json", body)
					resp.Header["Content-Encoding"] = lines
					return resp, nil
				}),
			})
			if _, b, err := finish(rt.RoundTrip(ask(t, t.Context(), chat))); err != nil || b != body {
				t.Errorf("%q: the body was changed: %v", lines, err)
			}
			if got != (limit.Cost{Requests: 1, Input: 11, Output: 7}) {
				t.Errorf("%q: charged %v", lines, got)
			}
		})
	}
}

// pack packs text with one writer after the other.
func pack(text string, writers ...func(io.Writer) io.WriteCloser) string {
	for _, w := range writers {
		var b bytes.Buffer
		z := w(&b)
		io.WriteString(z, text)
		z.Close()
		text = b.String()
	}
	return text
}

// produced is a body of n bytes that are made as they are read.
type produced struct{ left int }

func (p *produced) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := min(len(b), p.left)
	for i := range b[:n] {
		b[i] = ' '
	}
	p.left -= n
	return n, nil
}

// Ten thousand callers wait, each with a body of 3.9 MB. The bytes read ahead of
// all bodies together are bounded.
func TestTenThousandBodiesInLine(t *testing.T) {
	const callers, size = 10_000, 3_900_000
	old := debug.SetGCPercent(20)
	defer debug.SetGCPercent(old)
	for _, known := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			rt := gate(t, transport.Options{Base: script("200"), MaxInFlight: 1, RPM: 1})
			finish(rt.RoundTrip(ask(t, t.Context(), chat)))
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					req := ask(t, ctx, "")
					req.Body, req.GetBody, req.ContentLength = io.NopCloser(&produced{left: size}), nil, -1
					if known {
						req.ContentLength = size
					}
					if resp, err := rt.RoundTrip(req); err == nil {
						resp.Body.Close()
					}
				})
			}
			synctest.Wait()
			time.Sleep(time.Second)
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if waiting := rt.Snapshot().Waiting; waiting < callers-1 {
				t.Errorf("%d wait", waiting)
			}
			if m.HeapAlloc > 1<<30 {
				t.Errorf("%d MB for %d callers", m.HeapAlloc>>20, callers)
			}
			t.Logf("%d MB for %d callers, %d MB of them from the system", m.HeapAlloc>>20, callers, m.Sys>>20)
			cancel()
			all.Wait()
			if n := transport.ReadAhead(); n != 0 {
				t.Errorf("%d bytes are held after all have gone", n)
			}
		})
	}
}

// Memory of bodies that were read ahead comes back with the end of each call.
func TestReadAheadMemoryComesBack(t *testing.T) {
	for _, word := range []string{"200", "429", "500", "reset", "dial", "cut", "101", "unsendable"} {
		for _, size := range []int{0, 10, 5000, 100_000} {
			synctest.Test(t, func(t *testing.T) {
				rt := gate(t, transport.Options{Base: script(word)})
				for _, length := range []int64{-1, int64(size)} {
					req := ask(t, t.Context(), "")
					req.Body, req.GetBody, req.ContentLength = io.NopCloser(&produced{left: size}), nil, length
					finish(rt.RoundTrip(req))
				}
				time.Sleep(time.Minute)
				if n := transport.ReadAhead(); n != 0 {
					t.Errorf("%s, %d bytes: %d are held", word, size, n)
				}
			})
		}
	}
}

// A body that was read ahead is sent again whole, byte for byte.
func TestReadAheadBodiesAreSentAgainWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, size := range []int{1, 4095, 4096, 4097, 100_000, 1 << 20} {
			w := script("500 429 200")
			rt := gate(t, transport.Options{Base: w})
			text := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
			req := ask(t, t.Context(), "")
			req.Body, req.GetBody, req.ContentLength = io.NopCloser(struct{ io.Reader }{bytes.NewReader(text)}), nil, -1
			finish(rt.RoundTrip(req))
			if len(w.bodies) != 3 {
				t.Fatalf("%d attempts", len(w.bodies))
			}
			for i, b := range w.bodies {
				if b != string(text) {
					t.Errorf("%d bytes: attempt %d had %d", size, i+1, len(b))
				}
			}
		}
	})
}
