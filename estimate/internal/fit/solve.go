package main

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"unicode"

	"github.com/tripmeter/tripmeter/estimate/internal/fit/corpus"
)

// A fitted holds the weights of one tokenizer, in tokens.
type fitted struct {
	weight map[feature]float64
	mean   map[string]float64 // by family
}

// of returns the weight of a feature, seen or not.
func (f fitted) of(x feature) float64 {
	if w, ok := f.weight[x]; ok {
		return w
	}
	return f.mean[x.family()]
}

// fitAll fits tokenizers to the fit half of the pieces, but for those of a source.
func fitAll(pieces []corpus.Piece, without string, families []vocabulary) map[string]fitted {
	var fit []corpus.Piece
	for _, p := range pieces {
		if !p.Held && p.Source != without {
			fit = append(fit, p)
		}
	}
	var wait sync.WaitGroup
	out := make([]fitted, len(families))
	for i, f := range families {
		wait.Go(func() {
			out[i] = solve(fit, func(p corpus.Piece) int64 { return p.Tokens[f.name] })
		})
	}
	wait.Wait()
	by := map[string]fitted{}
	for i, f := range families {
		by[f.name] = out[i]
	}
	return by
}

// The choices below were made by the errors on two sets of text. One is the
// held-out half. The other is not in the repository: manuals of aptitude and of GIMP,
// and fortunes, in seven languages. UNSEEN.md was looked at as well. No choice is sharp.
// Doubled or halved, the leans move the mean error of natural language and of code by
// less than a tenth of itself. Tried and left out for want of gain: a weight for the
// start of a word of each script; a larger share for Italian, for everyday writing, for
// generated data; a stronger hold of pairs.
const (
	// Errors count as |e|^1.3: near the absolute error that is published, so
	// that a few odd texts do not pull, yet smooth enough to solve.
	power = 1.3
	// An underestimate counts for more than an overestimate of the same size: it
	// is what gets a caller refused.
	underestimate = 5
	// Languages differ in how they are written more than code does: an underestimate of
	// them counts for still more.
	underNatural = 12
	// The holds are in units of the squared relative error. They say how
	// strongly the members of a family are held together. They also say how
	// strongly the weights where classes meet are held near zero. The letters
	// of ASCII serve forty languages: they are held most.
	holdASCII = 4
	holdWide  = 0.03
	holdMeet  = 0.03
	holdBox   = 0.003
	// No letter is free, even if the corpus says so: a text of nothing but
	// cheap letters still costs.
	leastLetter = 0.05
	// There are no words of many of them.
	leastHan = 0.5
	// Nor is a long row of blanks, line ends or marks: the longest that is one
	// token has 128 of them.
	leastRepeated = 0.01

	rounds = 120

	// Two characters that follow one another get a correction of their own, found in a
	// second step, with the rest held. It is held near zero, and only pairs that occur
	// in bigramPieces texts at least have one.
	holdBigram   = 0.6
	bigramPieces = 5
	bigramRounds = 40
	leastBigram  = 0.01
	bigramUnit   = 0.01 // tokens: corrections are kept in such steps
)

// mostWeight bounds each kind of weight, in tokens, against a few odd pieces. No
// character is more tokens than it has bytes, and the sums stay below the bound of
// package estimate's table. A cut of a long row of letters costs no more than the eight
// tokens that are documented.
var mostWeight = map[kind]float64{ascii: 1.2, repeated: 1.2, run: 2, digit: 1.5, meet: 1, wide: 3.5, box: 2.5, long: 0.32}

func lean(p corpus.Piece) float64 {
	switch {
	case p.Source == "questions": // the median is what counts: a token more is a quarter
		return 1
	case p.Natural():
		return underNatural
	}
	return underestimate
}

// share is how much a piece counts: a little by what is sent most.
func share(p corpus.Piece) float64 {
	s := 2.0
	switch p.Source {
	case "udhr", "data":
		s = 1
	case "questions": // so short that a token more or less is a quarter of them
		return 1
	}
	switch p.Kind {
	case "rule-lines", "box-lines", "bars", "gauges", "markdown-rows", "box-table", "emoji-chat", "constants", "rows", "meters", "double-rules": // nothing else in the corpus is like them
		s = 4
	case "passwords", "ids", "emoji": // so even that they all err to one side
		s = 2
	}
	if p.Natural() {
		switch title(p) {
		case "English":
			s *= 8
		case "Chinese (simplified)", "Spanish", "French", "German", "Japanese", "Portuguese", "Russian":
			s *= 2
		case "Italian", "Dutch", "Greek":
			s *= 2
		}
	}
	return s
}

// solve minimises over non-negative weights w
//
//	sum over pieces of share * |estimate/exact - 1|^power  +  hold * sum of (w - mean of its family)^2
//
// by coordinate descent on the quadratic that matches the errors of the round
// before (iteratively re-weighted least squares). It is deterministic: maps
// are walked in order, and the conversions keep a compiler from
// fusing a product with a sum.
func solve(pieces []corpus.Piece, exact func(corpus.Piece) int64) fitted {
	cols := columns(pieces, exact)
	names := nameFamilies(cols)
	mean := make([]float64, len(names))
	d := newDescent(pieces)
	for range rounds {
		familyMeans(mean, cols)
		d.estimate(cols)
		d.weigh()
		for range 3 {
			for _, c := range cols {
				num, den := d.pull(c, 1e-12)
				towards, hold, least := c.feature.hold(mean[c.family])
				d.move(c, min(max((num+towards)/(den+hold), least), mostWeight[c.feature.kind]))
			}
		}
	}
	out := fitted{weight: map[feature]float64{}, mean: map[string]float64{}}
	for _, c := range cols {
		out.weight[c.feature] = c.w
	}
	for i, name := range names {
		if name != "" {
			out.mean[name] = mean[i]
		}
	}
	out.correct(pieces, exact)
	return out
}

// columns are the weights of the features that pieces have, but for corrections of
// pairs.
func columns(pieces []corpus.Piece, exact func(corpus.Piece) int64) []*column {
	byFeature := map[feature]*column{}
	for i, p := range pieces {
		y := float64(exact(p))
		for f, n := range features(p.Text) {
			if f.kind == bigram {
				continue
			}
			c := byFeature[f]
			if c == nil {
				c = &column{feature: f, w: 0.3}
				byFeature[f] = c
			}
			c.seen += float64(n)
			c.rows = append(c.rows, entry{i, float64(n) / y})
		}
	}
	return inOrder(byFeature)
}

func inOrder(by map[feature]*column) []*column {
	return slices.SortedFunc(maps.Values(by), func(a, b *column) int { return compareFeatures(a.feature, b.feature) })
}

// nameFamilies numbers the families of columns, and returns their names by number.
func nameFamilies(cols []*column) (names []string) {
	families := map[string]int{}
	for _, c := range cols {
		name := c.feature.family()
		if _, ok := families[name]; !ok {
			families[name] = len(names)
			names = append(names, name)
		}
		c.family = families[name]
	}
	return names
}

// familyMeans is the mean weight of each family. A column counts by the root of how
// often it was seen.
func familyMeans(mean []float64, cols []*column) {
	sum, n := make([]float64, len(mean)), make([]float64, len(mean))
	for _, c := range cols {
		q := math.Sqrt(c.seen)
		sum[c.family] += float64(q * c.w)
		n[c.family] += q
	}
	for i := range mean {
		mean[i] = sum[i] / n[i]
	}
}

// hold is how strongly a weight is held near the mean of its family, or near zero.
// towards is that mean times hold, and least is the least weight.
func (f feature) hold(mean float64) (towards, hold, least float64) {
	switch f.kind {
	case repeated:
		return 0, 0, leastRepeated
	case box:
		return float64(holdBox * mean), holdBox, leastRepeated
	case meet:
		return 0, holdMeet, 0
	case ascii:
		least = leastRepeated
		if classOf(rune(f.a)) <= upper {
			least = leastLetter
		}
		return float64(holdASCII * mean), holdASCII, least
	case wide:
		least = leastLetter
		if unicode.Is(unicode.Han, rune(f.a)) {
			least = leastHan
		}
		return float64(holdWide * mean), holdWide, least
	}
	return 0, 0, 0
}

// A column is a weight, and what it adds to the relative errors.
type column struct {
	feature feature
	family  int
	seen    float64
	rows    []entry
	w       float64
	least   float64 // of a correction
}

// An entry is what a weight of 1 adds to the relative error of a piece.
type entry struct {
	row int
	x   float64
}

// A descent is the errors of pieces while weights are moved one by one.
type descent struct {
	pieces []corpus.Piece
	e      []float64 // relative errors
	v      []float64 // what a squared error counts
}

func newDescent(pieces []corpus.Piece) *descent {
	return &descent{pieces, make([]float64, len(pieces)), make([]float64, len(pieces))}
}

// estimate finds the errors anew, so that those of rounding do not add up.
func (d *descent) estimate(cols []*column) {
	for i := range d.e {
		d.e[i] = -1
	}
	for _, c := range cols {
		for _, r := range c.rows {
			d.e[r.row] += float64(r.x * c.w)
		}
	}
}

// weigh lets the squares of the errors count as their power does.
func (d *descent) weigh() {
	for i, p := range d.pieces {
		d.v[i] = share(p) * math.Pow(max(math.Abs(d.e[i]), 0.03), power-2)
		if d.e[i] < 0 {
			d.v[i] *= lean(p)
		}
	}
}

// pull is where the errors want a weight, as a fraction. hold holds it at zero.
func (d *descent) pull(c *column, hold float64) (num, den float64) {
	den = hold
	for _, r := range c.rows {
		num -= float64(d.v[r.row] * r.x * float64(d.e[r.row]-float64(r.x*c.w)))
		den += float64(d.v[r.row] * r.x * r.x)
	}
	return num, den
}

// move sets a weight.
func (d *descent) move(c *column, w float64) {
	if by := w - c.w; by != 0 {
		for _, r := range c.rows {
			d.e[r.row] += float64(r.x * by)
		}
		c.w = w
	}
}

// base is what an ASCII character weighs after another without a correction.
func (f fitted) base(a, b int) float64 {
	w := f.of(feature{kind: ascii, a: b})
	if from, to := classOf(rune(a)), classOf(rune(b)); from != to {
		w += f.of(feature{kind: meet, a: from, b: to})
	}
	return w
}

// correct finds the corrections of pairs of characters, by the same descent on the
// errors that are left.
func (f fitted) correct(pieces []corpus.Piece, exact func(corpus.Piece) int64) {
	d := newDescent(pieces)
	by := map[feature]*column{}
	for i, p := range pieces {
		y := float64(exact(p))
		d.e[i] = -1
		counts := features(p.Text)
		for _, x := range slices.SortedFunc(maps.Keys(counts), compareFeatures) {
			n := float64(counts[x])
			if x.kind != bigram {
				d.e[i] += float64(n * f.of(x) / y)
				continue
			}
			c := by[x]
			if c == nil {
				c = &column{feature: x, least: leastBigram - f.base(x.a, x.b)}
				by[x] = c
			}
			c.rows = append(c.rows, entry{i, n / y})
		}
	}
	cols := slices.DeleteFunc(inOrder(by), func(c *column) bool { return len(c.rows) < bigramPieces })
	for range bigramRounds {
		d.weigh()
		for range 2 {
			for _, c := range cols {
				num, den := d.pull(c, holdBigram)
				d.move(c, max(num/den, c.least))
			}
		}
	}
	for _, c := range cols {
		steps := math.Round(c.w / bigramUnit)
		f.weight[c.feature] = min(max(steps, -127), 127) * bigramUnit
	}
}

func compareFeatures(a, b feature) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.a, b.a), cmp.Compare(a.b, b.b))
}
