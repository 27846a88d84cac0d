package tiktoken_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/estimate/tiktoken"
)

// sampleBody is the sample chat of openai/openai-cookbook,
// examples/How_to_count_tokens_with_tiktoken.ipynb (MIT), as a client sends it.
const sampleBody = `{"model":%q,"messages":[` +
	`{"role":"system","content":"You are a helpful, pattern-following assistant that translates corporate jargon into plain English."},` +
	`{"role":"system","name":"example_user","content":"New synergies will help drive top-line growth."},` +
	`{"role":"system","name":"example_assistant","content":"Things working well together will increase revenue."},` +
	`{"role":"system","name":"example_user","content":"Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."},` +
	`{"role":"system","name":"example_assistant","content":"Let's talk later when we're less busy about how to do better."},` +
	`{"role":"user","content":"This late pivot means we don't have time to boil the ocean for the client deliverable."}],"temperature":0}`

// Package estimate with a Counter gives for a body the
// totals that the cookbook publishes beside what the API reported.
func TestInspectGivesThePublishedTotals(t *testing.T) {
	c := tiktoken.New(tiktoken.Options{Models: map[string]string{"prod-chat": "gpt-4o"}})
	for model, want := range map[string]int64{
		"gpt-3.5-turbo-0301": 127,
		"gpt-3.5-turbo-0613": 129,
		"gpt-3.5-turbo":      129,
		"gpt-4-0314":         129,
		"gpt-4-0613":         129,
		"gpt-4":              129,
		"gpt-4o":             124,
		"gpt-4o-mini":        124,
		"openai/gpt-4o":      124,
		"prod-chat":          124,
	} {
		body := fmt.Appendf(nil, sampleBody, model)
		for name, body := range map[string][]byte{
			"plain":   body,
			"parts":   parts(t, body),
			"escaped": escaped(body),
		} {
			if r := estimate.Inspect(body, estimate.Options{Counter: c}); r.Input != want || !r.Understood {
				t.Errorf("%s, %s: %d tokens, published %d", model, name, r.Input, want)
			}
		}
	}
	// An Azure deployment is named by the path alone.
	body := strings.Replace(fmt.Sprintf(sampleBody, ""), `"model":"",`, "", 1)
	r := estimate.Inspect([]byte(body), estimate.Options{Counter: c, Path: "/openai/deployments/prod-chat/chat/completions"})
	if r.Input != 124 {
		t.Errorf("deployment: %d tokens, published 124", r.Input)
	}
	if n := c.Fallbacks(); n != 0 {
		t.Errorf("%d fallbacks", n)
	}
}

// parts writes each content as a list of one text part.
func parts(t *testing.T, body []byte) []byte {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	for _, m := range v["messages"].([]any) {
		m := m.(map[string]any)
		m["content"] = []any{map[string]any{"type": "text", "text": m["content"]}}
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// escaped writes blanks and apostrophes as \u escapes.
func escaped(body []byte) []byte {
	return []byte(strings.NewReplacer(` `, `\u0020`, `'`, `\u0027`).Replace(string(body)))
}

// These models see definitions in a shorter form than the JSON of the request. The
// count is near the published one for that form.
func TestToolsCountAsTheFormThatTheModelSees(t *testing.T) {
	const body = `{"model":%q,"messages":[` +
		`{"role":"system","content":"You are a helpful assistant that can answer to questions about the weather."},` +
		`{"role":"user","content":"What's the weather like in San Francisco?"}],` +
		`"tools":[{"type":"function","function":{"name":"get_current_weather","description":"Get the current weather in a given location",` +
		`"parameters":{"type":"object","properties":{"location":{"type":"string","description":"The city and state, e.g. San Francisco, CA"},` +
		`"unit":{"type":"string","description":"The unit of temperature to return","enum":["celsius","fahrenheit"]}},"required":["location"]}}}]}`
	c := tiktoken.New(tiktoken.Options{})
	for model, published := range map[string]int64{"gpt-3.5-turbo": 105, "gpt-4": 105, "gpt-4o": 101, "gpt-4o-mini": 101} {
		exact := estimate.Inspect(fmt.Appendf(nil, body, model), estimate.Options{Counter: c})
		fast := estimate.Inspect(fmt.Appendf(nil, body, model), estimate.Options{})
		for name, r := range map[string]estimate.Request{"exact": exact, "fast": fast} {
			if r.Input < published*17/20 || r.Input > published*23/20 {
				t.Errorf("%s, %s: %d tokens, published %d", model, name, r.Input, published)
			}
		}
	}
}

// This package and estimate read the escapes of a JSON string alike.
// They share no code, so that each is useful alone.
func TestEscapesAreReadAlikeInBothPackages(t *testing.T) {
	c := tiktoken.New(tiktoken.Options{})
	seeds := []string{``, `a`, `\n`, `\"\\\/\b\f\n\r\t`, `\u00e9`, `\u4EBA\u4eba`, `\ud83d\ude00`, `\ud83d`, `\ude00x`, `\ud83d\u0041`, `\ud83d\ud83d\ude00`,
		`\`, `\u`, `\u12`, `\u12g4`, `\q`, `\\u0041`, `\ud83d\`, `\ud83d\u`, "\xff\\n\xe4", "人\\n生", `\U0041`}
	n := 0
	for _, a := range seeds {
		for _, b := range seeds {
			raw := []byte(a + b)
			if got, want := c.CountJSON("gpt-4o", raw), c.Count("gpt-4o", estimate.AppendText(nil, raw)); got != want {
				t.Errorf("%q: %d tokens, as text %d", raw, got, want)
			}
			n++
		}
	}
	if n == 0 {
		t.Fatal("nothing was tried")
	}
}
