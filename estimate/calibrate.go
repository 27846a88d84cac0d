package estimate

import (
	"math"
	"slices"
)

// A Calibrator corrects estimates of prompts by the usage that comes back. For each
// model, and each kind of prompt, it learns two numbers:
//
//	charged = offset + factor * estimate
//
// The offset is what the provider adds to every prompt, such as an instruction for
// tools; the factor is how its tokenizer differs from the weights. One number alone
// cannot hold both: an instruction of 500 tokens, learned from prompts of 100, would
// make 192,000 tokens of a prompt of 32,000.
//
// The zero value is ready. It is safe for concurrent use. It remembers the 256
// pairs of model and kind that learned last, and of each the last 32 answers.
//
// Its effect is bounded:
//
//	factor     from 1/3 to 3; one answer moves it by an eighth at most
//	offset     from -4,096 to 4,096 tokens; one answer moves it by 512 at most
//	reach      a factor applies to four times the largest prompt it was learned from
//
// Answers far from all others count for next to nothing.
type Calibrator struct {
	models byModel[calibration]
}

// A Prompt is what a [Calibrator] has to know of a request when the answer comes.
type Prompt struct {
	Model  string
	Traits Traits
	Tokens int64 // Request.Input, before Correct; 0: nothing is learned
}

// Prompt returns what a [Calibrator] has to know of the request later. Of a body that
// was not understood, and of a prompt that the provider adds to by itself, nothing is
// learned.
func (r Request) Prompt() Prompt {
	p := Prompt{Model: r.Model, Traits: r.Traits, Tokens: r.Input}
	if !r.Understood || r.Traits&Unpredictable != 0 {
		p.Tokens = 0
	}
	return p
}

const (
	minFactor, maxFactor = 1.0 / 3, 3.0
	maxOffset            = 4096.0 // tokens
	factorStep           = 1.0 / 8
	offsetStep           = 512.0 // tokens
	// Before as many answers nothing is corrected.
	firstPairs = 3

	// An answer is expected to miss the line by a few tokens and by a part of its size.
	// So large prompts set the factor, and small ones the offset.
	noiseTokens = 8.0
	noisePart   = 0.06
	// How far offset and factor are expected to lie from 0 and 1 before anything is
	// known. Both hold against a few answers and give way to many.
	expectOffset = 320.0
	expectFactor = 0.2
	// An answer that misses the line by more than outlier times what is expected
	// counts for less, and soon for nothing.
	outlier = 4.0
	// An answer above the line counts for more than one below: what was estimated too
	// low gets a caller refused.
	lean = 1.6
	// A line that explains the answers hardly better than the estimates alone is not
	// used: it would follow chance. In units of the squared miss.
	significant = 9.0
	// A factor is believed up to so many times the largest prompt it was learned from.
	reach = 4.0

	// A line that a round moves by less than this, in tokens and as a factor, is there.
	settledOffset, settledFactor = 1e-4, 1e-7

	// With all places taken, an answer near the line changes it little, if the answer
	// that leaves was near too. Near is within this much of the expected error. Such
	// answers wait for the next fit, which comes after refit answers. A fit for each
	// was a tenth of a round trip.
	foretold = 1.0
	refit    = 16

	maxTokens = 1 << 40 // larger numbers are not prompts
)

// A calibration is what was learned of one kind of prompt of one model.
type calibration struct {
	pairs          [windowSize]pair
	n, next        int
	offset, factor float64 // factor 0: not known yet
	largest        float64 // estimate among the pairs
	settled        bool    // offset and factor are those of the last fit, not a step towards them
}

// A pair is one answer, in tokens.
type pair struct{ estimated, charged float64 }

// Observe learns from one answer: p is the [Request.Prompt] of the request, charged
// what the provider's usage says of its prompt, cached tokens included. Numbers that
// are not positive are ignored.
func (c *Calibrator) Observe(p Prompt, charged int64) {
	if p.Tokens <= 0 || charged <= 0 || p.Tokens > maxTokens || charged > maxTokens {
		return
	}
	c.models.mu.Lock()
	defer c.models.mu.Unlock()
	m := c.models.learn(p.key())
	if m == nil {
		return
	}
	seen, full := pair{float64(p.Tokens), float64(charged)}, m.n == windowSize
	old := m.pairs[m.next]
	m.pairs[m.next] = seen
	m.next = (m.next + 1) % windowSize
	m.n = min(m.n+1, windowSize)
	if m.n < firstPairs {
		return
	}
	if m.factor == 0 {
		m.factor = 1
	}
	if m.largest = max(m.largest, seen.estimated); m.n == firstPairs || full && old.estimated == m.largest && seen.estimated < m.largest {
		m.largest = 0
		for _, p := range m.pairs[:m.n] {
			m.largest = max(m.largest, p.estimated)
		}
	}
	if full && m.settled && m.next%refit != 0 && math.Abs(seen.miss(m.offset, m.factor)) < foretold && math.Abs(old.miss(m.offset, m.factor)) < foretold {
		return
	}
	offset, factor := m.fit()
	m.settled = math.Abs(offset-m.offset) <= offsetStep && math.Abs(factor-m.factor) <= factorStep
	m.offset += min(max(offset-m.offset, -offsetStep), offsetStep)
	m.factor += min(max(factor-m.factor, -factorStep), factorStep)
}

// Correct returns the request with its Input, and the Guess in it, as the answers so
// far tell. What the request states is never raised: what is added counts as a guess.
func (c *Calibrator) Correct(r Request) Request {
	if r.Input <= 0 || r.Input > maxTokens {
		return r
	}
	c.models.mu.Lock()
	m := c.models.get(r.Prompt().key())
	if m == nil || m.factor == 0 {
		c.models.mu.Unlock()
		return r
	}
	offset, factor, largest := m.offset, m.factor, m.largest
	c.models.mu.Unlock()
	stated := r.Input - r.Guess
	x := float64(r.Input)
	y := offset + x + (factor-1)*min(x, reach*largest)
	r.Input = max(int64(math.Ceil(min(max(y, minFactor*x), maxFactor*x+maxOffset)-1e-6)), 1)
	r.Guess = r.Input - min(stated, r.Input)
	return r
}

// Line returns the offset in tokens and the factor by which prompts of this kind are
// corrected; 0 and 1 while nothing is known.
func (c *Calibrator) Line(p Prompt) (offset, factor float64) {
	c.models.mu.Lock()
	defer c.models.mu.Unlock()
	if m := c.models.get(p.key()); m != nil && m.factor > 0 {
		return m.offset, m.factor
	}
	return 0, 1
}

// key names a model and a kind of prompt.
func (p Prompt) key() modelKey { return modelKey{p.Model, p.Traits &^ Unpredictable} }

// fit finds the line through the pairs by weighted least squares towards what is
// expected, a few times over: each time an answer weighs less the further it lies from
// the line of the time before (a Cauchy weight). The first line is the median of the
// ratios, so that a wild answer at the start does not draw the line to itself.
func (m *calibration) fit() (offset, factor float64) {
	best := math.Inf(1)
	starts := [3][2]float64{{m.offset, m.factor}}
	tried := starts[:1]
	if m.n < windowSize || m.next%4 == 0 { // the line of before is nearly always the nearest
		starts[1] = [2]float64{0, m.middleRatio()}
		starts[2] = [2]float64{m.middleDifference(), 1}
		tried = starts[:]
	}
	for _, start := range tried {
		o, f := start[0], start[1]
		for range 6 {
			before, factorBefore := o, f
			// From the line of before, one round or two are enough: each answer pays for them.
			if o, f = m.step(o, f); math.Abs(o-before) < settledOffset && math.Abs(f-factorBefore) < settledFactor {
				break
			}
		}
		if loss := m.loss(o, f); loss < best {
			best, offset, factor = loss, o, f
		}
	}
	if m.loss(0, 1)-best < significant || !m.nearer(offset, factor) {
		return 0, 1
	}
	return offset, factor
}

// nearer reports whether a line is nearer to the answers than the estimates alone, in parts of
// what was charged; a miss of all of it counts for no more. A line between two kinds of
// prompts that nothing tells apart is near neither.
func (m *calibration) nearer(offset, factor float64) bool {
	sum := 0.0
	for _, p := range m.pairs[:m.n] {
		sum += min(math.Abs(p.charged-offset-factor*p.estimated)/p.charged, 1)
		sum -= min(math.Abs(p.charged-p.estimated)/p.charged, 1)
	}
	return sum < 0
}

// middleRatio is the median of the ratios charged / estimated.
func (m *calibration) middleRatio() float64 {
	var r [windowSize]float64
	for i, p := range m.pairs[:m.n] {
		r[i] = p.charged / p.estimated
	}
	slices.Sort(r[:m.n])
	return min(max(r[m.n/2], minFactor), maxFactor)
}

// middleDifference is the median of what was charged more than estimated.
func (m *calibration) middleDifference() float64 {
	var d [windowSize]float64
	for i, p := range m.pairs[:m.n] {
		d[i] = p.charged - p.estimated
	}
	slices.Sort(d[:m.n])
	return min(max(d[m.n/2], -maxOffset), maxOffset)
}

// miss is how far a pair lies from a line, in units of what is expected.
func (p pair) miss(offset, factor float64) float64 {
	return (p.charged - offset - factor*p.estimated) / (noiseTokens + noisePart*p.estimated)
}

func leaning(miss float64) float64 {
	if miss > 0 {
		return lean
	}
	return 1
}

// loss is what step makes smaller.
func (m *calibration) loss(offset, factor float64) float64 {
	// The sum of logarithms is that of products, since a logarithm for each pair was a
	// tenth of a round trip. 32 misses of pairs, squared, may pass what a float64 holds.
	sum, above, below := 0.0, 1.0, 1.0
	for _, p := range m.pairs[:m.n] {
		miss := p.miss(offset, factor)
		if leaning(miss) == lean {
			above *= 1 + sq(miss/outlier)
		} else {
			below *= 1 + sq(miss/outlier)
		}
		if above > 1e200 || below > 1e200 {
			sum += lean*math.Log(above) + math.Log(below)
			above, below = 1, 1
		}
	}
	sum += lean*math.Log(above) + math.Log(below)
	return sq(offset/expectOffset) + sq((factor-1)/expectFactor) + outlier*outlier*sum
}

// step makes one round of least squares.
func (m *calibration) step(offset, factor float64) (float64, float64) {
	a, c, e, g := 1/sq(expectOffset), 1/sq(expectFactor), 0.0, 1/sq(expectFactor)
	b := 0.0
	for _, p := range m.pairs[:m.n] {
		miss := p.miss(offset, factor)
		w := leaning(miss) / (1 + sq(miss/outlier)) / sq(noiseTokens+noisePart*p.estimated)
		a += w
		b += w * p.estimated
		c += w * sq(p.estimated)
		e += w * p.charged
		g += w * p.estimated * p.charged
	}
	det := a*c - b*b // positive: a and c have something of their own
	offset, factor = (e*c-b*g)/det, (a*g-b*e)/det
	if bounded := min(max(offset, -maxOffset), maxOffset); bounded != offset {
		offset = bounded
		factor = (g - b*offset) / c
	}
	if bounded := min(max(factor, minFactor), maxFactor); bounded != factor {
		factor = bounded
		offset = min(max((e-b*factor)/a, -maxOffset), maxOffset)
	}
	return offset, factor
}

func sq(x float64) float64 { return x * x }
