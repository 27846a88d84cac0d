package snippets

import (
	"slices"
	"strings"
	"testing"
)

// The Go on every page compiles.
func TestPagesCompile(t *testing.T) {
	const root = "../.."
	Check(t, root, "", Pages(t, root)...)
}

func TestBlocksAreFound(t *testing.T) {
	text := "# x\n\n```go\na := 1\n```\n\n```sh\nls\n```\n\n```go\nprommeter.New(m, prommeter.Options{})\n```\n"
	b := Blocks("p", []byte(text))
	if len(b) != 2 || b[0].Line != 4 || b[0].Code != "a := 1\n" || Home(b[0]) != "" || Home(b[1]) != "prommeter" {
		t.Errorf("%+v", b)
	}
}

// A block's own imports stand in its file, and say which module it needs.
func TestOwnImportsAreKept(t *testing.T) {
	sdk := Block{Code: "import (\n\topenai \"example.com/go-openai\"\n\t\"net/http\"\n)\n\nopenai.New(http.DefaultClient)\n"}
	if got := sdk.program(0); Home(sdk) != "examples/sdks" || strings.Count(got, `"net/http"`) != 1 || !strings.Contains(got, "\t{\n\nopenai.New") {
		t.Errorf("of %q:\n%s", Home(sdk), got)
	}
	ours := Block{Code: "import \"github.com/tripmeter/tripmeter/limit\"\n\nvar _ limit.Cost\n"}
	if got := ours.program(0); Home(ours) != "" || strings.Count(got, "tripmeter/limit\"") != 1 {
		t.Errorf("of %q:\n%s", Home(ours), got)
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
