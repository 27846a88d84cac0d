package law

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A crowd is 700 calls that leave at one instant. They reach the provider in any order,
// end at one instant, and their answers come in any order. Each is charged with its
// output cap at first, of which half comes back.
type crowd struct {
	p     *provider
	l     *Learner
	r     *rand.Rand
	heard map[limit.Shape]bool
}

const crowded = 700

type crowdCall struct {
	cost, left int64
	mark       Mark
}

// round lets a crowd leave at an instant and end after that time. The provider takes all
// of them or none.
func (c *crowd) round(at time.Time, lasts time.Duration) {
	calls, total := make([]crowdCall, crowded), int64(0)
	for i := range calls {
		call := &calls[i]
		call.cost = 2 * (1 + c.r.Int64N(c.p.n/(8*crowded)))
		call.mark = c.l.Charged(at, call.cost)
		total += call.cost
	}
	left, _, ok := c.p.call(at.Add(20*time.Millisecond), total)
	for _, i := range c.r.Perm(crowded) { // the last that arrives has what is left of all
		calls[i].left = left
		left += calls[i].cost
	}
	ends := at.Add(lasts)
	if c.p.used(ends); ok {
		c.p.charges[len(c.p.charges)-1].units -= total / 2
		c.p.level = max(0, c.p.level-float64(total/2))
	}
	for _, i := range c.r.Perm(crowded) {
		call := &calls[i]
		c.saw(call.mark, ends, call.left, ok)
		if ok {
			c.l.Corrected(at, ends, -call.cost/2)
		} else {
			c.l.Corrected(at, ends, -call.cost)
		}
	}
}

func (c *crowd) saw(m Mark, answered time.Time, left int64, ok bool) {
	e := Evidence{Mark: m, Answered: answered, Limit: Count{c.p.n, true}, Remaining: Count{left, ok}, Refused: !ok}
	e.Room = !ok && c.l.Room(&m)
	b, _ := c.l.Saw(e)
	c.heard[b.Law.Shape] = true
}

// single lets one call go between crowds, as most calls do.
func (c *crowd) single(at time.Time) {
	cost := 1 + c.r.Int64N(c.p.n/40)
	m := c.l.Charged(at, cost)
	left, _, ok := c.p.call(at.Add(20*time.Millisecond), cost)
	c.saw(m, at.Add(time.Second), left, ok)
	if !ok {
		c.l.Corrected(at, at.Add(time.Second), -cost)
	}
}

// What leaves and ends at one instant teaches no wrong law: whose charge a balance has
// in it is chance.
func TestCrowdsTeachNoWrongLaw(t *testing.T) {
	for _, law := range []string{"bucket", "log", "two", "fixed"} {
		t.Run(law, func(t *testing.T) {
			wrong, right := 0, 0
			for i := range *runsFlag {
				r := rand.New(rand.NewPCG(uint64(i), 19))
				now := time.Date(2026, 3, 1, 12, 0, i%60, 0, time.UTC)
				p := &provider{law: law, n: 300_000, window: time.Minute, first: law != "log", at: now, edge: now}
				c := crowd{p: p, l: New(Options{Unsure: 25}), r: r, heard: map[limit.Shape]bool{}}
				for range 9 {
					c.round(now, time.Duration(1+r.Int64N(8))*time.Second)
					now = now.Add(10 * time.Second)
					for range r.IntN(5) {
						now = now.Add(time.Duration(r.Int64N(int64(6 * time.Second))))
						c.single(now)
					}
					now = now.Add(time.Second)
				}
				delete(c.heard, limit.ShapeUnknown)
				bad := false
				for s := range c.heard {
					bad = bad || s.Windowed() == (law == "bucket") || s == limit.ShapeFixed && law != "fixed"
				}
				switch {
				case bad:
					wrong++
					t.Logf("run %d: believed %v", i, c.l.Belief())
				case len(c.heard) > 0:
					right++
				}
			}
			t.Logf("right %d, wrong %d of %d", right, wrong, *runsFlag)
			if wrong > 0 || right == 0 {
				t.Errorf("a wrong law in %d runs, a right one in %d, of %d", wrong, right, *runsFlag)
			}
		})
	}
}
