// Package estimate reads the body of a request to a language model and says what
// the request may cost, before it is sent.
//
// The promise: estimating never fails a request. Whatever the bytes, there is a
// number; a body that cannot be understood is priced by its size. A body is read
// without copying it and without recursion, in work linear in its size (one pass,
// as a rule), and it is never changed. All numbers are whole, and sums stop at the
// largest number rather than wrap round.
//
// What it refuses: it does not decode images, sound or documents to price them,
// it does not read uploads, it does not fetch what a URL points to, and it knows
// nothing of history that the provider keeps (a previous response, a stored
// conversation). All those are priced by documented rules that lean to the low
// side, for what was estimated too low is paid when the usage comes back, and
// what was estimated too high may hold up a call for nothing.
//
// Inspect is what to reach for first: it makes a Request of a body. Body does it
// for an http.Request without consuming it. A Rule, which is how a provider
// charges, makes a price of a Request: Price on arrival, Actual in the end.
//
// Text is counted fast, by the classes of its characters. Exact counting is a
// choice: set Options.Counter, for which the package estimate/tiktoken has one.
//
// # What counts as prompt
//
// Messages, contents, input, prompt, system and instructions in any of their
// forms; tool calls and their results; the definitions of tools and functions
// and response schemas, as JSON text; names; roles. Inside a message everything is prompt
// that is not known to be something else. At the top, only known names are. Of
// two equal names in one object the last counts, as in encoding/json.
//
// A data URL is media wherever it stands, and so is base64 in the places where
// it belongs and in long strings under other names; neither is counted as text.
// Base64 written into the middle of a text is text, to the model too.
//
// # Error
//
// Of the fast count, on 368 texts that the weights were not fitted to, in percent
// of the exact count: the mean size of the error, and the underestimate that 95 %
// of the texts do not exceed. "After 50" is with a [Calibrator] that has seen 50
// answers of the same kind.
//
//	                            mean  p95   after 50: mean  p95   chars/4: mean  p95
//	o200k    natural language    6.1  14.1             5.3  10.0           25.0  70.4
//	         code                5.1  11.8             5.3   7.5           18.1  31.4
//	         data                6.7  17.7             2.0   5.2           54.8  92.5
//	cl100k   natural language    6.1  16.2             4.8   9.8           44.0  86.4
//	         code                7.8  12.9             6.6  12.5           19.8  31.4
//	         data                6.9  20.5             2.0   5.7           55.0  92.5
//
// By language, and for text of another kind, in testdata/corpus/ERRORS.md, which
// is written by
//
//	go generate ./estimate
//
// The error on one's own traffic is what a [Report] says.
//
// # Cost
//
// Measured with Go 1.26 on a busy machine of two cores, the best of many runs.
// Trust the ratios more than the times. Inspect allocates the name of a model that
// it has not met just before, and nothing else:
//
//	body                      bytes.IndexByte   without counting   Inspect   encoding/json
//	chat, 4 kB                        0.06 µs             1.9 µs    5.3 µs           24 µs
//	tools, 4 kB                       0.06 µs             3.9 µs    6.3 µs           32 µs
//	chat, 200 kB                       2.2 µs              33 µs    176 µs          780 µs
//	an image, 4 MB                      62 µs              74 µs     73 µs       29,000 µs
//
// "Without counting" is the pass with a count that looks at nothing. The fast count
// does not allocate. Its speed in MB/s:
//
//	English 2,020   code 1,850   JSON 1,490   digits 1,090   hex 1,090   French 960
//	emoji 725       Chinese 585  Hindi 550    Vietnamese 435 Russian 385 not UTF-8 410
//
// as plain text; inside a JSON string, English has 1,550, code 750, JSON with its
// quotes escaped 420, and text with every character as \uXXXX 620.
//
//	go test ./estimate -run xxx -bench 'Inspect|Count' -benchmem
//
// The weights of a family are laid out in 75 kB when first used; a scanner of
// 29 kB for each call that runs at the same time is pooled. The vocabularies for
// exact counting, 1.4 to 5 MB each, are loaded by package estimate/tiktoken only.
package estimate
