package providertest

import "strings"

// A Preset is how one provider's limits moved in recorded traffic: the law of
// its limits, what a call was charged and when, and what the headers showed.
// Limits differ by account, so they are the argument of Options.
type Preset struct {
	Name string
	// From and Until are the days of the oldest and newest recording, as
	// 2026-08-19.
	From, Until string
	// Law is the preset in one sentence.
	Law string
	// Unknown is what the recordings do not show and the preset decides.
	Unknown string

	options Options
}

// Options is a provider of that kind with these limits. Change what a test
// needs before it goes to New.
func (p Preset) Options(l Limits) Options {
	o := p.options
	o.Limits = l
	return o
}

// Presets are all providers that were recorded often enough to say how they
// move. The list is a new one at each call.
func Presets() []Preset { return append([]Preset(nil), presets...) }

// PresetNamed is the preset of that name, in any case. The names are not those of
// package profile: a provider has a preset for each law that was recorded, such as
// "openai-chat", "openai-responses" and "anthropic". [Presets] lists them.
func PresetNamed(name string) (Preset, bool) {
	for _, p := range presets {
		if strings.EqualFold(p.Name, name) {
			return p, true
		}
	}
	return Preset{}, false
}

// enforced is what no recording decides: every recorded 429 of these providers
// was a request larger than its limit.
const enforced = "whether the limit in the headers is also the one that refuses: the preset enforces what it shows"

var presets = []Preset{
	{
		Name: "openai-chat", From: "2025-03-20", Until: "2026-08-19",
		Law:     "buckets of a full minute; a quarter of the characters is charged on arrival and never corrected",
		Unknown: enforced,
		options: Options{Charge: PromptOnly, Dialect: OpenAIHeaders, RetryAfter: RetryAfterMillis},
	},
	{
		Name: "openai-responses", From: "2025-03-20", Until: "2026-08-19",
		Law:     "buckets of a full minute; the actual prompt and 19 tokens (217 with tools) are charged on arrival",
		Unknown: enforced,
		options: Options{Charge: PromptOnly, Dialect: OpenAIHeaders, RetryAfter: RetryAfterMillis, EstimatePrompt: promptAnd(19, 217)},
	},
	{
		Name: "openai-gpt5", From: "2025-08-07", Until: "2026-08-19",
		Law: "buckets of a full minute; the actual prompt and a reserve of 163 tokens (452 with tools) on arrival, " +
			"the output beyond the reserve at the end, and headers of whole answers read there",
		Unknown: enforced,
		options: Options{Charge: Beyond, Dialect: OpenAIHeaders, RetryAfter: RetryAfterMillis, Reading: ReadAtEnd,
			Reserve: func(p Prompt) int64 { return ifTools(p, 163, 452) }},
	},
	{
		Name: "anthropic", From: "2024-11-14", Until: "2026-08-20",
		Law: "buckets of a full minute; the prompt without cache reads on arrival, the output at the end; " +
			"headers read at the answer, tokens rounded to 1,000, reset an instant in whole seconds",
		Unknown: enforced,
		options: Options{Charge: Actual, CachedFree: true, Dialect: AnthropicHeaders, RoundRemaining: 1000,
			Reading: ReadAtAnswer, CombinedTokens: true},
	},
	{
		Name: "anthropic-2024", From: "2024-04-07", Until: "2024-06-12",
		Law:     "fixed minutes that begin at a second of the organisation's own; reset is that instant",
		Unknown: "what a call was charged in 2024: the preset charges as today",
		options: Options{Algorithm: FixedMinute, Phase: OwnPhase, PhaseOffset: 29e9, Charge: Actual, CachedFree: true,
			Dialect: AnthropicHeaders, RoundRemaining: 1000, Reading: ReadAtAnswer},
	},
	{
		Name: "azure-2025", From: "2025-07-01", Until: "2026-03-03",
		Law:     "sliding minutes with no reset field; a quarter of the characters on arrival, the output cap not",
		Unknown: enforced,
		options: Options{Algorithm: SlidingMinute, Charge: PromptOnly, Dialect: AzureHeaders, Reset: NoReset, RefusedZero: true},
	},
	{
		Name: "azure", From: "2026-03-31", Until: "2026-08-19",
		Law: "buckets of a full minute, reset in whole seconds rounded down; a quarter of the characters on arrival; " +
			"a refusal shows 0 left",
		Unknown: enforced,
		options: Options{Charge: PromptOnly, Dialect: AzureHeaders, Reset: ResetSeconds, RefusedZero: true},
	},
	{
		Name: "groq", From: "2024-04-28", Until: "2025-02-19",
		Law: "a bucket of a minute for tokens and of a day for requests; the prompt on arrival, the output when it ends",
		Unknown: "the law of requests a day, whose reset counts from the last call only: the preset has a bucket; " +
			"whether the limit in the headers is the one that refuses",
		options: Options{Charge: Actual, Dialect: OpenAIHeaders, RetryAfter: RetryAfterFraction},
	},
	{
		Name: "xai", From: "2026-01-16", Until: "2026-08-12",
		Law: "sliding minutes with no reset field; prompt and output are charged at the end; headers read before the call, " +
			"and a quarter of them from a counter that shows nothing used",
		Unknown: "how several counters share the limit: the preset enforces one",
		options: Options{Algorithm: SlidingMinute, Charge: Afterwards, Dialect: OpenAIHeaders, Reset: NoReset,
			Reading: ReadBefore, ShowUnused: 25},
	},
	{
		Name: "mistral-2025", From: "2025-07-01", Until: "2025-10-31",
		Law:     "fixed minutes from the first call, no reset field; the total less cached tokens after the call, shown in its own answer",
		Unknown: "whether a call under way is counted before it ends: the preset does not",
		options: Options{Algorithm: FixedMinute, Phase: FirstCall, Charge: Afterwards, CachedFree: true,
			Dialect: MistralHeaders, Reading: ReadAtEnd},
	},
	{
		Name: "mistral", From: "2026-01-01", Until: "2026-08-19",
		Law:     "two weighted minutes counted from the first call after a rest, no reset field; charged as mistral-2025",
		Unknown: "whether a call under way is counted before it ends: the preset does not",
		options: Options{Algorithm: WeightedMinutes, Phase: FirstCall, Charge: Afterwards, CachedFree: true,
			Dialect: MistralHeaders, Reading: ReadAtEnd},
	},
}

// promptAnd is the prompt and so many tokens more, with and without tools.
func promptAnd(plain, tools int64) func(Prompt) int64 {
	return func(p Prompt) int64 { return DefaultCount(p) + ifTools(p, plain, tools) }
}

func ifTools(p Prompt, plain, tools int64) int64 {
	if p.Tools != "" {
		return tools
	}
	return plain
}
