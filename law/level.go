package law

import "github.com/tripmeter/tripmeter/limit"

// exactly is how many readings in a row must be what the books of one window hold. Of
// four, a sliding minute in a drain was known 3 to 9 s later.
const exactly = 3

// matchLevels counts readings that are, to one in 500 of the limit, what the books of one
// sliding window hold. They must be far from what the other kind of sliding window holds,
// and from what a bucket foretells.
//
// A pair of answers has an error of all that left near to either. In a drain that is a
// tenth of the limit: by pairs alone a log was known after 70 to 300 s. Until then a log
// and two weighted windows count together, and a third of the limit is not used. Books
// that are right are off by one in 5,000 at the same time.
//
// Fixed windows are not asked: of the same use, a log never lets more go than they do.
func (l *Learner) matchLevels(c *comparison) {
	same := 1 + l.o.Round + l.n/500
	for i, w := range l.windows {
		if w == nil || w.Law().Shape == limit.ShapeFixed {
			continue
		}
		f := &l.pairs[i]
		switch off := abs(c.remaining - l.level(c, i)); {
		case off > same+c.near:
			f.exact = 0
		case off > same || c.m.at.Sub(l.matched[i]) < onTheWay:
			// What left near to it explains the reading, or it is the last one again.
		case abs(c.remaining-c.bucket) > 4*same && l.alone(c, i, 4*same):
			f.exact++
			l.matched[i] = c.m.at
		}
	}
}

// level is what is left by the books of window i.
func (l *Learner) level(c *comparison, i int) int64 { return l.n - c.m.used[i] }

// alone reports whether the books of all sliding windows of another shape than that of i
// are further than far from the reading.
func (l *Learner) alone(c *comparison, i int, far int64) bool {
	shape := l.windows[i].Law().Shape
	for k, w := range l.windows {
		if w == nil || w.Law().Shape == limit.ShapeFixed || w.Law().Shape == shape {
			continue
		}
		if abs(c.remaining-l.level(c, k)) <= far {
			return false
		}
	}
	return true
}
