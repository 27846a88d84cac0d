package providertest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Algorithm is how a limit per window is judged.
type Algorithm int

const (
	// DefaultAlgorithm is Bucket in Options.Algorithm, and "as
	// Options.Algorithm" in Options.RequestAlgorithm.
	DefaultAlgorithm Algorithm = iota
	// Bucket refills continuously and holds Options.Capacity worth of the
	// rate. A refusal's wait is (need - level) x window / limit.
	Bucket
	// FixedMinute counts from one wall-clock :00 to the next; the day limit
	// counts from one UTC midnight to the next. What exceeds a window because
	// of a late charge is forgotten at the next one.
	FixedMinute
	// SlidingMinute keeps an exact log: what was charged in the 60 s that end
	// now, the instant 60 s ago excluded, may not exceed the limit.
	SlidingMinute
	// Slices gives every Options.Slice of the wall clock its share of the
	// minute. Shares are whole numbers that add up to the limit exactly.
	Slices
	// WeightedMinutes counts whole minutes as FixedMinute does, and weighs the
	// last one: used is this minute and the last one x (1 - elapsed / 60 s).
	// The last minute comes back evenly, a sixtieth of it each second.
	WeightedMinutes
)

// Phase is where the windows of FixedMinute and WeightedMinutes begin.
type Phase int

const (
	// WallClock begins a window at each :00, and a day at UTC midnight.
	WallClock Phase = iota
	// OwnPhase begins windows Options.PhaseOffset after those of WallClock:
	// the account has a second of its own.
	OwnPhase
	// FirstCall begins a window at the first charge after the last window. The
	// windows of WeightedMinutes go on from there without a gap, until one of
	// them has passed without a charge.
	FirstCall
)

// Charge is what a call costs against the token limits, and when.
type Charge int

const (
	// Estimate charges the prompt estimate plus the output cap on arrival and
	// never returns any of it (Azure OpenAI).
	Estimate Charge = iota
	// Settle charges as Estimate does and corrects it to the actual prompt and
	// output when the call ends (Bedrock, Cerebras).
	Settle
	// Actual charges the actual prompt on arrival and the output when the call
	// ends (Anthropic). To be let in, a call needs its prompt, and one token
	// on each limit that its output will be charged to.
	Actual
	// PromptOnly charges the prompt estimate on arrival and nothing else
	// (what OpenAI's headers show since March 2025).
	PromptOnly
	// Larger charges the larger of prompt estimate and output cap on arrival
	// (the OpenAI rate limits guide).
	Larger
	// Beyond charges the prompt estimate and Options.Reserve on arrival, and at
	// the end the output beyond that reserve. An unused reserve is not returned
	// (OpenAI's gpt-5 models on the Responses API).
	Beyond
	// Afterwards charges tokens only when the call ends: the actual prompt and
	// output. To be let in, a call needs room for one token (Mistral, xAI).
	Afterwards
)

// Reading is the instant at which the balance in the rate headers is read.
type Reading int

const (
	// ReadAtAdmission reads after the charges on arrival.
	ReadAtAdmission Reading = iota
	// ReadBefore reads before the call's own charge (xAI).
	ReadBefore
	// ReadAtAnswer reads when the answer's header is written, before the
	// charges at the end (Anthropic).
	ReadAtAnswer
	// ReadAtEnd reads after the charges at the end (Mistral). A stream's header
	// leaves long before, so there it is ReadAtAnswer.
	ReadAtEnd
)

// Reset is how the rate headers write the time to full.
type Reset int

const (
	// ResetByDialect is the dialect's own: a Go duration in OpenAIHeaders and
	// AzureHeaders, an instant in AnthropicHeaders, none in MistralHeaders.
	ResetByDialect Reset = iota
	// ResetSeconds is whole seconds, rounded down.
	ResetSeconds
	// ResetFraction is seconds with three decimals, rounded down.
	ResetFraction
	// ResetMillis is whole milliseconds, rounded down.
	ResetMillis
	// NoReset sends no such field.
	NoReset
)

// RetryAfter is how a refusal tells its wait. Every form is rounded up, so a
// client that obeys is never early.
type RetryAfter int

const (
	// RetryAfterSeconds is whole seconds.
	RetryAfterSeconds RetryAfter = iota
	// RetryAfterMillis is Retry-After-Ms beside Retry-After in seconds.
	RetryAfterMillis
	// RetryAfterDate is an HTTP date (RFC 9110, section 10.2.3).
	RetryAfterDate
	// RetryAfterFraction is seconds with a decimal fraction, as Groq sends.
	RetryAfterFraction
	// NoRetryAfter sends no such field.
	NoRetryAfter
)

// Dialect is the family of rate headers on answers that reached the limits.
type Dialect int

const (
	// OpenAIHeaders is x-ratelimit-{limit,remaining,reset}-{requests,tokens},
	// the reset a Go duration to full, floored to the millisecond.
	OpenAIHeaders Dialect = iota
	// AnthropicHeaders is anthropic-ratelimit-{requests,tokens,input-tokens,
	// output-tokens}-{limit,remaining,reset}, the reset an RFC 3339 instant.
	AnthropicHeaders
	// NoHeaders sends none.
	NoHeaders
	// AzureHeaders is OpenAIHeaders and x-ratelimit-renewalperiod-{requests,
	// tokens}, which is left out under NoReset.
	AzureHeaders
	// MistralHeaders is x-ratelimit-{limit,remaining}-{req,tokens}-minute and
	// x-ratelimit-tokens-query-cost.
	MistralHeaders
)

// StreamUsage is whether a chat or completions stream ends with usage.
type StreamUsage int

const (
	// UsageAsAsked follows stream_options.include_usage.
	UsageAsAsked StreamUsage = iota
	// UsageNever ignores the wish, as older servers do.
	UsageNever
	// UsageAlways sends it unasked.
	UsageAlways
)

// Limits is what the provider allows. Zero is no limit.
type Limits struct {
	RPM       int64 // requests per minute
	RPD       int64 // requests per day
	TPM       int64 // tokens per minute, input and output together
	InputTPM  int64 // input tokens per minute
	OutputTPM int64 // output tokens per minute
}

// An Account is one customer of the provider. Its limits are its own.
type Account struct {
	Name   string // in the ledger; must be unique
	Key    string // bearer token, X-Api-Key or Api-Key of its calls
	Limits Limits // zero: Options.Limits
}

// A Load is what somebody else sends on the same account: one call each Every,
// from From on until Until (zero: for ever). A call that the limits do not let
// in is lost. It is not in the ledger; Stats counts it.
type Load struct {
	Account       string // zero: the first account
	Model         string
	From, Until   time.Duration // since New
	Every         time.Duration // must be positive
	Input, Output int64         // tokens of one call, charged by Options.Charge
}

// An Outage gives every call of a model the same answer for a while.
type Outage struct {
	Model string        // "" is every model
	From  time.Duration // since New
	For   time.Duration // zero: for ever
	Step  Step          // as if scripted for each call; Script goes first
}

// Call is an admitted call, the argument of Latency.
type Call struct {
	Path    string
	Model   string
	Prompt  int64 // tokens, actual
	Cap     int64 // tokens that the output may have over all choices
	Output  int64 // tokens that will be produced over all choices
	Choices int64 // at least 1; choices are produced side by side
	Stream  bool
}

// Timing is how long a call takes: FirstByte, then PerToken for each output
// token of one choice. A call that does not stream answers after both.
type Timing struct {
	FirstByte time.Duration
	PerToken  time.Duration
}

// Lengths draws the number of output tokens of one choice. Negative counts as
// none, more than the call's cap as the cap, and more than 2^20 as that.
type Lengths func(r *rand.Rand) int64

// Constant is always n tokens.
func Constant(n int64) Lengths { return func(*rand.Rand) int64 { return n } }

// Uniform is lo to hi tokens, both included. If hi is below lo, it is lo.
func Uniform(lo, hi int64) Lengths {
	return func(r *rand.Rand) int64 {
		if hi <= lo {
			return lo
		}
		return lo + r.Int64N(hi-lo+1)
	}
}

// LogNormal has the median in tokens and the spread sigma of its logarithm;
// measured chat answers look like a sigma near 1.
func LogNormal(median int64, sigma float64) Lengths {
	return func(r *rand.Rand) int64 {
		return int64(math.Min(maxOutput, float64(median)*math.Exp(sigma*r.NormFloat64())))
	}
}

// Options configures a Provider. The zero value enforces nothing and answers
// at once. A negative or contradictory field is an error from New that names
// it.
type Options struct {
	Limits

	// ModelLimits are further limits of single models. A call is judged on the
	// limits of its model and on Limits, together. For two models with nothing
	// in common leave Limits zero. Headers show the model's limit where both
	// have one of the same kind.
	ModelLimits map[string]Limits
	// Accounts, if set, are several accounts with limits of their own, chosen
	// by key. A call with no known key gets 401. Key must then be empty.
	Accounts []Account
	// Others is what somebody else sends on these accounts.
	Others []Load
	// Outages are times at which a model answers only one thing.
	Outages []Outage

	// Algorithm judges the limits per minute. The day limit is a continuous bucket
	// of a whole day under Bucket and Slices, as OpenAI's headers show. It is a UTC
	// or sliding day under FixedMinute or SlidingMinute.
	Algorithm Algorithm
	// RequestAlgorithm, if set, judges requests per minute differently.
	RequestAlgorithm Algorithm
	// Capacity is how much of the rate a Bucket holds. Zero is 60 s. A bucket
	// never holds less than one unit.
	Capacity time.Duration
	// RequestCapacity is Capacity for requests. Zero is Capacity.
	RequestCapacity time.Duration
	// Slice is the length of one of the Slices. Zero is 1 s. It must divide
	// a minute.
	Slice time.Duration
	// Phase is where windows begin, and PhaseOffset how much later than on the
	// wall clock, under OwnPhase, 0 to a minute.
	Phase       Phase
	PhaseOffset time.Duration
	// Oversize lets a call go that needs more than a Bucket holds, but not more
	// than the limit. It goes when the bucket is full, and leaves debt. Off, such a
	// call is refused as too large.
	Oversize bool
	// MaxInFlight is how many calls may be served at once. Zero is no limit.
	MaxInFlight int64

	// Charge is the charge rule.
	Charge Charge
	// DefaultCap is the output cap that is charged when a call states none.
	// Zero is 16 tokens, the default of the completions API.
	DefaultCap int64
	// Reserve is what Beyond charges on arrival for the output, in tokens. Nil
	// is nothing.
	Reserve func(Prompt) int64
	// Cached is how many tokens of a prompt come from a cache: usage reports
	// them. Nil is none. With CachedFree they are not charged where the actual
	// prompt is.
	Cached     func(Prompt) int64
	CachedFree bool
	// ChargeJitter changes the tokens that a call is charged by up to this many
	// percent up or down, 0 to 100. The reported usage does not change. The draw
	// depends on Seed and the body.
	ChargeJitter int
	// Network is how long a call travels before it is judged; it makes calls
	// arrive in another order than they left. Nil is no time.
	Network func(*rand.Rand) time.Duration
	// OutputFactor multiplies the output that is charged at the end (5 on
	// Bedrock for some models). Zero is 1.
	OutputFactor int64
	// OverloadFree gives a call that ends in [Unavailable] or [Overloaded] its tokens
	// back, since no model ran. Its request stays charged.
	OverloadFree bool
	// RefusedCount charges a refused call to the request limits, until the
	// debt is a whole window's limit.
	RefusedCount bool
	// Penalty, if set, starts a cool-down at each refusal by a limit: until it
	// ends every call is refused. It doubles with each further refusal, up to
	// PenaltyMax (zero is 32 x Penalty), and starts anew after an admission.
	Penalty    time.Duration
	PenaltyMax time.Duration

	// StartSpent is the share of every limit that is already spent at the
	// start, in percent, 0 to 100.
	StartSpent int
	// HalveAfter, if set, halves every limit (at least 1 stays) that long
	// after New.
	HalveAfter time.Duration

	RetryAfter RetryAfter
	Dialect    Dialect
	// Reading is when the balance in the headers is read, Reset how the time to
	// full is written.
	Reading Reading
	Reset   Reset
	// EdgeReset names the end of the running window as reset although the
	// counter of WeightedMinutes does not fall to zero there.
	EdgeReset bool
	// CombinedTokens adds a tokens field beside those of input and output: the
	// sums of both, and the earlier reset (Anthropic).
	CombinedTokens bool
	// RefusedZero shows 0 remaining and reset 0 for the limit that refuses,
	// which means "not for this request" (Azure).
	RefusedZero bool
	// ShowUnused is the share of answers, in percent, whose headers show
	// nothing used, as if another counter answered (xAI).
	ShowUnused int
	// RoundRemaining rounds the remaining tokens in headers to the nearest
	// multiple, as Anthropic does with 1000. Zero is exact.
	RoundRemaining int64

	// Latency, if set, says how long an admitted call takes. Nil is no time.
	Latency func(Call) Timing
	// Output draws output lengths. Nil is Constant(16).
	Output Lengths
	// Seed makes the draws. The draw depends on the seed, the body, and how many
	// calls with the same body were admitted before. It never depends on the order
	// in which different calls arrive.
	Seed uint64
	// StreamUsage is whether chat and completions streams end with usage.
	StreamUsage StreamUsage
	// ChunkTokens is how many tokens one stream event carries. Zero is 1.
	ChunkTokens int64

	// Count counts the prompt that is served and reported as usage. Nil is
	// DefaultCount.
	Count func(Prompt) int64
	// EstimatePrompt counts the prompt for the rules that charge an estimate.
	// Nil is Count.
	EstimatePrompt func(Prompt) int64
	// ContextWindow refuses (400) prompts of more tokens. Zero is no limit.
	ContextWindow int64
	// MaxBody is the largest request body in bytes (413). Zero is 32 MiB.
	MaxBody int64

	// Key, if set, must come as bearer token, X-Api-Key or Api-Key; else 401.
	Key string
	// Models is what GET /v1/models lists. Nil is a few names. Calls may name
	// any model; all share the limits.
	Models []string
	// AttemptHeader is the request field that the ledger records. Empty is
	// X-Attempt-Id.
	AttemptHeader string
	// LedgerSize is how many entries the ledger keeps, the newest. Zero is
	// 65536.
	LedgerSize int
}

const (
	minute    = int64(time.Minute)
	day       = 24 * int64(time.Hour)
	maxLimit  = int64(1e12) // largest limit; keeps every sum far from overflow
	maxTokens = int64(1e12) // largest prompt or cap a call may state
	maxOutput = 1 << 20     // output tokens of one choice, for they are really written
)

// withDefaults checks o and fills in what zero means.
func (o Options) withDefaults() (Options, error) {
	if err := o.checkNumbers(); err != nil {
		return o, err
	}
	if err := o.checkScopes(); err != nil {
		return o, err
	}
	setDefault(&o.Algorithm, Bucket)
	setDefault(&o.RequestAlgorithm, o.Algorithm)
	setDefault(&o.Capacity, time.Minute)
	setDefault(&o.RequestCapacity, o.Capacity)
	setDefault(&o.Slice, time.Second)
	if minute%int64(o.Slice) != 0 {
		return o, fmt.Errorf("providertest: Options.Slice %v does not divide a minute", o.Slice)
	}
	setDefault(&o.DefaultCap, 16)
	setDefault(&o.OutputFactor, 1)
	setDefault(&o.PenaltyMax, 32*o.Penalty)
	setDefault(&o.ChunkTokens, 1)
	setDefault(&o.MaxBody, 32<<20)
	setDefault(&o.AttemptHeader, "X-Attempt-Id")
	setDefault(&o.LedgerSize, 65536)
	if o.Output == nil {
		o.Output = Constant(16)
	}
	if o.Count == nil {
		o.Count = DefaultCount
	}
	if o.EstimatePrompt == nil {
		o.EstimatePrompt = o.Count
	}
	if o.Models == nil {
		o.Models = []string{"gpt-4o-mini", "text-embedding-3-small", "claude-haiku-4-5"}
	}
	return o, nil
}

// checkNumbers holds every number to its range.
func (o *Options) checkNumbers() error {
	for _, f := range []struct {
		name   string
		v, max int64
	}{
		{"RPM", o.RPM, maxLimit}, {"RPD", o.RPD, maxLimit}, {"TPM", o.TPM, maxLimit},
		{"InputTPM", o.InputTPM, maxLimit}, {"OutputTPM", o.OutputTPM, maxLimit},
		{"Algorithm", int64(o.Algorithm), int64(WeightedMinutes)},
		{"RequestAlgorithm", int64(o.RequestAlgorithm), int64(WeightedMinutes)},
		{"Phase", int64(o.Phase), int64(FirstCall)}, {"PhaseOffset", int64(o.PhaseOffset), minute},
		{"Capacity", int64(o.Capacity), minute}, {"RequestCapacity", int64(o.RequestCapacity), minute},
		{"Slice", int64(o.Slice), minute},
		{"MaxInFlight", o.MaxInFlight, math.MaxInt64},
		{"Charge", int64(o.Charge), int64(Afterwards)}, {"ChargeJitter", int64(o.ChargeJitter), 100},
		{"DefaultCap", o.DefaultCap, maxTokens}, {"OutputFactor", o.OutputFactor, 1000},
		{"Penalty", int64(o.Penalty), day}, {"PenaltyMax", int64(o.PenaltyMax), day},
		{"StartSpent", int64(o.StartSpent), 100}, {"HalveAfter", int64(o.HalveAfter), math.MaxInt64},
		{"RetryAfter", int64(o.RetryAfter), int64(NoRetryAfter)}, {"Dialect", int64(o.Dialect), int64(MistralHeaders)},
		{"Reading", int64(o.Reading), int64(ReadAtEnd)}, {"Reset", int64(o.Reset), int64(NoReset)}, {"ShowUnused", int64(o.ShowUnused), 100},
		{"RoundRemaining", o.RoundRemaining, maxLimit},
		{"StreamUsage", int64(o.StreamUsage), int64(UsageAlways)},
		{"ChunkTokens", o.ChunkTokens, math.MaxInt64}, {"ContextWindow", o.ContextWindow, math.MaxInt64},
		{"MaxBody", o.MaxBody, math.MaxInt64 - 1}, {"LedgerSize", int64(o.LedgerSize), math.MaxInt64},
	} {
		if f.v < 0 || f.v > f.max {
			return fmt.Errorf("providertest: Options.%s is %d: want 0 to %d", f.name, f.v, f.max)
		}
	}
	if o.PenaltyMax != 0 && o.PenaltyMax < o.Penalty {
		return fmt.Errorf("providertest: Options.PenaltyMax %v is below Penalty %v", o.PenaltyMax, o.Penalty)
	}
	if o.PenaltyMax != 0 && o.Penalty == 0 {
		return fmt.Errorf("providertest: Options.PenaltyMax is set, Penalty is not")
	}
	return nil
}

// checkScopes looks at accounts, models, loads and outages.
func (o Options) checkScopes() error {
	if o.PhaseOffset != 0 && o.Phase != OwnPhase {
		return fmt.Errorf("providertest: Options.PhaseOffset is %v: set Phase to OwnPhase", o.PhaseOffset)
	}
	if len(o.Accounts) > 0 && o.Key != "" {
		return fmt.Errorf("providertest: Options.Key and Accounts are both set: want one of them")
	}
	names, keys := map[string]bool{}, map[string]bool{}
	for i, a := range o.Accounts {
		switch {
		case a.Name == "" || names[a.Name]:
			return fmt.Errorf("providertest: Options.Accounts[%d].Name is %q: want a name of its own", i, a.Name)
		case a.Key == "" || keys[a.Key]:
			return fmt.Errorf("providertest: Options.Accounts[%d].Key is empty or used before", i)
		}
		if err := a.Limits.check(); err != nil {
			return fmt.Errorf("providertest: Options.Accounts[%d]: %w", i, err)
		}
		names[a.Name], keys[a.Key] = true, true
	}
	for model, l := range o.ModelLimits {
		if err := l.check(); err != nil {
			return fmt.Errorf("providertest: Options.ModelLimits[%q]: %w", model, err)
		}
	}
	for i, l := range o.Others {
		switch {
		case l.Every <= 0:
			return fmt.Errorf("providertest: Options.Others[%d].Every is %v: want a positive time", i, l.Every)
		case l.From < 0 || l.Until < 0 || min(l.Input, l.Output) < 0 || max(l.Input, l.Output) > maxTokens:
			return fmt.Errorf("providertest: Options.Others[%d] is %+v: want 0 to %d tokens and no negative time", i, l, maxTokens)
		case l.Account != "" && !names[l.Account]:
			return fmt.Errorf("providertest: Options.Others[%d].Account %q is not in Accounts", i, l.Account)
		}
	}
	for i, u := range o.Outages {
		if u.From < 0 || u.For < 0 || u.Step.Kind < 0 || u.Step.Kind >= kindsEnd {
			return fmt.Errorf("providertest: Options.Outages[%d] has a negative time or an unknown kind", i)
		}
	}
	return nil
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// halved is l with every limit halved; a limit of 1 stays.
func (l Limits) halved() Limits {
	for _, p := range []*int64{&l.RPM, &l.RPD, &l.TPM, &l.InputTPM, &l.OutputTPM} {
		if *p > 1 {
			*p /= 2
		}
	}
	return l
}

// check says whether every limit is usable.
func (l Limits) check() error {
	_, err := Options{Limits: l}.withDefaults()
	return err
}
