package main

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	openai "github.com/sashabaranov/go-openai"
	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// The SDK has no retries: nothing to switch off.
func TestNoRetriesOfItsOwn(t *testing.T) {
	for _, attempts := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var n box.Count
			rt, err := transport.New(transport.Options{Base: box.Overloaded{}, RPM: 600, Attempts: attempts, Trace: n.Trace()})
			if err != nil {
				t.Fatal(err)
			}
			config := openai.DefaultConfig(box.Key)
			config.HTTPClient = &http.Client{Transport: rt}
			_, err = openai.NewClientWithConfig(config).CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{Model: "m"})
			var failed *openai.APIError
			if !errors.As(err, &failed) || failed.HTTPStatusCode != http.StatusServiceUnavailable {
				t.Fatal(err)
			}
			if n.Calls != 1 || n.Wire != attempts || n.Charged != int64(attempts) {
				t.Errorf("calls %d, wire %d, charged %d; want 1 call, %d of the rest", n.Calls, n.Wire, n.Charged, attempts)
			}
		})
	}
}

// The SDK stops at the end mark of a stream, before the end of the body, and
// leaves the body open: the place in flight comes back with Close.
func TestStreamGivesItsPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := providertest.New(providertest.Options{Key: box.Key, Output: providertest.Constant(30)})
		if err != nil {
			t.Fatal(err)
		}
		var n box.Count
		rt, err := transport.New(transport.Options{Base: p.RoundTripper(), MaxInFlight: 1, Trace: n.Trace()})
		if err != nil {
			t.Fatal(err)
		}
		config := openai.DefaultConfig(box.Key)
		config.HTTPClient, config.BaseURL = &http.Client{Transport: rt}, "http://box/v1" // a host of no profile
		s, err := openai.NewClientWithConfig(config).CreateChatCompletionStream(t.Context(), openai.ChatCompletionRequest{
			Model: "m", MaxCompletionTokens: 50, StreamOptions: &openai.StreamOptions{IncludeUsage: true},
			Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "hello"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = s.Recv()
		}
		if n := rt.Snapshot().InFlight; n != 1 {
			t.Errorf("in flight %d at the end mark; the SDK closes now: say so in README.md", n)
		}
		s.Close()
		if f := rt.Snapshot().InFlight; f != 0 || n.Reported != 1 || n.Output != 30 {
			t.Errorf("in flight %d after Close, %d streams reported usage, %d tokens charged for output", f, n.Reported, n.Output)
		}
	})
}
