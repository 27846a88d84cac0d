package transport_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// sdk is what openai-go and anthropic-sdk-go do around a transport: two retries
// for an error or a status, unless x-should-retry says no (shouldRetry in their
// requestconfig.go).
func sdk(rt http.RoundTripper, req func() *http.Request) (calls int, resp *http.Response, err error) {
	for calls < 3 {
		calls++
		resp, err = rt.RoundTrip(req())
		if err != nil {
			continue
		}
		again := resp.StatusCode == 408 || resp.StatusCode == 409 || resp.StatusCode == 429 || resp.StatusCode >= 500
		switch resp.Header.Get("X-Should-Retry") {
		case "true":
			again = true
		case "false":
			again = false
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if !again {
			break
		}
	}
	return calls, resp, err
}

// An SDK's retries over ours are nine requests for one call. With the option
// they are three, and the caller's answer is the same.
func TestStopSDKRetries(t *testing.T) {
	for _, words := range []string{"429", "503", "500", "409", "529", "400;X-Should-Retry=true"} {
		for _, stop := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := script(words)
				rt := gate(t, transport.Options{Base: w, StopSDKRetries: stop})
				calls, resp, err := sdk(rt, func() *http.Request { return ask(t, t.Context(), letter) })
				want := map[bool]int{false: 3, true: 1}[stop]
				if calls != want || w.attempts() != 3*want || err != nil {
					t.Errorf("%s, stop %v: %d calls, %d attempts, %v", words, stop, calls, w.attempts(), err)
				}
				if got := resp.Header.Get("X-Should-Retry"); (got == "false") != stop || !strings.HasPrefix(resp.Status, words[:3]) {
					t.Errorf("%s, stop %v: X-Should-Retry %q, %s", words, stop, got, resp.Status)
				}
			})
		}
	}
	for _, words := range []string{"200", "400", "401", "302", "204"} {
		rt := gate(t, transport.Options{Base: script(words), StopSDKRetries: true})
		resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if _, set := resp.Header["X-Should-Retry"]; set {
			t.Errorf("%s: the field is set on what nobody retries", words)
		}
	}
}

// The field is set on a header of our own: a base may answer with one that it
// keeps, or with none.
func TestStopSDKRetriesLeavesTheBasesHeader(t *testing.T) {
	kept := http.Header{"X-Request-Id": {"1"}}
	for _, h := range []http.Header{kept, nil} {
		rt := gate(t, transport.Options{StopSDKRetries: true, Attempts: 1, Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			resp := rttest.Response(r, 429, kept, "no")
			resp.Header = h
			return resp, nil
		})})
		resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.Header.Get("X-Should-Retry") != "false" || len(kept) != 1 || resp.Header.Get("X-Request-Id") != h.Get("X-Request-Id") {
			t.Errorf("%v, the base's %v", resp.Header, kept)
		}
	}
}

// Three places count the attempts of a call, and they agree. A single call may
// have more or fewer attempts than the others.
func TestAttemptsAreSeenAndSet(t *testing.T) {
	for _, n := range []int{0, 1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			w := script("503 429 reset dial 500")
			b := new(books)
			rt := gate(t, transport.Options{Base: w, Limits: slow(100, 1e6), Trace: b.trace()})
			var trace retry.Tally
			ctx := retry.WithTally(t.Context(), &trace)
			if n > 0 {
				ctx = retry.WithAttempts(ctx, n)
			}
			finish(rt.RoundTrip(ask(t, ctx, letter)))
			want := n
			if n == 0 {
				want = retry.DefaultAttempts
			}
			if w.attempts() != want || trace.Attempts() != want || b.answered != want || b.settled[0].Attempts != want {
				t.Errorf("want %d attempts: on the wire %d, retry.Tally %d, Answered %d, Settled %d",
					want, w.attempts(), trace.Attempts(), b.answered, b.settled[0].Attempts)
			}
			if trace.Reason() != retry.Exhausted {
				t.Errorf("reason %v", trace.Reason())
			}
			b.balanced(t, rt)
		})
	}
}

// A retry goes to the head of the line, and is charged before it leaves.
func TestARetryIsFirstInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := script("503 bare")
		order := ""
		base := rttest.Func(func(r *http.Request) (*http.Response, error) {
			order += r.Header.Get("X-Name")
			return w.RoundTrip(r)
		})
		o := transport.Options{Base: base, RPM: 30, Retry: retry.Options{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}}
		rt := gate(t, o) // one at once, then one in two seconds
		call := func(name string) {
			req := ask(t, context.Background(), letter)
			req.Header.Set("X-Name", name)
			finish(rt.RoundTrip(req))
		}
		done := make(chan struct{}, 3)
		for i, name := range []string{"a", "b", "c"} {
			go func() {
				time.Sleep(time.Duration(i)) // in this order
				call(name)
				done <- struct{}{}
			}()
		}
		for range 3 {
			<-done
		}
		if order != "aabc" {
			t.Errorf("order on the wire: %q", order)
		}
		if got := rt.Snapshot().InFlight; got != 0 {
			t.Errorf("%d in flight", got)
		}
	})
}
