package main

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/schema"
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
			model, err := openai.NewChatModel(t.Context(), &openai.ChatModelConfig{
				BaseURL: "http://box/v1", APIKey: box.Key, Model: "m", HTTPClient: &http.Client{Transport: rt},
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := model.Generate(t.Context(), []*schema.Message{schema.UserMessage("hello")}); err == nil {
				t.Fatal("no error from a server that is overloaded")
			}
			if n.Calls != 1 || n.Wire != attempts || n.Charged != int64(attempts) {
				t.Errorf("calls %d, wire %d, charged %d; want 1 call, %d of the rest", n.Calls, n.Wire, n.Charged, attempts)
			}
		})
	}
}
