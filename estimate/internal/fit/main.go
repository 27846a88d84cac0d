// Command fit makes the weights of package estimate and measures them.
//
//	fit collect ...   cut the corpora out of unpacked packages, with exact counts
//	fit weights       fit the weights to the fit half of the corpus, write weights_table.go
//	fit renew         write the pieces that this program makes again
//	fit texts, merge  write the texts for counts.mjs, and read its counts
//	fit unseen        measure the weights on unpacked packages, write UNSEEN.md
//	fit errors        measure the weights on the held-out half, write ERRORS.md
//
// "go generate" in package estimate runs weights and errors. They read the exact
// counts stored with the corpus, so they need no tokenizer and the same table
// comes out on every machine.
package main

import (
	"encoding/json"
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
		return fmt.Errorf("usage: fit collect|renew|weights|texts|merge|unseen|errors [flags]")
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
	if verb == "unseen" { // needs no corpus: so it runs from any folder
		doc, err := unseen(*other)
		if err != nil {
			return err
		}
		return os.WriteFile(*out, doc, 0o644)
	}
	pieces, err := corpus.Read(*dir)
	if err != nil {
		return err
	}
	switch verb {
	case "weights":
		src, err := tableSource(fitAll(pieces, *without, families))
		if err != nil {
			return err
		}
		return os.WriteFile(*out, src, 0o644)
	case "texts":
		return writeTexts(*out, pieces)
	case "renew":
		return renew(*dir, pieces)
	case "merge":
		return merge(*dir, pieces, *other)
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

// writeTexts writes the texts for the tokenizers of other makers, which are no Go.
func writeTexts(name string, pieces []corpus.Piece) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range pieces {
		if err := json.NewEncoder(f).Encode([]byte(p.Text)); err != nil { // base64: not all is UTF-8
			return err
		}
	}
	return f.Close()
}

// merge adds counts of other vocabularies to the corpus: a file with a line of JSON for
// each piece, an object of counts by name.
func merge(dir string, pieces []corpus.Piece, counts string) error {
	f, err := os.Open(counts)
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	for i := range pieces {
		if err := d.Decode(&pieces[i].Tokens); err != nil { // beside those that are there
			return fmt.Errorf("%s: piece %d: %w", counts, i, err)
		}
	}
	return corpus.Write(dir, pieces)
}
