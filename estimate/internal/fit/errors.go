package main

import "github.com/tripmeter/tripmeter/estimate/internal/fit/corpus"

func errorsDoc(p []corpus.Piece) ([]byte, error) { return nil, nil }
func printOther(p []corpus.Piece)                {}
