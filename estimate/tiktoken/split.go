package tiktoken

import "unicode/utf8"

// A text is first cut into pieces, and only inside a piece are bytes merged into
// tokens. The reference cuts with a regular expression. The functions below walk
// the same grammar by hand; each returns the end of the piece that starts at
// text[i], which is always beyond i.
//
// Every character is looked at a constant number of times, so a cut text costs
// time in proportion to its length. Where an expression would try, fail and
// return, the comment says why once is enough.

type splitter func(t *classTable, text []byte, i int) int

// splitO200k is the pattern of o200k_base:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitO200k(t *classTable, text []byte, i int) int {
	c, w := t.at(text, i)
	if c&letter != 0 {
		return word(t, text, i)
	}
	j := i + w
	if c&notPrefix == 0 && j < len(text) {
		if d, _ := t.at(text, j); d&(upper|lower) != 0 {
			// The character before a word belongs to it. A mark is both a
			// possible prefix and a possible part of the word, and the first
			// pattern wants a member of the lower set: when none follows, the
			// mark itself is it.
			if c&lower == 0 || wordHasLower(t, text, j) {
				return word(t, text, j)
			}
			return word(t, text, i)
		}
	}
	switch {
	case c&lower != 0: // a mark alone
		return word(t, text, i)
	case c&number != 0:
		return upTo3Numbers(t, text, j)
	}
	if e := punctuation(t, text, i, c); e > 0 {
		for e < len(text) && (text[e] == '\r' || text[e] == '\n' || text[e] == '/') {
			e++
		}
		return e
	}
	return blanks(t, text, i, true)
}

// word returns the end of the o200k word whose first letter or mark is at
// text[i].
//
// The first pattern takes members of the upper set, then at least one of the
// lower set. Letters without case and marks are in both. If the run of the upper
// set is followed by a small letter, the word goes on. If it is not, the
// expression gives characters back until one is also in the lower set: that is
// the last letter without case or mark of the run, and the word ends behind it.
// If there is none either, only the second pattern is left and takes the run,
// which then holds nothing but capitals.
//
// Giving back cannot repeat: what follows such a cut is a run of capitals, which
// the second pattern takes whole.
func word(t *classTable, text []byte, i int) int {
	end := 0
	for i < len(text) {
		c, w := t.at(text, i)
		if c&upper == 0 {
			if c&lower == 0 {
				break
			}
			// A small letter ends the first set; the second goes on.
			i = run(t, text, i+w, lower)
			end = i
			break
		}
		i += w
		if c&lower != 0 {
			end = i
		}
	}
	if end == 0 {
		end = i
	}
	return end + contraction(text, end)
}

// wordHasLower tells whether the run at text[i] satisfies the first o200k word
// pattern: a member of the lower set comes before the run ends.
func wordHasLower(t *classTable, text []byte, i int) bool {
	for i < len(text) {
		c, w := t.at(text, i)
		if c&lower != 0 {
			return true
		}
		if c&upper == 0 {
			return false
		}
		i += w
	}
	return false
}

// splitCL100k is the pattern of cl100k_base:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func splitCL100k(t *classTable, text []byte, i int) int {
	c, w := t.at(text, i)
	if c&letter != 0 {
		return run(t, text, i+w, letter)
	}
	if n := contraction(text, i); n > 0 {
		return i + n
	}
	j := i + w
	if c&notPrefix == 0 && j < len(text) {
		if d, v := t.at(text, j); d&letter != 0 {
			return run(t, text, j+v, letter)
		}
	}
	if c&number != 0 {
		return upTo3Numbers(t, text, j)
	}
	if e := punctuation(t, text, i, c); e > 0 {
		for e < len(text) && (text[e] == '\r' || text[e] == '\n') {
			e++
		}
		return e
	}
	return blanks(t, text, i, true)
}

// splitGPT2 is the pattern of p50k_base and r50k_base, the one of GPT-2:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func splitGPT2(t *classTable, text []byte, i int) int {
	if n := contraction(text, i); n > 0 && isLower(text[i+1:i+n]) {
		return i + n
	}
	c, w := t.at(text, i)
	j := i + w
	if text[i] == ' ' && j < len(text) {
		d, v := t.at(text, j)
		if d&space == 0 {
			c, j = d, j+v
		}
	}
	switch {
	case c&letter != 0:
		return run(t, text, j, letter)
	case c&number != 0:
		return run(t, text, j, number)
	case c&space == 0:
		return punctuationFrom(t, text, j)
	}
	return blanks(t, text, i, false)
}

// contraction returns the length of (?i:'s|'t|'re|'ve|'m|'ll|'d) at text[i], or 0.
//
// Only ASCII letters match. U+017F, the long s, folds to s in the regular
// expressions of the Rust original but not in those of the reference, which are
// followed here.
func contraction(text []byte, i int) int {
	if len(text)-i < 2 || text[i] != '\'' {
		return 0
	}
	switch text[i+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(text)-i > 2 && text[i+2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(text)-i > 2 && text[i+2]|0x20 == 'l' {
			return 3
		}
	}
	return 0
}

// isLower tells whether ASCII letters are all small.
func isLower(letters []byte) bool {
	for _, b := range letters {
		if b&0x20 == 0 {
			return false
		}
	}
	return true
}

// run returns the end of the run of characters of a class that text[i] continues.
func run(t *classTable, text []byte, i int, class uint8) int {
	for i < len(text) {
		if b := text[i]; b < utf8.RuneSelf {
			if t.ascii[b]&class == 0 {
				break
			}
			i++
			continue
		}
		c, w := t.at(text, i)
		if c&class == 0 {
			break
		}
		i += w
	}
	return i
}

// upTo3Numbers is \p{N}{1,3} with its first number before text[i].
func upTo3Numbers(t *classTable, text []byte, i int) int {
	for range 2 {
		if i == len(text) {
			break
		}
		c, w := t.at(text, i)
		if c&number == 0 {
			break
		}
		i += w
	}
	return i
}

// punctuation is " ?[^\s\p{L}\p{N}]+" at text[i], whose class is c. It returns 0
// if that does not match.
func punctuation(t *classTable, text []byte, i int, c uint8) int {
	if c&notPunct == 0 {
		return punctuationFrom(t, text, i)
	}
	if text[i] != ' ' {
		return 0
	}
	if e := punctuationFrom(t, text, i+1); e > i+1 {
		return e
	}
	return 0
}

func punctuationFrom(t *classTable, text []byte, i int) int {
	for i < len(text) {
		if b := text[i]; b < utf8.RuneSelf {
			if t.ascii[b]&notPunct != 0 {
				break
			}
			i++
			continue
		}
		c, w := t.at(text, i)
		if c&notPunct != 0 {
			break
		}
		i += w
	}
	return i
}

// blanks is \s*[\r\n]+|\s+(?!\S)|\s+ at text[i], a white space character, the
// first alternative only if lines. That one gives back what follows the last line
// end of the run. The second takes the run, less one character if text follows:
// that one is left to the word behind it. A run of one character has none to give
// back and is the third alternative.
func blanks(t *classTable, text []byte, i int, lines bool) int {
	first, last, line := i, i, 0
	for i < len(text) {
		c, w := t.at(text, i)
		if c&space == 0 {
			break
		}
		last = i
		i += w
		if c&newline != 0 {
			line = i
		}
	}
	switch {
	case lines && line > 0:
		return line
	case i == len(text) || last == first:
		return i
	}
	return last
}
