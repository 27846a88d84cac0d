package providertest

// fixed counts what is charged between two edges. On the wall clock the edges
// are the multiples of window; start is the wall clock, in ns since 1970, at
// instant 0. With first set, a window begins at the first charge after the
// last one has ended.
type fixed struct {
	limit, window, start int64
	first                bool

	used, index int64 // index of the window that used belongs to
	begun       int64 // instant of its beginning; used with first
	running     bool  // whether there was one; used with first
}

func (f *fixed) number(at int64) int64 { return (f.start + at) / f.window }

func (f *fixed) same(at int64) bool {
	if f.first {
		return f.running && at < f.begun+f.window
	}
	return f.number(at) == f.index
}

func (f *fixed) end(at int64) int64 {
	if f.first {
		return f.begun + f.window - at
	}
	return (f.number(at)+1)*f.window - f.start - at
}

func (f *fixed) usedAt(at int64) int64 {
	if !f.same(at) {
		return 0
	}
	return f.used
}

func (f *fixed) wait(at, n int64) int64 {
	switch {
	case n > f.limit:
		return never
	case f.usedAt(at)+n <= f.limit:
		return 0
	}
	return f.end(at)
}

func (f *fixed) take(at, n int64) {
	if f.first && n > 0 && !f.same(at) {
		f.begun, f.running, f.used = at, true, 0
	}
	f.used, f.index = f.usedAt(at)+n, f.number(at)
}

// correct charges more to the window that is running, and gives back only to
// the window that was charged.
func (f *fixed) correct(at, stamp, n int64) {
	charged := f.number(stamp) == f.number(at)
	if f.first {
		charged = f.same(at) && stamp >= f.begun
	}
	if n > 0 || charged {
		f.take(at, n)
	}
}

func (f *fixed) level(at int64) int64 { return f.limit - f.usedAt(at) }
func (f *fixed) holds(int64) int64    { return f.limit }

func (f *fixed) full(at int64) int64 {
	if f.usedAt(at) == 0 {
		return 0
	}
	return f.end(at)
}

func (f *fixed) set(_, limit int64) { f.limit = limit }

// weighted counts in windows as fixed does, and weighs the last one by what is
// left of the running one: used = this + last x (window - elapsed) / window.
// With first set the windows are counted from the first charge after a whole
// window without one.
type weighted struct {
	limit, window, start int64
	first, edge          bool // edge: full names the end of the running window

	this, last, index int64
	charged           int64 // index of the newest charge, if running
	running           bool  // whether anything was ever charged
}

func (w *weighted) number(at int64) int64  { return (w.start + at) / w.window }
func (w *weighted) elapsed(at int64) int64 { return (w.start + at) % w.window }

// counts are this and last as they are at an instant.
func (w *weighted) counts(at int64) (this, last int64) {
	switch w.number(at) - w.index {
	case 0:
		return w.this, w.last
	case 1:
		return 0, w.this
	}
	return 0, 0
}

// rest is last x (window - elapsed) / window, rounded up: a part of a unit is
// still used.
func (w *weighted) rest(at, last int64) int64 {
	q, r, _ := mulDiv(last, w.window-w.elapsed(at), w.window)
	if r > 0 {
		q++
	}
	return q
}

func (w *weighted) usedAt(at int64) int64 {
	this, last := w.counts(at)
	return this + w.rest(at, max(0, last))
}

// wait solves last x (window - e) / window <= room for the elapsed time e, in
// this window and, if there is none, in the next one.
func (w *weighted) wait(at, n int64) int64 {
	if n > w.limit {
		return never
	}
	if w.usedAt(at)+n <= w.limit {
		return 0
	}
	this, last := w.counts(at)
	left := w.window - w.elapsed(at)
	if room := w.limit - n - this; room >= 0 {
		return w.until(room, last) - w.elapsed(at)
	}
	return left + w.until(w.limit-n, this)
}

// until is the least elapsed time at which last weighs no more than room.
func (w *weighted) until(room, last int64) int64 {
	if last <= room {
		return 0
	}
	q, _, _ := mulDiv(room, w.window, last)
	return w.window - q
}

func (w *weighted) take(at, n int64) {
	if w.first && n > 0 && (!w.running || w.number(at) > w.charged+1) {
		w.start = (w.window - at%w.window) % w.window // elapsed(at) is 0
		w.this, w.last, w.index = 0, 0, w.number(at)
	}
	w.this, w.last = w.counts(at)
	w.this, w.index = w.this+n, w.number(at)
	if n > 0 {
		w.charged, w.running = w.index, true
	}
}

// correct charges more to the running window. It gives back to the window that was
// charged, while that window is counted.
func (w *weighted) correct(at, stamp, n int64) {
	w.take(at, 0)
	switch {
	case n > 0 || w.number(stamp) == w.index:
		w.take(at, n)
	case w.number(stamp) == w.index-1:
		w.last += n
	}
}

func (w *weighted) level(at int64) int64 { return w.limit - w.usedAt(at) }
func (w *weighted) holds(int64) int64    { return w.limit }

func (w *weighted) full(at int64) int64 {
	this, last := w.counts(at)
	left := w.window - w.elapsed(at)
	switch {
	case this <= 0 && last <= 0:
		return 0
	case w.edge || this <= 0:
		return left
	}
	return left + w.window
}

func (w *weighted) set(_, limit int64) { w.limit = limit }

// sliding keeps a log of what was charged in the window that ends now. The
// log has at most one item per instant, and none that has left the window.
type sliding struct {
	limit, window int64

	log  []charged // oldest first
	used int64     // sum of the log
}

type charged struct{ at, n int64 }

// since is the number of items that have left the window by at, and what the
// others add up to. An item made at t is out at t + window.
func (s *sliding) since(at int64) (gone int, used int64) {
	used = s.used
	for gone < len(s.log) && s.log[gone].at <= at-s.window {
		used -= s.log[gone].n
		gone++
	}
	return gone, used
}

func (s *sliding) wait(at, n int64) int64 {
	if n > s.limit {
		return never
	}
	gone, used := s.since(at)
	for used+n > s.limit {
		used -= s.log[gone].n
		gone++
		if used+n <= s.limit {
			return s.log[gone-1].at + s.window - at
		}
	}
	return 0
}

func (s *sliding) take(at, n int64) {
	gone, used := s.since(at)
	s.log, s.used = s.log[gone:], used
	if n == 0 {
		return
	}
	s.used += n
	if k := len(s.log); k > 0 && s.log[k-1].at == at {
		s.log[k-1].n += n
		return
	}
	s.log = append(s.log, charged{at, n})
}

// correct charges more at the present instant, and gives back at the instant
// that was charged, if that is still in the window.
func (s *sliding) correct(at, stamp, n int64) {
	if n > 0 {
		s.take(at, n)
		return
	}
	s.take(at, 0)
	for i := range s.log {
		if s.log[i].at == stamp {
			s.log[i].n += n
			s.used += n
		}
	}
}

func (s *sliding) level(at int64) int64 { _, used := s.since(at); return s.limit - used }
func (s *sliding) holds(int64) int64    { return s.limit }

func (s *sliding) full(at int64) int64 {
	for i := len(s.log) - 1; i >= 0; i-- {
		if s.log[i].n > 0 {
			return max(0, s.log[i].at+s.window-at)
		}
	}
	return 0
}

func (s *sliding) set(_, limit int64) { s.limit = limit }

// sliced gives slice k of every window its own whole share of the limit:
// floor(limit x (k+1) x slice / window) - floor(limit x k x slice / window).
// The shares differ by at most one and add up to the limit.
type sliced struct {
	limit, window, slice, start int64

	used, index int64
}

func (s *sliced) number(at int64) int64 { return (s.start + at) / s.slice }

func (s *sliced) share(number int64) int64 {
	k := number % (s.window / s.slice)
	from, _, _ := mulDiv(s.limit, k*s.slice, s.window)
	to, _, _ := mulDiv(s.limit, (k+1)*s.slice, s.window)
	return to - from
}

// largest is the largest share of any slice.
func (s *sliced) largest() int64 {
	q, r, _ := mulDiv(s.limit, s.slice, s.window)
	if r > 0 {
		q++
	}
	return q
}

func (s *sliced) usedAt(at int64) int64 {
	if s.number(at) != s.index {
		return 0
	}
	return s.used
}

// wait looks through the slices of one whole window, after which the shares
// repeat.
func (s *sliced) wait(at, n int64) int64 {
	now := s.number(at)
	if s.usedAt(at)+n <= s.share(now) {
		return 0
	}
	for k := now + 1; k <= now+s.window/s.slice; k++ {
		if n <= s.share(k) {
			return k*s.slice - s.start - at
		}
	}
	return never
}

func (s *sliced) take(at, n int64) {
	s.used, s.index = s.usedAt(at)+n, s.number(at)
}

func (s *sliced) correct(at, stamp, n int64) {
	if n > 0 || s.number(stamp) == s.number(at) {
		s.take(at, n)
	}
}

func (s *sliced) level(at int64) int64 { return s.share(s.number(at)) - s.usedAt(at) }
func (s *sliced) holds(at int64) int64 { return s.share(s.number(at)) }

func (s *sliced) full(at int64) int64 {
	if s.usedAt(at) == 0 {
		return 0
	}
	return (s.number(at)+1)*s.slice - s.start - at
}

func (s *sliced) set(_, limit int64) { s.limit = limit }
