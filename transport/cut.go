package transport

import "time"

// cut is the safety net under one limit. Refusals that the ledger cannot
// explain mean that others use the limit unseen; each takes a fifth off the
// rate, which grows back by one per cent of the limit a second. It never
// raises the rate above the limit. The zero cut cuts nothing.
type cut struct {
	missing int64 // parts per million taken off at since
	since   time.Time
}

const (
	whole      = 1_000_000 // parts
	deepest    = 950_000   // one twentieth of the limit always runs
	regrowth   = 10_000    // parts a second
	refusalCut = 5         // one part in five
)

// left is the parts still taken off now.
func (c *cut) left(now time.Time) int64 {
	if c.missing == 0 {
		return 0
	}
	return max(0, c.missing-int64(now.Sub(c.since))/int64(time.Second/regrowth))
}

func (c *cut) deepen(now time.Time) {
	m := c.left(now)
	c.missing, c.since = min(deepest, m+(whole-m)/refusalCut), now
}

func (c *cut) active() bool { return c.missing > 0 }

// of is what is left of n now.
func (c *cut) of(n int64) int64 {
	m := c.left(time.Now())
	if m == 0 {
		c.missing = 0
		return n
	}
	return n/whole*(whole-m) + n%whole*(whole-m)/whole
}
