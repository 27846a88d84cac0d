package retryafter

import (
	"strings"
	"time"
)

// shortestDate and longestDate are the lengths of the shortest and the longest date
// that are read, without a zone. Some servers write an hour of one digit.
const (
	shortestDate = len("2 Jan 2006 5:04:05")
	longestDate  = 64
)

// A dateForm is a date without its zone. A day may have one digit, and a
// fraction may follow the seconds.
type dateForm struct {
	layout  string
	century bool // the year has two digits
}

var (
	withT       = []dateForm{{layout: "2006-01-02T15:04:05"}} // RFC 3339
	withBlank   = []dateForm{{layout: "2006-01-02 15:04:05"}}
	withSlashes = []dateForm{{layout: "2006/01/02 15:04:05"}}
	withoutDay  = []dateForm{{layout: "2 Jan 2006 15:04:05"}}
	fixdate     = []dateForm{{layout: "Mon, 2 Jan 2006 15:04:05"}}
	cookie      = []dateForm{{layout: "Mon, 2-Jan-2006 15:04:05"}, {layout: "Mon, 2-Jan-06 15:04:05", century: true}}
	asctime     = []dateForm{{layout: "Mon Jan _2 15:04:05 2006"}, {layout: "Mon Jan 2 2006 15:04:05"}, {layout: "Mon 2 Jan 2006 15:04:05"}} // and ECMAScript, and no comma
	rfc850      = []dateForm{{layout: "Monday, 2-Jan-06 15:04:05", century: true}, {layout: "Monday, 2-Jan-2006 15:04:05"}}
	longDay     = []dateForm{{layout: "Monday, 2 Jan 2006 15:04:05"}}
)

// formsOf picks the forms that s may have by its looks, since each form that
// fails costs allocations.
func formsOf(s string) []dateForm {
	dashes := strings.IndexByte(s, '-') >= 0
	switch {
	case isDigit(s[0]) && s[4] == '-' && s[10] == 'T':
		return withT
	case isDigit(s[0]) && s[4] == '-':
		return withBlank
	case isDigit(s[0]) && s[4] == '/':
		return withSlashes
	case isDigit(s[0]):
		return withoutDay
	case s[3] == ',' && dashes:
		return cookie
	case s[3] == ',':
		return fixdate
	case s[3] == ' ':
		return asctime
	case dashes:
		return rfc850
	}
	return longDay
}

// ParseDate reads the dates of RFC 9110 section 5.6.7, RFC 3339 and what
// servers make of them:
//
//	IMF-fixdate  Sun, 06 Nov 1994 08:49:37 GMT
//	rfc850-date  Sunday, 06-Nov-94 08:49:37 GMT
//	asctime-date Sun Nov  6 08:49:37 1994
//	RFC 3339     1994-11-06T08:49:37Z, with a blank for the T, with / for the -
//	zone         GMT / UTC / UT / Z / [ "GMT" / "UTC" ] offset
//
// Without a zone a date is in UTC, as asctime-date is. A two-digit year lies in
// the hundred years that end fifty years after now. A leap second is the second
// after 59. Zones with another name are refused: PST is an offset to some and a
// wrong word to others, and a wait would be hours off.
func ParseDate(s string, now time.Time) (time.Time, bool) {
	if len(s) < shortestDate || len(s) > longestDate {
		return time.Time{}, false
	}
	s, east, ok := cutZone(s)
	if !ok || len(s) < shortestDate {
		return time.Time{}, false
	}
	leap := time.Duration(0)
	if i := strings.LastIndexByte(s, ':'); i >= 0 && strings.HasPrefix(s[i:], ":60") {
		s, leap = s[:i]+":59"+s[i+3:], time.Second
	}
	for _, f := range formsOf(s) {
		t, err := time.Parse(f.layout, s)
		if err != nil {
			continue
		}
		t = t.Add(leap - east)
		if f.century {
			latest := now.UTC().AddDate(50, 0, 0)
			t = t.AddDate(latest.Year()/100*100-t.Year()/100*100, 0, 0)
			if t.After(latest) {
				t = t.AddDate(-100, 0, 0)
			}
		}
		return t, true
	}
	return time.Time{}, false
}

// cutZone takes the zone, which follows the time of day, out of a date. It returns
// how far east of Greenwich the zone is.
func cutZone(s string) (rest string, east time.Duration, ok bool) {
	i := strings.IndexByte(s, ':')
	end := i + len(":04:05")
	if i < 0 || end > len(s) || s[i+3] != ':' {
		return "", 0, false
	}
	if end < len(s) && s[end] == '.' {
		for end++; end < len(s) && isDigit(s[end]); end++ {
		}
	}
	rest, zone := s[:end], s[end:]
	if len(zone) >= 5 && zone[0] == ' ' { // asctime-date ends in the year
		if _, ok := digits(zone[1:5], 4); ok {
			rest, zone = rest+zone[:5], zone[5:]
		}
	}
	zone, _, _ = strings.Cut(zone, "(") // ECMAScript repeats it in words
	zone = strings.ToUpper(strings.Trim(zone, " "))
	if len(zone) > 3 && zone[0] != 'G' && zone[0] != 'U' { // "+0000 UTC", as Go prints it
		zone = strings.TrimSuffix(zone, " UTC")
	}
	if len(rest) > 10 && rest[10] == 't' {
		rest = rest[:10] + "T" + rest[11:]
	}
	switch zone {
	case "", "GMT", "UTC", "UT", "Z":
		return rest, 0, true
	}
	if strings.HasPrefix(zone, "GMT") || strings.HasPrefix(zone, "UTC") {
		zone = zone[3:]
	}
	east, ok = offset(zone)
	return rest, east, ok
}

// offset reads
//
//	offset = ( "+" / "-" ) ( 2DIGIT 2DIGIT / 1*2DIGIT ":" 2DIGIT / 2DIGIT )
func offset(s string) (east time.Duration, ok bool) {
	if s == "" || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hours, minutes, colon := strings.Cut(s[1:], ":")
	if !colon && len(hours) == 4 {
		hours, minutes = hours[:2], hours[2:]
	} else if !colon {
		minutes = "00"
	}
	h, ok1 := digits(hours, 2)
	m, ok2 := digits(minutes, 2)
	if !ok1 || !ok2 || len(minutes) != 2 || !colon && len(hours) != 2 || h > 23 || m > 59 {
		return 0, false
	}
	east = time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if s[0] == '-' {
		east = -east
	}
	return east, true
}
