// Package usage reads what a response cost, from a copy of its bytes as they
// pass.
//
// The promise: the result depends on the bytes only, not on how they were cut;
// memory is bounded by a few kilobytes for any body; a count is known or
// unknown, never guessed. Within one response the last statement that holds a
// count wins, and running totals are never added up. Text that looks like a
// usage object, in an answer, in tool arguments or in an echoed prompt, is text.
//
// The refusal: the package does not touch the bytes, gives no error back and
// never fails a response. It does not count tokens; [Result.OutputBytes] is
// there for a stream that was cut before it stated anything. It does not judge
// whether a count can be true: [Counts.Bounded] does, for a caller who knows what
// was asked for. A body in a coding that package packed does not know is unknown.
//
// Most callers should use [NewMeter], give it every piece of the body, and Close it
// where the body ends. [Read] does the three for a body that is there as a whole.
// [FromHeader] reads what some providers state in the header instead. Package budget
// turns the counts into what a provider's limit is charged.
//
// The files: scanner.go walks JSON. shapes.go is the table of places.
// reading.go decides which statement counts. counts.go brings the dialects to
// one meaning. sse.go, frames.go and packed.go take framing and compression
// away. refusal.go and header.go hold what errors and headers say.
package usage
