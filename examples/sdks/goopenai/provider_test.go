package main

import (
	"context"
	"net/http"
	"testing"

	openai "github.com/sashabaranov/go-openai"
	"github.com/tripmeter/tripmeter/providertest"
)

// What the SDK accepts is what a provider sends: this is a test of the provider
// in the box, without tripmeter.

// plain is a client of the provider, with nothing between.
func plain(t *testing.T, o providertest.Options) (*providertest.Provider, *http.Client) {
	t.Helper()
	o.Key = "k"
	p, err := providertest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p, &http.Client{Transport: p.RoundTripper()}
}

func TestGoOpenAI(t *testing.T) {
	_, hc := plain(t, providertest.Options{Output: providertest.Constant(7)})
	cfg := openai.DefaultConfig("k")
	cfg.HTTPClient, cfg.BaseURL = hc, "http://box/v1"
	c := openai.NewClientWithConfig(cfg)
	ctx := context.Background()
	req := openai.ChatCompletionRequest{Model: "gpt-4o-mini", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "hello"}}}
	r, err := c.CreateChatCompletion(ctx, req)
	if err != nil || r.Usage.CompletionTokens != 7 {
		t.Fatal(err, r)
	}
	req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	s, err := c.CreateChatCompletionStream(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	total := 0
	for {
		ch, err := s.Recv()
		if err != nil {
			if err.Error() != "EOF" {
				t.Fatal(err)
			}
			break
		}
		if len(ch.Choices) > 0 {
			text += ch.Choices[0].Delta.Content
		}
		if ch.Usage != nil {
			total = ch.Usage.TotalTokens
		}
	}
	if text != r.Choices[0].Message.Content || total != r.Usage.TotalTokens {
		t.Fatal(text, total)
	}
	e, err := c.CreateEmbeddings(ctx, openai.EmbeddingRequest{Model: "text-embedding-3-small", Input: []string{"x"}, EncodingFormat: "base64"})
	if err != nil || len(e.Data[0].Embedding) != 8 || e.Data[0].Embedding[0] != -0.75 {
		t.Fatal(err, e)
	}
	co, err := c.CreateCompletion(ctx, openai.CompletionRequest{Model: "gpt-3.5-turbo-instruct", Prompt: "x"})
	if err != nil || co.Usage.CompletionTokens != 7 {
		t.Fatal(err, co)
	}
	cs, err := c.CreateCompletionStream(ctx, openai.CompletionRequest{Model: "gpt-3.5-turbo-instruct", Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		ch, err := cs.Recv()
		if err != nil {
			if err.Error() != "EOF" {
				t.Fatal(err)
			}
			break
		}
		n += len(ch.Choices[0].Text)
	}
	if n != 28 {
		t.Fatal(n)
	}
}
