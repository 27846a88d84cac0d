// Package retry makes a failed call again when that can help, and never
// before the server allows it.
//
// [Transport] is an [http.RoundTripper] around another one. Most callers need only
// [New]; package transport has one inside. It promises:
//
//   - The server's word is kept. No attempt leaves before the time a response
//     named, and none is made that cannot succeed.
//   - After the last attempt the caller gets the provider's own response:
//     status, header, body, and a nil error.
//   - The caller's request is not altered. Its body is closed on every path,
//     and each attempt carries the same bytes and the same length.
//   - Nothing is left behind: no timer, no goroutine, no open response.
//
// It will not follow redirects, log, add headers, or shorten a wait that the
// server asked for. It buffers a request body only if Options.MaxBuffer says so.
// It reads ahead only the body of a response that is tried again, or of a refusal
// that Options.Refused is called for.
//
// # What is tried again
//
//	outcome                                    again?
//	1xx, 2xx, 3xx                              no
//	408, 409, 429, 498                         yes
//	400, 403 whose body speaks of a rate       yes
//	500, 502, 503, 504, 529, other 5xx         yes
//	501, 505                                   no
//	too many calls fail                        no, see below
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
//	a request body whose own Read failed       no
//	what makes a lasting thing, and may have   no, unless it has an Idempotency-Key:
//	  arrived                                    see [CreationReader]
//
// 408, 409 and x-should-retry are treated as the official OpenAI and Anthropic
// clients treat them (requestconfig.go in openai-go and anthropic-sdk-go).
//
// # How long it waits
//
// A response may order a wait: Retry-After, Retry-After-Ms and their relatives
// (RFC 9110, section 10.2.3), or a wait written only in the error body. A 429
// that names no wait orders the reset of its exhausted limit. The longest of them
// is obeyed, and jitter only adds to it. Without an order the wait is drawn
// between MinBackoff and a ceiling that doubles with each attempt up to
// MaxBackoff.
//
// An ordered wait longer than Options.MaxRetryAfter, or any wait that outlasts the
// context's deadline or Options.MaxElapsed, is not slept and not shortened: the
// caller gets the response now.
//
// # While a server fails every call
//
// Three attempts of every call would be three times the load. So the further
// attempts of all calls share a budget. Answers earn it, and time earns a little:
// one attempt for four answers, and one in two seconds. It holds 50. A refusal for
// the caller's own rate takes nothing from it.
//
// # Order of the hooks
//
//	attempt 1 ── Refused ── Deciding ── wait ── Admit ── attempt 2 ── … ── Done
//
// Refused is called for every attempt that the server refused, final or not.
// Deciding is called when another attempt was decided, before the wait. Admit is
// called after the wait, before the attempt leaves. It may block. If it refuses,
// the caller gets the last response, whole. Done is called at the end of the
// call. No lock is held in any of them.
//
// # Several layers that retry
//
// An SDK above this package has retries of its own, and the two multiply: three
// attempts under an SDK that tries three times are nine. Leave one layer on. With
// openai-go and anthropic-sdk-go that is option.WithMaxRetries(0) there, or
// Attempts: 1 here. [Tally] counts what one call really sent.
package retry
