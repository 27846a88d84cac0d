package estimate

import (
	"math"
	"math/big"
	"strings"
	"testing"
)

// plainStringEnd is stringEnd, one byte after the other.
func plainStringEnd(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}

func FuzzStringEnd(f *testing.F) {
	for _, s := range []string{``, `"`, `\`, `\"`, `\\"`, `\\\"`, `abcdefg"`, `abcdefgh"`, `abcdefg\"x"`, `abcdefgh\\"`, `0123456789abcdef\`, `0123456789abcdef"`,
		strings.Repeat("x", 100) + `\"` + strings.Repeat("y", 100) + `"`, strings.Repeat(`\\`, 50) + `\""`, strings.Repeat(`\"`, 50) + `"`, "#!\"", "[]\\]\"", "\xdc\xa2\""} {
		f.Add([]byte(s))
		f.Add([]byte(strings.Repeat("x", 29) + s + strings.Repeat(" ", 9)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for start := range min(len(b), 20) + 1 {
			if got, want := stringEnd(b, start), plainStringEnd(b, start); got != want {
				t.Fatalf("%q from %d: %d, want %d", b, start, got, want)
			}
		}
	})
}

// FuzzInteger compares with exact arithmetic.
func FuzzInteger(f *testing.F) {
	for _, s := range []string{"0", "7", "-7", "+7", "1.5", "1.0", "0.7e1", "1e2", "1E+2", "1e-2", "100e-2", "9223372036854775807", "9223372036854775808", "1e18", "1e19", " 7 ",
		"7.", ".7", "7e", "7e+", "", "1e400", "1e-400", "0e400", "00012", "92233720368547758.07e2", "92233720368547758.08e2", "1.2.3", "1e1e1", "0x10", "NaN", "1_000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := integer([]byte(s))
		if n < 0 || n > 0 && !ok {
			t.Fatalf("%q: %d, %v", s, n, ok)
		}
		if !ok || strings.Contains(s, "_") || len(s) > 100 {
			return
		}
		trimmed := strings.TrimSpace(s)
		if i := strings.IndexAny(trimmed, "eE"); i >= 0 && len(strings.TrimLeft(trimmed[i+1:], "+-0")) > 3 {
			return // more than big.Rat should be asked for
		}
		x, valid := new(big.Rat).SetString(trimmed)
		if !valid {
			t.Fatalf("%q is no number, read as %d", s, n)
		}
		want := new(big.Int).Add(x.Num(), new(big.Int).Sub(x.Denom(), big.NewInt(1)))
		want.Div(want, x.Denom())
		if most := big.NewInt(math.MaxInt64); want.Cmp(most) > 0 {
			want = most
		}
		if want.Cmp(big.NewInt(n)) != 0 {
			t.Fatalf("%q: %d, want %v", s, n, want)
		}
	})
}

// A backslash that begins no escape is itself, and
// nothing behind it is lost.
func TestWhatIsNoEscapeStaysAsItIs(t *testing.T) {
	for raw, want := range map[string]string{
		`\`: `\`, `\q`: `\q`, `a\`: `a\`, `\u`: `\u`, `\u12`: `\u12`, `\uzzzz`: `\uzzzz`, `\u12g4`: `\u12g4`, `\x41`: `\x41`, `\U0041`: `\U0041`,
		`\ud83d`: "\ufffd", `\ud83d\`: "\ufffd\\", `\ud83d\u`: "\ufffd\\u", `\ud83d\n`: "\ufffd\n", `\ude00\ud83d`: "\ufffd\ufffd",
		"\\\xff": "\\\ufffd", "\xe4\xba\\n": "\ufffd\ufffd\n",
	} {
		if got := string(AppendText(nil, []byte(raw))); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
		if got, want := characters([]byte(raw)), Runes([]byte(want)); got != want {
			t.Errorf("%q: %d characters, want %d", raw, got, want)
		}
		if got, want := CountJSON([]byte(raw)), Count([]byte(want)); got != want {
			t.Errorf("%q: %d milli-tokens, want %d", raw, got, want)
		}
	}
}
