// Package retry makes a failed call again when that can help, and never
// before the server allows it.
//
// [Transport] is an [http.RoundTripper] around another one. It promises:
//
//   - The server's word is kept. No attempt leaves before the time a response
//     named, and none is made that cannot succeed.
//   - After the last attempt the caller gets the provider's own response:
//     status, header, body, and a nil error.
//   - The caller's request is not altered. Its body is closed on every path,
//     and each attempt carries the same bytes and the same length.
//   - Nothing is left behind: no timer, no goroutine, no open response.
//
// It will not follow redirects, log, add headers, shorten a wait the server
// asked for, buffer a body it was not told to buffer, or look at the bytes of a
// response that is not going to be retried.
//
// # What is tried again
//
//	outcome                                    again?
//	1xx, 2xx, 3xx                              no
//	408, 409, 429                              yes
//	500, 502, 503, 504, 529, other 5xx         yes
//	501                                        no
//	other 4xx                                  no
//	x-should-retry: false                      no, whatever the status
//	x-should-retry: true on a 4xx or 5xx       yes, whatever the status
//	body: account exhausted, request larger    no, whatever the header says
//	  than the limit, prompt too long
//	connection failed or broke                 yes, see Options.IdempotentOnly
//	certificate or TLS refusal, unknown host,  no
//	  a request net/http will not send
//	the context ended                          no
//	a body that can be read only once          no, see Options.MaxBuffer
//
// 408, 409 and x-should-retry are treated as the official OpenAI and Anthropic
// clients treat them (requestconfig.go in openai-go and anthropic-sdk-go).
//
// # How long it waits
//
// A response may order a wait: Retry-After, Retry-After-Ms and their relatives
// (RFC 9110, section 10.2.3), a wait written only in the error body, or what
// Options.ResetHint makes of it. The longest of them is obeyed, and jitter only
// adds to it. Without an order the wait is drawn between MinBackoff and a
// ceiling that doubles with each attempt up to MaxBackoff.
//
// An ordered wait longer than Options.MaxRetryAfter, or any wait that outlasts the
// context's deadline or Options.MaxElapsed, is not slept and not shortened: the
// caller gets the response now.
//
// # Order of the hooks
//
//	attempt 1 ── Deciding ── wait ── Admit ── attempt 2 ── … ── Done
//
// Deciding hears that another attempt was decided, before the wait. Admit is
// asked after the wait, before the attempt leaves; it may block, and may refuse,
// and then the caller gets the response that would have been retried, whole.
// Done hears how the call ended. No lock is held in any of them.
//
// # Several layers that retry
//
// An SDK above this package has retries of its own, and the two multiply: three
// attempts under an SDK that tries three times are nine. Leave one layer on. With
// openai-go and anthropic-sdk-go that is option.WithMaxRetries(0) there, or
// Attempts: 1 here. [Tally] counts what one call really sent.
package retry
