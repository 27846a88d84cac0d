package headers

import (
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
// (RFC 9651 section 3.3.1). Servers without a limit send the largest number that
// they can write, which is not a limit.
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

// lowest returns the lowest count of several field lines, and of the members of
// a line that a proxy joined from several: "900, 3". Two gateways that each count
// say what each has left, and the cautious one is right in either order. A line
// with a member that is no count is unknown. Where one line is a sentinel below
// zero and another a number, the number counts.
func lowest(lines []string) Count {
	var c, negative Count
	take := func(n Count) {
		if n.N < 0 {
			negative = lower(negative, n)
		} else if n.OK {
			c = lower(c, n)
		}
	}
	for _, line := range lines {
		if n := parseCount(trimOWS(line)); n.OK {
			take(n)
			continue
		}
		members := joined(line)
		ok := members != nil
		for _, m := range members {
			ok = ok && parseCount(m).OK
		}
		if ok {
			for _, m := range members {
				take(parseCount(m))
			}
		}
	}
	if !c.OK {
		return negative
	}
	return c
}

// mostMembers bounds how many members of a joined line are read.
const mostMembers = 16

// joined splits a line that a proxy joined from several (RFC 9110 section 5.3).
// The separator is a comma and a blank: "1,000" is a number. Nil: it is none.
func joined(line string) []string {
	if len(line) > longestValue || !strings.Contains(line, ", ") || strings.Count(line, ",") >= mostMembers {
		return nil
	}
	members := strings.Split(line, ",")
	for i := range members {
		members[i] = trimOWS(members[i])
	}
	return members
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
//	reset    = number / duration / instant / timespan / ISO 8601
//	number   = see retryafter.Clock.Number: seconds from now, or Unix time in
//	           seconds, milliseconds, microseconds or nanoseconds
//	duration = see retryafter.Spelled; here without spaces
//	instant  = see retryafter.ParseDate
//	timespan = see retryafter.TimeSpan
//	ISO 8601 = see retryafter.ISO
//
// An instant that is past is zero. Signs, exponents and words are unknown.
func parseReset(s string, c *retryafter.Clock) reset {
	if len(s) == 0 || len(s) > 64 {
		return reset{}
	}
	if d, instant, ok := c.Number(s, time.Second); ok {
		if !instant && d >= epochFloor && d != retryafter.Max && time.Unix(0, int64(d)).Before(c.Now()) {
			return reset{Span{0, true}, asInstant} // long past, and never a length of 31 years
		}
		if instant || d >= epochFloor {
			return reset{Span{d, true}, asInstant}
		}
		return reset{Span{d, true}, asNumber}
	}
	if d, instant, rest, ok := c.Spelled(s); ok && rest == "" && strings.IndexByte(s, ' ') < 0 {
		if instant {
			return reset{Span{d, true}, asInstant}
		}
		return reset{Span{d, true}, asDuration}
	}
	if d, ok := c.Date(s); ok {
		return reset{Span{d, true}, asInstant}
	}
	if d, ok := retryafter.ISO(s); ok {
		return reset{Span{d, true}, asDuration}
	}
	if d, ok := retryafter.TimeSpan(s); ok {
		return reset{Span{d, true}, asDuration}
	}
	return reset{}
}

// epochFloor is the length of 1e9 seconds, which is an instant where nothing
// else fits: it is that of 9 September 2001.
const epochFloor = 1e9 * time.Second

// latest returns the latest reset of several field lines, and of the members of
// a line that a proxy joined from several. A line that cannot be read is left out:
// a recorder or proxy may have added another field's value as a line of its own.
func latest(lines []string, c *retryafter.Clock) reset {
	var r reset
	take := func(s string) bool {
		v := parseReset(trimOWS(s), c)
		if v.OK && (!r.OK || v.D > r.D || v.D == r.D && v.how > r.how) {
			r = v
		}
		return v.OK
	}
	for _, line := range lines {
		if !take(line) {
			for _, m := range joined(line) {
				take(m)
			}
		}
	}
	return r
}
