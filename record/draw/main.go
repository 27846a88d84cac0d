// Draw draws recordings of package record as a picture.
//
//	go run ./record/draw -o run.svg retrying.jsonl tripmeter.jsonl
//
// Each file is a column, all on the same scales. The name over a column is that of
// its file.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tripmeter/tripmeter/record"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "draw:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	fs := flag.NewFlagSet("draw", flag.ContinueOnError)
	fs.SetOutput(stderr)
	out := fs.String("o", "", "the picture to write; required")
	title := fs.String("title", "", "what stands over it")
	tokens := fs.Int64("tpm", 0, "tokens a minute that the limit allows, to be drawn beside what was served")
	held := fs.Int64("held", 0, "tokens that were there at the start")
	small := fs.Bool("small", false, "leave out how long calls took")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *out == "" || fs.NArg() == 0 {
		return errors.New("give -o and at least one recording: draw -o run.svg run.jsonl")
	}
	var runs []record.Run
	for _, name := range fs.Args() {
		events, err := record.ReadFile(name)
		if err != nil {
			return err
		}
		runs = append(runs, record.Run{Name: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), Events: events})
	}
	f, err := os.Create(*out)
	if err != nil {
		return err
	}
	return errors.Join(record.Draw(f, record.Options{Title: *title, Tokens: *tokens, Held: *held, Small: *small}, runs...), f.Close())
}
