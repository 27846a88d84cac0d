package retryafter

import (
	"slices"
	"strings"
	"time"
)

// ISO reads a length of time as ISO 8601 writes it, in either case:
//
//	duration = "P" *( number "W" / number "D" ) [ "T" *( number ( "H" / "M" / "S" ) ) ]
//
// It has a unit at least; units fall, each at most once. Years and months are refused:
// they have no one length. The result is rounded up to the nanosecond and cut to [Max].
func ISO(s string) (d time.Duration, ok bool) {
	if s == "" || s[0]|0x20 != 'p' {
		return 0, false
	}
	last, clock := time.Duration(1<<63-1), false
	for s = s[1:]; s != ""; {
		if s[0]|0x20 == 't' && !clock {
			if clock, s = true, s[1:]; s == "" {
				return 0, false
			}
			continue
		}
		i := 0
		for i < len(s) && (isDigit(s[i]) || s[i] == '.') {
			i++
		}
		if i == 0 || i == len(s) {
			return 0, false
		}
		if _, valid := Decimal(s[:i], time.Second); !valid {
			return 0, false
		}
		var unit time.Duration
		switch letter := s[i] | 0x20; {
		case letter == 'w' && !clock:
			unit = 7 * 24 * time.Hour
		case letter == 'd' && !clock:
			unit = 24 * time.Hour
		case letter == 'h' && clock:
			unit = time.Hour
		case letter == 'm' && clock:
			unit = time.Minute
		case letter == 's' && clock:
			unit = time.Second
		}
		if unit == 0 || unit >= last {
			return 0, false
		}
		whole, fraction, _ := strings.Cut(s[:i], ".")
		d, last, ok = min(d+Scale(whole, fraction, unit), Max), unit, true
		s = s[i+1:]
	}
	return d, ok
}

// units from the largest to the smallest, each with its spellings. This is the one
// table of them, for fields, bodies and resets.
var units = [...]struct {
	d         time.Duration
	spellings []string
}{
	{7 * 24 * time.Hour, []string{"weeks", "week", "w"}},
	{24 * time.Hour, []string{"days", "day", "d", "tagen", "tag", "jours", "jour", "días", "día", "dias", "dia", "giorni", "giorno", "дней", "дня", "день"}},
	{time.Hour, []string{"hours", "hour", "hrs", "hr", "h", "stunden", "stunde", "heures", "heure", "horas", "hora", "ore", "ora", "часов", "часа", "час"}},
	{time.Minute, []string{"minutes", "minute", "mins", "min", "m", "minuten", "minutos", "minuto", "minuti", "минуту", "минуты", "минут"}},
	{time.Second, []string{"seconds", "second", "secs", "sec", "s", "sekunden", "sekunde", "secondes", "seconde", "segundos", "segundo", "secondi", "secondo", "секунду", "секунды", "секунд"}},
	{time.Millisecond, []string{"milliseconds", "millisecond", "ms"}},
	// A micro sign, or a Greek mu: what a capital one is in lower case.
	{time.Microsecond, []string{"microseconds", "microsecond", "us", "\u00b5s", "\u03bcs"}},
	{time.Nanosecond, []string{"nanoseconds", "nanosecond", "ns"}},
}

// byFirst are the spellings by their first byte, the longest first: "ms" is not read
// as "m". Each response has resets, and the whole table has a hundred spellings.
var byFirst = func() (t [256][]spelling) {
	for u := range units {
		for _, name := range units[u].spellings {
			t[name[0]] = append(t[name[0]], spelling{name, u})
		}
	}
	for _, names := range t {
		slices.SortFunc(names, func(a, b spelling) int { return len(b.name) - len(a.name) })
	}
	return t
}()

// A spelling is a name of units[unit].
type spelling struct {
	name string
	unit int
}

// Spelled reads a length of time with units, in lower case, from the beginning of s:
//
//	duration = part *( [ "," ] [ " " ] [ "and " ] part )    ; units strictly falling
//	part     = 1*DIGIT [ "." 1*DIGIT ] [ " " ] unit
//
// as in "17m31.056s", "644ms", "1 minute 30 seconds". A number without a unit,
// a sign, an exponent and a repeated or rising unit make the whole unreadable.
// The result is rounded up to the nanosecond and cut to [Max]. rest is what follows.
func Spelled(s string) (d time.Duration, rest string, ok bool) {
	last := -1
	for {
		part, unit, after, found := durationPart(s)
		if !found {
			// What follows a complete duration is the caller's concern, but
			// "5s-3" and "1m 5" must not pass for a shorter wait.
			return d, s, false
		}
		if unit <= last {
			return d, s, false
		}
		last = unit
		d = min(d+part, Max)
		s = after
		next := strings.TrimPrefix(s, ",")
		next = strings.TrimPrefix(next, " ")
		next = strings.TrimPrefix(next, "and ")
		if next == "" || !isDigit(next[0]) {
			return d, s, true
		}
		s = next
	}
}

func durationPart(s string) (d time.Duration, unit int, rest string, ok bool) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	whole := s[:i]
	if whole == "" {
		return 0, 0, s, false
	}
	fraction := ""
	if i < len(s) && s[i] == '.' {
		j := i + 1
		for j < len(s) && isDigit(s[j]) {
			j++
		}
		if fraction = s[i+1 : j]; fraction == "" {
			return 0, 0, s, false
		}
		i = j
	}
	tail := strings.TrimPrefix(s[i:], " ")
	if tail == "" {
		return 0, 0, s, false
	}
	names := byFirst[tail[0]]
	k := slices.IndexFunc(names, func(n spelling) bool { return strings.HasPrefix(tail, n.name) })
	if k < 0 {
		return 0, 0, s, false
	}
	unit = names[k].unit
	rest = tail[len(names[k].name):]
	if rest != "" && ('a' <= rest[0] && rest[0] <= 'z' || 'A' <= rest[0] && rest[0] <= 'Z') {
		return 0, 0, s, false
	}
	return Scale(whole, fraction, units[unit].d), unit, rest, true
}

// Scale is (whole.fraction) * unit, rounded up, at most Max.
func Scale(whole, fraction string, unit time.Duration) time.Duration {
	var n int64
	for i := 0; i < len(whole); i++ {
		n = n*10 + int64(whole[i]-'0')
		if n > int64(Max)/int64(unit) {
			return Max
		}
	}
	d := time.Duration(n) * unit
	// Digits of the fraction, from the left: each is worth a tenth of the one
	// before. step*digit stays exact until step is no longer divisible by
	// ten; from there on any digit that is not zero rounds up.
	step := unit
	for i := 0; i < len(fraction); i++ {
		digit := time.Duration(fraction[i] - '0')
		if step%10 == 0 {
			step /= 10
			d += step * digit
			continue
		}
		// Below here lies less than one step in total; work out the rest
		// with as many digits as fit, rounding up.
		num, den := int64(0), int64(1)
		for ; i < len(fraction) && den < 1e6; i++ {
			num = num*10 + int64(fraction[i]-'0')
			den *= 10
		}
		if strings.Trim(fraction[i:], "0") != "" {
			num++
		}
		d += time.Duration((num*int64(step) + den - 1) / den)
		break
	}
	return min(d, Max)
}
