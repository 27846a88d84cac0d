package refusal

import (
	"strconv"
	"strings"
)

// maxSentence bounds how much of a message is searched: the first and the last
// half of it. Providers put the reason first and the wait last; what lies
// between in a long message is the caller's own input.
const maxSentence = 8 << 10

// A sentenceText is a provider's message, made ready for searching: lower case, and
// with everything inside back quotes or double quotes blanked, for that is
// where providers repeat the caller's words (model names, arguments).
type sentenceText string

func sentence(message string) sentenceText {
	if len(message) > maxSentence {
		message = message[:maxSentence/2] + " … " + message[len(message)-maxSentence/2:]
	}
	b := []byte(message)
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c >= 'A' && c <= 'Z':
			b[i] += 'a' - 'A'
		case c == 0xc3 && i+1 < len(b) && b[i+1] >= 0x80 && b[i+1] <= 0x9e && b[i+1] != 0x97: // À to Þ
			b[i+1] += 0x20
		case c == 0xd0 && i+1 < len(b) && b[i+1] >= 0x90 && b[i+1] <= 0x9f: // А to П
			b[i+1] += 0x20
		case c == 0xd0 && i+1 < len(b) && b[i+1] >= 0xa0 && b[i+1] <= 0xaf: // Р to Я
			b[i], b[i+1] = 0xd1, b[i+1]-0x20
		case c == '`' || c == '"':
			end := strings.IndexByte(message[i+1:], c)
			if end < 0 {
				continue
			}
			for j := i; j <= i+1+end; j++ {
				b[j] = ' '
			}
			i += 1 + end
		}
	}
	return sentenceText(strings.TrimLeft(string(b), " \n\t\r"))
}

// holds reports whether a sentence of s has then somewhere behind word.
func (s sentenceText) holds(word, then string) bool {
	for rest := string(s); ; {
		_, after, found := strings.Cut(rest, word)
		if !found || then == "" {
			return found
		}
		end := strings.IndexAny(after, ".!?。！？\n")
		if end < 0 {
			end = len(after)
		}
		if strings.Contains(after[:end], then) {
			return true
		}
		rest = after
	}
}

// maxCodes bounds the codes that are taken from a body without JSON.
const maxCodes = 16

// codes are the words of a body without JSON that may be a code: those with "_" in
// them, and one that is the whole body. Words of a long body are the caller's.
func (s sentenceText) codes() (codes []string) {
	if len(s) > shortMessage {
		return nil
	}
	words := strings.FieldsFunc(string(s), func(r rune) bool { return r >= 0x80 || !isWordByte(byte(r)) || r == '+' })
	for _, w := range words {
		whole := len(words) == 1 && !isDigit(w[0]) // a number says nothing without its interface
		if len(codes) < maxCodes && len(w) <= maxWord && (whole || strings.Contains(w, "_")) {
			codes = append(codes, w)
		}
	}
	return codes
}

// numbers reads "Limit 30000, Used 29937, Requested 385" (OpenAI, Groq; "Used"
// is left out when the request is too large by itself). A number that is not
// there is 0; without both Limit and Requested nothing is read.
func (s sentenceText) numbers() (limit, used, requested int64) {
	i := strings.LastIndex(string(s), "limit ")
	if i < 0 {
		return 0, 0, 0
	}
	rest := string(s)[i+len("limit "):]
	limit, rest, ok := count(rest)
	if !ok {
		return 0, 0, 0
	}
	if after, found := strings.CutPrefix(rest, ", used "); found {
		if used, rest, ok = count(after); !ok {
			return 0, 0, 0
		}
	}
	after, found := strings.CutPrefix(rest, ", requested ")
	if !found {
		return 0, 0, 0
	}
	if requested, _, ok = count(after); !ok {
		return 0, 0, 0
	}
	return limit, used, requested
}

// hasNumbers tells a stated limit of 0 from no statement.
func (s sentenceText) hasNumbers() bool {
	_, _, requested := s.numbers()
	return requested > 0
}

// promptTooLong reads these, at the start of the message only:
//
//	prompt is too long: N tokens > M maximum                                        Anthropic
//	The input token count (N) exceeds the maximum number of tokens allowed (M)      Gemini
func (s sentenceText) promptTooLong() (requested, limit int64, ok bool) {
	for _, form := range [...]struct{ head, middle string }{
		{"prompt is too long: ", " tokens > "},
		{"the input token count (", ") exceeds the maximum number of tokens allowed ("},
		{"the input token count ", " exceeds the maximum number of tokens allowed "},
	} {
		rest, found := strings.CutPrefix(string(s), form.head)
		if !found {
			continue
		}
		requested, rest, ok = count(rest)
		if !ok {
			continue
		}
		if rest, found = strings.CutPrefix(rest, form.middle); !found {
			continue
		}
		if limit, _, ok = count(rest); ok {
			return requested, limit, true
		}
	}
	return 0, 0, false
}

// count reads a whole number, with or without commas between thousands.
func count(s string) (n int64, rest string, ok bool) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	digits := s[:i]
	for i+3 < len(s) && s[i] == ',' && isDigit(s[i+1]) && isDigit(s[i+2]) && isDigit(s[i+3]) &&
		(i+4 == len(s) || !isDigit(s[i+4])) {
		digits += s[i+1 : i+4]
		i += 4
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, s[i:], err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
