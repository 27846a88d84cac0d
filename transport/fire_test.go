package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

var (
	lives    = flag.Int("lives", 4000, "calls that TestFire makes")
	fireSeed = flag.Uint64("fireseed", 0, "seed of TestFire; 0 is a new one")
)

// Settlement under fire: a whole stack over loopback, with net/http at both ends.
// Connections are cut after any byte in either direction, calls are refused, fail
// or are cancelled at any instant, and streams stop. Bodies are closed early or
// twice, forgotten, or read by code that panics.
// In the end these must hold:
//
//   - nothing is in flight, and no goroutine or connection is left
//
//   - the ledger is short of exactly the sum of the settlements
//
//   - every grant was settled once
//
//   - the server saw no request that was not charged
//
//   - whole answers were charged to the token
//
//     go test ./transport -run TestFire -lives 100000
func TestFire(t *testing.T) {
	seed := *fireSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-fireseed %d", seed)
	for _, two := range []bool{false, true} {
		n := *lives
		if two {
			n /= 8 // a TLS handshake for each connection that was cut
		}
		name := map[bool]string{false: "HTTP1", true: "HTTP2"}[two]
		t.Run(name, func(t *testing.T) { newFire(t, seed, two).burn(t, n) })
	}
}

type fire struct {
	seed   uint64
	two    bool
	server *httptest.Server
	faults *faultyListener
	base   *http.Transport
	rt     *transport.Transport
	books

	conns   atomic.Int64 // open at the server
	arrived sync.Map     // life -> *atomic.Int64: requests that reached the handler
	settles sync.Map     // life -> transport.Settlement
	kinds   [8]atomic.Int64
}

func newFire(t *testing.T, seed uint64, two bool) *fire {
	f := &fire{seed: seed, two: two}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	f.faults = &faultyListener{Listener: f.server.Listener, r: rand.New(rand.NewPCG(seed, 1))}
	f.server.Listener = f.faults
	f.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			f.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			f.conns.Add(-1)
		}
	}
	f.server.EnableHTTP2 = two
	if two {
		f.server.StartTLS()
	} else {
		f.server.Start()
	}
	f.base = f.server.Client().Transport.(*http.Transport)
	f.base.MaxIdleConnsPerHost = 64

	trace := f.trace()
	settled := trace.Settled
	trace.Settled = func(s transport.Settlement) {
		settled(s)
		if _, twice := f.settles.LoadOrStore(s.Request.Header.Get("X-Life"), s); twice {
			t.Errorf("life %s was settled twice", s.Request.Header.Get("X-Life"))
		}
	}
	f.rt = gate(t, transport.Options{
		Base: panicky{f.base}, Limits: slow(1e9, 1e11), MaxInFlight: 16, Attempts: 3, Trace: trace,
		Retry: retry.Options{MinBackoff: time.Microsecond, MaxBackoff: 200 * time.Microsecond},
	})
	return f
}

func (f *fire) burn(t *testing.T, n int) {
	before := runtime.NumGoroutine()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(n) {
					return
				}
				f.live(t, strconv.FormatInt(i, 10), rand.New(rand.NewPCG(f.seed, uint64(i))))
			}
		})
	}
	// Forgotten bodies come back by the collector, and it must not wait for
	// memory to run short while the line waits for their places.
	stop := make(chan struct{})
	var collector sync.WaitGroup
	collector.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-tick.C:
				runtime.GC()
			case <-stop:
				tick.Stop()
				return
			}
		}
	})
	wg.Wait()
	close(stop)
	collector.Wait()
	eventually(t, "the forgotten come back", func() bool {
		runtime.GC()
		s := whole(f.rt)
		return s.InFlight == 0
	})
	f.balanced(t, f.rt)
	f.rt.CloseIdleConnections()
	eventually(t, "connections end", func() bool { f.rt.CloseIdleConnections(); return f.conns.Load() == 0 })
	f.server.Close()
	f.faults.Close()
	rttest.NoLeaks(t)
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })

	requests := int64(0)
	f.arrived.Range(func(life, n any) bool {
		got := n.(*atomic.Int64).Load()
		requests += got
		v, ok := f.settles.Load(life)
		if !ok {
			t.Errorf("life %s reached the server and was never settled", life)
			return true
		}
		if s := v.(transport.Settlement); got > s.Charged.Requests || s.Charged.Requests > int64(s.Attempts) {
			t.Errorf("life %s: the server saw %d requests, %d were charged, %d attempts", life, got, s.Charged.Requests, s.Attempts)
		}
		return true
	})
	t.Logf("%d lives, %d granted, %d attempts, %d reached the server, %d connections; lives: %s",
		n, f.granted, f.answered, requests, f.faults.accepted.Load(), f.count8())
	for i := range f.kinds {
		if f.kinds[i].Load() == 0 && n >= 1000 {
			t.Errorf("no life was of kind %q", kindNames[i])
		}
	}
}

var kindNames = [8]string{"read whole", "closed early", "closed twice", "cancelled", "forgotten", "panicking reader", "refused here", "failed"}

func (f *fire) count8() string {
	var b strings.Builder
	for i := range f.kinds {
		fmt.Fprintf(&b, "%s %d, ", kindNames[i], f.kinds[i].Load())
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// live makes one call and ends it in one of many ways.
func (f *fire) live(t *testing.T, life string, r *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	forget := r.IntN(40) == 0
	if !forget {
		defer cancel()
	} else {
		ctx, cancel = context.Background(), func() {} // nothing but the collector ends it
	}
	if !forget && r.IntN(3) == 0 {
		d := time.Duration(r.Int64N(int64(2 * time.Millisecond)))
		if r.IntN(20) == 0 {
			d = 0
		}
		if r.IntN(2) == 0 {
			ctx, cancel = context.WithTimeout(ctx, d)
			defer cancel()
		} else {
			defer time.AfterFunc(d, cancel).Stop()
		}
	}
	prompt := strings.Repeat("word ", r.IntN(300))
	most := 1 + r.IntN(500)
	if r.IntN(50) == 0 {
		most = 1e12 // more than the limit admits
	}
	payload := fmt.Sprintf(`{"model":"m","max_tokens":%d,"stream":%v,"messages":[{"role":"user","content":"%s"}]}`, most, r.IntN(2) == 0, prompt)
	var in io.Reader = strings.NewReader(payload)
	switch r.IntN(6) {
	case 0: // can be read once
		in = io.MultiReader(in)
	case 1: // written while it is read
		pr, pw := io.Pipe()
		go func() { io.WriteString(pw, payload); pw.Close() }()
		in = pr
	}
	req, err := http.NewRequestWithContext(ctx, "POST", f.server.URL+"/v1/chat/completions", in)
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Life", life)
	if r.IntN(30) == 0 {
		req.Header.Set("X-Panic", "1")
	}
	if r.IntN(8) == 0 {
		req.Header.Set("Accept-Encoding", "gzip") // as it came, not unpacked
	}
	if r.IntN(50) == 0 {
		req.Header.Set("Expect", "100-continue")
	}
	if r.IntN(20) == 0 {
		req = req.WithContext(retry.WithAttempts(req.Context(), 1+r.IntN(4)))
	}
	kind := f.consume(t, ctx, req, r, forget)
	f.kinds[kind].Add(1)
}

// consume sends req and treats its answer in one of many ways.
func (f *fire) consume(t *testing.T, ctx context.Context, req *http.Request, r *rand.Rand, forget bool) (kind int) {
	defer func() {
		if p := recover(); p != nil {
			if p != errFire {
				panic(p)
			}
			kind = 5
		}
	}()
	resp, err := f.rt.RoundTrip(req)
	if err != nil {
		if resp != nil {
			t.Error("a response and an error")
		}
		var here *transport.Error
		switch {
		case ctx.Err() != nil:
			return 3
		case errors.As(err, &here):
			return 6
		}
		return 7
	}
	how := r.IntN(6)
	switch {
	case forget:
		var p [1]byte
		if r.IntN(2) == 0 {
			resp.Body.Read(p[:])
		}
		return 4 // not closed, not cancelled
	case how == 0:
		resp.Body.Close()
		return 1
	case how == 1:
		io.CopyN(io.Discard, resp.Body, r.Int64N(400))
		resp.Body.Close()
		resp.Body.Close()
		return 2
	}
	var whole bytes.Buffer
	_, err = whole.ReadFrom(&dribble{resp.Body, r})
	if r.IntN(2) == 0 {
		go resp.Body.Close() // beside whatever else ends it
	}
	resp.Body.Close()
	if err != nil {
		return 7
	}
	// A whole answer that states its usage is charged that, to the token.
	if want, ok := usageOf(whole.Bytes()); ok && resp.StatusCode == 200 && ctx.Err() == nil {
		s, _ := f.settles.Load(req.Header.Get("X-Life"))
		if s, ok := s.(transport.Settlement); !ok {
			t.Errorf("life %s has been read and is not settled", req.Header.Get("X-Life"))
		} else if u := s.Usage; !u.Found || u.Input != want[0] || u.Output != want[1] {
			t.Errorf("life %s: the answer says %v, the settlement %+v", req.Header.Get("X-Life"), want, s)
		}
	}
	return 0
}

// usageOf is what the last line with a usage object says.
func usageOf(body []byte) (n [2]int64, ok bool) {
	if len(body) > 1 && body[0] == 0x1f {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return n, false
		}
		if body, err = io.ReadAll(z); err != nil {
			return n, false
		}
	}
	i := bytes.LastIndex(body, []byte(`"usage":{`))
	if i < 0 {
		return n, false
	}
	var u struct{ Prompt_tokens, Completion_tokens int64 }
	if json.NewDecoder(bytes.NewReader(body[i+len(`"usage":`):])).Decode(&u) != nil {
		return n, false
	}
	return [2]int64{u.Prompt_tokens, u.Completion_tokens}, true
}

// dribble reads in pieces of any size.
type dribble struct {
	io.Reader
	r *rand.Rand
}

func (d *dribble) Read(p []byte) (int, error) {
	return d.Reader.Read(p[:min(len(p), 1+d.r.IntN(700))])
}

var errFire = errors.New("a reader panicked on purpose")

// panicky answers some calls with bodies whose reader panics at some byte.
type panicky struct{ base *http.Transport }

func (p panicky) CloseIdleConnections() { p.base.CloseIdleConnections() }

func (p panicky) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.base.RoundTrip(r)
	if err == nil && r.Header.Get("X-Panic") != "" && resp.StatusCode == 200 {
		resp.Body = &panics{resp.Body, 100}
	}
	return resp, err
}

type panics struct {
	io.ReadCloser
	left int
}

func (p *panics) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if p.left -= n; p.left < 0 {
		p.ReadCloser.Close() // or its connection would wait for a reader
		panic(errFire)
	}
	return n, err
}

// serve answers by chance.
func (f *fire) serve(w http.ResponseWriter, req *http.Request) {
	n, _ := f.arrived.LoadOrStore(req.Header.Get("X-Life"), new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	if rand.IntN(20) == 0 {
		panic(http.ErrAbortHandler)
	}
	if rand.IntN(20) > 0 { // some answer before they have read
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	h := w.Header()
	switch k := rand.IntN(200); {
	case k == 0: // few: refusals in a row make everybody wait for longer and longer
		h.Set("Retry-After-Ms", "1")
		http.Error(w, `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`, http.StatusTooManyRequests)
		return
	case k < 30:
		http.Error(w, "oops", []int{500, 502, 503, 529, 408, 409, 400, 404}[rand.IntN(8)])
		return
	}
	var out io.Writer = w
	if strings.Contains(req.Header.Get("Accept-Encoding"), "gzip") && rand.IntN(3) == 0 {
		h.Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		out = z
	}
	h.Set("X-Ratelimit-Remaining-Tokens", strconv.Itoa(rand.IntN(1000)))
	// Not zero: a usage of nothing at all is one that was not counted.
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d}`, 1+rand.IntN(1000), rand.IntN(1000))
	if rand.IntN(2) == 0 {
		h.Set("Content-Type", "application/json")
		fmt.Fprintf(out, `{"object":"chat.completion","choices":[{"message":{"content":%q},"finish_reason":"stop"}],%s}`, strings.Repeat("text ", rand.IntN(200)), usage)
		return
	}
	h.Set("Content-Type", "text/event-stream")
	for range rand.IntN(8) {
		fmt.Fprint(out, `data: {"object":"chat.completion.chunk","choices":[{"delta":{"content":"some text"}}]}`+"\n\n")
		if z, ok := out.(*gzip.Writer); ok {
			z.Flush()
		}
		w.(http.Flusher).Flush()
		if rand.IntN(25) == 0 {
			panic(http.ErrAbortHandler)
		}
	}
	if rand.IntN(10) > 0 {
		fmt.Fprintf(out, `data: {"object":"chat.completion.chunk","choices":[],%s}`+"\n\ndata: [DONE]\n\n", usage)
	}
}

// faultyListener cuts some of its connections after some byte.
type faultyListener struct {
	net.Listener
	accepted atomic.Int64
	mu       sync.Mutex
	r        *rand.Rand
}

func (l *faultyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.accepted.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &faultyConn{Conn: c, in: 1 << 60, out: 1 << 60, hard: l.r.IntN(2) == 0}
	switch l.r.IntN(4) {
	case 0:
		f.in = l.r.Int64N(12000)
	case 1, 2:
		f.out = l.r.Int64N(12000)
	}
	return f, nil
}

// faultyConn breaks after in more bytes read or out more bytes written. If hard
// is set, it breaks with a reset. Else the kernel still sends the bytes it
// holds.
type faultyConn struct {
	net.Conn
	mu      sync.Mutex
	in, out int64
	hard    bool
}

func (c *faultyConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	left := c.in
	c.mu.Unlock()
	if left <= 0 {
		return 0, c.cut()
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.mu.Lock()
	c.in -= int64(n)
	c.mu.Unlock()
	return n, err
}

func (c *faultyConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	n := min(int64(len(p)), c.out)
	c.out -= n
	c.mu.Unlock()
	if n > 0 {
		if m, err := c.Conn.Write(p[:n]); err != nil {
			return m, err
		}
	}
	if n < int64(len(p)) {
		return int(n), c.cut()
	}
	return int(n), nil
}

func (c *faultyConn) cut() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok && c.hard {
		tcp.SetLinger(0)
	}
	c.Conn.Close()
	return errReset
}

// eventually waits for what must come about by itself, without measuring it.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); runtime.Gosched() {
		if ok() {
			return
		}
	}
	t.Errorf("it does not happen: %s", what)
	buf := make([]byte, 1<<20)
	t.Logf("%s", buf[:runtime.Stack(buf, true)])
}
