// Package transport keeps a client inside a provider's rate limits: an
// [http.RoundTripper] to wrap around any [http.Client], or to hand to any SDK.
//
//	rt, err := transport.New(transport.Options{RPM: 500, TPM: 200_000})
//	client := &http.Client{Transport: rt}
//
// Before a request leaves, its tokens are estimated and taken, with one
// request, from exact buckets, in one fair line. When the response ends, the
// estimate is settled against the usage that the provider reports. Response
// headers only ever lower credit. Refusals are tried again by a layer below
// the gate, and each attempt is charged.
//
// # Promises
//
// The ledger is exact: credit is never made, lost or settled twice, whatever is
// cancelled, dropped, half-read or raced. The server's word is kept: nothing
// leaves before Retry-After. The request is not altered, and the response is
// the provider's, byte for byte and chunk for chunk. No error, hook or snapshot
// holds a key, a prompt or a query string.
//
// It will not follow redirects, cache, log, or add headers, but for the one that
// [Options.StopSDKRetries] asks for. It does not know
// what other processes spend from the same limit; it learns of it from headers
// and refusals.
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
//	ending                                       request              tokens
//	refused locally, cancelled in line,          returned             returned
//	  never dialled
//	2xx, usage seen                              kept                 settled to the actual
//	2xx, no usage; stream cut short              kept                 the estimate stands, or what was seen if more
//	429, final                                   kept                 returned, unless refused calls count
//	429, to be tried again                       one more an attempt  the same, and taken again at the head
//	                                                                  of the line
//	another 4xx, to be tried again (408, 409)    one more an attempt  returned, and taken again
//	other 1xx, 3xx, 4xx                          kept                 returned
//	a request without a body                     kept                 none
//	5xx, time-out, reset after sending           one more an attempt  kept; charged again
//
// The place in flight is held until the body ends, and free while a call waits
// to be tried again. A 429 gives it back when it is heard, and its tokens with
// it: the pause that follows is for everybody. A response that is forgotten gives it back, and its
// connection, when the request's context ends, or when the collector finds it;
// that may be long, and is no way to end a call. Whoever panics while it reads,
// sends or is told ends the call too.
//
// net/http itself sends some requests again, on a connection that it found
// closed: those without a body, and those with an Idempotency-Key. It tells
// nobody, so that such a replay is charged once.
//
// # Several Transports
//
// One Transport is one budget, for one provider. Make one for each tenant, or
// for each model where the provider limits them apart; let several share a
// budget by giving them one [Options.Budget]. Layers above that retry on their
// own (the official SDKs do) come in as new requests and are charged as such:
// switch one of the two off.
package transport
