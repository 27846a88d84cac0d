package budget

import (
	"math"
	"slices"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// falls are those of the balance from one sample to another, and how far each rule is
// off. The zero falls have seen none.
//
// The refill between two samples is not known: nothing if the limit is a window; all
// that the rate allows if it is a bucket, which is full at the limit less the charge
// of the later attempt. Both are tried, and the rules are compared under the better
// fit. Under the wrong one every fall would look too large, and a right rule too
// cheap.
type falls struct {
	lately [samples]sample              // a ring
	next   int                          // its next place
	errs   [refills][rules][pairs]int64 // rings: by how much each rule misses the fall
	want   [refills][rules][pairs]int64 // the falls predicted
	n      [refills]int
}

const (
	pairs   = 40
	few     = 16 // pairs that show that nothing is reserved
	samples = 32
	rules   = 4 // indexed by estimate.Charge
	refills = 2 // none, and all that the rate allows
)

// predictions are the tokens charged so far under each rule.
type predictions [rules]int64

// A sample is a balance of a token limit, and what each rule had charged by then.
type sample struct {
	at        time.Time // when its attempt left
	remaining int64
	most      int64       // the largest balance there can be
	sums      predictions // with own
	flurry    uint64      // in which its attempt left
	own       predictions // of its attempt
	set       bool
}

// follows compares s with the sample that came before, and reports whether it did. An
// older one is left out.
func (f *falls) follows(s sample, l limit.Rate) bool {
	prev := f.lately[0]
	if prev.set && !s.at.After(prev.at) {
		return false
	}
	f.lately[0] = s
	return f.saw(&prev, &s, l)
}

// apart compares s with the latest sample that is a second older, or else with the
// oldest, and reports whether it did. In a second answers end, by which the rules differ.
// Samples up to from are left out: a crowd is between. Answers come in any order. With
// those alone that came in order, a crowd of long answers left one pair in five seconds.
func (f *falls) apart(s sample, from time.Time, l limit.Rate) bool {
	var prev *sample
	for i := range f.lately {
		switch o := &f.lately[i]; {
		case !o.set || !o.at.Before(s.at) || !o.at.After(from):
		case prev == nil || s.before(o, prev):
			prev = o
		}
	}
	ok := prev != nil && f.saw(prev, &s, l)
	f.lately[f.next] = s
	f.next = (f.next + 1) % samples
	return ok
}

// saw compares two samples, and reports whether that is possible.
func (f *falls) saw(prev, s *sample, l limit.Rate) bool {
	if !prev.set || s.most != prev.most || s.remaining > s.most {
		return false
	}
	// At the bottom the balance cannot show debt.
	if s.remaining <= 0 || prev.remaining <= 0 {
		return false
	}
	f.compare(0, prev, s, 0)
	f.compare(1, prev, s, l.In(s.at.Sub(prev.at)))
	return true
}

// before reports whether a is a better sample to compare s with than b. Both are older.
func (s *sample) before(a, b *sample) bool {
	old := s.at.Sub(a.at) >= time.Second
	if old != (s.at.Sub(b.at) >= time.Second) {
		return old
	}
	return old == a.at.After(b.at)
}

// compare enters by how much each rule misses the fall from one balance to the next
// under a refill.
func (f *falls) compare(kind int, prev, s *sample, refill int64) {
	full := s.most - s.most/50
	if kind == 0 && (s.remaining >= full || prev.remaining >= full) {
		return // a window's use of before may have ended
	}
	at := f.n[kind] % pairs
	for r := range s.sums {
		charged := s.sums[r] - prev.sums[r]
		left := prev.remaining + refill - charged
		if kind > 0 {
			left = min(left, s.most-s.own[r])
		}
		f.want[kind][r][at], f.errs[kind][r][at] = charged, abs(s.remaining-left)
	}
	f.n[kind]++
}

// last is how far each rule is off on the last n pairs, under the refill that fits
// better: what one pair in part exceeds. want is the median of the falls that it
// predicts. ok is false before so many pairs.
func (f *falls) last(n, part int) (m, want predictions, ok bool) {
	for kind := range refills {
		if f.n[kind] < n {
			continue
		}
		var errs, falls predictions
		for r := range errs {
			errs[r], falls[r] = f.exceeded(&f.errs[kind][r], kind, n, part), f.exceeded(&f.want[kind][r], kind, n, 2)
		}
		if !ok || slices.Min(errs[:]) <= slices.Min(m[:]) {
			m, want, ok = errs, falls, true
		}
	}
	return m, want, ok
}

// nearest is how far each rule is off on half of the last n pairs, under the refill that
// fits that rule better. It asks for n pairs.
func (f *falls) nearest(n int) (m predictions) {
	for r := range m {
		m[r] = math.MaxInt64
		for kind := range refills {
			if f.n[kind] >= n {
				m[r] = min(m[r], f.exceeded(&f.errs[kind][r], kind, n, 2))
			}
		}
	}
	return m
}

// exceeded is the value of a ring that one in part of the last n exceeds.
func (f *falls) exceeded(of *[pairs]int64, kind, n, part int) int64 {
	var all [pairs]int64
	for i := range n {
		all[i] = of[(f.n[kind]-1-i)%pairs]
	}
	slices.Sort(all[:n])
	return all[n-n/part]
}
