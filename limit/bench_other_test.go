//go:build !linux

package limit

import "time"

var threadBase = time.Now()

// threadTime is wall time, where that of a thread is not to be had.
func threadTime() time.Duration { return time.Since(threadBase) }
