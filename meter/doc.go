// Package meter counts what Transports do, so that people and metrics can see
// it: calls and why they waited, tokens as estimated and as charged, refusals by
// reason, pauses by who asked for them, and who uses how much.
//
//	m := meter.New(meter.Options{})
//	rt, err := transport.New(transport.Options{Trace: m.Trace("openai")})
//	m.Watch("openai", rt)
//
// [Meter.Trace] counts events; [Meter.Watch] lets the meter read the state of a
// budget. Packages debug (the live page), otelmeter and prommeter show what a
// Meter holds, and need nothing else.
//
// # The promise
//
// Every event is counted once, in whole numbers. Memory is bounded for any names of
// tenants and scopes: the heaviest have a series of their own, all others share
// one, called [Rest]. No number stands for "unknown": an unknown value is absent, or
// has a flag beside it.
//
// # The refusal
//
// A Meter decides nothing and delays nothing. It keeps no key, no prompt, no URL
// and no header of a request; of a request it keeps what Options.Tenant and
// Options.Scope return. It starts no goroutine.
package meter
