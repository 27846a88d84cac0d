// Package corpus reads and writes the pieces of text that the class weights
// are fitted to and tested against.
//
// A file is a sequence of pieces. Each has a header line, then exactly as
// many bytes as the header names, then a newline:
//
//	%% udhr deu fit 912 cl100k=243 o200k=201
//	Da die Anerkennung der angeborenen Würde ...
//
// The words are the source, the language or kind, the half ("fit" or "held"),
// the length in bytes and the exact token counts, by vocabulary. Lengths rather than escapes
// keep every byte of a piece as it was counted.
package corpus

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// A Piece is one text with its exact counts.
type Piece struct {
	Source string // file it came from: "udhr", "handbook", "code", "data"
	Kind   string // language or kind of text, one word
	Held   bool   // true: never used for fitting
	Text   []byte
	Tokens map[string]int64 // exact tokens by vocabulary
}

// Natural reports whether the piece is natural language.
func (p Piece) Natural() bool { return p.Source != "code" && p.Source != "more" && p.Source != "data" }

// Parse reads the pieces of one file. Anything that does not fit the format,
// a length that does not end at a newline among it, is an error: a checkout
// that changed line ends must not pass for the corpus.
func Parse(b []byte) ([]Piece, error) {
	var out []Piece
	for len(b) > 0 {
		line, rest, ok := bytes.Cut(b, []byte("\n"))
		if !ok {
			return nil, fmt.Errorf("piece %d: header without end", len(out))
		}
		fields := strings.Fields(string(line))
		if len(fields) < 5 || fields[0] != "%%" {
			return nil, fmt.Errorf("piece %d: header %q", len(out), line)
		}
		half := fields[3]
		n, err := strconv.Atoi(fields[4])
		if err != nil {
			return nil, fmt.Errorf("piece %d: header %q: %v", len(out), line, err)
		}
		p := Piece{Source: fields[1], Kind: fields[2], Tokens: map[string]int64{}}
		for _, f := range fields[5:] {
			name, count, _ := strings.Cut(f, "=")
			if p.Tokens[name], err = strconv.ParseInt(count, 10, 64); err != nil {
				return nil, fmt.Errorf("piece %d: header %q: %v", len(out), line, err)
			}
		}
		if half != "fit" && half != "held" {
			return nil, fmt.Errorf("piece %d: half %q", len(out), half)
		}
		if n < 0 || n >= len(rest) || rest[n] != '\n' {
			return nil, fmt.Errorf("piece %d (%s %s): %d bytes do not end at a newline", len(out), p.Source, p.Kind, n)
		}
		p.Held = half == "held"
		p.Text = rest[:n:n]
		out = append(out, p)
		b = rest[n+1:]
	}
	return out, nil
}

// Format writes pieces in the form that Parse reads.
func Format(pieces []Piece) []byte {
	var b bytes.Buffer
	for _, p := range pieces {
		half := "fit"
		if p.Held {
			half = "held"
		}
		fmt.Fprintf(&b, "%%%% %s %s %s %d", p.Source, p.Kind, half, len(p.Text))
		for _, name := range slices.Sorted(maps.Keys(p.Tokens)) {
			fmt.Fprintf(&b, " %s=%d", name, p.Tokens[name])
		}
		b.WriteByte('\n')
		b.Write(p.Text)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// Read reads every *.corpus file of a folder, in the order of their names.
// A folder without pieces is an error.
func Read(dir string) ([]Piece, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.corpus"))
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var out []Piece
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		p, err := Parse(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		out = append(out, p...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no pieces", dir)
	}
	return out, nil
}

// Write writes one *.corpus file for each source.
func Write(dir string, pieces []Piece) error {
	by := map[string][]Piece{}
	for _, p := range pieces {
		if p.Source == "" || strings.ContainsAny(p.Source+p.Kind, " \n/") || p.Kind == "" {
			return fmt.Errorf("piece named %q %q", p.Source, p.Kind)
		}
		by[p.Source] = append(by[p.Source], p)
	}
	for source, p := range by {
		if err := os.WriteFile(filepath.Join(dir, source+".corpus"), Format(p), 0o644); err != nil {
			return err
		}
	}
	return nil
}
