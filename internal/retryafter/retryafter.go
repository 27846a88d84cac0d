package retryafter

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// Max is the longest wait ever reported, about 146 years. It is half of what a
// time.Duration can hold, so that adding two waits cannot overflow.
const Max = time.Duration(math.MaxInt64 / 2)

// Wait is what a response says about coming back. The zero value means that it
// said nothing that could be read.
type Wait struct {
	// Longest is the longest of all waits that could be read. A caller that
	// promises to send nothing too early holds itself to this one.
	Longest time.Duration

	// OK reports whether any wait could be read. A wait of zero with OK set is
	// the server's word that the caller may come back at once.
	OK bool
}

// Parse reads the fields that name a wait. Names must be in canonical form, as net/http
// delivers them. A zero now means time.Now().
//
//	Retry-After                           RFC 9110 section 10.2.3
//	Retry-After-Ms                        OpenAI and Azure OpenAI
//	X-Ms-Retry-After-Ms                   Azure
//	X-Retry-After, X-Retry-After-Ms       gateways
//	X-RateLimit-Retry-After               gateways, in seconds or as Unix time
//	X-AI-RateLimit-Retry-After            Kong AI Gateway
//
// All have one grammar:
//
//	value  = member *( ", " member )  ; several lines that a proxy made one
//	member = number / HTTP-date / "@" number / timespan / units / ISO 8601
//
// The fields differ only in the unit of a bare number. "@" begins a date of RFC 9651:
// Unix seconds. Units are those of [Clock.Spelled] ("45 seconds", "1500ms"), a timespan is
// that of [TimeSpan], and the last form is that of [ISO] ("PT45S"). Quotes around a
// member, parameters after it (";x") and empty members (RFC 9110 section 5.6.1) are put
// aside. A number is a length of time or
// an instant, see [Clock.Number]; a date is read by [ParseDate]. Instants are measured
// against the response's own Date field where that is valid, since both come from the
// same clock: see [Clock].
//
// Of several members and lines the longest readable one counts. A zero in a
// millisecond field carries no information: Azure OpenAI sends it while
// the minute is empty. Alone it is unknown.
// A past instant there is no wait, which is information.
//
// Parse does not allocate for numbers and for absent fields.
func Parse(h http.Header, now time.Time) Wait {
	c := Clock{Header: h, Local: now}
	ms := max(
		longest(h["Retry-After-Ms"], &c, inMilliseconds),
		longest(h["X-Ms-Retry-After-Ms"], &c, inMilliseconds),
		longest(h["X-Retry-After-Ms"], &c, inMilliseconds),
	)
	w := Wait{}
	if ms >= 0 {
		w = Wait{Longest: ms, OK: true}
	}
	d := max(
		longest(h["Retry-After"], &c, inSeconds),
		longest(h["X-Retry-After"], &c, inSeconds),
		longest(h["X-Ratelimit-Retry-After"], &c, inSeconds),
		longest(h["X-Ai-Ratelimit-Retry-After"], &c, inSeconds),
	)
	if d < 0 {
		return w
	}
	w.Longest = max(w.Longest, d)
	w.OK = true
	return w
}

// unknown is what the readers below return for a value they refuse. It is
// negative, so the longest of an unknown and a known wait is the known one.
const unknown = time.Duration(-1)

// longest returns the longest wait in lines, or unknown.
func longest(lines []string, c *Clock, f form) time.Duration {
	d := unknown
	for _, line := range lines {
		line = strings.Trim(line, " \t,")
		v := f.read(c, line)
		if v == unknown && strings.Contains(line, ", ") {
			v = members(line, c, f)
		}
		d = max(d, v)
	}
	return d
}

// members reads a line that a proxy joined from several. A date has a comma of
// its own. A member that cannot be read makes the line unknown: "1, soon" is no
// statement of anybody's.
func members(line string, c *Clock, f form) time.Duration {
	d := unknown
	for line != "" {
		i := strings.Index(line, ", ")
		if i < 0 {
			i = len(line)
		} else if j := strings.Index(line[i+2:], ", "); f.read(c, trimOWS(line[:i])) == unknown {
			if i += 2 + j; j < 0 {
				i = len(line)
			}
		}
		v := f.read(c, trimOWS(line[:i]))
		if v == unknown {
			return unknown
		}
		d = max(d, v)
		line = line[min(i+1, len(line)):]
	}
	return d
}

// trimOWS removes the optional white space around a field value, which is not
// part of it (RFC 9110 section 5.5).
func trimOWS(s string) string { return strings.Trim(s, " \t") }

// A form is how the values of a field are written.
type form uint8

const (
	inSeconds form = iota // a bare number is in seconds
	inMilliseconds
)

// read reads one value, or returns unknown:
//
//	value = bare / [ DQUOTE ] bare [ DQUOTE ] *( ";" parameter )
//
// It is no function value, since that would move the Clock to the heap.
func (f form) read(c *Clock, s string) time.Duration {
	if d := f.bare(c, s); d != unknown {
		return d
	}
	value, parameters, _ := strings.Cut(s, ";")
	if strings.Contains(parameters, ",") {
		return unknown // a list: its members are read one by one
	}
	value = trimOWS(value)
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = trimOWS(value[1 : n-1])
	}
	if len(value) == len(s) {
		return unknown
	}
	return f.bare(c, value)
}

// bare reads a value without quotes and parameters. Only seconds and an HTTP-date
// are those of RFC 9110. A fraction ("1.5") is what several providers send. The
// others have one reading each, and a server that is asked again before it breaks
// its word.
func (f form) bare(c *Clock, s string) time.Duration {
	unit := time.Second
	if f == inMilliseconds {
		unit = time.Millisecond
	}
	if d, instant, ok := c.Number(s, unit); ok {
		if d == 0 && !instant && f == inMilliseconds {
			return unknown
		}
		return d
	}
	d, instant, ok := c.spelled(s)
	if !ok || d == 0 && !instant && f == inMilliseconds {
		return unknown
	}
	return d
}

// spelled reads what is no bare number: the time left to an instant, or a length of
// time.
func (c *Clock) spelled(s string) (d time.Duration, instant, ok bool) {
	if d, ok := c.Date(s); ok {
		return d, true, true
	}
	if len(s) > longestDate || s == "" {
		return 0, false, false
	}
	if s[0] == '@' { // a date of RFC 9651; some count from 1970 in smaller units
		d, instant, ok := c.Number(s[1:], time.Second)
		if !instant {
			d = c.Until(time.Unix(0, int64(d)))
		}
		return d, true, ok
	}
	if d, ok := ISO(s); ok {
		return d, false, true
	}
	if len(s) > 1 && s[1] == ':' {
		s = "0" + s
	}
	if d, ok := TimeSpan(s); ok {
		return d, false, true
	}
	d, instant, rest, ok := c.Spelled(strings.ToLower(s))
	return d, instant, ok && (rest == "" || rest == ".")
}

// Decimal reads a non-negative decimal number of units:
//
//	number = 1*DIGIT / *DIGIT "." 1*DIGIT
//
// unit is a power of ten nanoseconds: time.Second or time.Millisecond. The
// result is rounded up to the nanosecond and saturates at Max. Signs,
// exponents, "NaN", white space and units are refused.
func Decimal(s string, unit time.Duration) (d time.Duration, ok bool) {
	i, huge := 0, false
	var whole int64
	for ; i < len(s) && isDigit(s[i]); i++ {
		if whole > (math.MaxInt64-9)/10 {
			huge = true
			continue
		}
		whole = whole*10 + int64(s[i]-'0')
	}
	if huge || whole > int64(Max/unit) {
		d = Max
	} else {
		d = time.Duration(whole) * unit
	}
	if i == len(s) {
		return d, i > 0
	}
	if s[i] != '.' || i+1 == len(s) {
		return 0, false
	}
	scale, rest := unit, false
	for i++; i < len(s); i++ {
		if !isDigit(s[i]) {
			return 0, false
		}
		digit := time.Duration(s[i] - '0')
		scale /= 10
		d += digit * scale
		rest = rest || scale == 0 && digit != 0
	}
	if rest {
		d++
	}
	return min(d, Max), true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
