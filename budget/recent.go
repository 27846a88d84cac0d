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

// addAt notes n units at an instant not after now: what comes back then counts from the
// attempt it was taken for. Units of a part that left the window are not noted.
func (r *recent) addAt(now, at time.Time, window time.Duration, n int64) {
	if at == now {
		r.add(now, window, n) // without a division
		return
	}
	r.turn(now, window)
	k := int64(len(r.parts))
	if part := r.part(at, window); part > r.last-k {
		r.parts[part%k] += n
		r.sum += n
	}
}

// part is the number of the part that an instant lies in, 0 at least.
func (r *recent) part(at time.Time, window time.Duration) int64 {
	return min(max(0, int64(at.Sub(r.base)))/max(1, int64(window)/60), r.last)
}

// since returns what was used from an instant in the window that ends now, up to one
// part more.
func (r *recent) since(now, at time.Time, window time.Duration) (n int64) {
	r.each(now, at, window, func(_ time.Time, units int64) { n += units })
	return n
}

// each calls f for the parts from an instant on, oldest first, with the end of each and
// what was used in it.
func (r *recent) each(now, at time.Time, window time.Duration, f func(end time.Time, units int64)) {
	r.turn(now, window)
	k, length := int64(len(r.parts)), max(1, int64(window)/60)
	for i := max(r.part(at, window), r.last-k+1); i <= r.last; i++ {
		f(r.base.Add(time.Duration((i+1)*length)), r.parts[i%k])
	}
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
