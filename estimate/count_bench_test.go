package estimate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// benchTexts are 64 kB each.
var benchTexts = []struct{ name, unit string }{
	{"english", "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience.\n"},
	{"code", "\tif err := w.Flush(); err != nil {\n\t\treturn fmt.Errorf(\"%s: line %d: %w\", name, line, err)\n\t}\n"},
	{"json", `{"id": 48213, "name": "river ticket", "score": 97.125, "tags": ["owner", "cache"], "active": true},` + "\n"},
	{"hex", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"},
	{"digits", "3141592653589793238462643383279502884197169399375105820974944592\n"},
	{"french", "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison.\n"},
	{"vietnamese", "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.\n"},
	{"russian", "Все люди рождаются свободными и равными в своем достоинстве и правах.\n"},
	{"hindi", "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।\n"},
	{"chinese", "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。\n"},
	{"emoji", "😀👍🏽🎉🔥👩‍💻🇯🇵❤️"},
	{"invalid", "\xff\xc0\xe2\x28\xf0\x9f"},
	{"rules", "======== ---- "},
	{"boxes", "│ ──── ┼─┤ ██░░ "},
	{"letters and boxes", "b█"},
	{"marks and half characters", "=====\xe2"},
	{"quotes", `"`},
	{"backslashes", `\`},
}

func benchText(unit string) []byte { return bytes.Repeat([]byte(unit), 64<<10/len(unit)+1)[:64<<10] }

func BenchmarkCount(b *testing.B) {
	for _, t := range benchTexts {
		text := benchText(t.unit)
		b.Run(t.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Count(text)
			}
		})
	}
}

func BenchmarkCountJSON(b *testing.B) {
	for _, t := range benchTexts {
		raw, err := json.Marshal(string(benchText(t.unit)))
		if err != nil {
			b.Fatal(err)
		}
		raw = raw[1 : len(raw)-1]
		b.Run(t.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				CountJSON(raw)
			}
		})
	}
	for _, t := range benchTexts[7:8] {
		raw := []byte(strings.Repeat(`\u0412\u0441\u0435 \u043b\u044e\u0434\u0438 `, 1000))
		b.Run(t.name+"-all-escaped", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				CountJSON(raw)
			}
		})
	}
}

func BenchmarkCountShort(b *testing.B) {
	text := []byte("Say hello to the world in 3 languages, please.")
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Count(text)
	}
}
