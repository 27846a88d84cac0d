//go:build race

package transport_test

// detector is set under the race detector, where a sync.Pool forgets a quarter of
// what is put into it.
const detector = true
