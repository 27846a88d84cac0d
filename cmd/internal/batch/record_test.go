package batch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripmeter/tripmeter/record"
)

// A recording has every attempt and call of the run and nothing of what was asked,
// and its picture lies beside it.
func TestRunIsRecordedAndDrawn(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "run.jsonl")
	r := runBatch(t, filepath.Join(dir, "out.jsonl"), nil, "-practice", "-in", write(t, linesFor(5)...), "-rpm", "6000", "-tpm", "1000000", "-record", name)
	if r.code != ExitDone {
		t.Fatalf("code %d: %s", r.code, r.stderr)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "Hello") || strings.Contains(string(text), "gpt") {
		t.Errorf("the recording tells what was asked: %s", text)
	}
	events, err := record.Read(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if s := record.SumsOf(events); s.Calls != 5 || s.Served != 5 || s.Attempts != 5 || s.Tokens == 0 {
		t.Errorf("%+v", s)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "run.svg"))
	if err != nil || !strings.Contains(string(svg), "run: 5 of 5 served") {
		t.Errorf("no picture of five calls: %v", err)
	}
}
