package headers

import (
	"net/http"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// Options says what the header alone does not. The zero value reads a header
// for itself.
type Options struct {
	// Status is the response's status code; zero is unknown. It decides whether
	// a Retry-After applies and whether a limit of zero is believed.
	Status int

	// Now is the caller's time, used to turn an instant into a length of time
	// where the response has no valid Date field. Zero: time.Now().
	Now time.Time

	// Dialect is what the provider's documentation adds to the fields. The zero
	// value adds nothing, which is right where the field names say everything.
	Dialect Dialect
}

// Parse reads every field about limits that h has. It never fails: what cannot
// be read is unknown. h is not altered and not kept.
//
// Work and memory are bounded for any h: names above 96 bytes and values
// above 4 KiB are not read, and a header that names more than 64 quotas
// describes none.
//
// On a response that a cache stored (Age above zero) the quotas are those of
// another request and are not read (draft-ietf-httpapi-ratelimit-headers-10
// section 5); a Retry-After still is.
func Parse(h http.Header, o Options) Info {
	if !Any(h) {
		return Info{}
	}
	return parse(h, o)
}

// Any reports whether h has a field that Parse reads. Where it has none, Parse
// returns the zero Info.
func Any(h http.Header) bool {
	for key := range h {
		if kindOf(key) != kindNone {
			return true
		}
	}
	return false
}

// parse is Parse for a header that has at least one field of interest. It is
// apart so that all other responses do not pay for its stack.
func parse(h http.Header, o Options) Info {
	var info Info
	r := reader{clock: retryafter.Clock{Header: h, Local: o.Now}, dialect: o.Dialect, status: o.Status}
	cached := stored(h["Age"])

	for key, lines := range h {
		understood := true
		switch k := kindOf(key); k {
		case kindNone, kindRetry: // the waits are read below, all of them together
		case kindShould:
			info.ShouldRetry = parseFlag(lines)
			understood = info.ShouldRetry.OK
		default:
			understood = cached || r.field(k, key, lines)
		}
		if !understood && !blank(lines) {
			info.Unread++
		}
	}

	w := retryafter.Parse(h, o.Now)
	// GitHub Models' own spelling of the same wait, which its own
	// client reads first (github/gh-models). It is never the shorter reading.
	for _, line := range h["X-Ratelimit-Timeremaining"] {
		if d, _, ok := r.clock.Number(trimOWS(line), time.Second); ok {
			w.Longest, w.OK = max(w.Longest, d), true
		}
	}
	if w.OK {
		info.NotBefore = Span{w.Longest, true}
		info.Applies = refuses(o.Status) || r.dialect.StreamRefusal && isOpenStream(h, o.Status)
	} else if !blank(h["Retry-After"]) || !blank(h["X-Retry-After"]) {
		info.Unread++
	}
	r.assemble(&info)
	return info
}

// field reads one field, all its lines. It reports whether the field is none of
// ours or has a value that could be read.
func (r *reader) field(k kind, key string, lines []string) bool {
	switch k {
	case kindIETF:
		return r.readIETF(key, lines)
	case kindUnified, kindCodex:
		return r.readSubscription(k, key, lines)
	}
	n, ok := common[key]
	if !ok {
		if n, ok = parseName(key); !ok {
			return true
		}
	}
	if n.verb == verbReset {
		v := latest(lines, &r.clock)
		if v.OK {
			r.slot(&n).later(v)
		}
		return v.OK
	}
	if n.verb == verbLimit && n.dim == unsuffixed {
		limit, policies, ok := parseLimitList(lines)
		if ok {
			s := r.slot(&n)
			s.Limit = lower(s.Limit, limit)
			r.integerPolicies = append(r.integerPolicies, policies...)
		}
		return ok
	}
	c := lowest(lines)
	if !c.OK {
		return false
	}
	switch n.verb {
	case verbLimit:
		s := r.slot(&n)
		s.Limit = lower(s.Limit, c)
	case verbRemaining:
		s := r.slot(&n)
		s.Remaining = lower(s.Remaining, c)
	case verbPeriod: // of several the lowest, so that a limit is not spread thin
		if c.N > 0 && c.N <= int64(retryafter.Max/time.Second) {
			s := r.slot(&n)
			s.period = max(s.period, time.Duration(c.N)*time.Second)
		}
	}
	return true
}

// blank reports whether no line has a value. An empty value is an absent one.
func blank(lines []string) bool {
	for _, line := range lines {
		if trimOWS(line) != "" {
			return false
		}
	}
	return true
}

// stored reports whether a cache stored the response: any Age above zero.
func stored(ages []string) bool {
	for _, line := range ages {
		if parseCount(trimOWS(line)).N > 0 {
			return true
		}
	}
	return false
}

// lower returns the lower of two counts. Where two fields give one value, for
// instance in two spellings, the cautious one is kept; so the order in which a
// map is visited does not matter.
func lower(a, b Count) Count {
	if !a.OK || b.OK && b.N < a.N {
		return b
	}
	return a
}

// refuses reports whether a Retry-After on this status may delay anything.
func refuses(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, 529: // 529: Anthropic, overloaded
		return true
	}
	return false
}

func isOpenStream(h http.Header, status int) bool {
	return status == http.StatusOK && foldPrefix(trimOWS(h.Get("Content-Type")), "text/event-stream")
}

// parseFlag reads "true" or "false", in any case. Of several lines that disagree,
// "false" counts.
func parseFlag(lines []string) (f Flag) {
	for _, line := range lines {
		switch line = trimOWS(line); {
		case strings.EqualFold(line, "false"):
			return Flag{false, true}
		case strings.EqualFold(line, "true"):
			f = Flag{true, true}
		}
	}
	return f
}
