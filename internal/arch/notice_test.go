package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// NOTICE.md names every module that the packages of this one link.
func TestNoticeNamesWhatIsLinked(t *testing.T) {
	notice, err := os.ReadFile(filepath.Join(root, "NOTICE.md"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, path := range strings.Fields(string(out)) {
		seen[path] = true
	}
	for path := range seen {
		if name := path[strings.LastIndexByte(path, '/')+1:]; !strings.Contains(string(notice), name) {
			t.Errorf("NOTICE.md does not name %s", path)
		}
	}
	if len(seen) < 5 {
		t.Errorf("only %d modules were found", len(seen))
	}
}
