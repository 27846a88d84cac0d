// Ollama puts Ollama's own client under tripmeter: chat, whole and streamed.
// A model at home has no limit a minute, but only so many calls fit at once.
//
//	go run ./ollama
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/ollama/ollama/api"
	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ollama:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	server := box.OpenOllama()
	defer server.Close()
	base, err := url.Parse(server.URL)
	if err != nil {
		return err
	}

	hc := &http.Client{}
	// The change, 2 lines.
	hc.Transport, err = transport.New(transport.Options{MaxInFlight: 2}) // tripmeter
	if err != nil {                                                      // tripmeter
		return err
	}
	client := api.NewClient(base, hc)

	stream := false
	chat := &api.ChatRequest{
		Model:    "llama3.2",
		Messages: []api.Message{{Role: "user", Content: "Say abc three times."}},
		Options:  map[string]any{"num_predict": 50},
		Stream:   &stream,
	}
	for _, stream = range []bool{false, true} {
		var text string
		pieces, out := 0, 0
		err := client.Chat(context.Background(), chat, func(r api.ChatResponse) error {
			text += r.Message.Content
			pieces, out = pieces+1, r.EvalCount
			return nil
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "stream %t: %q in %d, %d tokens out\n", stream, text, pieces, out)
	}
	return nil
}
