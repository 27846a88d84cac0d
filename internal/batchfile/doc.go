// Package batchfile reads and writes the file formats of the OpenAI Batch API:
// a request a line, and an answer a line.
//
// The promise: memory is bounded by the longest line, [MaxLine]; an answer is
// kept byte for byte as the provider wrote it, as far as JSON allows; a line
// that is wrong is named and never stops the ones behind it.
//
// The refusal: the package opens no file and sends nothing.
package batchfile
