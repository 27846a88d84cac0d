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
		r := hex4(raw[2:])
		if r < 0 {
			return utf8.RuneError, 2
		}
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
			if low := hex4(raw[8:]); low >= 0 {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return pair, 12
				}
			}
		}
		return utf8.RuneError, 6
	}
	return utf8.RuneError, 2
}

// characters counts the characters that raw stands for: the inside of a JSON
// string, or JSON with strings in it. An escape is one, and of UTF-8 all bytes
// but the continuations are.
func characters(raw []byte) int64 {
	n := int64(len(raw) - continuations(raw))
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return n
		}
		width := 2
		if i+1 < len(raw) && raw[i+1] == 'u' {
			_, width = nextRune(raw[i:])
		}
		width = min(width, len(raw)-i)
		n -= int64(width - 1)
		raw = raw[i+width:]
	}
}

// continuations counts the bytes of the form 10xxxxxx, of which plain ASCII has
// none: 32 bytes at a time are asked for a high bit.
func continuations(b []byte) (n int) {
	const high = 0x8080808080808080
	for len(b) >= 32 {
		w0, w1 := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		w2, w3 := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		if (w0|w1|w2|w3)&high != 0 {
			n += bits.OnesCount64(w0&^(w0<<1)&high) + bits.OnesCount64(w1&^(w1<<1)&high) +
				bits.OnesCount64(w2&^(w2<<1)&high) + bits.OnesCount64(w3&^(w3<<1)&high)
		}
		b = b[32:]
	}
	for _, c := range b {
		if c&0xC0 == 0x80 {
			n++
		}
	}
	return n
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
