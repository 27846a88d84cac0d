//go:build race

package tiktoken

// raceEnabled makes samples smaller, and takes out the counts of allocations: the
// race detector's sync.Pool drops things at random.
const raceEnabled = true
