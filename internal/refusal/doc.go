// Package refusal reads what a provider's error body says: may the very same
// request succeed later, when, and is the whole account out of credit.
//
// The promise: a verdict rests on the provider's own structured words first: code,
// type, status. Sentences count only in the few forms that providers are known to
// send. A body that says nothing usable leaves [Verdict.Known] false, and the verdict
// is then that of the HTTP status alone. The work is bounded for any body: at most
// [MaxBody] bytes are looked at, once.
//
// The refusal: the package never guesses a wait. "try again in 17m31.056s" is a
// wait; "try again in a while", "in 3 parsecs" and a sentence cut in the middle
// are not. It keeps no text of the message, which may hold the caller's own
// words.
//
// Most callers should use [ClassifyWith]. fields.go walks the body. member.go
// and wait.go find waits in members and in sentences. named.go finds limits.
// rules.go is the table of codes and words. A new provider's refusal is a
// row of rules.go and a body with its source in testdata/bodies.json.
package refusal
