package otelmeter_test

import (
	"testing"

	"github.com/tripmeter/tripmeter/internal/snippets"
)

// The Go of docs/ that belongs to this module compiles.
func TestPagesCompile(t *testing.T) { snippets.Check(t, "..", "otelmeter", "docs/seeing.md") }
