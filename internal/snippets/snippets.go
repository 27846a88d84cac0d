// Package snippets compiles the Go that stands in the pages of docs/ and in the
// README, so that a reader can trust it.
//
// A block is the body of a function, or a whole file if it begins with package.
// Names that a reader has already (ctx, client, mux, ...) are declared before it,
// and packages are imported by their names. A block that begins with import brings
// its own: those of SDKs share names. What a block leaves unused is no fault, but for
// an import.
package snippets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tripmeter/tripmeter/"

// packages are those that a block may name, with their paths.
var packages = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "io": "io", "log": "log", "slog": "log/slog",
	"http": "net/http", "httputil": "net/http/httputil", "os": "os", "strings": "strings", "time": "time", "bytes": "bytes", "url": "net/url",
	"budget": module + "budget", "debug": module + "debug", "estimate": module + "estimate", "tiktoken": module + "estimate/tiktoken",
	"limit": module + "limit", "meter": module + "meter", "profile": module + "profile", "providertest": module + "providertest",
	"record": module + "record", "retry": module + "retry", "shadow": module + "shadow", "slogmeter": module + "slogmeter", "transport": module + "transport",
	"prommeter": module + "prommeter", "prometheus": "github.com/prometheus/client_golang/prometheus",
	"otelmeter": module + "otelmeter", "metric": "go.opentelemetry.io/otel/sdk/metric",
}

// given are the names that a reader has already.
const given = `
var (
	ctx      context.Context
	base     http.RoundTripper
	client   *http.Client
	mux      *http.ServeMux
	req      *http.Request
	body     io.Reader
	file     io.ReadWriter
	endpoint string
	target   *url.URL
	m        *meter.Meter
	rt       *transport.Transport
)
`

// A Block is a piece of Go on a page.
type Block struct {
	Page string
	Line int
	Code string
}

var fence = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// Blocks returns the blocks of a page.
func Blocks(name string, text []byte) []Block {
	var out []Block
	for _, m := range fence.FindAllSubmatchIndex(text, -1) {
		out = append(out, Block{name, 1 + bytes.Count(text[:m[2]], []byte("\n")), string(text[m[2]:m[3]])})
	}
	return out
}

// uses are the packages that code names.
func uses(code string) []string {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?:^|[^\w.")\]])(\w+)\.\w`).FindAllStringSubmatch(stripped(code), -1) {
		if packages[m[1]] != "" {
			found[m[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// stripped is code without comments and strings.
func stripped(code string) string {
	return regexp.MustCompile("(?m)//.*$|\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`").ReplaceAllString(code, `""`)
}

// head matches the imports that a block begins with.
var head = regexp.MustCompile(`^import (?:\([^)]*\)|[^\n(]*)\n`)

// imports are the paths that a block imports itself.
func (b Block) imports() []string {
	var out []string
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(head.FindString(b.Code), -1) {
		out = append(out, m[1])
	}
	return out
}

// Home is the module that a block needs: "" is the root. Imports of other makers are
// those of examples/sdks.
func Home(b Block) string {
	for _, path := range b.imports() {
		if host, _, _ := strings.Cut(path, "/"); strings.Contains(host, ".") && !strings.HasPrefix(path, module) {
			return "examples/sdks"
		}
	}
	for _, u := range uses(b.Code) {
		switch u {
		case "prommeter", "prometheus":
			return "prommeter"
		case "otelmeter", "metric":
			return "otelmeter"
		}
	}
	return ""
}

// program makes a file of a block.
func (b Block) program(n int) string {
	if strings.HasPrefix(b.Code, "package ") {
		return b.Code
	}
	own := head.FindString(b.Code)
	code := b.Code[len(own):]
	imports := map[string]bool{}
	for _, u := range append(uses(code), uses(given)...) {
		imports[packages[u]] = true
	}
	for _, path := range b.imports() {
		delete(imports, path)
	}
	var s strings.Builder
	fmt.Fprintf(&s, "package block%d\n\nimport (\n", n)
	for _, path := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&s, "\t%q\n", path)
	}
	fmt.Fprintf(&s, ")\n%s\n%s\nfunc block() error {\n\tvar err error\n\t_ = err\n\t{\n%s\n\t}\n\treturn nil\n}\n", own, given, code)
	return s.String()
}

// Pages are README.md and those of docs/, below root.
func Pages(t testing.TB, root string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no pages in %s: %v", root, err)
	}
	pages := []string{"README.md"}
	for _, f := range found {
		pages = append(pages, filepath.Join("docs", filepath.Base(f)))
	}
	return pages
}

// unused is what the compiler says of a name that is not used, which is no fault
// of a block.
var unused = regexp.MustCompile(`declared and not used`)

// Check compiles the blocks of the pages that belong to a module: "" for the root,
// else its folder. root is the folder of the repository.
func Check(t testing.TB, root, mod string, pages ...string) {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(root, mod))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []Block
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range Blocks(page, text) {
			if Home(b) == mod {
				blocks = append(blocks, b)
			}
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("no block of Go for %q in %v", mod, pages)
	}
	args := []string{"build", "-gcflags=-e", "-overlay", overlay(t, dir, blocks)}
	for n := range blocks {
		args = append(args, fmt.Sprintf("./internal/blocks/block%d", n))
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		return
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "#") || unused.MatchString(line) {
			continue
		}
		where := "a block"
		if m := regexp.MustCompile(`block(\d+)\.go`).FindStringSubmatch(line); m != nil {
			var n int
			fmt.Sscan(m[1], &n)
			where = fmt.Sprintf("%s, line %d", blocks[n].Page, blocks[n].Line)
		}
		t.Errorf("%s: %s", where, strings.TrimSpace(line))
	}
}

// overlay writes a file that lays the blocks over the module in dir, as packages below
// internal/blocks, and returns its name.
func overlay(t testing.TB, dir string, blocks []Block) string {
	t.Helper()
	temp := t.TempDir()
	write := func(name string, text []byte) string {
		name = filepath.Join(temp, name)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	replace := map[string]string{}
	for n, b := range blocks {
		block := fmt.Sprintf("block%d", n)
		replace[filepath.Join(dir, "internal", "blocks", block, "block.go")] = write(block+".go", []byte(b.program(n)))
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	return write("overlay.json", text)
}
