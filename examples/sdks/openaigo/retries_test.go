package main

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

var hello = openai.ChatCompletionNewParams{
	Model:               "gpt-4o-mini",
	MaxCompletionTokens: openai.Int(50),
	Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
}

// client is an SDK client over a Transport over a provider without a socket.
func client(t *testing.T, p providertest.Options, o transport.Options, more ...option.RequestOption) (openai.Client, *providertest.Provider, *transport.Transport) {
	t.Helper()
	p.Key = box.Key
	b, err := providertest.New(p)
	if err != nil {
		t.Fatal(err)
	}
	o.Base = b.RoundTripper()
	rt, err := transport.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL("http://box/v1/"), option.WithAPIKey(box.Key),
		option.WithHTTPClient(&http.Client{Transport: rt}),
	}, more...)...), b, rt
}

// Two retry layers multiply; each retry of the SDK comes in as a call of its own
// and is charged. The recipes switch one layer
// off.
func TestRetryLayers(t *testing.T) {
	for _, c := range []struct {
		name     string
		attempts int  // of tripmeter
		stop     bool // StopSDKRetries
		sdk      []option.RequestOption
		calls    int
		wire     int
	}{
		{"both", 3, false, nil, 3, 9},
		{"tripmeter alone", 3, false, []option.RequestOption{option.WithMaxRetries(0)}, 1, 3},
		{"tripmeter tells the SDK to stop", 3, true, nil, 1, 3},
		{"the SDK alone", 1, false, nil, 3, 3},
		{"neither", 1, false, []option.RequestOption{option.WithMaxRetries(0)}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n box.Count
				client, p, _ := client(t, providertest.Options{}, transport.Options{RPM: 600, TPM: 100_000, Attempts: c.attempts, StopSDKRetries: c.stop, Trace: n.Trace()}, c.sdk...)
				for range 20 {
					p.Script(providertest.Step{Kind: providertest.Refuse, RetryAfter: 3 * time.Second})
				}
				_, err := client.Chat.Completions.New(t.Context(), hello)
				var refused *openai.Error
				if !errors.As(err, &refused) || refused.StatusCode != http.StatusTooManyRequests {
					t.Fatalf("not the provider's refusal: %v", err)
				}
				s := p.Stats()
				if n.Calls != c.calls || n.Wire != c.wire || s.Requests != int64(c.wire) || n.Charged != int64(c.wire) {
					t.Errorf("calls %d, wire %d (the provider saw %d), charged %d; want %d calls, %d of the rest", n.Calls, n.Wire, s.Requests, n.Charged, c.calls, c.wire)
				}
				if want := []string{"0", "1", "2"}[:c.calls]; !slices.Equal(n.Retries, want) {
					t.Errorf("retry counts of the calls: %q, want %q", n.Retries, want)
				}
				if s.Early != 0 {
					t.Errorf("%d attempts before Retry-After", s.Early)
				}
			})
		})
	}
}

// The SDK takes a call that was never sent for a broken connection, and tries
// again what no wait can mend; nothing leaves. Its retries off, it does not.
func TestNotSent(t *testing.T) {
	for _, c := range []struct {
		name string
		sdk  []option.RequestOption
		want int
	}{
		{"retries on", nil, 3},
		{"retries off", []option.RequestOption{option.WithMaxRetries(0)}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n box.Count
				client, p, _ := client(t, providertest.Options{}, transport.Options{TPM: 20, Trace: n.Trace()}, c.sdk...)
				_, err := client.Chat.Completions.New(t.Context(), hello)
				if !errors.Is(err, limit.ErrTooLarge) {
					t.Fatalf("%v, want ErrTooLarge", err)
				}
				if strings.Contains(err.Error(), box.Key) {
					t.Error("the key is in the error")
				}
				if n.NotSent != c.want || n.Charged != 0 || p.Stats().Requests != 0 {
					t.Errorf("not sent %d, want %d; charged %d, on the wire %d", n.NotSent, c.want, n.Charged, p.Stats().Requests)
				}
			})
		})
	}
}

// A timeout of the SDK runs while the call stands in the line. So a wait that would
// outlast it is refused before anything is sent.
func TestTimeoutCoversTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, p, _ := client(t, providertest.Options{}, transport.Options{RPM: 1}, option.WithMaxRetries(0))
		if _, err := client.Chat.Completions.New(t.Context(), hello); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := client.Chat.Completions.New(t.Context(), hello, option.WithRequestTimeout(30*time.Second))
		if !errors.Is(err, limit.ErrWaitTooLong) || time.Since(start) != 0 || p.Stats().Requests != 1 {
			t.Errorf("%v after %v, %d on the wire; want ErrWaitTooLong at once", err, time.Since(start), p.Stats().Requests)
		}
	})
}

// A stream keeps its place in flight until it was read to its end, or is closed:
// a loop that is left early needs Close.
func TestStreamGivesItsPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n box.Count
		client, _, rt := client(t, providertest.Options{Output: providertest.Constant(30)}, transport.Options{MaxInFlight: 1, Trace: n.Trace()})
		params := hello
		params.StreamOptions.IncludeUsage = openai.Bool(true)

		whole := client.Chat.Completions.NewStreaming(t.Context(), params)
		for whole.Next() {
		}
		if err := whole.Err(); err != nil || rt.Snapshot().InFlight != 0 {
			t.Fatalf("in flight %d after the end; %v", rt.Snapshot().InFlight, err)
		}
		if n.Reported != 1 || n.Output != 30 {
			t.Errorf("%d streams reported usage, %d tokens charged for output", n.Reported, n.Output)
		}

		left := client.Chat.Completions.NewStreaming(t.Context(), params)
		if !left.Next() || rt.Snapshot().InFlight != 1 {
			t.Fatalf("in flight %d in the stream; %v", rt.Snapshot().InFlight, left.Err())
		}
		left.Close()
		if n := rt.Snapshot().InFlight; n != 0 {
			t.Fatalf("in flight %d after Close", n)
		}
	})
}
