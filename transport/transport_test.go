package transport_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

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

// Three times the limit against a provider that enforces it, answers whole and
// streamed: no refusal, and nearly as fast as can be. Beside it, in the same
// run, a client that only retries, and one that reserves the output cap in
// x/time/rate.
func TestThreeTimesTheLimit(t *testing.T) {
	const calls, rpm, tpm, outputCap = 300, 600, 60_000, 400
	o := providertest.Options{
		Limits:   providertest.Limits{RPM: rpm, TPM: tpm},
		Capacity: 10 * time.Second,
		Charge:   providertest.Settle,
		Output:   providertest.Uniform(50, outputCap),
	}
	for _, stream := range []bool{false, true} {
		body := chat
		if stream {
			body = strings.Replace(chat, `"max_tokens"`, `"stream":true,"stream_options":{"include_usage":true},"max_tokens"`, 1)
		}
		run := func(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) (seconds, ideal float64, s providertest.Stats) {
			synctest.Test(t, func(t *testing.T) {
				p := box(t, o)
				c := &http.Client{Transport: wrap(p.RoundTripper())}
				var wg sync.WaitGroup
				for range calls {
					wg.Go(func() {
						if s, b, err := post(c, body); s != 200 || err != nil {
							t.Error(s, b, err)
						}
					})
				}
				wg.Wait()
				var costs []providertest.Cost
				for _, e := range p.Ledger() {
					if e.Outcome == providertest.Served {
						seconds = e.Since.Seconds()
						costs = append(costs, providertest.Cost{Prompt: e.Prompt, Cap: outputCap, Output: e.Produced})
					}
				}
				var err error
				if ideal, err = providertest.IdealSeconds(costs, o); err != nil {
					t.Error(err)
				}
				s = p.Stats()
			})
			return seconds, ideal, s
		}
		ours, ideal, s := run(t, func(base http.RoundTripper) http.RoundTripper {
			return gate(t, transport.Options{Base: base, RPM: rpm, TPM: tpm})
		})
		retried, _, r := run(t, func(base http.RoundTripper) http.RoundTripper {
			rt, err := retry.New(base, retry.Options{Attempts: 1000})
			if err != nil {
				t.Fatal(err)
			}
			return rt
		})
		reserved, _, x := run(t, func(base http.RoundTripper) http.RoundTripper {
			return reserving{base, rate.NewLimiter(rpm/60, 10), rate.NewLimiter(tpm/60, tpm/6), 13 + outputCap}
		})
		t.Logf("stream %v: ideal %.1f s; tripmeter %.1f s, %d refused; retry alone %.1f s, %d refused; x/time/rate reserving the cap %.1f s, %d refused",
			stream, ideal, ours, s.Refused, retried, r.Refused, reserved, x.Refused)
		if s.Refused != 0 || ours > ideal/0.97 {
			t.Errorf("stream %v: %d refused, %.1f s of at best %.1f", stream, s.Refused, ours, ideal)
		}
		if r.Refused < calls || reserved < 1.4*ours {
			t.Errorf("stream %v: the others did better than they can: %d refused, %.1f s", stream, r.Refused, reserved)
		}
	}
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
