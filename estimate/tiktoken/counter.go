package tiktoken

import (
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// Options configure a Counter. The zero value is ready to use.
type Options struct {
	// Models names the model behind a name that is not a model's own, such as an
	// Azure deployment: {"prod-chat": "gpt-4o"}. A name found here is looked up
	// exactly and once; what it stands for is not looked up here again. The map
	// is copied.
	Models map[string]string

	// Default is the encoding for models that are not known. The zero value is
	// O200kBase, the encoding of every OpenAI model since GPT-4o. A value that is
	// no encoding counts as O200kBase.
	Default Encoding
}

// A Counter counts tokens exactly.
//
// It is safe for concurrent use. Counters share the vocabularies, so having
// several costs nothing.
type Counter struct {
	models       map[string]string
	def          Encoding
	vocabularies *[encodings]func() (*vocabulary, error)
	fallbacks    atomic.Int64
}

// vocabularies builds each vocabulary once in a process, when it is first asked
// for. Callers that come meanwhile wait for that one build.
var vocabularies = newVocabularies(assets.Assets)

func newVocabularies(files fs.FS) *[encodings]func() (*vocabulary, error) {
	var all [encodings]func() (*vocabulary, error)
	for e := range encodings {
		all[e] = sync.OnceValues(func() (*vocabulary, error) {
			v, err := readVocabulary(files, e.String()+".tiktoken")
			if err != nil {
				return nil, err
			}
			v.split, v.classes = encodingData[e].split, classes()
			return v, nil
		})
	}
	return &all
}

// New returns a Counter. Nothing is loaded yet.
func New(o Options) *Counter {
	c := &Counter{models: make(map[string]string, len(o.Models)), def: o.Default, vocabularies: vocabularies}
	for k, m := range o.Models {
		c.models[k] = m
	}
	if c.def >= encodings {
		c.def = O200kBase
	}
	return c
}

// Encoding returns the encoding of a model, and whether the model is known. For
// one that is not it returns [Options].Default.
//
// Known are the names OpenAI publishes, with and without a date, and the
// fine-tuned ("ft:...") and Azure ("gpt-35-turbo") forms of them. A vendor before
// a slash, as routers write it, is ignored.
func (c *Counter) Encoding(model string) (e Encoding, known bool) {
	if e, ok := modelEncoding(c.resolve(model)); ok {
		return e, true
	}
	return c.def, false
}

// resolve returns the model a configured name stands for.
func (c *Counter) resolve(model string) string {
	if m, ok := c.models[model]; ok {
		return m
	}
	return model
}

// Load builds the vocabulary of a model now rather than at the first count. The
// error says why there is none; counting works all the same, see [Counter.Count].
func (c *Counter) Load(model string) error {
	e, _ := c.Encoding(model)
	if _, err := c.vocabularies[e](); err != nil {
		return fmt.Errorf("tiktoken: %s is counted as a quarter of its bytes: %w", e, err)
	}
	return nil
}

// Fallbacks returns how many counts so far were not known to be exact: the model
// was unknown and counted with [Options].Default, or there was no vocabulary and
// a quarter of the bytes was taken.
func (c *Counter) Fallbacks() int64 { return c.fallbacks.Load() }

// Count returns the number of tokens of text as plain text: what looks like a
// special token is spelled out like any other text. Bytes that are not UTF-8
// count as U+FFFD each, as in the reference.
//
// It always returns a count. Should the vocabulary be missing from the build, it
// returns a quarter of the bytes, rounded up, and adds one to
// [Counter.Fallbacks].
//
// Text is not kept. Time is linear in its length. Beyond a vocabulary that has to
// be built first, nothing is allocated once the scratch memory is warm. That
// memory is about 300 kB, plus three times the longest piece that is not valid
// UTF-8.
func (c *Counter) Count(model string, text []byte) int64 {
	v := c.vocabulary(model)
	if v == nil {
		return quarter(int64(len(text)))
	}
	s := scratches.Get().(*scratch)
	n := v.countText(s, text)
	s.release()
	return n
}

// CountString is Count of a string, without copying it.
func (c *Counter) CountString(model, text string) int64 {
	return c.Count(model, unsafe.Slice(unsafe.StringData(text), len(text)))
}

// CountJSON returns the number of tokens of the text in a JSON string. Raw is what
// stands between the quotes, escapes and all.
//
// Escapes are read as encoding/json reads them; half a surrogate pair is U+FFFD.
// A backslash that begins no valid escape, which no valid JSON has, counts as
// itself.
//
// The text is decoded in parts of at most 64 kB, or as much as the longest piece
// needs, cut where the encoding cuts anyway.
func (c *Counter) CountJSON(model string, raw []byte) int64 {
	v := c.vocabulary(model)
	if v == nil {
		return quarter(int64(len(raw)))
	}
	s := scratches.Get().(*scratch)
	n := v.countJSON(s, raw, jsonPart)
	s.release()
	return n
}

// vocabulary returns the vocabulary for a model, nil if there is none, and takes
// account of fallbacks.
func (c *Counter) vocabulary(model string) *vocabulary {
	e, known := c.Encoding(model)
	v, err := c.vocabularies[e]()
	if err != nil || !known {
		c.fallbacks.Add(1)
	}
	return v
}

// quarter is the rule of thumb of one token for four characters of English
// (OpenAI, "What are tokens and how to count them?"), taken for bytes so that
// other scripts come out high rather than low.
func quarter(bytes int64) int64 { return (bytes + 3) / 4 }

// countText counts a text, with decoded bytes only where it is not valid UTF-8.
func (v *vocabulary) countText(s *scratch, text []byte) (n int64) {
	valid := utf8.Valid(text)
	for i := 0; i < len(text); {
		e := v.split(v.classes, text, i)
		if piece := text[i:e]; valid || utf8.Valid(piece) {
			n += v.count(s, piece)
		} else {
			n += v.countInvalid(s, piece)
		}
		i = e
	}
	return n
}

// scratches holds the memory of counts that are done.
var scratches = sync.Pool{New: func() any { return new(scratch) }}

// keep is the most bytes of one kind that go back to the pool. A single odd
// request must not be remembered for the life of the process.
const keep = 1 << 20

func (s *scratch) release() {
	if cap(s.text) > keep {
		s.text = nil
	}
	if cap(s.invalid) > keep {
		s.invalid = nil
	}
	if cap(s.heap)*8 > keep {
		s.mergeState = mergeState{}
	}
	scratches.Put(s)
}
