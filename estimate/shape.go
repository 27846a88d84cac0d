package estimate

import "bytes"

// A shape is what a definition of tools, or a schema, is made of. Some makers show
// a model the JSON as it came, some write it in a shorter form of their own. One
// pass gives the tokens of the JSON and counts its parts; a [structureRule] of the
// maker turns both into what is charged.
type shape struct {
	milli    int64 // milli-tokens of the JSON as it came
	tools    int64 // definitions: objects with a name
	objects  int64 // objects with properties
	props    int64 // properties
	descs    int64 // descriptions
	required int64 // names in lists of required properties
	enums    int64 // values of enumerations
	dropped  int64 // members that are for the server and not for the model
	dialects int64 // names of the dialect of the schema: "$schema"
	typed    int64 // tokens of tools that a maker defines itself, by their type
}

func (a *shape) less(b *shape) shape {
	return shape{
		milli: a.milli - b.milli, tools: a.tools - b.tools, objects: a.objects - b.objects,
		props: a.props - b.props, descs: a.descs - b.descs, required: a.required - b.required,
		enums: a.enums - b.enums, dropped: a.dropped - b.dropped, dialects: a.dialects - b.dialects, typed: a.typed - b.typed,
	}
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
	wordServer
)

// wordOf is the table of names in definitions of tools and in schemas.
func wordOf(key []byte) word {
	switch len(key) { // most names are told by their length and one letter
	case 4:
		switch string(key) {
		case "type":
			return wordType
		case "name":
			return wordName
		case "enum":
			return wordEnum
		}
		return wordOther
	case 8:
		switch string(key) {
		case "required":
			return wordRequired
		case "nullable":
			return wordDropped
		}
		return wordOther
	case 10:
		switch string(key) {
		case "properties":
			return wordProperties
		case "urlContext", "googleMaps", "fileSearch":
			return wordServer
		}
		return wordOther
	case 11:
		switch string(key) {
		case "description":
			return wordDescription
		case "url_context", "google_maps", "file_search", "mcp_servers":
			return wordServer
		}
		return wordOther
	}
	switch string(key) {
	case "strict", "additionalProperties", "title", "cache_control":
		return wordDropped
	case "$schema":
		return wordDialect
	case "googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval", "codeExecution", "code_execution", "enterpriseWebSearch":
		return wordServer
	}
	return wordOther
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
			s.t.server++
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

// A reader of shapes follows the nesting of one definition. Sets of depths are bits;
// below the 64th level nothing is told apart.
type shapeReader struct {
	sh         *shape
	last       word   // of the name before the value that comes next
	properties uint64 // depths of objects whose names are properties
	lists      uint64 // depths of lists of required names
	values     uint64 // depths of lists of an enumeration
}

// toolDepth is where the type of a tool stands: in an object in a list.
const toolDepth = 2

// enter notes an object or array that opens at a depth.
func (r *shapeReader) enter(depth int, object bool) {
	bit := uint64(1) << min(depth, 63)
	r.properties, r.lists, r.values = r.properties&^bit, r.lists&^bit, r.values&^bit
	switch {
	case object && r.last == wordProperties:
		r.properties |= bit
		r.sh.objects++
	case !object && r.last == wordRequired:
		r.lists |= bit
	case !object && r.last == wordEnum:
		r.values |= bit
	}
	r.last = wordOther
}

// name notes a name at a depth.
func (r *shapeReader) name(s *scanner, raw []byte, depth int) {
	r.last = wordOther
	if r.properties>>min(depth, 63)&1 != 0 {
		r.sh.props++
		return
	}
	switch r.last = wordOf(raw); r.last {
	case wordDropped:
		r.sh.dropped++
	case wordDialect:
		r.sh.dialects++
	case wordServer:
		s.t.server++
	}
}

// str notes a string at a depth that is no name.
func (r *shapeReader) str(s *scanner, raw []byte, depth int) {
	switch r.last {
	case wordOther:
		if r.lists>>min(depth, 63)&1 != 0 {
			r.sh.required++
		} else if r.values>>min(depth, 63)&1 != 0 {
			r.sh.enums++
		}
		return
	case wordName:
		r.sh.tools++
	case wordDescription:
		r.sh.descs++
	case wordType:
		if depth == toolDepth {
			s.toolType(r.sh, raw)
		}
	}
	r.last = wordOther
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

// empty reports whether the object or array that b begins with has nothing in it.
func empty(b []byte) bool {
	b = bytes.TrimLeft(b[1:], " \t\n\r")
	return len(b) > 0 && (b[0] == '}' || b[0] == ']')
}
