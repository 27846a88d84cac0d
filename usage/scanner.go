package usage

import (
	"bytes"
	"encoding/json"
)

// A scanner walks JSON documents as their bytes arrive, in pieces cut anywhere.
// It reports to a [reading] the few members that the table in shapes.go names.
// It steps over everything else: a container that the table does not name costs
// one counter, a string one search for its closing quote. Nothing of the body
// is kept but the key or word being read, and an error object.
//
// It is not a validator. It follows strings, nesting and commas exactly, so
// that text inside a string can never be mistaken for a member; it does not
// check escapes or the spelling of numbers it does not need. A document in
// which it loses its way is dropped with all it said.
//
// Regular expressions over a window, or a search for "usage", were not an
// option: the model's answer, its tool arguments and an echoed prompt may hold
// exactly that text.
type scanner struct {
	r *reading

	state state
	depth int // containers on the stack
	stack [maxStack]node
	array [maxStack]bool // the container is an array
	skip  int            // depth inside a container that is stepped over
	lists uint64         // of its outermost 64 levels, those that are arrays

	member *member    // what the value being read is; nil: nothing
	kind   stringKind // what to do with the string being read
	isKey  bool
	escape uint8 // 0 outside an escape, 1 after a backslash, 2..5 in the digits of \uXXXX
	code   rune  // the digits of \uXXXX so far

	word []byte // the key, word or bare value being read; at most maxWord
	long bool   // it is longer than that
	buf  [maxWord]byte

	capturing bool
	base64    *base64Scanner // the JSON inside Bedrock's "bytes"; nil until one is seen
	frames    bool           // the document is the payload of an event-stream frame
}

const (
	maxStack = 16  // the table's deepest path is nine containers
	maxWord  = 256 // the longest key in the table, every character of it written as \uXXXX
)

type state uint8

const (
	begin    state = iota // between documents
	firstKey              // after {
	nextKey               // after a comma in an object
	colon                 // after a key
	value                 // after a colon or a comma in an array
	first                 // after [
	after                 // after a value
	inString
	inBare // a number, true, false or null
	inSkip
	skipString // a string inside a container that is stepped over
	lost       // no JSON, or no longer
)

type stringKind uint8

const (
	ignored  stringKind = iota
	asWord              // kept whole, if short
	asText              // output text: its decoded bytes are counted
	asBase64            // JSON in base64 (Bedrock)
)

// structural marks the bytes that mean something to inSkip.
var structural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// reset forgets the document that is being read and what it said.
func (s *scanner) reset() {
	s.state, s.depth, s.skip, s.escape, s.capturing = begin, 0, 0, 0, false
	s.r.forget()
}

// midway reports whether a document is open.
func (s *scanner) midway() bool { return s.state != begin && s.state != lost }

// write reads the next bytes.
func (s *scanner) write(p []byte) {
	from := 0 // where the captured bytes of p begin, if capturing
	for i := 0; i < len(p); {
		switch s.state {
		case inString, skipString:
			n, ended := s.stringBytes(p[i:])
			i += n
			if !ended {
				continue
			}
			if s.state == skipString {
				s.state = inSkip
				continue
			}
			s.endString()
			if s.capturing && !s.isKey {
				s.endCapture(p[from:i])
			}

		case inSkip:
			for ; i < len(p) && !structural[p[i]]; i++ {
			}
			if i == len(p) {
				continue
			}
			c := p[i]
			i++
			switch c {
			case '"':
				s.state, s.kind = skipString, ignored
			case '{', '[':
				s.deeper(c == '[')
			default:
				if !s.shallower(c == ']') {
					s.state = lost
					continue
				}
				if s.skip == 0 {
					s.state = after
					if s.capturing {
						s.endCapture(p[from:i])
					}
				}
			}

		case inBare:
			start := i
			for ; i < len(p) && !endsBare(p[i]); i++ {
			}
			s.keep(p[start:i])
			if i == len(p) {
				continue
			}
			if s.capturing {
				s.endCapture(p[from:i])
			}
			s.endBare()

		case lost:
			return

		default:
			c := p[i]
			i++
			switch c {
			case ' ', '\t', '\r', '\n':
				continue
			}
			s.step(c)
			if s.capturing { // the step has begun a value that is kept
				from = i - 1
			}
		}
	}
	if s.capturing && from < len(p) {
		s.r.capture(p[from:])
	}
}

func endsBare(c byte) bool {
	switch c {
	case ',', '}', ']', ' ', '\t', '\r', '\n', '{', '[', '"', ':':
		return true
	}
	return false
}

// step takes one byte that is neither blank nor inside a value.
func (s *scanner) step(c byte) {
	switch s.state {
	case begin:
		switch c {
		case '{':
			s.push(nodeRoot, false)
		case '[':
			s.push(nodeList, true)
		default:
			s.state = lost
		}
	case firstKey, nextKey:
		switch {
		case c == '"':
			s.state, s.kind, s.isKey = inString, asWord, true
			s.word, s.long = s.buf[:0], false
		case c == '}' && s.state == firstKey:
			s.pop(c)
		default:
			s.state = lost
		}
	case colon:
		if c != ':' {
			s.state = lost
			return
		}
		s.state = value
	case first:
		if c == ']' {
			s.pop(c)
			return
		}
		s.value(c)
	case value:
		s.value(c)
	case after:
		switch c {
		case ',':
			if s.state = nextKey; s.array[s.depth-1] {
				s.state, s.member = value, nil
			}
		case '}', ']':
			s.pop(c)
		default:
			s.state = lost
		}
	}
}

// value begins a value with its first byte.
func (s *scanner) value(c byte) {
	m := s.member
	place := s.depth - 1
	inArray := s.array[place]
	switch c {
	case '{':
		n := nodeNone
		switch {
		case inArray && s.stack[s.depth-1] == nodeList:
			n = nodeRoot
		case inArray:
			n = s.stack[s.depth-1]
		case m != nil:
			n = m.object
		}
		s.open(n, false)
	case '[':
		n := nodeNone
		if m != nil && !inArray {
			n = m.array
		}
		s.open(n, true)
	case '"':
		s.state, s.kind, s.isKey = inString, ignored, false
		s.word, s.long = s.buf[:0], false
		if m != nil {
			s.kind = m.text
			if s.kind == asBase64 && !s.frames {
				s.kind = ignored
			}
			s.capturing = m.capture != ""
		}
	case '}', ']', ',', ':':
		s.state = lost
		return
	default:
		s.state = inBare
		s.word, s.long = append(s.buf[:0], c), false
		s.capturing = m != nil && m.capture != ""
	}
	if s.capturing {
		s.r.captureMember(m.capture)
	}
	if m != nil && m.seen != nil {
		m.seen(s.r, c)
	}
	if m != nil && m.field != fieldNone && !inArray && (c == '"' || c == '[') {
		s.r.impossible(s.stack[place], m)
	}
}

// open enters a container that the table names, or begins to step over one.
func (s *scanner) open(n node, array bool) {
	if n == nodeNone || s.depth == maxStack {
		s.state = inSkip
		s.deeper(array)
		s.capturing = s.member != nil && s.member.capture != ""
		return
	}
	s.push(n, array)
}

// endCapture keeps the last bytes of a value.
func (s *scanner) endCapture(p []byte) {
	s.r.capture(p)
	s.r.captured()
	s.capturing = false
}

// deeper goes one level down in a container that is stepped over.
func (s *scanner) deeper(array bool) {
	if s.skip < 64 {
		s.lists &^= 1 << s.skip
		if array {
			s.lists |= 1 << s.skip
		}
	}
	s.skip++
}

// shallower goes one level up; it is false if another bracket was due. Below 64
// levels either is taken: no response is that deep, and a fault there only
// matters if it were to come out even.
func (s *scanner) shallower(array bool) bool {
	s.skip--
	return s.skip >= 64 || s.lists>>s.skip&1 == 1 == array
}

func (s *scanner) push(n node, array bool) {
	s.stack[s.depth], s.array[s.depth] = n, array
	s.depth++
	s.member = nil
	if s.state = firstKey; array {
		s.state = first
		return
	}
	if usageNodes[n] && s.depth > 1 {
		s.r.openUsage(s.stack[s.depth-2])
	}
}

func (s *scanner) pop(c byte) {
	if s.array[s.depth-1] != (c == ']') {
		s.state = lost
		return
	}
	s.depth--
	n, array := s.stack[s.depth], s.array[s.depth]
	if s.state = after; s.depth == 0 {
		s.state = begin
	}
	switch {
	case n == nodeRoot:
		s.r.endDocument()
	case usageNodes[n] && !array:
		s.r.closeUsage()
	}
}

// stringBytes reads inside a string, up to and including the closing quote if p
// has it.
func (s *scanner) stringBytes(p []byte) (n int, ended bool) {
	if s.kind == asText {
		return s.textBytes(p)
	}
	i := 0
	if s.escape == 1 { // the byte before p is a backslash that escapes p[0]
		s.escape = 0
		i = 1
	}
	for {
		q := bytes.IndexByte(p[i:], '"')
		end := i + q
		if q < 0 {
			end = len(p)
		}
		run := end // backslashes right before end
		for run > i && p[run-1] == '\\' {
			run--
		}
		odd := (end-run)%2 == 1
		if q < 0 {
			if odd {
				s.escape = 1
			}
			s.keepString(p)
			return len(p), false
		}
		if !odd {
			s.keepString(p[:end])
			return end + 1, true
		}
		i = end + 1
	}
}

func (s *scanner) keepString(p []byte) {
	switch s.kind {
	case asWord:
		s.keep(p)
	case asBase64:
		if s.base64 == nil {
			s.base64 = newBase64Scanner(s.r)
		}
		s.base64.write(p)
	}
}

func (s *scanner) keep(p []byte) {
	if s.long {
		return
	}
	if room := maxWord - len(s.word); len(p) > room {
		s.long = true
		p = p[:room]
	}
	s.word = append(s.word, p...)
}

// textBytes reads output text and counts the bytes it is when decoded. Escapes
// are counted at no more than they decode to: a surrogate half is two bytes,
// whether or not its other half follows.
func (s *scanner) textBytes(p []byte) (n int, ended bool) {
	total, n, ended := s.countText(p)
	s.r.addText(s.member.counter, total)
	return n, ended
}

func (s *scanner) countText(p []byte) (total int64, n int, ended bool) {
	for i := 0; i < len(p); {
		switch s.escape {
		case 0:
			q := bytes.IndexByte(p[i:], '"')
			if q < 0 {
				q = len(p) - i
			}
			if b := bytes.IndexByte(p[i:i+q], '\\'); b >= 0 {
				total += int64(b)
				i += b + 1
				s.escape = 1
				continue
			}
			total += int64(q)
			i += q
			if i < len(p) {
				return total, i + 1, true
			}
		case 1:
			if s.escape = 0; p[i] == 'u' {
				s.escape, s.code = 2, 0
			} else {
				total++
			}
			i++
		default:
			c := p[i]
			if c == '"' {
				return total, i + 1, true // no such escape; a quote ends the string all the same
			}
			s.code = s.code<<4 | hexDigit(c)
			i++
			if s.escape++; s.escape < 6 {
				continue
			}
			s.escape = 0
			switch {
			case s.code < 0x80:
				total++
			case s.code < 0x800, s.code >= 0xd800 && s.code < 0xe000:
				total += 2
			default:
				total += 3
			}
		}
	}
	return total, len(p), false
}

func hexDigit(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c >= 'a' && c <= 'f':
		return rune(c - 'a' + 10)
	case c >= 'A' && c <= 'F':
		return rune(c - 'A' + 10)
	}
	return 0
}

// endString acts on a string that is complete.
func (s *scanner) endString() {
	s.escape = 0
	if !s.isKey {
		s.state = after
		if s.kind == asWord {
			s.member.word(s.r, s.unescaped())
		}
		if s.kind == asBase64 && s.base64 != nil {
			s.base64.end()
		}
		return
	}
	s.state = colon
	s.member = nil
	if !s.long {
		s.member = lookup(s.stack[s.depth-1], s.unescaped())
	}
}

// unescaped is the word that was read. Keys written with escapes are legal and
// never seen; they cost an allocation.
func (s *scanner) unescaped() []byte {
	if s.long || bytes.IndexByte(s.word, '\\') < 0 {
		return s.word // of a long one the beginning, which equals no name
	}
	var decoded string
	if json.Unmarshal(append(append([]byte{'"'}, s.word...), '"'), &decoded) != nil {
		return nil
	}
	return []byte(decoded)
}

// endBare acts on a number or literal that is complete.
func (s *scanner) endBare() {
	s.state = after
	if s.long { // a number of 257 digits is no count
		if s.member != nil {
			s.r.impossible(s.stack[s.depth-1], s.member)
		}
		return
	}
	switch c := s.word[0]; {
	case c == '-' || c >= '0' && c <= '9':
		if s.member != nil && s.member.field != fieldNone {
			s.r.number(s.stack[s.depth-1], s.member, s.word)
		}
	case string(s.word) == "null":
	case string(s.word) == "true", string(s.word) == "false":
		switch {
		case s.member == nil:
		case s.member.flag != nil:
			s.member.flag(s.r, c == 't')
		default:
			s.r.impossible(s.stack[s.depth-1], s.member)
		}
	case s.depth == 1 && s.stack[0] == nodeList && string(s.word) == "DONE":
		// "data: [DONE]" ends a chat stream and is no JSON.
		s.r.done = true
		s.state = lost
	default:
		s.state = lost
	}
}
