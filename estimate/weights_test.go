package estimate

import (
	"encoding/base64"
	"testing"

	"github.com/tripmeter/tripmeter/estimate/internal/fit/corpus"
)

// readCorpus returns the pieces under testdata/corpus.
func readCorpus(t testing.TB) []corpus.Piece {
	t.Helper()
	p, err := corpus.Read("testdata/corpus")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// simple counts as the documentation of the table reads, one character at a time.
func simple(tab *table, text []byte) int64 {
	bigrams, err := base64.StdEncoding.DecodeString(tab.bigrams)
	if err != nil {
		panic(err)
	}
	sum := int64(0)
	last, digits, blanks := rune('\n'), 0, 0
	same, row, longer := 0, 0, 0 // characters before that are the same; letters before of the same case, and those after 22 of them
	third := func() int {
		if same >= 2 {
			return 1
		}
		return 0
	}
	endRow := func(c class) {
		if longer > 0 {
			sum += int64(longer) * int64(tab.long[c-classLower])
		}
		row, longer = 0, 0
	}
	for _, r := range string(text) {
		from, to := classOf(asByte(last)), classOf(asByte(r))
		if from != to {
			digits, blanks = 0, 0
			endRow(from)
			sum += int64(tab.meet[from][to])
		}
		switch {
		case to == classWide && r == last && r >= 0x2500 && r < 0x25c0:
			sum += int64(tab.box[r-0x2500][third()])
		case to == classWide:
			for _, s := range tab.wide {
				if r <= s.last {
					sum += int64(s.weight)
					break
				}
			}
		case to == classDigit:
			if digits%3 == 0 {
				sum += int64(tab.digit[0])
			} else {
				sum += int64(tab.digit[1])
			}
			digits++
		case to == classSpace && from == classSpace:
			sum += int64(tab.repeated[0])
		case to == classLine && from == classLine:
			sum += int64(tab.repeated[1])
		case to == classPunct && r == last:
			if same >= 8 {
				sum += int64(tab.repeated[4])
			} else {
				sum += int64(tab.repeated[2+third()])
			}
		default:
			sum += int64(tab.ascii[r])
			if last >= ' ' && last < 0x7f && r >= ' ' && r < 0x7f {
				sum += 10 * int64(int8(bigrams[int(last-' ')*95+int(r-' ')]))
			}
		}
		if to == classLower || to == classUpper {
			if row >= 22 && r != last {
				longer++
			}
			row++
		}
		if r == last {
			same++
		} else {
			same = 1
		}
		if to == classSpace {
			if blanks++; blanks == 2 {
				sum += int64(tab.run)
			}
		}
		last = r
	}
	if row > 0 {
		endRow(classOf(asByte(last)))
	}
	return sum
}

func asByte(r rune) byte {
	if r >= 0x80 {
		return 0x80
	}
	return byte(r)
}

func TestCountIsTheTable(t *testing.T) {
	n := 0
	for i, p := range readCorpus(t) {
		if i%8 != 0 {
			continue
		}
		for f, tab := range tables {
			for cut := range 9 { // every alignment of the eight-byte words
				text := p.Text[min(cut, len(p.Text)):]
				if got, want := CountFor(Family(f), text), simple(tab, text); got != want {
					t.Fatalf("%s %s family %d from %d: %d, the table says %d", p.Source, p.Kind, f, cut, got, want)
				}
			}
			n++
		}
	}
	if n == 0 {
		t.Fatal("no piece")
	}
}
