package transport_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// Public reports about clients that retry, each as a small scene in front of the
// whole stack. The package retry has them for itself; here the gate stands
// before it and the ledger behind.
// Report: davesavic/clink#5, maximilien/softlayer-go#142
// Report: newrelic/newrelic-telemetry-sdk-go#17
// Report: hashicorp/go-retryablehttp#129, hashicorp/go-retryablehttp#215
// Report: hashicorp/go-retryablehttp#22, pulumi/pulumi#24276
// Report: homeylab/tdarr-exporter#105, workos/workos-go#485
// Report: avast/retry-go#74, langchain-ai/langchainjs#1929
// Report: openai/openai-python#3507, openai/codex#6340, mindsdb/anton#284
// Report: jlewi/foyle#82, snyk/parlay#98, IBM/go-sdk-core#142
// Report: ActiveState/cli#2511, hashicorp/go-retryablehttp#247
// Report: hashicorp/go-retryablehttp#283, hashicorp/go-retryablehttp#295
// Report: hashicorp/go-retryablehttp#298, openai/openai-node#1840
// Report: openai/openai-node#1841, openai/openai-python#3555
// Report: livekit/agents#5335, mpfaffenberger/code_puppy#317
// Report: pydantic/pydantic-ai#4318, frankbria/auto-author#188
// Report: AstrBotDevs/AstrBot#9669, trpc-group/trpc-agent-go#2114
// Report: basecamp/basecamp-sdk#461, oras-project/oras-go#1210
// Report: cenkalti/backoff#159, hashicorp/go-retryablehttp#201
// Report: hashicorp/go-retryablehttp#176, aws/aws-sdk-go#1826
// Report: just-every/code#421, agent0ai/agent-zero#711
// Report: github/copilot-cli#2144, github/copilot-cli#2754
// Report: oracle/nosql-go-sdk#63
func TestRetriesBehindTheGate(t *testing.T) {
	scene := func(name, words string, o transport.Options, play func(*testing.T, *transport.Transport, *wire)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := script(words)
				b := new(books)
				o.Base, o.Limits = w, slow(1000, 1e9)
				tr := b.trace()
				if o.Trace.Answered != nil {
					tr.Answered = o.Trace.Answered
				}
				o.Trace = tr
				rt := gate(t, o)
				play(t, rt, w)
				synctest.Wait()
				b.closed(t, rt) // a refusal for long drains even these limits
			})
		})
	}
	call := func(t *testing.T, rt http.RoundTripper, ctx context.Context, body string) (status int, text string, took time.Duration, err error) {
		start := time.Now()
		status, text, err = finish(rt.RoundTrip(ask(t, ctx, body)))
		return status, text, time.Since(start), err
	}
	attempts := func(t *testing.T, w *wire, want int) {
		t.Helper()
		if got := w.attempts(); got != want {
			t.Errorf("%d wire attempts, want %d", got, want)
		}
	}

	scene("the second attempt carries the same bytes and length", "503 200", transport.Options{}, func(t *testing.T, rt *transport.Transport, w *wire) {
		body := strings.Replace(letter, "a letter", strings.Repeat("x", 358-len(letter)+len("a letter")), 1)
		status, _, _, err := call(t, rt, t.Context(), body)
		if status != 200 || err != nil || len(w.bodies) != 2 || w.bodies[0] != body || w.bodies[1] != body || w.sizes[0] != 358 || w.sizes[1] != 358 {
			t.Errorf("%d %v, sent %q of lengths %v", status, err, w.bodies, w.sizes)
		}
	})
	scene("the last real answer survives the deadline", "429;Retry-After=30;Body=wait", transport.Options{}, func(t *testing.T, rt *transport.Transport, w *wire) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		status, text, took, err := call(t, rt, ctx, letter)
		if status != 429 || text != errorBodies["wait"] || err != nil || took != 0 {
			t.Errorf("%d %q %v after %v", status, text, err, took)
		}
	})
	scene("it is in the error when the call is cancelled", "429;Retry-After=30;Body=wait", transport.Options{}, func(t *testing.T, rt *transport.Transport, w *wire) {
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(2*time.Second, cancel).Stop()
		_, _, took, err := call(t, rt, ctx, letter)
		var e *retry.Error
		if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Status != 429 || string(e.Body) != errorBodies["wait"] || took != 2*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
	scene("a wait that stands in the body alone is kept", "429;Body=wait 200", transport.Options{}, func(t *testing.T, rt *transport.Transport, w *wire) {
		status, _, took, _ := call(t, rt, t.Context(), letter)
		if status != 200 || took < 33*time.Second || took > 40*time.Second {
			t.Errorf("%d after %v", status, took)
		}
	})
	scene("a cancel is not a failure to retry", "hang", transport.Options{Attempts: 5}, func(t *testing.T, rt *transport.Transport, w *wire) {
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(time.Second, cancel).Stop()
		_, _, took, err := call(t, rt, ctx, letter)
		if !errors.Is(err, context.Canceled) || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
		attempts(t, w, 1)
	})
	scene("the wait obeys the context", "503", transport.Options{Retry: retry.Options{MinBackoff: 30 * time.Second}}, func(t *testing.T, rt *transport.Transport, w *wire) {
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(500*time.Millisecond, cancel).Stop()
		_, _, took, err := call(t, rt, ctx, letter)
		if !errors.Is(err, context.Canceled) || took != 500*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
	})
	scene("the cancel does not hide the last error", "reset", transport.Options{}, func(t *testing.T, rt *transport.Transport, w *wire) {
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(100*time.Millisecond, cancel).Stop()
		_, _, _, err := call(t, rt, ctx, letter)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errReset) {
			t.Errorf("%v", err)
		}
	})
	scene("an exhausted account is not retried", "429;Body=quota", transport.Options{Attempts: 5}, func(t *testing.T, rt *transport.Transport, w *wire) {
		status, text, took, err := call(t, rt, t.Context(), letter)
		if status != 429 || text != errorBodies["quota"] || err != nil || took != 0 {
			t.Errorf("%d %q %v after %v", status, text, err, took)
		}
		attempts(t, w, 1)
	})
	scene("the last refusal is the provider's own", "429", transport.Options{Attempts: 5}, func(t *testing.T, rt *transport.Transport, w *wire) {
		status, text, _, err := call(t, rt, t.Context(), letter)
		if status != 429 || text != errorBodies["error"] || err != nil {
			t.Errorf("%d %q %v", status, text, err)
		}
		attempts(t, w, 5)
	})
	scene("the last failure is the provider's own", "500;X-Request-Id=req-1", transport.Options{}, func(t *testing.T, rt *transport.Transport, w *wire) {
		resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
		if err != nil || resp.StatusCode != 500 || resp.Header.Get("X-Request-Id") != "req-1" {
			t.Fatalf("%v %v", resp, err)
		}
		resp.Body.Close()
	})
	heard := 0
	scene("a hook is safe without a response", "dial", transport.Options{Retry: retry.Options{
		Deciding: func(e retry.Event) {
			if heard++; e.Response != nil || e.Err == nil {
				t.Errorf("event %+v", e)
			}
		},
		Admit: func(_ context.Context, e retry.Event) error {
			heard++
			return nil
		},
		Done: func(e retry.Event) { heard++ },
	}}, func(t *testing.T, rt *transport.Transport, w *wire) {
		if _, _, _, err := call(t, rt, t.Context(), letter); !errors.Is(err, errDial) {
			t.Errorf("%v", err)
		}
		if heard != 2+2+1 {
			t.Errorf("%d hooks", heard)
		}
	})
	for name, c := range map[string]struct {
		words string
		o     retry.Options
	}{
		"a wait above the ceiling: the refusal, now":       {"429;Retry-After=3600", retry.Options{MaxRetryAfter: 10 * time.Second}},
		"the default ceiling is a minute":                  {"429;Retry-After=1800", retry.Options{}},
		"a little above the ceiling is above it":           {"429;Retry-After=61", retry.Options{}},
		"a wait longer than the elapsed budget":            {"429;Retry-After=1800", retry.Options{MaxRetryAfter: time.Hour, MaxElapsed: 900 * time.Second}},
		"501 will not be learned":                          {"501", retry.Options{}},
		"a request larger than the limit":                  {"429;Body=large", retry.Options{}},
		"also for a server that is unavailable":            {"503;Retry-After=3600", retry.Options{MaxRetryAfter: 10 * time.Second}},
		"the prompt is too long, whatever the advice says": {"429;Body=large;X-Should-Retry=true", retry.Options{}},
	} {
		scene(name, c.words, transport.Options{Retry: c.o}, func(t *testing.T, rt *transport.Transport, w *wire) {
			var trace retry.Tally
			status, _, took, err := call(t, rt, retry.WithTally(t.Context(), &trace), letter)
			if err != nil || took != 0 || strconv.Itoa(status) != c.words[:3] {
				t.Errorf("%d %v after %v", status, err, took)
			}
			attempts(t, w, 1)
			if c.o.MaxElapsed > 0 && trace.Reason() != retry.Elapsed {
				t.Errorf("reason %v", trace.Reason())
			}
		})
	}
	scene("one attempt is one request", "503", transport.Options{Attempts: 1}, func(t *testing.T, rt *transport.Transport, w *wire) {
		if status, _, took, err := call(t, rt, t.Context(), letter); status != 503 || err != nil || took != 0 {
			t.Errorf("%d %v after %v", status, err, took)
		}
		attempts(t, w, 1)
	})
	scene("the whole of the default ceiling is slept", "429;Retry-After=60 200", transport.Options{}, func(t *testing.T, rt *transport.Transport, w *wire) {
		if status, _, took, _ := call(t, rt, t.Context(), letter); status != 200 || took < time.Minute {
			t.Errorf("%d after %v", status, took)
		}
	})
	scene("Retry-After: 0 may go at once, a bounded number of times", "429;Retry-After=0", transport.Options{}, func(t *testing.T, rt *transport.Transport, w *wire) {
		if status, _, took, _ := call(t, rt, t.Context(), letter); status != 429 || took > 3*time.Second {
			t.Errorf("%d after %v", status, took)
		}
		attempts(t, w, 3)
	})
	scene("what an SDK's retries multiply to is seen", "429", transport.Options{}, func(t *testing.T, rt *transport.Transport, w *wire) {
		var trace retry.Tally
		for range 3 { // an SDK with two retries
			call(t, rt, retry.WithTally(t.Context(), &trace), letter)
		}
		if trace.Attempts() != 9 {
			t.Errorf("the trace counts %d", trace.Attempts())
		}
		attempts(t, w, 9)
		for range 3 {
			call(t, rt, retry.WithAttempts(t.Context(), 1), letter)
		}
		attempts(t, w, 12)
	})
	scene("twenty that were refused together come back apart, none early", strings.Repeat("429;Retry-After=7 ", 20)+"200", transport.Options{}, func(t *testing.T, rt *transport.Transport, w *wire) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if status, _, took, _ := call(t, rt, t.Context(), letter); status != 200 || took < 7*time.Second {
					t.Errorf("%d after %v", status, took)
				}
			})
		}
		wg.Wait()
		apart := map[time.Time]bool{}
		for _, at := range w.at[20:] {
			if at.Sub(w.at[0]) < 7*time.Second {
				t.Errorf("an attempt after %v", at.Sub(w.at[0]))
			}
			apart[at] = true
		}
		if len(apart) < 15 {
			t.Errorf("20 attempts at %d instants", len(apart))
		}
	})
	scene("the deadline covers attempts, waits and line together", "503", transport.Options{Retry: retry.Options{MinBackoff: 3 * time.Second}}, func(t *testing.T, rt *transport.Transport, w *wire) {
		w.took = 4 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if status, _, took, err := call(t, rt, ctx, letter); status != 503 || err != nil || took > 5*time.Second {
			t.Errorf("%d %v after %v", status, err, took)
		}
		attempts(t, w, 1)
	})

	t.Run("a bad certificate is tried once", func(t *testing.T) {
		s := httptest.NewTLSServer(http.NotFoundHandler())
		defer s.Close()
		s.Config.ErrorLog = quiet
		n := 0
		rt := gate(t, transport.Options{Base: &http.Transport{}, Limits: slow(10, 1e6), Trace: transport.Trace{Answered: func(transport.Attempt) { n++ }}})
		req := ask(t, t.Context(), letter)
		req.URL.Host = s.Listener.Addr().String()
		_, err := rt.RoundTrip(req)
		if !errors.As(err, new(x509.UnknownAuthorityError)) || n != 1 {
			t.Errorf("%v after %d attempts", err, n)
		}
		if got := spent(rt); got != (limit.Cost{}) {
			t.Errorf("charged %v for a request that never left", got)
		}
	})
	t.Run("larger than the limit is refused here", func(t *testing.T) {
		w := script("200")
		rt := gate(t, transport.Options{Base: w, TPM: 50})
		_, err := rt.RoundTrip(ask(t, t.Context(), letter))
		var e *limit.Error
		if !errors.Is(err, limit.ErrTooLarge) || !errors.As(err, &e) || e.Capacity != 50 || e.Cost < 100 {
			t.Errorf("%v", err)
		}
		attempts(t, w, 0)
	})
	t.Run("nothing leaves while the server says wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := script("429;Retry-After=7200 200")
			rt := gate(t, transport.Options{Base: w, RPM: 60, MaxWait: time.Minute})
			start := time.Now()
			if status, _, _, _ := call(t, rt, t.Context(), letter); status != 429 {
				t.Errorf("%d", status)
			}
			for time.Since(start) < 2*time.Hour-time.Minute {
				_, _, _, err := call(t, rt, t.Context(), letter)
				var e *limit.Error
				if !errors.Is(err, limit.ErrWaitTooLong) || !errors.As(err, &e) || e.Earliest.Before(start.Add(2*time.Hour)) {
					t.Fatalf("%v", err)
				}
				time.Sleep(100 * time.Second)
			}
			attempts(t, w, 1)
			time.Sleep(time.Minute)
			if status, _, _, err := call(t, rt, t.Context(), letter); status != 200 {
				t.Errorf("after two hours: %d %v", status, err)
			}
			if at := w.at[1].Sub(start); at < 2*time.Hour {
				t.Errorf("left after %v", at)
			}
		})
	})
}
