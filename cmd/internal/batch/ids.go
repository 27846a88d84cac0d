package batch

import (
	"crypto/sha256"
	"sync"
)

// ids is the set of custom_ids: those that have their line, and those that the
// input named. Of each it keeps the first 16 bytes of a hash, so that an id
// takes 20 to 40 bytes, long or short. Two ids of ten
// million share a hash with a chance below 1 in 10^24.
type ids struct {
	mu sync.Mutex
	m  map[[16]byte]byte
}

func newIDs() *ids { return &ids{m: map[[16]byte]byte{}} }

const (
	answered byte = 1 << iota // has its line
	named                     // was in the input
	reported                  // has a line that says why it is left
)

func key(id string) [16]byte {
	h := sha256.Sum256([]byte(id))
	return [16]byte(h[:16])
}

// mark sets a mark of id, and returns those that it had.
func (s *ids) mark(id string, set byte) (before byte) { return s.markKey(key(id), set) }

func (s *ids) markKey(k [16]byte, set byte) (before byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.m[k]
	s.m[k] = before | set
	return before
}
