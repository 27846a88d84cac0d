package estimate

import (
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
// The result is never negative, and more text never costs less. The parts of a text,
// cut between characters, cost what the whole does, give or take eight tokens a cut.
func Count(text []byte) int64 { return CountFor(O200k, text) }

// CountFor is [Count] with the weights of a family.
func CountFor(f Family, text []byte) int64 {
	c := newCounter(f)
	c.add(text, false)
	return c.sum
}

// CountJSON estimates what the inside of a JSON string costs, in milli-tokens of
// the [O200k] family: raw is what stands between the quotes, escapes and
// all. An escape weighs as the character it means, so the result is
// that of [Count] on the decoded string. [AppendText] says how escapes are read.
func CountJSON(raw []byte) int64 { return CountJSONFor(O200k, raw) }

// CountJSONFor is [CountJSON] with the weights of a family.
func CountJSONFor(f Family, raw []byte) int64 {
	milli, _ := f.countJSON(raw)
	return milli
}

// countJSON counts the milli-tokens and the characters of the inside of a JSON
// string.
func (f Family) countJSON(raw []byte) (milli, chars int64) {
	if len(raw) == 1 && raw[0] < utf8.RuneSelf { // lists of letters are the slowest texts
		return int64(f.weights().pair[uint(raw[0])<<8|'\n'] % marked), 1
	}
	c := newCounter(f)
	c.add(raw, true)
	return c.sum, c.chars
}

// Runes returns the number of characters (code points) of text; a byte that is
// not UTF-8 is one.
func Runes(text []byte) int64 { return int64(utf8.RuneCount(text)) }

// counter is the state of one count. It begins as after a line end: the first
// word of a text and the first word of a line begin alike.
type counter struct {
	w      *weights
	sum    int64  // milli-tokens; below 2^17 a byte, so no text overflows it
	chars  int64  // characters
	last   uint64 // the last bytes, the very last in the top byte; 0x80 is a character above ASCII, and nothing before it is remembered
	digits uint8  // state of digitRuns
	again  uint8  // 1 if the character before box was the same
	box    rune   // the last box-drawing or block character
	boxEnd int    // where it ended in the text
}

func newCounter(f Family) counter { return counter{w: f.weights(), last: '\n' << 56} }

const (
	highBits = 0x8080808080808080
	zeros    = 0x3030303030303030 // eight times '0'
	notDigit = 0x7676767676767676 // added to a byte of 10 to 127, sets its high bit
	gather   = 0x0002040810204081 // brings the bits 7, 15, .. 63 together in the top byte
	ones     = 0x0101010101010101 // times bytes of 0 or 1: their sum, in the top byte
	spaces   = 0x2020202020202020
	tabs     = 0x0909090909090909
	notZero  = 0x7f7f7f7f7f7f7f7f // added to a byte of 1 to 127, sets its high bit
)

// blanks has the high bit of each byte of x set that is a blank or a tab. The bytes
// are ASCII or 0x80.
func blanks(x uint64) uint64 {
	x &= notZero // 0x80 becomes 0, no blank either; no sum runs into the next byte
	return ^((x ^ spaces + notZero) & (x ^ tabs + notZero)) & highBits
}

// equal has the high bit of each byte set that is the same in a and b.
func equal(a, b uint64) uint64 {
	d := a ^ b
	return ^(d&notZero + notZero | d) & highBits
}

// third is how many characters of x are marks after two of the same; last are the eight
// before.
func third(x, last uint64) int {
	return bits.OnesCount64(equal(x, x<<8|last>>56) & equal(x, x<<16|last>>48) & marks(x))
}

// ninth is how many characters of x are marks after eight of the same.
func ninth(x, last uint64) int {
	before := equal(last, last<<8) &^ 0x80 // nothing is known of the one before the first
	same := before*gather>>56 | equal(x, x<<8|last>>56)*gather>>56<<8
	same &= same >> 1
	same &= same >> 2
	same &= same >> 4 // bit i: the character i and the seven after it are like the one before each
	return bits.OnesCount64(same >> 1 & 0xff & (marks(x) * gather >> 56))
}

// marks has the high bit of each byte of x set that is a mark: printed, and neither a
// letter nor a digit. The bytes are ASCII.
func marks(x uint64) uint64 {
	small := x | 0x20*ones
	letters := above(small, 'a'-1) &^ above(small, 'z')
	digits := above(x, '0'-1) &^ above(x, '9')
	return above(x, ' ') &^ above(x, '~') &^ letters &^ digits & highBits
}

// above has the high bit of each byte of x set that is greater than c. The bytes are
// ASCII, and what the other bits are is left open.
func above(x uint64, c byte) uint64 { return x + uint64(0x7f-c)*ones }

// add counts a text, or with escaped the inside of a JSON string.
//
// ASCII goes eight bytes at a time: a weight needs only the byte before it, so
// the eight look-ups do not wait for one another. What needs to know more than
// the byte before is marked in the weight, and looked at when one of the eight
// is: digits, whose groups depend on all digits before them and come from one
// look-up for the eight, and rows of blanks.
func (c *counter) add(t []byte, escaped bool) {
	w, sum, last, digits := c.w, c.sum, c.last, c.digits
	stop := uint64(0x80 * ones) // eight times the byte before which a word is not taken whole; ASCII has none of these
	if escaped {
		stop = '\\' * ones
	}
	i, spare := 0, 0 // spare: bytes so far that are not the first of a character
	scanned := 0     // to where rows of letters have been looked for
text:
	for {
		begin := i
	words:
		for {
			// Rare words are weighed outside the inner loop, so that all it
			// needs stays in registers. It takes two words a round. More than
			// longRow letters fill two words at least, one after the other.
			// The first of some round is one of the two.
			var x uint64
			var s uint32
			for {
				if i+8 > len(t) {
					break words
				}
				x = binary.LittleEndian.Uint64(t[i : i+8]) // t[i:] costs another check, and a tenth of the time
				if (x|zeroBytes(x^stop))&highBits != 0 {
					break words
				}
				if s = w.first(x, last) + w.others(x); s >= marked || ^x&letterBits == 0 {
					break
				}
				digits = 0
				sum += int64(s)
				last = x
				if i += 8; i+8 > len(t) {
					break words
				}
				x = binary.LittleEndian.Uint64(t[i : i+8])
				if (x|zeroBytes(x^stop))&highBits != 0 {
					break words
				}
				if s = w.first(x, last) + w.others(x); s >= marked {
					break
				}
				sum += int64(s)
				last = x
				i += 8
			}
			if s < marked { // letters are never marked
				digits = 0
				if i >= scanned && (x&last&letterBits == letterBits || lettersAt(t, i+8)) {
					var extra int64
					extra, scanned = w.longLetters(t, begin, i)
					sum += extra
				}
			} else {
				m := ^(x ^ zeros + notDigit) & highBits
				g := digitRuns[uint64(digits)<<8&0x300|m*gather>>56]
				digits = g >> 4
				sum += int64(g&0xf) * w.group
				if rest := uint64(s>>15) - m>>7*ones>>56; rest != 0 { // not all that is marked are digits
					if b := blanks(x); b != 0 {
						before := blanks(last)
						again := b & (b<<8 | before>>56)
						rows := again &^ (b<<16 | before>>48)
						sum += int64(rows>>7*ones>>56) * w.run
						rest -= again >> 7 * ones >> 56
					}
					if rest != 0 {
						if n := third(x, last); n > 0 {
							sum -= int64(n)*w.row + int64(ninth(x, last))*w.longRow
						}
					}
				}
				s %= marked
			}
			sum += int64(s)
			last = x
			i += 8
		}
		// One by one: the end of the text, or what leads to an escape or to the
		// next stretch that is not ASCII.
		for i < len(t) && t[i] < 0x80 {
			b, size := t[i], 1
			if b == byte(stop) {
				var r rune
				r, size = unescape(t[i:])
				if r >= 0x80 {
					sum += int64(w.enter[last>>56])
					if k := wideIndex(r) & 0xfff; uint32(k)-boxIndex < boxBlocks {
						sum += c.drawn(r, i, i+size)
					} else {
						sum += int64(w.wide[k])
					}
					last, digits = 0x80<<56, 0
					i += size
					spare += size - 1
					continue text
				}
				b = byte(r)
			}
			before := last
			cost := w.pair[(uint64(b)<<8|last>>56)&0x7fff]
			sum += int64(cost % marked)
			last = last>>8 | uint64(b)<<56
			switch {
			case cost < marked:
				digits = 0
			case b-'0' > 9:
				digits = 0
				if blanks(last)>>40 == 0x808000 { // two blanks, and none before
					sum += w.run
				} else if b == byte(last>>48) && b == byte(last>>40) && classOf(b) == classPunct {
					sum -= w.row
					if before == uint64(b)*ones {
						sum -= w.longRow
					}
				}
			case digits < 3:
				digits++
			default:
				digits = 1
				sum += w.group
			}
			i += size
			if size > 1 {
				spare += size - 1
				continue text
			}
		}
		if i == len(t) {
			break
		}
		sum += int64(w.enter[last>>56])
		last, digits = 0x80<<56, 0
		for i+4 <= len(t) && t[i] >= 0x80 {
			x := binary.LittleEndian.Uint32(t[i : i+4])
			l := &leads[x&0x7f]
			k, n := uint32(replacement), 1
			if x&l.mask == l.want {
				if byte(x>>8)-l.low <= l.span {
					k, n = x<<6&0xfc0|x>>8&0x3f, int(l.size)
				} else if l.draws {
					if k, n = x<<6&0xfc0|x>>8&0x3f, int(l.size); k-boxIndex < boxBlocks {
						break
					}
				}
			}
			sum += int64(w.wide[k])
			spare += n - 1
			i += n
		}
		// The last bytes, and box-drawing characters.
		for i < len(t) && t[i] >= 0x80 {
			r, n := utf8.DecodeRune(t[i:])
			spare += n - 1
			i += n
			k := uint32(wideIndex(r) & 0xfff)
			if k-boxIndex < boxBlocks {
				sum += c.drawn(r, i-n, i)
				continue
			}
			sum += int64(w.wide[k])
			if i+4 <= len(t) {
				continue text
			}
		}
	}
	c.sum, c.last, c.digits = sum, last, digits
	c.chars += int64(len(t) - spare)
}

// first is the weight of the first byte of x after the last one of last.
func (w *weights) first(x, last uint64) uint32 { return uint32(w.pair[(x<<8|last>>56)&0x7fff]) }

// others is the sum of the weights of the other seven bytes of x.
func (w *weights) others(x uint64) uint32 {
	p := &w.pair
	return uint32(p[x&0x7fff]) + uint32(p[x>>8&0x7fff]) + uint32(p[x>>16&0x7fff]) + uint32(p[x>>24&0x7fff]) +
		uint32(p[x>>32&0x7fff]) + uint32(p[x>>40&0x7fff]) + uint32(p[x>>48&0x7fff])
}

// lettersAt reports whether the eight bytes from i on may be letters.
func lettersAt(t []byte, i int) bool {
	return i+8 <= len(t) && binary.LittleEndian.Uint64(t[i:i+8])&letterBits == letterBits
}

const (
	// replacement is wideIndex(U+FFFD).
	replacement = 0x20<<6 | 0xfffd>>6
	// Box-drawing, block and geometric characters, of which rows are drawn: the first,
	// its wideIndex, how many indices they reach over, and how many they are.
	firstBox  = 0x2500
	boxIndex  = 0x20<<6 | firstBox>>6
	boxBlocks = 3
	boxes     = boxBlocks * 64

	// letterBits is set in all letters, and in the ten marks beside them.
	letterBits = 0x4040404040404040
	// longRow is a length that rows of letters of one case rarely exceed in words.
	// Longer rows are sequences of symbols, as of genes and proteins.
	longRow = 22
)

// longLetters finds the row of letters of one case around t[i], from begin at the
// earliest. It returns the extra cost of the row and the row's end.
func (w *weights) longLetters(t []byte, begin, i int) (extra int64, end int) {
	c := classOf(t[i])
	if c != classLower && c != classUpper {
		return 0, i
	}
	for end = i + 1; end < len(t) && classOf(t[end]) == c; end++ {
	}
	for i > begin && classOf(t[i-1]) == c {
		i--
	}
	for j := i + longRow; j < end; j++ {
		if t[j] != t[j-1] { // the same letter over and over is cheap
			extra += w.long[c-classLower]
		}
	}
	return extra, end
}

// drawn is the weight of a box-drawing or block character from i to end, and remembers
// it.
func (c *counter) drawn(r rune, i, end int) int64 {
	same := r == c.box && i == c.boxEnd
	c.boxEnd = end
	if same {
		again := c.again & 1
		c.again = 1
		return int64(c.w.box[r-firstBox][again])
	}
	c.box, c.again = r, 0
	return int64(c.w.wide[wideIndex(r)])
}

// lead is the condition under which a byte of 0x80 and above begins a character
// (RFC 3629 section 4). The four bytes from it on are read as a little-endian
// number. That number and mask must equal want, and the second byte must lie
// from low to low+span. Where draws is set it may lie above that, too: there are the
// box-drawing characters among others.
type lead struct {
	mask, want uint32
	low, span  uint8
	size       uint8
	draws      bool
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
		case firstBox>>12 | 0xe0:
			l.span, l.draws = firstBox>>6&0x3f-1, true
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
