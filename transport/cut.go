package transport

import "time"

// cut is the safety net under one limit. Refusals that the ledger cannot
// explain mean that others use the limit unseen; each takes a fifth off the
// rate, which grows back by one per cent of the limit a second. It never
// raises the rate above the limit. The zero cut cuts nothing.
//
// Growing back at one pace meets the same refusal every dozen seconds for ever.
// So the last two per cent below the rate that was refused are slower, and
// slower still when it is refused there again: refusals get rarer, and what
// is lost by it, when the others leave, is two minutes at most.
//
//	rate   refused ─╮            ╭─ full pace again
//	               │        _,-' │ slow: the zone below what was refused
//	               │      ,'
//	               ╰────,'         full pace
type cut struct {
	missing int64 // parts per million taken off at since
	since   time.Time
	trouble int64 // what was missing when it was refused last
	slow    uint  // halvings of the pace in the zone; 0 never refused
}

const (
	whole      = 1_000_000 // parts
	deepest    = 950_000   // one twentieth of the limit always runs
	regrowth   = 10_000    // parts a second
	refusalCut = 5         // one part in five

	zone    = 20_000 // parts below what was refused
	slowest = 6      // halvings: 128 s through the zone
)

// left is the parts still taken off now.
func (c *cut) left(now time.Time) int64 {
	if c.missing == 0 {
		return 0
	}
	m, d := c.missing, now.Sub(c.since)
	for _, leg := range [...]struct {
		to   int64 // what is missing at the end of the leg
		pace int64 // parts a second
	}{
		{c.trouble + zone, regrowth}, {c.trouble, regrowth >> c.slow}, {0, regrowth},
	} {
		if m <= leg.to {
			continue
		}
		takes := time.Duration(m-leg.to) * time.Second / time.Duration(leg.pace)
		if d < takes {
			return m - int64(d)/int64(time.Second/time.Duration(leg.pace))
		}
		m, d = leg.to, d-takes
	}
	return 0
}

// deepen takes in a refusal that was not explained.
func (c *cut) deepen(now time.Time) {
	m := c.left(now)
	if again := c.slow > 0 && abs(m-c.trouble) <= 2*zone; again {
		c.slow = min(c.slow+1, slowest)
	} else {
		c.slow = slowest - 2
	}
	c.missing, c.since, c.trouble = min(deepest, m+(whole-m)/refusalCut), now, m
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
