package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// longest is how many lines a function may have.
const longest = 60

// long are the functions that have more, with the reason. A parser that follows one
// grammar and a flat table read better in one piece. toSplit marks the others: they
// are waiting for somebody who knows them.
var long = map[string]string{
	"usage/scanner.go scanner.write": "parser: the state machine of a byte stream, in the path of every answer",
	"estimate/count.go counter.add":  "parser: one loop over a text whose state must stay in registers",
	"meter/metrics.go table.calls":   "table: a row for each metric of calls",

	"budget/budget.go Budget.find":       "to be split",
	"law/learner.go Learner.compare":     "to be split",
	"limit/lower.go entry.Lower":         "to be split",
	"limit/scope.go Limiter.setLimit":    "to be split",
	"limit/snapshot.go Limiter.Snapshot": "to be split",
	"transport/request.go inspect":       "to be split",
}

const toSplit = "to be split"

// A function longer than a page tells more than one idea. The list holds the
// exceptions, and nothing that is no longer one.
func TestFunctionsAreShort(t *testing.T) {
	functions := 0
	found := map[string]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				functions++
				if n := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; n > longest {
					found[filepath.ToSlash(short)+" "+nameOf(f)] = n
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if functions < 1000 {
		t.Fatalf("only %d functions were looked at", functions)
	}
	for name, n := range found {
		if long[name] == "" {
			t.Errorf("%s has %d lines: split it by its ideas; at most %d are allowed", name, n, longest)
		}
	}
	for name, reason := range long {
		switch {
		case found[name] == 0:
			t.Errorf("%s is no longer long: take it out of the list", name)
		case !strings.HasPrefix(reason, "parser: ") && !strings.HasPrefix(reason, "table: ") && !strings.HasPrefix(reason, toSplit):
			t.Errorf("%s: the reason must begin with parser, table or %q", name, toSplit)
		}
	}
}

// nameOf is the name of a function, with its receiver's type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	for {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr:
			of = x.X
		case *ast.IndexListExpr:
			of = x.X
		case *ast.Ident:
			return x.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}
