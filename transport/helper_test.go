package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// slow are limits that earn nothing while a test runs: the part of them that is
// missing was charged. Their windows are too long for a pause or a drain to empty
// them.
func slow(requests, tokens int64) []limit.Limit {
	r := limit.Rate{N: 1, Window: 700 * time.Hour}
	return []limit.Limit{
		{Name: "requests", Unit: limit.Requests, Rate: r, Burst: requests},
		{Name: "input", Unit: limit.Input, Rate: r, Burst: tokens},
		{Name: "output", Unit: limit.Output, Rate: r, Burst: tokens},
	}
}

// over is a budget over a ledger that was made by hand.
func over(t testing.TB, l limit.Ledger) *budget.Budget {
	t.Helper()
	b, err := budget.New(budget.Options{Ledger: l})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// whole is the state of a Transport as one scope, for tests with one account and
// one model: of the limits of one name in several scopes the lowest rate and the
// least credit, and the latest pause.
func whole(rt *transport.Transport) limit.Snapshot {
	snap := rt.Snapshot()
	all := snap
	all.Limits, all.Scopes = nil, nil
	for _, s := range append([]limit.Snapshot{snap}, snap.Scopes...) {
		for _, l := range s.Limits {
			i := slices.IndexFunc(all.Limits, func(o limit.LimitState) bool { return o.Name == l.Name })
			if i < 0 {
				all.Limits = append(all.Limits, l)
				continue
			}
			o := &all.Limits[i]
			least := l
			if balance(*o) < balance(l) {
				least = *o
			}
			if l.Rate.N < o.Rate.N {
				*o = l
			}
			o.Credit, o.Debt, o.Capacity = least.Credit, least.Debt, min(o.Capacity, l.Capacity)
		}
		if s.PausedUntil.After(all.PausedUntil) {
			all.PausedUntil, all.PausedBy, all.PausedWhy = s.PausedUntil, s.PausedBy, s.PausedWhy
		}
	}
	return all
}

// spent is what is missing from slow limits, of all accounts together.
func spent(rt *transport.Transport) (all limit.Cost) {
	accounts := map[string]limit.Cost{}
	snap := rt.Snapshot()
	for _, s := range append([]limit.Snapshot{snap}, snap.Scopes...) {
		account, _, _ := strings.Cut(s.Scope, "/")
		c := accounts[account]
		for _, l := range s.Limits {
			n := l.Capacity - l.Credit + l.Debt
			switch l.Name { // others have been learned from headers
			case "requests":
				c.Requests = max(c.Requests, n)
			case "input":
				c.Input = max(c.Input, n)
			case "output":
				c.Output = max(c.Output, n)
			}
		}
		accounts[account] = c
	}
	root := accounts[""]
	delete(accounts, "")
	for _, c := range accounts {
		all.Requests += c.Requests
		all.Input += c.Input
		all.Output += c.Output
	}
	return limit.Cost{
		Requests: max(all.Requests, root.Requests), Input: max(all.Input, root.Input), Output: max(all.Output, root.Output),
	}
}

// books collects what the hooks say of the ledger.
type books struct {
	mu       sync.Mutex
	granted  int
	answered int
	refused  int
	settled  []transport.Settlement
	total    limit.Cost
}

func (b *books) trace() transport.Trace {
	return transport.Trace{
		Granted:  func(*http.Request, limit.Cost, time.Duration) { b.count(&b.granted) },
		Refused:  func(*http.Request, error) { b.count(&b.refused) },
		Answered: func(transport.Attempt) { b.count(&b.answered) },
		Settled: func(s transport.Settlement) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.settled = append(b.settled, s)
			b.total.Requests += s.Charged.Requests
			b.total.Input += s.Charged.Input
			b.total.Output += s.Charged.Output
		},
	}
}

func (b *books) count(n *int) {
	b.mu.Lock()
	*n++
	b.mu.Unlock()
}

// balanced is closed, and the limiter is short of exactly what the settlements
// say.
func (b *books) balanced(t *testing.T, rt *transport.Transport) {
	t.Helper()
	b.closed(t, rt)
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := spent(rt); got != b.total {
		t.Errorf("the limiter is short of %v, the settlements say %v", got, b.total)
	}
}

// closed fails the test unless nothing is open and every grant was settled once.
func (b *books) closed(t *testing.T, rt *transport.Transport) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := whole(rt); s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("in flight %d, waiting %d", s.InFlight, s.Waiting)
	}
	if b.granted != len(b.settled) {
		t.Errorf("%d granted, %d settled", b.granted, len(b.settled))
	}
}

// A wire is a base in memory that answers by a script, one word an attempt. The
// last word goes on.
type wire struct {
	mu     sync.Mutex
	script []string
	bodies []string // as they arrived
	sizes  []int64  // their lengths, as declared
	at     []time.Time
	took   time.Duration // that long until the header
	usage  string        // the usage object of a "200"
}

var (
	errDial  = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

func script(words string) *wire {
	return &wire{script: strings.Fields(words), usage: `{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}`}
}

func (w *wire) next(r *http.Request) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	word := w.script[0]
	if len(w.script) > 1 {
		w.script = w.script[1:]
	}
	w.at = append(w.at, time.Now())
	w.sizes = append(w.sizes, r.ContentLength)
	if word != "dial" {
		w.bodies = append(w.bodies, string(rttest.Drain(r)))
	} else if r.Body != nil {
		r.Body.Close()
	}
	return word
}

func (w *wire) attempts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.at)
}

// RoundTrip answers by the next word:
//
//	dial      nobody listens
//	reset     the connection breaks after the body was read
//	unsendable  net/http refuses the request before it looks for a connection
//	hang      nothing comes until the context ends
//	200       a whole answer with usage
//	bare      a whole answer without usage
//	cut       a stream of three deltas that breaks off
//	long      the same, of 6000 bytes of text
//	usage-cut a stream in Anthropic's form, cut after its first usage
//	stall     a stream that stands still until it is closed or the context ends
//	panic     the base panics
//	101       an upgrade
//	NNN       that status with an error body, or one of these, and header fields:
//	          429;Retry-After=7;Body=quota
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	const sse, delta = "text/event-stream", `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"%s"}}]}` + "\n\n"
	word := w.next(r)
	if w.took > 0 {
		select {
		case <-time.After(w.took):
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	}
	switch word {
	case "dial":
		return nil, errDial
	case "reset":
		return nil, errReset
	case "unsendable":
		return nil, errors.New(`net/http: invalid header field value for "X"`)
	case "hang":
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	case "200", "bare":
		usage := w.usage
		if word == "bare" {
			usage = "null"
		}
		return response(r, 200, "application/json", `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":`+usage+`}`), nil
	case "cut", "long":
		text := "Hello"
		if word == "long" {
			text = strings.Repeat("Hello ", 333)
		}
		resp := response(r, 200, sse, strings.Repeat(fmt.Sprintf(delta, text), 3))
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(resp.Body, broken{errReset}), resp.Body}
		return resp, nil
	case "usage-cut":
		return response(r, 200, sse, "event: message_start\ndata: "+
			`{"type":"message_start","message":{"type":"message","role":"assistant","usage":{"input_tokens":11,"output_tokens":1}}}`+"\n\n"), nil
	case "stall":
		resp := response(r, 200, sse, "")
		resp.Body = newStalled(r.Context(), fmt.Sprintf(delta, "Hello"))
		return resp, nil
	case "panic":
		panic("the base")
	case "101":
		resp := response(r, 101, "", "")
		resp.Body = struct {
			io.ReadCloser
			io.Writer
		}{resp.Body, io.Discard}
		return resp, nil
	default:
		parts := strings.Split(word, ";")
		status, err := strconv.Atoi(parts[0])
		if err != nil {
			return nil, fmt.Errorf("script: %q is no word", word)
		}
		resp := response(r, status, "application/json", errorBodies["error"])
		for _, field := range parts[1:] {
			name, value, _ := strings.Cut(field, "=")
			if name == "Body" {
				resp.Body = io.NopCloser(strings.NewReader(errorBodies[value]))
				resp.ContentLength = int64(len(errorBodies[value]))
				continue
			}
			resp.Header.Set(name, value)
		}
		return resp, nil
	}
}

// errorBodies are error objects as providers send them.
var errorBodies = map[string]string{
	"error":    `{"error":{"message":"no","type":"server_error"}}`,
	"quota":    `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
	"gateway":  `{"statusCode":403,"message":"Quota exceeded. Try again later."}`,
	"large":    `{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40000.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
	"overload": `{"error":{"message":"Overloaded","type":"overloaded_error"}}`,
	"wait":     `{"error":{"message":"Rate limit reached. Please try again in 33s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
}

func response(r *http.Request, status int, contentType, body string) *http.Response {
	resp := rttest.Response(r, status, nil, body)
	if contentType != "" {
		resp.Header.Set("Content-Type", contentType)
	}
	return resp
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// stalled gives its text and then nothing until it is closed or ctx ends.
type stalled struct {
	ctx    context.Context
	text   io.Reader
	once   sync.Once
	closed chan struct{}
}

func newStalled(ctx context.Context, text string) *stalled {
	return &stalled{ctx: ctx, text: strings.NewReader(text), closed: make(chan struct{})}
}

func (s *stalled) Read(p []byte) (int, error) {
	if n, err := s.text.Read(p); err == nil {
		return n, nil
	}
	select {
	case <-s.closed:
		return 0, errors.New("read on closed body")
	case <-s.ctx.Done():
		return 0, context.Cause(s.ctx)
	}
}

func (s *stalled) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// ask makes a POST of a chat through rt.
func ask(t testing.TB, ctx context.Context, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", "https://api.example.com/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

// finish reads a response to its end and closes it.
func finish(resp *http.Response, err error) (status int, body string, e error) {
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// connections counts a caller's own hooks.
type connections struct{ asked, got int }

func (c *connections) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { c.asked++ },
		GotConn: func(httptrace.GotConnInfo) { c.got++ },
	})
}

var quiet = log.New(io.Discard, "", 0)

// bodies counts the bodies that are not closed.
type bodies struct {
	mu sync.Mutex
	n  int
}

func (b *bodies) open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n
}

func (b *bodies) body(rc io.ReadCloser) io.ReadCloser {
	b.mu.Lock()
	b.n++
	b.mu.Unlock()
	return &counted{ReadCloser: rc, b: b}
}

// watch counts the bodies of the responses of base.
func (b *bodies) watch(base http.RoundTripper) http.RoundTripper {
	return rttest.Func(func(r *http.Request) (*http.Response, error) {
		resp, err := base.RoundTrip(r)
		if err == nil {
			resp.Body = b.body(resp.Body)
		}
		return resp, err
	})
}

type counted struct {
	io.ReadCloser
	b    *bodies
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() {
		c.b.mu.Lock()
		c.b.n--
		c.b.mu.Unlock()
	})
	return c.ReadCloser.Close()
}

func box(t testing.TB, o providertest.Options) *providertest.Provider {
	t.Helper()
	p, err := providertest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func gate(t testing.TB, o transport.Options) *transport.Transport {
	t.Helper()
	rt, err := transport.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

const chat = `{"model":"gpt-4o","max_tokens":400,"messages":[{"role":"user","content":"Tell me about token buckets, at some length."}]}`

func post(c *http.Client, body string) (int, string, error) {
	resp, err := c.Post("http://box/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// reserving waits for a request and for all the tokens that a call could take.
type reserving struct {
	base             http.RoundTripper
	requests, tokens *rate.Limiter
	most             int
}

func (r reserving) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := r.requests.Wait(req.Context()); err != nil {
		return nil, err
	}
	if err := r.tokens.WaitN(req.Context(), r.most); err != nil {
		return nil, err
	}
	return r.base.RoundTrip(req)
}

// A reply is one answer of a scripted provider.
type reply struct {
	status int
	header map[string]string
	body   string
}

// ok is an answer without counts: its cost is its price.
const ok = `{"usage":{}}`

// quota is a good answer that says what is left of the tokens. An empty field
// is not sent.
func quota(limit, remaining, reset string) reply {
	r := reply{200, map[string]string{}, ok}
	for k, v := range map[string]string{"limit": limit, "remaining": remaining, "reset": reset} {
		if v != "" {
			r.header["x-ratelimit-"+k+"-tokens"] = v
		}
	}
	return r
}

// with adds fields, as name, value, name, value.
func (r reply) with(fields ...string) reply {
	h := map[string]string{}
	for k, v := range r.header {
		h[k] = v
	}
	for i := 0; i+1 < len(fields); i += 2 {
		h[fields[i]] = fields[i+1]
	}
	r.header = h
	return r
}

// scripted answers the first call with answer and all others with then (with
// answer too, if then is not set). If pick is set, it chooses the answers. It
// notes when each call came.
type scripted struct {
	answer, then reply
	pick         func(n int, req *http.Request) reply // n from 1
	delay        func(n int) time.Duration

	mu sync.Mutex
	at []time.Time
}

func (s *scripted) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		io.Copy(io.Discard, req.Body)
		req.Body.Close()
	}
	s.mu.Lock()
	s.at = append(s.at, time.Now())
	n := len(s.at)
	s.mu.Unlock()
	r := s.answer
	if n > 1 && s.then.status != 0 {
		r = s.then
	}
	if s.pick != nil {
		r = s.pick(n, req)
	}
	if s.delay != nil {
		time.Sleep(s.delay(n))
	}
	h := http.Header{"Content-Type": {"application/json"}}
	for k, v := range r.header {
		h.Set(k, v)
	}
	return &http.Response{
		StatusCode: r.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(r.body)), ContentLength: int64(len(r.body)), Request: req,
	}, nil
}

// gap is the time between the first two calls.
func (s *scripted) gap() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.at) < 2 {
		return -1
	}
	return s.at[1].Sub(s.at[0])
}
