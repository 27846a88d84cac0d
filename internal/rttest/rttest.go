// Package rttest is the contract of an [http.RoundTripper] as a suite of tests,
// for the layers of this module that wrap one.
//
// A layer that passes [Run] treats a request and a response as its base does: nothing is altered, buffered, lost, leaked
// or followed. It does not look at what the layer is for (retries, limits): that
// is the layer's own test, and Run keeps to outcomes that no layer delays or
// repeats.
package rttest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// Run holds the layer made by wrap to the contract, first over bases in memory,
// then over net/http against real servers: HTTP/1.1, HTTP/1.1 over TLS, HTTP/2.
//
// wrap is called once or more per test and must not keep anything between calls.
func Run(t *testing.T, wrap func(base http.RoundTripper) http.RoundTripper) {
	t.Helper()
	for _, c := range stubCases {
		t.Run(c.name, func(t *testing.T) { c.run(t, wrap) })
	}
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			for _, c := range serverCases {
				if c.only == "" || c.only == p.name {
					t.Run(c.name, func(t *testing.T) { p.serve(t, wrap, c) })
				}
			}
		})
	}
	NoLeaks(t)
}

type wrapper = func(http.RoundTripper) http.RoundTripper

// A Func is a base in memory.
type Func func(*http.Request) (*http.Response, error)

func (f Func) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Drain reads and closes the body of r, as a base must.
func Drain(r *http.Request) []byte {
	if r.Body == nil {
		return nil
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return b
}

// Response is what net/http would make of these bytes.
func Response(r *http.Request, status int, h http.Header, body string) *http.Response {
	if h == nil {
		h = http.Header{}
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// A Body is a request or response body that knows what was done to it.
type Body struct {
	io.Reader

	mu     sync.Mutex
	reads  int
	closes int
	late   int // reads after Close
}

// NewBody returns a Body of these bytes.
func NewBody(s string) *Body { return &Body{Reader: strings.NewReader(s)} }

func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.reads++
	if b.closes > 0 {
		b.late++
	}
	b.mu.Unlock()
	return b.Reader.Read(p)
}

// Close counts, and closes the Reader if it can be closed.
func (b *Body) Close() error {
	b.mu.Lock()
	b.closes++
	b.mu.Unlock()
	if c, ok := b.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Counts returns how often the body was read, closed, and read after Close.
func (b *Body) Counts() (reads, closes, late int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads, b.closes, b.late
}

// patience is how long a thing may take that should take no time. It only ends a
// test that has failed.
const patience = 5 * time.Second

// within fails the test when f does not return.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: hangs", what)
	}
}

// NoLeaks fails the test when a goroutine of this module is still there. It looks
// again for a while, as a goroutine may be just about to end.
func NoLeaks(t *testing.T) {
	t.Helper()
	var left string
	for end := time.Now().Add(patience); time.Now().Before(end); runtime.Gosched() {
		if left = ours(); left == "" {
			return
		}
	}
	t.Errorf("goroutine left:\n%s", left)
}

// ours returns the stack of a goroutine that runs code of this module and is not a
// test's own.
func ours() string {
	buf := make([]byte, 1<<20)
	stacks := bytes.Split(buf[:runtime.Stack(buf, true)], []byte("\n\n"))
	for _, s := range stacks[1:] { // the first is this one
		text := string(s)
		if strings.Contains(text, "github.com/tripmeter/tripmeter/") && !strings.Contains(text, "testing.") {
			return text
		}
	}
	return ""
}

func newRequest(ctx context.Context, t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

const chat = `{"model":"gpt-4o-mini","max_tokens":16,"messages":[{"role":"user","content":"hello"}]}`
