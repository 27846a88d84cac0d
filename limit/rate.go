package limit

import (
	"fmt"
	"time"
)

// Bounds that keep every intermediate value inside 128 bits; see the package
// documentation for the derivation.
const (
	// MaxUnits is the largest rate, burst or cost, in units.
	MaxUnits = 1_000_000_000_000

	// MinWindow and MaxWindow bound the window of a [Rate].
	MinWindow = time.Millisecond
	MaxWindow = 366 * 24 * time.Hour
)

// A Rate is N units per Window, two whole numbers. It is never reduced to an
// interval per unit: 7 a minute is not a whole number of nanoseconds, and an
// interval rounded down runs fast for ever (as much as 11 % has been measured
// in limiters that do it).
//
// The zero Rate means unset: no limit.
type Rate struct {
	N      int64         // units
	Window time.Duration // the time in which N units are earned
}

// PerSecond is n units a second.
func PerSecond(n int64) Rate { return Rate{n, time.Second} }

// PerMinute is n units a minute.
func PerMinute(n int64) Rate { return Rate{n, time.Minute} }

// PerHour is n units an hour.
func PerHour(n int64) Rate { return Rate{n, time.Hour} }

// PerDay is n units in 24 hours.
func PerDay(n int64) Rate { return Rate{n, 24 * time.Hour} }

// In is what the rate earns in d, rounded down, in units; at most [MaxUnits].
func (r Rate) In(d time.Duration) int64 {
	if r.N <= 0 || r.Window <= 0 || d <= 0 {
		return 0
	}
	return min(mul(uint64(r.N), uint64(d)).floorDiv(uint64(r.Window)), MaxUnits)
}

// String reads "500/1m0s"; the zero Rate reads "unlimited".
func (r Rate) String() string {
	if r == (Rate{}) {
		return "unlimited"
	}
	return fmt.Sprintf("%d/%v", r.N, r.Window)
}

func (r Rate) check(field string) error {
	switch {
	case r.N <= 0 || r.N > MaxUnits:
		return &ConfigError{field + ".Rate.N", r.N, fmt.Sprintf("must be from 1 to %d", int64(MaxUnits))}
	case r.Window < MinWindow || r.Window > MaxWindow:
		return &ConfigError{field + ".Rate.Window", r.Window, fmt.Sprintf("must be from %v to %v", MinWindow, MaxWindow)}
	}
	return nil
}
