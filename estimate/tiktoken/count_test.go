package tiktoken

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// hardStrings are the texts on which splitters differ from the original, by
// category.
func hardStrings() map[string][]string {
	hard := map[string][]string{
		"nothing and blanks": {"", " ", "  ", "\n", "\r\n", "\t", " \n", "\n ", " \n \n", " \n \n ", "\n\n\n", "\r\r", "\n\r", "   \n   \n", "a \n b", "a  b", "a   b",
			" a", "  a", "   a", "a ", "a  ", "\ta", "\t\ta", " \ta", "\t a", "a\n", "a\n\n", "a \n", "a\n ", "\u00a0", "\u00a0a", "a\u00a0", "\u00a0\u00a0a", " \u00a0", "\u00a0 ", "\u3000", "\u3000a", "\u3000\u3000あ",
			"\u2028", "\u2028a", "a\u2028\n", "\u0085", "\u0085a", "\u0085\n", "a\u0085b", "\v", "\f", "a\vb", "\v\f\n", "\u1680x", "\u202f1", "\u205f/", "\u200b", "\u200bx", "\u180ex"},
		"special token text": {"<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "<|im_start|>user\n", "<|im_end|>", "<|endoftext|", "<||>", "a<|endoftext|>b", " <|endoftext|>", "<|endoftext|><|endoftext|>", "<|start|>assistant<|message|>", "<|channel|>final", "<|return|>"},
		"contractions": {"I'm", "I'M", "it's", "IT'S", "It'S", "we're", "WE'RE", "we'Re", "we'rE", "they've", "THEY'VE", "I'll", "I'LL", "I'lL", "I'd", "can't", "CAN'T", "'s", "'S", " 's", "''s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'l", "'r", "'v", "'e", "'x", "'",
			"a'", "a'l", "a'r", "a'v", "a'ss", "a'sss", "a'llama", "a'really", "a'ved", "A'Sa", "x's's", "x''s", "don’t", "don't've", "'sa", "1's", "!'s", " 'll", "é's", "中's", "中'S中", "ж'd", "A's", "ABC's", "ABC'sd", "abc'SD", "'T", "'Tis", "o'clock", "d'été", "l'été", "rock'n'roll",
			"it'ſ", "'ſ", "a'ſb", "a'K", "a\u0301's", "\u0301's", "中\u0301'll"},
		"digits":                 {"0", "1", "12", "123", "1234", "12345", "123456", "1234567", "1 2 3", "1,234,567.89", "3.14", "-1", "+1", "1e10", "0x1F", "٣", "٣٤٥٦", "１２３４", "²", "x²", "²³¹⁰", "½", "Ⅳ", "Ⅳa", "aⅣ", "①②③④", "1²3", "12Ⅳ5", " 1", "  1", " 12345", "a1b2", "1a", "१२३४", "৳100", "𝟏𝟐𝟑𝟒", "1\u0301", "1234\u03015"},
		"case":                   {"a", "A", "aB", "Ab", "AB", "aBC", "ABc", "AbC", "ABCdef", "abcDEF", "aBcDeF", "HTTPServer", "XMLHttpRequest", "iPhone", "McDonald", "ΑΒΓ", "αβγ", "ΑβΓ", "ЖЗИ", "жЗи", "ǅ", "ǅa", "aǅ", "Aǅ", "ǅA", "ǅǅ", "ʰ", "ʰa", "Aʰ", "ʰA", "AʰB", "AʰBc", "ªº", "Aª", "İ", "ı", "ß", "ẞ", "ŉ", "ꭓ", "Ꭰ", "ꭰ", "Ა", "ა", "Აა", "𐐀𐐨", "𐐨𐐀", "ﬁ", "Å", "K"},
		"letters without case":   {"中", "中文", "A中", "中A", "A中B", "A中Bc", "AB中CD", "a中b", "中a", "中Aa", "aA中", "日本語テキスト", "ひらがなカタカナ", "ー", "カー", "한국어", "ไทย", "ภาษาไทย", "ქართული", "አማርኛ", "עברית", "العربية", "हिन्दी", "தமிழ்", "മലയാളം", "မြန်မာ", "ខ្មែរ", "བོད་ཡིག", "中,文", "中。文", "「中」", "中中中中中中中中中中中中中中中中中中中中", "𠀀𠀁", "〇", "々"},
		"marks":                  {"\u0301", "a\u0301", "A\u0301", "A\u0301B", "A\u0301b", "\u0301a", "\u0301A", "\u0301AB", "\u0301Ab", " \u0301", " \u0301a", " \u0301A", "!\u0301", "!!\u0301", "!\u0301a", "!\u0301A", "!!\u0301a", "\u0301\u0301", "\u0301\u0301A", "\u0301!", "1\u0301", "\n\u0301", "\n\u0301a", "\t\u0301A", "e\u0301\u0302\u0303", "\u0903", "क\u094d\u0937", "\u20dd", "A\u20dd", "a\ufe0f", "\ufe0f", "\U000e0100", "A\U000e0100B", "\u034f", "\u0301's", "A\u0301's", "\u0301\n", "\u0301/", "中\u0301A", "\u0301中A"},
		"punctuation":            {"!", "!!", "!\n", "!\n\n", "!\r\n", "! \n", "!/", "!\n/", "!\n/\n", "/", "//", "/\n", "\n/", "\n//", " /", " !", "  !", " !!", " !a", "!a", "!!a", "!A", "!1", "!!1", "! a", "a!", "a/b", "a//b", "a/\n/b", "http://a.b/c?d=e&f#g", "...", "…", "—", "«a»", "“a”", "¿a?", "¡A!", "$1", "€1", "a_b", "__a__", "_", "a-b", "--", "->", "=>", "{}", "();", "\");\n", "\\n", "\\", "\"", "`", "@a", "#a", "%20", "^", "~", "|", "||"},
		"emoji":                  {"😀", "😀😀", " 😀", "😀a", "a😀", "👩‍💻", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇩🇪🇫🇷", "👍🏽", "1️⃣", "#️⃣", "☺️", "☺", "❤️", "©", "®", "™", "★", "✓", "😀\n", "😀/", "\U0001fae8", "\U0001f9d1\u200d\U0001f384"},
		"controls":               {"\x00", "\x00a", "a\x00b", "\x01\x02", "\x7f", "a\x7fb", "\x7f\x7f", " \x7f", "\x1b[31mred\x1b[0m", "\b", "\a", "\u0080", "a\u0080b", "\u009f", "\u00ad", "a\u00adb", "\u200d", "a\u200db", "\u200c", "\u2060", "\ufeff", "\ufeffa", "a\ufeffb", "\ufeff\n", " \ufeff", "\u202e", "\ufffe", "\uffff", "\ufffd", "a\ufffd", "\U0010ffff", "\U000e0001"},
		"unassigned and private": {"\u0378", "a\u0378", "\u0378a", "\u0378A", " \u0378", "\u0378\n", "\u0378/", "\ue000", "a\ue000b", "\U000f0000", "\U00030000", "\U0001fbff", "\U000323b0", "\u2fe0", "\ufdd0", "\U0001c000", "\u0870", "\u1c89", "\u1c8a", "\ua7cb", "\U00010d40", "\U0001e5d0", "\u0897", "\u1acf", "\U00011bc0"},
		"invalid UTF-8":          {"\xff", "a\xff", "\xffa", "\xffA", "\xff\xff", "\x80", "\xc0\x80", "\xc3", "\xc3a", "\xe4\xb8", "\xe4\xb8中", "中\xe4", "\xf0\x9f\x98", "\xf0\x9f\x98a", "\xed\xa0\x80", "\xed\xa0\xbd\xed\xb8\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe\xfe", " \xff", "\xff ", "\xff\n", "\xff/", "1\xff", "a\xe9t\xe9", "\xffs", "'\xff", "it'\xff", "\xef\xbf", "\xef\xbb"},
	}
	var runs []string
	for _, s := range []string{"a", "A", "é", "中", " ", "\n", "\r\n", "\t", "!", "/", "1", "\u0301", "😀", "_", "-", "=", "aA", "Aa", "ab", " a", " \n", "'s", "\x00", "\xff", "\u00a0", "ǅ", "ー", "0x"} {
		for _, n := range []int{2, 3, 5, 17, 64, 65, 129, 300} {
			runs = append(runs, strings.Repeat(s, n), "x"+strings.Repeat(s, n)+"y")
		}
	}
	hard["runs"] = runs
	return hard
}

func TestHardStringsAreCountedAsByTheReference(t *testing.T) {
	c := New(Options{})
	total := 0
	for name, list := range hardStrings() {
		total += len(list)
		t.Run(name, func(t *testing.T) {
			for i, s := range list {
				for e := range encodings {
					if !raceEnabled || (i+int(e))%8 == 0 {
						compare(t, c, e, s)
					}
				}
			}
		})
	}
	if total < 300 {
		t.Errorf("%d hard strings, want at least 300", total)
	}
}

// TestRandomStringsAreCountedAsByTheReference puts hard parts together at random.
func TestRandomStringsAreCountedAsByTheReference(t *testing.T) {
	c := New(Options{})
	var parts []string
	for name, list := range hardStrings() {
		if name != "runs" {
			parts = append(parts, list...)
		}
	}
	alphabet := []string{"a", "b", "A", "B", "s", "S", "'", " ", "\n", "\r", "\t", "1", ".", "/", "!", "\u0301", "é", "É", "中", "ǅ", "ʰ", "\u00a0", "\xff", "\xe4", "😀", "ж", "Ж", "²", "\u0378", "\x7f"}
	r := rand.New(rand.NewPCG(7, 8))
	n := 12000
	if raceEnabled {
		n = 600
	}
	for i := range n {
		from := alphabet
		if i%2 == 0 {
			from = parts
		}
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(from[r.IntN(len(from))])
		}
		compare(t, c, Encoding(i%int(encodings)), b.String())
		compare(t, c, O200kBase, b.String())
		if t.Failed() {
			return
		}
	}
}

// Text that spells a special token is text.
func TestTheTextOfSpecialTokensIsText(t *testing.T) {
	c := New(Options{})
	for _, s := range hardStrings()["special token text"] {
		for e := range encodings {
			compare(t, c, e, s)
			compare(t, c, e, "before "+s+" after")
		}
		if !strings.HasPrefix(s, "<||") && c.CountString("gpt-4o", s) < 3 {
			t.Errorf("%q counts as %d tokens: as a special token?", s, c.CountString("gpt-4o", s))
		}
	}
}

// TestClassesAreThoseOfUnicode checks the class of every code point against package unicode, in
// the words of the patterns.
func TestClassesAreThoseOfUnicode(t *testing.T) {
	table := classes()
	var b [utf8.UTFMax]byte
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		n := utf8.EncodeRune(b[:], r)
		got, w := table.at(b[:n], 0)
		if w != n {
			t.Fatalf("%U: %d bytes, want %d", r, w, n)
		}
		want := uint8(0)
		for _, c := range []struct {
			is  bool
			bit uint8
		}{
			{unicode.In(r, unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M), upper},
			{unicode.In(r, unicode.Ll, unicode.Lm, unicode.Lo, unicode.M), lower},
			{unicode.IsLetter(r), letter},
			{unicode.IsNumber(r), number},
			{unicode.IsSpace(r), space},
			{r == '\r' || r == '\n', newline},
		} {
			if c.is {
				want |= c.bit
			}
		}
		if got != want {
			t.Fatalf("%U: class %06b, want %06b", r, got, want)
		}
	}
}

// TestClassesChangeAtTheirBorders takes the characters at which the class changes, several
// thousand, and lets the reference judge each in the places where it matters.
func TestClassesChangeAtTheirBorders(t *testing.T) {
	c := New(Options{})
	table := classes()
	last, n := uint8(255), 0
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		s := string(r)
		class, _ := table.at([]byte(s), 0)
		if class == last {
			continue
		}
		last = class
		n++
		if raceEnabled && n%20 > 0 {
			continue
		}
		for _, text := range []string{
			fmt.Sprintf("a%sb A%sB %s! %s1 ", s, s, s, s) + s + "\n" + s,
			fmt.Sprintf("!%sA\n%sa\t%s%s'%s", s, s, s, s, s),
		} {
			compare(t, c, Encoding(n%2), text) // o200k_base, cl100k_base in turn
			if n%8 == 0 {
				compare(t, c, R50kBase, text)
			}
		}
		if t.Failed() {
			t.Fatalf("at %U", r)
		}
	}
	if n < 2000 {
		t.Errorf("%d borders, want at least 2,000", n)
	}
}

// FuzzCount looks for a text that the reference counts differently.
func FuzzCount(f *testing.F) {
	for name, list := range hardStrings() {
		for i, s := range list {
			if name != "runs" || i%16 == 0 {
				f.Add([]byte(s))
			}
		}
	}
	for _, s := range []string{"The quick brown fox jumps over the lazy dog.", "func (c *Counter) Count(model string) int64 {\n\treturn 0\n}\n", `{"a":[1,2.5,"x\ny"],"b":null}`, "Übergrößenträger GmbH & Co. KG"} {
		f.Add([]byte(s))
	}
	c := New(Options{})
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1024 {
			return // the reference is quadratic
		}
		compare(t, c, O200kBase, string(text))
		compare(t, c, CL100kBase, string(text))
	})
}
