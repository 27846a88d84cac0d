// Package estimate reads the body of a request to a language model and says what
// the request may cost, before it is sent.
//
// Most callers should use [Inspect], which makes a [Request] of a body, or [Body], which
// does so for the parts of an http.Request without consuming it. A [Rule], which is how
// a provider charges, makes a [Price] of a Request. When the answer has come,
// [Rule.Actual] says what the call is charged, and a [Calibrator] and an [Output] learn
// from it for the calls that follow.
//
// The promise: estimating never fails a request. Whatever the bytes, there is a
// number; a body that cannot be understood is priced by its size. A body is read
// without copying it and without recursion, in work linear in its size (one pass,
// as a rule), and it is never changed. All numbers are whole, and sums stop at the
// largest number rather than wrap round.
//
// What it refuses: it does not decode images, sound or documents to price them beyond
// their headers, it does not read uploads, it does not fetch what a URL points to, and it
// knows nothing of history that the provider keeps (a previous response, a stored
// conversation).
//
// # What is stated and what is a guess
//
// A request states its text, its token ids and its output cap. Everything else is a
// guess: what the maker of the model adds to a prompt, how it charges media whose length
// is not known, a cap that the provider assumes, the outputs that were learned, several
// choices, a body that was not read. [Request.Guess] and the Stated fields of [Price]
// keep the two apart, because only what is stated may be refused as too large.
//
// # What counts as prompt
//
// Messages, contents, input, prompt, system and instructions in any of their
// forms; tool calls and their results; the definitions of tools and functions and
// response schemas; names; roles. Inside a message everything is prompt that is not
// known to be something else. At the top, only known names are. Of two equal names in
// one object the last counts, as in encoding/json.
//
// A data URL is media wherever it stands, and so is base64 in the places where
// it belongs and in long strings under other names; neither is counted as text.
// Base64 written into the middle of a text is text, to the model too.
//
// What makers add for the form of a chat, for tools and for schemas, and what they charge
// for images, pages, sound and film, are tables with their sources: makers.go, images.go
// and media_rates.go.
//
// # Text
//
// Text is counted fast, by the classes of its characters and by which follows which,
// with weights fitted to the published tokenizer of the model's maker ([FamilyOf]).
// Exact counting is a choice: set Options.Counter, for which the package
// estimate/tiktoken has one; any other tokenizer fits as well.
//
// The errors of the fast count on text that no fit has seen, in pieces of about 200
// bytes, 2 kB and 16 kB, in percent of the exact count: the mean size of the error, and
// the underestimate that 95 % of the pieces do not exceed. The last two columns are for
// cl100k at 2 kB, the others for o200k.
//
//	              200 B   p95   2 kB    p95  16 kB   p95 cl100k   p95
//	code            6.6   13.2    5.2   10.8    4.9   12.8    6.0   12.4
//	data            6.4   16.5    4.9   12.6    4.3    9.7    6.0   16.3
//	documents       5.4   11.3    3.2    8.7    3.8    9.5    3.9   10.2
//	natural text    9.7   21.6    7.9   17.3    6.5   15.6    7.8   15.8
//
// By kind of text in testdata/corpus/UNSEEN.md, which says how it was made; by language,
// and for every tokenizer, in testdata/corpus/ERRORS.md, which is written by
//
//	go generate ./estimate
//
// The error on one's own traffic is what package estimate/accuracy reports.
//
// # Cost
//
// [Inspect] allocates the name of a model that it has not met just before, and nothing
// else; the fast count does not allocate. The weights of a family are laid out in 75 kB
// when first used; a scanner of 30 kB for each call that runs at the same time is
// pooled. The vocabularies for exact counting, 1.4 to 5 MB each, are loaded by package
// estimate/tiktoken only. Speeds are in docs/estimate.md.
package estimate
