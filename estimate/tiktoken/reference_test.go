package tiktoken

import (
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	ref "github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// The reference is github.com/pkoukk/tiktoken-go, fed from the files of its
// offline loader and built through its constructors, never through its globals.
// It counts with a regular expression and the plain quadratic merge.

const (
	patternO200k = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternCL100k = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternGPT2   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
)

var patterns = [encodings]string{patternO200k, patternCL100k, patternGPT2, patternGPT2}

// modelFor is a model of each encoding.
var modelFor = [encodings]string{"gpt-4o", "gpt-4", "text-davinci-003", "davinci"}

type reference struct {
	ranks map[string]int
	enc   *ref.Tiktoken
}

var references = func() (all [encodings]func() (*reference, error)) {
	for e := range encodings {
		all[e] = sync.OnceValues(func() (*reference, error) {
			ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(e.String() + ".tiktoken")
			if err != nil {
				return nil, err
			}
			specials := map[string]int{ref.ENDOFTEXT: 1 << 20}
			core, err := ref.NewCoreBPE(ranks, specials, patterns[e])
			if err != nil {
				return nil, err
			}
			enc := &ref.Encoding{Name: e.String(), PatStr: patterns[e], MergeableRanks: ranks, SpecialTokens: specials}
			return &reference{ranks, ref.NewTiktoken(core, enc, map[string]any{ref.ENDOFTEXT: true})}, nil
		})
	}
	return all
}()

func referenceFor(t testing.TB, e Encoding) *reference {
	t.Helper()
	r, err := references[e]()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// count is the reference's count of text as plain text.
func (r *reference) count(text string) int64 { return int64(len(r.enc.EncodeOrdinary(text))) }

// compare fails if our count of text differs from the reference's.
func compare(t testing.TB, c *Counter, e Encoding, text string) {
	t.Helper()
	want := referenceFor(t, e).count(text)
	if got := c.CountString(modelFor[e], text); got != want {
		if len(text) > 200 {
			text = text[:200] + "..."
		}
		t.Errorf("%v: Count(%q) = %d, want %d", e, text, got, want)
	}
}

// pieces cuts a text into parts of at most n bytes, n at least 4, between
// characters and, if there is one in the second half, behind a line end.
func pieces(text string, n int) []string {
	var out []string
	for len(text) > n {
		cut := n
		for cut > n-4 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		if i := strings.LastIndexByte(text[:cut], '\n'); i > n/2 {
			cut = i + 1
		}
		out = append(out, text[:cut])
		text = text[cut:]
	}
	return append(out, text)
}
