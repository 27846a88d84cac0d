// Eino puts the OpenAI model of cloudwego/eino under tripmeter: an answer, whole
// and streamed.
//
//	go run ./eino
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/schema"
	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "eino:", err)
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
	model, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{
		BaseURL:    b.URL + "/v1",
		APIKey:     box.Key,
		Model:      "gpt-4o-mini",
		MaxTokens:  &most,
		HTTPClient: &http.Client{Transport: rt}, // tripmeter
	})
	if err != nil {
		return err
	}

	question := []*schema.Message{schema.UserMessage("Say abc three times.")}
	whole, err := model.Generate(ctx, question)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "whole: %q, %d tokens out\n", whole.Content, whole.ResponseMeta.Usage.CompletionTokens)

	stream, err := model.Stream(ctx, question)
	if err != nil {
		return err
	}
	defer stream.Close()
	var text string
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		text += piece.Content
	}
	fmt.Fprintf(w, "stream: %q\n", text)
	b.Report(w)
	return nil
}
