package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/estimate/internal/fit/corpus"
)

// A method is one way to estimate a text, in tokens.
type method func(f estimate.Family, text []byte) float64

func byWeights(f estimate.Family, text []byte) float64 {
	return float64(estimate.CountFor(f, text)) / 1000
}

func byChars(_ estimate.Family, text []byte) float64 { return float64(utf8.RuneCount(text)) / 4 }
func byBytes(_ estimate.Family, text []byte) float64 { return float64(len(text)) / 4 }

func exact(f estimate.Family, p corpus.Piece) float64 {
	for _, known := range families {
		if known.family == f {
			return float64(p.Tokens[known.name])
		}
	}
	panic("no such family")
}

// relative returns the relative error of each piece.
func relative(f estimate.Family, m method, pieces []corpus.Piece) []float64 {
	var out []float64
	for _, p := range pieces {
		out = append(out, m(f, p.Text)/exact(f, p)-1)
	}
	return out
}

// calibrated returns the errors of the held-out pieces after a Calibrator has
// seen 50 answers: the other pieces of the same language, or of the same kind of
// code or data, over and over until there were 50.
func calibrated(f estimate.Family, all []corpus.Piece) []float64 {
	by := map[string][]int{}
	for i, p := range all {
		by[title(p)] = append(by[title(p)], i)
	}
	var out []float64
	for i, p := range all {
		like := by[title(p)]
		if !p.Held || len(like) < 2 {
			continue
		}
		var c estimate.Calibrator
		for n, answers := 0, 0; answers < 50; n++ {
			j := like[n%len(like)]
			if j == i {
				continue
			}
			answers++
			c.Observe(prompt(f, all[j]).Prompt(), int64(exact(f, all[j])))
		}
		out = append(out, float64(c.Correct(prompt(f, p)).Input)/exact(f, p)-1)
	}
	return out
}

// prompt is a request with one text in it.
func prompt(f estimate.Family, p corpus.Piece) estimate.Request {
	return estimate.Request{Model: "model", Understood: true, Input: (estimate.CountFor(f, p.Text) + 999) / 1000}
}

func mean(e []float64) float64 {
	s := 0.0
	for _, x := range e {
		s += x
	}
	return 100 * s / float64(len(e))
}

func meanSize(e []float64) float64 {
	s := 0.0
	for _, x := range e {
		s += math.Abs(x)
	}
	return 100 * s / float64(len(e))
}

// under returns the underestimate that 95 % of the pieces do not exceed.
func under(e []float64) float64 {
	return max(0, -100*slices.Sorted(slices.Values(e))[len(e)/20])
}

// A group is kinds of text that are summed up together.
type group struct {
	name string
	has  func(corpus.Piece) bool
}

var groups = []group{
	{"natural language", corpus.Piece.Natural},
	{"code", func(p corpus.Piece) bool { return p.Source == "code" || p.Source == "more" }},
	{"data", func(p corpus.Piece) bool { return p.Source == "data" }},
}

// A vocabulary is a tokenizer by its name in the corpus.
type vocabulary struct {
	name   string
	family estimate.Family
}

var families = []vocabulary{
	{"o200k", estimate.O200k}, {"cl100k", estimate.CL100k}, {"claude", estimate.Claude}, {"gemma", estimate.Gemma},
	{"llama3", estimate.Llama3}, {"deepseek", estimate.DeepSeek}, {"qwen", estimate.Qwen}, {"mistral", estimate.Mistral},
}

// errorsDoc writes the published table from the held-out half.
func errorsDoc(all []corpus.Piece) ([]byte, error) {
	var b bytes.Buffer
	var held []corpus.Piece
	for _, p := range all {
		if p.Held {
			held = append(held, p)
		}
	}
	fmt.Fprintf(&b, `# Errors of the estimate

Written by "go generate ./estimate" from the held-out half of the corpus beside
this file: %d pieces that were not used for fitting, their exact counts made
with the real vocabularies. In percent of the exact count. "size" is the mean
size of the error, "bias" its mean with its sign (below zero:
underestimated), "p95" the underestimate that 95 %% of the pieces do not exceed.

## In short

| tokenizer | text | pieces | size | bias | p95 | after 50 answers: size | p95 | chars/4: size | p95 | bytes/4: size | p95 |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
`, len(held))
	for _, f := range families {
		for _, g := range groups {
			if err := writeGroup(&b, f, g, all, held); err != nil {
				return nil, err
			}
		}
	}
	b.WriteString(`
"After 50 answers": a Calibrator has seen 50 answers of the same language, or of
the same kind of code or data, the piece itself not among them.

## Another kind of text

The weights fitted without the handbook, that is to human rights and code, and
then measured on all of the handbook:

| tokenizer | size | bias | p95 |
| --- | --- | --- | --- |
`)
	writeWithout(&b, "handbook", all)
	for _, g := range groups {
		writeKinds(&b, g, filter(held, g.has))
	}
	return b.Bytes(), nil
}

// writeGroup writes the errors of one tokenizer on one group of texts.
func writeGroup(b *bytes.Buffer, f vocabulary, g group, all, held []corpus.Piece) error {
	p := filter(held, g.has)
	if len(p) == 0 {
		return fmt.Errorf("no held-out %s", g.name)
	}
	e, k := relative(f.family, byWeights, p), calibrated(f.family, filter(all, g.has))
	c, n := relative(f.family, byChars, p), relative(f.family, byBytes, p)
	fmt.Fprintf(b, "| %s | %s | %d | **%.1f** | %+.1f | **%.1f** | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", f.name, g.name, len(p),
		meanSize(e), mean(e), under(e), meanSize(k), under(k), meanSize(c), under(c), meanSize(n), under(n))
	return nil
}

// writeWithout writes the errors on a source of weights that were fitted without it.
func writeWithout(b *bytes.Buffer, source string, all []corpus.Piece) {
	without := fitAll(all, source, families[:2])
	for _, f := range families[:2] {
		var e []float64
		for _, p := range all {
			if p.Source == source {
				e = append(e, without[f.name].estimate(p.Text)/exact(f.family, p)-1)
			}
		}
		fmt.Fprintf(b, "| %s | %.1f | %+.1f | %.1f |\n", f.name, meanSize(e), mean(e), under(e))
	}
}

// writeKinds writes the errors on each kind of text in a group.
func writeKinds(b *bytes.Buffer, g group, held []corpus.Piece) {
	by := map[string][]corpus.Piece{}
	for _, p := range held {
		by[title(p)] = append(by[title(p)], p)
	}
	fmt.Fprintf(b, "\n## %s%s\n\nSize, with the bias in brackets.\n\n| | pieces | o200k | chars/4 | bytes/4 | cl100k | chars/4 | bytes/4 |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n", strings.ToUpper(g.name[:1]), g.name[1:])
	for _, name := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(b, "| %s | %d |", name, len(by[name]))
		for _, f := range families {
			for i, m := range []method{byWeights, byChars, byBytes} {
				e := relative(f.family, m, by[name])
				form := " %.1f (%+.1f) |"
				if i == 0 {
					form = " **%.1f** (%+.1f) |"
				}
				fmt.Fprintf(b, form, meanSize(e), mean(e))
			}
		}
		b.WriteByte('\n')
	}
}

// printOther prints the errors on a corpus that took no part in anything.
func printOther(pieces []corpus.Piece) {
	by := map[string][]corpus.Piece{}
	for _, p := range pieces {
		by[p.Source+" (all)"] = append(by[p.Source+" (all)"], p)
		by[p.Source+" "+p.Kind] = append(by[p.Source+" "+p.Kind], p)
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		fmt.Printf("%-24s", name)
		for _, f := range families {
			e, k := relative(f.family, byWeights, by[name]), calibrated(f.family, by[name])
			c := relative(f.family, byChars, by[name])
			fmt.Printf("  %s: %5.1f (%+5.1f) p95 %4.1f, after 50: %4.1f p95 %4.1f, chars/4 %4.1f", f.name, meanSize(e), mean(e), under(e), meanSize(k), under(k), meanSize(c))
		}
		fmt.Println()
	}
}

func filter(p []corpus.Piece, has func(corpus.Piece) bool) []corpus.Piece {
	var out []corpus.Piece
	for _, x := range p {
		if has(x) {
			out = append(out, x)
		}
	}
	return out
}

// estimate computes what package estimate would with these weights, in tokens.
func (f fitted) estimate(text []byte) float64 {
	sum := int64(0)
	for x, n := range features(text) {
		if x.kind == bigram {
			sum += int64(n) * int64(math.Round(f.weight[x]*1000))
			continue
		}
		sum += int64(n) * int64(f.milli(x.kind, x.a, x.b))
	}
	return float64(sum) / 1000
}

// title names a piece in the tables: languages in English, for any code that a
// source has for them.
func title(p corpus.Piece) string {
	if !p.Natural() {
		return p.Kind
	}
	code := p.Kind
	switch {
	case p.Source == "chat" && code == "zh":
		code = "zh-CN"
	case p.Source == "handbook" && code != "zh-CN" && code != "zh-TW":
		code = code[:2]
	}
	if name := languages[code]; name != "" {
		return name
	}
	return p.Kind
}

var languages = func() map[string]string {
	m := map[string]string{}
	for _, l := range strings.Split(languageNames, "\n") {
		codes, name, _ := strings.Cut(strings.TrimSpace(l), ": ")
		for _, c := range strings.Fields(codes) {
			m[c] = name
		}
	}
	return m
}()

const languageNames = `eng en: English
deu_1996 de: German
fra fr: French
spa es: Spanish
ita it: Italian
por_PT por_BR pt: Portuguese
nld nl: Dutch
swe sv: Swedish
dan da: Danish
nob nb: Norwegian
fin: Finnish
isl: Icelandic
pol pl: Polish
ces cs: Czech
slk: Slovak
slv: Slovenian
hun: Hungarian
ron_2006 ro: Romanian
hrv hr: Croatian
lit: Lithuanian
lav: Latvian
est: Estonian
eus: Basque
cat ca: Catalan
glg: Galician
cym: Welsh
gle: Irish
als: Albanian
epo: Esperanto
lat: Latin
afr: Afrikaans
tur tr: Turkish
azj_latn: Azerbaijani
uzn_latn: Uzbek
ind id: Indonesian
mly_latn: Malay
jav: Javanese
tgl: Tagalog
swh: Swahili
zul: Zulu
yor: Yoruba
hau_NG: Hausa
som: Somali
hat_popular: Haitian Creole
vie vi: Vietnamese
rus ru: Russian
ukr uk: Ukrainian
bel: Belarusian
bul bg: Bulgarian
mkd: Macedonian
srp_cyrl: Serbian (Cyrillic)
kaz: Kazakh
khk: Mongolian (Cyrillic)
ell_monotonic el: Greek
hye: Armenian
kat: Georgian
arb ar: Arabic
pes_1 fa: Persian
urd: Urdu
ckb: Kurdish (Sorani)
heb: Hebrew
ydd: Yiddish
hin hi: Hindi
mar: Marathi
nep: Nepali
ben: Bengali
pan: Punjabi
guj: Gujarati
tam: Tamil
tel: Telugu
kan: Kannada
mal: Malayalam
sin: Sinhala
tha: Thai
lao: Lao
mya: Burmese
khm: Khmer
bod: Tibetan
amh: Amharic
tir: Tigrinya
cmn_hans zh-CN: Chinese (simplified)
cmn_hant zh-TW: Chinese (traditional)
jpn ja: Japanese
kor ko: Korean`
