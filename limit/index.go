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
	for s != nil && s.name != name {
		s = s.link
	}
	return s
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
		if 2*x.n < x.chains && x.chains > 1 {
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
		c = &(*c).link
	}
	*c, *last = *last, nil
	if i%64 == 0 {
		x.parts[i/64] = nil
		x.parts = x.parts[:i/64]
	}
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
