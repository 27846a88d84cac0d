package headers

import "time"

// linear names the dimensions whose reset is known to be the time until a
// linearly refilled bucket is full: those of OpenAI's guide ("Rate limits",
// header fields), a project's share of them, and its image bucket. Of any other dimension the reset may mean
// something else.
var linear = [...]string{"requests", "tokens", "project_tokens", "project_requests", "input_images"}

// inferable are the windows of OpenAI's limits.
var inferable = [...]time.Duration{time.Minute, day}

// infer names the window of a quota from its reset where nobody states it. In a
// bucket that refills evenly
//
//	reset = window * (limit - remaining) / limit
//
// but the formula is right only if the bucket was full before the call, and
// resets are printed in whole milliseconds. So the window is not computed. One
// of the windows that exist is named if the reset fits it within two
// milliseconds and a quarter: one for the printing, one for the time on the way.
// Otherwise none is. A reset of a single millisecond says too little, unless
// a single unit is missing, which leaves no room for a refill in between.
func infer(name string, q Quota) time.Duration {
	const tick = time.Millisecond
	if !q.Limit.OK || !q.Remaining.OK || q.Reset.D <= 0 {
		return 0
	}
	used := q.Limit.N - q.Remaining.N
	if used <= 0 || q.Reset.D < 2*tick && used > 1 {
		return 0
	}
	known := false
	for _, l := range linear {
		known = known || l == name
	}
	if !known {
		return 0
	}
	for _, w := range inferable {
		exact := float64(w) * float64(used) / float64(q.Limit.N)
		got := float64(q.Reset.D)
		if exact-got <= float64(2*tick) && got >= exact*3/4 && got-exact <= float64(tick) && got <= exact*5/4 {
			return w
		}
	}
	return 0
}
