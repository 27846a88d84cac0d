package usage

// A Count is a number of tokens (or seconds, where said so) that is known or
// not. The zero value is unknown. An unknown count is never 0: it says that the
// estimate must stand.
type Count struct {
	N  int64
	OK bool
}

// Counts is what a response says it cost, in one meaning for all providers.
// The zero value: nothing is known.
type Counts struct {
	// Input is the tokens of the prompt, with those read from and written to
	// a cache.
	Input Count
	// Output is the tokens produced, with those of reasoning, over all
	// choices.
	Output Count
	// Total is what the provider states as the total, and at least Input plus
	// Output. It is unknown if the provider states none. It may exceed the
	// sum: some report reasoning nowhere but here.
	Total Count
	// CachedInput is the part of Input that was read from a cache.
	CachedInput Count
	// CacheWrite is the part of Input that was written to a cache.
	CacheWrite Count
	// Reasoning is the part of Output that was reasoning.
	Reasoning Count
	// AudioInput is the part of Input that was audio, in tokens.
	AudioInput Count
	// AudioSeconds is the audio billed by time, in seconds, not tokens.
	AudioSeconds Count
}

// Bounded returns c without what cannot be: an input above mostInput, an output
// above mostOutput, or a total above both together. Such a count is unknown, not
// cut, since nothing says what it should have been; the parts of an unknown count
// are unknown too. A negative bound is none.
//
// A call cannot have made more output than its cap or the window of its model,
// nor have more input than its bytes allow. One wrong number would otherwise be a
// debt of days.
func (c Counts) Bounded(mostInput, mostOutput int64) Counts {
	if mostInput >= 0 && mostOutput >= 0 && c.Total.N > min(mostInput, maxCount)+min(mostOutput, maxCount) {
		c.Total = Count{}
	}
	if mostInput >= 0 && c.Input.N > mostInput {
		c.Input, c.CachedInput, c.CacheWrite, c.AudioInput, c.Total = Count{}, Count{}, Count{}, Count{}, Count{}
	}
	if mostOutput >= 0 && c.Output.N > mostOutput {
		c.Output, c.Reasoning, c.Total = Count{}, Count{}, Count{}
	}
	for _, part := range [...]*Count{&c.CachedInput, &c.CacheWrite, &c.AudioInput} {
		if part.N > c.Input.N && c.Input.OK || mostInput >= 0 && part.N > mostInput {
			*part = Count{}
		}
	}
	if c.Reasoning.N > c.Output.N && c.Output.OK || mostOutput >= 0 && c.Reasoning.N > mostOutput {
		c.Reasoning = Count{}
	}
	return c
}

// Known reports whether c states at least one of Input, Output and Total.
func (c Counts) Known() bool { return c.Input.OK || c.Output.OK || c.Total.OK }

// maxCount is the largest number taken for a count: 2^53, beyond which JSON
// numbers are not exact everywhere. A few of them add up without overflow.
const maxCount = 1 << 53

// A field is one number that a usage object may state.
type field uint8

const (
	fieldNone field = iota

	fieldPrompt     // prompt_tokens: with the cache
	fieldCompletion // completion_tokens
	fieldTotal
	fieldInput      // input_tokens: without the cache if fieldCacheRead or fieldCacheWrite stand beside it
	fieldOutput     // output_tokens
	fieldCacheRead  // outside fieldInput
	fieldCacheWrite // outside fieldInput

	fieldCached    // details: inside the prompt
	fieldWrite     // details: inside the prompt
	fieldCachedTop // cached_tokens beside the prompt count, inside it
	fieldCacheHit  // prompt_cache_hit_tokens, inside it
	fieldReasoning
	fieldAudio
	fieldSeconds

	fieldToolPrompt // Gemini: beside the prompt
	fieldCandidates // Gemini: without thoughts
	fieldThoughts   // Gemini

	fieldBilledInput // Cohere
	fieldBilledOutput
	fieldTokensInput
	fieldTokensOutput

	fieldIterInput // Anthropic: sums over the passes
	fieldIterOutput
	fieldIterRead
	fieldIterWrite

	fieldResultInput // sums over the results of one document
	fieldResultOutput

	fieldOther // seconds, images, searches: a cost that is no tokens

	fieldIndex // which choice, no cost

	fieldCount
)

// A tally is the numbers of one usage object, as stated.
type tally struct {
	n         [fieldCount]int64
	known     uint64 // a bit for each field that is known
	bad       bool   // a number was there that no count can be
	embedding bool   // the document held embeddings, so there is no output
}

// costFields are the fields without which a usage object says nothing.
const costFields = 1<<fieldPrompt | 1<<fieldCompletion | 1<<fieldTotal | 1<<fieldInput | 1<<fieldOutput |
	1<<fieldCacheRead | 1<<fieldCacheWrite |
	1<<fieldToolPrompt | 1<<fieldCandidates | 1<<fieldThoughts |
	1<<fieldBilledInput | 1<<fieldBilledOutput | 1<<fieldTokensInput | 1<<fieldTokensOutput |
	1<<fieldIterInput | 1<<fieldIterOutput | 1<<fieldIterRead | 1<<fieldIterWrite |
	1<<fieldResultInput | 1<<fieldResultOutput

func (t *tally) set(f field, v int64) {
	switch f {
	case fieldIterInput, fieldIterOutput, fieldIterRead, fieldIterWrite, fieldResultInput, fieldResultOutput:
		if sum, ok := t.get(f); ok {
			v = min(sum+v, maxCount)
		}
	}
	t.n[f] = v
	t.known |= 1 << f
}

func (t *tally) unset(f field) { t.known &^= 1 << f }

// clear forgets the numbers; what stands in n without its bit means nothing.
func (t *tally) clear() { t.known, t.embedding, t.bad = 0, false, false }

// get is (0, false) for what is not known.
func (t *tally) get(f field) (int64, bool) {
	if t.known&(1<<f) == 0 {
		return 0, false
	}
	return t.n[f], true
}

// counts reports whether the tally states a cost. One impossible number (below
// zero, a fraction, a string, above 2^53) makes all of it unknown: the others come
// from the same hand.
func (t *tally) counts() bool { return t.known&costFields != 0 && !t.bad }

// others reports whether the tally states a cost and none in tokens.
func (t *tally) others() bool {
	v, _ := t.get(fieldOther)
	return v > 0 && t.known&costFields == 0 && !t.bad
}

// zero reports whether every cost the tally states is 0.
func (t *tally) zero() bool {
	for f := range fieldCount {
		if v, ok := t.get(f); ok && v != 0 && costFields>>f&1 != 0 {
			return false
		}
	}
	return true
}

// overlay takes over every field that u states. Running totals do not fall: a 0
// over a number says that nobody counted.
func (t *tally) overlay(u *tally) {
	for f := range fieldCount {
		if v, ok := u.get(f); ok && (v != 0 || t.known&(1<<f) == 0) {
			t.n[f] = v
			t.known |= 1 << f
		}
	}
}

// first is the first of the fields that is known.
func (t *tally) first(fields ...field) Count {
	for _, f := range fields {
		if v, ok := t.get(f); ok {
			return Count{v, true}
		}
	}
	return Count{}
}

// largest is the largest of the fields that are known. Gateways that speak two
// dialects at once put 0 in one of them.
func (t *tally) largest(fields ...field) (c Count) {
	for _, f := range fields {
		if v, ok := t.get(f); ok {
			c = Count{max(c.N, v), true}
		}
	}
	return c
}

// normal is the counts of the tally in one meaning. What is not stated, and does not
// follow from what is, stays unknown.
func (t *tally) normal() Counts {
	var c Counts
	if t.zero() {
		return c
	}
	c.Total = t.first(fieldTotal)
	c.CachedInput = t.first(fieldCached, fieldCacheRead, fieldCacheHit, fieldCachedTop)
	c.CacheWrite = t.first(fieldWrite, fieldCacheWrite)
	c.Reasoning = t.first(fieldReasoning, fieldThoughts)
	c.AudioInput = t.first(fieldAudio)
	c.Output = t.output()
	c.Input = t.input(c.Total, c.Output)
	t.passes(&c)
	if !c.Output.OK && c.Input.OK && (t.embedding || c.Total.OK && c.Total.N == c.Input.N) {
		c.Output = Count{0, true}
	}
	c.complete()
	return c
}

// output is the tokens of the answer, with its thoughts.
func (t *tally) output() Count {
	// Gemini: thoughts stand beside the candidates, not inside them.
	candidates, ok1 := t.get(fieldCandidates)
	thoughts, ok2 := t.get(fieldThoughts)
	if ok1 || ok2 {
		return Count{candidates + thoughts, true}
	}
	if c := t.largest(fieldCompletion, fieldOutput); c.OK {
		return c
	}
	return t.first(fieldTokensOutput, fieldBilledOutput, fieldResultOutput)
}

// input is the tokens of the prompt, with those of its cache. The total and
// the output tell whether the cache is among them.
func (t *tally) input(total, output Count) Count {
	tool, _ := t.get(fieldToolPrompt)
	prompt, inclusive := t.get(fieldPrompt)
	input, exclusive := t.get(fieldInput)
	switch {
	case inclusive && prompt+tool >= input:
		return Count{prompt + tool, true}
	case !exclusive:
		return t.first(fieldTokensInput, fieldBilledInput, fieldResultInput)
	}
	// Anthropic and Bedrock state the cache beside the input. A total
	// that comes out without it says that this one does not.
	if !total.OK || total.N != input+output.N {
		read, _ := t.get(fieldCacheRead)
		write, _ := t.get(fieldCacheWrite)
		input += read + write
	}
	return Count{input, true}
}

// passes puts the sums over all passes in place of the last one, which is all that
// the object itself states (Anthropic).
func (t *tally) passes(c *Counts) {
	if n, ok := t.get(fieldIterInput); ok {
		r, okr := t.get(fieldIterRead)
		w, okw := t.get(fieldIterWrite)
		c.Input = Count{n + r + w, true}
		if okr {
			c.CachedInput = Count{r, true}
		}
		if okw {
			c.CacheWrite = Count{w, true}
		}
	}
	if n, ok := t.get(fieldIterOutput); ok {
		c.Output = Count{n, true}
	}
}

// complete makes the total and its parts agree.
func (c *Counts) complete() {
	// A total and one part give the other. Otherwise the estimate of the missing
	// part would stand, and the rest of the total would be added to it.
	if c.Total.OK && c.Total.N > 0 && c.Input.OK != c.Output.OK {
		known := c.Input.N + c.Output.N
		switch {
		case known > c.Total.N:
			c.Total = Count{} // older, or of something else: it tells nothing of the other part
		case c.Input.OK:
			c.Output = Count{c.Total.N - known, true}
		default:
			c.Input = Count{c.Total.N - known, true}
		}
	}
	if c.Total.OK && c.Input.OK && c.Output.OK {
		// Mistral: audio stands beside the prompt; only the total tells.
		if c.AudioInput.N > 0 && c.Total.N == c.Input.N+c.AudioInput.N+c.Output.N {
			c.Input.N += c.AudioInput.N
		}
		c.Total.N = max(c.Total.N, c.Input.N+c.Output.N)
	}
}
