package retry

import (
	"sync"
	"time"
)

// A budget bounds the further attempts of all calls of a [Transport] together.
// While a server fails every call, three attempts each would be three times the
// load, at the moment when it can bear the least. Answers earn what further
// attempts cost:
//
//	budget   = 50 attempts at the start, and at most
//	answer   = + 1/4, for a response below 400
//	time     = + 1 each two seconds, so that a client of few calls has its attempts
//	attempt  = - 1
//
// A server that fails one attempt in five is covered in full by its own successes.
// A refusal for the caller's own rate costs nothing: the wait bounds those.
//
// See "Addressing Cascading Failures" in Site Reliability Engineering (O'Reilly,
// 2016), and gRPC's proposal A6 on retry throttling.
type budget struct {
	mu   sync.Mutex
	left int64     // quarters of an attempt
	seen time.Time // when time was last counted; zero: nothing was taken yet
}

const (
	quarters   = 4
	mostBudget = 50 * quarters
	earnedIn   = 2 * time.Second / quarters // a quarter
)

// earn notes an answer.
func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.seen.IsZero() {
		b.left = min(b.left+1, mostBudget)
	}
}

// take takes a further attempt at now, and reports whether there was one.
func (b *budget) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen.IsZero() {
		b.left, b.seen = mostBudget, now
	} else if n := now.Sub(b.seen) / earnedIn; n > 0 {
		b.left = min(b.left+int64(min(n, mostBudget)), mostBudget)
		b.seen = b.seen.Add(n * earnedIn)
	}
	if b.left < quarters {
		return false
	}
	b.left -= quarters
	return true
}
