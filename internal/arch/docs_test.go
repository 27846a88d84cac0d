package arch

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

const root = "../.."

// The program of the README is run as it stands.
func TestReadmeRuns(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, program, ok := strings.Cut(string(readme), "```go\n")
	program, _, closed := strings.Cut(program, "```")
	if !ok || !closed {
		t.Fatal("no block of Go in the README")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer s.Close()
	out, err := exec.Command("go", "run", file, s.URL).CombinedOutput()
	if err != nil || string(out) != "200 OK\n" || asked.Load() != 1 {
		t.Fatalf("%v: %s\n%s", err, out, program)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)
	command = regexp.MustCompile("(?m)(?:^|[ `])(\\./[a-z-]+(?:/[a-z-]+)*|\\.ci/run)\\b")
	written = regexp.MustCompile("`((?:[a-z]+/)+[a-z_]+\\.(?:go|json|md))`")
)

// What a page points to is there: links, commands, and files by their name.
func TestPagesPointToWhatIsThere(t *testing.T) {
	pages, found := 0, 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case filepath.Ext(name) != ".md":
			return nil
		}
		pages++
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		there := func(base, path string) {
			found++
			if _, err := os.Stat(filepath.Join(base, path)); err != nil {
				t.Errorf("%s: %s is not there", name, path)
			}
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			if to := string(m[1]); !strings.Contains(to, "://") {
				there(filepath.Dir(name), to)
			}
		}
		if filepath.Dir(name) != root { // elsewhere, commands run in places of their own
			return nil
		}
		for _, re := range []*regexp.Regexp{command, written} {
			for _, m := range re.FindAllSubmatch(text, -1) {
				there(root, string(m[1]))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 3 || found < 20 {
		t.Errorf("only %d pages and %d names were looked at", pages, found)
	}
}
