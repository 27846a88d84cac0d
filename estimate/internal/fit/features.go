package main

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A feature is one weight to be fitted. Its number of occurrences in a text,
// times its weight, summed over all features, is the estimate that package
// estimate computes; a test holds the two together.
type feature struct {
	kind kind
	a, b int // ascii: the byte; meet: the two classes; wide: the first code point; box: see below; bigram: the two bytes
}

type kind uint8

const (
	ascii    kind = iota // one ASCII character, not a digit
	repeated             // a blank after a blank (a = 0), a line end after a line end (1), a mark after the same mark (2), after two of the same (3), and after eight (4)
	run                  // two or more blanks in a row, once
	digit                // first digit of a group of three (a = 0), the others (1)
	meet                 // a character of one class after one of another
	wide                 // the code points from a that share a weight
	box                  // a box-drawing or block character b after the same one (a = 0), and after two of the same (1)
	long                 // a letter after longRow or more of the same case, and after another letter: small (a = 0) or capital (1)
	bigram               // an ASCII character after another, beside what both classes say
)

// Classes of characters, as in package estimate.
const (
	control = iota
	lower
	upper
	number
	punct
	blank
	line
	high
	classes
)

func classOf(r rune) int {
	switch {
	case r >= 0x80:
		return high
	case 'a' <= r && r <= 'z':
		return lower
	case 'A' <= r && r <= 'Z':
		return upper
	case '0' <= r && r <= '9':
		return number
	case r == ' ' || r == '\t':
		return blank
	case r == '\n' || r == '\r':
		return line
	case r < ' ' || r == 0x7f:
		return control
	}
	return punct
}

// longRow is a length that rows of letters of one case rarely exceed in words.
// Longer rows are sequences of symbols, as of genes and proteins.
const longRow = 22

// features counts the features of a text.
func features(text []byte) map[feature]int {
	w := walk{counts: map[feature]int{}, last: '\n', before: line}
	for _, r := range string(text) {
		w.step(r, classOf(r))
	}
	w.endRow()
	return w.counts
}

// A walk is a place in a text, and the features up to there.
type walk struct {
	counts         map[feature]int
	last           rune // the character before, and its class
	before         int
	same           int // characters before that are the same
	digits, blanks int // in the row of one class
	row, longer    int // letters before of the same case; of these, those that count as long
}

func (w *walk) step(r rune, c int) {
	x := w.at(r, c)
	w.counts[x]++
	if x.kind == ascii && isBigram(w.last, r) {
		w.counts[feature{kind: bigram, a: int(w.last), b: int(r)}]++
	}
	if r == w.last {
		w.same++
	} else {
		w.same = 1
	}
	if c != w.before {
		w.endRow()
		w.counts[feature{kind: meet, a: w.before, b: c}]++
	}
	switch c {
	case number:
		w.digits++
	case lower, upper:
		if w.row >= longRow && r != w.last {
			w.longer++
		}
		w.row++
	case blank:
		if w.blanks++; w.blanks == 2 {
			w.counts[feature{kind: run}]++
		}
	}
	w.last, w.before = r, c
}

// at is the feature of one character by itself.
func (w *walk) at(r rune, c int) feature {
	switch {
	case c == high && r == w.last && isBox(r):
		return feature{kind: box, a: third(w.same), b: int(r)}
	case c == high:
		return feature{kind: wide, a: int(blockOf(r))}
	case c == number && w.digits%3 == 0:
		return feature{kind: digit, a: 0}
	case c == number:
		return feature{kind: digit, a: 1}
	case c == w.before && c == blank:
		return feature{kind: repeated, a: 0}
	case c == w.before && c == line:
		return feature{kind: repeated, a: 1}
	case r == w.last && c == punct && w.same >= 8:
		return feature{kind: repeated, a: 4}
	case r == w.last && c == punct:
		return feature{kind: repeated, a: 2 + third(w.same)}
	}
	return feature{kind: ascii, a: int(r)}
}

// endRow ends a row of characters of one class.
func (w *walk) endRow() {
	if w.longer > 0 {
		w.counts[feature{kind: long, a: w.before - lower}] += w.longer
	}
	w.row, w.longer, w.digits, w.blanks = 0, 0, 0, 0
}

// third is 1 for a character after two of the same.
func third(same int) int {
	if same >= 2 {
		return 1
	}
	return 0
}

// isBox reports whether a row of r is drawn, not written.
func isBox(r rune) bool { return r >= firstBox && r <= lastBox }

const firstBox, lastBox = 0x2500, 0x25bf // three blocks of 64

// isBigram reports whether two characters that follow one another have a weight of
// their own: two that are printed, and the second no digit.
func isBigram(a, b rune) bool {
	return a >= ' ' && a < 0x7f && b >= ' ' && b < 0x7f && classOf(b) != number
}

// wholeScripts have so many characters that a text shows each of them too
// rarely to learn from; they get one weight: Kana, Hangul, the rarer Han. The
// ends are those of blocks.
var wholeScripts = [][2]rune{{0x3040, 0x30ff}, {0x3400, 0x4dbf}, {0xac00, 0xd7ff}, {0x20000, 0x3ffff}}

// blockOf returns the first code point of those that share r's weight: r itself
// below U+0800, else as far as the first two bytes of UTF-8 tell, or the
// whole of a script.
func blockOf(r rune) rune {
	for _, s := range wholeScripts {
		if s[0] <= r && r <= s[1] {
			return s[0]
		}
	}
	switch {
	case r < 0x800:
		return r
	case r < 0x10000:
		return r &^ 63
	}
	return r &^ 4095
}

// blockEnd returns the last code point of the block that first begins.
func blockEnd(first rune) rune {
	for _, s := range wholeScripts {
		if s[0] == first {
			return s[1]
		}
	}
	switch {
	case first < 0x800:
		return first
	case first < 0x10000:
		return first | 63
	}
	return first | 4095
}

// family names the features whose weights should not differ without evidence.
// One that the corpus does not show gets the mean of its family.
func (f feature) family() string {
	switch f.kind {
	case ascii:
		return fmt.Sprint("ascii ", classOf(rune(f.a)))
	case wide:
		return "wide " + scriptOf(rune(f.a))
	case box:
		return fmt.Sprint("box ", f.a, (f.b-firstBox)/64)
	}
	return "" // each for itself
}

// scripts are those that the corpus shows in running text.
var scripts = []string{"Latin", "Cyrillic", "Greek", "Hebrew", "Arabic", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Thai", "Lao", "Tibetan", "Myanmar", "Georgian", "Armenian", "Ethiopic", "Khmer", "Hangul", "Hiragana", "Katakana", "Han"}

// scriptOf names the script that most characters of a block belong to. What
// belongs to no script (punctuation, symbols, emoji) is "common", and scripts
// without running text are "other", each by the bytes that a character takes.
func scriptOf(first rune) string {
	votes := map[string]int{}
	for r := first; r <= min(blockEnd(first), first+4095); r++ {
		if !unicode.IsGraphic(r) {
			continue
		}
		name := "other"
		if unicode.In(r, unicode.Common, unicode.Inherited) {
			name = "common"
		}
		for _, s := range scripts {
			if unicode.Is(unicode.Scripts[s], r) {
				name = s
			}
		}
		votes[name]++
	}
	best := "other"
	for _, s := range slices.Concat(scripts, []string{"common", "other"}) {
		if votes[s] > votes[best] {
			best = s
		}
	}
	if best == "common" || best == "other" {
		return fmt.Sprint(best, " ", utf8.RuneLen(first))
	}
	return best
}
