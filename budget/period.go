package budget

import (
	"time"

	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
)

// A period is what resets say of the window of a limit whose fields name none. Such a
// limit is taken for one of a minute, by the custom of these APIs. Where it is one of a
// second, that would leave a sixtieth of it.
//
// Nothing but calls that were alone counts: one that met all that the provider ever
// showed, and was followed by one that met it again after the reset of the first. A
// minute cannot do that with short resets. Its bucket takes missing / rate, its log the
// whole minute, and its fixed window names instants that are minutes apart.
//
// A reset that says nothing, such as the same one on every answer, could do it too. So
// each reset is a claim: after it the limit is whole again, less what was sent since. Two
// claims in a row that turn out wrong end the window that was found, as a longer reset
// does. The next one takes twice as many calls to find.
type period struct {
	window time.Duration // 0: not known
	named  time.Duration // what limits are named by: window, or the one before it until the next answer
	wrong  int           // windows found that turned out wrong
	last   alone
	limit  int64 // the last one
	most   int64 // the largest balance shown, with the call's own debit
	claim  claim
	broken int // claims in a row

	pairs   int // that count
	edge    time.Duration
	others  bool          // two edges are no whole minutes apart
	least   time.Duration // the shortest window by which a bucket explains a reset
	longest time.Duration // the longest reset
}

// alone is an answer that showed a whole limit less its own debit.
type alone struct {
	number uint64 // of the attempt; 0: there is none
	limit  int64
	reset  time.Duration
	until  time.Time // when the reset has passed
	debit  int64
	unit   time.Duration // in which the reset is written
}

// A claim is that a limit is whole from until on, less what was sent after the attempt
// of that number.
type claim struct {
	number uint64 // 0: there is none
	until  time.Time
	most   int64 // one attempt took
}

const (
	enoughPairs  = 3
	mostWrong    = 10 // counted
	enoughBroken = 2
	longestReset = 10 * time.Second
	longestFound = 30 * time.Second // windows above that stay a minute
	otherEdge    = 3 * time.Second  // from there on edges are those of different minutes
)

// An attempt is one that was answered: its number, and when it left.
type attempt struct {
	number uint64
	sent   time.Time
}

// saw takes in the quota of an answer, for an attempt that took own units: none if it
// was refused.
func (p *period) saw(now time.Time, a attempt, q headers.Quota, own int64) {
	was := p.last
	p.last = alone{}
	if !q.Limit.OK || !q.Remaining.OK || !q.Reset.OK || q.Remaining.N < 0 || q.Remaining.N > q.Limit.N {
		return
	}
	if q.Limit.N != p.limit {
		*p = period{named: p.named, wrong: p.wrong, limit: q.Limit.N}
	}
	if q.Reset.D > longestReset {
		p.end()
		return
	}
	unit := time.Millisecond
	if q.Reset.D%time.Second == 0 {
		unit = time.Second
	}
	until := now.Add(q.Reset.D + unit)
	if p.check(a, until, q.Remaining.N, own); own <= 0 || q.Remaining.N == q.Limit.N || q.Reset.D <= 0 {
		return
	}
	met := min(q.Remaining.N+own, q.Limit.N)
	p.most = max(p.most, met)
	if met < p.most-p.most/20 {
		return // others use it, or earlier calls are not back yet
	}
	p.last = alone{a.number, q.Limit.N, q.Reset.D, until, min(own, q.Limit.N-q.Remaining.N), unit}
	if was.number == 0 || was.number+1 != a.number || a.sent.Before(was.until) || p.most-met > was.debit/4 {
		return
	}
	p.pair(&was)
}

// check compares what is left after the attempt a with the claim that came before, and
// takes that of its own answer.
func (p *period) check(a attempt, until time.Time, left, own int64) {
	c := &p.claim
	if c.most = max(c.most, own); c.number >= a.number {
		return // it left before
	}
	if c.number > 0 {
		if a.sent.Before(c.until) {
			return
		}
		sent, limit := float64(a.number-c.number)*float64(c.most), float64(p.limit)
		if p.broken++; float64(left)+sent >= limit-limit/8 {
			p.broken = 0
		}
		if p.broken >= enoughBroken {
			p.end()
			return
		}
	}
	c.number, c.until = a.number, until
}

// end gives up the window that was found, and what would have shown one.
func (p *period) end() {
	if p.window > 0 {
		p.wrong = min(p.wrong+1, mostWrong)
	}
	*p = period{named: p.named, wrong: p.wrong, limit: p.limit}
}

// pair counts an answer whose reset has brought back what it said.
func (p *period) pair(was *alone) {
	bucket := refill(was.reset+was.unit, was.limit, was.debit)
	if bucket > longestFound {
		return // a bucket of a minute says so too
	}
	edge := time.Duration(was.until.UnixNano()) % time.Minute
	if p.pairs == 0 {
		p.edge = edge
	}
	if off := (edge - p.edge + time.Minute) % time.Minute; off > otherEdge && off < time.Minute-otherEdge {
		p.others = true
	}
	if p.pairs == 0 || bucket < p.least {
		p.least = bucket
	}
	p.longest = max(p.longest, was.reset)
	if p.pairs++; p.pairs < enoughPairs<<p.wrong || !p.others {
		return
	}
	p.find()
}

// refill is the window in which a bucket of n units gets missing ones back in reset.
func refill(reset time.Duration, n, missing int64) time.Duration {
	return time.Duration(float64(reset) * float64(n) / float64(missing))
}

// find sets the window to the shortest that explains all resets. A change makes another
// limit of it, so small ones are left.
func (p *period) find() {
	const step = 100 * time.Millisecond
	w := (max(p.least-p.least/20, p.longest) + step - 1) / step * step
	if w > p.window || w < p.window-p.window/5 {
		p.window = w
	}
}

// period is the window of a quota of that unit that names none, and is of a minute by
// custom. own is what the attempt took, nothing if it was refused.
func (p *Path) period(now time.Time, a attempt, u limit.Unit, q headers.Quota, own limit.Cost) time.Duration {
	s := p.inner
	if _, ok := recorded(s.profile, u, time.Minute, now); ok {
		return time.Minute
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.periods == nil {
		s.periods = map[limit.Unit]*period{}
	}
	f := s.periods[u]
	if f == nil {
		f = new(period)
		s.periods[u] = f
	}
	f.saw(now, a, q, part(u, own))
	f.named = f.window
	if f.window == 0 {
		return time.Minute
	}
	return f.window
}

// byCustom reports whether a limit of that unit and window may be one whose fields name
// no window: one of a minute, or one that was found.
func (s *Scope) byCustom(u limit.Unit, window time.Duration) bool {
	if window == time.Minute {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.periods[u]
	return f != nil && f.named == window
}

// unname forgets what headers said of the limit of that unit and window: they speak of
// one of another window.
func (s *Scope) unname(now time.Time, u limit.Unit, window time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, d := range s.dims {
		if d.limit.Unit != u || d.limit.Rate.Window != window {
			continue
		}
		if d.configured.Rate.N == 0 {
			s.drop(i)
		} else {
			d.unsay()
			s.apply(d, now)
		}
		return
	}
}
