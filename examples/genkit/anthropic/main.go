// Genkitclaude puts the Anthropic plugin of firebase/genkit under tripmeter. The
// plugin takes no HTTP client, as the googlegenai plugin does not: both use
// http.DefaultTransport. Replacing it puts the whole program under one budget;
// where that is too much, a gateway as in ../gateway takes its place.
//
//	go run ./genkitclaude
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/anthropic"
	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "genkitclaude:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	b, err := box.Open()
	if err != nil {
		return err
	}
	defer b.Close()
	ctx := context.Background()

	// The change, 3 lines. Skip lets what is not for the provider pass unlimited.
	rt, err := transport.New(transport.Options{Skip: otherHosts(b.URL), RPM: 600, TPM: 100_000, StopSDKRetries: true}) // tripmeter
	if err != nil {                                                                                                    // tripmeter
		return err
	}
	http.DefaultTransport = rt // tripmeter

	g := genkit.Init(ctx, genkit.WithPlugins(&anthropic.Anthropic{APIKey: box.Key, BaseURL: b.URL}))
	whole, err := genkit.Generate(ctx, g, ai.WithModelName("anthropic/claude-haiku-4-5"), ai.WithPrompt("Say abc three times."),
		ai.WithConfig(map[string]any{"max_tokens": 50}))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "whole: %q, %d tokens out\n", whole.Text(), whole.Usage.OutputTokens)
	b.Report(w)
	return nil
}

// otherHosts reports whether a request is for another host than the provider's.
func otherHosts(url string) func(*http.Request) bool {
	return func(r *http.Request) bool { return "http://"+r.URL.Host != url }
}
