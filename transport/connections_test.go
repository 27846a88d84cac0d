package transport_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// Calls that stand in net/http's line for a connection keep every wait that holds all.
func TestEveryPauseHoldsThoseWithoutAConnection(t *testing.T) {
	for _, c := range []struct {
		name  string
		first reply
		want  time.Duration
	}{
		{"503", reply{503, map[string]string{"Retry-After": "7"}, ""}, 7 * time.Second},
		{"529", reply{529, map[string]string{"Retry-After": "7"}, ""}, 7 * time.Second},
		{"sentence", reply{429, nil, errorBodies["wait"]}, 33 * time.Second},
		{"403 of a gateway", reply{403, map[string]string{"Retry-After": "7"}, errorBodies["gateway"]}, 7 * time.Second},
		{"date", reply{429, map[string]string{"Retry-After": "DATE"}, ""}, 6 * time.Second},
		{"allowance", reply{429, nil, `{"error":{"code":"1308","message":"Usage limit reached. Your limit will reset in 50 seconds"}}`}, 50 * time.Second},
		{"a year", reply{503, map[string]string{"Retry-After": "31536000"}, ""}, ceiling},
		{"no wait", reply{429, nil, ""}, 500 * time.Millisecond},
		{"error in a stream", reply{200, map[string]string{"Content-Type": "text/event-stream"}, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"try again in 9 seconds\"}}\n\n"}, 9 * time.Second},
	} {
		for _, conns := range []int{1, 3} {
			t.Run(fmt.Sprint(c.name, ", connections ", conns), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					holdBehind(t, conns, 12, 0, c.want, func(w http.ResponseWriter) {
						for k, v := range c.first.header {
							if v == "DATE" {
								v = time.Now().Add(7 * time.Second).UTC().Format(http.TimeFormat)
							}
							w.Header().Set(k, v)
						}
						w.WriteHeader(c.first.status)
						io.WriteString(w, c.first.body)
					})
				})
			})
		}
	}
}

// holdBehind sends n calls over so many connections. The first is refused after a second,
// while the others have left or stand in net/http's line for a connection. None of those
// in the line may leave within want of the refusal. resume, unless 0, is when Resume is
// called, from the refusal on.
func holdBehind(t *testing.T, conns, n int, resume, want time.Duration, refuse func(http.ResponseWriter)) {
	var mu sync.Mutex
	var at []time.Time
	var refused time.Time
	base := piped(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		at = append(at, time.Now())
		first := len(at) == 1
		mu.Unlock()
		time.Sleep(time.Second)
		if first {
			mu.Lock()
			refused = time.Now()
			mu.Unlock()
			refuse(w)
			return
		}
		time.Sleep(time.Second) // longer than the refusal
		io.WriteString(w, `{"usage":{"prompt_tokens":20,"completion_tokens":40}}`)
	})
	base.MaxConnsPerHost = conns
	rt := gate(t, transport.Options{Base: base, RPM: 6000, Attempts: 1})
	if resume > 0 {
		time.AfterFunc(time.Second+resume, rt.Resume)
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			req := ask(t, t.Context(), chat)
			req.URL.Scheme = "http"
			finish(rt.RoundTrip(req))
		})
	}
	wg.Wait()
	within := 0
	for _, left := range at {
		if d := left.Sub(refused); d > 0 && d < want {
			within++
		}
	}
	if within > 0 || len(at) != n {
		t.Errorf("%d of %d calls left within the wait", within, len(at))
	}
	if s := whole(rt); s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("in flight %d, waiting %d", s.InFlight, s.Waiting)
	}
}

// A wound body is one reader that GetBody winds back. It notes who reads it while another
// Read is under way.
type wound struct {
	mu    sync.Mutex
	r     *strings.Reader
	delay time.Duration
	in    int  // Reads under way
	bad   bool // two were
}

func (w *wound) Read(p []byte) (int, error) {
	w.mu.Lock()
	w.in++
	if w.in > 1 {
		w.bad = true
	}
	w.mu.Unlock()
	time.Sleep(w.delay)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.in--
	return w.r.Read(p[:min(len(p), 16)])
}
func (w *wound) Close() error { return nil }

// GetBody that winds the one reader back is called when no Read of the attempt before is
// under way, whenever the server answers.
func TestAWoundBodyIsReadByOneAttempt(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		early  bool
		close  bool
	}{
		{"429 early", 429, true, false},
		{"503 early", 503, true, false},
		{"500 late", 500, false, false},
		{"429 late", 429, false, false},
		{"529 early close", 529, true, true},
		{"429 early close", 429, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				var got []string
				base := piped(t, func(w http.ResponseWriter, r *http.Request) {
					n++
					if n <= 2 && c.early {
						if c.close {
							w.Header().Set("Connection", "close")
						}
						w.WriteHeader(c.status)
						return
					}
					b, _ := io.ReadAll(r.Body)
					got = append(got, string(b))
					if n <= 2 {
						w.WriteHeader(c.status)
						return
					}
					io.WriteString(w, ok)
				})
				rt := gate(t, transport.Options{Base: base, Attempts: 4})
				text := strings.Repeat("0123456789abcdef", 40)
				body := &wound{r: strings.NewReader(text), delay: 5 * time.Millisecond}
				req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://api.example.com/v1/x", body)
				req.Header.Set("Content-Type", "application/octet-stream")
				req.ContentLength = int64(len(text))
				req.GetBody = func() (io.ReadCloser, error) {
					body.mu.Lock()
					defer body.mu.Unlock()
					if body.in > 0 {
						body.bad = true
					}
					body.r.Seek(0, io.SeekStart)
					return body, nil
				}
				status, _, err := finish(rt.RoundTrip(req))
				if status != 200 || err != nil || body.bad || len(got) == 0 || got[len(got)-1] != text {
					t.Errorf("status %d, %v; read by two attempts: %v; %d attempts", status, err, body.bad, n)
				}
			})
		})
	}
}

// What an error of the base says of an attempt: whether the server can have taken it in,
// whether another one may end otherwise, and whether everybody rests.
func TestErrorsOfABase(t *testing.T) {
	for text, c := range map[string]struct {
		requests int64
		attempts int
		rest     bool
	}{
		`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug=""`: {3, 3, false},
		"stream error: stream ID 5; REFUSED_STREAM":                                                       {0, 3, false},
		"http2: Transport: cannot retry err [stream error: stream ID 3; REFUSED_STREAM; received from peer] after Request.Body was written; define Request.GetBody to avoid this error": {0, 3, false},
		`http2: server sent GOAWAY and closed the connection; LastStreamID=7, ErrCode=ENHANCE_YOUR_CALM, debug="too_many_pings"`:                                                        {3, 3, true},
		"connection error: ENHANCE_YOUR_CALM": {3, 3, true},
		"http2: Transport: peer server initiated graceful shutdown after some of Request.Body was written; define Request.GetBody to avoid this error": {0, 3, false},
		"http2: client conn not usable":                                 {0, 3, false},
		"http2: client conn could not be established":                   {0, 3, false},
		"http2: client conn is closed":                                  {3, 3, false}, // while the body was sent
		"http2: client connection force closed via ClientConn.Close":    {3, 3, false},
		"http: server closed idle connection":                           {3, 3, false},
		"stream error: stream ID 1; PROTOCOL_ERROR; received from peer": {3, 3, false},
		"stream error: stream ID 1; HTTP_1_1_REQUIRED":                  {1, 1, false},
	} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, paused, n := &books{}, false, 0
				trace := b.trace()
				trace.Paused = func(*http.Request, limit.Pause) { paused = true }
				base := rttest.Func(func(r *http.Request) (*http.Response, error) {
					n++
					rttest.Drain(r)
					return nil, errors.New(text)
				})
				rt := gate(t, transport.Options{Base: base, Limits: slow(100, 100_000), Trace: trace, Attempts: 3})
				finish(rt.RoundTrip(ask(t, t.Context(), chat)))
				if b.total.Requests != c.requests || n != c.attempts || paused != c.rest {
					t.Errorf("%v kept, %d attempts, paused %v", b.total, n, paused)
				}
				b.balanced(t, rt)
			})
		})
	}
}

// A proxy's answer to CONNECT is the error of the attempt: nothing left, and what lasts
// is not tried again.
func TestAProxyThatDoesNotConnect(t *testing.T) {
	for line, attempts := range map[string]int{
		"400 Bad Request": 1, "401 Unauthorized": 1, "402 Payment Required": 1, "403 Forbidden": 1, "404 Not Found": 1,
		"405 Method Not Allowed": 1, "407 Proxy Authentication Required": 1, "407 proxy authentication required": 1,
		"407 Proxy Authentication Required ( The proxy requires authorization )": 1, "410 Gone": 1,
		"451 Unavailable For Legal Reasons": 1, "501 Not Implemented": 1, "505 HTTP Version Not Supported": 1,
		"408 Request Timeout": 3, "429 Too Many Requests": 3, "500 Internal Server Error": 3, "502 Bad Gateway": 3,
		"503 Service Unavailable": 3, "504 Gateway Timeout": 3,
	} {
		t.Run(line, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				base := &http.Transport{
					Proxy: func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy.example.com") },
					DialContext: func(context.Context, string, string) (net.Conn, error) {
						n++
						ours, theirs := net.Pipe()
						go func() {
							defer theirs.Close()
							if _, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
								fmt.Fprintf(theirs, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", line)
							}
						}()
						return ours, nil
					},
				}
				defer base.CloseIdleConnections()
				b := &books{}
				rt := gate(t, transport.Options{Base: base, Limits: slow(100, 100_000), Trace: b.trace(), Attempts: 3})
				_, _, err := finish(rt.RoundTrip(ask(t, t.Context(), chat)))
				if err == nil || n != attempts || b.total != (limit.Cost{}) {
					t.Errorf("%v: %d attempts, %v kept", err, n, b.total)
				}
				b.balanced(t, rt)
			})
		})
	}
}

// Refusals of any kind that are hours apart are no row: after the tenth everybody waits as
// long as after the first.
func TestARowOfRefusalsAges(t *testing.T) {
	const overload = ";Body=overload"
	for words, most := range map[string]time.Duration{
		"429": 2 * time.Second, "498": 2 * time.Second, "503": 2 * time.Second, "529": 2 * time.Second, "429;Body=wait": 36 * time.Second,
		"503" + overload: 2 * time.Second, "429" + overload: 2 * time.Second, "429;Retry-After=1": 3 * time.Second, "503;Retry-After=1": 3 * time.Second,
	} {
		for _, apart := range []time.Duration{11 * time.Minute, 6 * time.Hour} {
			t.Run(fmt.Sprint(words, ", ", apart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rt := gate(t, transport.Options{Base: script(words), Attempts: 1, RPM: 600})
					for range 12 {
						finish(rt.RoundTrip(ask(t, t.Context(), chat)))
						time.Sleep(apart)
					}
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					start := time.Now()
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					if d := time.Since(start); d > most {
						t.Errorf("the next call waited %v", d)
					}
				})
			})
		}
	}
}

// The cause of a context that ended is in the error, wherever the call stood.
func TestTheCauseIsInTheError(t *testing.T) {
	for _, c := range []struct {
		name  string
		o     transport.Options
		words string
	}{
		{"in line", transport.Options{RPM: 1}, "200"},
		{"in a pause", transport.Options{}, "503;Retry-After=3600 200"},
		{"in an overload", transport.Options{}, "529;Retry-After=3600 200"},
		{"on the wire", transport.Options{}, "200 hang"},
		{"in a body", transport.Options{}, "200 stall"},
		{"before a retry that was ordered", transport.Options{Attempts: 3}, "200 503;Retry-After=30 200"},
		{"before a retry of a refusal", transport.Options{Attempts: 9}, "200 429"},
		{"before a retry of an error", transport.Options{Attempts: 9}, "200 500"},
		{"before a retry of a reset", transport.Options{Attempts: 9}, "200 reset"},
		{"before a retry of a dial", transport.Options{Attempts: 9}, "200 dial"},
		{"before a probe", transport.Options{}, "503;Retry-After=31536000 200"},
	} {
		for kind, wrap := range map[string]func(context.Context) context.Context{
			"itself": func(ctx context.Context) context.Context { return ctx },
			"of its parent": func(ctx context.Context) context.Context {
				ctx, stop := context.WithCancel(ctx)
				t.Cleanup(stop)
				return context.WithValue(ctx, wound{}, 1)
			},
		} {
			t.Run(c.name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := c.o
					o.Base, o.Attempts = script(c.words), max(o.Attempts, 1)
					rt := gate(t, o)
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					cause := errors.New("the user went away")
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					time.AfterFunc(time.Second, func() { cancel(cause) })
					if _, _, err := finish(rt.RoundTrip(ask(t, wrap(ctx), chat))); !errors.Is(err, cause) {
						t.Errorf("the error is %v", err)
					}
				})
			})
		}
	}
}
