package law

import (
	"math"
	"time"
)

// charged is what was charged in all by an instant.
type charged struct {
	at    time.Time
	spent int64
}

// onTheWay is how far apart two calls must leave to arrive in the same order.
const onTheWay = 250 * time.Millisecond

// A flow is what was charged and corrected in all by some instants of the last
// minute, each amount as if above zero: one for each slot of 2^26 nanoseconds, as it
// was at the end of the slot. A sum of what is charged and given back would hide both.
type flow struct {
	sums [1024]int64
	last int64 // the number of the newest slot
	sum  int64
}

const flowSlot = 26 // bits of nanoseconds

func (f *flow) add(at, units int64) {
	k := int64(len(f.sums))
	slot := at >> flowSlot
	for i := max(f.last, slot-k); i < slot; i++ {
		f.sums[uint64(i)%uint64(k)] = f.sum
	}
	f.last = max(f.last, slot)
	f.sum = addUpTo(f.sum, abs(units))
}

// by is what flowed by the end of the slot of an instant, false if that is forgotten.
func (f *flow) by(at int64) (int64, bool) {
	k := int64(len(f.sums))
	switch slot := at >> flowSlot; {
	case slot >= f.last:
		return f.sum, true
	case slot < 0:
		return 0, f.last < k
	case slot <= f.last-k:
		return 0, false
	default:
		return f.sums[uint64(slot)%uint64(k)], true
	}
}

// addUpTo is a + b, and no more than an int64 holds.
func addUpTo(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// near is what left, or was corrected, so shortly before or after m that its reading
// may have it or not. It is false if that is too long ago to be known.
func (l *Learner) near(m *Mark) (int64, bool) {
	t := int64(m.at.Sub(l.base))
	first, ok := l.flow.by(t - int64(onTheWay) - 1<<flowSlot)
	last, _ := l.flow.by(t + int64(onTheWay))
	return max(0, last-first-m.own), ok
}
