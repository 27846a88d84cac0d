package estimate

import "strings"

// A Request is what a body says about its cost. The zero Request says nothing.
type Request struct {
	// Kind is the interface that the body is for: "chat", "responses",
	// "completions", "embeddings", "messages" (Anthropic), "gemini", "converse"
	// (Bedrock), or one that only the path can tell ("moderations", "rerank",
	// "images", "audio", "count"), "multipart", or "unknown".
	Kind string

	// Model is the model as the body, or else the path, names it; "" is not known.
	Model string

	// Understood is false for what is not one whole JSON object, or has no prompt
	// under any known name. Such a body is priced by its size.
	Understood bool

	// Stream is true if the answer was asked for as a stream.
	Stream bool

	// Input is the prompt in tokens, estimated: text, the overhead of messages,
	// tools and schemas, token ids and media.
	Input int64

	// Text is the part of Input that was counted in text, in milli-tokens.
	Text int64

	// Chars is the number of characters of text, and Quarters the sum of a quarter
	// of them rounded up for each text, as some providers estimate a prompt.
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

// Options say what the body itself does not. The zero Options are good.
type Options struct {
	// Path is the path of the request's URL, such as "/v1/chat/completions". Some
	// interfaces name the model, the kind and streaming only there.
	Path string

	// Counter counts text. nil is the fast count, with the weights of the model's
	// family. There is a second pass over the body with a Counter, and for the few
	// models with other weights than most, because the model may stand behind the
	// prompt.
	Counter Counter
}

// maxModel is the longest name that is taken for a model's, in bytes as they
// stand in the body.
const maxModel = 512

// Inspect reads a JSON body. It never fails: see Request.Understood. It keeps
// neither body nor a part of it, changes nothing, copies nothing but the model's
// name, and its work is linear in the size of the body: one pass, or two where
// Options.Counter says so, and each of them again if an object has a name twice.
func Inspect(body []byte, o Options) Request {
	if o.Counter == nil {
		r, model := inspect(body, o.Path, countO200k)
		if f := FamilyOf(model); f != O200k {
			r, _ = inspect(body, o.Path, f.countPrompt)
		}
		return r
	}
	s := newScanner(body, countNothing)
	s.run()
	model := s.modelName(o.Path).name
	s.release()
	r, _ := inspect(body, o.Path, func(raw []byte) (milli, chars int64) {
		return mulSat(1000, max(o.Counter.CountJSON(model, raw), 0)), characters(raw)
	})
	return r
}

// countPrompt is the fast count of one text of a prompt. A role or a single letter
// weighs less than a token by its characters, but no text costs less than one.
func (f Family) countPrompt(raw []byte) (milli, chars int64) {
	milli, chars = f.countJSON(raw)
	return max(milli, 1000), chars
}

// countO200k is O200k.countPrompt without the allocation of a method value.
func countO200k(raw []byte) (milli, chars int64) { return O200k.countPrompt(raw) }

// countNothing is for a pass that only looks for the model.
func countNothing([]byte) (milli, chars int64) { return 0, 0 }

// inspect also returns the model's family, as [family] has it.
func inspect(body []byte, path string, count counting) (r Request, model string) {
	s := newScanner(body, count)
	s.run()
	r, model = s.request(path)
	s.release()
	return r, model
}

func (s *scanner) modelName(path string) modelName {
	n := len(s.model)
	switch {
	case n == 0 || n > maxModel:
		name := modelInPath(path)
		return modelName{name, family(name)}
	case string(s.model) == s.last.name:
		return s.last
	}
	name := string(AppendText(make([]byte, 0, 64), s.model))
	m := modelName{name, family(name)}
	if name == string(s.model) { // no escapes: the same bytes are the same name again
		s.last = m
	}
	return m
}

// overheads are the tokens that the form of a chat adds to its texts, for models
// whose name begins with prefix (OpenAI cookbook, "How to count tokens with
// tiktoken"). The longest prefix counts; other providers do not publish theirs.
var overheads = []struct {
	prefix                       string
	perMessage, perName, priming int64
}{
	{"gpt-3.5-turbo-0301", 4, -1, 3},
	{"", 3, 1, 3},
}

// request makes the sums into a Request. It also returns the model's family.
func (s *scanner) request(path string) (r Request, model string) {
	t, m := &s.t, s.modelName(path)
	model = m.family
	r = Request{
		Model:    m.name,
		Stream:   s.set[0][slotStream] > 0 || streamInPath(path),
		Text:     t.text,
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
	r.Kind = s.kind(path, model)
	if r.Kind == kindCompletions {
		r.Choices = mulSat(r.Choices, max(t.prompts, 1))
	}
	r.ImageTokens = t.img.tokens(model)
	r.MediaTokens = addSat(addSat(soundTokens(model, t.soundMS),
		ceilDiv(mulSat(t.filmMS, filmTokensPerSecond), 1000)), t.documents)
	r.Understood = !s.broken && r.Kind != kindUnknown && s.saw&sawPromptAny != 0

	r.Input = addSat(ceilDiv(t.text, 1000), t.ids)
	if isChat(r.Kind) && t.messages > 0 {
		for _, o := range overheads {
			if strings.HasPrefix(model, o.prefix) {
				r.Input = max(addSat(r.Input, t.messages*o.perMessage+t.names*o.perName+o.priming), 0)
				break
			}
		}
	}
	if !r.Understood {
		// What was found may be all there is, or a beginning of it. The size
		// without the payloads stands for the rest.
		bySize := ceilDiv(r.Size-s.payloadBytes, 4)
		r.Input = max(r.Input, bySize)
		r.Quarters = max(r.Quarters, bySize)
		r.Images += s.strays
		r.ImageTokens = addSat(r.ImageTokens, mulSat(s.strays, strayTokens))
	}
	r.Input = addSat(r.Input, addSat(r.ImageTokens, r.MediaTokens))
	return r, model
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

// strayTokens prices a payload in a body of an unknown kind, where nothing tells
// what it is: as an image of the default size under the default rule.
const strayTokens = 765
