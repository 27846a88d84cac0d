package providertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// watched is a request body that knows whether it was closed.
type watched struct {
	io.Reader
	closed int
}

func (w *watched) Close() error { w.closed++; return nil }

func TestRoundTripContract(t *testing.T) {
	for name, kind := range map[string]Kind{"served": Serve, "cut before": ResetBefore, "cut after": ResetAfter, "refused": Refuse} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := mustNew(t, Options{})
				p.Script(Step{Kind: kind})
				body := &watched{Reader: strings.NewReader(ids(1, 1))}
				req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://box/v1/completions", body)
				before := req.Header.Clone()
				res, err := p.RoundTripper().RoundTrip(req)
				if (res == nil) == (err == nil) {
					t.Fatalf("response %v, error %v", res, err)
				}
				if res != nil {
					if res.Request != req || res.ContentLength <= 0 || res.ProtoMajor != 1 {
						t.Errorf("%+v", res)
					}
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				synctest.Wait()
				if body.closed != 1 {
					t.Errorf("the request body was closed %d times", body.closed)
				}
				if req.Body != io.ReadCloser(body) || len(req.Header) != len(before) || req.RequestURI != "" {
					t.Error("the request was changed")
				}
			})
		})
	}
}

func TestContextAlreadyOver(t *testing.T) {
	p := mustNew(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := &watched{Reader: strings.NewReader(ids(1, 1))}
	req, _ := http.NewRequestWithContext(ctx, "POST", "http://box/v1/completions", body)
	if _, err := p.RoundTripper().RoundTrip(req); !errors.Is(err, context.Canceled) || body.closed != 1 || p.Stats().Requests != 0 {
		t.Errorf("%v, closed %d, stats %+v", err, body.closed, p.Stats())
	}
}

// A client that leaves a stream, by closing the body or by its context, ends the
// call at once; its charge is settled to the tokens produced.
func TestClientLeaves(t *testing.T) {
	for _, how := range []string{"close", "cancel", "deadline before the header"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := mustNew(t, Options{Limits: Limits{TPM: 6000}, Charge: Settle, Count: countIDs, Output: Constant(30),
					Latency: func(Call) Timing { return Timing{FirstByte: time.Second, PerToken: time.Second} }})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				want := Tokens{0, 4}
				if how == "deadline before the header" {
					ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
					defer cancel()
					want = Tokens{}
				}
				req, _ := http.NewRequestWithContext(ctx, "POST", "http://box/v1/completions", strings.NewReader(streamBody))
				res, err := p.RoundTripper().RoundTrip(req)
				if err == nil {
					time.Sleep(4500 * time.Millisecond)
					if how == "close" {
						res.Body.Close()
					} else {
						cancel()
					}
				}
				synctest.Wait()
				e := p.Ledger()[0]
				if e.Outcome != Gone || e.Settled != want || e.End != time.Since(p.Start()) {
					t.Errorf("%+v at %v", e, time.Since(p.Start()))
				}
				if s := p.Stats(); s.InFlight != 0 || s.Gone != 1 || s.OutputTokens != want.Output {
					t.Errorf("%+v", s)
				}
				if res != nil {
					if _, err := res.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
						t.Errorf("read after leaving: %v", err)
					}
				}
			})
		})
	}
}

// A call that does not stream has produced, when its client leaves, what its
// pace says.
func TestClientLeavesNoStream(t *testing.T) {
	for _, c := range []struct {
		after    time.Duration
		produced int64
	}{{500 * time.Millisecond, 0}, {time.Second, 0}, {3500 * time.Millisecond, 2 * 2}} {
		synctest.Test(t, func(t *testing.T) {
			p := mustNew(t, Options{Limits: Limits{OutputTPM: 6000}, Charge: Actual, Output: Constant(30),
				Latency: func(Call) Timing { return Timing{FirstByte: time.Second, PerToken: time.Second} }})
			ctx, cancel := context.WithTimeout(t.Context(), c.after)
			defer cancel()
			if r := send(ctx, p.RoundTripper(), "/v1/completions", `{"model":"m","prompt":"x","n":2}`); !errors.Is(r.err, context.DeadlineExceeded) {
				t.Errorf("%+v", r)
			}
			synctest.Wait()
			if e := p.Ledger()[0]; e.Outcome != Gone || e.Produced != c.produced || e.Settled.Output != c.produced {
				t.Errorf("after %v: %+v, want %d produced", c.after, e, c.produced)
			}
		})
	}
}

// A slow reader holds the server up once two socket buffers are full, and not
// before.
func TestPipeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(func() {})
		p.stop = func() bool { return true }
		wrote := 0
		go func() {
			for range 20 {
				n, err := p.write(make([]byte, pipeSize/10))
				wrote += n
				if err != nil {
					return
				}
			}
			p.end(io.EOF)
		}()
		synctest.Wait()
		if len(p.buf) > pipeSize || len(p.buf) < pipeSize*9/10 {
			t.Errorf("%d bytes are waiting", len(p.buf))
		}
		b, err := io.ReadAll(p)
		if err != nil || len(b) != 20*(pipeSize/10) {
			t.Errorf("read %d bytes, %v", len(b), err)
		}
	})
}

func TestBodyReadError(t *testing.T) {
	p := mustNew(t, Options{})
	body := io.NopCloser(io.MultiReader(strings.NewReader("{"), errReader{}))
	req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://box/v1/completions", body)
	if _, err := p.RoundTripper().RoundTrip(req); err == nil {
		t.Error("a body that cannot be read was answered")
	}
	if e := p.Ledger()[0]; e.Outcome != Gone || e.Requests != 0 {
		t.Errorf("%+v", e)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("broken") }
