package transport_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/transport"
)

// No response is left open: neither one that an attempt replaced, nor one that
// an error came after, nor one that came with an error.
// Report: heroku/heroku-go#5
func TestNoResponseIsLeftOpen(t *testing.T) {
	for _, words := range []string{"429 200", "500 500 500", "429;Retry-After=1 reset", "both", "429 both", "503 hang"} {
		synctest.Test(t, func(t *testing.T) {
			w := script(words)
			var bodies []*rttest.Body
			base := rttest.Func(func(r *http.Request) (*http.Response, error) {
				word := w.script[0]
				if word == "both" {
					rttest.Drain(r)
					b := rttest.NewBody("x")
					bodies = append(bodies, b)
					resp := response(r, 200, "", "")
					resp.Body = b
					return resp, errReset
				}
				resp, err := w.RoundTrip(r)
				if err == nil {
					b := rttest.NewBody("")
					b.Reader = resp.Body
					bodies = append(bodies, b)
					resp.Body = b
				}
				return resp, err
			})
			rt := gate(t, transport.Options{Base: base})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			finish(rt.RoundTrip(ask(t, ctx, letter)))
			synctest.Wait()
			for i, b := range bodies {
				if _, closes, _ := b.Counts(); closes == 0 {
					t.Errorf("%s: body %d of %d is open", words, i+1, len(bodies))
				}
			}
			if len(bodies) == 0 {
				t.Errorf("%s: no response at all", words)
			}
		})
	}
}

// Report: open-telemetry/opentelemetry-go-contrib#1329
// Report: open-telemetry/opentelemetry-go-contrib#1628
func TestABodyOf101CanBeWrittenTo(t *testing.T) {
	rt := gate(t, transport.Options{Base: script("101")})
	resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, ok := resp.Body.(io.ReadWriteCloser); !ok {
		t.Errorf("the body is a %T", resp.Body)
	}
	resp, err = gate(t, transport.Options{Base: script("200")}).RoundTrip(ask(t, t.Context(), letter))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, ok := resp.Body.(io.Writer); ok {
		t.Error("a body that cannot be written to pretends that it can")
	}
}

// What the provider says reaches the caller, on errors too.
// Report: openai/openai-node#1477, irudnyts/openai#51
func TestHeadersReachTheCallerOnErrorsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answer: quota("60000", "0", "6m0s").with("retry-after", "300", "x-request-id", "req_1")}
		s.answer.status = 429
		rt := gate(t, transport.Options{Base: s, TPM: 60_000, Provider: ruled(estimate.ChargeEstimate)})
		resp, err := (&http.Client{Transport: rt}).Post("http://box/v1/chat/completions", "application/json", strings.NewReader(chatOf(1, 97, 100)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for k, v := range s.answer.header {
			if resp.Header.Get(k) != v {
				t.Errorf("%s is %q; want %q", k, resp.Header.Get(k), v)
			}
		}
	})
}
