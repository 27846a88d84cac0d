package estimate

import (
	"bytes"
	"sync"
	"unicode/utf8"
)

const (
	// maxFrames is how deep the meaning of nested values is followed. Below it
	// everything counts as JSON that the model reads. No interface comes near it.
	maxFrames = 64

	// maxMembers is how many names of open objects are remembered to find names
	// that come twice. Where an object has more, both of two equal names count.
	maxMembers = 64

	// maxEffort bounds the work spent on names that come twice, in bytes compared
	// the slow way and members put right. Only a body made for it gets there; from
	// then on equal names all count.
	maxEffort = 1 << 20
)

// totals is what a pass has added up: what nearly every member adds to, and the rest. So
// most members are taken away again by a few subtractions.
type totals struct {
	flow
	rest
}

// flow is the part of the totals that texts, messages and what else is short add to.
type flow struct {
	text      int64 // milli-tokens of text and structure
	role      int64 // milli-tokens of roles
	roles     int64 // messages with a role
	chars     int64 // characters of text
	quarters  int64 // sum over the texts of a quarter of their characters, rounded up
	structure int64 // characters of structure
	messages  int64
	prompts   int64  // texts or id lists of a prompt or input
	names     int64  // messages with a name
	ids       int64  // token ids
	calls     int64  // tool calls and their results
	sealed    sealed // reasoning that is handed back encrypted, and signatures of thoughts
	opened    sealed // the part of sealed before the last message of the user
}

// rest is the other part. It is written through [scanner.other] only.
type rest struct {
	tools   shape // the definitions of tools
	schema  shape // the schema of the answer
	forced  int64 // settings that require the call of a tool
	barred  int64 // settings that forbid it
	server  int64 // names of what the provider adds by itself: searches, stored state
	away    int64 // media that is elsewhere: its size is not known
	soundMS int64
	filmMS  int64
	pages   int64 // of documents
	office  int64 // tokens of documents of an office program
	files   int64 // tokens of files of text
	img     imageSums
}

// sealed is encrypted reasoning, in characters: all, and what is beyond [sealedHead]
// in each piece.
type sealed struct{ all, beyond int64 }

func (a sealed) less(b sealed) sealed { return sealed{a.all - b.all, a.beyond - b.beyond} }

// since makes a sum of before into the difference from it to now.
func (t *flow) since(now *flow) {
	t.text = now.text - t.text
	t.role = now.role - t.role
	t.roles = now.roles - t.roles
	t.chars = now.chars - t.chars
	t.quarters = now.quarters - t.quarters
	t.structure = now.structure - t.structure
	t.messages = now.messages - t.messages
	t.prompts = now.prompts - t.prompts
	t.names = now.names - t.names
	t.ids = now.ids - t.ids
	t.calls = now.calls - t.calls
	t.sealed = now.sealed.less(t.sealed)
	t.opened = now.opened.less(t.opened)
}

// less takes u from t, member by member.
func (t *flow) less(u *flow) {
	t.text -= u.text
	t.role -= u.role
	t.roles -= u.roles
	t.chars -= u.chars
	t.quarters -= u.quarters
	t.structure -= u.structure
	t.messages -= u.messages
	t.prompts -= u.prompts
	t.names -= u.names
	t.ids -= u.ids
	t.calls -= u.calls
	t.sealed = t.sealed.less(u.sealed)
	t.opened = t.opened.less(u.opened)
}

// less takes u from t, member by member.
func (t *rest) less(u *rest) {
	t.tools.less(&u.tools)
	t.schema.less(&u.schema)
	t.forced -= u.forced
	t.barred -= u.barred
	t.server -= u.server
	t.away -= u.away
	t.soundMS -= u.soundMS
	t.filmMS -= u.filmMS
	t.pages -= u.pages
	t.office -= u.office
	t.files -= u.files
	t.img.less(&u.img)
}

// A frame is an open object or array.
type frame struct {
	place   place // how its elements, or the names in it, are read
	value   place // objects: how the value of the current name is read
	arg     uint8 // objects: slot or kind of media of the current name
	hint    mediaKind
	members uint8 // index of its first member
	current uint8 // 1 + the slot of the member whose value is being read; 0: none. In an exact pass only
	object  bool
	key     bool // objects: the next string is a name
	full    bool // not all names are remembered
	ids     bool // arrays: a token id has been seen
}

// A member is a name in an open object, with what its value adds to the totals. While the
// value is read, these are the totals before it.
type member struct {
	start, end int // of the name, in the body
	until      int // the beginning of the next name that was remembered
	plain      bool
	more       bool // the value adds to rest
	none       bool // it adds nothing
	writes     int  // s.writes, before the value
	flow       flow
	rest       rest // as flow, if more is set
}

// counting says how many milli-tokens and characters the inside of a JSON string,
// or a piece of JSON, stands for. One pass over it gives both. It is never asked
// about nothing.
type counting func(raw []byte) (milli, chars int64)

// A scanner makes one pass over a body, two if a name comes twice in an object. It
// keeps its own stack, so depth cannot overflow anything, and never steps back
// inside a pass, so the work is linear in the bytes.
type scanner struct {
	body      []byte
	count     counting
	t         totals
	part      part
	set       [2][slots]int64 // at the top, and inside config objects
	model     []byte          // raw
	reasoning []byte          // raw: the last text of reasoning
	saw       uint16
	depth     int // index of the innermost frame
	frames    [maxFrames + 1]frame
	n         int                // members in use
	marks     [maxMembers]uint32 // of the names of members, side by side: see mark
	slots     [maxMembers]uint8  // where in members each of them is
	effort    int
	writes    int // how often the totals may have been written
	unsaved   int // members whose values are being read, and before which rest was what it is
	members   [maxMembers]member
	exact     bool // the totals before each name are kept, to take it away again
	twice     bool // a name came twice, and they were not
	broken    bool // not JSON, cut short, or more than one value
	ended     bool // the body's own object has been closed

	payloadBytes int64 // of the body, wherever they stand
	strays       int64 // payloads under names at the top that are in no table

	last modelName // of an earlier body
}

// A modelName is a model's name and what the tables say of it. A program uses few models, so a
// scanner keeps the last it made, to make no string of the same bytes again.
type modelName struct {
	name, family string
	tokens       Family
	maker        *maker
}

// A scanner is 30 kB, too much to clear and to put on the stack for each call.
var scanners = sync.Pool{New: func() any { return new(scanner) }}

func newScanner(body []byte) *scanner {
	s := scanners.Get().(*scanner)
	s.body = body
	return s
}

// begin forgets what an earlier pass has found.
func (s *scanner) begin(exact bool) {
	s.t, s.part, s.set = totals{}, part{}, [2][slots]int64{}
	s.model, s.reasoning, s.saw, s.depth, s.n, s.effort, s.unsaved = nil, nil, 0, 0, 0, 0, 0
	s.exact, s.twice, s.broken, s.ended = exact, false, false, false
	for i := range s.slots {
		s.slots[i] = uint8(i)
	}
	s.payloadBytes, s.strays = 0, 0
	s.frames[0] = frame{place: asRoot}
}

// release gives the scanner back, without the caller's bytes.
func (s *scanner) release() {
	s.body, s.count, s.model, s.reasoning = nil, nil, nil, nil
	scanners.Put(s)
}

// run reads the body with a count of its texts. Keeping the totals before each name
// is expensive, and names that come twice are rare. So a second pass does it, and
// only after the first pass has met such a name.
func (s *scanner) run(count counting) {
	s.count = count
	s.begin(false)
	s.pass()
	if s.twice {
		s.begin(true)
		s.pass()
	}
}

func (s *scanner) pass() {
	b := s.body
	i := 0
	if bytes.HasPrefix(b, []byte("\ufeff")) { // a parser may pass over it (RFC 8259 section 8.1)
		i = len("\ufeff")
	}
	for i < len(b) {
		f := &s.frames[s.depth]
		switch b[i] {
		case ' ', '\t', '\n', '\r', ':':
			i++
		case ',':
			f.key = f.object
			i++
		case '"':
			start := i + 1
			end := stringEnd(b, start)
			if end < 0 { // cut short: the rest belongs to it
				s.broken = true
				end = len(b)
			}
			i = end + 1
			if f.key {
				f.key = false
				s.name(f, start, end)
				if s.twice {
					return
				}
				if i < len(b) && b[i] == ':' { // as it nearly always is
					i++
				}
			} else {
				s.stringValue(f, b[start:end], start)
			}
		case '{', '[':
			i = s.open(f, i)
		case '}', ']':
			s.close(b[i] == '}')
			i++
		default:
			start := i
			for i++; i < len(b) && !delimiter[b[i]]; i++ {
			}
			s.bareValue(f, b[start:i])
		}
	}
	if s.depth != 0 || !s.ended {
		s.broken = true
	}
	s.settlePart()
}

// delimiter marks the bytes that end a number or a literal.
var delimiter = [256]bool{
	' ': true, '\t': true, '\n': true, '\r': true, ',': true, ':': true,
	'"': true, '{': true, '}': true, '[': true, ']': true,
}

// how says how the value that comes next in f is read.
func (f *frame) how() (p place, hint mediaKind) {
	if !f.object {
		return f.place, f.hint
	}
	if f.value == asMedia && f.arg != 0 {
		return asMedia, mediaKind(f.arg)
	}
	return f.value, f.hint
}

// open enters the object or array at b[i] and returns the offset to go on from.
func (s *scanner) open(f *frame, i int) int {
	object := s.body[i] == '{'
	s.writes++
	p, hint := f.how()
	if s.depth == 0 && (s.ended || !object) {
		s.broken = true // an array, or a second value
		s.ended = true
		return s.subtree(i, asUnknown)
	}
	switch p {
	case asData, asReasoning:
		p = asLoose
	case asReference:
		p = asMedia
	case asItems, asInput:
		if object {
			s.t.messages++
			p = asContent
		}
	case asArguments, asStructure:
		return s.subtree(i, asStructure)
	case asTools:
		if object && choosesOnly(s.body[i:]) {
			return s.subtree(i, asSkipped)
		}
		return s.definition(i, &s.other().tools)
	case asSchema:
		return s.definition(i, &s.other().schema)
	case asUnknown:
		return s.subtree(i, asUnknown)
	case asStored:
		if !empty(s.body[i:]) {
			s.other().server++
		}
		return s.subtree(i, asSkipped)
	case asIDs:
		if object {
			return s.subtree(i, asSkipped)
		}
	case asRoot, asContent, asLoose, asMedia, asConfig, asThinking, asChoice, asFormat, asEmbedding:
	default:
		return s.subtree(i, asSkipped)
	}
	if s.depth == maxFrames {
		return s.subtree(i, asStructure)
	}
	s.depth++
	s.frames[s.depth] = frame{place: p, hint: hint, members: uint8(s.n), object: object, key: object}
	if object && (p == asContent || p == asLoose) {
		s.settlePart()
		s.part = part{depth: int32(s.depth)}
	}
	return i + 1
}

// close leaves the innermost object or array.
func (s *scanner) close(object bool) {
	if s.depth == 0 {
		s.broken = true
		return
	}
	f := &s.frames[s.depth]
	if f.object != object {
		s.broken = true
	}
	s.reasoning = nil
	if s.part.depth == int32(s.depth) {
		s.settlePart()
		s.part = part{}
	}
	s.n = int(f.members)
	if f.current > 0 && !s.members[f.current-1].more {
		s.unsaved--
	}
	s.depth--
	if s.depth == 0 {
		s.ended = true
	}
}

// name reads a name of the object f.
func (s *scanner) name(f *frame, start, end int) {
	key := s.body[start:end]
	s.lookUp(f, key)
	plain := true // as all names in the tables are
	switch f.value {
	case asLoose, asUnknown, asSkipped:
		if plain = isPlain(key); !plain {
			var buf [maxKey]byte
			if key := plainKey(buf[:0], key); key != nil {
				s.lookUp(f, key)
			}
		}
	}
	again := f.adds() && s.remember(f, start, end, plain)
	tier := 0
	if f.place == asConfig {
		tier = 1
	}
	// The last of two equal names wins, with any value.
	switch f.value {
	case asContent, asSkipped:
		if f.arg == callMark {
			s.writes++
			s.t.calls++
		}
	case asSetting:
		s.set[tier][f.arg] = 0
	case asThinking:
		s.set[0][slotBudget] = 0
	case asConfig:
		if again {
			s.set[1] = [slots]int64{}
		}
	case asModel:
		s.model = nil
	}
}

// adds reports whether the value of the current name may add to the totals. A value that
// does not need not be taken away when its name comes again.
func (f *frame) adds() bool {
	switch f.value {
	case asSkipped:
		return f.arg == callMark
	case asUnknown, asSetting, asModel, asDetail, asMIME:
		return false
	}
	return true
}

// mark is the same for names of the same bytes, and for all that are not plain: those may
// be equal to any other.
func mark(raw []byte, plain bool) uint32 {
	if !plain {
		return 0
	}
	if len(raw) == 0 {
		return 1 // as no name of up to 255 bytes has
	}
	n := uint32(len(raw))
	return n<<24 | uint32(raw[0])<<16 | uint32(raw[n/2])<<8 | uint32(raw[n-1])
}

// lookUp says in f how the value of the name key is read.
func (s *scanner) lookUp(f *frame, key []byte) {
	f.value, f.arg = asSkipped, 0
	switch f.place {
	case asRoot:
		var saw uint16
		f.value, f.arg, saw = rootKey(key)
		s.saw |= saw
	case asContent, asLoose:
		f.value, f.arg = partKey(key)
	case asMedia:
		f.value, f.arg = mediaKey(key)
	case asConfig:
		f.value, f.arg = configKey(key)
	case asThinking:
		f.value, f.arg = thinkingKey(key)
	case asChoice:
		f.value, f.arg = choiceKey(key)
	case asFormat:
		f.value, f.arg = formatKey(key)
	case asEmbedding:
		f.value, f.arg = embeddingKey(key)
	}
}

// maxKey is more than the longest name in the tables.
const maxKey = 40

// plainKey appends to dst the name that raw stands for; it returns nothing if
// that is in none of the tables.
func plainKey(dst, raw []byte) []byte {
	for len(raw) > 0 {
		r, width := nextRune(raw)
		if r >= utf8.RuneSelf || len(dst) == cap(dst) {
			return nil
		}
		dst = append(dst, byte(r))
		raw = raw[width:]
	}
	return dst
}

// other is the part of the totals that few members add to, to be written. A copy is kept
// first, for the members whose values are being read.
func (s *scanner) other() *rest {
	s.writes++
	if s.unsaved > 0 {
		s.save()
	}
	return &s.t.rest
}

func (s *scanner) save() {
	for d := s.depth; d >= 0 && s.unsaved > 0; d-- {
		if c := s.frames[d].current; c > 0 && !s.members[c-1].more {
			m := &s.members[c-1]
			m.rest, m.more = s.t.rest, true
			s.unsaved--
		}
	}
}

// remember notes a name of the object f. If the name has come before, its first
// contribution is subtracted: the last one counts, as in encoding/json. The work is the
// same for every name, but for the search of it.
func (s *scanner) remember(f *frame, start, end int, plain bool) (again bool) {
	if f.full || s.effort > maxEffort {
		return false
	}
	raw := s.body[start:end]
	own := mark(raw, plain)
	i := s.find(f, raw, own, plain)
	again = i < s.n
	if again && !s.exact {
		s.twice = true
		return true
	}
	switch {
	case again && f.current == s.slots[i]+1:
		s.effort += s.n - int(f.members)
		s.marks[i] = own
		s.readAgain(f, start, end, plain)
		return true
	case again:
		s.effort += s.n - int(f.members)
		s.takeAway(f, i, start)
		s.moveLast(i)
		s.n--
	case s.exact:
		s.endMember(f, start)
	}
	if s.n == maxMembers {
		f.full = true
		return again
	}
	s.marks[s.n] = own
	slot := s.slots[s.n]
	s.n++
	m := &s.members[slot]
	m.start, m.end, m.plain = start, end, plain
	if s.exact {
		m.flow, m.more, m.writes = s.t.flow, false, s.writes
		f.current = slot + 1
		s.unsaved++
	}
	return again
}

// readAgain is for the name of the member that is being read, which comes again from start
// to end: all is as before it.
func (s *scanner) readAgain(f *frame, start, end int, plain bool) {
	m := &s.members[f.current-1]
	if m.writes != s.writes {
		s.t.flow = m.flow
		m.writes = s.writes
	}
	if m.more {
		s.other() // keeps what it was for the members around this one
		s.t.rest, m.more = m.rest, false
		s.unsaved++
	}
	s.dropPart(m.start, start)
	m.start, m.end, m.plain = start, end, plain
}

// takeAway subtracts what the member i of f has added, which comes again at start.
func (s *scanner) takeAway(f *frame, i, start int) {
	s.endMember(f, start)
	m := &s.members[s.slots[i]]
	if !m.none {
		s.t.flow.less(&m.flow)
	}
	if m.more {
		s.other().less(&m.rest)
	}
	s.dropPart(m.start, m.until)
}

// dropPart forgets the media of the current part if they stand between two offsets.
func (s *scanner) dropPart(from, until int) {
	if s.part.open && from < s.part.start && s.part.start < until {
		s.part.clear()
	}
}

// moveLast moves the member i behind all others.
func (s *scanner) moveLast(i int) {
	slot := s.slots[i]
	copy(s.slots[i:s.n], s.slots[i+1:s.n])
	copy(s.marks[i:s.n], s.marks[i+1:s.n])
	s.slots[s.n-1] = slot
}

// find returns where among the members of f the name raw is, or else s.n.
func (s *scanner) find(f *frame, raw []byte, own uint32, plain bool) int {
	for i, other := range s.marks[f.members:s.n] {
		if other != own && other != 0 && own != 0 {
			continue
		}
		i += int(f.members)
		m := &s.members[s.slots[i]]
		name := s.body[m.start:m.end]
		if bytes.Equal(name, raw) {
			return i
		}
		if m.plain && plain {
			continue
		}
		same, compared := sameKey(name, raw)
		s.effort += compared
		if same {
			return i
		}
	}
	return s.n
}

// endMember ends the value that is being read in f, where the next name begins. The
// difference of the totals to those before is the value's contribution.
func (s *scanner) endMember(f *frame, until int) {
	if f.current == 0 {
		return
	}
	m := &s.members[f.current-1]
	f.current = 0
	m.until = until
	if m.none = m.writes == s.writes; !m.none {
		m.flow.since(&s.t.flow)
	}
	if !m.more {
		s.unsaved--
		return
	}
	rest := m.rest
	m.rest = s.t.rest
	m.rest.less(&rest)
}

// stringValue reads a string that is a value or an element of f.
func (s *scanner) stringValue(f *frame, raw []byte, at int) {
	s.writes++
	p, hint := f.how()
	switch p {
	case asSkipped, asConfig, asThinking, asFormat, asEmbedding, asIDs:
	case asRoot:
		s.broken = true // a body that is a bare string
	case asItems, asInput:
		s.t.messages++
		s.t.prompts++
		s.textOrURL(raw, at, hint)
	case asContent, asArguments:
		s.textOrURL(raw, at, hint)
	case asLoose:
		if looksBase64(raw) {
			s.payload(raw, raw, at, mediaUnknown, hint)
			return
		}
		s.textOrURL(raw, at, hint)
	case asSchema:
		if !means(raw, "json") {
			milli := s.textOrURL(raw, at, hint)
			s.other().schema.milli += milli
		}
	case asTools, asStructure:
		s.textOrURL(raw, at, hint)
	case asReasoning:
		if !s.again(raw) {
			s.textOrURL(raw, at, hint)
		}
	case asName:
		s.t.names++
		s.textOrURL(raw, at, hint)
	case asAudioID:
		if hint == mediaAudio {
			s.reference(at, hint)
		}
	case asMedia, asData:
		if k, body, ok := dataURL(raw); ok {
			s.payload(raw, body, at, k, hint)
		} else if p == asMedia && hint != mediaUnknown && remote(raw) {
			s.reference(at, hint)
		} else if isPayload(raw) {
			s.payload(raw, raw, at, mediaUnknown, hint)
		} else {
			s.text(raw)
		}
	case asReference:
		if k, body, ok := dataURL(raw); ok {
			s.payload(raw, body, at, k, hint)
		} else if len(raw) > 0 {
			s.reference(at, hint)
		}
	default:
		s.markValue(f, p, raw)
	}
}

// markValue reads a string that is no text of the prompt but says something of it.
func (s *scanner) markValue(f *frame, p place, raw []byte) {
	switch p {
	case asStored:
		if len(raw) > 0 {
			s.other().server++
		}
	case asChoice:
		if means(raw, "any") || means(raw, "tool") || means(raw, "required") {
			s.other().forced++
		} else if means(raw, "none") {
			s.other().barred++
		}
	case asSealed:
		s.t.sealed.all += int64(len(raw))
		s.t.sealed.beyond += max(int64(len(raw))-sealedHead, 0)
	case asRole:
		if len(raw) > 0 {
			milli, _ := s.count(raw)
			s.t.role = addSat(s.t.role, max(milli, 0))
			s.t.roles++
		}
		if means(raw, "user") {
			s.t.opened = s.t.sealed
		}
	case asPartType:
		s.part.name(raw)
		if isCall(raw) {
			s.t.calls++
		}
	case asDetail:
		s.part.low = means(raw, "low")
	case asMIME:
		s.part.declared = mimeKind(raw)
		s.part.pcm = bytes.HasPrefix(raw, []byte("pcm"))
	case asSetting:
		s.setting(f, raw)
	case asModel:
		s.model = raw
	case asUnknown:
		if _, _, ok := dataURL(raw); ok || looksBase64(raw) {
			s.payloadBytes += int64(len(raw))
			s.strays++
		}
	}
}

// bareValue reads a number, true, false or null.
func (s *scanner) bareValue(f *frame, raw []byte) {
	switch c := raw[0]; {
	case c == '-' || '0' <= c && c <= '9':
	case string(raw) == "true", string(raw) == "false", string(raw) == "null":
	default:
		s.broken = true
	}
	p, _ := f.how()
	switch p {
	case asRoot:
		s.broken = true
	case asSetting:
		s.setting(f, raw)
	case asInput, asIDs:
		if !f.object && '0' <= raw[0] && raw[0] <= '9' {
			s.writes++
			s.t.ids++
			if !f.ids && p == asInput {
				f.ids = true
				s.t.messages++
				s.t.prompts++
			}
		}
	}
}

// setting reads the value of a setting, a string or not: some servers take both.
func (s *scanner) setting(f *frame, raw []byte) {
	n, ok := integer(raw)
	if f.arg == slotStream && bytes.EqualFold(raw, []byte("true")) {
		n, ok = 1, true
	}
	if !ok {
		return
	}
	tier := 0
	if f.place == asConfig {
		tier = 1
	}
	s.set[tier][f.arg] = n
}

// subtree passes over the object or array at b[i] whose inside needs no names.
// As structure it is counted, in stretches that leave out payloads and the
// indentation after line breaks.
func (s *scanner) subtree(i int, p place) int {
	b := s.body
	depth, from := 0, i
	for i < len(b) {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				i++
				s.stretch(b[from:i], p)
				return i
			}
		case '"':
			start := i + 1
			end := stringEnd(b, start)
			if end < 0 {
				s.broken = true
				end = len(b)
			}
			if p != asSkipped && end-start >= minEmbedded {
				from = s.leaveOut(from, start, end, p)
			}
			i = end
		case '\n':
			s.stretch(b[from:i], p)
			i = lastBlank(b, i)
			from = i + 1
		}
		i++
	}
	s.broken = true
	s.stretch(b[min(from, len(b)):], p)
	return len(b)
}

// minEmbedded is the length below which no string in a structure is a payload.
const minEmbedded = len("data:,;base64")

// leaveOut takes the string from start to end out of the stretch that begins at from,
// if the string is a payload. It returns where the stretch goes on.
func (s *scanner) leaveOut(from, start, end int, p place) int {
	raw := s.body[start:end]
	k, body, ok := s.embedded(raw)
	if !ok {
		return from
	}
	s.stretch(s.body[from:start-1], p)
	s.stray(raw, body, k, p)
	return min(end+1, len(s.body))
}

// lastBlank returns the index of the last blank of those that follow one another
// from b[i] on, which is one.
func lastBlank(b []byte, i int) int {
	for i+1 < len(b) && (b[i+1] == ' ' || b[i+1] == '\t' || b[i+1] == '\n' || b[i+1] == '\r') {
		i++
	}
	return i
}

// embedded finds a payload in a string that has no name to tell.
func (s *scanner) embedded(raw []byte) (k mediaKind, body []byte, ok bool) {
	if k, body, ok = dataURL(raw); ok {
		return k, body, true
	}
	return mediaUnknown, raw, looksBase64(raw)
}

// stray takes a payload that stands outside any part.
func (s *scanner) stray(raw, body []byte, k mediaKind, p place) {
	if p == asUnknown {
		s.payloadBytes += int64(len(raw))
		s.strays++
		return
	}
	outer := s.part
	s.part = part{}
	s.payload(raw, body, 0, k, mediaUnknown)
	s.part = outer
}

// stretch counts a piece of structure and returns its milli-tokens.
func (s *scanner) stretch(raw []byte, p place) int64 {
	if p != asStructure || len(raw) == 0 {
		return 0
	}
	milli, chars := s.tokens(raw)
	s.t.chars += chars
	s.t.structure += chars
	return milli
}

// text counts a text of the prompt and returns its milli-tokens.
func (s *scanner) text(raw []byte) int64 {
	if len(raw) == 0 {
		return 0
	}
	milli, chars := s.tokens(raw)
	s.t.chars += chars
	s.t.quarters += ceilDiv(chars, 4)
	return milli
}

// tokens counts the milli-tokens of a text and its characters.
func (s *scanner) tokens(raw []byte) (milli, chars int64) {
	milli, chars = s.count(raw)
	milli = max(milli, 0)
	s.t.text = addSat(s.t.text, milli)
	return milli, chars
}

// again reports whether a text of reasoning is the one before it under another
// name: some clients send it twice, and models read it once.
func (s *scanner) again(raw []byte) bool {
	if len(raw) > 0 && bytes.Equal(raw, s.reasoning) {
		return true
	}
	s.reasoning = raw
	return false
}

// textOrURL counts a string, unless the whole of it is a data URL.
func (s *scanner) textOrURL(raw []byte, at int, hint mediaKind) (milli int64) {
	if k, body, ok := dataURL(raw); ok {
		s.payload(raw, body, at, k, hint)
		return 0
	}
	return s.text(raw)
}

// payload takes base64 into the current part. raw is the string, body the base64
// in it.
func (s *scanner) payload(raw, body []byte, at int, k, hint mediaKind) {
	s.beginMedia(hint)
	s.part.inURL = k
	s.part.take(body, at)
	s.payloadBytes += int64(len(raw))
	s.finishMedia()
}

// reference takes media that is elsewhere into the current part.
func (s *scanner) reference(at int, hint mediaKind) {
	s.beginMedia(hint)
	s.part.open, s.part.remote, s.part.start = true, true, at
	s.finishMedia()
}

func (s *scanner) beginMedia(hint mediaKind) {
	s.settlePart() // a part with two payloads: the first ends here
	s.part.clear()
	if hint != mediaUnknown {
		s.part.hint = hint
	}
}

func (s *scanner) finishMedia() {
	if s.part.depth == 0 {
		s.settlePart()
		s.part = part{}
	}
}

// settlePart adds the media of the current part to the totals.
func (s *scanner) settlePart() {
	p := &s.part
	if !p.open {
		return
	}
	p.open = false
	if p.dropped {
		return
	}
	if p.remote {
		s.other().away++
	}
	switch k := p.kind(); k {
	case mediaImage:
		s.other().img.add(p.w, p.h, p.low)
	case mediaAudio:
		s.other().soundMS += p.milliseconds(k)
	case mediaVideo:
		s.other().filmMS += p.milliseconds(k)
	case mediaText:
		if p.remote {
			s.other().pages++
		} else {
			s.other().files += textFileTokens(p.bytes)
		}
	case mediaOffice:
		s.other().office += officeTokens(p.bytes)
	default:
		s.other().pages += p.pageCount()
	}
}

// isCall reports whether a part or an item of this type is a call of a tool or its
// result.
func isCall(raw []byte) bool {
	switch string(raw) {
	case "tool_use", "tool_result", "function_call", "function_call_output", "function_result":
		return true
	}
	return false
}

// means reports whether raw, the inside of a JSON string, stands for a word of
// ASCII, escaped or not.
func means(raw []byte, word string) bool {
	for i := 0; i < len(word); i++ {
		if len(raw) == 0 {
			return false
		}
		r, width := nextRune(raw)
		if r != rune(word[i]) {
			return false
		}
		raw = raw[width:]
	}
	return len(raw) == 0
}

// name reads the type of a part.
func (p *part) name(raw []byte) {
	has := func(word string) bool { return bytes.Contains(raw, []byte(word)) }
	switch {
	case len(raw) > 64:
	case has("redacted"): // thinking that the model is not shown again
		p.dropped = true
	case has("image"), has("screenshot"):
		p.named = mediaImage
	case has("audio"):
		p.named = mediaAudio
	case has("video"):
		p.named = mediaVideo
	case has("file"), has("document"):
		p.named = mediaFile
	}
}

// remote reports whether a string is a web or store address.
func remote(raw []byte) bool {
	i := bytes.IndexByte(raw[:min(len(raw), 16)], ':')
	return i > 0 && bytes.HasPrefix(raw[i:], []byte("://")) || i > 0 && bytes.HasPrefix(raw[i:], []byte(`:\/\/`))
}
