package retry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Error is a call that ended without a response after more than one attempt, or
// while another one was decided or wanted. errors.Is and errors.As look into Err
// and Last.
//
// Its text holds no header, no body, and no user or query of a URL. Err and Last
// are the base's and the context's own and may.
type Error struct {
	Attempts int    // requests handed to the base
	Reason   Reason // why there was no further one

	// The last response that was refused, when the context ended before another
	// came: its status, a copy of its header, and up to 64 kB of its body. 0 and
	// nil when no response was had.
	Status int
	Header http.Header
	Body   []byte

	Err  error // what ended the call: the last attempt's error, the context's, or Admit's
	Last error // the last attempt's own error when Err is something else; may be nil

	waiting time.Duration // the wait that was cut
	text    string        // Err and Last, with secrets removed
}

// Error says what happened and what can be done about it.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "retry: %s", plural(e.Attempts))
	if e.Status != 0 {
		fmt.Fprintf(&b, ", last status %d", e.Status)
	}
	text := e.text
	if text == "" {
		text = causes(e.Err, e.Last, redact)
	}
	fmt.Fprintf(&b, ": %s", text)
	switch e.Reason {
	case Ended:
		if e.waiting > 0 {
			fmt.Fprintf(&b, "; it was waiting %v to try again", e.waiting)
		}
		if e.Status != 0 {
			b.WriteString("; the response is in Error.Status, Header and Body")
		}
	case Exhausted:
		b.WriteString("; no attempts left, raise Options.Attempts or call again later")
	case OneShot:
		b.WriteString("; not tried again because the body can be sent only once: set Request.GetBody or Options.MaxBuffer")
	case NotSafe:
		b.WriteString("; not tried again because the request may have arrived: set an Idempotency-Key, or clear Options.IdempotentOnly if that is set")
	case OutOfTime:
		b.WriteString("; not tried again because the wait would outlast the context's deadline")
	case Elapsed:
		b.WriteString("; not tried again because the wait would outlast Options.MaxElapsed")
	case NotAdmitted:
		b.WriteString("; the next attempt was not admitted")
	case Unaffordable:
		b.WriteString("; not tried again because too many calls fail: the budget of further attempts is spent")
	case Broken:
		b.WriteString("; trying again cannot mend it")
	}
	return b.String()
}

func plural(attempts int) string {
	if attempts == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", attempts)
}

// Unwrap returns Err and Last, those that are set.
func (e *Error) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Err, e.Last} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Timeout reports whether what ended the call was a timeout. [http.Client] asks.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// Temporary makes an Error a [net.Error], which it may stand for: it reports what
// the error that ended the call says of itself. [net/url.Error] asks.
func (e *Error) Temporary() bool {
	var t interface{ Temporary() bool }
	return errors.As(e.Err, &t) && t.Temporary()
}

// snapshot keeps an attempt that was not the last, for the error.
type snapshot struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (c *call) snapshot() snapshot {
	s := snapshot{err: c.err}
	if c.resp != nil {
		s.status, s.header = c.resp.StatusCode, c.resp.Header
		if c.held != nil {
			s.body = c.held.seen()
		}
	}
	return s
}

// failure is the error of this call, which err ended. last is the latest attempt's
// own error, if that is another.
func (c *call) failure(err, last error) *Error {
	s := c.snapshot()
	if c.reason == Ended && c.ended == nil && c.n > 1 {
		// The context ended the attempt itself. The refusal before says why that
		// attempt was necessary.
		s, last = c.last, c.last.err
	}
	e := &Error{
		Attempts: c.n, Reason: c.reason,
		Status: s.status, Header: s.header.Clone(), Body: s.body,
		Err: err, Last: last,
		text: causes(err, last, func(t string) string { return redact(scrub(t, c.req)) }),
	}
	if c.ended != nil {
		e.waiting = c.wait
	}
	return e
}

func causes(err, last error, clean func(string) string) string {
	var parts []string
	for _, e := range []error{err, last} {
		if e != nil {
			parts = append(parts, clean(e.Error()))
		}
	}
	return strings.Join(parts, "; before that: ")
}

// contextError is why ctx ended: its error, and its cause when that is another.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// scrub removes what is secret in req from an error's text, wherever it stands:
// the query and its values, the user, and the values of headers that carry keys.
func scrub(text string, req *http.Request) string {
	var secrets []string
	if u := req.URL; u != nil {
		secrets = append(secrets, u.RawQuery)
		if u.User != nil {
			p, _ := u.User.Password()
			secrets = append(secrets, u.User.String(), p)
		}
		for _, vs := range u.Query() {
			secrets = append(secrets, vs...)
		}
		for pair := range strings.SplitSeq(u.RawQuery, "&") { // as it is escaped there
			_, v, _ := strings.Cut(pair, "=")
			secrets = append(secrets, v)
		}
	}
	for name, vs := range req.Header {
		if !carriesKeys(name) {
			continue
		}
		for _, v := range vs {
			_, token, _ := strings.Cut(v, " ")
			secrets = append(secrets, v, token)
		}
	}
	// A secret may hold another: the longest goes first.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, s := range secrets {
		if len(s) >= 4 { // shorter ones are not keys, and would tear words apart
			text = strings.ReplaceAll(text, s, "redacted")
		}
	}
	return text
}

// carriesKeys reports whether a header of that name carries a secret, by the words in
// it: Authorization, Cookie, X-Api-Key, Ocp-Apim-Subscription-Key, X-Amz-Security-Token.
func carriesKeys(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"auth", "cookie", "key", "token", "secret", "password", "credential", "signature"},
		func(word string) bool { return strings.Contains(name, word) })
}

// redact removes user, query and fragment from every URL in text, also from one in
// the path of another:
//
//	url  = scheme "://" [ user "@" ] host [ path ] [ "?" query ] [ "#" fragment ]
//
// A URL ends at a blank, a quote or an angle bracket.
func redact(text string) string {
	const mark = "://"
	var b strings.Builder
	for {
		i := strings.Index(text, mark)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		i += len(mark)
		b.WriteString(text[:i])
		text = text[i:]

		end := strings.IndexAny(text, " \t\r\n\"'<>`")
		if end < 0 {
			end = len(text)
		}
		u, rest := text[:end], text[end:]
		tail := ""
		if j := strings.IndexAny(u, "?#"); j >= 0 {
			u, tail = u[:j], "?redacted"
		}
		if j := strings.Index(u, mark); j >= 0 {
			u, tail, rest = u[:j], "", text[j:]
		}
		host, path := u, ""
		if j := strings.IndexByte(u, '/'); j >= 0 {
			host, path = u[:j], u[j:]
		}
		b.WriteString(host[strings.LastIndexByte(host, '@')+1:])
		b.WriteString(path)
		b.WriteString(tail)
		text = rest
	}
}
