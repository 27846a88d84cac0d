package main

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
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

func TestOpenAI(t *testing.T) {
	_, hc := plain(t, providertest.Options{Output: providertest.Constant(7)})
	c := openai.NewClient(option.WithAPIKey("k"), option.WithHTTPClient(hc), option.WithBaseURL("http://box/v1/"))
	ctx := context.Background()
	cp := openai.ChatCompletionNewParams{Model: "gpt-4o-mini", N: openai.Int(2),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello there"), openai.SystemMessage("x")}}
	r, err := c.Chat.Completions.New(ctx, cp)
	if err != nil {
		t.Fatal(err)
	}
	if r.Usage.CompletionTokens != 14 || r.Usage.PromptTokens != 1+2+3+1 || len(r.Choices) != 2 || r.Choices[1].Message.Content == "" || r.Choices[0].FinishReason != "stop" {
		t.Fatalf("%+v", r)
	}
	cp.StreamOptions.IncludeUsage = openai.Bool(true)
	s := c.Chat.Completions.NewStreaming(ctx, cp)
	acc := openai.ChatCompletionAccumulator{}
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			t.Fatal("chunk refused")
		}
	}
	if s.Err() != nil || acc.Usage.TotalTokens != 21 || acc.Choices[1].Message.Content != r.Choices[1].Message.Content {
		t.Fatalf("%v %+v", s.Err(), acc)
	}
	rp := responses.ResponseNewParams{Model: "gpt-5", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")}}
	rr, err := c.Responses.New(ctx, rp)
	if err != nil || rr.OutputText() != "abc abc abc abc abc abc abc " || rr.Usage.OutputTokens != 7 || rr.Status != "completed" {
		t.Fatalf("%v %+v", err, rr)
	}
	rs := c.Responses.NewStreaming(ctx, rp)
	var text string
	var done bool
	for rs.Next() {
		switch e := rs.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += e.Delta
		case responses.ResponseCompletedEvent:
			done = e.Response.Usage.TotalTokens == rr.Usage.TotalTokens
		}
	}
	if rs.Err() != nil || text != rr.OutputText() || !done {
		t.Fatal(rs.Err(), text, done)
	}
	e, err := c.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: "text-embedding-3-small", Dimensions: openai.Int(5),
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}}})
	if err != nil || len(e.Data) != 2 || len(e.Data[1].Embedding) != 5 {
		t.Fatal(err, e)
	}
	co, err := c.Completions.New(ctx, openai.CompletionNewParams{Model: "gpt-3.5-turbo-instruct", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("x")}})
	if err != nil || co.Usage.CompletionTokens != 7 {
		t.Fatal(err, co)
	}
	ms, err := c.Models.List(ctx)
	if err != nil || len(ms.Data) != 3 {
		t.Fatal(err, ms)
	}
	bad := openai.NewClient(option.WithAPIKey("wrong"), option.WithHTTPClient(hc), option.WithBaseURL("http://box/v1/"))
	_, err = bad.Chat.Completions.New(ctx, cp)
	var ae *openai.Error
	if !errors.As(err, &ae) || ae.StatusCode != 401 || ae.Code != "invalid_api_key" {
		t.Fatal(err)
	}
}

func TestOpenAIRefused(t *testing.T) {
	p, hc := plain(t, providertest.Options{Limits: providertest.Limits{RPM: 60}, StartSpent: 100})
	c := openai.NewClient(option.WithAPIKey("k"), option.WithHTTPClient(hc), option.WithBaseURL("http://box/v1/"), option.WithMaxRetries(0))
	_, err := c.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}})
	var ae *openai.Error
	if !errors.As(err, &ae) || ae.StatusCode != 429 || ae.Code != "rate_limit_exceeded" || ae.Type != "requests" || ae.Response.Header.Get("Retry-After") != "1" {
		t.Fatal(err)
	}
	t.Log(ae.Message, p.Stats())
}
