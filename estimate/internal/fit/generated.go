package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
)

type generatedKind struct {
	kind   string
	pieces [][]byte
}

// generated makes the data pieces: what prompts carry besides prose and code.
// The same pieces come out on every run.
func generated() []generatedKind {
	g := generator{rand.New(rand.NewPCG(1948, 12))}
	var out []generatedKind
	for _, k := range slices.Concat(g.records(), g.marks(), g.tools(), g.ids(), g.scripts(), g.rows()) {
		out = append(out, k.generate())
	}
	return append(out, g.single())
}

// A generator makes texts out of one row of random numbers.
type generator struct{ r *rand.Rand }

func (g generator) word() string { return dataWords[g.r.IntN(len(dataWords))] }

func (g generator) pick(s ...string) string { return s[g.r.IntN(len(s))] }

func (g generator) raw(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.r.Uint32())
	}
	return b
}

func (g generator) date() string {
	r := g.r
	return fmt.Sprintf("20%02d-%02d-%02dT%02d:%02d:%02d.%03dZ", 15+r.IntN(15), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000))
}

// letters makes words of the characters from lo to hi, but for those that not names.
func (g generator) letters(lo, hi rune, not func(rune) bool) func() string {
	var set []rune
	for c := lo; c <= hi; c++ {
		if unicode.In(c, unicode.L, unicode.N, unicode.S, unicode.P) && !not(c) {
			set = append(set, c)
		}
	}
	return func() string {
		var b strings.Builder
		for range 2 + g.r.IntN(6) {
			b.WriteRune(set[g.r.IntN(len(set))])
		}
		return b.String() + " "
	}
}

// A maker makes the parts of a kind of text.
type maker struct {
	kind string
	sep  string // between parts
	make func() string
}

// generate makes the pieces of a kind.
func (m maker) generate() generatedKind {
	out := generatedKind{kind: m.kind}
	for range 6 {
		var b strings.Builder
		for chars := 0; chars < 450; {
			s := m.make()
			if b.Len() > 0 {
				b.WriteString(m.sep)
			}
			b.WriteString(s)
			chars += len([]rune(s)) + len(m.sep)
		}
		out.pieces = append(out.pieces, []byte(b.String()))
	}
	return out
}

// single makes rows of one character. What it costs there shows only in pieces with
// rows of no other.
func (g generator) single() generatedKind {
	rows := generatedKind{kind: "rows"}
	for _, c := range "─━═│┄▀▄█▇▓▒░■□▪▬▰▱●○·-=#*_~" {
		for range 2 {
			var b strings.Builder
			for b.Len() < 450 {
				fmt.Fprintf(&b, "%s%s%s\n", g.pick("", "", g.word()+" "), strings.Repeat(string(c), 3+g.r.IntN(70)), g.pick("", " "+g.word(), "\n"+capital(g.word())))
			}
			rows.pieces = append(rows.pieces, []byte(b.String()))
		}
	}
	return rows
}

// records are what programs write line by line.
func (g generator) records() []maker {
	return []maker{
		{"json", ",\n", func() string {
			return fmt.Sprintf(`{"id": %d, "name": "%s %s", "email": "%s.%s@example.com", "active": %v, "score": %.3f, "tags": ["%s", "%s"]}`,
				g.r.IntN(1e6), g.word(), g.word(), g.word(), g.word(), g.r.IntN(2) == 0, g.r.Float64()*100, g.word(), g.word())
		}},
		{"json-compact", ",", func() string {
			return fmt.Sprintf(`{"%sId":"%x","%s_%s":%d,"is%s%s":%v,"at":"%s","%s":null}`,
				g.word(), g.raw(6), g.word(), g.word(), g.r.IntN(1e5), capital(g.word()), capital(g.word()), g.r.IntN(2) == 0, g.date(), g.word())
		}},
		{"json-numbers", ", ", func() string { return fmt.Sprint(g.r.IntN(pickInt(g.r, 10, 1000, 100000, 1e7))) }},
		{"json-floats", ",", func() string { return fmt.Sprintf("%.*f", 1+g.r.IntN(8), g.r.NormFloat64()*10) }},
		{"csv", "\n", func() string {
			return fmt.Sprintf("%d,%s,%s %s,%.2f,%d,%s", g.r.IntN(100000), g.date()[:10], g.word(), g.word(), g.r.Float64()*1000, g.r.IntN(50), g.pick("EUR", "USD", "JPY", "N/A", ""))
		}},
		{"log", "\n", func() string {
			return fmt.Sprintf(`%s %s [%s-%d] %s: %s %s took %dms status=%d trace=%x`, g.date(), g.pick("INFO", "WARN", "ERROR", "DEBUG"), g.word(), g.r.IntN(64), g.word(), g.word(), g.word(), g.r.IntN(5000), 200+g.r.IntN(304), g.raw(8))
		}},
		{"access-log", "\n", func() string {
			return fmt.Sprintf(`%d.%d.%d.%d - - [%02d/Mar/2024:%02d:%02d:%02d +0000] "GET /%s/%s?id=%d HTTP/1.1" %d %d "-" "Mozilla/5.0"`,
				g.r.IntN(256), g.r.IntN(256), g.r.IntN(256), g.r.IntN(256), 1+g.r.IntN(28), g.r.IntN(24), g.r.IntN(60), g.r.IntN(60), g.word(), g.word(), g.r.IntN(1e5), 200+g.r.IntN(304), g.r.IntN(1e5))
		}},
		{"yaml", "\n", func() string {
			return fmt.Sprintf("- name: %s\n  image: \"%s/%s:%d.%d.%d\"\n  env:\n    - name: %s_%s\n      value: %s\n  ports: [%d]", g.word(), g.word(), g.word(), g.r.IntN(9), g.r.IntN(30), g.r.IntN(30), strings.ToUpper(g.word()), strings.ToUpper(g.word()), g.word(), g.r.IntN(65536))
		}},
		{"sql", "\n", func() string {
			return fmt.Sprintf("INSERT INTO %s_%s (%s, %s, created_at) VALUES (%d, '%s', '%s');\nSELECT %s, COUNT(*) FROM %s WHERE %s >= %d GROUP BY %s;", g.word(), g.word(), g.word(), g.word(), g.r.IntN(1e6), g.word(), g.date(), g.word(), g.word(), g.word(), g.r.IntN(1000), g.word())
		}},
	}
}

// marks are tables, links, digits and symbols.
func (g generator) marks() []maker {
	return []maker{
		{"markdown-table", "\n", func() string {
			return fmt.Sprintf("| %-12s | %8d | %6.1f %% | `%s_%s` |", g.word(), g.r.IntN(1e6), g.r.Float64()*100, g.word(), g.word())
		}},
		{"urls", "\n", func() string {
			return fmt.Sprintf("https://%s.%s.com/%s/%s-%s/%d?%s=%s&ref=%x#%s", g.pick("www", "api", "docs"), g.word(), g.word(), g.word(), g.word(), g.r.IntN(1e6), g.word(), g.word(), g.raw(4), g.word())
		}},
		{"hex", "\n", func() string { return hex.EncodeToString(g.raw(32)) }},
		{"uuid", "\n", func() string {
			b := g.raw(16)
			return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		}},
		{"base64", "\n", func() string { return base64.StdEncoding.EncodeToString(g.raw(57)) }},
		{"digits", "\n", func() string {
			var b strings.Builder
			for range 30 + g.r.IntN(60) {
				b.WriteByte(byte('0' + g.r.IntN(10)))
			}
			return b.String()
		}},
		{"numbers-table", "\n", func() string {
			return fmt.Sprintf("%10.4f %10.4f %10.4f %10.4f", g.r.NormFloat64()*100, g.r.NormFloat64(), g.r.Float64()*1e4, g.r.NormFloat64())
		}},
		{"capitals", " ", func() string { return strings.ToUpper(g.word()) + g.pick("", "", ",", ".", ":", "!") }},
		{"identifiers", g.pick("\n"), func() string {
			switch g.r.IntN(3) {
			case 0:
				return g.word() + capital(g.word()) + capital(g.word()) + "()"
			case 1:
				return g.word() + "_" + g.word() + "_" + g.word()
			}
			return strings.ToUpper(g.word() + "_" + g.word())
		}},
		{"emoji", "", func() string { return dataEmoji[g.r.IntN(len(dataEmoji))] }},
		{"emoji-chat", " ", func() string {
			if g.r.IntN(4) == 0 {
				return dataEmoji[g.r.IntN(len(dataEmoji))]
			}
			return g.word()
		}},
		{"symbols", "", func() string {
			return string(dataSymbols[g.r.IntN(len(dataSymbols))]) + g.pick("", " ", "  ", string(dataSymbols[g.r.IntN(len(dataSymbols))]))
		}},
		{"controls", "", func() string {
			return string(rune(pickInt(g.r, 0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 127))) + g.pick("", "", g.word(), fmt.Sprint(g.r.IntN(100)), "[0m")
		}},
		{"rule-lines", "\n", func() string {
			return strings.Repeat(g.pick("-", "=", "*", "#", "_", "─", "~", "."), 4+g.r.IntN(70)) + strings.Repeat("\n", g.r.IntN(3)) + strings.Repeat(g.pick(" ", "\t"), g.r.IntN(30)) + g.word()
		}},
	}
}

// tools are what agents send: definitions of tools, drawings, listings, traces.
func (g generator) tools() []maker {
	return []maker{
		{"tool-schema", ",", func() string { return toolSchema(g.r, g.word, ":", ",") }},
		{"tool-schema-spaced", ", ", func() string { return toolSchema(g.r, g.word, ": ", ", ") }},
		{"box-table", "\n", func() string { return boxTable(g.r, g.word) }},
		{"box-lines", "\n", func() string {
			a, b := 4+g.r.IntN(30), 3+g.r.IntN(12)
			return "╭" + strings.Repeat("─", a) + "╮\n│ " + g.word() + " " + g.word() + strings.Repeat(" ", b) + "│\n╰" + strings.Repeat("─", a) + "╯"
		}},
		{"tree", "\n", func() string {
			return strings.Repeat("│   ", g.r.IntN(4)) + g.pick("├── ", "├── ", "└── ") + g.word() + g.pick("", "_"+g.word(), "-"+g.word()) + g.pick("/", ".go", ".py", ".ts", ".md", ".json", ".yaml", "")
		}},
		{"bars", "\n", func() string {
			n := g.r.IntN(40)
			return fmt.Sprintf("%-10s %s%s %d%%", g.word(), strings.Repeat(g.pick("█", "█", "█", "▓"), n), strings.Repeat(g.pick("░", " "), 40-n), n*100/40)
		}},
		{"markdown-rows", "\n", func() string {
			n := 2 + g.r.IntN(3)
			head, rule := "|", "|"
			for range n {
				head += g.pick(" ", "") + g.word() + g.pick(" ", "") + "|"
				rule += g.pick("---", " --- ", ":--", " :---: ", "------") + "|"
			}
			return head + "\n" + rule + "\n" + strings.ReplaceAll(head, "a", "e")
		}},
		{"gauges", "\n", func() string {
			n := g.r.IntN(30)
			return fmt.Sprintf("%s%-8s %s%s%s %d", g.pick("", "[", "- "), g.word(), g.pick("|", "[", ""), strings.Repeat("█", n)+strings.Repeat(g.pick(" ", "░", "."), 30-n), g.pick("|", "]", ""), g.r.IntN(100))
		}},
		{"diff", "\n", func() string {
			return fmt.Sprintf("diff --git a/%s/%s.go b/%s/%s.go\nindex %x..%x 100644\n--- a/%s/%s.go\n+++ b/%s/%s.go\n@@ -%d,%d +%d,%d @@ func %s(%s int) {\n \t%s := %s()\n-\treturn %s.%s(%s)\n+\tif err := %s.%s(%s); err != nil {\n+\t\treturn err\n+\t}",
				g.word(), g.word(), g.word(), g.word(), g.raw(4), g.raw(4), g.word(), g.word(), g.word(), g.word(), g.r.IntN(900), g.r.IntN(30), g.r.IntN(900), g.r.IntN(30), g.word(), g.word(), g.word(), g.word(), g.word(), g.word(), g.word(), g.word(), g.word(), g.word())
		}},
		{"stack-trace", "\n", func() string {
			switch g.r.IntN(3) {
			case 0:
				return fmt.Sprintf("  File \"/usr/lib/python3.%d/site-packages/%s/%s.py\", line %d, in %s_%s\n    return self.%s(%s, *args, **kwargs)", 8+g.r.IntN(6), g.word(), g.word(), g.r.IntN(2000), g.word(), g.word(), g.word(), g.word())
			case 1:
				return fmt.Sprintf("\tat com.%s.%s.%s%s.%s(%s%s.java:%d)", g.word(), g.word(), capital(g.word()), capital(g.word()), g.word(), capital(g.word()), capital(g.word()), g.r.IntN(2000))
			}
			return fmt.Sprintf("%s/%s.(*%s).%s(0xc000%06x, {0x%x, 0x%x})\n\t/home/user/src/%s/%s.go:%d +0x%x", g.word(), g.word(), capital(g.word()), capital(g.word()), g.r.IntN(1<<24), g.r.IntN(1<<20), g.r.IntN(64), g.word(), g.word(), g.r.IntN(2000), g.r.IntN(4096))
		}},
	}
}

// ids are what follows no language: ids, passwords, sequences, and lists of them.
func (g generator) ids() []maker {
	return []maker{
		{"ids", "\n", func() string {
			return g.pick("call_", "toolu_01", "msg_", "req_", "sk-", "usr_", "chatcmpl-") + alphanumeric(g.r, 20+g.r.IntN(8)) + g.pick("", " "+g.word(), ": "+g.word()+" "+g.word())
		}},
		{"passwords", "\n", func() string {
			b := make([]byte, 12+g.r.IntN(20))
			for i := range b {
				b[i] = byte('!' + g.r.IntN(94))
			}
			return string(b)
		}},
		{"dna", "\n", func() string {
			b := make([]byte, 60)
			for i := range b {
				b[i] = "ACGT"[g.r.IntN(4)]
			}
			return string(b)
		}},
		{"base64-in-text", " ", func() string {
			if g.r.IntN(3) == 0 {
				return base64.StdEncoding.EncodeToString(g.raw(20 + g.r.IntN(60)))
			}
			return g.word() + " " + g.word() + g.pick("", ":", ".", ",")
		}},
		{"emoji-lists", "\n", func() string {
			return dataEmoji[g.r.IntN(len(dataEmoji))] + g.pick(" ", "  ", " **") + capital(g.word()) + " " + g.word() + " " + g.word() + g.pick("!", "", " "+dataEmoji[g.r.IntN(len(dataEmoji))])
		}},
		{"constants", "\n", func() string {
			return strings.ToUpper(g.word()+"_"+g.word()+g.pick("", "_"+g.word())) + g.pick("=", " = ", ": ") + g.pick(fmt.Sprint(g.r.IntN(1000)), "\""+g.word()+"\"", g.word())
		}},
		{"html-table", "", func() string {
			return fmt.Sprintf("<tr class=\"%s-%s\"><td>%s</td><td align=\"right\">%d</td><td><a href=\"/%s/%s?id=%d\">%s %s</a></td></tr>\n", g.word(), g.word(), g.word(), g.r.IntN(1e5), g.word(), g.word(), g.r.IntN(1e4), g.word(), g.word())
		}},
	}
}

// scripts are those without running text in the corpus: their characters at random, so
// that the weight of the unknown is measured, not supposed.
func (g generator) scripts() []maker {
	return []maker{
		{"scripts-2-bytes", "", g.letters(0x250, 0x7ff, func(c rune) bool {
			return unicode.In(c, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Hebrew, unicode.Arabic)
		})},
		{"scripts-3-bytes", "", g.letters(0x800, 0xffef, func(c rune) bool {
			return unicode.In(c, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Tamil, unicode.Telugu, unicode.Kannada,
				unicode.Malayalam, unicode.Sinhala, unicode.Thai, unicode.Lao, unicode.Tibetan, unicode.Myanmar, unicode.Georgian, unicode.Hangul,
				unicode.Ethiopic, unicode.Khmer, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Latin, unicode.Greek, unicode.Arabic) || c >= 0x2000 && c < 0x2c00 || c >= 0xe000 && c < 0xf900
		})},
		{"scripts-4-bytes", "", g.letters(0x10000, 0x1efff, func(c rune) bool { return false })},
		{"han-rare", "", g.letters(0x4e00, 0x9fff, func(c rune) bool { return false })},
		{"han-extended", "", g.letters(0x20000, 0x2a6df, func(c rune) bool { return false })},
	}
}

// rows are sequences and rules of one character.
func (g generator) rows() []maker {
	return []maker{
		{"dna-small", "\n", func() string { return of(g.r, "acgt", 40+g.r.IntN(60)) }},
		{"proteins", "\n", func() string {
			return g.pick("", ">"+of(g.r, "ABCDEFGHKLMNPQRSTVWXYZ0123456789", 6)+"\n") + of(g.r, "AACDEEFGGHIKKLLLMNPQRSSTVVWY", 40+g.r.IntN(60))
		}},
		{"meters", "\n", func() string {
			n := g.r.IntN(30)
			return fmt.Sprintf("%s%s%s%s %d", g.word(), g.pick(" ", ": ", " ["), strings.Repeat(g.pick("■", "▇", "▓", "█", "●", "▬", "▰"), n), strings.Repeat(g.pick("□", "░", "·", "○", "▱", "─"), 30-n), g.r.IntN(100))
		}},
		{"double-rules", "\n", func() string {
			return strings.Repeat(g.pick("━", "═", "▀", "▄", "─", "-", "=", "▔"), 20+g.r.IntN(60)) + "\n" + g.pick("", g.word(), capital(g.word())+" "+g.word())
		}},
		{"middle-dots", "\n", func() string {
			return g.word() + " " + g.pick("·", "•", "—", "–", "→", "|", "»") + " " + g.word() + g.pick("", " · "+fmt.Sprint(g.r.IntN(100)), " … "+g.word())
		}},
	}
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

func pickInt(r *rand.Rand, n ...int) int { return n[r.IntN(len(n))] }

var dataWords = strings.Fields(`
	account address agent amount answer archive average balance batch billing branch
	buffer cache calendar campaign carrier category channel charge checkout city client
	cluster color comment company config contact context country coupon currency customer
	daily database delivery deploy device discount document domain download email employee
	endpoint engine entry error event expiry export factory failure feature field filter
	flight folder gateway green group handler harbor header history hotel image import
	index invoice item journal kernel label language ledger level library limit market
	member message method metric mobile model monitor network node notice object offer
	office order origin owner package partner payment person phone picture plan player
	policy price printer process product profile project queue quote random range record
	region release report request response result review river route sample schedule
	screen search secret segment server service session shipment signal source status
	storage stream street student subject summary supplier system table target task tenant
	ticket token topic total tracker transfer update upload user value vendor version
	video visitor volume wallet warehouse weather window worker yellow zone`)

var dataEmoji = []string{"😀", "😂", "🤣", "😊", "😍", "🙏", "👍", "👍🏽", "👏🏿", "🎉", "🔥", "💯", "❤️", "💔", "✨", "⭐", "✅", "❌", "⚠️", "🚀", "🤖", "👨‍👩‍👧‍👦", "👩‍💻", "🏳️‍🌈", "🇩🇪", "🇯🇵", "🇧🇷", "🇺🇸", "🍕", "🍺", "☕", "🐶", "🐱", "🦊", "🌍", "🌧️", "☀️", "⚽", "🏀", "🎵", "📌", "📈", "📎", "💡", "🔒", "🕒", "1️⃣", "🥳", "🥲", "🫠", "🧑🏻‍🚀", "🛠️", "🗑️", "🤷‍♀️", "🙈", "💀"}

var dataSymbols = []rune("─│┌┐└┘├┤┬┴┼═║╔╗╚╝█▓▒░■□▪●○◆◇★☆✓✗✔✖→←↑↓↔⇒⇔∀∃∈∉∑∏∫√∞≈≠≤≥±×÷∂∇∆αβγδεθλμπρσφψωΩΣΔ°²³¹½¼€£¥©®™…–—“”‘’„«»‹›•‣†‡§¶ℝℕℤℚ∪∩⊂⊆⟨⟩⌘⌥⇧⏎")

// toolSchema makes the definition of a tool, written with these marks after names and
// between members.
func toolSchema(r *rand.Rand, word func() string, colon, comma string) string {
	phrase := func() string {
		s := []string{capital(word())}
		for range 2 + r.IntN(9) {
			s = append(s, []string{word(), word(), "the", "of", "to", "for"}[r.IntN(6)])
		}
		return strings.Join(s, " ")
	}
	var props, required []string
	for range 1 + r.IntN(4) {
		name := word() + []string{"", "_" + word(), "_id"}[r.IntN(3)]
		p := fmt.Sprintf(`"%s"%s{"type"%s"%s"%s"description"%s"%s"`, name, colon, colon, []string{"string", "string", "integer", "boolean"}[r.IntN(4)], comma, colon, phrase())
		if r.IntN(4) == 0 {
			p += fmt.Sprintf(`%s"enum"%s["%s"%s"%s"]`, comma, colon, word(), comma, word())
		}
		props = append(props, p+"}")
		required = append(required, `"`+name+`"`)
	}
	s := fmt.Sprintf(`"name"%s"%s_%s"%s"description"%s"%s"%s`, colon, word(), word(), comma, colon, phrase(), comma)
	schema := fmt.Sprintf(`{"type"%s"object"%s"properties"%s{%s}%s"required"%s[%s]`, colon, comma, colon, strings.Join(props, comma), comma, colon, strings.Join(required, comma))
	if r.IntN(2) == 0 {
		schema += fmt.Sprintf(`%s"additionalProperties"%sfalse`, comma, colon)
	}
	switch r.IntN(3) {
	case 0:
		return "{" + s + `"input_schema"` + colon + schema + "}}"
	case 1:
		return "{" + s + `"parameters"` + colon + schema + "}}"
	}
	return `{"type"` + colon + `"function"` + comma + `"function"` + colon + "{" + s + `"parameters"` + colon + schema + "}}}"
}

// boxTable draws a small table.
func boxTable(r *rand.Rand, word func() string) string {
	style := []string{"┌─┬┐│├┼┤└┴┘", "╔═╦╗║╠╬╣╚╩╝"}[r.IntN(2)]
	c := []rune(style)
	cols, width := 2+r.IntN(3), 6+r.IntN(10)
	rule := func(left, mid, right rune) string {
		s := string(left)
		for i := range cols {
			if i > 0 {
				s += string(mid)
			}
			s += strings.Repeat(string(c[1]), width)
		}
		return s + string(right)
	}
	row := func() string {
		s := string(c[4])
		for range cols {
			cell := word()
			if r.IntN(2) == 0 {
				cell = fmt.Sprint(r.IntN(100000))
			}
			s += fmt.Sprintf(" %-*.*s", width-1, width-1, cell) + string(c[4])
		}
		return s
	}
	return strings.Join([]string{rule(c[0], c[2], c[3]), row(), rule(c[5], c[6], c[7]), row(), row(), rule(c[8], c[9], c[10])}, "\n")
}

func alphanumeric(r *rand.Rand, n int) string {
	return of(r, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", n)
}

// of makes a text of n characters of a set.
func of(r *rand.Rand, set string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = set[r.IntN(len(set))]
	}
	return string(b)
}
