package budget

import "time"

// A streak counts refusals in a row, with no attempt admitted between. Everybody
// waits after the first as the provider or the retry layer says. Each further
// one doubles that wait, up to a minute. Some providers name no wait, or one that
// is too short, and start their cool-down anew with every request that comes
// before its end: against those a constant short wait never ends. The zero
// streak has seen no refusal.
type streak struct {
	n    int
	last time.Time // of the last refusal that counted
}

// probeFrom is from how many refusals in a row on one call goes alone after the wait:
// see [Scope.probe].
const probeFrom = 2

// streakAge is how long a refusal counts for a streak. Refusals of hours ago say
// nothing about a cool-down of now; the longest wait of a streak is a minute.
const streakAge = 10 * time.Minute

// refused counts the refusal of an attempt that left at sent. It returns the
// least wait, 0 for the first. Refused attempts that were under way together
// count as one.
func (s *streak) refused(now, sent time.Time) time.Duration {
	if now.Sub(s.last) > streakAge {
		s.n = 0
	}
	if s.n == 0 || sent.After(s.last) {
		s.n, s.last = s.n+1, now
	}
	if s.n < 2 {
		return 0
	}
	return min(time.Second<<min(s.n-1, 6), time.Minute)
}

// admitted ends the streak if the attempt that left at sent was not refused. An
// attempt that left before the last refusal says nothing about the time after.
func (s *streak) admitted(sent time.Time) {
	if sent.After(s.last) {
		s.n = 0
	}
}
