package tiktoken

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// countInvalid counts a piece with U+FFFD for each byte that is not valid UTF-8.
func (v *vocabulary) countInvalid(s *scratch, piece []byte) int64 {
	b := s.invalid[:0]
	for i := 0; i < len(piece); {
		r, w := utf8.DecodeRune(piece[i:])
		b = utf8.AppendRune(b, r)
		i += w
	}
	s.invalid = b
	return v.count(s, b)
}

// jsonPart is how much of a JSON string is decoded before it is counted.
const jsonPart = 64 << 10

// countJSON counts the text of the JSON string with raw between its quotes, part
// bytes at a time.
func (v *vocabulary) countJSON(s *scratch, raw []byte, part int) int64 {
	if bytes.IndexByte(raw, '\\') < 0 {
		return v.countText(s, raw)
	}
	var n int64
	limit := part
	b := s.text[:0]
	for len(raw) > 0 {
		b, raw = unescape(b, raw, limit)
		if len(raw) == 0 {
			break
		}
		cut := v.cut(b)
		if cut == 0 {
			limit *= 2
			continue
		}
		limit = part
		n += v.countText(s, b[:cut])
		b = append(b[:0], b[cut:]...)
	}
	s.text = b
	return n + v.countText(s, b)
}

// cut returns a place in text where every encoding begins a new piece, whatever
// comes before and after, the last such place there is. It returns 0 if there is
// none.
//
// Such a place is between a letter and a character that is no letter, mark or
// apostrophe. A piece with a letter in it ends with its letters, except that o200k
// words take marks and contractions too; and no pattern looks behind. The text
// before the cut also splits in the same way when it is the end: what would look
// further than a piece are only the rules for white space and contractions, and
// the character before the cut is a letter while the one behind is no apostrophe.
func (v *vocabulary) cut(text []byte) int {
	// Behind the cut one whole character is needed.
	for i := len(text) - utf8.UTFMax; i > 0; i-- {
		if !utf8.RuneStart(text[i]) || text[i] == '\'' {
			continue
		}
		if c, _ := v.classes.at(text, i); c&(upper|lower) != 0 {
			continue
		}
		r, w := utf8.DecodeLastRune(text[:i])
		if r == utf8.RuneError && w == 1 {
			continue
		}
		if c, _ := v.classes.at(text, i-w); c&letter != 0 {
			return i
		}
	}
	return 0
}

// unescape appends the text of raw to b until b has limit bytes, or a few more,
// and returns both and what is left of raw.
func unescape(b, raw []byte, limit int) (text, rest []byte) {
	for len(raw) > 0 && len(b) < limit {
		if raw[0] != '\\' {
			n := min(len(raw), limit-len(b))
			if i := bytes.IndexByte(raw[:n], '\\'); i >= 0 {
				n = i
			}
			b, raw = append(b, raw[:n]...), raw[n:]
			continue
		}
		r, n := escape(raw)
		b, raw = utf8.AppendRune(b, r), raw[n:]
	}
	return b, raw
}

// escape reads the escape at the start of raw and returns its character and its
// length in bytes. Package estimate reads escapes alike; neither imports the other,
// and a test holds the two together.
func escape(raw []byte) (rune, int) {
	if len(raw) < 2 {
		return '\\', 1
	}
	switch raw[1] {
	case '"', '\\', '/':
		return rune(raw[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	r := hex4(raw)
	switch {
	case r < 0:
		return '\\', 1
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	if both := utf16.DecodeRune(r, hex4(raw[6:])); both != utf8.RuneError {
		return both, 12
	}
	return utf8.RuneError, 6
}

// hex4 reads \uXXXX at the start of raw, or returns -1.
func hex4(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range raw[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
