// Package transport keeps a client inside a provider's rate limits: an
// [http.RoundTripper] for any [http.Client] or SDK.
//
//	rt, err := transport.New(transport.Options{RPM: 500, TPM: 200_000})
//	client := &http.Client{Transport: rt}
//
// Most callers need [New] and nothing else. [Options.Trace] shows what happens;
// [Transport.Snapshot] shows the state.
//
// Before a request leaves, its tokens are estimated and taken, with one
// request, from exact buckets, in one fair line. When the response ends, the
// estimate is settled against the usage that the provider reports. Response
// headers only ever lower credit. Refusals are tried again by a layer below
// the gate, and each attempt is charged.
//
// # Promises
//
// The ledger is exact: credit is never made, lost or settled twice, also if calls
// are cancelled, dropped, half-read or raced. The server's word is kept: nothing
// leaves before Retry-After. The request is not altered, and the response is
// the provider's, byte for byte and chunk for chunk. No error, hook or snapshot
// holds a key, a prompt or a query string.
//
// It will not follow redirects, cache or log. It adds one header, if
// [Options.StopSDKRetries] asks for it. It does not know what other processes
// spend of the same limit, and learns of it from headers and refusals. With a
// budget on a ledger that processes share, as module redislimit has, it does.
//
// # The life of a request
//
//	caller ─▶ outer gate: read, price, wait in line, take
//	        ─▶ retry layer
//	          ─▶ inner meter: every attempt; headers lower credit, pause, teach
//	            ─▶ base ─▶ provider
//	caller ◀─ response; its bytes are shown to a meter as they pass
//	          EOF, Close, error or cancel, whichever is first: settle, once
//
// # Endings
//
// What each ending does to the ledger is the table of package budget. A 5xx other
// than 503 and 529, a time-out and a connection that broke keep their price, and
// each further attempt is charged again. A 429, 503 or 529 gives its tokens back. The
// next attempt takes them again, at the head of the line.
//
// The place in flight is held until the body ends, and is free while a call waits
// to be tried again. A response that is forgotten gives back its place and its
// connection when the request's context ends, or when the collector finds it. The
// collector may take long: close every body. A panic of the base, of a hook or of
// a body's reader ends the call too.
//
// net/http itself sends some requests again, on a connection that it found
// closed: those without a body, and those with an Idempotency-Key. It reports no
// such replay, so that both are charged as one.
//
// A call may stand in net/http's own line for a connection when a pause begins. That
// line forms if the base has MaxConnsPerHost. Such a call takes its connection and
// waits for the end of the pause before it sends. The connection is then missing to
// the calls of other models. Set [Options.MaxInFlight] to no more than MaxConnsPerHost
// to let calls wait here instead. If the context of such a call ends while it waits,
// net/http still writes the request: no hook can stop it.
//
// # One client for everything
//
// A call takes from its account (a host and a credential), from its model, and
// from its tenant, in one decision. What answers teach belongs to the model that
// they are of, and limits in [Options] are those of each account. Those who wait
// for the same limit share it fairly, by tenant and weight, in tokens, and
// interactive calls go before batch calls. [WithTenant], [WithClass] and
// [FailFast] say it for the calls of a context.
//
// Let several Transports share a budget through [Scopes.Budget]. Layers above
// that retry on their own (the official SDKs do) come in as new requests and are
// charged as such: switch one of the two off.
package transport
