package budget

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A newest is the newest balance that answers showed of a limit. Where refusals agree with
// it, a cut rate follows it. The zero newest was never shown.
//
// Processes that share a limit without knowing each other see the same balance. So each
// takes a rate that depends on it alone, and all come to the same rate: the higher the
// more is left, and in full where six seconds' worth are.
//
//	share = (left / six seconds' worth)^2, one at most
//	rate  = half of it the share, half of it the mean of the shares shown so far
//
// Four processes so leave about three seconds' worth, and one alone leaves six. Refusals
// alone, as [cut] has them, say less: of four processes on a bucket of 10 s, 51 calls of
// 1,000 were refused at 95 % of the ideal throughput, and 13 at 99 % with the balance.
//
// Six seconds are counted by the rate, not by the largest balance shown: processes that
// came later have seen a smaller one, and got up to twice as much. Of a share without the
// square, two processes would need twelve seconds' worth, which few buckets hold. Each
// reading counts once. By the time that it stands, low readings count more: after them
// a process waits longer for the next one, and a slow one got ever slower.
//
// Where the budget itself used three fifths of what is missing, the rate does not follow:
// one process on a sliding log, with refusals of its own making, lost 5 % of it. At three
// quarters a wrong charge rule was still taken for others.
//
// Where answers name an edge, as those of fixed windows do, all comes back there. So the
// share is one, and then what is left of three quarters of the window:
//
//	rate = left / 45 seconds' worth, one at most
//
// What is held for answers under way comes back only before the edge. The rate is high
// first, and few are under way at the edge. At the same pace all the time a sixth of
// each window was lost. After a refusal the rate is the mean of what was used, up to
// the edge: a drain counts on it.
type newest struct {
	sent    time.Time // when the attempt left whose answer showed it
	heard   time.Time // when that answer came
	left    int64     // units; 0 where it showed less
	agrees  bool      // the last refusal that cut the rate came at a low balance
	others  bool      // others used two fifths at least of what is missing
	refused time.Time // when an attempt was refused last
}

const (
	ample    = 6 * time.Second // of the rate: nobody is short of what is left
	fresh    = 8 * time.Second // how long a reading counts beside the mean
	readings = 8               // one in so many of the mean is the newest
)

// balanced takes in that an answer showed left units of d, to the attempt that left at
// sent. The caller holds s.mu.
func (s *Scope) balanced(d *dimension, now, sent time.Time, left int64) {
	b := &d.newest
	if sent.Before(b.sent) {
		return
	}
	b.sent, b.heard, b.left = sent, now, max(0, left)
	b.others = d.used.in(now, d.limit.Rate.Window) < d.missing(now, b.left)/5*3
	if !d.follows() {
		return
	}
	share := d.share()
	if _, ok := d.edge(now); ok {
		share = ratio(d.used.in(now, d.limit.Rate.Window), d.most())
	}
	d.cut.follow(now, share)
}

// missing is what all have used of d in the last window, as far as a balance of left units
// at now shows it: what the limit lacks, and no more than was there when it was learned and
// was refilled since. A bucket of 3 s lacks most of the limit at all times. In its first
// minute a process that was alone took itself for one of several: 4 % of the ideal.
func (d *dimension) missing(now time.Time, left int64) int64 {
	return min(d.most(), d.shown+d.worth(now.Sub(d.born))) - left
}

// agree asks whether the refusal of an attempt of that cost, which left at sent, agrees
// with its balance. It does not if enough was left: then another limit refused. A cost
// is an estimate, which may be half of what is charged. The caller holds s.mu.
func (s *Scope) agree(d *dimension, sent time.Time, cost int64) {
	b := &d.newest
	b.agrees = s.own && d.law.learner != nil && !d.shared() && b.sent.Equal(sent) && b.left < max(2*cost, d.most()/20)
	if b.agrees && b.others {
		d.cut.others = steady
	}
}

// follows reports whether the rate of d follows its balance.
func (d *dimension) follows() bool { return d.newest.agrees && d.newest.others && d.cut.active() }

// edge is the last edge before now that answers name.
func (d *dimension) edge(now time.Time) (edge time.Time, ok bool) {
	return d.law.learner.Edge(now.Add(-afterEdge))
}

// renews reports whether an edge has passed since the rate of d was put in force.
func (d *dimension) renews(now time.Time) bool {
	if !d.follows() {
		return false
	}
	edge, ok := d.edge(now)
	return ok && d.newest.sent.Before(edge) && d.limit.Rate.N < d.ceiling()
}

// worth is what the whole limit refills in a time, in units.
func (d *dimension) worth(t time.Duration) int64 {
	return limit.Rate{N: d.most(), Window: d.limit.Rate.Window}.In(t)
}

// share is the rate that the newest balance allows, in parts of the limit. A bucket may
// hold less than is ample.
func (d *dimension) share() int64 {
	x := ratio(d.newest.left, min(d.worth(ample), d.shown/4*3))
	return x * x / whole
}

// ratio is n of all in parts, one at most.
func ratio(n, all int64) int64 {
	if n >= all {
		return whole
	}
	return max(0, int64(float64(n)/float64(all)*whole))
}

// paced is the rate to run d with at now, in units a window.
func (d *dimension) paced(now time.Time) int64 {
	n := d.ceiling()
	mean := d.cut.of(n, now)
	b := &d.newest
	if !d.follows() {
		return mean
	}
	if edge, ok := d.edge(now); ok {
		switch {
		case b.refused.After(edge):
			return mean
		case b.sent.Before(edge):
			return n
		}
		return partOf(n, max(whole-deepest, ratio(b.left, d.most()/4*3)))
	}
	age := now.Sub(b.heard)
	if age >= fresh {
		return mean
	}
	half := int64(fresh-max(0, age)) / int64(fresh/whole) / 2 // in parts
	return partOf(mean, whole-half) + partOf(partOf(n, max(whole-deepest, d.share())), half)
}

// follow moves the rate towards share, in parts of the limit.
func (c *cut) follow(now time.Time, share int64) {
	missing := c.left(now)
	missing += (whole - share - missing) / readings
	if c.missing, c.since = min(missing, deepest), now; missing < whole/100 {
		c.missing = 0
	}
}
