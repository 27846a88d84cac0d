package limit

import "time"

// A Note is a conclusion about a scope, written by one user of a shared ledger.
type Note struct {
	Key, Text string
	Age       time.Duration // since it was written, by the ledger's clock
}

// A Notebook is a [Ledger] of several processes that carries notes between them.
// What the ledger itself keeps needs no note. Package budget writes its conclusions
// about a limit, so that one process does not undo what another has learned.
type Notebook interface {
	// Note writes a note of a scope, in place of the one of its key. It waits for
	// nobody. A text is at most 256 bytes long.
	Note(scope, key, text string)

	// Notes are those of a scope as last known, and their version. Where that is
	// `last`, nothing has changed, and no note is returned. It waits for nobody.
	Notes(scope string, last uint64) (notes []Note, version uint64)
}
