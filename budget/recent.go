package budget

import "time"

// A recent is what was used of one limit in its last window: a ring of parts, 60
// to the window. It says whether the budget's own use explains a refusal, and
// two per cent is exact enough for that. It counts as the ledger does: when an
// attempt leaves, corrected at its end. The zero recent has seen nothing.
type recent struct {
	base  time.Time // of the first use; parts are counted from it, on the monotonic clock
	parts [61]int64 // units used in a part; the present part is number & its place
	last  int64     // number of the present part
	sum   int64
}

// add notes n units (negative: given back) at now.
func (r *recent) add(now time.Time, window time.Duration, n int64) {
	r.turn(now, window)
	r.parts[r.last%int64(len(r.parts))] += n
	r.sum += n
}

// turn moves on to the present part and forgets those that left the window.
func (r *recent) turn(now time.Time, window time.Duration) {
	if r.base.IsZero() {
		r.base = now
	}
	t, length := int64(now.Sub(r.base)), max(1, int64(window)/60)
	if d := t - r.last*length; 0 <= d && d < length {
		return // still the same part; a division takes longer than all of this
	}
	part := t / length
	k := int64(len(r.parts))
	switch gone := part - r.last; {
	case gone >= k:
		*r = recent{base: r.base, last: part}
	case gone > 0:
		for i := r.last + 1; i <= part; i++ {
			r.sum -= r.parts[i%k]
			r.parts[i%k] = 0
		}
		r.last = part
	}
}

// in returns what was used in the window that ends now, up to one part more.
func (r *recent) in(now time.Time, window time.Duration) int64 {
	r.turn(now, window)
	return r.sum
}
