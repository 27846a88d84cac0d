// Package bench is the scoreboard: client policies against provider rules, in
// virtual time.
//
// The promise: tripmeter is the real transport package, not a model of it; the
// provider is the one of providertest, which shares no code with it; the
// floor that both are measured against is a client that knows every call
// beforehand. A run is a [Scenario], a [Policy] and a seed, and gives the same
// [Result] each time. Only the order of goroutines that act at one instant may differ.
//
// The refusal: it does not measure real providers, nor the time that the code
// takes. Rivals are small models of a technique, written here; they are not
// somebody's library, and are given every advantage that the technique allows
// (they know the limit, the burst and the cap).
//
// Run it with
//
//	go test -run TestScoreboard -scoreboard -timeout 30m
//
// in this directory, which rewrites docs/scoreboard.md and the plots beside it.
// Without the flag, go test holds tripmeter to the bars of bars_test.go.
package bench
