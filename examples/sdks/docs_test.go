package sdks

import (
	"testing"

	"github.com/tripmeter/tripmeter/internal/snippets"
)

// The Go of README.md and docs/ that names an SDK compiles.
func TestPagesCompile(t *testing.T) {
	const root = "../.."
	snippets.Check(t, root, "examples/sdks", snippets.Pages(t, root)...)
}
