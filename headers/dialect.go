package headers

import "time"

// A Dialect is what a provider's documentation adds to its header fields. All
// other reading is the same for every provider. The zero value adds nothing.
type Dialect struct {
	// Windows gives the windows that no field states. A window is believed only
	// where a limit and a remaining are both there.
	Windows []FieldWindow

	// StreamRefusal says that a Retry-After on an event stream with status 200 is
	// a refusal that came after the status line.
	StreamRefusal bool
}

// A FieldWindow is the window of the fields of one dimension.
type FieldWindow struct {
	// Dimension is the name as in Info, such as "requests" or "api_key_tokens".
	// Empty is the fields that name no dimension.
	Dimension string
	// Swapped selects the spelling that has the dimension in front:
	// x-ratelimit-requests-limit and not x-ratelimit-limit-requests.
	Swapped bool
	// Window is how long the window is.
	Window time.Duration
}

const day = 24 * time.Hour

// window returns the window that d states for a dimension, or zero.
func (d *Dialect) window(dimension string, swapped bool) time.Duration {
	for _, w := range d.Windows {
		if w.Dimension == dimension && w.Swapped == swapped {
			return w.Window
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
	{prefix: "ratelimitbysize-", dim: tokens, source: "Mistral until January 2025, recorded: the size of a call in tokens"},
	{prefix: "x-ratelimitbysize-", dim: tokens, source: "the same by window: x-ratelimitbysize-limit-minute"},
	{prefix: "anthropic-ratelimit-", window: time.Minute, source: "Anthropic, Rate limits: all are per minute"},
	{prefix: "x-trial-endpoint-call-", dim: requests, window: time.Minute, source: "Cohere, Rate limits: trial calls per minute"},
	{prefix: "x-endpoint-monthly-call-", dim: requests, calendar: "month", source: "Cohere, Rate limits: calls per month"},
}
