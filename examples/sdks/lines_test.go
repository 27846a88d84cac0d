// Package sdks holds the programs to what README.md says of them.
package sdks

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	// The test below compiles the programs. Their imports are here, so that they
	// are compiled before the test's time begins, and not in it.
	_ "github.com/anthropics/anthropic-sdk-go"
	_ "github.com/cloudwego/eino-ext/components/model/openai"
	_ "github.com/mozilla-ai/any-llm-go/providers/openai"
	_ "github.com/ollama/ollama/api"
	_ "github.com/openai/openai-go/v3"
	_ "github.com/sashabaranov/go-openai"
	_ "github.com/tmc/langchaingo/llms/openai"
	_ "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	_ "golang.org/x/oauth2/clientcredentials"
	_ "google.golang.org/genai"
)

// A line of change ends in this comment.
const mark = "// tripmeter"

const most = 3 // lines of change

// Each program states its lines of change, has no more than it states, and
// compiles without them: so they are the whole change.
func TestLinesOfChange(t *testing.T) {
	stated := table(t)
	files, err := filepath.Glob("*/main.go")
	if err != nil || len(files) != len(stated) || len(files) == 0 {
		t.Fatalf("%d programs, %d in the table of README.md, %v", len(files), len(stated), err)
	}
	replace := map[string]string{}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		without, lines := strip(t, name, string(source))
		if lines != stated[filepath.Dir(name)] || lines == 0 || lines > most {
			t.Errorf("%s: %d lines of change, README.md says %d, at most %d", name, lines, stated[filepath.Dir(name)], most)
		}
		if want := "The change, " + strconv.Itoa(lines) + " lines."; !strings.Contains(string(source), want) {
			t.Errorf("%s does not say %q", name, want)
		}
		from, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(to, []byte(without), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[from] = to
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	// list -export compiles and does not link.
	if out, err := exec.Command("go", "list", "-export", "-overlay", overlay, "./...").CombinedOutput(); err != nil {
		t.Errorf("the programs without the lines of change: %v\n%s", err, out)
	}
}

// table reads the rows of README.md that name a folder: folder to lines.
func table(t *testing.T) map[string]int {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\| \[[^]]+\]\((\w+)/main\.go\) \| (\d+) \|`).FindAllStringSubmatch(string(readme), -1) {
		rows[m[1]], _ = strconv.Atoi(m[2])
	}
	return rows
}

// strip takes the lines of change out of a program, and the imports that were
// for them alone. A marked line that opens a block stands for the block.
func strip(t *testing.T, name, source string) (without string, lines int) {
	var kept []string
	closing := "" // of the block that is being left out
	for line := range strings.Lines(source) {
		switch {
		case closing != "":
			if strings.TrimRight(line, "\n") == closing {
				closing = ""
			}
		case strings.HasSuffix(line, mark+"\n"):
			lines++
			code := strings.TrimRight(strings.TrimSuffix(line, mark+"\n"), " ")
			if strings.HasSuffix(code, "{") {
				closing = code[:len(code)-len(strings.TrimLeft(code, "\t"))] + "}"
			}
		default:
			kept = append(kept, line)
		}
	}
	without = strings.Join(kept, "")

	file, err := parser.ParseFile(token.NewFileSet(), name, without, 0)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	for _, im := range []string{"github.com/tripmeter/tripmeter/transport", "net/http"} {
		if !used[path.Base(im)] {
			without = strings.Replace(without, "\t"+strconv.Quote(im)+"\n", "", 1)
		}
	}
	return without, lines
}
