package refusal

import (
	"net/http"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/headers"
)

// A Header is what the header of a refused response says about coming back. The
// zero Header says nothing.
type Header struct {
	Wait  time.Duration // the longest wait that a field names
	Named bool          // a wait was named, if only of zero
	Reset time.Duration // the longest reset of an exhausted limit; 0 unknown

	Asked, Forbidden bool // X-Should-Retry: another attempt

	Type  string      // the error's type, see [TypeOf]
	Dated http.Header // whose Date the body's instants are measured from; nil is none
}

// TypeOf is the type of an error that the header names in place of the body:
// X-Amzn-ErrorType of the JSON protocols of Amazon (Smithy, "AWS restJson1 protocol",
// operation error serialization).
func TypeOf(h http.Header) string {
	if lines := h["X-Amzn-Errortype"]; len(lines) > 0 && len(lines[0]) <= maxWord {
		return shapeName(lines[0])
	}
	return ""
}

// shapeName takes the namespace before, and the URI behind, off the name of an error
// of Amazon: "aws.protocoltests#FooError:http://internal.amazon.com/".
func shapeName(s string) string {
	s, _, _ = strings.Cut(s, ":")
	return s[strings.LastIndexByte(s, '#')+1:]
}

// HeaderOf takes what matters here out of a header that was read. It reads no
// field again.
func HeaderOf(i *headers.Info) Header {
	h := Header{Wait: i.NotBefore.D, Named: i.NotBefore.OK}
	if again := i.ShouldRetry; again.OK {
		h.Asked, h.Forbidden = again.V, !again.V
	}
	if !h.Named {
		h.Reset = i.ResetWait().D
	}
	return h
}

// ReadHeader reads the header of a refused response at now.
func ReadHeader(status int, h http.Header, now time.Time) Header {
	i := headers.Parse(h, headers.Options{Status: status, Now: now})
	return HeaderOf(&i)
}

// A Reading is the one reading of a refused response: its header and its body
// together.
type Reading struct {
	Header
	Status int
	Body   Verdict

	bodyReset time.Duration // of header fields that the body holds
}

// headerReset is the longest reset of an exhausted limit in the header fields that the
// body holds.
func (f *fields) headerReset(o Options) time.Duration {
	if date := o.Dated["Date"]; date != nil && f.headers["Date"] == nil {
		f.headers["Date"] = date
	}
	i := headers.Parse(f.headers, headers.Options{Status: http.StatusTooManyRequests, Now: o.Now})
	return i.ResetWait().D
}

// UntilReset is the time until the exhausted limit is restored, as header or body say;
// 0 is unknown.
func (r *Reading) UntilReset() time.Duration { return max(r.Body.Reset, r.Reset, r.bodyReset) }

// Read reads a refused response that arrived at now: its status, its header, and
// the beginning of its body, each once. The body may be truncated, empty or of
// any size.
func Read(status int, h Header, body []byte, now time.Time) Reading {
	r := Reading{Header: h, Status: status}
	o := Options{Now: now, Type: h.Type, Dated: h.Dated}
	v, f := classify(status, body, o)
	r.Body = v
	if len(f.headers) > 0 {
		r.bodyReset = f.headerReset(o)
	}
	return r
}

// Order is the wait that the response orders, from its arrival on, and whether it
// orders one: the longest wait that header or body names, or else the reset of an
// exhausted limit. A reset is waited for on a 429 only. ignoreBody leaves out a
// wait that the body's sentence names.
func (r *Reading) Order(ignoreBody bool) (wait time.Duration, ordered bool) {
	wait, ordered = r.NamedWait(ignoreBody)
	if ordered || r.Status != http.StatusTooManyRequests {
		return wait, ordered
	}
	if r.bodyReset > 0 {
		return r.bodyReset, true
	}
	return r.Reset, r.Reset > 0
}

// NamedWait is the longest wait that header or body names.
func (r *Reading) NamedWait(ignoreBody bool) (wait time.Duration, ok bool) {
	wait, ok = r.Wait, r.Named
	if !ignoreBody && r.Body.Wait > 0 {
		wait, ok = max(wait, r.Body.Wait), true
	}
	return wait, ok
}
