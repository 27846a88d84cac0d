package budget

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// Waits are what the named waits of refusals show of a guess. A bucket names the time in
// which the cost of one call is refilled. A full window names the instant at which it
// gives back: a fixed one its edge, a log the end of what was used a window ago. Either
// has let in what it holds since a window before that instant:
//
//	 ╭───────────── window ─────────────╮
//	─┴──── what was let in ──── refused ┴──▶
//	                               wait
//
// So a wait that no bucket of that rate would name makes the guess a window of that much.
// A bucket in its place grew until it was refused, in each minute, and what calls under
// way gave back until the edge was lost: 79 % of the ideal, and 92 % now.
//
//	law            believed                              behind a guard
//	fixed window   from the first long wait              until a second one names an edge
//	the same,      while refusals that name the edge     of half the window
//	with others    show different amounts
//	log            once a wait names no edge             no
//	none           after two refusals with much room,    -
//	               for ten minutes
//
// The limit grows slowly, as a refusal costs what comes back until the edge. Where others
// use it, it grows by a fixed part of the most it was, so that all come to equal shares.
// It grows faster each minute, as they may have left. Half goes at the edge. At an even
// pace, what answers under way give back was lost at each edge. All at once was refused as
// a crowd. Four processes reached 72 to 75 % of the ideal, and 82 to 87 % now.
// On two weighted windows, taken for a fixed one, four reach 82 % instead of 86. The zero
// waits have seen nothing.
type waits struct {
	sends  *recent   // what left, less what came back of it; nil: not kept
	n      int64     // units that the window holds, by the last refusal; 0: no window
	begun  time.Time // when the window was first believed
	since  time.Time // the last refusal
	edge   time.Time // of the fixed window; zero: it is a log
	sure   bool      // a second long wait named an edge, and agreed
	unlike uint      // refusals that named the edge and showed another amount, less those that agreed
	top    int64     // the largest n
	agreed bool      // the last two refusals showed as much, to five per cent
	wrong  uint      // refusals in a row that had room
	until  time.Time // no window is believed before
}

const (
	waitUnit   = time.Second // providers round a wait up to it
	mostRefill = 1000        // windows, for a cost that is out of all proportion

	// A window grows by half a per cent in this time, and by the cube of it.
	growsSure   = 600 * time.Second // at an edge a refusal costs most of a window
	growsUnsure = 40 * time.Second
	growsLog    = 30 * time.Second // twice that if refusals agree: their waits are short

	// Where others use the window too, it grows by that part of the most it was in the
	// first minute. After each minute it grows twice as fast. So many refusals that agree
	// end that.
	growsUnlike = .15
	mostUnlike  = 2

	sparesIn = 50 // a crowd at an edge is priced by estimates: two per cent are left
)

// heedWait takes in that an attempt of that cost was refused at now, and that the refusal
// named a wait or 0. It reports whether a window explains it or is believed all the same.
func (d *dimension) heedWait(now time.Time, cost int64, named time.Duration) bool {
	w, window := &d.waits, d.limit.Rate.Window
	all := w.sends.in(now, window)
	opens := now.Add(named)
	n := w.sends.since(now, opens.Add(-window-waitUnit), window)
	long := named > 2*(earns(cost, limit.Rate{N: all, Window: window})+waitUnit)
	switch {
	case w.n == 0:
		if !long || n < all/2 || now.Before(w.until) {
			return false
		}
		*w = waits{sends: w.sends, begun: now, edge: opens}
		d.cut = cut{}
	case w.follow(now, opens, window, long) && n+cost > w.n/2, n+cost >= w.n/5*4:
		// As much as before, if that is possible. n may count calls that are under way
		// and will be refused.
		n = min(max(n, min(w.n, n+cost/2)), w.most(now))
	default:
		if w.wrong++; w.wrong == 1 {
			return true
		}
		d.guess(all, now)
		w.until = now.Add(guessAge)
		return false
	}
	w.agreed = w.n > 0 && abs(n-w.n) <= w.n/20
	w.compare()
	w.sure = w.agreed && w.unlike == 0 && !w.edge.IsZero() && (w.sure || long)
	w.n, w.since, w.wrong = max(1, n), now, 0
	w.top = max(w.top, w.n)
	d.said = w.n
	return true
}

// compare counts whether the refusals that named the edge agree. Where they do not, others
// use the window, and one that agrees by chance does not end that. A process that is sure
// hardly grows: one was held at a seventh of the limit for a quarter of an hour.
func (w *waits) compare() {
	switch {
	case w.n == 0 || w.edge.IsZero():
		w.unlike = 0
	case !w.agreed:
		w.unlike = min(w.unlike+1, mostUnlike)
	case w.unlike > 0:
		w.unlike--
	}
}

// heedCrowd takes in that another attempt was refused that left with the last refused one.
// It had been counted as let in: a crowd of 60 made a window of 300,000 one of 435,000.
func (d *dimension) heedCrowd(now time.Time, named time.Duration) {
	w, window := &d.waits, d.limit.Rate.Window
	n := w.sends.since(now, now.Add(named-window-waitUnit), window)
	if n < w.n && n > w.n/2 {
		w.n, d.said = n, n
	}
}

// follow takes in that a full window opens at an instant, after a long wait or a short
// one. It reports whether that is an edge of the fixed window. Else the window is a log.
// A short wait just after an edge shows that the edge was none.
func (w *waits) follow(now, opens time.Time, window time.Duration, long bool) (agrees bool) {
	if w.edge.IsZero() {
		return false
	}
	late := opens.Sub(w.edge.Add(opens.Sub(w.edge).Round(window))) // after the nearest edge
	begins := now.After(w.edge) && now.Sub(w.edge)%window < 2*waitUnit
	if begins && !long || max(late, -late) > waitUnit*3/2 {
		w.edge, w.unlike = time.Time{}, 0
		return false
	}
	if late < 0 {
		w.edge = opens // the waits are rounded up: the earliest is nearest
	}
	return true
}

// most is how many units the window may hold at now.
func (w *waits) most(now time.Time) int64 {
	in := growsUnsure
	switch {
	case w.unlike > 0:
		minutes := faster(min(now.Sub(w.since).Seconds(), 600)) / growsFast.Seconds()
		return min(limit.MaxUnits, w.n+int64(float64(w.top)*growsUnlike*minutes))
	case w.sure:
		in = growsSure
	case w.edge.IsZero() && w.agreed:
		in = 2 * growsLog
	case w.edge.IsZero():
		in = growsLog
	}
	t := min(float64(now.Sub(w.since))/float64(in), 100)
	return min(limit.MaxUnits, w.n+int64(float64(w.n)*t*t*t/200))
}

// full reports whether a window explains the last refusal: then it has no credit to drain.
func (w *waits) full() bool { return w.n > 0 && w.wrong == 0 }

// obey adds the window to the limit l. careful is what may go at once while nobody knows.
func (w *waits) obey(l *limit.Limit, careful int64) {
	l.Burst, l.LawSince, l.LawWhy = l.Rate.N, w.begun, "a refusal named a wait that no bucket would"
	if w.edge.IsZero() {
		l.Law = timed(limit.Law{Shape: limit.ShapeLog}, 0)
		return
	}
	l.Law = timed(limit.Law{Shape: limit.ShapeFixed, Edge: time.Duration(w.edge.UnixNano())}, waitUnit)
	switch {
	case w.sure:
		l.Law.Spare = l.Rate.N / sparesIn
	case w.unlike > 0:
		l.Guard = max(careful, l.Rate.N/2)
	default:
		l.Guard = careful
	}
}

// recall enters in the window of a new guess what left before it. The caller holds s.mu.
func (s *Scope) recall(d *dimension, now time.Time) {
	if d.waits.n == 0 {
		return
	}
	window := d.limit.Rate.Window
	d.waits.sends.each(now, now.Add(-window), window, func(end time.Time, units int64) {
		s.meter().RecallScope(s.name, d.limit.Name, now.Sub(end), units)
	})
}
