package estimate

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unsafe"
)

// The errors in the package's comment are those of UNSEEN.md, which the fitting program
// writes.
func TestTheDocumentedErrorsAreTheMeasuredOnes(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("testdata/corpus/UNSEEN.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`\s+`).ReplaceAllString(string(doc), " ")
	n := 0
	for line := range strings.Lines(string(table)) {
		c := strings.Split(line, "|")
		if len(c) < 10 || strings.Contains(c[1], ":") || strings.Contains(c[1], "text ") && !strings.Contains(c[1], "natural") || strings.Contains(c[1], "---") {
			continue
		}
		for i := range c {
			c[i], _, _ = strings.Cut(strings.TrimSpace(c[i]), " (")
		}
		if c[1] == "text" {
			continue
		}
		n++
		if row := strings.Join(c[1:10], " "); !strings.Contains(said, strings.Join(strings.Fields(row), " ")) {
			t.Errorf("doc.go does not say %q", row)
		}
	}
	if n != 6 {
		t.Errorf("%d lines in the table, want 6", n)
	}
}

// The sizes in the comments.
func TestTheDocumentedMemoryIsWhatIsTaken(t *testing.T) {
	if size := unsafe.Sizeof(weights{}); size > 75_000 {
		t.Errorf("the weights of a family take %d bytes, 75 kB are documented", size)
	}
	if size := unsafe.Sizeof(scanner{}); size > 30_000 {
		t.Errorf("a scanner takes %d bytes, 30 kB are documented", size)
	}
}
