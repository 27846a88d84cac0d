package main

import (
	"fmt"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/tripmeter/tripmeter/estimate/internal/fit/corpus"
)

// The patterns by which the two encodings split a text before they merge, as
// the tiktoken library states them.
const (
	patternCL100k = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternO200k  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// codec builds an exact counter from the ranks embedded in the loader module.
// It goes round the library's package variables, which are shared by the whole
// process, and reads no network.
func codec(file, pattern string) (*tiktoken.Tiktoken, error) {
	ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	bpe, err := tiktoken.NewCoreBPE(ranks, nil, pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return tiktoken.NewTiktoken(bpe, &tiktoken.Encoding{Name: file, PatStr: pattern, MergeableRanks: ranks}, nil), nil
}

// count writes the exact counts into the pieces.
func count(pieces []corpus.Piece) error {
	o, err := codec("o200k_base.tiktoken", patternO200k)
	if err != nil {
		return err
	}
	c, err := codec("cl100k_base.tiktoken", patternCL100k)
	if err != nil {
		return err
	}
	for i := range pieces {
		s := string(pieces[i].Text)
		if pieces[i].Tokens == nil {
			pieces[i].Tokens = map[string]int64{}
		}
		pieces[i].Tokens["o200k"] = int64(len(o.EncodeOrdinary(s)))
		pieces[i].Tokens["cl100k"] = int64(len(c.EncodeOrdinary(s)))
	}
	return nil
}
