package refusal

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// The classes of a refusal, [Verdict.Class].
const (
	RateLimit = "rate_limit" // too fast for this limit; waiting helps
	Quota     = "quota"      // money, credit, entitlement or a daily allowance is used up; waiting a little does not help
	TooLarge  = "too_large"  // this request is larger than anything the limit or the model admits
	Overload  = "overload"   // shared capacity, not the caller's own limit
	Server    = "server"     // the provider failed
	Timeout   = "timeout"    // the provider or a proxy gave up waiting
	Invalid   = "invalid"    // the request itself is at fault
)

// MaxBody is how many bytes of a body Classify looks at; the rest is ignored.
// Errors are short. Those that are not echo the caller's own input.
const MaxBody = 256 << 10

// A Verdict is what one refusal means. The zero value means: not a refusal, or
// nothing is known about it.
type Verdict struct {
	// Class is one of the constants above, or "" when neither body nor status
	// tells.
	Class string
	// Retryable: may the very same request succeed within minutes without
	// anybody acting? A daily allowance that is used up is not retryable,
	// although midnight will come.
	Retryable bool
	// Account: the reason is billing or entitlement of the whole account, or of the
	// project of the key. No other call of it can succeed either.
	Account bool
	// Wait is the time the body asks for, rounded up to the nanosecond; of
	// several the longest. 0 is unknown. It is 0 for what is not retryable:
	// providers offer waits of seconds even with a used-up daily allowance.
	Wait time.Duration
	// Reset is the time until a used-up allowance is restored, as the body says. It
	// is there for a refusal that is not retryable too. 0 is unknown.
	Reset time.Duration
	// Span is the window of an allowance that is used up: [Day], [Month], or 0 where
	// the body does not say that it is one, or of which window. A body that asks for a
	// wait has no Span: its wait is the better word.
	Span time.Duration
	// Wide: the allowance is of the account, or of a group of its models, and so
	// other models have used it up too. Else it is the model's.
	Wide bool
	// Dimension is the limit that refused: "requests", "tokens", "input",
	// "output", or "" when the body does not say.
	Dimension string
	// Scope is what a refusal for the rate speaks of: ScopeModel, ScopeAccount, or ""
	// when the body does not say. ScopeSure is set unless only a mention says so: some
	// providers name the organization where the limit is one of the model.
	Scope     string
	ScopeSure bool
	// Code and Type are the provider's own words, as given, "" when missing
	// or longer than 128 bytes. A numeric code is given in its digits.
	Code, Type string
	// Status is the word of a Google API error ("RESOURCE_EXHAUSTED"), or "".
	Status string
	// Limit, Used and Requested are the numbers of the sentence "Limit 30000,
	// Used 29937, Requested 385", in units of Dimension. 0 is unknown, except
	// that an account not entitled at all has Limit 0 and the class Quota.
	Limit, Used, Requested int64
	// Stated and Window are the limit that the body names otherwise, in words
	// ("30,000 input tokens per minute") or members (quotaValue): Stated units of
	// Dimension a Window. 0 is unknown.
	Stated int64
	Window time.Duration
	// Known is false when the body said nothing usable. Class and Retryable
	// are then those of the status alone.
	Known bool
}

// Options say what status and body do not. The zero Options are good.
type Options struct {
	// Now is when the response arrived. Zero: time.Now().
	Now time.Time
	// Dated is a header whose Date the body's instants are measured from, as one clock
	// made both: see [retryafter.Clock]. Nil: they are measured from Now.
	Dated http.Header
	// Ceiling cuts Wait and Reset. 0 or less: MaxWait.
	Ceiling time.Duration
	// Type is the error's type where the header has it, see [TypeOf]. A type in the
	// body counts before it.
	Type string
}

// Classify is [ClassifyWith] with zero Options.
func Classify(status int, body []byte) Verdict { return ClassifyWith(status, body, Options{}) }

// ClassifyWith judges a refusal by its HTTP status and body. The body may be
// truncated, compressed, empty or of any size. A status of 0 or 2xx is that of
// an error found inside a stream: then a numeric code in the body takes the
// status's place, and a body without an error gives the zero Verdict.
func ClassifyWith(status int, body []byte, o Options) Verdict {
	v, _ := classify(status, body, o)
	return v
}

// classify also returns the fields that it read.
func classify(status int, body []byte, o Options) (Verdict, *fields) {
	classified.Add(1)
	clock := retryafter.Clock{Header: o.Dated, Local: o.Now}
	f := read(body, &clock)
	if !f.failed && status < 400 {
		return Verdict{}, f
	}
	if f.typ == "" {
		f.typ = o.Type
	}
	v := Verdict{Code: f.code, Type: f.typ, Status: f.status}
	status = f.effective(status)

	s := sentence(f.message)
	if f.text {
		f.codes = s.codes()
	}
	v.Limit, v.Used, v.Requested = s.numbers()
	if n, ok := plainInt(f.headerLimit); ok && v.Limit == 0 {
		v.Limit = n
	}
	if n, m, ok := s.promptTooLong(); ok {
		v.Requested, v.Limit = n, m
	}
	said := s.waits(&clock, s.inChina(f))
	f.waits.join(&said)

	r, known := judge(status, f, s, v)
	v.Class, v.Retryable, v.Account, v.Known = r.class, r.retryable, r.account, known
	v.Dimension = dimension(f, s)
	if v.Class == RateLimit || v.Class == Quota && !v.Account {
		v.Scope, v.ScopeSure = scope(f, s)
	}
	v.name(f, s)
	if o.Ceiling <= 0 {
		o.Ceiling = MaxWait
	}
	v.Reset = min(f.waits.reset(), o.Ceiling)
	v.used(f, s)
	if v.Class == Quota && len(f.headers) > 0 {
		v.Reset = max(v.Reset, min(f.headerReset(o), o.Ceiling))
	}
	if v.Retryable {
		v.Wait = min(f.waits.longest(), o.Ceiling)
		if v.Wait > 0 {
			v.Known = true
		}
	}
	return v, f
}

// classified counts the bodies that were classified. A test holds it to one for
// each refused response.
var classified atomic.Int64

// Classified is how many bodies this process has classified so far.
func Classified() int64 { return classified.Load() }

// effective is the status to judge by: the HTTP status if it is an error, else
// the numeric code that a stream carries in its body.
func (f *fields) effective(status int) int {
	if status >= 400 {
		return status
	}
	for _, s := range [...]string{f.code, f.httpStatus} {
		if n, err := strconv.Atoi(s); err == nil && n >= 400 && n <= 599 {
			return n
		}
	}
	return 0
}

func plainInt(s string) (int64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
