// Anthropic puts anthropic-sdk-go under tripmeter: messages, whole and
// streamed. Anthropic limits requests, input and output tokens apart.
//
//	go run ./anthropic
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "anthropic:", err)
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
	rt, err := transport.New(transport.Options{RPM: 600, InputTPM: 80_000, OutputTPM: 20_000}) // tripmeter
	if err != nil {                                                                            // tripmeter
		return err
	}
	client := anthropic.NewClient(
		option.WithBaseURL(b.URL),
		option.WithAPIKey(box.Key),
		option.WithHTTPClient(&http.Client{Transport: rt}), option.WithMaxRetries(0), // tripmeter
	)

	ctx := context.Background()
	message := anthropic.MessageNewParams{
		Model:     "claude-haiku-4-5",
		MaxTokens: 50,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Say abc three times."))},
	}
	whole, err := client.Messages.New(ctx, message)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "message: %q, %d tokens out\n", whole.Content[0].Text, whole.Usage.OutputTokens)

	stream := client.Messages.NewStreaming(ctx, message)
	defer stream.Close()
	var sum anthropic.Message
	for stream.Next() {
		if err := sum.Accumulate(stream.Current()); err != nil {
			return err
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	fmt.Fprintf(w, "stream: %q, %d tokens out\n", sum.Content[0].Text, sum.Usage.OutputTokens)
	b.Report(w)
	return nil
}
