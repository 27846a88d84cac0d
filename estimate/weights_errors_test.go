package estimate

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/tripmeter/tripmeter/estimate/internal/fit/corpus"
)

// measured are relative errors.
type measured []float64

func (m measured) meanSize() float64 {
	s := 0.0
	for _, e := range m {
		s += math.Abs(e)
	}
	return s / float64(len(m))
}

// under is the underestimate that 95 % do not exceed.
func (m measured) under() float64 {
	return max(0, -slices.Sorted(slices.Values(m))[len(m)/20])
}

func exactly(f Family, p corpus.Piece) int64 {
	return p.Tokens[f.String()]
}

// Users compare an estimate with the wrong vocabulary and see large errors.
// The bounds are published for each vocabulary; they are these, on text that
// was not used for fitting, and usage brings the rest.
func TestErrorsOnHeldOutTextsStayWithinTheBounds(t *testing.T) {
	bounds := []struct {
		name            string
		natural         bool
		family          Family
		mean, under     float64
		mean50, under50 float64
	}{
		{"o200k natural language", true, O200k, 0.10, 0.20, 0.06, 0.15},
		{"o200k code", false, O200k, 0.10, 0.20, 0.06, 0.15},
		{"cl100k natural language", true, CL100k, 0.10, 0.20, 0.06, 0.15},
		{"cl100k code", false, CL100k, 0.10, 0.20, 0.08, 0.15},
	}
	pieces := readCorpus(t)
	for _, b := range bounds {
		t.Run(b.name, func(t *testing.T) {
			like := map[string][]corpus.Piece{}
			for _, p := range pieces {
				if p.Natural() == b.natural && p.Source != "data" {
					k := p.Source + " " + p.Kind
					like[k] = append(like[k], p)
				}
			}
			var raw, after measured
			for _, same := range like {
				for i, p := range same {
					if !p.Held {
						continue
					}
					exact := exactly(b.family, p) * 1000
					estimate := CountFor(b.family, p.Text)
					raw = append(raw, float64(estimate)/float64(exact)-1)

					// 50 answers of the same source and language.
					var c Calibrator
					for n, answers := 0, 0; answers < 50; n++ {
						if j := n % len(same); j != i {
							answers++
							teach(&c, "model", 0, ceilDiv(CountFor(b.family, same[j].Text), 1000), exactly(b.family, same[j]))
						}
					}
					after = append(after, float64(corrected(&c, "model", 0, ceilDiv(estimate, 1000))*1000)/float64(exact)-1)
				}
			}
			if len(raw) < 40 {
				t.Fatalf("only %d held-out pieces", len(raw))
			}
			t.Logf("%d pieces: mean error %.1f %%, p95 underestimate %.1f %%; after 50 answers %.1f %%, %.1f %%",
				len(raw), 100*raw.meanSize(), 100*raw.under(), 100*after.meanSize(), 100*after.under())
			if raw.meanSize() > b.mean || raw.under() > b.under {
				t.Errorf("mean error %.3f (bound %.2f), p95 underestimate %.3f (bound %.2f)", raw.meanSize(), b.mean, raw.under(), b.under)
			}
			if after.meanSize() > b.mean50 || after.under() > b.under50 {
				t.Errorf("after 50 answers: mean error %.3f (bound %.2f), p95 underestimate %.3f (bound %.2f)", after.meanSize(), b.mean50, after.under(), b.under50)
			}
		})
	}
}

// Four characters a token undercounts Chinese, Japanese and Korean by 2.4 to 6
// times. No text of such characters is below 0.6 a character.
func TestNoEastAsianCharacterIsNearlyFree(t *testing.T) {
	scripts := map[string]*unicode.RangeTable{"Han": unicode.Han, "Hangul": unicode.Hangul, "Hiragana": unicode.Hiragana, "Katakana": unicode.Katakana}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			n := 0
			for r := rune(0x3040); r <= 0x3ffff; r++ {
				if !unicode.Is(script, r) {
					continue
				}
				n++
				for f := range families {
					least := int64(500) // what DeepSeek's needs, with many Chinese words
					if name != "Han" {
						least = 330 // there are tokens of two and three of these
					}
					text := string(r)
					if n%500 == 1 { // the weight of each, the full length of some
						text = strings.Repeat(text, 8000)
					}
					if got, want := CountFor(f, []byte(text)), least*Runes([]byte(text)); got < want {
						t.Fatalf("family %d: %d characters U+%04X: %d milli-tokens, at least %d wanted", f, Runes([]byte(text)), r, got, want)
					}
				}
			}
			if n < 80 {
				t.Fatalf("only %d characters", n)
			}
		})
	}
}

// Minified code is undercounted. Dense digits are tested beside the fitting
// program, against the vocabulary itself.
func TestMinifiedCodeAndNumbersAreNotUndercounted(t *testing.T) {
	n := 0
	for _, p := range readCorpus(t) {
		if p.Kind != "minified" && p.Kind != "json-compact" && p.Kind != "json-numbers" && p.Kind != "json-floats" && p.Kind != "digits" {
			continue
		}
		n++
		for f := range families {
			if got, exact := CountFor(f, p.Text), exactly(f, p)*1000; got < exact*3/4 {
				t.Errorf("family %d, %s: %d milli-tokens for %d", f, p.Kind, got, exact)
			}
		}
	}
	if n == 0 {
		t.Fatal("no piece")
	}
}
