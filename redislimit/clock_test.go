package redislimit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// No instant of a process reaches the store: clocks of processes may differ by
// minutes, or jump. The package counts spans on the monotonic clock, and reads
// nothing else of a time.
//
// Report: sourcegraph/sourcegraph-public-snapshot#56826
func TestNoInstantOfAProcessReachesTheStore(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	wall := []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano", "Round", "Truncate", "UTC", "Local", "In", "Date", "Clock", "Second", "Minute", "Nanosecond"}
	seen, now := 0, 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		seen++
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if sel.Sel.Name == "Now" {
				now++
			}
			if slices.Contains(wall, sel.Sel.Name) {
				t.Errorf("%s calls %s: an instant of the wall clock", name, sel.Sel.Name)
			}
			return true
		})
	}
	if seen == 0 || now == 0 {
		t.Fatal("nothing was read")
	}
}
