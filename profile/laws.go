package profile

import (
	"path"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
)

// A Scope is what a rate-limit field speaks of.
type Scope uint8

const (
	ScopeUnknown    Scope = iota
	ScopeModel            // one model
	ScopeFamily           // models whose names begin alike: gpt-4o-mini and gpt-4o-mini-audio
	ScopeSameLimit        // all models of the account with this same limit
	ScopeProject          // the project's share of one model
	ScopeAccount          // the account
	ScopeDeployment       // a deployment, whoever uses it
)

// String names the scope in lower case.
func (s Scope) String() string {
	names := [...]string{"unknown", "model", "family of models", "models of one limit", "project", "account", "deployment"}
	if int(s) < len(names) {
		return names[s]
	}
	return "no scope"
}

// A Reset is what the reset of a field says.
type Reset uint8

const (
	ResetNone    Reset = iota // there is none, or it tells nothing
	ResetMissing              // the time until a bucket is full: missing / rate
	ResetEdge                 // the time until the window ends
)

// A When is the instant that a remaining field speaks of.
type When uint8

const (
	WhenAdmitted When = iota // at admission, the call's own debit in it
	WhenAnswered             // at the end of the call, its own debit in it
	WhenBefore               // at admission, without the call's own debit
	WhenMade                 // at the end of the call, without the output it made
)

// A Span is a part of a provider's history: from a day on, and before another,
// both in UTC as "2006-01-02". "" is open.
type Span struct{ From, Until string }

// Holds reports whether t lies in s.
func (s Span) Holds(t time.Time) bool {
	if s == (Span{}) {
		return true
	}
	day := t.UTC().Format(time.DateOnly)
	return day >= s.From && (s.Until == "" || day < s.Until)
}

// A Law is what recorded traffic shows of one field of one provider in one time.
// Where nothing is known there is no row, and the policy waits for evidence.
type Law struct {
	Provider string
	Field    string // as the header has it, without prefix: "tokens", "req-minute"; * is any characters
	Span

	// Shape is how it gives back; ShapeUnknown where the records do not say.
	Shape     limit.Shape
	FirstCall bool          // windows begin with the first call after a rest
	Clock     bool          // windows begin at whole minutes, hours or days of Zone
	Zone      string        // of a day, by IANA name; "" is not known, "UTC" is
	Window    time.Duration // 0: a minute, or a day where the reset says so

	Reset   Reset
	Precise time.Duration // the unit in which reset is written
	When    When
	Lag     time.Duration // WhenAdmitted: the reading is that much later, or at the end
	Scope   Scope
	Round   int64 // remaining is rounded to the nearest multiple of it; 0 is rounded down
	Unused  bool  // not a counter: neither a balance nor evidence of a law
	Source  string
}

// FullWindow reports whether a fresh process may use the whole window at once: a
// bucket that was seen to hold it. Whether this bucket also refuses is not known.
// So the first answer, and any refusal, may bring caution back.
func (l Law) FullWindow() bool { return l.Shape == limit.ShapeBucket && !l.Unused }

const recorded = "recorded responses, 2023-03 to 2026-08"

// laws are those of recorded traffic. Rows of one field follow in time.
var laws = []Law{
	{Provider: "openai", Field: "requests", Shape: limit.ShapeBucket, Reset: ResetMissing, Precise: time.Millisecond, Scope: ScopeFamily, Source: recorded},
	{Provider: "openai", Field: "tokens", Shape: limit.ShapeBucket, Window: time.Minute, Reset: ResetMissing, Precise: time.Millisecond, Scope: ScopeModel, Source: recorded},
	{Provider: "openai", Field: "project-*", Shape: limit.ShapeBucket, Window: time.Minute, Reset: ResetMissing, Precise: time.Millisecond, Scope: ScopeProject, Source: recorded},
	{Provider: "openai", Field: "input-images", Shape: limit.ShapeBucket, Window: time.Minute, Reset: ResetMissing, Precise: time.Millisecond, Scope: ScopeModel, Source: recorded},
	{Provider: "openai", Field: "tokens_usage_based", Shape: limit.ShapeBucket, Window: time.Minute, Reset: ResetMissing, Precise: time.Millisecond, Scope: ScopeModel, Source: recorded},

	// A fixed minute at a phase of the organisation's own; a bucket for tokens from
	// July 2024 on and for requests from November on. Between them requests had the
	// balance of a bucket and the reset of the fixed minute.
	{Provider: "anthropic", Field: "requests", Span: Span{"", "2024-07-16"}, Shape: limit.ShapeFixed, Window: time.Minute, Reset: ResetEdge, Precise: time.Second, Scope: ScopeModel, Source: recorded},
	{Provider: "anthropic", Field: "tokens", Span: Span{"", "2024-07-16"}, Shape: limit.ShapeFixed, Window: time.Minute, Reset: ResetEdge, Precise: time.Second, Scope: ScopeModel, Round: 1000, Source: recorded},
	{Provider: "anthropic", Field: "requests", Span: Span{"2024-07-16", "2024-11-14"}, Shape: limit.ShapeBucket, Window: time.Minute, Scope: ScopeModel, Source: recorded},
	{Provider: "anthropic", Field: "tokens", Span: Span{"2024-07-16", "2024-11-14"}, Shape: limit.ShapeBucket, Window: time.Minute, Reset: ResetMissing, Precise: time.Second, Scope: ScopeModel, Round: 1000, Source: recorded},
	{Provider: "anthropic", Field: "requests", Span: Span{"2024-11-14", ""}, Shape: limit.ShapeBucket, Window: time.Minute, Reset: ResetMissing, Precise: time.Second, Scope: ScopeModel, Source: recorded},
	{Provider: "anthropic", Field: "input-tokens", Span: Span{"2024-11-14", ""}, Shape: limit.ShapeBucket, Window: time.Minute, Reset: ResetMissing, Precise: time.Second, Lag: 1500 * time.Millisecond, Scope: ScopeModel, Round: 1000, Source: recorded},
	{Provider: "anthropic", Field: "output-tokens", Span: Span{"2024-11-14", ""}, Shape: limit.ShapeBucket, Window: time.Minute, Reset: ResetMissing, Precise: time.Second, When: WhenMade, Scope: ScopeModel, Round: 1000, Source: recorded},
	// Sums of input and output, with the earlier of their resets.
	{Provider: "anthropic", Field: "tokens", Span: Span{"2024-11-14", ""}, Unused: true, Scope: ScopeModel, Source: recorded},

	// Two wall-clock minutes, weighted; a fixed minute from the first call in 2025;
	// two weighted windows from the first call since.
	{Provider: "mistral", Field: "ratelimitbysize-month", When: WhenAnswered, Scope: ScopeUnknown, Source: "recorded responses: it counts up, and lasts 30 days or more"},
	{Provider: "mistral", Field: "ratelimitbysize*", Span: Span{"", "2025-07-01"}, Shape: limit.ShapeTwoWindows, Clock: true, Window: time.Minute, Reset: ResetEdge, Precise: time.Second, When: WhenAnswered, Scope: ScopeUnknown, Source: recorded},
	{Provider: "mistral", Field: "tokens-month", When: WhenAnswered, Scope: ScopeSameLimit, Source: "recorded responses: it is not the calendar month, and lasts 30 days or more"},
	{Provider: "mistral", Field: "req-10-second", Shape: limit.ShapeTwoWindows, FirstCall: true, Window: 10 * time.Second, When: WhenAnswered, Scope: ScopeSameLimit, Source: recorded},
	{Provider: "mistral", Field: "req-*", Span: Span{"2025-07-01", "2025-11-03"}, Shape: limit.ShapeFixed, FirstCall: true, Window: time.Minute, When: WhenAnswered, Scope: ScopeSameLimit, Source: recorded},
	{Provider: "mistral", Field: "*-minute", Span: Span{"2025-07-01", "2025-11-03"}, Shape: limit.ShapeFixed, FirstCall: true, Window: time.Minute, When: WhenAnswered, Scope: ScopeSameLimit, Source: recorded},
	{Provider: "mistral", Field: "req-*", Span: Span{"2025-11-03", ""}, Shape: limit.ShapeTwoWindows, FirstCall: true, Window: time.Minute, When: WhenAnswered, Scope: ScopeSameLimit, Source: recorded},
	{Provider: "mistral", Field: "*-minute", Span: Span{"2025-11-03", ""}, Shape: limit.ShapeTwoWindows, FirstCall: true, Window: time.Minute, When: WhenAnswered, Scope: ScopeSameLimit, Source: recorded},

	// A log without reset until March 2026; a bucket since, whose reset is in
	// milliseconds in its first days and in whole seconds later.
	{Provider: "azure", Field: "*", Span: Span{"", "2026-03-31"}, Shape: limit.ShapeLog, Window: time.Minute, Scope: ScopeDeployment, Source: recorded + "; the scope is Microsoft's word"},
	{Provider: "azure", Field: "*", Span: Span{"2026-03-31", "2026-05-06"}, Shape: limit.ShapeBucket, Window: time.Minute, Reset: ResetMissing, Precise: time.Millisecond, Scope: ScopeDeployment, Round: 1, Source: recorded},
	{Provider: "azure", Field: "*", Span: Span{"2026-05-06", ""}, Shape: limit.ShapeBucket, Window: time.Minute, Reset: ResetMissing, Precise: time.Second, Scope: ScopeDeployment, Round: 1, Source: recorded},

	// The deployment behind it, which all its users share.
	{Provider: "github-models", Field: "*", Span: Span{"", "2026-03-31"}, Shape: limit.ShapeLog, Window: time.Minute, Scope: ScopeDeployment, Source: recorded},
	{Provider: "github-models", Field: "*", Span: Span{"2026-03-31", ""}, Shape: limit.ShapeBucket, Window: time.Minute, Reset: ResetMissing, Precise: time.Second, Scope: ScopeDeployment, Round: 1, Source: recorded},

	// Several counters answer, each with a part of the sum.
	{Provider: "xai", Field: "*", Shape: limit.ShapeLog, Window: time.Minute, When: WhenBefore, Scope: ScopeModel, Source: recorded},

	// The reset of requests counts from the previous call only.
	{Provider: "groq", Field: "requests", Shape: limit.ShapeUnknown, Window: 24 * time.Hour, Scope: ScopeUnknown, Source: "recorded responses of 2024"},
	{Provider: "groq", Field: "tokens", Shape: limit.ShapeBucket, Window: time.Minute, Reset: ResetMissing, Precise: time.Millisecond, Scope: ScopeUnknown, Source: "recorded responses, 2024 to 2025"},

	{Provider: "huggingface-router", Field: "requests*", Shape: limit.ShapeUnknown, Unused: true, Source: "recorded responses of one day: a minute, an hour and a day fall and return together"},

	// Days that documents name. Whether a day's window is fixed or slides no record
	// shows, beyond the zone in which it begins.
	{Provider: "gemini", Field: "requests-day", Shape: limit.ShapeFixed, Clock: true, Zone: "America/Los_Angeles", Window: 24 * time.Hour, Scope: ScopeProject, Source: "Gemini API rate limits page: a day ends at midnight, Pacific time"},
	{Provider: "openrouter", Field: "requests-day", Shape: limit.ShapeFixed, Clock: true, Zone: "UTC", Window: 24 * time.Hour, Scope: ScopeAccount, Source: "OpenRouter limits page: free requests a UTC day"},
}

// LawFor returns what is known of a field of a provider at a time. The name is
// that of the profile; the field is as the header has it without its prefix, such
// as "tokens" or "req-minute". It is false where nothing is known.
func LawFor(provider, field string, t time.Time) (Law, bool) {
	for _, l := range laws {
		if ok, _ := path.Match(l.Field, field); ok && l.Provider == provider && l.Holds(t) {
			return l, true
		}
	}
	return Law{}, false
}

// At is the law for a meter whose instants are counted from base. Windows that
// begin by the clock begin at midnight of the zone, or at a whole window of UTC
// where they are shorter; a day whose zone is not known has an unknown shape. A
// day of another length, when the zone changes its clocks, is not foreseen: ask
// again then.
func (l Law) At(base time.Time) limit.Law {
	m := limit.Law{Shape: l.Shape, FirstCall: l.FirstCall}
	if !l.Clock {
		return m
	}
	edge := base.UTC().Truncate(l.Window)
	if l.Window >= 24*time.Hour {
		zone, err := time.LoadLocation(l.Zone)
		if l.Zone == "" || err != nil {
			return limit.Law{}
		}
		y, month, d := base.In(zone).Date()
		edge = time.Date(y, month, d, 0, 0, 0, 0, zone)
	}
	m.Edge = edge.Sub(base)
	return m
}

// A PromptBy is what a provider counts a prompt by, in what its fields show.
type PromptBy uint8

const (
	ByUnknown    PromptBy = iota // no record shows it
	ByCharacters                 // a quarter of the characters
	ByTokens                     // the tokens that usage reports as input
	ByTotal                      // input and output, at the end
	ByNothing                    // a flat number of tokens
)

// A Debit is what the token fields of a provider show that a call was charged, by
// endpoint, model and time.
type Debit struct {
	Provider string
	Endpoint string // the path, or the kind of estimate.Request, contains it; "" is any
	Model    string // the model's name contains one of these words, divided by |; "" is any
	Span
	Stream int8 // 1: streams only; -1: whole answers only

	Prompt        PromptBy
	Plus          int64 // tokens beside the prompt
	PlusTools     int64 // instead of Plus, with function tools
	Cap           bool  // the output cap of every choice, on arrival
	DefaultCap    int64 // where the request has none
	ReserveAtMost int64 // the smaller of this and the cap, until the answer
	Output        bool  // output is charged, at the end
	Beyond        int64 // only that above it, since this much was reserved on arrival
	AtEnd         bool  // the field is written at the end, when the reservation is long refilled
	CachedFree    bool
	Source        string
}

// debits are what was recorded. The first that fits counts.
var debits = []Debit{
	{Provider: "openai", Endpoint: "responses", Model: "gpt-5|o1|o3|o4|codex", Stream: 1, Prompt: ByTokens, Plus: 163, PlusTools: 449, Output: true, Beyond: 163, Source: recorded},
	{Provider: "openai", Endpoint: "responses", Model: "gpt-5.4", Stream: -1, Prompt: ByTokens, Plus: 163, PlusTools: 496, Output: true, Beyond: 163, AtEnd: true, Source: recorded},
	{Provider: "openai", Endpoint: "responses", Model: "gpt-5.6", Stream: -1, Prompt: ByTokens, Plus: 143, PlusTools: 496, Output: true, Beyond: 143, AtEnd: true, Source: recorded},
	{Provider: "openai", Endpoint: "responses", Model: "gpt-5|o1|o3|o4|codex", Stream: -1, Prompt: ByTokens, Plus: 217, PlusTools: 496, Output: true, Beyond: 217, AtEnd: true, Source: recorded},
	{Provider: "openai", Endpoint: "responses", Prompt: ByTokens, Plus: 19, PlusTools: 217, Source: recorded},
	{Provider: "openai", Span: Span{"", "2025-03-18"}, Prompt: ByCharacters, Cap: true, DefaultCap: 16, Source: recorded},
	{Provider: "openai", Prompt: ByCharacters, Source: recorded},

	{Provider: "anthropic", Span: Span{"", "2025-07-01"}, Stream: 1, Prompt: ByTokens, ReserveAtMost: 4000, Output: true, CachedFree: true, Source: recorded},
	{Provider: "anthropic", Prompt: ByTokens, Output: true, CachedFree: true, Source: recorded},

	{Provider: "mistral", Span: Span{"", "2025-07-01"}, Prompt: ByTokens, Plus: 32_000, PlusTools: 32_000, Source: recorded},
	{Provider: "mistral", Prompt: ByTotal, CachedFree: true, Source: recorded},

	{Provider: "azure", Model: "kimi|grok", Span: Span{"", "2026-03-31"}, Prompt: ByNothing, Plus: 16, PlusTools: 16, Source: recorded},
	{Provider: "azure", Model: "grok", Span: Span{"2026-03-31", ""}, Stream: 1, Prompt: ByCharacters, Plus: 34, PlusTools: 34, Source: recorded},
	{Provider: "azure", Model: "grok", Span: Span{"2026-03-31", ""}, Prompt: ByCharacters, Plus: 24, PlusTools: 24, Source: recorded},
	{Provider: "azure", Prompt: ByCharacters, Source: recorded},
	{Provider: "github-models", Prompt: ByTokens, Source: recorded},

	{Provider: "xai", Prompt: ByTotal, Source: recorded},
	{Provider: "groq", Prompt: ByCharacters, Output: true, Source: "recorded responses, 2024 to 2025"},
}

// DebitFor returns what is known of the debit of a call: by the profile's name,
// the path of the request, the model, whether it streams, and the time.
func DebitFor(provider, endpoint, model string, stream bool, t time.Time) (Debit, bool) {
	model = strings.ToLower(model)
	for _, d := range debits {
		if d.Provider == provider && strings.Contains(endpoint, d.Endpoint) &&
			(d.Stream == 0 || d.Stream > 0 == stream) && hasWord(model, d.Model) && d.Holds(t) {
			return d, true
		}
	}
	return Debit{}, false
}

// Rule is the debit as a charge rule, which the ledger runs, of a call with or
// without function tools. What no record shows is as in base: the price of images, whether
// refused calls count.
func (d Debit) Rule(base estimate.Rule, tools bool) estimate.Rule {
	r := base
	r.PromptByChars, r.PromptFree, r.CachedFree = d.Prompt == ByCharacters, d.Prompt == ByNothing, base.CachedFree || d.CachedFree
	r.ReserveCap, r.DefaultCap, r.MostReserved, r.OutputBeyond = false, 0, 0, 0
	r.Added = d.Plus
	if tools && d.PlusTools > 0 {
		r.Added = d.PlusTools
	}
	if d.Prompt != ByCharacters {
		r.ImageTokens = 0 // its tokens are those of the usage
	}
	switch {
	case d.Prompt == ByTotal:
		r.Charge = estimate.ChargeSettle
	case d.Cap:
		r.Charge, r.ReserveCap, r.DefaultCap = estimate.ChargeEstimate, true, d.DefaultCap
	case d.ReserveAtMost > 0:
		r.Charge, r.ReserveCap, r.MostReserved = estimate.ChargeSettle, true, d.ReserveAtMost
	case d.Output:
		r.Charge, r.OutputBeyond = estimate.ChargeActual, d.beyond(tools)
	case d.Prompt == ByTokens:
		r.Charge = estimate.ChargePrompt
	default:
		r.Charge = estimate.ChargeEstimate
	}
	return r
}

// beyond is the output that the reservation has paid for.
func (d Debit) beyond(tools bool) int64 {
	if tools && d.Beyond > 0 {
		return max(d.Beyond, d.PlusTools)
	}
	return d.Beyond
}

func hasWord(model, words string) bool {
	for w := range strings.SplitSeq(words, "|") {
		if strings.Contains(model, w) {
			return true
		}
	}
	return false
}

// A Call holds the counts that a debit depends on. Counts that are not known are 0.
type Call struct {
	Characters, Messages int64
	Input, Output        int64 // as usage reports them
	Cached               int64 // of Input, read from a cache
	Cap, Choices         int64
	Tools                bool
}

// Arrival is the input and output tokens that the call is charged on arrival.
func (d Debit) Arrival(c Call) (input, output int64) {
	switch d.Prompt {
	case ByCharacters:
		input = (c.Characters + 3) / 4
	case ByTokens:
		input = c.Input
		if d.CachedFree {
			input -= min(c.Cached, c.Input)
		}
	}
	if c.Tools && d.PlusTools > 0 {
		input += d.PlusTools
	} else {
		input += d.Plus
	}
	switch {
	case d.Cap && c.Cap > 0:
		output = c.Cap * max(1, c.Choices)
	case d.Cap:
		output = d.DefaultCap * max(1, c.Choices)
	case d.ReserveAtMost > 0:
		output = d.ReserveAtMost
		if c.Cap > 0 {
			output = min(output, c.Cap)
		}
	}
	return input, output
}

// End is the further charge at the end of the call; below zero it comes back.
func (d Debit) End(c Call) (input, output int64) {
	_, reserved := d.Arrival(c)
	switch {
	case d.Prompt == ByTotal:
		input, output = c.Input, c.Output
		if d.CachedFree {
			input -= min(c.Cached, c.Input)
		}
	case d.ReserveAtMost > 0:
		output = c.Output - reserved
	case d.Output && d.Beyond > 0:
		output = max(0, c.Output-d.beyond(c.Tools))
	case d.Output:
		output = c.Output
	}
	return input, output
}
