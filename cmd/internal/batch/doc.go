// Package batch is the command "tripmeter batch": it sends every request of a
// file in the OpenAI Batch API's input format through tripmeter, and writes the
// Batch API's output format.
//
// The promise: a line of the output is an answer to that request. All else gets
// no line, is reported, and is sent by the next run: no connection, no key, no
// money, no such model, a refusal for the rate, a failure of the server, half an
// answer. No answer that was paid for is asked for again, except those that were
// under way when the process was killed.
//
// The refusal: it does not guess. A file that somebody else writes, that holds
// something else, or that holds answers of the practice provider is left alone.
package batch
