// Package estimate reads the body of a request to a language model and says what
// the request may cost, before it is sent.
//
// The promise: estimating never fails a request. Whatever the bytes, there is a
// number; a body that cannot be understood is priced by its size. A body is read
// without copying it and without recursion, in work linear in its
// size (one pass, as a rule), and it is never changed. All numbers are whole, and sums stop at the
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
package estimate
