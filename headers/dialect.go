package headers

import "time"

// A dialect is what a provider's documentation adds to its header fields: the
// windows that no field states, and what a Retry-After on a success means.
// Everything else is read the same way for everybody.
type dialect struct {
	names  []string // as given in Options.Dialect, in any case; here in lower case
	source string   // where it was read
	read   string   // when
	stated []stated
	// streamRefusal: a Retry-After on an event stream with status 200 is a
	// refusal that came after the status line.
	streamRefusal bool
}

// stated is the window of a dimension. Name is the name as in Info; empty is
// the value that names no dimension. swapped is the spelling with the dimension
// in front: x-ratelimit-requests-limit.
type stated struct {
	name    string
	swapped bool
	window  time.Duration
}

const day = 24 * time.Hour

var dialects = []dialect{
	{
		names:  []string{"groq"},
		source: "Groq, Rate Limits: requests fields refer to requests per day, tokens fields to tokens per minute",
		read:   "2026-10",
		stated: []stated{{name: "requests", window: day}, {name: "tokens", window: time.Minute}},
	},
	{
		names:  []string{"litellm-proxy", "litellm"},
		source: "LiteLLM, Budgets and Rate Limits: key limits are per minute",
		read:   "2026-10",
		stated: []stated{
			{name: "api_key_requests", window: time.Minute},
			{name: "api_key_tokens", window: time.Minute},
			{name: "model_per_key_requests", window: time.Minute},
			{name: "model_per_key_tokens", window: time.Minute},
		},
	},
	{
		names:         []string{"azure-openai", "azure"},
		source:        "Azure OpenAI Responses API, recorded August 2026: Retry-After on every refused stream and on no accepted call",
		read:          "2026-08",
		streamRefusal: true,
	},
	{
		names:  []string{"api-football"},
		source: "API-Football, Rate limits: the requests pair is per day, the plain pair per minute",
		read:   "2026-10",
		stated: []stated{{name: "requests", swapped: true, window: day}, {window: time.Minute}},
	},
}

// findDialect returns the named dialect, or nil: generic.
func findDialect(name string) *dialect {
	if name == "" {
		return nil
	}
	for i := range dialects {
		for _, n := range dialects[i].names {
			if foldEqual(name, n) {
				return &dialects[i]
			}
		}
	}
	return nil
}

// window returns the window that d states for a dimension, or zero.
func (d *dialect) window(name string, swapped bool) time.Duration {
	if d == nil {
		return 0
	}
	for _, s := range d.stated {
		if s.name == name && s.swapped == swapped {
			return s.window
		}
	}
	return 0
}

// A family is a set of fields with a common prefix. What the prefix itself says
// about its fields stands here.
type family struct {
	prefix   string // lower case
	dim      dimension
	window   time.Duration // of every field in the family; 0: its name says
	calendar string        // the same for a window without a fixed length
	source   string
}

var families = []family{
	{prefix: "x-ratelimit-", source: "OpenAI, Rate limits: header fields; and most others"},
	{prefix: "ratelimit-", source: "draft-ietf-httpapi-ratelimit-headers-03 to -06"},
	{prefix: "x-rate-limit-", source: "Azure OpenAI's other spelling (openai/openai-python#937)"},
	{prefix: "anthropic-ratelimit-", window: time.Minute, source: "Anthropic, Rate limits: all are per minute"},
	{prefix: "x-trial-endpoint-call-", dim: requests, window: time.Minute, source: "Cohere, Rate limits: trial calls per minute"},
	{prefix: "x-endpoint-monthly-call-", dim: requests, calendar: "month", source: "Cohere, Rate limits: calls per month"},
}
