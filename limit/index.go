package limit

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// index finds scopes by name. It is a linear hash table: as many chains as scopes,
// and each scope that comes has one chain split, in order. So the longest call is as
// short as the others, for any number of scopes; a map is as good on average, takes
// three times the memory, and copies a table now and then.
//
// The zero index is empty.
type index struct {
	seed   maphash.Seed
	parts  []*indexPart
	chains int // in use
	n      int // scopes
	walks  int // under way: see walk

	steps func(n int) // for tests: n scopes or chains were visited; nil without
}

type indexPart [64]*scope

func (x *index) chain(i uint64) **scope { return &x.parts[i/64][i%64] }

// place is the chain of name. Of the chains below a power of two those at the
// front are split already.
func (x *index) place(name string) uint64 {
	half := uint64(1) << (bits.Len(uint(x.chains)) - 1)
	i := maphash.String(x.seed, name) & (2*half - 1)
	if i >= uint64(x.chains) {
		i -= half
	}
	return i
}

// find is the scope of that name, or nil.
func (x *index) find(name string) *scope {
	if x.n == 0 {
		return nil
	}
	s := *x.chain(x.place(name))
	n := 1
	for s != nil && s.name != name {
		s = s.link
		n++
	}
	x.count(n)
	return s
}

func (x *index) count(n int) {
	if x.steps != nil {
		x.steps(n)
	}
}

// add takes in s, whose name is not there.
func (x *index) add(s *scope) {
	if x.chains == 0 {
		x.seed, x.parts, x.chains = maphash.MakeSeed(), []*indexPart{{}}, 1
	} else if x.n == x.chains {
		x.split()
	}
	c := x.chain(x.place(s.name))
	s.link, *c = *c, s
	x.n++
}

// remove forgets s, which is there.
func (x *index) remove(s *scope) {
	c := x.chain(x.place(s.name))
	for *c != s {
		c = &(*c).link
	}
	*c, s.link = s.link, nil
	x.n--
	for range 2 { // two, or many that go would leave as many chains
		if 2*x.n < x.chains && x.chains > 1 && x.walks == 0 {
			x.join()
		}
	}
}

// split divides one chain in two.
func (x *index) split() {
	i := uint64(x.chains)
	if i%64 == 0 {
		x.parts = append(x.parts, &indexPart{})
	}
	from := x.chain(i - 1<<(bits.Len64(i)-1))
	s := *from
	*from = nil
	x.chains++
	for s != nil {
		x.count(1)
		next := s.link
		c := x.chain(x.place(s.name))
		s.link, *c = *c, s
		s = next
	}
}

// join undoes the last split.
func (x *index) join() {
	x.chains--
	i := uint64(x.chains)
	last := x.chain(i)
	c := x.chain(i - 1<<(bits.Len64(i)-1))
	for *c != nil {
		x.count(1)
		c = &(*c).link
	}
	*c, *last = *last, nil
	if i%64 == 0 {
		x.parts[i/64] = nil
		x.parts = x.parts[:i/64]
	}
}

// walk appends the scopes of a few chains from at on. It returns where to go on, 0 at
// the end. In a walk of several parts names may come and go between two of them.
// x.walks must be above 0 meanwhile. Then no chains are joined, so none is missed. A
// split may show a scope twice.
func (x *index) walk(at, few int, to []*scope) (next int, out []*scope) {
	end := min(at+few, x.chains)
	n := end - at
	for ; at < end; at++ {
		for s := *x.chain(uint64(at)); s != nil; s = s.link {
			to = append(to, s)
			n++
		}
	}
	x.count(n)
	if end == x.chains {
		end = 0
	}
	return end, to
}

// all is every scope, in no order.
func (x *index) all() iter.Seq[*scope] {
	return func(yield func(*scope) bool) {
		for i := range uint64(x.chains) {
			for s := *x.chain(i); s != nil; s = s.link {
				if !yield(s) {
					return
				}
			}
		}
	}
}
