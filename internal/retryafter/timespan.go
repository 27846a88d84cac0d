package retryafter

import (
	"strings"
	"time"
)

// TimeSpan reads the constant format of a .NET TimeSpan, which some Azure
// services put into a field that is named after milliseconds:
//
//	timespan = [ days "." ] 2DIGIT ":" 2DIGIT ":" 2DIGIT [ "." 1*DIGIT ]
//	days     = 1*8DIGIT
//
// Hours end at 23, minutes and seconds at 59. A negative span is refused.
func TimeSpan(s string) (time.Duration, bool) {
	var days time.Duration
	colon := strings.IndexByte(s, ':')
	if dot := strings.IndexByte(s, '.'); dot >= 0 && dot < colon {
		n, ok := digits(s[:dot], 8)
		if !ok {
			return 0, false
		}
		days, s = time.Duration(n), s[dot+1:]
	}
	if len(s) < len("hh:mm:ss") || s[2] != ':' || s[5] != ':' {
		return 0, false
	}
	hours, ok1 := digits(s[:2], 2)
	minutes, ok2 := digits(s[3:5], 2)
	if !ok1 || !ok2 || !isDigit(s[6]) || !isDigit(s[7]) || hours > 23 || minutes > 59 {
		return 0, false
	}
	seconds, ok := Decimal(s[6:], time.Second)
	if !ok || seconds >= time.Minute || len(s) > 8 && s[8] != '.' {
		return 0, false
	}
	if days >= Max/(24*time.Hour) {
		return Max, true
	}
	d := days*24*time.Hour + time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute + seconds
	return min(d, Max), true
}

// digits reads a number that has at least one and at most that many digits, and
// nothing else.
func digits(s string, most int) (int64, bool) {
	if len(s) == 0 || len(s) > most {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}
