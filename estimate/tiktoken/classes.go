package tiktoken

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// What a character is, as far as the split patterns ask. One byte a character;
// the bits are the character classes that the patterns name.
const (
	upper   = 1 << iota // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], the first set of an o200k word
	lower               // [\p{Ll}\p{Lm}\p{Lo}\p{M}], the second set of an o200k word
	letter              // \p{L}
	number              // \p{N}
	space               // \s, which is unicode.IsSpace: also U+0085 and U+00A0
	newline             // [\r\n]
)

const (
	notPunct  = letter | number | space   // [^\s\p{L}\p{N}] is none of these
	notPrefix = letter | number | newline // [^\r\n\p{L}\p{N}] is none of these
)

// classTable maps a character to its class in two steps: a page for each 256
// characters, equal pages kept once. It takes about 40 kB.
//
// It is filled from package unicode of the running toolchain and not from a
// generated file, because the reference asks package unicode too. A new Unicode
// version then changes both at once.
type classTable struct {
	ascii [utf8.RuneSelf]uint8
	page  [(utf8.MaxRune + 1) / 256]uint8
	pages [][256]uint8
}

// classes builds the table on first use, about 2 ms.
var classes = sync.OnceValue(newClassTable)

func newClassTable() *classTable {
	flat := make([]uint8, utf8.MaxRune+1)
	mark := func(bits uint8, tables ...*unicode.RangeTable) {
		for _, t := range tables {
			for _, r := range t.R16 {
				for c := uint32(r.Lo); c <= uint32(r.Hi); c += uint32(r.Stride) {
					flat[c] |= bits
				}
			}
			for _, r := range t.R32 {
				for c := r.Lo; c <= r.Hi; c += r.Stride {
					flat[c] |= bits
				}
			}
		}
	}
	mark(upper, unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M)
	mark(lower, unicode.Ll, unicode.Lm, unicode.Lo, unicode.M)
	mark(letter, unicode.L)
	mark(number, unicode.N)
	mark(space, unicode.White_Space)
	flat['\r'] |= newline
	flat['\n'] |= newline

	t := new(classTable)
	copy(t.ascii[:], flat)
	seen := make(map[[256]uint8]uint8)
	for i := range t.page {
		p := [256]uint8(flat[i*256:])
		n, ok := seen[p]
		if !ok {
			n = uint8(len(t.pages))
			seen[p] = n
			t.pages = append(t.pages, p)
		}
		t.page[i] = n
	}
	return t
}

// at returns the class and the length in bytes of the character that starts at
// text[i]. A byte that is not valid UTF-8 is one byte long and has the class of
// U+FFFD, which stands in its place.
func (t *classTable) at(text []byte, i int) (class uint8, width int) {
	if b := text[i]; b < utf8.RuneSelf {
		return t.ascii[b], 1
	}
	r, w := utf8.DecodeRune(text[i:])
	return t.pages[t.page[r>>8]][r&0xff], w
}
