package transport_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/provider"
	"github.com/tripmeter/tripmeter/transport"
)

func box(t testing.TB, o provider.Options) *provider.Provider {
	t.Helper()
	p, err := provider.New(o)
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

// Three times the limit against a provider that enforces it: no refusal, and
// nearly all of the quota.
func TestThreeTimesTheLimit(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o := provider.Options{
				Limits:   provider.Limits{RPM: 600, TPM: 60_000},
				Capacity: 10 * time.Second,
				Charge:   provider.Settle,
				Output:   provider.Uniform(50, 400),
			}
			p := box(t, o)
			rt := gate(t, transport.Options{Base: p.RoundTripper(), RPM: 600, TPM: 60_000})
			c := &http.Client{Transport: rt}
			body := chat
			if stream {
				body = strings.Replace(chat, `"max_tokens"`, `"stream":true,"stream_options":{"include_usage":true},"max_tokens"`, 1)
			}
			start := time.Now()
			var wg sync.WaitGroup
			for range 300 {
				wg.Go(func() {
					if s, b, err := post(c, body); s != 200 || err != nil {
						t.Error(s, b, err)
					}
				})
			}
			wg.Wait()
			s := p.Stats()
			t.Logf("stream %v: %v, stats %+v, %+v", stream, time.Since(start), s, rt.Snapshot())
			if s.Refused != 0 {
				t.Errorf("%d refused", s.Refused)
			}
			c.CloseIdleConnections()
		})
	}
}
