package estimate

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unsafe"
)

// TestDocumentedErrors: the errors in the package's comment are those of
// ERRORS.md, which another test holds to what the program measures.
func TestDocumentedErrors(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("testdata/corpus/ERRORS.md")
	if err != nil {
		t.Fatal(err)
	}
	inShort, _, ok := strings.Cut(string(table), "## Another kind of text")
	if !ok {
		t.Fatal("ERRORS.md is not laid out as expected")
	}
	blanks := regexp.MustCompile(`\s+`)
	said := blanks.ReplaceAllString(string(doc), " ")
	n := 0
	for line := range strings.Lines(inShort) {
		c := strings.Split(strings.ReplaceAll(line, "*", ""), "|")
		for i := range c {
			c[i] = strings.TrimSpace(c[i])
		}
		if len(c) < 12 || c[1] != "o200k" && c[1] != "cl100k" {
			continue
		}
		n++
		// tokenizer, text, pieces, size, bias, p95, calibrated size and p95, chars/4 size and p95
		row := strings.Join([]string{c[2], c[4], c[6], c[7], c[8], c[9], c[10]}, " ")
		if !strings.Contains(said, row) {
			t.Errorf("doc.go does not say %q of %s", row, c[1])
		}
	}
	if n != 6 {
		t.Errorf("%d lines in the table, want 6", n)
	}
}

// TestDocumentedMemory: the sizes in the comments.
func TestDocumentedMemory(t *testing.T) {
	if size := unsafe.Sizeof(weights{}); size > 75_000 {
		t.Errorf("the weights of a family take %d bytes, 75 kB are documented", size)
	}
	if size := unsafe.Sizeof(scanner{}); size > 29_000 {
		t.Errorf("a scanner takes %d bytes, 29 kB are documented", size)
	}
}
