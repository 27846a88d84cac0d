package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDrawsAFile(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "mine.jsonl"), filepath.Join(dir, "run.svg")
	if err := os.WriteFile(in, []byte(`{"t":1000,"kind":"answer","call":1,"status":200}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	if err := run([]string{"-o", out, in}, &stderr); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(b), "mine: 0 of 0 served") {
		t.Errorf("%v: %s", err, b)
	}
}

func TestSaysWhatIsMissing(t *testing.T) {
	var stderr bytes.Buffer
	for _, args := range [][]string{{}, {"-o", "x.svg"}, {"a.jsonl"}, {"-o", filepath.Join(t.TempDir(), "x.svg"), "nowhere.jsonl"}} {
		if err := run(args, &stderr); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
