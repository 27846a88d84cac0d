package retryafter

import (
	"net/http"
	"strings"
	"time"
)

// clock knows what "now" means to the server that sent header.
type clock struct {
	header http.Header
	local  time.Time // the caller's now; zero: time.Now()
}

// now returns the response's Date when there is exactly a valid one, else the
// caller's time. A response with two dates says nothing about the time.
func (c clock) now() time.Time {
	local := c.local
	if local.IsZero() {
		local = time.Now()
	}
	if lines := c.header["Date"]; len(lines) == 1 {
		if t, ok := ParseDate(trimOWS(lines[0]), local); ok {
			return t
		}
	}
	return local
}

// secondsOrDate reads
//
//	Retry-After = HTTP-date / delay-seconds / fraction
//
// The fraction ("1.5") is outside RFC 9110, but several providers send it and
// their own SDKs read it.
//
// A delay of a thousand million seconds or more is 31 years, which nobody means.
// Where the same number read as Unix seconds lies between a minute ago and a
// month ahead, it is that instant: some servers put one there. Everywhere else
// it stays the delay it claims to be, however long; it never becomes a shorter
// wait on a mere suspicion.
func (c clock) secondsOrDate(s string) time.Duration {
	if d, ok := Decimal(s, time.Second); ok {
		if d < epochFloor || d == Max {
			return d
		}
		// Both sides are below 146 years from 1970, so nothing overflows.
		left := time.Unix(0, int64(d)).Sub(c.now())
		if left < -time.Minute || left > 31*24*time.Hour {
			return d
		}
		return max(left, 0)
	}
	local := c.local
	if local.IsZero() {
		local = time.Now()
	}
	t, ok := ParseDate(s, local)
	if !ok {
		return unknown
	}
	// Sub saturates, so the distance to any date can be clamped.
	return min(max(t.Sub(c.now()), 0), Max)
}

// epochFloor is the smallest bare number, taken as seconds, that may be an
// instant: 1e9 is 9 September 2001.
const epochFloor = 1e9 * time.Second

// longestDate is the length of the longest date that can be valid, with room
// for a fraction of a second, which the standard library allows.
const longestDate = 48

// ParseDate reads an HTTP-date (RFC 9110 section 5.6.7):
//
//	IMF-fixdate  Sun, 06 Nov 1994 08:49:37 GMT
//	rfc850-date  Sunday, 06-Nov-94 08:49:37 GMT
//	asctime-date Sun Nov  6 08:49:37 1994
//
// The two-digit year of the second form lies in the hundred years that end
// fifty years after now. A zone other than GMT is refused: the standard library
// would take an unknown abbreviation for an offset of zero and so be hours off.
func ParseDate(s string, now time.Time) (time.Time, bool) {
	if len(s) == 0 || len(s) > longestDate || s[0] < 'A' || s[0] > 'z' {
		return time.Time{}, false
	}
	t, err := http.ParseTime(s)
	if err != nil {
		return time.Time{}, false
	}
	if strings.IndexByte(s, '-') < 0 {
		return t, true
	}
	if !strings.HasSuffix(s, " GMT") {
		return time.Time{}, false
	}
	t = t.UTC()
	latest := now.UTC().AddDate(50, 0, 0)
	t = t.AddDate(latest.Year()/100*100-t.Year()/100*100, 0, 0)
	if t.After(latest) {
		t = t.AddDate(-100, 0, 0)
	}
	return t, true
}
