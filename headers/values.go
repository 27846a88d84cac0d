package headers

import (
	"net/http"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// longestValue bounds the values that are read, in bytes. Longer ones are
// unknown.
const longestValue = 4096

// parseCount reads
//
//	count = [ "-" ] 1*15DIGIT
//
// Everything else is unknown: "None", "unlimited", "+5", "1,000", "5.0". So is a
// longer number: fifteen digits are the range of a structured field's integer
// (RFC 9651 section 3.3.1), and servers without a limit send the largest number
// that they can write, which is not a limit.
func parseCount(s string) Count {
	digits := strings.TrimPrefix(s, "-")
	if len(digits) == 0 || len(digits) > 15 {
		return Count{}
	}
	var n int64
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return Count{}
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) != len(s) {
		n = -n
	}
	return Count{n, true}
}

// firstCount returns the first valid count of several field lines.
func firstCount(lines []string) Count {
	for _, line := range lines {
		if c := parseCount(trimOWS(line)); c.OK {
			return c
		}
	}
	return Count{}
}

// trimOWS removes the white space around a field value (RFC 9110 section 5.5).
func trimOWS(s string) string {
	if n := len(s); n > 0 && s[0] > ' ' && s[n-1] > ' ' {
		return s // nearly always
	}
	return strings.Trim(s, " \t")
}

// spelling is how a reset was written, which decides what may be made of it.
type spelling uint8

const (
	asNumber   spelling = iota + 1 // no unit: seconds, unless proved otherwise
	asDuration                     // "6m0s"
	asInstant                      // a point in time
)

// reset is a reset as it was read.
type reset struct {
	Span
	how spelling
}

// later keeps the later of two resets, as lower keeps the lower of two counts.
func (s *slot) later(v reset) {
	if v.OK && (!s.Reset.OK || v.D > s.Reset.D) {
		s.Reset, s.spelled = v.Span, v.how
	}
}

// parseReset reads
//
//	reset    = number / epoch / duration / instant
//	number   = 1*DIGIT / *DIGIT "." 1*DIGIT     ; below 1e9, seconds from now
//	epoch    = the same, 1e9 and above          ; Unix seconds, from 1e12 on milliseconds
//	duration = 1*( number unit )                ; see parseDuration
//	instant  = RFC 3339 / HTTP-date
//
// An instant that is past is zero. A number of 1e15 and above is unknown: no
// provider counts that finely, and the unit would be a guess. So are signs,
// exponents and words.
func parseReset(s string, c *clock) reset {
	if len(s) == 0 || len(s) > 64 {
		return reset{}
	}
	last := s[len(s)-1]
	if d, ok := retryafter.Decimal(s, time.Second); ok {
		whole, _, _ := strings.Cut(s, ".")
		whole = strings.TrimLeft(whole, "0")
		switch {
		case len(whole) < 10:
			return reset{Span{d, true}, asNumber}
		case len(whole) < 13:
			return reset{c.untilUnix(d), asInstant}
		case len(whole) < 16:
			ms, _ := retryafter.Decimal(s, time.Millisecond)
			return reset{c.untilUnix(ms), asInstant}
		}
		return reset{}
	}
	switch {
	case last == 's' || last == 'm' || last == 'h' || last == 'd':
		if d, ok := parseDuration(s); ok {
			return reset{Span{d, true}, asDuration}
		}
	case len(s) > 4 && s[4] == '-':
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return reset{c.until(t), asInstant}
		}
	default:
		if t, ok := retryafter.ParseDate(s, c.now()); ok {
			return reset{c.until(t), asInstant}
		}
	}
	return reset{}
}

// firstReset returns the first valid reset of several field lines. A recorder
// or proxy may have added another field's value as a line of its own.
func firstReset(lines []string, c *clock) reset {
	for _, line := range lines {
		if r := parseReset(trimOWS(line), c); r.OK {
			return r
		}
	}
	return reset{}
}

// durationUnits are in falling order.
var durationUnits = [...]struct {
	word string
	unit time.Duration
}{
	{"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
	{"ms", time.Millisecond}, {"us", time.Microsecond}, {"µs", time.Microsecond}, {"ns", 1},
}

// parseDuration reads a length of time as Go and OpenAI write it:
//
//	duration = 1*( number unit )
//	unit     = "d" / "h" / "m" / "s" / "ms" / "us" / "µs" / "ns"
//
// Units fall, each at most once. It is not time.ParseDuration: that takes signs
// and repeated units, and fails where this saturates.
func parseDuration(s string) (time.Duration, bool) {
	var sum time.Duration
	next := 0 // index of the largest unit still allowed
	for len(s) > 0 {
		i := 0
		for i < len(s) && (s[i] == '.' || '0' <= s[i] && s[i] <= '9') {
			i++
		}
		j := i
		for j < len(s) && s[j] != '.' && (s[j] < '0' || s[j] > '9') {
			j++
		}
		for next < len(durationUnits) && durationUnits[next].word != s[i:j] {
			next++
		}
		if next == len(durationUnits) {
			return 0, false
		}
		d, ok := scaled(s[:i], durationUnits[next].unit)
		if !ok {
			return 0, false
		}
		sum = min(sum+d, retryafter.Max) // two terms of at most Max cannot overflow
		next++
		s = s[j:]
	}
	return sum, next > 0
}

// scaled reads a decimal number of units of any length, rounded up.
func scaled(s string, unit time.Duration) (time.Duration, bool) {
	switch unit {
	case time.Second, time.Millisecond, time.Microsecond, 1:
		return retryafter.Decimal(s, unit) // a power of ten: exact
	}
	// d, h and m are whole seconds: read as seconds and multiply. Rounding up to
	// the nanosecond first can only make the result longer, by less than 90 µs.
	d, ok := retryafter.Decimal(s, time.Second)
	k := unit / time.Second
	if d > retryafter.Max/k {
		return retryafter.Max, ok
	}
	return d * k, ok
}

// clock is the instant from which a response measures instants: its Date field,
// for the server's clock made both, or the caller's time. It is read once and
// only when needed.
type clock struct {
	header http.Header
	local  time.Time
	at     time.Time
	read   bool
}

func (c *clock) now() time.Time {
	if !c.read {
		c.read = true
		c.at = c.local
		if c.at.IsZero() {
			c.at = time.Now()
		}
		if lines := c.header["Date"]; len(lines) == 1 {
			if t, ok := retryafter.ParseDate(trimOWS(lines[0]), c.at); ok {
				c.at = t
			}
		}
	}
	return c.at
}

// until returns the time left to t, at least 0 and at most retryafter.Max.
func (c *clock) until(t time.Time) Span {
	return Span{min(max(t.Sub(c.now()), 0), retryafter.Max), true}
}

// untilUnix returns the time left to the instant that is d after 1970. A d that
// was cut off at the end of the scale is an instant after every other.
func (c *clock) untilUnix(d time.Duration) Span {
	if d == retryafter.Max {
		return Span{d, true}
	}
	return c.until(time.Unix(0, int64(d)))
}
