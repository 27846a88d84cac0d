// Package providertest is a provider in the box: an HTTP server in the shape of
// the OpenAI and Anthropic APIs that enforces its limits and keeps its own
// ledger.
//
// The promise: every call is admitted or refused by exact integer arithmetic
// over the limits in [Options]; what was charged, when, and why a call was
// refused is in [Provider.Ledger]. The code shares nothing with the limiter
// it judges, so the two can contradict each other.
//
// The refusal: nothing is guessed in a client's favour. There is no grace for
// calls that arrive a nanosecond early, no queue (a provider refuses, it does
// not hold), and no text that a model would write: answers are filler of a
// known length.
//
// # Two ways in
//
// A [*Provider] is an [http.Handler] and works with net/http/httptest. It is
// also reachable without a socket through [Provider.RoundTripper], which works
// inside a testing/synctest bubble: it waits with timers, streams through
// memory and obeys contexts. Time is read with [time.Now]; in a bubble, call
// [New] inside it.
//
// # Limits
//
// Requests per minute, requests per day, and tokens per minute (together, or
// input and output apart). Four algorithms judge a minute: a continuous bucket
// (how OpenAI, Anthropic and Groq describe or show their limits), a fixed
// wall-clock minute (Mistral, Gemini by report), an exact sliding minute
// (Cohere), and slices of a second or more (xAI, Azure OpenAI). One call is
// judged on every limit at once: all are charged, or none is.
//
// # What a call costs
//
// The prompt count is this package's own simple rule, [DefaultCount]: for each
// text a quarter of its characters rounded up, one token a message, one for
// the call, 765 for an image. [Charge] says what of it, and of the output, is
// charged when.
//
// # Faults
//
// [Provider.Script] queues answers that a healthy provider would not give:
// refusals with and without headers, an exhausted account, 500, 503 and 529,
// cut connections, silence, a stream that stops or turns into an error.
package providertest
