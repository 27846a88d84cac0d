package redislimit

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// Meters says that the store counts by windows, also from the ends of calls, and keeps
// guards and allowances. A call that waits is priced anew.
func (l *Limiter) Meters() limit.Meters {
	return limit.Meters{Windows: true, Guards: true, Allowances: true, Ends: true, Prices: true}
}

var _ limit.Metered = (*Limiter)(nil)

// writeLimit writes a limit as the script reads it, at the store's instant.
func writeLimit(w *writer, l limit.Limit, store int64) {
	burst, largest := l.Sizes()
	for _, n := range [...]int64{
		int64(l.Unit), l.Rate.N, int64(l.Rate.Window / time.Microsecond),
		burst, largest, l.Burst, l.Largest, bit(l.Empty),
	} {
		w.num(n)
	}
	w.str(moreOf(l, store))
}

// moreOf is what few limits have, packed; empty if l has nothing of it. The store
// keeps it and gives it back as it is. Spans are rounded to the store's
// microseconds, so that a call waits rather than goes too early.
func moreOf(l limit.Limit, store int64) string {
	law := l.Law
	if !law.Shape.Windowed() {
		law = limit.Law{Shape: law.Shape}
	}
	if l.Guard == 0 && l.Margin == 0 && l.ReadAt == 0 && law == (limit.Law{}) && l.LawSince.IsZero() && l.LawWhy == "" {
		return ""
	}
	edge := int64(0)
	if window := int64(l.Rate.Window / time.Microsecond); window > 0 && (!law.FirstCall || law.Edge != 0) {
		edge = micros(law.Edge%l.Rate.Window) % window
		if edge <= 0 { // the script takes 0 for none
			edge += window
		}
	}
	since := int64(0)
	if !l.LawSince.IsZero() {
		since = max(1, store-int64(time.Since(l.LawSince)/time.Microsecond))
	}
	var w writer
	w.reset()
	for _, n := range [...]int64{
		l.Guard, l.Margin, int64(l.ReadAt),
		int64(law.Shape), edge, bit(law.FirstCall), micros(law.Margin), micros(law.Quiet), law.Spare,
		since,
	} {
		w.num(n)
	}
	w.str(l.LawWhy)
	if law.AtEnd {
		w.num(1)
	}
	return string(w.bytes())
}

// readMore adds to l what moreOf packed. local is an instant of the store on the clock of
// this process.
func readMore(packed string, l *limit.Limit, local func(us int64) time.Time) {
	if packed == "" {
		return
	}
	r := &reader{b: packed}
	r.array()
	l.Guard, l.Margin, l.ReadAt = r.num(), r.num(), limit.ReadAt(r.num())
	span := func() time.Duration { return time.Duration(r.num()) * time.Microsecond }
	l.Law.Shape, l.Law.Edge = limit.Shape(r.num()), span()
	l.Law.FirstCall = r.num() == 1
	l.Law.Margin, l.Law.Quiet, l.Law.Spare = span(), span(), r.num()
	if since := r.num(); since > 0 {
		l.LawSince = local(since)
	}
	l.LawWhy = r.str()
	l.Law.AtEnd = r.b != "" && r.num() == 1
}

// paced is l as a process keeps it while the store is away. Nobody knows what the
// windows hold meanwhile. So it begins with nothing and keeps the pace of the rate,
// after a burst that the guard would let go.
func paced(l limit.Limit) limit.Limit {
	burst, largest := l.Sizes()
	if l.Guard > 0 {
		l.Burst, l.Largest = min(burst, l.Guard), largest
	}
	l.Law, l.Guard, l.Empty = limit.Law{}, 0, true
	return l
}

// wall is the clock of the process, which may be wrong by minutes. Only the span from
// now to an edge is taken from it, since the edge was seen on it.
var wall = time.Now

// onStore is a law whose edge was seen on the clock of this process, by that of the
// store, which shows `store` microseconds now. The way of the store's answer is in the
// difference; it is taken to whole 10 ms, so that processes agree.
func onStore(law limit.Law, store int64) limit.Law {
	if !law.Shape.Windowed() || law.FirstCall && law.Edge == 0 || store == 0 {
		return law
	}
	const grain = 10 * time.Millisecond
	here := law.Edge - law.From(wall()).Edge
	ahead := time.Duration(store)*time.Microsecond - here + grain/2
	law.Edge += ahead - (ahead%grain+grain)%grain
	return law
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

const wrap = 1 << 52 // sums are kept modulo that

// A mark holds the charges of a scope at the instant an attempt left. before
// holds the charges so much older that the other side has them for sure.
type mark struct {
	sums   sums
	before [3]int64
}

// A trail holds the debits of a scope that the store reported in the last half a
// second, one report for each slot. It takes other debits for charged later.
type trail struct {
	slots [16]trailSlot
	last  int64
}

type trailSlot struct {
	at     int64 // the store's instant
	debits [3]int64
}

const trailGrid = 32_768 // microseconds

func (t *trail) note(now int64, debits [3]int64) {
	k := now / trailGrid
	t.slots[k%int64(len(t.slots))] = trailSlot{now, debits}
	t.last = max(t.last, k)
}

// at returns the latest report up to that instant; if there is none, the oldest
// that is kept.
func (t *trail) at(now int64) [3]int64 {
	n := int64(len(t.slots))
	var oldest [3]int64
	for k := t.last; k > t.last-n && k >= 0; k-- {
		s := t.slots[k%n]
		if s.at/trailGrid != k {
			continue
		}
		if oldest = s.debits; s.at <= now {
			break
		}
	}
	return oldest
}

// windowed reports whether a limit of the path is asked as a window at that instant.
func (p *path) windowed(now int64) bool {
	for _, s := range p.all {
		if now < s.windowed {
			return true
		}
	}
	return false
}

// endings reports whether a limit of the path has end books, asked or not: they know each
// call by itself.
func (p *path) endings() bool {
	for _, s := range p.all {
		if s.ends {
			return true
		}
	}
	return false
}

// heard reports whether a reading has lowered a limit of the path.
func (p *path) heard() bool {
	for _, s := range p.all {
		if s.sums.owed > 0 {
			return true
		}
	}
	return false
}

// Passed notes that an attempt was not refused: see [limit.Reservation.Passed]. The
// store hears of it where a whole burst went that no answer has judged.
func (l *Limiter) Passed(handle uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries.get(handle)
	if e == nil || e.sent == 0 {
		return
	}
	if e.away != nil {
		e.local.Passed()
		return
	}
	due := false
	for _, s := range e.path.all {
		if s.spent > 0 && s.spent <= e.sent {
			due, s.spent = true, 0 // once; the next answer says whether it is judged
		}
	}
	if due {
		e.path.refs++
		l.control(&control{kind: ctlPassed, path: e.path, nums: []int64{e.sent}})
	}
}
