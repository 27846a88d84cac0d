package refusal

import (
	"math"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// MaxWait is the longest wait ever reported; longer ones are cut to it. Half of
// the range leaves room to add a jitter without wrapping.
const MaxWait = time.Duration(math.MaxInt64 / 2)

// A waitForm is words that announce a wait. A duration, a time span or a date
// follows at once.
type waitForm struct {
	words  string
	reset  bool // a limit is restored then; else the call may be tried again
	source string
}

var waitForms = [...]waitForm{
	{words: "try again in ", source: "OpenAI rate limits guide; Groq rate limits"},
	{words: "try again after ", source: "Azure API Management token limit policies; Moonshot"},
	{words: "try again at ", source: "gateways"},
	{words: "retry in ", source: "Gemini API rate limits"},
	{words: "retry after ", source: "Azure OpenAI quotas and limits"},
	{words: "retry at ", source: "gateways"},
	{words: "retrying in ", source: "gateways"},
	{words: "please wait ", source: "GitHub Models rate limits"},
	{words: "wait for ", source: "gateways"},
	{words: "available in ", source: "gateways"},
	{words: "available at ", source: "gateways"},
	{words: "come back in ", source: "gateways"},
	{words: "reset in ", reset: true, source: "gateways"},
	{words: "resets in ", reset: true, source: "gateways"},
	{words: "reset after ", reset: true, source: "Google Cloud Code"},
	{words: "resets after ", reset: true, source: "gateways"},
	{words: "reset at ", reset: true, source: "Z.ai error codes 1308, 1310"},
	{words: "resets at ", reset: true, source: "gateways"},
	{words: "reset on ", reset: true, source: "gateways"},
	{words: "resets on ", reset: true, source: "gateways"},
	{words: "regain access on ", reset: true, source: "Anthropic errors: usage limits"},
	{words: "replenished in ", reset: true, source: "Azure API Management quota policy"},
	{words: "限额将在 ", reset: true, source: "Zhipu error codes 1308, 1310"},
	{words: "将在 ", reset: true, source: "Zhipu error codes 1308, 1310"},
	{words: "将于 ", reset: true, source: "gateways in Chinese"},

	// Gateways that answer in the language of their users.
	{words: "es in ", source: "German: Versuchen Sie es in 30 Sekunden erneut"},
	{words: "erneut in ", source: "German"},
	{words: "réessayer dans ", source: "French"},
	{words: "réessayez dans ", source: "French"},
	{words: "nuevo en ", source: "Spanish: Inténtelo de nuevo en 30 segundos"},
	{words: "nuevo dentro de ", source: "Spanish"},
	{words: "novamente em ", source: "Portuguese"},
	{words: "riprova tra ", source: "Italian"},
	{words: "через ", source: "Russian"},
}

// waits finds the waits that a sentence asks for. Of each kind the last one
// counts: a provider's advice closes its message, and what it repeats of the
// caller's words stands before.
func (s sentenceText) waits(clock *retryafter.Clock) (w times) {
	lastRetry, lastReset := -1, -1
	for _, form := range &waitForms {
		i := strings.LastIndex(string(s), form.words)
		if i < 0 || i > 0 && isWordByte(s[i-1]) && form.words[0] < 0x80 {
			continue
		}
		d, instant, ok := s.waitAt(i+len(form.words), clock)
		switch {
		case !ok:
		case !form.reset && i > lastRetry:
			w.retry, lastRetry = d, i
		case form.reset && i > lastReset:
			w.resetIn, w.resetAt, lastReset = 0, 0, i
			if instant {
				w.resetAt = d
			} else {
				w.resetIn = d
			}
		}
	}
	if d, i := s.eastWait(); i > lastRetry {
		w.retry = d
	}
	return w
}

// numbers that sentences write as words.
var wordsOfNumbers = [...]struct{ word, digits string }{
	{"a ", "1 "}, {"an ", "1 "}, {"one ", "1 "}, {"two ", "2 "}, {"three ", "3 "}, {"four ", "4 "}, {"five ", "5 "}, {"six ", "6 "},
	{"seven ", "7 "}, {"eight ", "8 "}, {"nine ", "9 "}, {"ten ", "10 "}, {"fifteen ", "15 "}, {"twenty ", "20 "}, {"thirty ", "30 "}, {"sixty ", "60 "},
}

// digit writes a number at the beginning of s in digits: "an hour" is "1 hour".
func digit(s string) string {
	for _, w := range wordsOfNumbers {
		if after, ok := strings.CutPrefix(s, w.word); ok {
			return w.digits + after
		}
	}
	return s
}

// longestAt bounds how much of a sentence is tried as a date.
const longestAt = 48

// waitAt reads what follows the words of a form.
func (s sentenceText) waitAt(i int, clock *retryafter.Clock) (d time.Duration, instant, ok bool) {
	rest := digit(strings.TrimLeft(string(s)[i:], " :"))
	if d, after, ok := duration(rest); ok && ends(after) {
		return d, false, true
	}
	// A date ends at a blank, a comma, a full stop or a bracket. The longest
	// that can be read is meant: "2026-01-01 10:00:00 +0800".
	if len(rest) > longestAt {
		rest = rest[:longestAt]
	}
	for end := len(rest); end > 0; end-- {
		if end < len(rest) && strings.IndexByte(" ,.;)]", rest[end]) < 0 && rest[end] < 0x80 {
			continue
		}
		t := strings.TrimRight(rest[:end], " .,;:)")
		if d, ok := clock.Date(t); ok {
			return min(d, MaxWait), true, true
		}
		if d, ok := retryafter.TimeSpan(t); ok {
			return min(d, MaxWait), false, true
		}
		if d, instant, ok := clock.Number(t, time.Second); ok && instant {
			return min(d, MaxWait), true, true
		}
	}
	return 0, false, false
}

// eastUnits are those of Chinese, Japanese and Korean, the longer word first where
// one ends in another.
var eastUnits = [...]struct {
	word string
	unit time.Duration
}{
	{"天", 24 * time.Hour}, {"个小时", time.Hour}, {"小时", time.Hour}, {"分钟", time.Minute}, {"分", time.Minute},
	{"毫秒", time.Millisecond}, {"秒钟", time.Second}, {"秒", time.Second},
	{"個小時", time.Hour}, {"小時", time.Hour}, {"分鐘", time.Minute}, {"秒鐘", time.Second},
	{"時間", time.Hour}, {"ミリ秒", time.Millisecond},
	{"시간", time.Hour}, {"분", time.Minute}, {"밀리초", time.Millisecond}, {"초", time.Second},
}

// eastWait reads "请在 30 秒后重试", "1分30秒後", "30초 후에": numbers and units that end
// in a word for after. It returns the last, and where it ends.
func (s sentenceText) eastWait() (d time.Duration, end int) {
	end = -1
	for _, after := range [...]string{"后", "後", "후"} {
		if n, i := s.waitBefore(after); i > end {
			d, end = n, i
		}
	}
	return d, end
}

func (s sentenceText) waitBefore(after string) (time.Duration, int) {
	text := string(s)
	for i := len(text); i > 0; {
		i = strings.LastIndex(text[:i], after)
		if i < 0 {
			break
		}
		before, total, found := strings.TrimSuffix(text[:i], "之"), time.Duration(0), false
	parts:
		for {
			before = strings.TrimRight(before, " ")
			for _, u := range eastUnits {
				number, ok := strings.CutSuffix(before, u.word)
				if !ok {
					continue
				}
				number = strings.TrimRight(number, " ")
				j := len(number)
				for j > 0 && (isDigit(number[j-1]) || number[j-1] == '.') {
					j--
				}
				if j == len(number) || j > 0 && isWordByte(number[j-1]) || number[j] == '.' {
					break parts
				}
				whole, fraction, _ := strings.Cut(number[j:], ".")
				if strings.Contains(fraction, ".") {
					break parts
				}
				total, found = min(total+scale(whole, fraction, u.unit), MaxWait), true
				before = number[:j]
				continue parts
			}
			break
		}
		if found {
			return total, i
		}
	}
	return 0, -1
}

// ends reports whether a duration may end before rest: "5s." does, "5s9" and
// "5 secondsaries" do not.
func ends(rest string) bool {
	if rest == "" {
		return true
	}
	if rest[0] == '.' || rest[0] == ',' {
		return len(rest) == 1 || !isWordByte(rest[1])
	}
	return !isWordByte(rest[0]) && rest[0] < 0x80
}

func isWordByte(c byte) bool {
	return isDigit(c) || c == '_' || c == '-' || c == '+' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// units from the largest to the smallest, each with its spellings. The longer
// spelling stands first, so that "ms" is not read as "m".
var units = [...]struct {
	d         time.Duration
	spellings []string
}{
	{24 * time.Hour, []string{"days", "day", "d", "tagen", "tag", "jours", "jour", "días", "día", "dias", "dia", "giorni", "giorno", "дней", "дня", "день"}},
	{time.Hour, []string{"hours", "hour", "hrs", "hr", "h", "stunden", "stunde", "heures", "heure", "horas", "hora", "ore", "ora", "часов", "часа", "час"}},
	{time.Minute, []string{"minutes", "minute", "mins", "min", "m", "minuten", "minutos", "minuto", "minuti", "минуту", "минуты", "минут"}},
	{time.Second, []string{"seconds", "second", "secs", "sec", "s", "sekunden", "sekunde", "secondes", "seconde", "segundos", "segundo", "secondi", "secondo", "секунду", "секунды", "секунд"}},
	{time.Millisecond, []string{"milliseconds", "millisecond", "ms"}},
	{time.Microsecond, []string{"microseconds", "microsecond", "us", "µs"}},
	{time.Nanosecond, []string{"nanoseconds", "nanosecond", "ns"}},
}

// duration reads
//
//	duration = part *( [ "," ] [ " " ] [ "and " ] part )    ; units strictly falling
//	part     = 1*DIGIT [ "." 1*DIGIT ] [ " " ] unit
//
// as in "17m31.056s", "644ms", "1 minute 30 seconds". A number without a unit,
// a sign, an exponent and a repeated or rising unit make the whole unreadable.
// The result is rounded up to the nanosecond and cut to [MaxWait].
func duration(s string) (d time.Duration, rest string, ok bool) {
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
		d = min(d+part, MaxWait)
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
	// The longest spelling that fits decides, over all units: "min" is not
	// "m", "ms" is not "m".
	longest := 0
	for u := range units {
		for _, name := range units[u].spellings {
			if len(name) > longest && strings.HasPrefix(tail, name) {
				longest, unit = len(name), u
			}
		}
	}
	if longest == 0 {
		return 0, 0, s, false
	}
	rest = tail[longest:]
	if rest != "" && ('a' <= rest[0] && rest[0] <= 'z' || 'A' <= rest[0] && rest[0] <= 'Z') {
		return 0, 0, s, false
	}
	return scale(whole, fraction, units[unit].d), unit, rest, true
}

// scale is (whole.fraction) * unit, rounded up, at most MaxWait.
func scale(whole, fraction string, unit time.Duration) time.Duration {
	var n int64
	for i := 0; i < len(whole); i++ {
		n = n*10 + int64(whole[i]-'0')
		if n > int64(MaxWait)/int64(unit) {
			return MaxWait
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
	return min(d, MaxWait)
}
