package budget

import (
	"math"
	"time"
)

// A cut is the safety net under one limit. It answers refusals that the ledger
// cannot explain: others use the limit unseen, or the limit is lower than
// configured. Each such refusal takes a quarter off the rate. The rate grows back, and
// never above the limit. The zero cut takes nothing off.
//
// How it grows depends on which rates are refused:
//
//   - About the same rate each time: the limit is lower. The rate grows at full pace, one
//     per cent of the limit a second, up to two per cent below the refused rate. It
//     passes slowly through two per cent around that, and more slowly each time it is
//     refused there.
//   - Another rate than the last time, three times in a row: others use the limit. The
//     rate grows by a fixed part of the limit a time, the less the higher it is: 0.16 %
//     of the limit a second at a quarter of it, 0.08 % at half. After each minute without
//     such a refusal it grows twice as fast, up to full pace. Two refusals in a
//     row at about the rate of the one before end that. One such refusal is not enough:
//     while a process that is alone finds the burst of its limit, it is refused at
//     several rates, and lost 4 % of a bucket of 3 s.
//
// The first makes refusals of one process rarer, and keeps nearly all of a lower limit.
// The second brings processes that share a limit without knowing each other to equal
// shares: the largest loses most and gains least. With the first alone each kept to the
// rate at which it was refused itself. When the others leave, either costs five minutes
// at most.
//
// Where answers show the balance, the rate follows it instead: see [newest].
//
// The rate that was refused is, where it says more, what the budget really had in the
// window before. A provider that counts minutes lets any rate pass until its minute is
// full, so the rate alone says nothing there.
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
	unlike  uint  // refusals in a row at another rate than the one before
	others  uint  // how many refusals at about the same rate show that there are no others
}

const (
	whole      = 1_000_000 // parts
	deepest    = 950_000   // one twentieth of the limit always runs
	regrowth   = 10_000    // parts a second, at most
	refusalCut = 4         // one part in four

	growsAt   = whole / 4 // at this rate it grows by growsBy
	growsBy   = 1600      // parts a second
	growsFast = time.Minute

	enough    = 3                // cut.unlike that shows others
	steady    = 2                // cut.others from then on
	about     = 40               // the same rate is one that differs by one part in so many
	recalls   = 10 * time.Minute // after that a refusal is a first one
	zone      = 20_000           // parts
	firstSlow = 4                // halvings
	slowest   = 6                // 128 s through the zone, 64 s through the next, and so on
)

// left returns the parts still taken off now.
func (c *cut) left(now time.Time) int64 {
	if c.missing == 0 {
		return 0
	}
	d := max(0, now.Sub(c.since))
	if c.others == 0 {
		return c.leftAlone(d)
	}
	t := d.Seconds()
	from := float64(whole - c.missing)
	// It grows by growsBy*growsAt/rate: the square of the rate grows evenly.
	rate := min(from+regrowth*t, math.Sqrt(from*from+2*growsBy*growsAt*faster(t)))
	return max(0, whole-int64(rate))
}

// faster is a time in seconds that passes twice as fast after each growsFast.
func faster(d float64) float64 {
	step := growsFast.Seconds()
	n := min(math.Floor(d/step), 16)
	fast := math.Exp2(n)
	return step*(fast-1) + fast*(d-n*step)
}

// leftAlone is left after a time of d, where nothing shows that others use the limit.
func (c *cut) leftAlone(d time.Duration) int64 {
	// Down to the zone at full pace; through it slowly; then twice as fast
	// with each further width of it.
	m := c.missing
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
	same := abs(trouble-c.trouble) <= (whole-c.trouble)/about
	switch {
	case c.slow == 0 || now.Sub(c.since) > recalls:
		c.slow, c.unlike, c.others = firstSlow, 0, 0
	case !same:
		c.slow = firstSlow
		if c.unlike = min(c.unlike+1, enough); c.unlike == enough {
			c.others = steady
		}
	case c.others > 0:
		c.unlike, c.others = 0, c.others-1
	default:
		c.unlike, c.slow = 0, min(c.slow+1, slowest)
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
	return partOf(n, whole-m)
}

// partOf is that many parts of n.
func partOf(n, parts int64) int64 { return n/whole*parts + n%whole*parts/whole }
