package redislimit

import "time"

// SkewClock sets the clock of this process off. It is for processes of tests.
func SkewClock(d time.Duration) { wall = func() time.Time { return time.Now().Add(d) } }
