package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/estimate/internal/fit/corpus"
)

func readCorpus(t *testing.T) []corpus.Piece {
	t.Helper()
	p, err := corpus.Read("../../testdata/corpus")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The committed table and the published errors are what the committed corpus
// gives, so neither can be edited nor go stale.
func TestCommittedFilesAreReproducible(t *testing.T) {
	pieces := readCorpus(t)
	fit := fitAll(pieces, "", families)
	src, err := tableSource(fit)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := errorsDoc(pieces)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		name string
		want []byte
	}{{"../../weights_table.go", src}, {"../../testdata/corpus/ERRORS.md", doc}} {
		got, err := os.ReadFile(f.name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, f.want) {
			t.Errorf("%s is not what the corpus gives: run go generate ./estimate", f.name)
		}
	}

	// Package estimate counts with the fitted weights.
	for _, p := range pieces {
		for _, f := range families {
			if got, want := byWeights(f.family, p.Text), fit[f.name].estimate(p.Text); got != want {
				t.Fatalf("%s %s %s: package estimate counts %v, the features say %v", f.name, p.Source, p.Kind, got, want)
			}
		}
	}
}

// The counts beside the pieces are those of the vocabularies. A sample is
// counted again: all of them take many seconds.
func TestStoredCountsAreExact(t *testing.T) {
	var sample []corpus.Piece
	for i, p := range readCorpus(t) {
		if i%15 == 0 {
			sample = append(sample, p)
		}
	}
	again := append([]corpus.Piece(nil), sample...)
	for i := range again {
		again[i].Tokens = nil
	}
	if err := count(again); err != nil {
		t.Fatal(err)
	}
	for i, p := range sample {
		for _, name := range []string{"o200k", "cl100k"} {
			if a := again[i].Tokens[name]; a != p.Tokens[name] {
				t.Errorf("%s %s: %d stored for %s, counted %d", p.Source, p.Kind, p.Tokens[name], name, a)
			}
		}
	}
	if len(sample) == 0 {
		t.Fatal("no piece")
	}
}

func TestEveryKindHasPiecesInBothHalves(t *testing.T) {
	fit, held := map[string]int{}, map[string]int{}
	text := map[string]bool{}
	for _, p := range readCorpus(t) {
		if text[string(p.Text)] {
			t.Errorf("%s %s: a piece is there twice", p.Source, p.Kind)
		}
		text[string(p.Text)] = true
		if p.Held {
			held[p.Source+" "+p.Kind]++
		} else {
			fit[p.Source+" "+p.Kind]++
		}
	}
	for k := range fit {
		if held[k] == 0 {
			t.Errorf("%s: nothing held out", k)
		}
	}
	if len(fit) < 100 {
		t.Errorf("only %d kinds of text", len(fit))
	}
}

// A weight that was never seen is that of its family, not nothing.
func TestEveryCharacterCosts(t *testing.T) {
	for r := rune(0); r <= 0x10ffff; r++ {
		if r >= 0x800 {
			r |= 63 // the last of those that share a weight
		}
		switch {
		case r >= 0xd800 && r < 0xe000: // surrogates
			continue
		case r >= '0' && r <= '9', r == ' ', r == '\t', r == '\n', r == '\r':
			continue // judged by where they stand
		}
		for _, f := range families {
			before := estimate.CountFor(f.family, []byte(string(r)))
			if n := estimate.CountFor(f.family, []byte(string(r)+string(r))) - before; n <= 0 || before <= 0 {
				t.Fatalf("%s: U+%04X costs %d, and %d when repeated", f.name, r, before, n)
			}
		}
	}
}

// Dense digits are undercounted. Arrays of 2,000 numbers of every usual
// length and form are counted with the vocabularies.
func TestDenseDigitsAreNotUndercounted(t *testing.T) {
	var pieces []corpus.Piece
	r := rand.New(rand.NewPCG(20, 74))
	for _, sep := range []string{",", ", ", ",\n  "} {
		for _, n := range []int{10, 1000, 100_000_000} {
			var b bytes.Buffer
			for i := range 2000 {
				if i > 0 {
					b.WriteString(sep)
				}
				fmt.Fprint(&b, r.IntN(n))
			}
			pieces = append(pieces, corpus.Piece{Kind: fmt.Sprintf("numbers below %d, %q between", n, sep), Text: fmt.Appendf(nil, "[%s]", &b)})
		}
		var b bytes.Buffer
		for range 2000 {
			fmt.Fprintf(&b, "%.*f%s", 1+r.IntN(6), r.NormFloat64()*100, sep)
		}
		pieces = append(pieces, corpus.Piece{Kind: fmt.Sprintf("decimals, %q between", sep), Text: fmt.Appendf(nil, "[%s0]", &b)})
	}
	if err := count(pieces); err != nil {
		t.Fatal(err)
	}
	for _, p := range pieces {
		for _, f := range families[:2] { // those that are counted here
			e := byWeights(f.family, p.Text)/exact(f.family, p) - 1
			t.Logf("%s: %s: %+.1f %%", f.name, p.Kind, 100*e)
			if e < -0.25 || e > 0.5 {
				t.Errorf("%s: %s: %+.1f %% of %v tokens", f.name, p.Kind, 100*e, exact(f.family, p))
			}
		}
	}
}
