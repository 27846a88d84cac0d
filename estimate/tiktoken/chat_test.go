package tiktoken

import (
	"testing"
)

// The sample chats, their totals and the sample strings come from
// openai/openai-cookbook, examples/How_to_count_tokens_with_tiktoken.ipynb
// (MIT). The notebook prints them beside the API's own counts.

var sampleChat = []Message{
	{Role: "system", Content: "You are a helpful, pattern-following assistant that translates corporate jargon into plain English."},
	{Role: "system", Name: "example_user", Content: "New synergies will help drive top-line growth."},
	{Role: "system", Name: "example_assistant", Content: "Things working well together will increase revenue."},
	{Role: "system", Name: "example_user", Content: "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."},
	{Role: "system", Name: "example_assistant", Content: "Let's talk later when we're less busy about how to do better."},
	{Role: "user", Content: "This late pivot means we don't have time to boil the ocean for the client deliverable."},
}

var sampleToolChat = []Message{
	{Role: "system", Content: "You are a helpful assistant that can answer to questions about the weather."},
	{Role: "user", Content: "What's the weather like in San Francisco?"},
}

var sampleFunctions = []Function{{
	Name:        "get_current_weather",
	Description: "Get the current weather in a given location",
	Properties: []Property{
		{Name: "location", Type: "string", Description: "The city and state, e.g. San Francisco, CA"},
		{Name: "unit", Type: "string", Description: "The unit of temperature to return", Enum: []string{"celsius", "fahrenheit"}},
	},
}}

func TestChatsCostThePublishedTotals(t *testing.T) {
	c := New(Options{Models: map[string]string{"deployment": "gpt-35-turbo"}})
	for model, want := range map[string]int64{
		"gpt-3.5-turbo-0301": 127,
		"gpt-3.5-turbo-0613": 129,
		"gpt-3.5-turbo":      129,
		"gpt-4-0314":         129,
		"gpt-4-0613":         129,
		"gpt-4":              129,
		"gpt-4o":             124,
		"gpt-4o-mini":        124,
		"deployment":         129,
	} {
		if got := c.Chat(model, sampleChat, nil); got != want {
			t.Errorf("%s: %d tokens, published %d", model, got, want)
		}
	}
	for model, want := range map[string]int64{"gpt-3.5-turbo": 105, "gpt-4": 105, "gpt-4o": 101, "gpt-4o-mini": 101} {
		if got := c.Chat(model, sampleToolChat, sampleFunctions); got != want {
			t.Errorf("%s with a function: %d tokens, published %d", model, got, want)
		}
	}
	if n := c.Fallbacks(); n != 0 {
		t.Errorf("%d fallbacks", n)
	}
}

func TestStringsCostThePublishedCounts(t *testing.T) {
	c := New(Options{})
	for text, want := range map[string][encodings]int64{
		"antidisestablishmentarianism": {6, 6, 5, 5},
		"2 + 2 = 4":                    {7, 7, 5, 5},
		"お誕生日おめでとう":                    {8, 9, 14, 14},
	} {
		for e := range encodings {
			if got := c.CountString(modelFor[e], text); got != want[e] {
				t.Errorf("%v: %q is %d tokens, published %d", e, text, got, want[e])
			}
		}
	}
}

// TestChatIsASum takes a chat apart.
func TestChatIsASum(t *testing.T) {
	c := New(Options{})
	const model = "gpt-4o"
	n := func(s string) int64 { return c.CountString(model, s) }
	f := func(p ...Property) []Function { return []Function{{Name: "f", Description: "Does it.", Properties: p}} }
	for _, test := range []struct {
		name      string
		messages  []Message
		functions []Function
		want      int64
	}{
		{"nothing", nil, nil, 3},
		{"empty message", []Message{{}}, nil, 3 + 3},
		{"message", []Message{{Role: "user", Content: "hello there"}}, nil, 3 + 3 + n("user") + n("hello there")},
		{"name", []Message{{Role: "user", Name: "Ada"}}, nil, 3 + 3 + n("user") + 1 + n("Ada")},
		{"function", nil, f(), 3 + 12 + 7 + n("f:Does it")},
		{"property", nil, f(Property{"p", "integer", "How many.", nil}), 3 + 12 + 7 + n("f:Does it") + 3 + 3 + n("p:integer:How many")},
		{"enum", nil, f(Property{"p", "string", "", []string{"x", "y z"}}), 3 + 12 + 7 + n("f:Does it") + 3 + 3 + n("p:string:") - 3 + 3 + n("x") + 3 + n("y z")},
	} {
		if got := c.Chat(model, test.messages, test.functions); got != test.want {
			t.Errorf("%s: %d tokens, want %d", test.name, got, test.want)
		}
	}
}
