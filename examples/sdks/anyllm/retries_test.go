package main

import (
	"net/http"
	"testing"
	"testing/synctest"

	anyllm "github.com/mozilla-ai/any-llm-go"
	"github.com/mozilla-ai/any-llm-go/providers/openai"
	"github.com/tripmeter/tripmeter/examples/internal/box"
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
			provider, err := openai.New(anyllm.WithBaseURL("http://box/v1"), anyllm.WithAPIKey(box.Key), anyllm.WithHTTPClient(&http.Client{Transport: rt}))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := provider.Completion(t.Context(), anyllm.CompletionParams{Model: "m", Messages: []anyllm.Message{{Role: anyllm.RoleUser, Content: "hello"}}}); err == nil {
				t.Fatal("no error from a server that is overloaded")
			}
			if n.Calls != 1 || n.Wire != attempts || n.Charged != int64(attempts) {
				t.Errorf("calls %d, wire %d, charged %d; want 1 call, %d of the rest", n.Calls, n.Wire, n.Charged, attempts)
			}
		})
	}
}
