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

// Call is what Latency is told about an admitted call.
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

	// Algorithm judges the limits per minute. The day limit is a continuous
	// bucket of a whole day under Bucket and Slices, as OpenAI's headers show,
	// and a UTC or sliding day under FixedMinute or SlidingMinute.
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
	// Oversize lets a call that needs more than a Bucket holds, but not more
	// than the limit, go when the bucket is full, and leave debt. Off, such a
	// call is refused as too large.
	Oversize bool
	// MaxInFlight is how many calls may be served at once. Zero is no limit.
	MaxInFlight int64

	// Charge is the charge rule.
	Charge Charge
	// DefaultCap is the output cap that is charged when a call states none.
	// Zero is 16 tokens, the default of the completions API.
	DefaultCap int64
	// OutputFactor multiplies the output that Settle and Actual charge (5 on
	// Bedrock for some models). Zero is 1.
	OutputFactor int64
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
	// RoundRemaining rounds the remaining tokens in headers to the nearest
	// multiple, as Anthropic does with 1000. Zero is exact.
	RoundRemaining int64

	// Latency, if set, says how long an admitted call takes. Nil is no time.
	Latency func(Call) Timing
	// Output draws output lengths. Nil is Constant(16).
	Output Lengths
	// Seed makes the draws. The draw depends on the seed, the body, and how
	// many calls with the same body were admitted before, never on the order
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
	for _, f := range []struct {
		name   string
		v, max int64
	}{
		{"RPM", o.RPM, maxLimit}, {"RPD", o.RPD, maxLimit}, {"TPM", o.TPM, maxLimit},
		{"InputTPM", o.InputTPM, maxLimit}, {"OutputTPM", o.OutputTPM, maxLimit},
		{"Algorithm", int64(o.Algorithm), int64(Slices)},
		{"RequestAlgorithm", int64(o.RequestAlgorithm), int64(Slices)},
		{"Capacity", int64(o.Capacity), minute}, {"RequestCapacity", int64(o.RequestCapacity), minute},
		{"Slice", int64(o.Slice), minute},
		{"MaxInFlight", o.MaxInFlight, math.MaxInt64},
		{"Charge", int64(o.Charge), int64(Larger)},
		{"DefaultCap", o.DefaultCap, maxTokens}, {"OutputFactor", o.OutputFactor, 1000},
		{"Penalty", int64(o.Penalty), day}, {"PenaltyMax", int64(o.PenaltyMax), day},
		{"StartSpent", int64(o.StartSpent), 100}, {"HalveAfter", int64(o.HalveAfter), math.MaxInt64},
		{"RetryAfter", int64(o.RetryAfter), int64(NoRetryAfter)}, {"Dialect", int64(o.Dialect), int64(NoHeaders)},
		{"RoundRemaining", o.RoundRemaining, maxLimit},
		{"StreamUsage", int64(o.StreamUsage), int64(UsageAlways)},
		{"ChunkTokens", o.ChunkTokens, math.MaxInt64}, {"ContextWindow", o.ContextWindow, math.MaxInt64},
		{"MaxBody", o.MaxBody, math.MaxInt64 - 1}, {"LedgerSize", int64(o.LedgerSize), math.MaxInt64},
	} {
		if f.v < 0 || f.v > f.max {
			return o, fmt.Errorf("provider: Options.%s is %d: want 0 to %d", f.name, f.v, f.max)
		}
	}
	if o.PenaltyMax != 0 && o.PenaltyMax < o.Penalty {
		return o, fmt.Errorf("provider: Options.PenaltyMax %v is below Penalty %v", o.PenaltyMax, o.Penalty)
	}
	if o.PenaltyMax != 0 && o.Penalty == 0 {
		return o, fmt.Errorf("provider: Options.PenaltyMax is set, Penalty is not")
	}
	setDefault(&o.Algorithm, Bucket)
	setDefault(&o.RequestAlgorithm, o.Algorithm)
	setDefault(&o.Capacity, time.Minute)
	setDefault(&o.RequestCapacity, o.Capacity)
	setDefault(&o.Slice, time.Second)
	if minute%int64(o.Slice) != 0 {
		return o, fmt.Errorf("provider: Options.Slice %v does not divide a minute", o.Slice)
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
