package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
)

// An agentKind is a kind of text that agents send, written around the words of a text.
type agentKind struct {
	name string
	make func(*agentText) string // a line or a few
}

// An agentText makes text out of words that no piece of the corpus is from.
type agentText struct {
	*rand.Rand
	words []string
	lines []string // of code
	paths []string // of files
}

func (a *agentText) word() string             { return a.words[a.IntN(len(a.words))] }
func (a *agentText) pick(of ...string) string { return of[a.IntN(len(of))] }

func (a *agentText) phrase(n int) string {
	s := make([]string, n)
	for i := range s {
		s[i] = a.word()
	}
	return strings.Join(s, " ")
}

func (a *agentText) raw(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(a.Uint32())
	}
	return b
}

func (a *agentText) of(set string, n int) string { return of(a.Rand, set, n) }

// agentKinds are those of the issue tracker's list, and what was found low there.
var agentKinds = []agentKind{
	{"box-drawing tables", func(a *agentText) string {
		c := []rune(a.pick("┌─┬┐│├┼┤└┴┘", "╔═╦╗║╠╬╣╚╩╝", "╭─┬╮│├┼┤╰┴╯"))
		width := make([]int, 2+a.IntN(4))
		for i := range width {
			width[i] = 5 + a.IntN(22)
		}
		rule := func(left, mid, right rune) string {
			s := string(left)
			for i, w := range width {
				if i > 0 {
					s += string(mid)
				}
				s += strings.Repeat(string(c[1]), w+2)
			}
			return s + string(right)
		}
		out := []string{rule(c[0], c[2], c[3])}
		for i := range 3 + a.IntN(6) {
			if i == 1 {
				out = append(out, rule(c[5], c[6], c[7]))
			}
			s := string(c[4])
			for j, w := range width {
				cell := a.word()
				if i > 0 && j%2 == 1 {
					cell = fmt.Sprint(a.IntN(100_000))
				} else if w > 12 {
					cell += " " + a.word()
				}
				s += fmt.Sprintf(" %-*.*s ", w, w, cell) + string(c[4])
			}
			out = append(out, s)
		}
		return strings.Join(append(out, rule(c[8], c[9], c[10])), "\n")
	}},
	{"trees", func(a *agentText) string {
		var out []string
		at := a.IntN(max(len(a.paths)-40, 1))
		var last []string
		for _, p := range a.paths[at:min(at+30, len(a.paths))] {
			parts := strings.Split(p, "/")
			same := 0
			for same < len(parts)-1 && same < len(last) && parts[same] == last[same] {
				same++
			}
			for depth := same; depth < len(parts); depth++ {
				out = append(out, strings.Repeat("│   ", depth)+a.pick("├── ", "├── ", "└── ")+parts[depth])
			}
			last = parts
		}
		return strings.Join(out, "\n")
	}},
	{"diffs", func(a *agentText) string {
		at, n := a.IntN(len(a.lines)-20), 6+a.IntN(12)
		name := a.paths[a.IntN(len(a.paths))]
		out := []string{
			"diff --git a/" + name + " b/" + name, fmt.Sprintf("index %x..%x 100644", a.raw(4), a.raw(4)), "--- a/" + name, "+++ b/" + name,
			fmt.Sprintf("@@ -%d,%d +%d,%d @@", at, n, at, n+2),
		}
		for _, l := range a.lines[at : at+n] {
			out = append(out, a.pick(" ", " ", " ", "-", "+")+l)
		}
		return strings.Join(out, "\n")
	}},
	{"stack traces", func(a *agentText) string {
		line := strings.TrimSpace(a.lines[a.IntN(len(a.lines))])
		switch a.IntN(4) {
		case 0:
			return fmt.Sprintf("  File \"/opt/%s/%s\", line %d, in %s\n    %s", a.word(), a.paths[a.IntN(len(a.paths))], a.IntN(3000), a.word(), line)
		case 1:
			return fmt.Sprintf("\tat org.%s.%s.%s.%s(%s.java:%d)", a.word(), a.word(), capital(a.word()), a.word(), capital(a.word()), a.IntN(3000))
		case 2:
			return fmt.Sprintf("    at %s.%s (file:///app/node_modules/%s/dist/%s.js:%d:%d)", capital(a.word()), a.word(), a.word(), a.word(), a.IntN(900), a.IntN(80))
		}
		return fmt.Sprintf("%s/%s.(*%s).%s(0xc000%06x, 0x%x)\n\t/go/src/%s:%d +0x%x", a.word(), a.word(), capital(a.word()), capital(a.word()), a.IntN(1<<24), a.IntN(64), a.paths[a.IntN(len(a.paths))], a.IntN(3000), a.IntN(4096))
	}},
	{"chat with emoji", func(a *agentText) string {
		return a.phrase(3+a.IntN(8)) + a.pick("!", "?", "...", "") + " " + dataEmoji[a.IntN(len(dataEmoji))] + a.pick("", dataEmoji[a.IntN(len(dataEmoji))], " "+a.word())
	}},
	{"emoji alone", func(a *agentText) string {
		return dataEmoji[a.IntN(len(dataEmoji))] + dataEmoji[a.IntN(len(dataEmoji))]
	}},
	{"ids", func(a *agentText) string {
		const set = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
		return a.pick("call_", "toolu_", "run_", "cus_", "AKIA", "file-", "") + a.of(set, 16+a.IntN(16)) + a.pick("", ", ", " "+a.word())
	}},
	{"uuids", func(a *agentText) string {
		b := a.raw(16)
		return fmt.Sprintf("%x-%x-%x-%x-%x%s", b[:4], b[4:6], b[6:8], b[8:10], b[10:], a.pick("", " "+a.word(), ","))
	}},
	{"hashes", func(a *agentText) string {
		h := sha256.Sum256(a.raw(8))
		return hex.EncodeToString(h[:a.pickInt(16, 20, 32)]) + a.pick("", "  "+a.paths[a.IntN(len(a.paths))])
	}},
	{"base64 in text", func(a *agentText) string {
		return a.phrase(4+a.IntN(12)) + " " + base64.StdEncoding.EncodeToString(a.raw(18+a.IntN(90)))
	}},
	{"passwords", func(a *agentText) string {
		b := make([]byte, 10+a.IntN(30))
		for i := range b {
			b[i] = byte('!' + a.IntN(94))
		}
		return string(b)
	}},
	{"DNA", func(a *agentText) string { return a.of("ACGT", 70) }},
	{"DNA in one line", func(a *agentText) string { return a.of("ACGT", 2000) }},
	{"dna", func(a *agentText) string { return a.of("acgt", 60) }},
	{"proteins", func(a *agentText) string {
		return ">" + a.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 6) + " " + a.word() + "\n" + a.of("ACDEFGHIKLMNPQRSTVWYLLAAGGSVE", 60) + "\n" + a.of("ACDEFGHIKLMNPQRSTVWYLLAAGGSVE", 60)
	}},
	{"bars", func(a *agentText) string {
		n, wide := a.IntN(50), 50
		return fmt.Sprintf("%-12s %s%s %3d%%", a.word(), strings.Repeat(a.pick("█", "▓", "■", "▇"), n), strings.Repeat(a.pick("░", " ", "·", "□"), wide-n), 2*n)
	}},
	{"rule lines", func(a *agentText) string {
		return strings.Repeat(a.pick("-", "=", "*", "#", "_", "─", "━", "═", "~"), 20+a.IntN(60)) + "\n" + a.phrase(1+a.IntN(4))
	}},
	{"rule lines alone", func(a *agentText) string {
		return strings.Repeat(a.pick("-", "=", "*", "#", "_", "─", "━", "═", "~"), 20+a.IntN(60))
	}},
	{"tables of Markdown", func(a *agentText) string {
		n := 2 + a.IntN(4)
		row, rule := "|", "|"
		for range n {
			row += " " + a.word() + " " + a.pick(a.word(), fmt.Sprint(a.IntN(1000)), "") + " |"
			rule += a.pick("---|", " --- |", ":---:|", "------|")
		}
		return row + "\n" + rule + "\n" + strings.ReplaceAll(row, "e", "a")
	}},
	{"NAMES_IN_CAPS", func(a *agentText) string {
		return strings.ToUpper(a.word()+"_"+a.word()+a.pick("", "_"+a.word())) + a.pick("=", ": ", " ") + a.pick(a.word(), fmt.Sprint(a.IntN(9999)), "true")
	}},
	{"TEXT IN CAPS", func(a *agentText) string { return strings.ToUpper(a.phrase(5 + a.IntN(8))) }},
	{"logs", func(a *agentText) string {
		return fmt.Sprintf("%02d:%02d:%02d.%03d [%s] %s/%s: %s id=%x", a.IntN(24), a.IntN(60), a.IntN(60), a.IntN(1000), a.pick("info", "WARN", "error", "DEBUG"), a.word(), a.word(), a.phrase(4), a.raw(6))
	}},
	{"tool calls in JSON", func(a *agentText) string {
		return fmt.Sprintf(`{"tool": "%s_%s", "args": {"path": "%s", "%s": %d, "%s": ["%s", "%s"]}}`, a.word(), a.word(), a.paths[a.IntN(len(a.paths))], a.word(), a.IntN(1000), a.word(), a.word(), a.phrase(3))
	}},
}

func (a *agentText) pickInt(of ...int) int { return of[a.IntN(len(of))] }

// agentPieces makes n pieces of about size bytes of each kind, out of the packages in dir.
func agentPieces(dir string, size, n int) (map[string][][]byte, error) {
	a := &agentText{Rand: rand.New(rand.NewPCG(17, 4))}
	texts, err := unseenTexts(filepath.Join(dir, "debian-faq"), ".html", fromHTML)
	if err != nil {
		return nil, err
	}
	for _, w := range strings.FieldsFunc(strings.ToLower(string(bytes.Join(texts, []byte(" ")))), func(r rune) bool { return r < 'a' || r > 'z' }) {
		if len(w) > 2 {
			a.words = append(a.words, w)
		}
	}
	code, err := unseenTexts(filepath.Join(dir, "python3-django"), ".py", nil)
	if err != nil {
		return nil, err
	}
	for _, t := range code {
		for _, l := range strings.Split(string(t), "\n") {
			if strings.TrimSpace(l) != "" {
				a.lines = append(a.lines, l)
			}
		}
	}
	root := filepath.Join(dir, "libruby3.1", "usr", "lib", "ruby")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			a.paths = append(a.paths, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(a.paths)
	out := map[string][][]byte{}
	for _, k := range agentKinds {
		for range n {
			var b bytes.Buffer
			for b.Len() < size {
				b.WriteString(k.make(a))
				b.WriteByte('\n')
			}
			out[k.name] = append(out[k.name], b.Bytes())
		}
	}
	return out, nil
}
