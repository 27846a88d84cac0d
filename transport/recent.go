package transport

import "time"

// recent is what was used of one limit in its last window: a ring of parts, 60
// to the window. It answers one question, whether a refusal is explained by our
// own use, and needs no more than two per cent for it. It counts as the ledger
// does: at the sending, corrected at the end. The zero recent has seen nothing.
type recent struct {
	parts [61]int64 // units used in a part; the one that runs is number & its place
	last  int64     // number of the part that runs, counted from the epoch
	sum   int64
}

// add notes n units (negative: given back) at now.
func (r *recent) add(now time.Time, window time.Duration, n int64) {
	r.turn(now, window)
	r.parts[r.last%int64(len(r.parts))] += n
	r.sum += n
}

// turn moves on to the part that runs, forgetting those that have left.
func (r *recent) turn(now time.Time, window time.Duration) {
	part := now.UnixNano() / max(1, int64(window)/60)
	k := int64(len(r.parts))
	switch gone := part - r.last; {
	case gone >= k:
		*r = recent{last: part}
	case gone > 0:
		for i := r.last + 1; i <= part; i++ {
			r.sum -= r.parts[i%k]
			r.parts[i%k] = 0
		}
		r.last = part
	}
}

// in is what was used in the window that ends now, up to one part more.
func (r *recent) in(now time.Time, window time.Duration) int64 {
	r.turn(now, window)
	return r.sum
}
