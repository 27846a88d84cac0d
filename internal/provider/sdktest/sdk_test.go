// Package sdktest lets the official Go clients talk to the provider in the box:
// what they accept is what a provider sends. It is a module of its own, so that
// the clients are nobody else's dependencies.
package sdktest

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	aopt "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	goopenai "github.com/sashabaranov/go-openai"
	"github.com/tripmeter/tripmeter/internal/provider"
)

func box(t *testing.T, o provider.Options) (*provider.Provider, *http.Client) {
	t.Helper()
	o.Key = "k"
	p, err := provider.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p, &http.Client{Transport: p.RoundTripper()}
}

func TestOpenAI(t *testing.T) {
	_, hc := box(t, provider.Options{Output: provider.Constant(7)})
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
	p, hc := box(t, provider.Options{Limits: provider.Limits{RPM: 60}, StartSpent: 100})
	c := openai.NewClient(option.WithAPIKey("k"), option.WithHTTPClient(hc), option.WithBaseURL("http://box/v1/"), option.WithMaxRetries(0))
	_, err := c.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}})
	var ae *openai.Error
	if !errors.As(err, &ae) || ae.StatusCode != 429 || ae.Code != "rate_limit_exceeded" || ae.Type != "requests" || ae.Response.Header.Get("Retry-After") != "1" {
		t.Fatal(err)
	}
	t.Log(ae.Message, p.Stats())
}

func TestGoOpenAI(t *testing.T) {
	_, hc := box(t, provider.Options{Output: provider.Constant(7)})
	cfg := goopenai.DefaultConfig("k")
	cfg.HTTPClient, cfg.BaseURL = hc, "http://box/v1"
	c := goopenai.NewClientWithConfig(cfg)
	ctx := context.Background()
	req := goopenai.ChatCompletionRequest{Model: "gpt-4o-mini", Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "hello"}}}
	r, err := c.CreateChatCompletion(ctx, req)
	if err != nil || r.Usage.CompletionTokens != 7 {
		t.Fatal(err, r)
	}
	req.StreamOptions = &goopenai.StreamOptions{IncludeUsage: true}
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
	e, err := c.CreateEmbeddings(ctx, goopenai.EmbeddingRequest{Model: "text-embedding-3-small", Input: []string{"x"}, EncodingFormat: "base64"})
	if err != nil || len(e.Data[0].Embedding) != 8 || e.Data[0].Embedding[0] != -0.75 {
		t.Fatal(err, e)
	}
	co, err := c.CreateCompletion(ctx, goopenai.CompletionRequest{Model: "gpt-3.5-turbo-instruct", Prompt: "x"})
	if err != nil || co.Usage.CompletionTokens != 7 {
		t.Fatal(err, co)
	}
	cs, err := c.CreateCompletionStream(ctx, goopenai.CompletionRequest{Model: "gpt-3.5-turbo-instruct", Prompt: "x"})
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

func TestAnthropic(t *testing.T) {
	p, hc := box(t, provider.Options{Output: provider.Constant(7), Dialect: provider.AnthropicHeaders})
	c := anthropic.NewClient(aopt.WithAPIKey("k"), aopt.WithHTTPClient(hc), aopt.WithBaseURL("http://box/"), aopt.WithMaxRetries(0))
	ctx := context.Background()
	mp := anthropic.MessageNewParams{Model: "claude-haiku-4-5", MaxTokens: 100, System: []anthropic.TextBlockParam{{Text: "abcd"}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))}}
	m, err := c.Messages.New(ctx, mp)
	if err != nil || m.Usage.OutputTokens != 7 || m.Usage.InputTokens != 1+1+1+2 || m.StopReason != "end_turn" || m.Content[0].Text == "" {
		t.Fatalf("%v %+v", err, m)
	}
	s := c.Messages.NewStreaming(ctx, mp)
	acc := anthropic.Message{}
	for s.Next() {
		if err := acc.Accumulate(s.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if s.Err() != nil || acc.Usage.OutputTokens != 7 || acc.Content[0].Text != m.Content[0].Text || acc.StopReason != "end_turn" {
		t.Fatalf("%v %+v", s.Err(), acc)
	}
	p.Script(provider.Step{Kind: provider.Overloaded})
	_, err = c.Messages.New(ctx, mp)
	var ae *anthropic.Error
	if !errors.As(err, &ae) || ae.StatusCode != 529 {
		t.Fatal(err)
	}
	p.Script(provider.Step{Kind: provider.StreamError, Chunks: 2})
	s = c.Messages.NewStreaming(ctx, mp)
	for s.Next() {
	}
	if s.Err() == nil {
		t.Fatal("no error from an error event")
	}
	t.Log(s.Err())
}
