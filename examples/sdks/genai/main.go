// Genai puts google.golang.org/genai under tripmeter: content, whole and
// streamed, of the Gemini API.
//
//	go run ./genai
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
	"google.golang.org/genai"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "genai:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	server := box.OpenGemini()
	defer server.Close()
	ctx := context.Background()

	// The change, 3 lines. Vertex AI needs its credentials below tripmeter:
	// Base: oauth2.Transport, as in ../oauth.
	rt, err := transport.New(transport.Options{RPM: 600, TPM: 100_000}) // tripmeter
	if err != nil {                                                     // tripmeter
		return err
	}
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey:      box.Key,
		Backend:     genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: server.URL},
		HTTPClient:  &http.Client{Transport: rt}, // tripmeter
	})
	if err != nil {
		return err
	}

	limit := &genai.GenerateContentConfig{MaxOutputTokens: 50}
	whole, err := client.Models.GenerateContent(ctx, "gemini-2.5-flash", genai.Text("Say abc three times."), limit)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "whole: %q, %d tokens out\n", whole.Text(), whole.UsageMetadata.CandidatesTokenCount)

	var text string
	for part, err := range client.Models.GenerateContentStream(ctx, "gemini-2.5-flash", genai.Text("Say abc three times."), limit) {
		if err != nil {
			return err
		}
		text += part.Text()
	}
	fmt.Fprintf(w, "stream: %q\n", text)
	return nil
}
