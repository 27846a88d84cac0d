package refusal

import (
	"cmp"
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
//
// east says that a time without a zone is in UTC+8; see [fields.inChina].
func (s sentenceText) waits(clock *retryafter.Clock, east bool) (w times) {
	lastRetry, lastReset := -1, -1
	for _, form := range &waitForms {
		i := s.lastForm(form.words)
		if i < 0 || i > 0 && isWordByte(s[i-1]) && form.words[0] < 0x80 {
			continue
		}
		d, instant, ok := s.waitAt(i+len(form.words), clock, east)
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
		w.retry, lastRetry = d, i
	}
	if d, i := s.protoWait(); i > lastRetry {
		w.retry = d
	}
	return w
}

// lastForm is where the words of a form stand last; -1 is nowhere. The blank at
// their end may be a colon.
func (s sentenceText) lastForm(words string) int {
	i := strings.LastIndex(string(s), words)
	if head, ok := strings.CutSuffix(words, " "); ok {
		i = max(i, strings.LastIndex(string(s), head+":"))
	}
	return i
}

// protoWait reads the last "retry_delay { seconds: 42 nanos: 5 }", a
// google.rpc.RetryInfo as the Python client prints it into its error. It returns the
// wait and where it stands.
func (s sentenceText) protoWait() (time.Duration, int) {
	at := strings.LastIndex(string(s), "retry_delay {")
	if at < 0 {
		return 0, -1
	}
	inside, _, closed := strings.Cut(string(s)[at+len("retry_delay {"):], "}")
	if !closed || len(inside) > maxWord {
		return 0, -1
	}
	var seconds, nanos string
	words := strings.Fields(inside)
	for i := 0; i+1 < len(words); i += 2 {
		switch words[i] {
		case "seconds:":
			seconds = words[i+1]
		case "nanos:":
			nanos = words[i+1]
		}
	}
	d, ok := retryafter.Decimal(protoSeconds(seconds, nanos), time.Second)
	if !ok {
		return 0, -1
	}
	return min(d, MaxWait), at
}

// protoSeconds is a google.protobuf.Duration or Timestamp in seconds, as a decimal
// number. A member that is missing is empty.
func protoSeconds(seconds, nanos string) string {
	if len(nanos) > 9 {
		return ""
	}
	return cmp.Or(seconds, "0") + "." + strings.Repeat("0", 9-len(nanos)) + nanos
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

// utc8 is how far ahead of UTC the clocks in China are.
const utc8 = 8 * time.Hour

// inChina reports whether a refusal is one of Zhipu or Z.ai. Their sentences name a
// reset in UTC+8, without a zone: can1357/oh-my-pi#11014 in Chinese, and
// diegosouzapw/OmniRoute#14479 in English. A reset that would be past in UTC+8 is
// not meant so: an allowance that is back refuses nobody.
func (s sentenceText) inChina(f *fields) bool {
	return len(f.code) == 4 && f.code[:2] == "13" || strings.Contains(string(s), "将在")
}

// longestAt bounds how much of a sentence is tried as a date.
const longestAt = 48

// waitAt reads what follows the words of a form.
func (s sentenceText) waitAt(i int, clock *retryafter.Clock, east bool) (d time.Duration, instant, ok bool) {
	rest := strings.TrimLeft(string(s)[i:], " :")
	for _, w := range [...]string{"~", "about ", "approximately ", "another "} { // Replicate: "resets in ~10s"
		rest = strings.TrimPrefix(rest, w)
	}
	rest = digit(strings.TrimLeft(rest, " "))
	if d, instant, after, ok := clock.Spelled(rest); ok && ends(after) {
		return min(d, MaxWait), instant, true
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
			if east && len(t) == len(time.DateTime) && t[4] == '-' && d > utc8 {
				d -= utc8
			}
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
				total, found = min(total+retryafter.Scale(whole, fraction, u.unit), MaxWait), true
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
