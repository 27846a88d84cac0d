package prommeter_test

import (
	"testing"

	"github.com/tripmeter/tripmeter/internal/snippets"
)

// The Go of docs/ that belongs to this module compiles.
func TestPagesCompile(t *testing.T) { snippets.Check(t, "..", "prommeter", "docs/seeing.md") }
