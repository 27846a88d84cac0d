// Anyllm puts mozilla-ai/any-llm-go under tripmeter: a chat completion, whole and
// streamed, of its OpenAI provider.
//
//	go run ./anyllm
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	anyllm "github.com/mozilla-ai/any-llm-go"
	"github.com/mozilla-ai/any-llm-go/providers/openai"
	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "anyllm:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	b, err := box.Open()
	if err != nil {
		return err
	}
	defer b.Close()
	ctx, most := context.Background(), 50

	// The change, 3 lines.
	rt, err := transport.New(transport.Options{RPM: 600, TPM: 100_000}) // tripmeter
	if err != nil {                                                     // tripmeter
		return err
	}
	provider, err := openai.New(
		anyllm.WithBaseURL(b.URL+"/v1"),
		anyllm.WithAPIKey(box.Key),
		anyllm.WithHTTPClient(&http.Client{Transport: rt}), // tripmeter
	)
	if err != nil {
		return err
	}

	params := anyllm.CompletionParams{
		Model: "gpt-4o-mini", MaxTokens: &most,
		Messages: []anyllm.Message{{Role: anyllm.RoleUser, Content: "Say abc three times."}},
	}
	whole, err := provider.Completion(ctx, params)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "whole: %q, %d tokens out\n", whole.Choices[0].Message.Content, whole.Usage.CompletionTokens)

	var text string
	pieces, failed := provider.CompletionStream(ctx, params)
	for piece := range pieces {
		if len(piece.Choices) > 0 {
			text += piece.Choices[0].Delta.Content
		}
	}
	if err := <-failed; err != nil {
		return err
	}
	fmt.Fprintf(w, "stream: %q\n", text)
	b.Report(w)
	return nil
}
