// Openaigo puts openai-go under tripmeter: chat, whole and streamed, and the
// responses API.
//
//	go run ./openaigo
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "openaigo:", err)
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
	client := openai.NewClient(
		option.WithBaseURL(b.URL+"/v1/"),
		option.WithAPIKey(box.Key),
		option.WithHTTPClient(&http.Client{Transport: rt}), option.WithMaxRetries(0), // tripmeter
	)

	ctx := context.Background()
	chat := openai.ChatCompletionNewParams{
		Model:               "gpt-4o-mini",
		MaxCompletionTokens: openai.Int(50),
		Messages:            []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Say abc three times.")},
	}
	whole, err := client.Chat.Completions.New(ctx, chat)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "chat: %q, %d tokens out\n", whole.Choices[0].Message.Content, whole.Usage.CompletionTokens)

	stream := client.Chat.Completions.NewStreaming(ctx, chat)
	defer stream.Close()
	var sum openai.ChatCompletionAccumulator
	for stream.Next() {
		sum.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		return err
	}
	fmt.Fprintf(w, "stream: %q\n", sum.Choices[0].Message.Content)

	answer, err := client.Responses.New(ctx, responses.ResponseNewParams{
		Model:           "gpt-4o-mini",
		MaxOutputTokens: openai.Int(50),
		Input:           responses.ResponseNewParamsInputUnion{OfString: openai.String("Say abc three times.")},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "responses: %q\n", answer.OutputText())
	b.Report(w)
	return nil
}
