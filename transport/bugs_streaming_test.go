package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// Public reports about streams and about usage that was not seen.

// The decision is made from the response: nothing in the request says that a
// stream comes.
func TestB080_AStreamThatWasNotAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pr, pw := io.Pipe()
		base := rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			resp := response(r, 200, "text/event-stream", "")
			resp.Body, resp.ContentLength = pr, -1
			go func() {
				for n := range 5 {
					time.Sleep(time.Second)
					fmt.Fprintf(pw, "data: %d\n\n", n)
				}
				pw.Close()
			}()
			return resp, nil
		})
		rt := gate(t, transport.Options{Base: base})
		start := time.Now()
		req := ask(t, t.Context(), letter)
		req.Header.Set("Accept", "*/*")
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		p := make([]byte, 100)
		if n, err := resp.Body.Read(p); string(p[:n]) != "data: 0\n\n" || err != nil || time.Since(start) != time.Second {
			t.Errorf("%q, %v after %v", p[:n], err, time.Since(start))
		}
		io.Copy(io.Discard, resp.Body)
	})
}

func TestB081_AnAbandonedStreamFreesItsPlace(t *testing.T) {
	for name, leave := range map[string]func(*http.Response, context.CancelFunc){
		"closed":    func(r *http.Response, _ context.CancelFunc) { r.Body.Close() },
		"cancelled": func(_ *http.Response, cancel context.CancelFunc) { cancel() },
	} {
		synctest.Test(t, func(t *testing.T) {
			rt := gate(t, transport.Options{Base: script("stall 200"), MaxInFlight: 1})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := rt.RoundTrip(ask(t, ctx, letter))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Read(make([]byte, 10))
			start := time.Now()
			time.AfterFunc(3*time.Second, func() { leave(resp, cancel) })
			if status, _, err := finish(rt.RoundTrip(ask(t, t.Context(), letter))); status != 200 || err != nil {
				t.Errorf("%s: %d %v", name, status, err)
			}
			if d := time.Since(start); d != 3*time.Second {
				t.Errorf("%s: the next call left after %v", name, d)
			}
		})
	}
}

// A call that waits in line, sends, is refused, waits, stands in line again,
// sends, and reads a slow answer is cancelled at each of a thousand instants,
// beside four others that are not. Nothing stays in flight, nothing is lost.
func TestB082_CancelAtEachAwaitPoint(t *testing.T) {
	outcomes := map[string]int{}
	for i := range 1000 {
		synctest.Test(t, func(t *testing.T) {
			b := new(books)
			w := script("429;Retry-After=1 429;Retry-After=0 503 200 429;Retry-After=1 stall 200")
			w.took = 300 * time.Millisecond
			o := transport.Options{Base: w, Limits: slow(1000, 1e6), MaxInFlight: 2, Trace: b.trace()}
			o.Retry.Attempts = 4
			rt := gate(t, o)
			others, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { finish(rt.RoundTrip(ask(t, others, letter))) })
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(i)*7*time.Millisecond, cancel)
			wg.Go(func() {
				_, _, err := finish(rt.RoundTrip(ask(t, ctx, letter)))
				switch {
				case err == nil:
					outcomes["done"]++
				case errors.Is(err, limit.ErrCanceled):
					outcomes["in line"]++
				case errors.As(err, new(*retry.Error)):
					outcomes["between attempts"]++
				default:
					outcomes["on the wire"]++
				}
			})
			wg.Wait()
			stop()
			cancel()
			synctest.Wait()
			b.balanced(t, rt)
			if t.Failed() {
				t.Logf("cancelled after %d ms", i*7)
			}
		})
	}
	t.Log(outcomes)
	for _, o := range []string{"in line", "between attempts", "on the wire"} {
		if outcomes[o] == 0 {
			t.Errorf("no call was cancelled %s", o)
		}
	}
}

func TestB083_ReleasedOnce(t *testing.T) {
	b := new(books)
	rt := gate(t, transport.Options{Base: script("200"), Limits: slow(10, 1e6), MaxInFlight: 5, Trace: b.trace()})
	open, err := rt.RoundTrip(ask(t, t.Context(), letter))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	for range 3 {
		resp.Body.Read(make([]byte, 1))
		resp.Body.Close()
	}
	if n := rt.Snapshot().InFlight; n != 1 || len(b.settled) != 1 {
		t.Errorf("%d in flight, %d settled", n, len(b.settled))
	}
	finish(open, nil)
	b.balanced(t, rt)
}

// None of our times is about the body.
func TestB084_NoTimeOfOursCutsAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			resp := response(r, 200, "text/event-stream", "")
			pr, pw := io.Pipe()
			go func() {
				for range 60 {
					time.Sleep(time.Second)
					io.WriteString(pw, "data: x\n\n")
				}
				pw.Close()
			}()
			resp.Body = pr
			return resp, nil
		})
		rt := gate(t, transport.Options{Base: base, MaxWait: 2 * time.Second, Retry: retry.Options{MaxWait: time.Second, MaxElapsed: 3 * time.Second}})
		start := time.Now()
		_, text, err := finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		if len(text) != 60*9 || err != nil || time.Since(start) != time.Minute {
			t.Errorf("%d bytes, %v after %v", len(text), err, time.Since(start))
		}
	})
}

// The caller asked for gzip itself: it gets the bytes as they came, and usage is
// read from a copy.
func TestB086_PackedBytesStayPacked(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, `{"object":"chat.completion","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`)
	z.Close()
	b := new(books)
	rt := gate(t, transport.Options{Limits: slow(10, 1e6), Trace: b.trace(), Base: encoded("gzip", packed.String())})
	req := ask(t, t.Context(), letter)
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := rt.RoundTrip(req)
	if err != nil || resp.Header.Get("Content-Encoding") != "gzip" || resp.Uncompressed {
		t.Fatalf("%v %v", resp, err)
	}
	if _, text, _ := finish(resp, nil); text != packed.String() {
		t.Error("other bytes")
	}
	if got := spent(rt); got.Input != 11 || got.Output != 7 {
		t.Errorf("charged %v", got)
	}
}

// What cannot be unpacked passes as it is, and the estimate stands.
func TestB087_UnknownEncodingPasses(t *testing.T) {
	for _, encoding := range []string{"br", "zstd", "gzip, br", "gzip"} { // the last is no gzip at all
		b := new(books)
		rt := gate(t, transport.Options{Limits: slow(10, 1e6), Trace: b.trace(), Base: encoded(encoding, "\x8b\x00\x80rubbish\x03")})
		resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
		if err != nil || resp.Header.Get("Content-Encoding") != encoding {
			t.Fatalf("%v %v", resp, err)
		}
		if _, text, err := finish(resp, nil); text != "\x8b\x00\x80rubbish\x03" || err != nil {
			t.Errorf("%s: %q %v", encoding, text, err)
		}
		if got := spent(rt); got.Output != 100 {
			t.Errorf("%s: charged %v", encoding, got)
		}
		b.balanced(t, rt)
	}
}

func encoded(encoding, body string) http.RoundTripper {
	return rttest.Func(func(r *http.Request) (*http.Response, error) {
		rttest.Drain(r)
		resp := response(r, 200, "application/json", body)
		resp.Header.Set("Content-Encoding", encoding)
		return resp, nil
	})
}

// The budget falls by what the answer says, in whatever order and company the
// fields stand; and it is seen how many answers said nothing.
func TestB088_UsageIsPickedUp(t *testing.T) {
	for body, found := range map[string]bool{
		`{"usage":{"total_tokens":18,"queue_time":0.1,"completion_tokens":7,"prompt_tokens":11},"id":"x","x_groq":{"id":"y"}}`:               true,
		`{"service_tier":null,"usage":{"completion_tokens_details":{"reasoning_tokens":0},"prompt_tokens":11,"completion_tokens":7},"v":[]}`: true,
		`{"choices":[{"message":{"content":"\"usage\":{\"prompt_tokens\":99}"}}]}`:                                                           false,
	} {
		b := new(books)
		rt := gate(t, transport.Options{Limits: slow(10, 1e6), Trace: b.trace(), Base: encoded("", body)})
		finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		got := spent(rt)
		if found && (got.Input != 11 || got.Output != 7) || !found && got.Output != 100 || b.settled[0].Usage.Found != found {
			t.Errorf("%s: charged %v, %+v", body, got, b.settled[0].Usage)
		}
	}
}

// The header of a stream lowers credit when it arrives, not when the stream
// ends a minute later.
func TestB035_CreditIsLoweredWhenTheHeaderArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lowered := ""
		w := script("200;X-Ratelimit-Limit-Tokens=6000;X-Ratelimit-Remaining-Tokens=0;X-Ratelimit-Reset-Tokens=60s 200")
		slowBody := rttest.Func(func(r *http.Request) (*http.Response, error) {
			resp, err := w.RoundTrip(r)
			if w.attempts() == 1 {
				resp.Body = newStalled(r.Context(), "data: x\n\n")
			}
			return resp, err
		})
		rt := gate(t, transport.Options{Base: slowBody, TPM: 6000, Trace: transport.Trace{
			Lowered: func(_ *http.Request, dimension string, remaining int64) {
				lowered = fmt.Sprint(dimension, " ", remaining)
			},
		}})
		resp, err := rt.RoundTrip(ask(t, t.Context(), letter))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if s := rt.Snapshot().Limits[0]; s.Credit != 0 || lowered != "tokens per minute 0" {
			t.Errorf("credit %d while the body is open; %q", s.Credit, lowered)
		}
		start := time.Now()
		finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		if d := time.Since(start); d < time.Second { // 112 tokens at 100 a second
			t.Errorf("the next call left after %v", d)
		}
	})
}
