package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/estimate/tiktoken"
)

// unseenSources are Debian 12 packages that no piece of the corpus is from, by the kind
// of text that is taken of them. They are read where they were unpacked, and only the
// errors are kept: dpkg-deb -x PACKAGE.deb FOLDER/PACKAGE.
var unseenSources = []struct {
	group, kind, pkg, ext string
	plain                 func([]byte) []byte
}{
	{"code", "Go", "golang-golang-x-tools-dev", ".go", nil},
	{"code", "Ruby", "libruby3.1", ".rb", nil},
	{"code", "Lua", "lua-penlight", ".lua", nil},
	{"code", "TypeScript", "node-typescript", ".ts", nil},
	{"code", "Perl", "perl-modules-5.36", ".pm", nil},
	{"code", "PHP", "php-symfony-yaml", ".php", nil},
	{"code", "Python", "python3-django", ".py", nil},
	{"code", "Python (docutils)", "python3-docutils", ".py", nil},
	{"code", "Rust", "rust-src", ".rs", nil},
	{"code", "Vim script", "vim-runtime", ".vim", nil},
	{"natural text", "English FAQ", "debian-faq", ".html", fromHTML},
	{"natural text", "Japanese FAQ", "debian-faq-ja", ".html", fromHTML},
	{"natural text", "Russian FAQ", "debian-faq-ru", ".html", fromHTML},
	{"natural text", "Chinese FAQ", "debian-faq-zh-cn", ".html", fromHTML},
	{"natural text", "Japanese reference", "debian-reference-ja", ".html", fromHTML},
	{"natural text", "Chinese reference", "debian-reference-zh-cn", ".html", fromHTML},
	{"natural text", "English fortunes", "fortunes", "", fortunes},
	{"natural text", "German fortunes", "fortunes-de", "", fortunes},
	{"natural text", "Spanish fortunes", "fortunes-es", ".fortunes", fortunes},
	{"natural text", "Italian fortunes", "fortunes-it", "", fortunes},
	{"natural text", "Polish fortunes", "fortunes-pl", "", fortunes},
	{"natural text", "Russian fortunes", "fortunes-ru", "", fortunes},
	{"natural text", "German manual", "manpages-de", ".gz", fromRoff},
	{"natural text", "Greek manual", "manpages-el", ".gz", fromRoff},
	{"natural text", "Spanish manual", "manpages-es", ".gz", fromRoff},
	{"natural text", "French manual", "manpages-fr", ".gz", fromRoff},
	{"natural text", "Italian manual", "manpages-it", ".gz", fromRoff},
	{"natural text", "Dutch manual", "manpages-nl", ".gz", fromRoff},
	{"natural text", "Polish manual", "manpages-pl", ".gz", fromRoff},
	{"natural text", "Portuguese manual", "manpages-pt-br", ".gz", fromRoff},
	{"natural text", "Russian manual", "manpages-ru", ".gz", fromRoff},
	{"natural text", "Ukrainian manual", "manpages-uk", ".gz", fromRoff},
	{"stories", "Chinese", "wesnoth-1.16-httt", "/zh_CN/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Czech", "wesnoth-1.16-httt", "/cs/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Dutch", "wesnoth-1.16-httt", "/nl/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "English", "wesnoth-1.16-httt", "/en_GB/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "French", "wesnoth-1.16-httt", "/fr/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "German", "wesnoth-1.16-httt", "/de/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Greek", "wesnoth-1.16-httt", "/el/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Hungarian", "wesnoth-1.16-httt", "/hu/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Italian", "wesnoth-1.16-httt", "/it/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Japanese", "wesnoth-1.16-httt", "/ja/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Korean", "wesnoth-1.16-httt", "/ko/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Polish", "wesnoth-1.16-httt", "/pl/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Portuguese", "wesnoth-1.16-httt", "/pt_BR/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Russian", "wesnoth-1.16-httt", "/ru/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Spanish", "wesnoth-1.16-httt", "/es/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Swedish", "wesnoth-1.16-httt", "/sv/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Turkish", "wesnoth-1.16-httt", "/tr/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Ukrainian", "wesnoth-1.16-httt", "/uk/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"stories", "Vietnamese", "wesnoth-1.16-httt", "/vi/LC_MESSAGES/wesnoth-httt.mo", fromCatalog},
	{"documents", "Markdown", "rust-src", ".md", nil},
	{"documents", "HTML", "debian-faq", ".html", nil},
	{"documents", "templates", "python3-django", ".html", nil},
	{"documents", "help files", "vim-runtime", ".txt", nil},
	{"documents", "POD", "perl-modules-5.36", ".pod", nil},
	{"data", "JSON", "iso-codes", ".json", nil},
	{"data", "translations", "python3-django", ".po", nil},
	{"data", "character tables", "unicode-data", ".txt", nil},
	{"data", "TOML", "rust-src", ".toml", nil},
	{"data", "compiler output", "rust-src", ".stderr", nil},
	{"data", "signatures", "libruby3.1", ".rbs", nil},
}

func fromHTML(b []byte) []byte { return []byte(strings.Join(paragraphs(b, 40, nil), "\n")) }

func fortunes(b []byte) []byte {
	if bytes.IndexByte(b, 0) >= 0 || !bytes.Contains(b, []byte("\n%\n")) {
		return nil
	}
	return bytes.ReplaceAll(b, []byte("\n%\n"), []byte("\n\n"))
}

var roffEscape = regexp.MustCompile(`\\f(\(..|\[[^]]*\]|.)|\\[&|/,]|\\s[-+]?[0-9]`)

// fromRoff leaves the running text of a manual page.
func fromRoff(b []byte) []byte {
	var out []string
	for _, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			continue
		}
		l = roffEscape.ReplaceAllString(l, "")
		l = strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(dq`, `"`, `\e`, `\`, `\(bu`, "•", `\ `, " ").Replace(l)
		out = append(out, l)
	}
	return []byte(strings.Join(out, "\n"))
}

const unseenPieces = 40 // of a kind and a size

// unseenSizes are the sizes of pieces, in bytes.
var unseenSizes = []int{200, 2000, 16_000}

// unseen measures the weights on packages unpacked in dir and returns the table.
func unseen(dir string) ([]byte, error) {
	m := unseenErrors{exact: tiktoken.New(tiktoken.Options{}), by: map[string]map[int]*errorsOf{}}
	for _, s := range unseenSources {
		texts, err := unseenTexts(filepath.Join(dir, s.pkg), s.ext, s.plain)
		if err != nil {
			return nil, err
		}
		for _, size := range unseenSizes {
			var pieces [][]byte
			for _, t := range texts {
				perText := 8
				if len(texts) < 5 {
					perText = unseenPieces
				}
				pieces = append(pieces, spread(cutAt(t, size), perText)...)
			}
			m.measure(s.group, s.kind, size, spread(pieces, unseenPieces))
		}
	}
	for _, size := range unseenSizes[:2] {
		agents, err := agentPieces(dir, size, unseenPieces)
		if err != nil {
			return nil, err
		}
		for _, k := range agentKinds {
			m.measure("what agents send", k.name, size, agents[k.name])
		}
	}
	return m.doc(), nil
}

// unseenErrors are the relative errors by the kind of text, or group of kinds, and by
// the size of the pieces.
type unseenErrors struct {
	exact *tiktoken.Counter
	by    map[string]map[int]*errorsOf
}

// errorsOf are the errors for two vocabularies.
type errorsOf struct{ o200k, cl100k []float64 }

func (m *unseenErrors) measure(group, kind string, size int, pieces [][]byte) {
	for _, name := range []string{group, group + ": " + kind} {
		if m.by[name] == nil {
			m.by[name] = map[int]*errorsOf{}
		}
		r := m.by[name][size]
		if r == nil && len(pieces) > 0 {
			r = &errorsOf{}
			m.by[name][size] = r
		}
		for _, p := range pieces {
			r.o200k = append(r.o200k, float64(estimate.CountFor(estimate.O200k, p))/1000/float64(m.exact.Count("gpt-4o", p))-1)
			r.cl100k = append(r.cl100k, float64(estimate.CountFor(estimate.CL100k, p))/1000/float64(m.exact.Count("gpt-4", p))-1)
		}
	}
}

const unseenHead = `# Errors on text that no fit has seen

Written by

    go run ./estimate/internal/fit unseen -other FOLDER -o estimate/testdata/corpus/UNSEEN.md

from Debian 12 packages unpacked in FOLDER, none of which any piece of the corpus is
from; their names are in estimate/internal/fit/unseen.go. "Stories" are the translations
of a game. "What agents
send" is made by estimate/internal/fit/agents.go around words, code and names of files of
these packages. Pieces of about 200 bytes, 2 kB
and 16 kB, at most 40 of a kind and a size. In percent of the exact count: the mean size
of the error, the bias in brackets, and the underestimate that 95 % of the pieces do not
exceed.

The fit has not seen these texts, but who made the fit has seen this table. Four choices
were made by looking at it: how strongly pairs of characters and the letters of ASCII are
held (holdBigram, holdASCII), the shares of the kinds, and how much an underestimate counts
(underestimate, underNatural). So the table chose among fits. A further source may fare a
little worse.

| text | o200k 200 B | p95 | 2 kB | p95 | 16 kB | p95 | cl100k 2 kB | p95 |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
`

// doc is the table.
func (m *unseenErrors) doc() []byte {
	b := bytes.NewBufferString(unseenHead)
	cell := func(e []float64) { fmt.Fprintf(b, " %.1f (%+.1f) | %.1f |", meanSize(e), mean(e), under(e)) }
	for _, k := range slices.Sorted(maps.Keys(m.by)) {
		fmt.Fprintf(b, "| %s |", k)
		for _, size := range unseenSizes {
			if r := m.by[k][size]; r != nil {
				cell(r.o200k)
			} else {
				b.WriteString(" | |")
			}
		}
		if r := m.by[k][2000]; r != nil {
			cell(r.cl100k)
		} else {
			b.WriteString(" | |")
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// unseenTexts reads the files of a folder with an ending, at most 400 of them.
func unseenTexts(dir, ext string, plain func([]byte) []byte) ([][]byte, error) {
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && (ext == "" || strings.HasSuffix(path, ext)) &&
			!strings.Contains(path, "/fortunes/es/off/") && // in ROT13
			(!strings.Contains(path, "/share/doc/") || strings.Contains(dir, "debian-")) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no file ends in %q", dir, ext)
	}
	slices.Sort(names)
	var out [][]byte
	for i := range min(len(names), 400) {
		b, err := os.ReadFile(names[i*len(names)/min(len(names), 400)])
		if err != nil {
			return nil, err
		}
		if ext == ".gz" {
			z, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				continue
			}
			if b, err = io.ReadAll(z); err != nil {
				return nil, err
			}
		}
		if plain != nil {
			b = plain(b)
		}
		if utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 {
			out = append(out, b)
		}
	}
	return out, nil
}

// cutAt cuts a text at line ends into pieces of about size bytes, none much shorter.
func cutAt(text []byte, size int) (out [][]byte) {
	from := 0
	for i, c := range text {
		if c == '\n' && i-from >= size {
			if i-from <= 2*size {
				out = append(out, text[from:i])
			}
			from = i + 1
		}
	}
	return out
}

// fromCatalog leaves the translated sentences of a message catalog of gettext (its
// manual, "The Format of GNU MO Files").
func fromCatalog(b []byte) []byte {
	const magic = 0x950412de
	if len(b) < 28 || binary.LittleEndian.Uint32(b) != magic {
		return nil
	}
	n, at := int(binary.LittleEndian.Uint32(b[8:])), int(binary.LittleEndian.Uint32(b[16:]))
	var out [][]byte
	for i := range n {
		entry := b[at+8*i:]
		size, from := int(binary.LittleEndian.Uint32(entry)), int(binary.LittleEndian.Uint32(entry[4:]))
		if s := b[from : from+size]; i > 0 && size > 60 { // the first is about the catalog
			out = append(out, bytes.ReplaceAll(s, []byte{0}, []byte("\n")))
		}
	}
	return bytes.Join(out, []byte("\n"))
}
