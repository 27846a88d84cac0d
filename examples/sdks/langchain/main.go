// Langchain puts a langchaingo model under tripmeter, streaming included. Any
// langchaingo model that takes an HTTP client goes the same way.
//
//	go run ./langchain
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "langchain:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	b, err := box.Open()
	if err != nil {
		return err
	}
	defer b.Close()

	// The change, 3 lines.
	rt, err := transport.New(transport.Options{RPM: 600, TPM: 100_000}) // tripmeter
	if err != nil {                                                     // tripmeter
		return err
	}
	llm, err := openai.New(
		openai.WithBaseURL(b.URL+"/v1"),
		openai.WithToken(box.Key),
		openai.WithModel("gpt-4o-mini"),
		openai.WithHTTPClient(&http.Client{Transport: rt}), // tripmeter
	)
	if err != nil {
		return err
	}

	ctx := context.Background()
	whole, err := llms.GenerateFromSinglePrompt(ctx, llm, "Say abc three times.", llms.WithMaxTokens(50))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "whole: %q\n", whole)

	pieces := 0
	streamed, err := llms.GenerateFromSinglePrompt(ctx, llm, "Say abc three times.", llms.WithMaxTokens(50),
		llms.WithStreamingFunc(func(_ context.Context, piece []byte) error {
			if len(piece) > 0 {
				pieces++
			}
			return nil
		}))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "stream: %q in %d pieces\n", streamed, pieces)
	b.Report(w)
	return nil
}
