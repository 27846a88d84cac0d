package retry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
)

// A script is a base that plays prepared answers, the last one for ever, and notes
// what reached it. Answers may be used by several calls.
type script struct {
	mu      sync.Mutex
	answers []answerFunc
	began   time.Time

	at     []time.Duration // when each attempt came, from the script's start
	bodies []string
	open   []*rttest.Body // the response bodies handed out
}

type answerFunc func(*http.Request) (*http.Response, error)

func play(answers ...answerFunc) *script { return &script{answers: answers, began: time.Now()} }

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body := string(rttest.Drain(r))
	s.mu.Lock()
	n := len(s.at)
	s.at = append(s.at, time.Since(s.began))
	s.bodies = append(s.bodies, body)
	a := s.answers[min(n, len(s.answers)-1)]
	s.mu.Unlock()
	resp, err := a(r)
	if resp != nil && resp.Body != nil {
		b := &rttest.Body{Reader: resp.Body}
		resp.Body = b
		s.mu.Lock()
		s.open = append(s.open, b)
		s.mu.Unlock()
	}
	return resp, err
}

func (s *script) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

// answer is a response with these header fields, given in pairs.
func answer(status int, body string, fields ...string) answerFunc {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(fields); i += 2 {
			h.Add(fields[i], fields[i+1])
		}
		return rttest.Response(r, status, h, body), nil
	}
}

func fail(err error) answerFunc {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// after answers d later, or fails with the context.
func after(d time.Duration, a answerFunc) answerFunc {
	return func(r *http.Request) (*http.Response, error) {
		select {
		case <-time.After(d):
			return a(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

var errReset = errors.New("read tcp: connection reset by peer")

const (
	chat     = `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hello"}]}`
	noCredit = `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}`
	tooFast  = `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`
)

func mustNew(t testing.TB, base http.RoundTripper, o Options) *Transport {
	t.Helper()
	rt, err := New(base, o)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func post(ctx context.Context, t testing.TB, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", "https://api.example.com/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

// result is what a caller has after a call.
type result struct {
	status  int
	body    string
	header  http.Header
	err     error
	elapsed time.Duration
}

// send makes one call and reads the answer to its end.
func send(t testing.TB, rt http.RoundTripper, req *http.Request) result {
	t.Helper()
	began := time.Now()
	resp, err := rt.RoundTrip(req)
	r := result{err: err, elapsed: time.Since(began)}
	if (resp == nil) == (err == nil) {
		t.Errorf("RoundTrip returned %v, %v", resp, err)
	}
	if resp != nil {
		r.status, r.header = resp.StatusCode, resp.Header
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Errorf("reading the answer: %v", err)
		}
		r.body = string(b)
		resp.Body.Close()
	}
	return r
}

// allClosed fails the test when a response that s gave is still open.
func (s *script) allClosed(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range s.open {
		if _, closes, late := b.Counts(); closes == 0 || late > 0 {
			t.Errorf("response %d: closed %d times, read %d times after", i+1, closes, late)
		}
	}
}

var discard = log.New(io.Discard, "", 0)

func get(t testing.TB, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func pack(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

func logTo(w io.Writer) *log.Logger { return log.New(w, "", 0) }

// paced is a body that comes in pieces, one every pace.
type paced struct {
	data   []byte
	piece  int
	pace   time.Duration
	closes int
}

func (b *paced) Read(p []byte) (int, error) {
	time.Sleep(b.pace)
	if len(b.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), b.piece)], b.data)
	b.data = b.data[n:]
	return n, nil
}

func (b *paced) Close() error { b.closes++; return nil }
