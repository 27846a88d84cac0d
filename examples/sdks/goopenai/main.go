// Goopenai puts sashabaranov/go-openai under tripmeter: chat, whole and
// streamed.
//
//	go run ./goopenai
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	openai "github.com/sashabaranov/go-openai"
	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "goopenai:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	b, err := box.Open()
	if err != nil {
		return err
	}
	defer b.Close()

	config := openai.DefaultConfig(box.Key)
	config.BaseURL = b.URL + "/v1"
	// The change, 3 lines.
	rt, err := transport.New(transport.Options{RPM: 600, TPM: 100_000}) // tripmeter
	if err != nil {                                                     // tripmeter
		return err
	}
	config.HTTPClient = &http.Client{Transport: rt} // tripmeter
	client := openai.NewClientWithConfig(config)

	ctx := context.Background()
	chat := openai.ChatCompletionRequest{
		Model:               "gpt-4o-mini",
		MaxCompletionTokens: 50,
		Messages:            []openai.ChatCompletionMessage{{Role: "user", Content: "Say abc three times."}},
	}
	whole, err := client.CreateChatCompletion(ctx, chat)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "chat: %q, %d tokens out\n", whole.Choices[0].Message.Content, whole.Usage.CompletionTokens)

	stream, err := client.CreateChatCompletionStream(ctx, chat)
	if err != nil {
		return err
	}
	defer stream.Close()
	var text string
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		text += chunk.Choices[0].Delta.Content
	}
	fmt.Fprintf(w, "stream: %q\n", text)
	b.Report(w)
	return nil
}
