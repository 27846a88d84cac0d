package main

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
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

func TestAnthropic(t *testing.T) {
	p, hc := plain(t, providertest.Options{Output: providertest.Constant(7), Dialect: providertest.AnthropicHeaders})
	c := anthropic.NewClient(option.WithAPIKey("k"), option.WithHTTPClient(hc), option.WithBaseURL("http://box/"), option.WithMaxRetries(0))
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
	p.Script(providertest.Step{Kind: providertest.Overloaded})
	_, err = c.Messages.New(ctx, mp)
	var ae *anthropic.Error
	if !errors.As(err, &ae) || ae.StatusCode != 529 {
		t.Fatal(err)
	}
	p.Script(providertest.Step{Kind: providertest.StreamError, Chunks: 2})
	s = c.Messages.NewStreaming(ctx, mp)
	for s.Next() {
	}
	if s.Err() == nil {
		t.Fatal("no error from an error event")
	}
	t.Log(s.Err())
}
