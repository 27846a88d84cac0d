package estimate

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

//go:generate go run ./internal/fit weights -o weights_table.go
//go:generate go run ./internal/fit errors -o testdata/corpus/ERRORS.md

// Count estimates what text costs, in milli-tokens of the [O200k] family.
//
// It is one pass over the bytes: a weight from a table for each character,
// by what stands before it. It does not allocate. The error by language is
// published in testdata/corpus/ERRORS.md. Bytes that are not UTF-8 weigh as
// U+FFFD each, which is what tokenizers and encoding/json turn them into.
//
// The result is never negative. More text never costs less, and the parts of a text,
// cut between characters, cost together what the whole does, give or take
// eight tokens a cut.
func Count(text []byte) int64 { return CountFor(O200k, text) }

// CountFor is [Count] with the weights of a family.
func CountFor(f Family, text []byte) int64 {
	c := counter{w: f.weights(), prev: '\n'}
	c.add(text)
	return c.sum
}

// CountJSON estimates what the inside of a JSON string costs, in milli-tokens of
// the [O200k] family: raw is what stands between the quotes, escapes and
// all. An escape weighs as the character it means, so the result is
// that of [Count] on the decoded string. A surrogate without its other half is
// U+FFFD, as encoding/json has it (RFC 8259 section 8.2 leaves it open). A
// backslash that starts no escape of RFC 8259 section 7 weighs as itself.
func CountJSON(raw []byte) int64 { return CountJSONFor(O200k, raw) }

// CountJSONFor is [CountJSON] with the weights of a family.
func CountJSONFor(f Family, raw []byte) int64 {
	c := counter{w: f.weights(), prev: '\n'}
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			c.add(raw)
			return c.sum
		}
		c.add(raw[:i])
		r, n := unescape(raw[i:])
		c.rune(r)
		raw = raw[i+n:]
	}
}

// Runes returns the number of characters (code points) of text; a byte that is
// not UTF-8 is one.
func Runes(text []byte) int64 { return int64(utf8.RuneCount(text)) }

// runesJSON is [Runes] of the decoded form of raw, the inside of a JSON string.
func runesJSON(raw []byte) int64 {
	n := 0
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return int64(n + utf8.RuneCount(raw))
		}
		_, size := unescape(raw[i:])
		n += utf8.RuneCount(raw[:i]) + 1
		raw = raw[i+size:]
	}
}

// counter is the state of one count. It begins as after a line end: the first
// word of a text and the first word of a line begin alike.
type counter struct {
	w      *weights
	sum    int64  // milli-tokens; below 2^17 a byte, so no text overflows it
	prev   byte   // last byte of the last character
	digits uint8  // state of digitRuns
	blanks uint64 // bit 8i+7 is set if the (8-i)-th last byte was a blank or tab
}

const (
	highBits = 0x8080808080808080
	zeros    = 0x3030303030303030 // eight times '0'
	notDigit = 0x7676767676767676 // added to a byte of 10 to 127, sets its high bit
	gather   = 0x0002040810204081 // brings the bits 7, 15, .. 63 together in the top byte
	spaces   = 0x2020202020202020
	tabs     = 0x0909090909090909
	notZero  = 0x7f7f7f7f7f7f7f7f // added to a byte of 1 to 127, sets its high bit
)

// add counts a stretch of text. No character may span two calls.
//
// ASCII goes eight bytes at a time: a weight needs only the byte before it, so
// the eight look-ups do not wait for one another, and the digit groups, which
// depend on all digits before them, come from one look-up for the eight.
// There is no branch on what the characters are.
func (c *counter) add(t []byte) {
	w, sum, prev, digits, blanks := c.w, c.sum, uint64(c.prev), c.digits, c.blanks
	for {
		for len(t) >= 8 {
			x := binary.LittleEndian.Uint64(t)
			if x&highBits != 0 {
				break
			}
			s := uint32(w.pair[(x<<8|prev)&0x7fff]) +
				uint32(w.pair[x&0x7fff]) +
				uint32(w.pair[x>>8&0x7fff]) +
				uint32(w.pair[x>>16&0x7fff]) +
				uint32(w.pair[x>>24&0x7fff]) +
				uint32(w.pair[x>>32&0x7fff]) +
				uint32(w.pair[x>>40&0x7fff]) +
				uint32(w.pair[x>>48&0x7fff])
			m := ^(x ^ zeros + notDigit) & highBits
			g := digitRuns[uint64(digits)<<8&0x300|m*gather>>56]
			digits = g >> 4
			b := ^((x ^ spaces + notZero) & (x ^ tabs + notZero)) & highBits
			runs := b & (b<<8 | blanks>>56) &^ (b<<16 | blanks>>48)
			blanks = b
			sum += int64(s) + int64(g&0xf)*w.group + int64(bits.OnesCount64(runs))*w.run
			prev = x >> 56
			t = t[8:]
		}
		// One by one: the end of the text, or what leads to the next stretch
		// of ASCII.
		for len(t) > 0 && t[0] < 0x80 {
			b := t[0]
			sum += int64(w.pair[uint64(b)<<8|prev&0xff])
			if b-'0' > 9 {
				digits = 0
			} else if digits < 3 {
				digits++
			} else {
				digits = 1
				sum += w.group
			}
			blanks >>= 8
			if b == ' ' || b == '\t' {
				if blanks&(1<<55) != 0 && blanks&(1<<47) == 0 {
					sum += w.run
				}
				blanks |= 1 << 63
			}
			prev = uint64(b)
			t = t[1:]
		}
		if len(t) == 0 {
			break
		}
		sum += int64(w.enter[prev&0xff])
		prev, digits, blanks = 0x80, 0, 0
		for len(t) >= 4 && t[0] >= 0x80 {
			l := &leads[t[0]&0x7f]
			x := binary.LittleEndian.Uint32(t)
			k, n := uint32(replacement), uint32(1)
			if x&l.mask == l.want && t[1]-l.low <= l.span {
				k, n = x<<6&0xfc0|x>>8&0x3f, uint32(l.size)
			}
			sum += int64(w.wide[k])
			t = t[n&7:]
		}
		for len(t) > 0 && t[0] >= 0x80 {
			r, n := utf8.DecodeRune(t)
			sum += int64(w.wide[wideIndex(r)&0xfff])
			t = t[n:]
		}
	}
	c.sum, c.prev, c.digits, c.blanks = sum, byte(prev), digits, blanks
}

// rune counts one character, as add does.
func (c *counter) rune(r rune) {
	if r < 0x80 {
		c.add([]byte{byte(r)})
		return
	}
	c.sum += int64(c.w.enter[c.prev]) + int64(c.w.wide[wideIndex(r)&0xfff])
	c.prev, c.digits, c.blanks = 0x80, 0, 0
}

// replacement is wideIndex(U+FFFD).
const replacement = 0x20<<6 | 0xfffd>>6

// lead is what a byte of 0x80 and above asks of the bytes after it, for itself
// to begin a character (RFC 3629 section 4). Of the four bytes from it on, read
// as a little-endian number, those under mask must be as in want, and the second
// byte must lie from low to low+span.
type lead struct {
	mask, want uint32
	low, span  uint8
	size       uint8
}

// leads is indexed by the low seven bits of the byte.
var leads = func() (t [128]lead) {
	for i := range t {
		l := lead{want: 1, low: 0x80, span: 0x3f} // want outside mask: begins nothing
		switch b := i + 0x80; {
		case b >= 0xc2 && b <= 0xdf:
			l.mask, l.want, l.size = 0xc000, 0x8000, 2
		case b >= 0xe0 && b <= 0xef:
			l.mask, l.want, l.size = 0xc0c000, 0x808000, 3
		case b >= 0xf0 && b <= 0xf4:
			l.mask, l.want, l.size = 0xc0c0c000, 0x80808000, 4
		}
		switch i + 0x80 {
		case 0xe0: // no longer form of two bytes
			l.low, l.span = 0xa0, 0x1f
		case 0xed: // no surrogates
			l.span = 0x1f
		case 0xf0: // no longer form of three bytes
			l.low, l.span = 0x90, 0x2f
		case 0xf4: // nothing above U+10FFFF
			l.span = 0x0f
		}
		t[i] = l
	}
	return t
}()

// unescape reads the escape that raw, which starts with a backslash, starts
// with: the character it means and its length. What is not an
// escape is a backslash, one byte long.
func unescape(raw []byte) (r rune, n int) {
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
	case 'u':
		hi := hex4(raw[2:])
		switch {
		case hi < 0:
			return '\\', 1
		case hi < 0xd800 || hi > 0xdfff:
			return hi, 6
		case hi > 0xdbff || len(raw) < 12 || raw[6] != '\\' || raw[7] != 'u':
			return utf8.RuneError, 6
		}
		lo := hex4(raw[8:])
		if lo < 0xdc00 || lo > 0xdfff {
			return utf8.RuneError, 6
		}
		return (hi-0xd800)<<10 | (lo - 0xdc00) + 0x10000, 12
	}
	return '\\', 1
}

// hex4 reads four hexadecimal digits; -1 if there are none.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
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
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
