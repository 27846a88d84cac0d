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
	// Precise is the wait as the server most exactly put it, in nanoseconds: a
	// millisecond field when it is above zero, else Retry-After.
	Precise time.Duration

	// Longest is the longest of all waits that could be read. A caller that
	// promises to send nothing too early holds itself to this one.
	Longest time.Duration

	// OK reports whether any wait could be read. A wait of zero with OK set is
	// the server's word that the caller may come back at once.
	OK bool
}

// Parse reads Retry-After (RFC 9110 section 10.2.3), Retry-After-Ms (OpenAI and
// Azure OpenAI) and X-Ms-Retry-After-Ms (Azure). Names must be in canonical
// form, as net/http delivers them.
//
// A date is measured against the response's own Date field when that is valid,
// since both come from the same clock, and against now otherwise. A zero now
// means time.Now().
//
// Of several field lines the longest readable one counts. A zero in a
// millisecond field carries no information: Azure OpenAI sends it while
// the minute is empty. It never overrules Retry-After, and alone it is unknown.
//
// Parse does not allocate for numbers and for absent fields.
func Parse(h http.Header, now time.Time) Wait {
	ms := longest(h["Retry-After-Ms"], milliseconds)
	if x := longest(h["X-Ms-Retry-After-Ms"], millisecondsOrTimeSpan); x > ms {
		ms = x
	}
	w := Wait{}
	if ms > 0 {
		w = Wait{Precise: ms, Longest: ms, OK: true}
	}
	lines := h["Retry-After"]
	if len(lines) == 0 {
		return w
	}
	c := clock{header: h, local: now}
	d := longest(lines, c.secondsOrDate)
	if d < 0 {
		return w
	}
	if !w.OK {
		w.Precise = d
	}
	w.Longest = max(w.Longest, d)
	w.OK = true
	return w
}

// unknown is what the readers below return for a value they refuse. It is
// negative, so the longest of an unknown and a known wait is the known one.
const unknown = time.Duration(-1)

// longest returns the longest wait that read finds in lines, or unknown.
func longest(lines []string, read func(string) time.Duration) time.Duration {
	d := unknown
	for _, line := range lines {
		if v := read(trimOWS(line)); v > d {
			d = v
		}
	}
	return d
}

// trimOWS removes the optional white space around a field value, which is not
// part of it (RFC 9110 section 5.5).
func trimOWS(s string) string { return strings.Trim(s, " \t") }

func milliseconds(s string) time.Duration {
	if d, ok := Decimal(s, time.Millisecond); ok {
		return d
	}
	return unknown
}

func millisecondsOrTimeSpan(s string) time.Duration {
	if d, ok := Decimal(s, time.Millisecond); ok {
		return d
	}
	if d, ok := timeSpan(s); ok {
		return d
	}
	return unknown
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
