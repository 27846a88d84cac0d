package budget

import "time"

// A cut is the safety net under one limit. It answers refusals that the ledger
// cannot explain: others use the limit unseen, or the limit is lower than
// configured. Each such refusal takes a fifth off the rate. The rate grows back
// by one per cent of the limit a second, and never above the limit. The zero cut
// takes nothing off.
//
// Growing back at one pace would meet the same refusal again and again. So the
// rate passes slowly through two per cent around the rate that was too much, and
// more slowly each time it is refused there. Refusals get rarer. When the others
// leave, the slow zone costs four minutes at most.
//
// "Too much" is the rate that was refused or, where it says more, what the
// budget really had in the window before. A provider that counts minutes lets
// any rate pass until its minute is full, so the rate alone says nothing there.
//
//	rate   refused ─╮                ╭─ full pace again
//	                │          _,-'    slow, around what was too much
//	                │       ,'
//	                ╰─────,'           full pace
type cut struct {
	missing int64 // parts per million taken off at since
	since   time.Time
	trouble int64 // what was missing at the rate that is too much
	slow    uint  // halvings of the pace in the zone; 0 never refused
}

const (
	whole      = 1_000_000 // parts
	deepest    = 950_000   // one twentieth of the limit always runs
	regrowth   = 10_000    // parts a second
	refusalCut = 5         // one part in five

	zone    = 20_000 // parts
	slowest = 6      // halvings: 128 s through the zone, 64 s through the next, and so on
)

// left returns the parts still taken off now.
func (c *cut) left(now time.Time) int64 {
	if c.missing == 0 {
		return 0
	}
	m, d := c.missing, max(0, now.Sub(c.since))
	// Down to the zone at full pace; through it slowly; then twice as fast
	// with each further width of it.
	to, pace := c.trouble+zone, int64(regrowth)
	for slow := int(c.slow); ; slow-- {
		if m > to {
			takes := time.Duration(m-to) * time.Second / time.Duration(pace)
			if d < takes {
				return m - int64(d)/int64(time.Second/time.Duration(pace))
			}
			m, d = to, d-takes
		}
		if to == 0 {
			return 0
		}
		to, pace = max(0, to-zone), regrowth>>max(0, slow)
		if slow <= 0 {
			to = 0
		}
	}
}

// deepen cuts after a refusal that was not explained. sustained is the share of
// the limit, in parts, that the budget had in the window before; whole is
// unknown. A low share cuts at most half of the rate at once: it may be low
// because there was little to send.
func (c *cut) deepen(now time.Time, sustained int64) {
	m := c.left(now)
	trouble := min(max(m, whole-sustained), m+(whole-m)/2)
	if c.slow > 0 && abs(trouble-c.trouble) <= 2*zone {
		c.slow = min(c.slow+1, slowest)
	} else {
		c.slow = slowest - 2
	}
	c.trouble = trouble
	c.missing, c.since = min(deepest, max(m+(whole-m)/refusalCut, trouble+zone)), now
}

func (c *cut) active() bool { return c.missing > 0 }

// of returns what is left of n now.
func (c *cut) of(n int64, now time.Time) int64 {
	m := c.left(now)
	if m == 0 {
		c.missing = 0
		return n
	}
	return n/whole*(whole-m) + n%whole*(whole-m)/whole
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
