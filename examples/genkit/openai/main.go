// Genkit puts the OpenAI plugin of firebase/genkit under tripmeter: an answer,
// whole and streamed.
//
//	go run ./genkit
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai/openai"
	"github.com/openai/openai-go/option"
	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "genkit:", err)
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

	// The change, 3 lines.
	rt, err := transport.New(transport.Options{RPM: 600, TPM: 100_000}) // tripmeter
	if err != nil {                                                     // tripmeter
		return err
	}
	g := genkit.Init(ctx, genkit.WithPlugins(&openai.OpenAI{APIKey: box.Key, Opts: []option.RequestOption{
		option.WithBaseURL(b.URL + "/v1"),
		option.WithMaxRetries(0),                           // one retry layer
		option.WithHTTPClient(&http.Client{Transport: rt}), // tripmeter
	}}))

	whole, err := genkit.Generate(ctx, g, ai.WithModelName("openai/gpt-4o-mini"), ai.WithPrompt("Say abc three times."))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "whole: %q, %d tokens out\n", whole.Text(), whole.Usage.OutputTokens)

	var text string
	_, err = genkit.Generate(ctx, g, ai.WithModelName("openai/gpt-4o-mini"), ai.WithPrompt("Say abc three times."),
		ai.WithStreaming(func(_ context.Context, piece *ai.ModelResponseChunk) error {
			text += piece.Text()
			return nil
		}))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "stream: %q\n", text)
	b.Report(w)
	return nil
}
