package main

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
	"google.golang.org/genai"
)

// The SDK tries again only when RetryOptions are set, five times in all by
// default. Leave them nil.
func TestRetryLayers(t *testing.T) {
	for _, c := range []struct {
		name     string
		attempts int
		sdk      *genai.HTTPRetryOptions
		calls    int
		wire     int
	}{
		{"both", 0, &genai.HTTPRetryOptions{}, 5, 15},
		{"tripmeter alone", 0, nil, 1, 3},
		{"the SDK alone", 1, &genai.HTTPRetryOptions{}, 5, 5},
		{"neither", 1, nil, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n box.Count
				rt, err := transport.New(transport.Options{Base: box.Overloaded{}, RPM: 600, Attempts: c.attempts, Trace: n.Trace()})
				if err != nil {
					t.Fatal(err)
				}
				client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
					APIKey: box.Key, Backend: genai.BackendGeminiAPI,
					HTTPClient:  &http.Client{Transport: rt},
					HTTPOptions: genai.HTTPOptions{RetryOptions: c.sdk},
				})
				if err != nil {
					t.Fatal(err)
				}
				_, err = client.Models.GenerateContent(t.Context(), "gemini-2.5-flash", genai.Text("hello"), nil)
				var failed genai.APIError
				if !errors.As(err, &failed) || failed.Code != http.StatusServiceUnavailable {
					t.Fatal(err)
				}
				if n.Calls != c.calls || n.Wire != c.wire || n.Charged != int64(c.wire) {
					t.Errorf("calls %d, wire %d, charged %d; want %d calls, %d of the rest", n.Calls, n.Wire, n.Charged, c.calls, c.wire)
				}
			})
		})
	}
}

// Whole and streamed answers both settle to the usage that they report.
func TestMetered(t *testing.T) {
	server := box.OpenGemini()
	defer server.Close()
	var n box.Count
	rt, err := transport.New(transport.Options{RPM: 600, TPM: 100_000, Trace: n.Trace()})
	if err != nil {
		t.Fatal(err)
	}
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: box.Key, Backend: genai.BackendGeminiAPI,
		HTTPClient: &http.Client{Transport: rt}, HTTPOptions: genai.HTTPOptions{BaseURL: server.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	limit := &genai.GenerateContentConfig{MaxOutputTokens: 50}
	if _, err := client.Models.GenerateContent(t.Context(), "gemini-2.5-flash", genai.Text("hello"), limit); err != nil {
		t.Fatal(err)
	}
	for _, err := range client.Models.GenerateContentStream(t.Context(), "gemini-2.5-flash", genai.Text("hello"), limit) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n.Reported != 2 || n.Input != 2*2 || n.Output != 2*3 || n.Charged != 3 {
		t.Errorf("reported %d, charged %d requests, %d in, %d out", n.Reported, n.Charged, n.Input, n.Output)
	}
}
