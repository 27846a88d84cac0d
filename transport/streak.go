package transport

import "time"

// streak counts refusals in a row, with no attempt admitted between. The first
// is waited off as the provider or the retry layer says. When that was not
// enough, each further one doubles what everybody waits, up to a minute: some
// providers name no wait, or one that is too short, and start their cool-down
// anew with every request that comes before its end. Against those a wait that
// stays below theirs never ends. The zero streak is none.
type streak struct {
	n    int
	last time.Time // of the last refusal that counted
}

// refused notes the refusal of an attempt that left at sent, and returns how
// long to wait at least, 0 for the first. Attempts that were under way together
// are one.
func (s *streak) refused(now, sent time.Time) time.Duration {
	if s.n == 0 || sent.After(s.last) {
		s.n, s.last = s.n+1, now
	}
	if s.n < 2 {
		return 0
	}
	return min(time.Second<<min(s.n-1, 6), time.Minute)
}

// admitted notes that the attempt that left at sent was not refused. One that
// left before the last refusal says nothing about what came after.
func (s *streak) admitted(sent time.Time) {
	if sent.After(s.last) {
		s.n = 0
	}
}
