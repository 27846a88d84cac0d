package providertest

// fixed counts what is charged between two multiples of window on the wall
// clock; start is the wall clock, in ns since 1970, at instant 0.
type fixed struct {
	limit, window, start int64

	used, index int64 // index of the window that used belongs to
}

func (f *fixed) number(at int64) int64 { return (f.start + at) / f.window }
func (f *fixed) end(at int64) int64    { return (f.number(at)+1)*f.window - f.start - at }

func (f *fixed) usedAt(at int64) int64 {
	if f.number(at) != f.index {
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
	f.used, f.index = f.usedAt(at)+n, f.number(at)
}

// correct charges more to the window that is running, and gives back only to
// the window that was charged.
func (f *fixed) correct(at, stamp, n int64) {
	if n > 0 || f.number(stamp) == f.number(at) {
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

// slices gives slice k of every window its own whole share of the limit:
// floor(limit x (k+1) x slice / window) - floor(limit x k x slice / window).
// The shares differ by at most one and add up to the limit.
type slices struct {
	limit, window, slice, start int64

	used, index int64
}

func (s *slices) number(at int64) int64 { return (s.start + at) / s.slice }

func (s *slices) share(number int64) int64 {
	k := number % (s.window / s.slice)
	from, _, _ := mulDiv(s.limit, k*s.slice, s.window)
	to, _, _ := mulDiv(s.limit, (k+1)*s.slice, s.window)
	return to - from
}

// largest is the largest share of any slice.
func (s *slices) largest() int64 {
	q, r, _ := mulDiv(s.limit, s.slice, s.window)
	if r > 0 {
		q++
	}
	return q
}

func (s *slices) usedAt(at int64) int64 {
	if s.number(at) != s.index {
		return 0
	}
	return s.used
}

// wait looks through the slices of one whole window, after which the shares
// repeat.
func (s *slices) wait(at, n int64) int64 {
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

func (s *slices) take(at, n int64) {
	s.used, s.index = s.usedAt(at)+n, s.number(at)
}

func (s *slices) correct(at, stamp, n int64) {
	if n > 0 || s.number(stamp) == s.number(at) {
		s.take(at, n)
	}
}

func (s *slices) level(at int64) int64 { return s.share(s.number(at)) - s.usedAt(at) }
func (s *slices) holds(at int64) int64 { return s.share(s.number(at)) }

func (s *slices) full(at int64) int64 {
	if s.usedAt(at) == 0 {
		return 0
	}
	return (s.number(at)+1)*s.slice - s.start - at
}

func (s *slices) set(_, limit int64) { s.limit = limit }
