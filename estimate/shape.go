package estimate

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// A shape is what a definition of tools, or a schema, is made of. Some makers show
// a model the JSON as it came, some write it in a shorter form of their own. One
// pass gives the tokens of the JSON and counts its parts; a [structureRule] of the
// maker turns both into what is charged.
type shape struct {
	milli int64 // milli-tokens of the JSON as it came
	typed int64 // tokens of tools that a maker defines itself, by their type

	tools    uint32 // definitions: objects with a name
	objects  uint32 // objects with properties
	bare     uint32 // those of them that have none: tools without parameters
	props    uint32 // properties
	descs    uint32 // descriptions
	required uint32 // names in lists of required properties
	enums    uint32 // values of enumerations
	dropped  uint32 // members that are for the server and not for the model
	dialects uint32 // names of the dialect of the schema: "$schema"
	answers  uint32 // schemas of what a tool returns: "response"
}

// less takes b from a, member by member.
func (a *shape) less(b *shape) {
	a.milli -= b.milli
	a.typed -= b.typed
	a.tools -= b.tools
	a.objects -= b.objects
	a.bare -= b.bare
	a.props -= b.props
	a.descs -= b.descs
	a.required -= b.required
	a.enums -= b.enums
	a.dropped -= b.dropped
	a.dialects -= b.dialects
	a.answers -= b.answers
}

// word is a name in a definition that says what its value is.
type word uint8

const (
	wordOther word = iota
	wordProperties
	wordDescription
	wordRequired
	wordEnum
	wordName
	wordType
	wordDropped
	wordDialect
	wordAnswer
	wordServer
)

// wordOf is the table of names in definitions of tools and in schemas. One letter and
// the length identify most names.
func wordOf(key []byte) word {
	if len(key) < len("type") {
		return wordOther
	}
	switch key[0] {
	case 't':
		switch string(key) {
		case "type":
			return wordType
		case "title":
			return wordDropped
		}
	case 'd':
		if string(key) == "description" {
			return wordDescription
		}
	case 'p':
		if string(key) == "properties" {
			return wordProperties
		}
	case 'r':
		switch string(key) {
		case "required":
			return wordRequired
		case "response":
			return wordAnswer
		}
	case 'n':
		switch string(key) {
		case "name":
			return wordName
		case "nullable":
			return wordDropped
		}
	case 's':
		if string(key) == "strict" {
			return wordDropped
		}
	case 'a':
		if string(key) == "additionalProperties" {
			return wordDropped
		}
	case '$':
		if string(key) == "$schema" {
			return wordDialect
		}
	case 'e':
		if string(key) == "enum" {
			return wordEnum
		}
	case 'c':
		if string(key) == "cache_control" {
			return wordDropped
		}
	}
	if isServerWord(key) {
		return wordServer
	}
	return wordOther
}

// isServerWord reports whether a name stands for what runs at the provider.
func isServerWord(key []byte) bool {
	switch string(key) {
	case "googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval", "googleMaps", "google_maps",
		"urlContext", "url_context", "fileSearch", "file_search", "codeExecution", "code_execution",
		"enterpriseWebSearch", "mcp_servers":
		return true
	}
	return false
}

// serverTools are the beginnings of the types of tools that run at the provider.
// What they put into the prompt cannot be known before.
var serverTools = []string{
	"web_search", "web_fetch", "code_interpreter", "code_execution", "file_search", "image_generation", "mcp",
	"x_search", "collections_search", "tool_search", "retrieval", "browser_search", "openrouter:",
}

// typedTools are the tools that run at the caller and that the maker describes to
// the model itself: what the description costs (Anthropic, pages of the bash, text
// editor and computer use tools, 2026-11).
var typedTools = []struct {
	prefix string
	tokens int64
}{
	{"bash_", 245}, {"text_editor_", 700}, {"computer_", 735}, {"memory_", 700},
}

// toolType notes the type of a tool.
func (s *scanner) toolType(sh *shape, raw []byte) {
	for _, t := range serverTools {
		if len(raw) >= len(t) && string(raw[:len(t)]) == t {
			s.other().server++
			return
		}
	}
	for _, t := range typedTools {
		if len(raw) > len(t.prefix) && string(raw[:len(t.prefix)]) == t.prefix {
			sh.typed += t.tokens
			return
		}
	}
}

// toolDepth is where the type of a tool stands: in an object in a list.
const toolDepth = 2

// shapeDepth is the deepest level at which the parts of a definition are
// distinguished.
const shapeDepth = 64

// A defining is the state of a pass over one definition of tools or a schema.
type defining struct {
	sh    *shape
	depth int
	from  int              // to where the JSON is counted
	last  word             // the name before the value that comes next
	in    word             // the name of the innermost object or array, if it says what stands in it
	outer [shapeDepth]word // the same for those around it, by depth
}

// definition is [scanner.subtree] for a definition of tools or a schema. It writes the
// parts of the definition to sh.
func (s *scanner) definition(i int, sh *shape) int {
	b := s.body
	d := defining{sh: sh, from: i}
	for i < len(b) {
		switch b[i] {
		case '{', '[':
			d.open(b, i)
		case '}', ']':
			d.depth--
			if d.depth == 0 {
				i++
				sh.milli += s.stretch(b[d.from:i], asStructure)
				return i
			}
			d.in = wordOther
			if uint(d.depth) < shapeDepth {
				d.in = d.outer[d.depth]
			}
			if i+1 < len(b) && b[i+1] == ',' {
				i++
			}
		case '"':
			i = s.definitionString(&d, i)
			continue
		case '\n':
			sh.milli += s.stretch(b[d.from:i], asStructure)
			i = lastBlank(b, i)
			d.from = i + 1
		}
		i++
	}
	s.broken = true
	sh.milli += s.stretch(b[min(d.from, len(b)):], asStructure)
	return len(b)
}

// open enters the object or array at b[i].
func (d *defining) open(b []byte, i int) {
	if d.depth < shapeDepth {
		d.outer[d.depth] = d.in
	}
	d.depth++
	d.in = wordOther
	switch d.last {
	case wordProperties:
		if b[i] == '{' {
			d.in = d.last
			d.sh.objects++
			if empty(b[i:]) {
				d.sh.bare++
			}
		}
	case wordRequired, wordEnum:
		if b[i] == '[' {
			d.in = d.last
		}
	}
	d.last = wordOther
}

// definitionString reads the string whose quote is at b[i], a name or a value. It returns
// the offset to go on from.
func (s *scanner) definitionString(d *defining, i int) int {
	b := s.body
	start := i + 1
	end, look := -1, start // look is where the quote is looked for
	if start+16 <= len(b) {
		x := binary.LittleEndian.Uint64(b[start : start+8])
		if d.last == wordOther && d.in != wordProperties {
			if w, n := commonName(x, b[start+8:start+16]); n > 0 {
				d.last = w
				return start + n
			}
		}
		if q := zeroBytes(x^'"'*ones) | zeroBytes(x^'\\'*ones); q != 0 {
			if j := start + bits.TrailingZeros64(q)/8; b[j] == '"' {
				end = j
			}
		} else {
			look += 8
		}
	}
	if end < 0 {
		if end = stringEnd(b, look); end < 0 {
			s.broken = true
			end = len(b)
		}
	}
	raw := b[start:end]
	i = end + 1
	if i < len(b) && b[i] == ':' || isName(b, i) {
		if d.last = wordOther; d.in == wordProperties {
			d.sh.props++
		} else if d.last = wordOf(raw); d.last >= wordDropped {
			s.special(d.sh, d.last)
		}
		return i + 1
	}
	s.definitionValue(d, raw)
	if i < len(b) && b[i] == ',' {
		i++
	}
	if len(raw) >= minEmbedded && (len(raw) >= minBase64 || raw[0]|0x20 == 'd' || raw[0] == '\\') {
		if j := s.leaveOut(start-1, start, end, asStructure); j != start-1 {
			d.sh.milli += s.stretch(b[d.from:start-1], asStructure)
			d.from = j
		}
	}
	return i
}

// definitionValue notes what a string says that is a value or an element.
func (s *scanner) definitionValue(d *defining, raw []byte) {
	switch d.last {
	case wordOther:
		switch d.in {
		case wordRequired:
			d.sh.required++
		case wordEnum:
			d.sh.enums++
		}
	case wordName:
		d.sh.tools++
	case wordDescription:
		d.sh.descs++
	case wordType:
		if d.depth == toolDepth {
			s.toolType(d.sh, raw)
		}
	}
	d.last = wordOther
}

// Names that most definitions consist of, as eight bytes from their first on: a name of
// four letters with the quote, the colon and the next quote behind it, or its beginning.
const (
	typeString  = 't' | 'y'<<8 | 'p'<<16 | 'e'<<24 | '"'<<32 | ':'<<40 | '"'<<48
	nameString  = 'n' | 'a'<<8 | 'm'<<16 | 'e'<<24 | '"'<<32 | ':'<<40 | '"'<<48
	description = 'd' | 'e'<<8 | 's'<<16 | 'c'<<24 | 'r'<<32 | 'i'<<40 | 'p'<<48 | 't'<<56
	properties  = 'p' | 'r'<<8 | 'o'<<16 | 'p'<<24 | 'e'<<32 | 'r'<<40 | 't'<<48 | 'i'<<56
	required    = 'r' | 'e'<<8 | 'q'<<16 | 'u'<<24 | 'i'<<32 | 'r'<<40 | 'e'<<48 | 'd'<<56
	parameters  = 'p' | 'a'<<8 | 'r'<<16 | 'a'<<24 | 'm'<<32 | 'e'<<40 | 't'<<48 | 'e'<<56

	shortName = 1<<56 - 1 // of eight bytes, the first seven
)

// commonName reads a name that most definitions have, with the colon behind it: its first
// eight bytes are x, those after them rest. It returns what the name says and how many
// bytes it took, 0 for any other name and for what is no name.
func commonName(x uint64, rest []byte) (w word, n int) {
	switch {
	case x&shortName == typeString:
		return wordType, len(`type":`)
	case x&shortName == nameString:
		return wordName, len(`name":`)
	case x == description && string(rest[:5]) == `ion":`:
		return wordDescription, len(`description":`)
	case x == properties && string(rest[:4]) == `es":`:
		return wordProperties, len(`properties":`)
	case x == required && string(rest[:2]) == `":`:
		return wordRequired, len(`required":`)
	case x == parameters && string(rest[:4]) == `rs":`:
		return wordOther, len(`parameters":`)
	}
	return wordOther, 0
}

// special notes a name that a maker leaves out, or that names what runs at the provider.
func (s *scanner) special(sh *shape, w word) {
	switch w {
	case wordDropped:
		sh.dropped++
	case wordDialect:
		sh.dialects++
	case wordAnswer:
		sh.answers++
	case wordServer:
		s.other().server++
	}
}

// isName reports whether the string that ends before b[i] is a name: a colon comes
// next.
func isName(b []byte, i int) bool {
	for ; i < len(b); i++ {
		switch b[i] {
		case ':':
			return true
		case ' ', '\t', '\n', '\r':
		default:
			return false
		}
	}
	return false
}

// choosesOnly reports whether the object that b begins with says only how tools are
// chosen, as Gemini's toolConfig does; a model does not read that.
func choosesOnly(b []byte) bool {
	b = bytes.TrimLeft(b[1:], " \t\n\r")
	return bytes.HasPrefix(b, []byte(`"functionCallingConfig"`)) || bytes.HasPrefix(b, []byte(`"function_calling_config"`)) ||
		bytes.HasPrefix(b, []byte(`"retrievalConfig"`))
}

// empty reports whether the object or array that b begins with has nothing in it.
func empty(b []byte) bool {
	b = bytes.TrimLeft(b[1:], " \t\n\r")
	return len(b) > 0 && (b[0] == '}' || b[0] == ']')
}
