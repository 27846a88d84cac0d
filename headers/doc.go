// Package headers reads what a response's header says about rate limits: how
// much is allowed, how much is left, when it is restored, and how long to stay
// away.
//
// A value is known or unknown, and never guessed. A bad value never hides a good
// one. No header can do harm: nothing fails,
// no wait is negative or overflows, and the work is bounded by the size of the
// header. A field is a statement of the server about one answer. Whether it
// may change anything is for the caller to decide, and the safe use is downward
// only.
//
// It will not decide how long to wait, remember an answer, or count anything.
//
// Start with [Parse]; on a refusal go on with [Info.ResetWait].
//
// # What is read
//
// Names, in any case but for the waits and Date, which must be canonical as
// net/http delivers them (see parseName for the grammar):
//
//	x-ratelimit-{limit,remaining,reset}-<dimension>   OpenAI, Azure OpenAI, Groq, xAI, GitHub Models
//	... with -<window> at the end                     Mistral, Cerebras, SambaNova, Kong, DigitalOcean
//	x-ratelimit-renewalperiod-<dimension>             Azure OpenAI
//	x-ratelimit-<scope>-{limit,remaining}-<dimension> LiteLLM
//	x-ratelimit-limit, ratelimit-limit, ...           Together, Replicate, Kong, Envoy, GitHub, IETF drafts to 06
//	RateLimit, RateLimit-Policy                       IETF drafts 06 to 10
//	anthropic-ratelimit-<dimension>-{limit,...}       Anthropic
//	anthropic-ratelimit-unified-5h-reset, x-codex-*   subscriptions
//	x-trial-endpoint-call-*, x-endpoint-monthly-*     Cohere
//	Retry-After, Retry-After-Ms, X-Ms-Retry-After-Ms  RFC 9110 and Azure
//	X-Retry-After, X-Retry-After-Ms                   gateways
//	X-RateLimit-Retry-After                           gateways
//	X-AI-RateLimit-Retry-After                        Kong AI Gateway
//	ratelimitbysize-{limit,...}                       Mistral until 2025, tokens
//	x-ratelimit-timeremaining                         GitHub Models, a wait
//	x-should-retry                                    OpenAI, Anthropic
//
// Resets may be seconds ("30", "11.38"), durations ("6m0s"), Unix time in any
// unit, RFC 3339 or HTTP dates. An instant becomes a length of time, measured
// from the response's Date field where it has one. Of duplicate fields, as lines
// or joined into one, the cautious value counts.
//
// # What is refused
//
// Refused means unknown, and counted in Info.Unread:
//
//   - signs before a wait
//   - exponents
//   - separators in numbers
//   - counts of more than fifteen digits
//   - "None"
//   - a Retry-After in words
//   - structured fields with more than one reading
//
// Limits of -1, and limits of 0 on anything but a 429, are placeholders and
// unknown.
//
// A value that names no dimension counts requests and never tokens. A policy
// that comes without a state says nothing about the request and feeds nothing.
// Fields whose name has no verb (x-ratelimit-type, -key, -used, -burst, -query-cost) and
// copies of another server's fields (llm_provider-*) are not quotas.
//
// No field outside this list is looked at, Authorization and cookies included,
// so none of them can be in an Info.
package headers
