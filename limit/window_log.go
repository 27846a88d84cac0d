package limit

import "math/bits"

// logSlots is how many slots a window of a log has. What is charged in one slot
// ages together, with the latest of it: 0.2 % of the window at most too late.
const logSlots = 511

// logRing is how many slots are kept: two windows, since a reading that comes in
// now may speak of an instant a window ago, when what is older still counted.
const logRing = 1024

// useLog is what was charged, by time, in slots. A tree of partial sums (Fenwick)
// finds sums over any run of slots in O(log n). It also finds the slot in which a
// sum is reached.
type useLog struct {
	span int64 // how long a charge counts, nanoseconds
	grid int64 // length of a slot, nanoseconds
	head int64 // the newest slot; slots are numbered from instant 0
	sum  int64 // of all cells, units
	cell [logRing]logCell
	tree [logRing + 1]int64
}

// logCell is what was charged in one slot.
type logCell struct {
	at    int64 // the latest of it
	units int64
}

func newLog(span int64) *useLog {
	return &useLog{span: span, grid: (span + logSlots - 1) / logSlots}
}

func (g *useLog) at(slot int64) *logCell { return &g.cell[uint64(slot)%logRing] }

// add changes the tree at a slot.
func (g *useLog) add(slot, units int64) {
	g.sum += units
	for i := uint64(slot)%logRing + 1; i <= logRing; i += i & -i {
		g.tree[i] += units
	}
}

// below is the sum of the cells at ring positions before i.
func (g *useLog) below(i uint64) (sum int64) {
	for ; i > 0; i &= i - 1 {
		sum += g.tree[i]
	}
	return sum
}

// oldest is the oldest slot that is kept.
func (g *useLog) oldest() int64 { return max(0, g.head-logRing+1) }

// from is the sum of the slots from that one to the newest.
func (g *useLog) from(slot int64) int64 {
	slot = max(slot, g.oldest())
	if slot > g.head {
		return 0
	}
	first, end := uint64(slot)%logRing, uint64(g.head)%logRing+1
	if first < end {
		return g.below(end) - g.below(first)
	}
	return g.sum - g.below(first) + g.below(end)
}

// since is what was charged after instant t.
func (g *useLog) since(t int64) int64 {
	if t < 0 {
		return g.from(0)
	}
	slot := t / g.grid
	sum := g.from(slot + 1)
	if slot >= g.oldest() && slot <= g.head && g.at(slot).at > t {
		sum += g.at(slot).units
	}
	return sum
}

// used is what counts at instant now.
func (g *useLog) used(now int64) int64 { return g.since(now - g.span) }

// reach moves the newest slot on to that one, which drops the oldest ones.
func (g *useLog) reach(slot int64) {
	if slot-g.head >= logRing {
		g.cell, g.tree, g.sum, g.head = [logRing]logCell{}, [logRing + 1]int64{}, 0, slot
		return
	}
	for g.head < slot {
		g.head++
		if c := g.at(g.head); *c != (logCell{}) {
			g.add(g.head, -c.units)
			*c = logCell{}
		}
	}
}

// charge enters units used at instant t.
func (g *useLog) charge(t, units int64) {
	slot := t / g.grid
	if t < 0 || slot < g.oldest() {
		return // forgotten
	}
	g.reach(slot)
	units = min(units, mostUsed-g.sum)
	c := g.at(slot)
	c.at, c.units = max(c.at, t), c.units+units
	g.add(slot, units)
}

// refund gives back units charged at instant t, no more than are there.
func (g *useLog) refund(t, units int64) {
	slot := t / g.grid
	if t < 0 || slot < g.oldest() || slot > g.head {
		return
	}
	c := g.at(slot)
	units = min(units, c.units)
	c.units -= units
	g.add(slot, -units)
}

// wait is the time from start until cost fits below limit, when ahead units go
// first, each as early as it can. The x-th unit to be given back is one of those
// used now, in their order; then those that went at start; then what went into
// the place of the (x-limit)-th, one span later.
func (g *useLog) wait(start, ahead, cost, limit int64) int64 {
	used := g.used(start)
	x := ahead + cost - (limit - used)
	if x <= 0 {
		return 0
	}
	var turns int64
	if all := max(used, limit); x > all {
		turns = (x - all + limit - 1) / limit
		x -= turns * limit
	}
	wait := g.span
	if x <= used {
		wait = g.given(start, x) - start
	}
	return laterBy(wait, turns, g.span)
}

// given is the instant by which x of the units that count at start are given
// back, for an x from 1 to those.
func (g *useLog) given(start, x int64) int64 {
	// The wanted slot is where the sum of the kept slots, from the oldest on, reaches
	// x and all that does not count any more.
	x += g.from(g.oldest()) - g.used(start)
	first := uint64(g.oldest()) % logRing
	x += g.below(first)
	if x > g.sum {
		x -= g.sum // beyond the end of the ring: from its beginning
	}
	pos := uint64(0)
	for step := uint64(1) << (bits.Len(logRing) - 1); step > 0; step >>= 1 {
		if next := pos + step; next <= logRing && g.tree[next] < x {
			pos, x = next, x-g.tree[next]
		}
	}
	return later(g.cell[pos].at, g.span)
}

// latest is the latest charge in the slot of instant t, 0 if there is none.
func (g *useLog) latest(t int64) int64 {
	if slot := t / g.grid; slot >= g.oldest() && slot <= g.head {
		return g.at(slot).at
	}
	return 0
}

// undo takes back a charge made at instant t, before which the slot's latest was
// that.
func (g *useLog) undo(t, units, latest int64) {
	if units <= 0 {
		return
	}
	g.refund(t, units)
	g.at(t / g.grid).at = latest
}
