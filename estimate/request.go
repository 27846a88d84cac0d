package estimate

import "bytes"

// A Request is what a body says about its cost. The zero Request says nothing.
type Request struct {
	// Kind is the interface that the body is for. It is "chat", "responses",
	// "completions", "embeddings", "messages" (Anthropic), "gemini" or
	// "converse" (Bedrock). Only the path can show "moderations", "rerank",
	// "images", "audio", "transcription" and "count". Two more values are
	// "multipart" and "unknown".
	Kind string

	// Model is the model as the body, or else the path, names it; "" is not known.
	Model string

	// Understood is false if the body is not one whole JSON object, or has no prompt
	// under any known name. Such a body is priced by its size.
	Understood bool

	// Stream is true if the answer was asked for as a stream.
	Stream bool

	// Traits says what the prompt has besides messages of text.
	Traits Traits

	// Input is the prompt in tokens, as it is expected to be charged: text, the
	// form of the messages, tools, schemas and what the maker adds to them, token
	// ids and media.
	Input int64

	// Guess is the part of Input that the request does not state: what the maker
	// adds, media that is elsewhere or whose length is not known, a body that was
	// not understood. What remains is text, token ids and images that were counted.
	// Only that may be refused as too large; a guess may not.
	Guess int64

	// Text is the part of Input that was counted in text, in milli-tokens.
	Text int64

	// Chars is the number of characters of text. Quarters is the sum, over the texts,
	// of a quarter of their characters rounded up: some providers estimate so.
	Chars, Quarters int64

	// Messages counts the messages, or the texts of a prompt or input.
	Messages int64

	// TokenIDs counts prompts given as token ids: one token an id.
	TokenIDs int64

	// Images counts images; ImageTokens is their part of Input in tokens, and
	// MediaTokens that of sound, film and documents.
	Images, ImageTokens, MediaTokens int64

	// OutputCap is the most tokens that one choice may have, the largest of all
	// names for it; 0 is not stated.
	OutputCap int64

	// Choices is how many answers are made: n or best_of, times the number of
	// prompts for completions. At least 1.
	Choices int64

	// Thinking is the budget for thinking in tokens, which lies inside the output
	// cap; 0 is not stated.
	Thinking int64

	// Size is the size of the body in bytes; -1 is not known.
	Size int64
}

// A Counter counts the tokens of text in its own way: *tiktoken.Counter of
// estimate/tiktoken is one. The model is "" if neither body nor path names one. raw
// is the inside of a JSON string, escapes and all (AppendText makes plain text of
// it), or a piece of JSON; it must not be kept. A negative count is 0. Inspect calls
// it from the goroutine that it runs in.
type Counter interface {
	CountJSON(model string, raw []byte) int64
}

// Traits are kinds of content whose price depends on the maker of the model.
type Traits uint8

const (
	WithTools  Traits = 1 << iota // definitions of tools, calls, or results
	WithSchema                    // a schema of the answer
	WithMedia                     // images, sound, film or documents

	// Unpredictable is a prompt that the provider adds to by itself: tools that run
	// there, a stored conversation, cached content. Nothing is learned from it.
	Unpredictable
)

// Options say what the body itself does not. The zero Options are good.
type Options struct {
	// Path is the path of the request's URL, such as "/v1/chat/completions". Some
	// interfaces name the model, the kind and streaming only there.
	Path string

	// Counter counts text. nil is the fast count, with the weights of the model's
	// family, corrected for makers whose tokenizer is not published. A Counter costs a
	// second pass over the body, because the model may stand behind the prompt. So does
	// the fast count if the model stands neither near an end of the body nor in the path.
	Counter Counter
}

// maxModel is the longest name that is taken for a model's, in bytes as they
// stand in the body.
const maxModel = 512

// Inspect reads a JSON body. It never fails: see Request.Understood. It neither changes
// the body nor keeps a part of it, and copies the model's name only. Its work is linear
// in the size of the body: one pass, or two where Options.Counter says so, and each of
// them again if an object has a name twice.
func Inspect(body []byte, o Options) Request {
	s := newScanner(body)
	defer s.release()
	if o.Counter == nil {
		f := s.likelyFamily(o.Path)
		s.run(fastCounts[f])
		if m := s.modelName(o.Path); m.tokens != f {
			s.run(fastCounts[m.tokens])
		}
		return s.request(o.Path, true)
	}
	s.run(countNothing)
	model := s.modelName(o.Path).name
	s.run(func(raw []byte) (milli, chars int64) {
		return mulSat(1000, max(o.Counter.CountJSON(model, raw), 0)), characters(raw)
	})
	return s.request(o.Path, false)
}

// fastCounts are the fast counts of one text of a prompt, by family. A role or a
// single letter weighs less than a token by its characters, but no text costs less
// than one.
var fastCounts = func() (c [families]counting) {
	for f := range families {
		c[f] = func(raw []byte) (milli, chars int64) {
			milli, chars = f.countJSON(raw)
			return max(milli, 1000), chars
		}
	}
	return c
}()

// countNothing is for a pass that only looks for the model.
func countNothing([]byte) (milli, chars int64) { return 0, 0 }

// inspect makes a Request with a count of one's own.
func inspect(body []byte, path string, count counting) Request {
	s := newScanner(body)
	defer s.release()
	s.run(count)
	return s.request(path, true)
}

// likelyFamily looks for the model where it usually stands: in the path, or at the
// beginning or end of the body. So one pass is enough. A wrong guess costs a second.
func (s *scanner) likelyFamily(path string) Family {
	if name := modelInPath(path); name != "" {
		return s.named(name).tokens
	}
	const near = 256
	for _, b := range [...][]byte{s.body[:min(len(s.body), near)], s.body[max(len(s.body)-near, 0):]} {
		i := bytes.Index(b, []byte(`"model"`))
		if i < 0 {
			continue
		}
		b = bytes.TrimLeft(b[i+len(`"model"`):], " \t\r\n:")
		if len(b) > 0 && b[0] == '"' {
			if end := stringEnd(b, 1); end > 0 && bytes.IndexByte(b[1:end], '\\') < 0 {
				if string(b[1:end]) == s.last.name {
					return s.last.tokens
				}
				return s.named(string(b[1:end])).tokens
			}
		}
	}
	return O200k
}

// modelName returns the model of the body, or else of the path.
func (s *scanner) modelName(path string) modelName {
	n := len(s.model)
	switch {
	case n == 0 || n > maxModel:
		return s.named(modelInPath(path))
	case bytes.IndexByte(s.model, '\\') < 0 && string(s.model) == s.last.name && s.last.maker != nil:
		return s.last
	}
	return s.named(string(AppendText(make([]byte, 0, 64), s.model)))
}

// named looks a name up in the tables, and keeps what it found.
func (s *scanner) named(name string) modelName {
	if name != s.last.name || s.last.maker == nil {
		f := family(name)
		s.last = modelName{name: name, family: f, tokens: familyOf(f), maker: makerOf(f)}
	}
	return s.last
}

// request makes the sums into a Request. fast is true if the text was counted by
// weights, which a maker's factor then corrects.
func (s *scanner) request(path string, fast bool) Request {
	t, m := &s.t, s.modelName(path)
	r := Request{
		Model:    m.name,
		Stream:   s.set[0][slotStream] > 0 || streamInPath(path),
		Text:     addSat(t.text, t.role),
		Chars:    t.chars,
		Quarters: t.quarters + ceilDiv(t.structure, 4),
		Messages: t.messages,
		TokenIDs: t.ids,
		Images:   t.img.images,
		Thinking: max(s.set[0][slotBudget], s.set[1][slotBudget]),
		Choices:  s.choices(),
		Size:     int64(len(s.body)),
	}
	for i := range s.set {
		for _, n := range s.set[i][slotMaxTokens:] {
			r.OutputCap = max(r.OutputCap, n)
		}
	}
	r.Kind = s.kind(path, m.family)
	if r.Kind == kindCompletions {
		r.Choices = mulSat(r.Choices, max(t.prompts, 1))
	}
	r.ImageTokens = t.img.tokens(m.family)
	r.MediaTokens = t.mediaTokens(m.family)
	r.Understood = !s.broken && r.Kind != kindUnknown && s.saw&sawPromptAny != 0
	r.Traits = s.traits()
	media := addSat(r.ImageTokens, r.MediaTokens)
	if !r.Understood {
		// The part that was read may be the whole text or only its beginning.
		// The size without the payloads stands for the rest.
		bySize := ceilDiv(r.Size-s.payloadBytes, 4)
		r.Input = max(addSat(ceilDiv(r.Text, 1000), t.ids), bySize)
		r.Quarters = max(r.Quarters, bySize)
		r.Images += s.strays
		r.ImageTokens = addSat(r.ImageTokens, mulSat(s.strays, strayTokens))
		r.Input = addSat(r.Input, addSat(r.ImageTokens, r.MediaTokens))
		r.Guess = r.Input
		return r
	}
	stated, added := t.prompt(m.maker, path, r.Kind, fast)
	if r.Thinking > 0 && isChat(r.Kind) {
		added += m.maker.thinking
	}
	r.Guess = max(added, 0)
	if added < 0 { // an old model takes off a token for each name
		stated = max(stated+added, 0)
	}
	r.Input = addSat(addSat(stated, r.Guess), media)
	switch {
	case t.away > 0:
		r.Guess = addSat(r.Guess, media)
	case r.MediaTokens > 0: // pages and lengths are guessed from sizes
		r.Guess = addSat(r.Guess, r.MediaTokens)
	}
	r.Guess = min(r.Guess, r.Input)
	return r
}

// prompt prices everything but media, in tokens: what the request states, which is
// its text and token ids, and what the maker adds to it or leaves out.
func (t *totals) prompt(m *maker, path, kind string, fast bool) (stated, added int64) {
	text, tools, schema := t.text, t.tools, t.schema
	role := int64(0)
	if m.role {
		role = t.role
	}
	if fast && m.text > 0 {
		text = mulSat(text, m.text) / 1000
		tools.milli = mulSat(tools.milli, m.text) / 1000
		schema.milli = mulSat(schema.milli, m.text) / 1000
	}
	if !isChat(kind) {
		return addSat(nearest(text), t.ids), 0
	}
	milli := m.schema.tokens(&schema) - schema.milli
	if tools.tools > 0 || tools.typed > 0 {
		milli += m.toolTokens(t, &tools, path, kind) - tools.milli
	}
	if milli < 0 { // the maker leaves out a part of what was counted
		text = max(text+milli, 0)
		milli = 0
	}
	added = nearest(addSat(text, addSat(milli, role))) - nearest(text)
	if t.messages > 0 {
		added += t.messages*m.message + t.names*m.name + t.calls*m.call
		if m.opening > 0 && opens(path) {
			added += m.opening
		}
	}
	switch {
	case m.signed > 0:
		added += mulSat(t.sealed.all, 10) / m.signed
	case kind == kindResponses:
		sealed := t.sealed.all - t.opened.all
		if m.sealedHead {
			sealed = t.sealed.beyond - t.opened.beyond
		}
		added += max(sealed, 0) * 10 / sealedBytes
	}
	return addSat(nearest(text), t.ids), added
}

// nearest rounds milli-tokens to tokens. Rounded up, a question of nine tokens was
// estimated a twentieth too high at the median.
func nearest(milli int64) int64 { return addSat(milli, 500) / 1000 }

// traits says which kinds of content a body has.
func (s *scanner) traits() (k Traits) {
	if s.t.tools.milli > 0 || s.t.calls > 0 {
		k |= WithTools
	}
	if s.t.schema.milli > 0 {
		k |= WithSchema
	}
	if s.t.img.images > 0 || s.t.pages|s.t.office|s.t.files|s.t.soundMS|s.t.filmMS != 0 {
		k |= WithMedia
	}
	if s.t.server > 0 {
		k |= Unpredictable
	}
	return k
}

// choices is the largest of the settings that multiply the output, at least 1.
func (s *scanner) choices() int64 {
	n := int64(1)
	for i := range s.set {
		for _, c := range s.set[i][slotN:slotMaxTokens] {
			n = max(n, c)
		}
	}
	return n
}

// strayTokens is the price of a payload in a body of an unknown kind. The
// payload's type is unknown, so it is priced as an image of the default size
// under the default rule.
const strayTokens = 765
