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

// The SDK tries three times, as openai-go below it does, and has no switch for it.
// StopSDKRetries is obeyed.
func TestRetryLayers(t *testing.T) {
	for _, c := range []struct {
		name        string
		stop        bool
		attempts    int
		calls, wire int
	}{
		{"both", false, 3, 3, 9},
		{"tripmeter tells the SDK to stop", true, 3, 1, 3},
		{"the SDK alone", false, 1, 3, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			var n box.Count
			rt, err := transport.New(transport.Options{Base: box.Overloaded{}, RPM: 600, Attempts: c.attempts, StopSDKRetries: c.stop, Trace: n.Trace()})
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
			if n.Calls != c.calls || n.Wire != c.wire || n.Charged != int64(c.wire) {
				t.Errorf("%s: calls %d, wire %d, charged %d; want %d calls, %d of the rest", c.name, n.Calls, n.Wire, n.Charged, c.calls, c.wire)
			}
		})
	}
}
