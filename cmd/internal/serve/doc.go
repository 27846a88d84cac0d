// Package serve is the command "tripmeter serve": a gateway that any client
// points its base URL at, in any language. Where a provider would refuse, a
// call waits its turn instead.
//
// The promise: the bytes of a request and of an answer pass unchanged, and each
// event of a stream leaves when it came. A reload or a SIGTERM cuts no stream.
// A wait longer than a client can bear is refused at once, with the time after
// which it could go. No log line, error or page holds a key, a token or a
// prompt.
//
// The refusal: the gateway does not translate between APIs, cache, or keep
// anything of a call but its counts.
package serve
