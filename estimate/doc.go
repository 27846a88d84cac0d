// Package estimate reads the body of a request to a language model and says what
// the request may cost, before it is sent.
//
// Most callers should use [Inspect], which makes a [Request] of a body. [Body] does so
// from the parts of an http.Request without consuming it. A [Rule], which is how a
// provider charges, makes a [Price] of a Request. When the answer has come, [Rule.Actual]
// says what the call is charged. A [Calibrator] and an [Output] learn from it.
//
// The promise: estimating never fails a request. Every body has a number; one that
// cannot be understood is priced by its size. A body is read without copying it and
// without recursion, and it is never changed. The work is linear in its size: one pass,
// as a rule. All numbers are whole, and sums stop at the largest number.
//
// The package refuses four things. It reads only the headers of images, sound and
// documents. It does not read uploads. It does not fetch URLs. It knows nothing of the
// history that a provider keeps: a previous response, a stored conversation.
//
// # Stated and guessed
//
// A request states its text, its token ids and its output cap. Everything else is a
// guess:
//
//   - additions of the model's maker to a prompt
//   - media whose length is not known, and bodies that were not read
//   - caps that the provider assumes, learned outputs, several choices
//
// [Request.Guess] and the Stated fields of [Price] keep the two apart. Only the stated
// part may be refused as too large.
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
// The additions of makers are tables with their sources. makers.go has the form of a
// chat, tools and schemas; images.go and media_rates.go have media.
//
// # Text
//
// Text is counted fast, by a weight for each character after the one before it. The
// weights are fitted to the published tokenizer of the model's maker: see [FamilyOf].
// Exact counting is a choice: set Options.Counter. Package estimate/tiktoken has one for
// OpenAI's models; any other tokenizer fits as well.
//
// The table has the errors of the fast count on text that no fit has seen, in percent of
// the exact count. The first number is the mean size of the error. p95 is the
// underestimate that 95 % of the pieces do not exceed. The pieces have about 200 bytes,
// 2 kB and 16 kB. The last two columns are for cl100k at 2 kB, the others for o200k.
//
//	                 200 B    p95   2 kB    p95  16 kB   p95   cl100k    p95
//	code               7.1   14.7    5.5   10.8    5.3  10.6      6.7   10.3
//	data               7.1   17.3    5.0   11.0    5.0  10.7      6.6   11.4
//	documents          6.2   10.5    3.7    9.1    3.3   8.3      4.4    9.5
//	natural text       8.4   18.0    5.4   12.8    4.3  12.0      5.7   11.8
//	stories            7.9   16.1    4.3    8.0    3.5   7.8      4.0    8.3
//	what agents send   5.6    9.9    4.0    5.7                   5.8    7.3
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
