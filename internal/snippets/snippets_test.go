package snippets

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The Go on every page compiles.
func TestPagesCompile(t *testing.T) {
	const root = "../.."
	pages := []string{"README.md"}
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		pages = append(pages, filepath.Join("docs", filepath.Base(f)))
	}
	Check(t, root, "", pages...)
}

func TestBlocksAreFound(t *testing.T) {
	text := "# x\n\n```go\na := 1\n```\n\n```sh\nls\n```\n\n```go\nprommeter.New(m, prommeter.Options{})\n```\n"
	b := Blocks("p", []byte(text))
	if len(b) != 2 || b[0].Line != 4 || b[0].Code != "a := 1\n" || Home(b[0]) != "" || Home(b[1]) != "prommeter" {
		t.Errorf("%+v", b)
	}
}

func TestPackagesAreFound(t *testing.T) {
	got := uses("x := transport.Options{} // http.Get\nfmt.Println(\"time.Now\", rt.Trace.Queued, r.url.Host)\n")
	if !slices.Equal(got, []string{"fmt", "transport"}) {
		t.Errorf("%v", got)
	}
}

// recorder notes what Check finds, in place of a failing test.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, args[0].(string)+args[1].(string))
}

// A fault in a block is reported with its page and line; a name that is not
// used is no fault.
func TestFaultsAreFound(t *testing.T) {
	r := &recorder{TB: t}
	Check(r, "testdata", "", "faulty.md")
	if len(r.said) != 1 || !strings.HasPrefix(r.said[0], "faulty.md, line 10") || !strings.Contains(r.said[0], "undefined: transport.Nothing") {
		t.Errorf("%q", r.said)
	}
}
