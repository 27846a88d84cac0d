package estimate

import (
	"encoding/base64"
	"sync"
)

// A Family is a set of weights fitted to one tokenizer. The zero value is
// O200k.
type Family uint8

const (
	O200k    Family = iota // o200k_base: gpt-4o and later; the default for every unknown model
	CL100k                 // cl100k_base: gpt-4, gpt-3.5-turbo, text-embedding-3
	Claude                 // Anthropic's of 2023, the last that was published: near the shape of later ones
	Gemma                  // Gemma 2 and Gemini
	Llama3                 // Llama 3 and 4
	DeepSeek               // DeepSeek V3
	Qwen                   // Qwen 2 and 3
	Mistral                // Tekken: Mistral from NeMo on
	families
)

// String is the name of the tokenizer.
func (f Family) String() string {
	if f >= families {
		f = O200k
	}
	return [families]string{"o200k", "cl100k", "claude", "gemma", "llama3", "deepseek", "qwen", "mistral"}[f]
}

// A class is what the weight of the next character depends on: the tokenizers
// split where one kind of character meets another, so a letter after a letter
// costs less than one after a digit.
type class = uint8

const (
	classControl class = iota
	classLower
	classUpper
	classDigit
	classPunct
	classSpace // blank and tab
	classLine  // LF and CR
	classWide  // everything above ASCII
	classes
)

// classOf returns the class of the character that b is, or is part of.
func classOf(b byte) class {
	switch {
	case 'a' <= b && b <= 'z':
		return classLower
	case 'A' <= b && b <= 'Z':
		return classUpper
	case '0' <= b && b <= '9':
		return classDigit
	case b == ' ' || b == '\t':
		return classSpace
	case b == '\n' || b == '\r':
		return classLine
	case b < ' ' || b == 0x7f:
		return classControl
	case b >= 0x80:
		return classWide
	}
	return classPunct
}

// table is one family's weights as the fitting program writes them, in
// milli-tokens.
type table struct {
	ascii    [128]uint16              // each character; digits are not used
	repeated [5]uint16                // in place of ascii: a blank after a blank, a line end after a line end, a mark after the same mark, after two of the same, and after eight
	run      uint16                   // added once where blanks follow one another, two or more
	long     [2]uint16                // added to a letter after longRow or more of the same case, and after another letter: small, capital
	digit    [2]uint16                // the first digit of a group of three, the others
	meet     [classes][classes]uint16 // added where a character of the second class follows one of the first
	wide     []span                   // everything above ASCII, without gaps
	box      [boxes][2]uint16         // in place of wide: a box-drawing or block character after the same one, and after two of the same
	bigrams  string                   // base64 of 95 x 95 signed bytes: what an ASCII character adds after another, in steps of 10
}

// span gives one weight to the code points from the end of the span before it
// (the first begins at U+0080) to last. Spans end where a two-byte prefix of
// UTF-8 ends: anywhere below U+0800, before a multiple of 64 below U+10000,
// before a multiple of 4096 above.
type span struct {
	last   rune
	weight uint16
}

// weights is a table laid out for counting: 75 kB, of which a text in one
// language touches about a tenth.
type weights struct {
	// pair is the weight of an ASCII character after the byte before it, at
	// character<<8 | byte before. A digit after a digit has the weight of the
	// second or third of its group. A weight is below 4096, so that eight of
	// them are below the mark. Marked are digits, blanks after a blank and marks after the
	// same mark, which need more than a look-up.
	pair [1 << 15]uint16
	// group is what the first digit of a group costs above the others, added
	// where a digit after a digit begins a new group.
	group int64
	// run is added once for each row of two or more blanks.
	run int64
	// enter is added to a character above ASCII, by the byte before it.
	enter [0x81]uint16
	// box is the weight of a box-drawing or block character after the same one, and
	// after two of the same.
	box [boxes][2]uint16
	// row is the discount of a mark after two of the same against a mark after
	// one. longRow is the further discount after eight of the same.
	row, longRow int64
	// long is added to a letter after longRow or more of the same case, and after another letter: small, capital.
	long [2]int64
	// wide is the weight of a character above ASCII, by the first two bytes of
	// its UTF-8 form, six bits of each.
	wide [1 << 12]uint16
}

// families are laid out when first used: a program that counts with one, or
// none, does not pay for both.
var laidOut [families]struct {
	once sync.Once
	w    weights
}

// marked is the mark in weights.pair.
const marked = 1 << 15

// weights returns the weights of a family; those of an unknown one are O200k's.
func (f Family) weights() *weights {
	if f >= families {
		f = O200k
	}
	l := &laidOut[f]
	l.once.Do(func() { l.w.layOut(tables[f]) })
	return &l.w
}

var tables = [families]*table{
	O200k: &o200kTable, CL100k: &cl100kTable, Claude: &claudeTable, Gemma: &gemmaTable,
	Llama3: &llama3Table, DeepSeek: &deepseekTable, Qwen: &qwenTable, Mistral: &mistralTable,
}

const (
	firstPrinted = ' '
	printed      = 0x7f - firstPrinted
	bigramStep   = 10 // milli-tokens
)

func (w *weights) layOut(t *table) {
	bigrams, err := base64.StdEncoding.DecodeString(t.bigrams)
	if err != nil || len(bigrams) != printed*printed {
		panic("estimate: the table of weights is damaged") // generated, and tested
	}
	for i := range 256 {
		before := byte(i)
		if from := classOf(before); from != classWide {
			w.enter[before] = t.meet[from][classWide]
		}
		for b := range byte(128) {
			w.pair[int(b)<<8|int(before)] = t.pair(before, b, bigrams)
		}
	}
	w.run = int64(t.run)
	w.box = t.box
	w.row = int64(t.repeated[2]) - int64(t.repeated[3])
	w.longRow = int64(t.repeated[3]) - int64(t.repeated[4])
	w.long = [2]int64{int64(t.long[0]), int64(t.long[1])}
	w.group = int64(t.digit[0]) - int64(t.digit[1])
	w.layOutWide(t)
}

// pair is the weight of an ASCII character after another byte, marked if more than that
// byte decides.
func (t *table) pair(before, b byte, bigrams []byte) uint16 {
	from, to := classOf(before), classOf(b)
	cost := t.ascii[b]
	switch {
	case to == classDigit && from == classDigit:
		cost = t.digit[1]
	case to == classDigit:
		cost = t.digit[0]
	case to == classSpace && from == classSpace:
		cost = t.repeated[0]
	case to == classLine && from == classLine:
		cost = t.repeated[1]
	case to == classPunct && b == before:
		cost = t.repeated[2]
	}
	if to != from {
		cost += t.meet[from][to]
	}
	if i, j := int(before)-firstPrinted, int(b)-firstPrinted; 0 <= i && i < printed && 0 <= j && j < printed {
		cost = uint16(max(int(cost)+bigramStep*int(int8(bigrams[i*printed+j])), 0))
	}
	cost = min(cost, marked/8-1)
	if to == classDigit || to == classSpace && from == classSpace || to == classPunct && b == before {
		cost |= marked
	}
	return cost
}

// layOutWide fills in the weights of characters above ASCII.
func (w *weights) layOutWide(t *table) {
	from := rune(0x80)
	for _, s := range t.wide {
		for r := from; r <= s.last; {
			w.wide[wideIndex(r)] = s.weight
			switch {
			case r < 0x800:
				r++
			case r < 0x10000:
				r += 64
			default:
				r += 4096
			}
		}
		from = s.last + 1
	}
}

// wideIndex is the index into weights.wide of a character above ASCII.
func wideIndex(r rune) uint16 {
	switch {
	case r < 0x800:
		return uint16(r) // 110yyyyy 10xxxxxx
	case r < 0x10000:
		return 0x20<<6 | uint16(r>>6) // 1110zzzz 10yyyyyy
	default:
		return 0x30<<6 | uint16(r>>12) // 11110uuu 10uuzzzz
	}
}

// digitRuns tells how digits fall into groups of three. A state is the number
// of digits so far in the group that the last character belongs to, 0 if it is
// no digit. The index is state<<8 | m. Bit i of m is set if the i-th of the
// next eight characters is a digit. The low four bits of an entry count the
// groups that begin after another digit. The bits from 4 up hold the state
// after the eight characters.
var digitRuns = func() (t [4 << 8]uint8) {
	for i := range t {
		state, begun := uint8(i>>8), uint8(0)
		for bit := range 8 {
			switch {
			case i>>bit&1 == 0:
				state = 0
			case state == 3:
				state = 1
				begun++
			default:
				state++
			}
		}
		t[i] = state<<4 | begun
	}
	return t
}()
