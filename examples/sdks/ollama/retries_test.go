package main

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"

	"github.com/ollama/ollama/api"
	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
)

// The client has no retries: nothing to switch off.
func TestNoRetriesOfItsOwn(t *testing.T) {
	for _, attempts := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var n box.Count
			rt, err := transport.New(transport.Options{Base: box.Overloaded{}, RPM: 600, Attempts: attempts, Trace: n.Trace()})
			if err != nil {
				t.Fatal(err)
			}
			client := api.NewClient(&url.URL{Scheme: "http", Host: "box"}, &http.Client{Transport: rt})
			err = client.Chat(t.Context(), &api.ChatRequest{Model: "m"}, func(api.ChatResponse) error { return nil })
			if failed := new(api.StatusError); err == nil || errors.As(err, failed) && failed.StatusCode != http.StatusServiceUnavailable {
				t.Fatal(err)
			}
			if n.Calls != 1 || n.Wire != attempts || n.Charged != int64(attempts) {
				t.Errorf("calls %d, wire %d, charged %d; want 1 call, %d of the rest", n.Calls, n.Wire, n.Charged, attempts)
			}
		})
	}
}

// Whole and streamed answers both settle to the usage that they report.
func TestMetered(t *testing.T) {
	server := box.OpenOllama()
	defer server.Close()
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var n box.Count
	rt, err := transport.New(transport.Options{RPM: 600, TPM: 100_000, Trace: n.Trace()})
	if err != nil {
		t.Fatal(err)
	}
	client := api.NewClient(base, &http.Client{Transport: rt})
	for _, stream := range []bool{false, true} {
		err := client.Chat(t.Context(), &api.ChatRequest{
			Model: "m", Stream: &stream, Options: map[string]any{"num_predict": 50},
			Messages: []api.Message{{Role: "user", Content: "hello"}},
		}, func(api.ChatResponse) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if n.Reported != 2 || n.Input != 2*2 || n.Output != 2*3 || n.Charged != 3 {
		t.Errorf("reported %d, charged %d requests, %d in, %d out", n.Reported, n.Charged, n.Input, n.Output)
	}
}
