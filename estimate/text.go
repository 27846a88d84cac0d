package estimate

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendText appends to dst the UTF-8 text that raw, the inside of a JSON
// string, stands for. Escapes become the characters they mean. Half a surrogate
// pair and bytes that are not UTF-8 become U+FFFD, as in encoding/json. A
// backslash that begins no escape of RFC 8259 section 7 stands for itself: no
// valid JSON has one. It never fails. A Counter that needs plain text calls it.
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

// zeroBytes has the high bit of the lowest zero byte of x set. Of the bytes above
// it any may be set, below it none is.
func zeroBytes(x uint64) uint64 { return (x - ones) &^ x & highBits }

// nextRune reads one character of the inside of a JSON string and the number of
// bytes it took. The width is at least 1, so that a loop over raw always ends.
func nextRune(raw []byte) (r rune, width int) {
	if raw[0] == '\\' {
		return unescape(raw)
	}
	if raw[0] < utf8.RuneSelf {
		return rune(raw[0]), 1
	}
	return utf8.DecodeRune(raw)
}

// escapes are the characters that a backslash and one more byte mean.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape reads the escape that raw, which starts with a backslash, starts with:
// the character it means and its length. A backslash that begins no
// escape stands for itself, and is one byte long.
func unescape(raw []byte) (r rune, width int) {
	if len(raw) < 2 {
		return '\\', 1
	}
	if c := escapes[raw[1]]; c != 0 {
		return rune(c), 2
	}
	r = hex4(raw)
	switch {
	case r < 0:
		return '\\', 1
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	if pair := utf16.DecodeRune(r, hex4(raw[6:])); pair != utf8.RuneError {
		return pair, 12
	}
	return utf8.RuneError, 6
}

// hex4 reads the \uXXXX that raw starts with; -1 if there is none.
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

// characters counts the characters that raw, the inside of a JSON string or JSON
// with strings in it, stands for: [Runes] of its text.
func characters(raw []byte) (n int64) {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return n + Runes(raw)
		}
		_, width := unescape(raw[i:])
		n += Runes(raw[:i]) + 1
		raw = raw[i+width:]
	}
}

// stringEnd returns the index of the quote that closes the string whose inside
// begins at b[i], or -1.
//
// Near the beginning, and near an escape, it looks for quotes and backslashes
// in words of eight bytes: most strings are short, and where one quote is
// escaped the next is not far. Beyond, it looks for quotes only, at the speed
// of bytes.IndexByte. A quote is escaped if an odd number of backslashes stands
// before it. Each of them is looked at for one quote at most, so the work is
// linear for every input.
func stringEnd(b []byte, i int) int {
	const near = 16
	for {
		for until := i + near; i < until && i+8 <= len(b); {
			x := binary.LittleEndian.Uint64(b[i : i+8])
			found := zeroBytes(x^'"'*ones) | zeroBytes(x^'\\'*ones)
			if found == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(found) / 8
			if b[i] == '"' {
				return i
			}
			i += 2
			until = i + near/2
		}
		i = min(i, len(b))
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		quote := i + n
		slashes := quote
		for slashes > i && b[slashes-1] == '\\' {
			slashes--
		}
		if (quote-slashes)%2 == 0 {
			return quote
		}
		i = quote + 1
	}
}

// isPlain reports whether a raw name has neither escapes nor bytes above ASCII.
func isPlain(raw []byte) bool {
	for _, c := range raw {
		if c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// sameKey reports whether two raw names mean the same, and how many bytes it
// looked at. It stops at the first difference and copies nothing.
func sameKey(a, b []byte) (same bool, compared int) {
	rest := len(a)
	for rest > 0 && len(b) > 0 {
		ra, wa := nextRune(a[len(a)-rest:])
		rb, wb := nextRune(b)
		if ra != rb {
			break
		}
		rest -= wa
		b = b[wb:]
	}
	return rest == 0 && len(b) == 0, len(a) - rest + 1
}

// integer reads a count as JSON may hold it: 100, 100.0, 1e2, or the same inside
// a string, which some servers accept. A fraction is rounded up and what does
// not fit is math.MaxInt64. Negative numbers and everything else are not counts.
func integer(raw []byte) (n int64, ok bool) {
	raw = bytes.TrimSpace(raw)
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
	mantissa := raw[:i]
	exp, ok := exponent(raw[i:])
	if !ok {
		return 0, false
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
	for ; seen < whole && n > 0 && n < math.MaxInt64; seen++ {
		n = mulSat(n, 10)
	}
	if rest {
		n = addSat(n, 1)
	}
	return n, true
}

// exponent reads what may stand behind the digits of a number.
func exponent(e []byte) (n int, ok bool) {
	const most = 100_000_000 // more says no more, for no body has as many digits
	if len(e) == 0 {
		return 0, true
	}
	if e[0] != 'e' && e[0] != 'E' {
		return 0, false
	}
	e = e[1:]
	negative := false
	if len(e) > 0 && (e[0] == '+' || e[0] == '-') {
		negative = e[0] == '-'
		e = e[1:]
	}
	for _, c := range e {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), most)
	}
	if negative {
		n = -n
	}
	return n, len(e) > 0
}
