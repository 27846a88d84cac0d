// Package providertest is an LLM provider for tests: an HTTP server in the
// shape of the OpenAI and Anthropic APIs that enforces its limits and keeps its
// own ledger.
//
//	p, err := providertest.New(providertest.Options{
//		Limits: providertest.Limits{RPM: 500, TPM: 200_000},
//	})
//	client := &http.Client{Transport: p.RoundTripper()} // or p.Listen, or httptest.NewServer(p)
//
// The promise: every call is admitted or refused by exact integer arithmetic over
// the limits in [Options]. [Provider.Ledger] gives the charge of each call, its
// time, and the reason of a refusal. The code shares nothing with the limiter that
// it judges, so the two can contradict each other.
//
// The refusal: nothing is guessed in a client's favour. There is no grace for calls
// that arrive a nanosecond early. There is no queue: a provider refuses, it does
// not hold. There is no text that a model would write: answers are filler of a
// known length.
//
// # Three ways in
//
// A [*Provider] is an [http.Handler] and works with net/http/httptest.
// [Provider.Listen] serves it on a free port, for clients in other processes.
// [Provider.RoundTripper] reaches it without a socket and works inside a
// testing/synctest bubble: it waits with timers, streams through memory and
// obeys contexts. Time is read with [time.Now]; in a bubble, call [New] inside
// it.
//
// # Limits
//
// Requests per minute, requests per day, and tokens per minute (together, or
// input and output apart), of the account and of single models
// ([Options.ModelLimits]); several accounts by key ([Options.Accounts]). One
// call is judged on every limit at once: all are charged, or none is.
//
// Five algorithms judge a minute: a continuous bucket, a fixed minute, an exact
// sliding minute, two weighted minutes, and slices of a second or more.
// [Phase] says where fixed and weighted minutes begin.
//
// # Real providers
//
// [Presets] has eleven providers as they were seen in recorded traffic: their
// law, charge rule and header fields, with dates and with what is not known.
//
//	preset, _ := providertest.PresetNamed("anthropic")
//	p, err := providertest.New(preset.Options(providertest.Limits{RPM: 50, InputTPM: 30_000, OutputTPM: 8_000}))
//
// # A client's charge rule
//
// A client takes the charge rule of the host that it asks. So use the preset of that
// host, not the zero Options, whose rule is Estimate: else the client rightly says
// that it is charged by another rule.
//
// # What a call costs
//
// The prompt count is this package's own simple rule, [DefaultCount]: for each
// text a quarter of its characters rounded up, one token a message, one for
// the call, 765 for an image. [Charge] says what of it, and of the output, is
// charged when; [Reading] when the headers are read.
//
// # Faults
//
// [Provider.Script] queues answers that a healthy provider would not give:
// refusals with and without headers, an exhausted account, 500, 503 and 529,
// cut connections, silence, a stream that stops or turns into an error.
// [Options.Outages] gives a model such an answer for a while, and
// [Options.Others] spends the account behind the client's back.
// [Options.ChargeJitter] and [Options.Network] make charges and arrivals less
// regular than a client hopes. Everything drawn comes from [Options.Seed].
package providertest
