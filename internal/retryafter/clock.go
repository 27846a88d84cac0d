package retryafter

import (
	"net/http"
	"strings"
	"time"
)

// A Clock is the instant from which a response measures instants: its own Date
// field, since the server's clock made both, else the caller's time. It is read
// once, and only when it is needed. The zero value is the local clock.
//
// A Date more than a year off the caller's time may be no clock at all, such as a
// Date of 1970. Then the nearer of the two measures an instant.
type Clock struct {
	// Header is the response's header; nil has no Date.
	Header http.Header
	// Local is the caller's time. Zero: time.Now().
	Local time.Time

	at   time.Time
	read bool
}

// Now is the response's Date when it has exactly one that can be read, else the
// caller's time. A response with two dates says nothing about the time.
func (c *Clock) Now() time.Time {
	if !c.read {
		c.read = true
		c.at = c.local()
		if lines := c.Header["Date"]; len(lines) == 1 {
			if t, ok := ParseDate(trimOWS(lines[0]), c.at); ok {
				c.at = t
			}
		}
	}
	return c.at
}

func (c *Clock) local() time.Time {
	if c.Local.IsZero() {
		c.Local = time.Now()
	}
	return c.Local
}

// Until is the time left to t, at least 0 and at most [Max].
func (c *Clock) Until(t time.Time) time.Duration {
	return min(max(t.Sub(c.base(t)), 0), Max) // Sub saturates
}

// base is the instant from which t is measured: see [Clock].
func (c *Clock) base(t time.Time) time.Time {
	date, local := c.Now(), c.local()
	if off := date.Sub(local).Abs(); off > year && t.Sub(local).Abs() < t.Sub(date).Abs() {
		return local
	}
	return date
}

// Date reads a date, see [ParseDate], as the time left to it.
func (c *Clock) Date(s string) (time.Duration, bool) {
	t, ok := ParseDate(s, c.local())
	if !ok {
		return 0, false
	}
	return c.Until(t), true
}

const (
	year = 365 * 24 * time.Hour

	// leastInstant is the shortest length that may be an instant: numbers of
	// milliseconds that are Unix seconds of our time read as twenty days.
	leastInstant = 10 * 24 * time.Hour

	// farBack and farAhead bound the instants that are recognised. Numbers
	// outside are lengths of time, however long: a number never becomes a
	// shorter wait on a mere suspicion.
	farBack, farAhead = 10 * year, 50 * year
)

// epochUnits are the units in which servers count from 1970.
var epochUnits = [...]time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond}

// Number reads a bare number by the grammar of [Decimal]. As a rule it is a
// length of time in units. It is an instant, in Unix seconds, milliseconds,
// microseconds or nanoseconds, where one of these readings lies between ten
// years ago and fifty years ahead. Such a number would be a wait of more than
// forty years. Where the number is a believable length as well (Unix seconds in
// a field of milliseconds), the instant lies within a year of now.
//
// The wait to an instant is the time left to it. A past instant is no wait.
func (c *Clock) Number(s string, unit time.Duration) (d time.Duration, instant, ok bool) {
	if d, ok = Decimal(s, unit); !ok || d < leastInstant {
		return d, false, ok
	}
	for _, u := range epochUnits {
		since, _ := Decimal(s, u)
		if since == Max {
			continue
		}
		back, ahead := farBack, farAhead
		if u > unit {
			back, ahead = year, year
		}
		at := time.Unix(0, int64(since))
		for _, now := range [...]time.Time{c.base(at), c.local()} {
			if left := at.Sub(now); left >= -back && left <= ahead {
				return max(left, 0), true, true
			}
		}
	}
	return d, false, true
}

// Spelled is the package's [Spelled] with instants. One number with a unit of a second
// or less is an instant where [Clock.Number] finds one: "1785931230s" are 56 years, and
// a program that adds units to its numbers writes it.
func (c *Clock) Spelled(s string) (d time.Duration, instant bool, rest string, ok bool) {
	d, rest, ok = Spelled(s)
	if !ok || d < leastInstant {
		return d, false, rest, ok
	}
	part, unit, after, _ := durationPart(s)
	if part != d || after != rest || units[unit].d > time.Second {
		return d, false, rest, true
	}
	number := s[:len(s)-len(strings.TrimLeft(s, "0123456789."))]
	if at, instant, ok := c.Number(number, units[unit].d); ok && instant {
		return at, true, rest, true
	}
	return d, false, rest, true
}
