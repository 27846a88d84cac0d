package estimate

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendText appends to dst the UTF-8 text that raw, the inside of a JSON
// string, stands for. Escapes become the characters they mean. What is not
// valid (a lone surrogate, an unknown escape, broken UTF-8) becomes U+FFFD, as
// in encoding/json; it never fails. A Counter that needs plain text calls it.
func AppendText(dst, raw []byte) []byte {
	for len(raw) > 0 {
		// A run of plain ASCII is copied at once.
		n := 0
		for n < len(raw) && raw[n] != '\\' && raw[n] < utf8.RuneSelf {
			n++
		}
		dst = append(dst, raw[:n]...)
		raw = raw[n:]
		if len(raw) == 0 {
			break
		}
		r, width := nextRune(raw)
		dst = utf8.AppendRune(dst, r)
		raw = raw[width:]
	}
	return dst
}

// nextRune reads one character of the inside of a JSON string and the number of
// bytes it took. The width is at least 1, so that a loop over raw always ends.
func nextRune(raw []byte) (r rune, width int) {
	if raw[0] != '\\' {
		if raw[0] < utf8.RuneSelf {
			return rune(raw[0]), 1
		}
		return utf8.DecodeRune(raw)
	}
	if len(raw) < 2 {
		return utf8.RuneError, 1
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
	case 'u':
		r, ok := hex4(raw[2:])
		if !ok {
			return utf8.RuneError, 2
		}
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
			if low, ok := hex4(raw[8:]); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return pair, 12
				}
			}
		}
		return utf8.RuneError, 6
	}
	return utf8.RuneError, 2
}

// textEnd is stringEnd for text, and counts the characters that the text stands
// for on the way: one for each escape, and of UTF-8 all bytes but the
// continuations. end is len(b) and closed false if no quote closes the string.
//
// It looks at eight bytes at a time. For a word x, (x-0x01..01) &^ x & 0x80..80
// has its lowest set bit in the lowest byte of x that is zero; x is the word with
// the byte that is looked for taken out by exclusive or.
func textEnd(b []byte, start int) (end int, chars int64, closed bool) {
	const (
		low   = 0x0101010101010101
		high  = 0x8080808080808080
		quote = '"' * low
		slash = '\\' * low
	)
	i := start
	var dropped int // bytes that are no character of their own
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		q, s := w^quote, w^slash
		found := ((q-low)&^q | (s-low)&^s) & high
		if found == 0 {
			if w&high != 0 {
				dropped += bits.OnesCount64(w &^ (w << 1) & high)
			}
			i += 8
			continue
		}
		at := bits.TrailingZeros64(found) &^ 7
		if before := w & (1<<at - 1); before&high != 0 {
			dropped += bits.OnesCount64(before &^ (before << 1) & high)
		}
		i += at / 8
		if b[i] == '"' {
			return i, int64(i - start - dropped), true
		}
		width := escapeWidth(b[i:])
		dropped += width - 1
		i += width
	}
	for i < len(b) {
		width := 1
		switch c := b[i]; {
		case c == '"':
			return i, int64(i - start - dropped), true
		case c == '\\':
			width = escapeWidth(b[i:])
			dropped += width - 1
		case c&0xC0 == 0x80:
			dropped++
		}
		i += width
	}
	return i, int64(i - start - dropped), false
}

// escapeWidth is the width of the escape at the beginning of b, no more than
// len(b).
func escapeWidth(b []byte) int {
	if len(b) >= 2 && b[1] == 'u' {
		_, width := nextRune(b)
		return width
	}
	return min(2, len(b))
}

// characters counts the characters that raw stands for: text, or JSON with
// strings in it.
func characters(raw []byte) (n int64) {
	for i := 0; i < len(raw); {
		end, chars, closed := textEnd(raw, i)
		n += chars
		if i = end; closed {
			n++ // the quote itself
			i++
		}
	}
	return n
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// stringEnd returns the index of the quote that closes the string whose inside
// begins at b[start], or -1.
//
// It looks for quotes only, at the speed of bytes.IndexByte. A quote is escaped
// if an odd number of backslashes stands before it. Each backslash is looked at
// for one quote at most, so the work is linear whatever the input.
func stringEnd(b []byte, start int) int {
	for from := start; ; {
		n := bytes.IndexByte(b[from:], '"')
		if n < 0 {
			return -1
		}
		quote := from + n
		slashes := quote
		for slashes > from && b[slashes-1] == '\\' {
			slashes--
		}
		if (quote-slashes)%2 == 0 {
			return quote
		}
		from = quote + 1
	}
}

// sameKey reports whether two raw keys mean the same name. It stops at the
// first difference and copies nothing.
func sameKey(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	for len(a) > 0 && len(b) > 0 {
		ra, wa := nextRune(a)
		rb, wb := nextRune(b)
		if ra != rb {
			return false
		}
		a, b = a[wa:], b[wb:]
	}
	return len(a) == 0 && len(b) == 0
}

// integer reads a count as JSON may hold it: 100, 100.0, 1e2, or the same inside
// a string, which some servers accept. A fraction is rounded up and what does
// not fit is math.MaxInt64. Negative numbers and everything else are not counts.
func integer(raw []byte) (n int64, ok bool) {
	const maxDigits = 400 // longer numbers are not counts anyone sends
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || len(raw) > maxDigits {
		return 0, false
	}
	i, digits, point := 0, 0, -1
	for ; i < len(raw); i++ {
		c := raw[i]
		if c == '.' && point < 0 && i > 0 {
			point = i
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		digits++
	}
	if digits == 0 || point == i-1 {
		return 0, false
	}
	exp := 0
	mantissa := raw[:i]
	if i < len(raw) {
		if raw[i] != 'e' && raw[i] != 'E' {
			return 0, false
		}
		e := raw[i+1:]
		negative := false
		if len(e) > 0 && (e[0] == '+' || e[0] == '-') {
			negative = e[0] == '-'
			e = e[1:]
		}
		if len(e) == 0 {
			return 0, false
		}
		for _, c := range e {
			if c < '0' || c > '9' {
				return 0, false
			}
			exp = min(exp*10+int(c-'0'), 2*maxDigits)
		}
		if negative {
			exp = -exp
		}
	}
	// whole is how many of the digits stand before the decimal point.
	whole := digits + exp
	if point >= 0 {
		whole = point + exp
	}
	seen, rest := 0, false
	for _, c := range mantissa {
		if c == '.' {
			continue
		}
		if seen < whole {
			n = addSat(mulSat(n, 10), int64(c-'0'))
		} else if c != '0' {
			rest = true
		}
		seen++
	}
	for ; seen < whole && n > 0; seen++ {
		n = mulSat(n, 10)
	}
	if rest {
		n = addSat(n, 1)
	}
	return n, true
}
