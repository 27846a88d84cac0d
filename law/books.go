package law

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// charge enters units that count from at on, as is known from now on.
func (l *Learner) charge(at, now time.Time, units int64) {
	l.spent += units
	if l.n > 0 { // else no books are open
		for i := range l.windows {
			l.enter(i, at, units)
		}
	}
	l.recent[l.charges%len(l.recent)] = charged{at, l.spent}
	l.charges++
	l.flow.add(int64(now.Sub(l.base)), units)
}

func (l *Learner) mark(m *Mark, at time.Time) {
	*m = Mark{at: at, n: l.n, epoch: l.epoch, spent: l.spent, begun: l.begun, over: l.over}
	if l.n == 0 {
		return
	}
	for i, w := range l.windows {
		if w == nil {
			continue
		}
		l.roll(i, at)
		w.Charge(max(0, at.Sub(l.base)), 0)
		m.used[i] = l.n - w.Credit()
		m.edge[i], m.fresh[i] = l.edge[i], l.fresh[i]
	}
}

// roll follows the edges of a window.
func (l *Learner) roll(i int, at time.Time) {
	w, t := l.windows[i], int64(max(0, at.Sub(l.base)))
	if w.Law().FirstCall {
		w.Charge(time.Duration(t), 0)
		if t-l.edge[i] >= int64(l.o.Window) && w.Credit() == l.n {
			l.edge[i], l.fresh[i] = t, 0
		}
	}
	edge := int64(w.Law().Edge)
	if w.Law().FirstCall {
		edge = l.edge[i]
	}
	past := (t - edge) % int64(l.o.Window)
	if past < 0 {
		past += int64(l.o.Window)
	}
	if now := t - past; now > l.edge[i] {
		l.edge[i], l.fresh[i] = now, 0
	}
}

// open begins the books of the windows anew, for a limit of n of which used
// counted at an instant. Remembered charges are entered, so that windows begin with
// the first of them. The rest of used is the use of others.
func (l *Learner) open(n int64, at time.Time, used int64) {
	l.n = n
	l.epoch++
	first := max(0, l.charges-len(l.recent))
	begin, before := at, int64(0)
	if first < l.charges {
		begin = l.recent[first%len(l.recent)].at
		if first > 0 {
			before = l.recent[first%len(l.recent)].spent
			first++
		}
	}
	if begin.After(at) {
		begin = at
	}
	clock := time.Duration(l.base.Truncate(l.o.Window).Sub(l.base))
	for i, law := range [...]limit.Law{
		aLog:              {Shape: limit.ShapeLog},
		weightedFromFirst: {Shape: limit.ShapeTwoWindows, FirstCall: true},
		fixedFromFirst:    {Shape: limit.ShapeFixed, FirstCall: true},
		weightedFromClock: {Shape: limit.ShapeTwoWindows, Edge: clock},
		fixedFromClock:    {Shape: limit.ShapeFixed, Edge: clock},
	} {
		if l.leavesOut(i) {
			continue
		}
		l.begin(i, law, begin, 0)
		last, others := before, used
		for k := first; k < l.charges; k++ {
			c := l.recent[k%len(l.recent)]
			if c.at.After(at) && others > 0 {
				l.enter(i, at, others)
				others = 0
			}
			l.enter(i, c.at, c.spent-last)
			others -= c.spent - last
			last = c.spent
		}
		if l.charges == first || !l.recent[(l.charges-1)%len(l.recent)].at.After(at) {
			l.enter(i, at, max(0, others))
		}
	}
	l.windows[weightedFromReset], l.windows[fixedFromReset] = nil, nil
	l.lump, l.gone = used, at.Add(l.o.Window)
	for k := first; k < l.charges && !l.recent[k%len(l.recent)].at.After(at); k++ {
		l.lump = used - (l.recent[k%len(l.recent)].spent - before)
	}
	l.votes, l.pairs, l.resets, l.last.ok = votes{}, [books]fit{}, [instants]resets{}, false
	l.bucket, l.chosen = fit{}, none
}

// enter charges the books of one window, or returns where units are below zero.
func (l *Learner) enter(i int, at time.Time, units int64) {
	w := l.windows[i]
	if w == nil || units == 0 {
		return
	}
	t := max(0, at.Sub(l.base))
	if units < 0 {
		w.Return(t, -units)
	} else {
		l.roll(i, at)
		w.Charge(t, units)
	}
	if int64(t) >= l.edge[i] { // else what comes back was charged before the edge
		l.fresh[i] += units
	}
}

func (l *Learner) begin(i int, law limit.Law, at time.Time, used int64) {
	w, err := limit.NewWindow(limit.Rate{N: l.n, Window: l.o.Window}, law)
	if err != nil {
		return // an impossible limit teaches nothing
	}
	t := max(0, at.Sub(l.base))
	l.windows[i], l.edge[i], l.fresh[i] = w, 0, 0
	if law.FirstCall {
		l.edge[i] = int64(t)
	}
	l.roll(i, at)
	w.Charge(t, used)
	l.fresh[i] = used
}
