package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
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
	r := rand.New(rand.NewPCG(1948, 12))
	word := func() string {
		return dataWords[r.IntN(len(dataWords))]
	}
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	raw := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	date := func() string {
		return fmt.Sprintf("20%02d-%02d-%02dT%02d:%02d:%02d.%03dZ", 15+r.IntN(15), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000))
	}
	letters := func(lo, hi rune, not func(rune) bool) func() string {
		var set []rune
		for c := lo; c <= hi; c++ {
			if unicode.In(c, unicode.L, unicode.N, unicode.S, unicode.P) && !not(c) {
				set = append(set, c)
			}
		}
		return func() string {
			var b strings.Builder
			for range 2 + r.IntN(6) {
				b.WriteRune(set[r.IntN(len(set))])
			}
			return b.String() + " "
		}
	}
	kinds := []struct {
		name string
		sep  string
		make func() string
	}{
		{"json", ",\n", func() string {
			return fmt.Sprintf(`{"id": %d, "name": "%s %s", "email": "%s.%s@example.com", "active": %v, "score": %.3f, "tags": ["%s", "%s"]}`,
				r.IntN(1e6), word(), word(), word(), word(), r.IntN(2) == 0, r.Float64()*100, word(), word())
		}},
		{"json-compact", ",", func() string {
			return fmt.Sprintf(`{"%sId":"%x","%s_%s":%d,"is%s%s":%v,"at":"%s","%s":null}`,
				word(), raw(6), word(), word(), r.IntN(1e5), capital(word()), capital(word()), r.IntN(2) == 0, date(), word())
		}},
		{"json-numbers", ", ", func() string { return fmt.Sprint(r.IntN(pickInt(r, 10, 1000, 100000, 1e7))) }},
		{"json-floats", ",", func() string { return fmt.Sprintf("%.*f", 1+r.IntN(8), r.NormFloat64()*10) }},
		{"csv", "\n", func() string {
			return fmt.Sprintf("%d,%s,%s %s,%.2f,%d,%s", r.IntN(100000), date()[:10], word(), word(), r.Float64()*1000, r.IntN(50), pick("EUR", "USD", "JPY", "N/A", ""))
		}},
		{"log", "\n", func() string {
			return fmt.Sprintf(`%s %s [%s-%d] %s: %s %s took %dms status=%d trace=%x`, date(), pick("INFO", "WARN", "ERROR", "DEBUG"), word(), r.IntN(64), word(), word(), word(), r.IntN(5000), 200+r.IntN(304), raw(8))
		}},
		{"access-log", "\n", func() string {
			return fmt.Sprintf(`%d.%d.%d.%d - - [%02d/Mar/2024:%02d:%02d:%02d +0000] "GET /%s/%s?id=%d HTTP/1.1" %d %d "-" "Mozilla/5.0"`,
				r.IntN(256), r.IntN(256), r.IntN(256), r.IntN(256), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), word(), word(), r.IntN(1e5), 200+r.IntN(304), r.IntN(1e5))
		}},
		{"yaml", "\n", func() string {
			return fmt.Sprintf("- name: %s\n  image: \"%s/%s:%d.%d.%d\"\n  env:\n    - name: %s_%s\n      value: %s\n  ports: [%d]", word(), word(), word(), r.IntN(9), r.IntN(30), r.IntN(30), strings.ToUpper(word()), strings.ToUpper(word()), word(), r.IntN(65536))
		}},
		{"sql", "\n", func() string {
			return fmt.Sprintf("INSERT INTO %s_%s (%s, %s, created_at) VALUES (%d, '%s', '%s');\nSELECT %s, COUNT(*) FROM %s WHERE %s >= %d GROUP BY %s;", word(), word(), word(), word(), r.IntN(1e6), word(), date(), word(), word(), word(), r.IntN(1000), word())
		}},
		{"markdown-table", "\n", func() string {
			return fmt.Sprintf("| %-12s | %8d | %6.1f %% | `%s_%s` |", word(), r.IntN(1e6), r.Float64()*100, word(), word())
		}},
		{"urls", "\n", func() string {
			return fmt.Sprintf("https://%s.%s.com/%s/%s-%s/%d?%s=%s&ref=%x#%s", pick("www", "api", "docs"), word(), word(), word(), word(), r.IntN(1e6), word(), word(), raw(4), word())
		}},
		{"hex", "\n", func() string { return hex.EncodeToString(raw(32)) }},
		{"uuid", "\n", func() string {
			b := raw(16)
			return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		}},
		{"base64", "\n", func() string { return base64.StdEncoding.EncodeToString(raw(57)) }},
		{"digits", "\n", func() string {
			var b strings.Builder
			for range 30 + r.IntN(60) {
				b.WriteByte(byte('0' + r.IntN(10)))
			}
			return b.String()
		}},
		{"numbers-table", "\n", func() string {
			return fmt.Sprintf("%10.4f %10.4f %10.4f %10.4f", r.NormFloat64()*100, r.NormFloat64(), r.Float64()*1e4, r.NormFloat64())
		}},
		{"capitals", " ", func() string { return strings.ToUpper(word()) + pick("", "", ",", ".", ":", "!") }},
		{"identifiers", pick("\n"), func() string {
			switch r.IntN(3) {
			case 0:
				return word() + capital(word()) + capital(word()) + "()"
			case 1:
				return word() + "_" + word() + "_" + word()
			}
			return strings.ToUpper(word() + "_" + word())
		}},
		{"emoji", "", func() string { return dataEmoji[r.IntN(len(dataEmoji))] }},
		{"emoji-chat", " ", func() string {
			if r.IntN(4) == 0 {
				return dataEmoji[r.IntN(len(dataEmoji))]
			}
			return word()
		}},
		{"symbols", "", func() string {
			return string(dataSymbols[r.IntN(len(dataSymbols))]) + pick("", " ", "  ", string(dataSymbols[r.IntN(len(dataSymbols))]))
		}},
		{"controls", "", func() string {
			return string(rune(pickInt(r, 0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 127))) + pick("", "", word(), fmt.Sprint(r.IntN(100)), "[0m")
		}},
		{"rule-lines", "\n", func() string {
			return strings.Repeat(pick("-", "=", "*", "#", "_", "─", "~", "."), 4+r.IntN(70)) + strings.Repeat("\n", r.IntN(3)) + strings.Repeat(pick(" ", "\t"), r.IntN(30)) + word()
		}},
		// What agents send: definitions of tools, drawings, listings, traces, ids.
		{"tool-schema", ",", func() string { return toolSchema(r, word, ":", ",") }},
		{"tool-schema-spaced", ", ", func() string { return toolSchema(r, word, ": ", ", ") }},
		{"box-table", "\n", func() string { return boxTable(r, word) }},
		{"box-lines", "\n", func() string {
			a, b := 4+r.IntN(30), 3+r.IntN(12)
			return "╭" + strings.Repeat("─", a) + "╮\n│ " + word() + " " + word() + strings.Repeat(" ", b) + "│\n╰" + strings.Repeat("─", a) + "╯"
		}},
		{"tree", "\n", func() string {
			return strings.Repeat("│   ", r.IntN(4)) + pick("├── ", "├── ", "└── ") + word() + pick("", "_"+word(), "-"+word()) + pick("/", ".go", ".py", ".ts", ".md", ".json", ".yaml", "")
		}},
		{"bars", "\n", func() string {
			n := r.IntN(40)
			return fmt.Sprintf("%-10s %s%s %d%%", word(), strings.Repeat(pick("█", "█", "█", "▓"), n), strings.Repeat(pick("░", " "), 40-n), n*100/40)
		}},
		{"markdown-rows", "\n", func() string {
			n := 2 + r.IntN(3)
			head, rule := "|", "|"
			for range n {
				head += pick(" ", "") + word() + pick(" ", "") + "|"
				rule += pick("---", " --- ", ":--", " :---: ", "------") + "|"
			}
			return head + "\n" + rule + "\n" + strings.ReplaceAll(head, "a", "e")
		}},
		{"gauges", "\n", func() string {
			n := r.IntN(30)
			return fmt.Sprintf("%s%-8s %s%s%s %d", pick("", "[", "- "), word(), pick("|", "[", ""), strings.Repeat("█", n)+strings.Repeat(pick(" ", "░", "."), 30-n), pick("|", "]", ""), r.IntN(100))
		}},
		{"diff", "\n", func() string {
			return fmt.Sprintf("diff --git a/%s/%s.go b/%s/%s.go\nindex %x..%x 100644\n--- a/%s/%s.go\n+++ b/%s/%s.go\n@@ -%d,%d +%d,%d @@ func %s(%s int) {\n \t%s := %s()\n-\treturn %s.%s(%s)\n+\tif err := %s.%s(%s); err != nil {\n+\t\treturn err\n+\t}",
				word(), word(), word(), word(), raw(4), raw(4), word(), word(), word(), word(), r.IntN(900), r.IntN(30), r.IntN(900), r.IntN(30), word(), word(), word(), word(), word(), word(), word(), word(), word(), word())
		}},
		{"stack-trace", "\n", func() string {
			switch r.IntN(3) {
			case 0:
				return fmt.Sprintf("  File \"/usr/lib/python3.%d/site-packages/%s/%s.py\", line %d, in %s_%s\n    return self.%s(%s, *args, **kwargs)", 8+r.IntN(6), word(), word(), r.IntN(2000), word(), word(), word(), word())
			case 1:
				return fmt.Sprintf("\tat com.%s.%s.%s%s.%s(%s%s.java:%d)", word(), word(), capital(word()), capital(word()), word(), capital(word()), capital(word()), r.IntN(2000))
			}
			return fmt.Sprintf("%s/%s.(*%s).%s(0xc000%06x, {0x%x, 0x%x})\n\t/home/user/src/%s/%s.go:%d +0x%x", word(), word(), capital(word()), capital(word()), r.IntN(1<<24), r.IntN(1<<20), r.IntN(64), word(), word(), r.IntN(2000), r.IntN(4096))
		}},
		{"ids", "\n", func() string {
			return pick("call_", "toolu_01", "msg_", "req_", "sk-", "usr_", "chatcmpl-") + alphanumeric(r, 20+r.IntN(8)) + pick("", " "+word(), ": "+word()+" "+word())
		}},
		{"passwords", "\n", func() string {
			b := make([]byte, 12+r.IntN(20))
			for i := range b {
				b[i] = byte('!' + r.IntN(94))
			}
			return string(b)
		}},
		{"dna", "\n", func() string {
			b := make([]byte, 60)
			for i := range b {
				b[i] = "ACGT"[r.IntN(4)]
			}
			return string(b)
		}},
		{"base64-in-text", " ", func() string {
			if r.IntN(3) == 0 {
				return base64.StdEncoding.EncodeToString(raw(20 + r.IntN(60)))
			}
			return word() + " " + word() + pick("", ":", ".", ",")
		}},
		{"emoji-lists", "\n", func() string {
			return dataEmoji[r.IntN(len(dataEmoji))] + pick(" ", "  ", " **") + capital(word()) + " " + word() + " " + word() + pick("!", "", " "+dataEmoji[r.IntN(len(dataEmoji))])
		}},
		{"constants", "\n", func() string {
			return strings.ToUpper(word()+"_"+word()+pick("", "_"+word())) + pick("=", " = ", ": ") + pick(fmt.Sprint(r.IntN(1000)), "\""+word()+"\"", word())
		}},
		{"html-table", "", func() string {
			return fmt.Sprintf("<tr class=\"%s-%s\"><td>%s</td><td align=\"right\">%d</td><td><a href=\"/%s/%s?id=%d\">%s %s</a></td></tr>\n", word(), word(), word(), r.IntN(1e5), word(), word(), r.IntN(1e4), word(), word())
		}},
		// Scripts without running text above: their characters at random, so
		// that the weight of the unknown is measured, not supposed.
		{"scripts-2-bytes", "", letters(0x250, 0x7ff, func(c rune) bool {
			return unicode.In(c, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Hebrew, unicode.Arabic)
		})},
		{"scripts-3-bytes", "", letters(0x800, 0xffef, func(c rune) bool {
			return unicode.In(c, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Tamil, unicode.Telugu, unicode.Kannada,
				unicode.Malayalam, unicode.Sinhala, unicode.Thai, unicode.Lao, unicode.Tibetan, unicode.Myanmar, unicode.Georgian, unicode.Hangul,
				unicode.Ethiopic, unicode.Khmer, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Latin, unicode.Greek, unicode.Arabic) || c >= 0x2000 && c < 0x2c00 || c >= 0xe000 && c < 0xf900
		})},
		{"scripts-4-bytes", "", letters(0x10000, 0x1efff, func(c rune) bool { return false })},
		{"han-rare", "", letters(0x4e00, 0x9fff, func(c rune) bool { return false })},
		{"han-extended", "", letters(0x20000, 0x2a6df, func(c rune) bool { return false })},
		{"dna-small", "\n", func() string { return of(r, "acgt", 40+r.IntN(60)) }},
		{"proteins", "\n", func() string {
			return pick("", ">"+of(r, "ABCDEFGHKLMNPQRSTVWXYZ0123456789", 6)+"\n") + of(r, "AACDEEFGGHIKKLLLMNPQRSSTVVWY", 40+r.IntN(60))
		}},
		{"meters", "\n", func() string {
			n := r.IntN(30)
			return fmt.Sprintf("%s%s%s%s %d", word(), pick(" ", ": ", " ["), strings.Repeat(pick("■", "▇", "▓", "█", "●", "▬", "▰"), n), strings.Repeat(pick("□", "░", "·", "○", "▱", "─"), 30-n), r.IntN(100))
		}},
		{"double-rules", "\n", func() string {
			return strings.Repeat(pick("━", "═", "▀", "▄", "─", "-", "=", "▔"), 20+r.IntN(60)) + "\n" + pick("", word(), capital(word())+" "+word())
		}},
		{"middle-dots", "\n", func() string {
			return word() + " " + pick("·", "•", "—", "–", "→", "|", "»") + " " + word() + pick("", " · "+fmt.Sprint(r.IntN(100)), " … "+word())
		}},
	}
	var out []generatedKind
	for _, k := range kinds {
		g := generatedKind{kind: k.name}
		for range 6 {
			var b strings.Builder
			chars := 0
			for chars < 450 {
				s := k.make()
				if b.Len() > 0 {
					b.WriteString(k.sep)
				}
				b.WriteString(s)
				chars += len([]rune(s)) + len(k.sep)
			}
			g.pieces = append(g.pieces, []byte(b.String()))
		}
		out = append(out, g)
	}
	// What one character costs in a row shows only in pieces with rows of no other.
	rows := generatedKind{kind: "rows"}
	for _, c := range "─━═│┄▀▄█▇▓▒░■□▪▬▰▱●○·-=#*_~" {
		for range 2 {
			var b strings.Builder
			for b.Len() < 450 {
				fmt.Fprintf(&b, "%s%s%s\n", pick("", "", word()+" "), strings.Repeat(string(c), 3+r.IntN(70)), pick("", " "+word(), "\n"+capital(word())))
			}
			rows.pieces = append(rows.pieces, []byte(b.String()))
		}
	}
	return append(out, rows)
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
