package meter

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"time"
)

// Rest is the name of the series that all names without one of their own share.
const Rest = "(rest)"

// top gives the heaviest names a series each and the others one together.
//
// A name that comes while there is room gets a series at once. After that the
// names outside compete. As many of them are watched as there are series, and at
// most watchedMost. A new name takes the place of the lightest and inherits its
// weight: the space-saving sketch of Metwally, Agrawal and El Abbadi (ICDT 2005).
// Once in reviewEvery the heaviest outside takes the place of the lightest inside,
// if it weighs more than twice as much. With less, two of equal weight would change
// places for ever. What a name inherited does not count for it there: of a thousand
// equal names the watched ones would else seem fifty times as heavy as those inside.
// Weights are halved at each review, so that the past counts less.
//
// A series that ends takes its sums with it. Adding them to the rest would show
// as a jump in its rate, of events that are long past.
type top struct {
	room     int
	named    map[string]*member
	watched  []candidate
	hashes   []uint64 // of their names; comparing these is cheaper than a map
	least    int64    // none of them weighs less: weights only grow between reviews
	seed     maphash.Seed
	rest     *member
	reviewed time.Duration
}

const reviewEvery = 10 * time.Second

// watchedMost bounds what a call of an unknown name costs: all watched ones are
// looked at.
const watchedMost = 32

// member is a series.
type member struct {
	name    string
	counts  *Counts
	waiting int64 // calls in the line now
	flight  int64 // calls admitted and not settled
	weight  int64
	moved   *member // where its open calls count since the series ended
}

// live is the series that counts the events of m.
func (m *member) live() *member {
	if m.moved != nil {
		return m.moved
	}
	return m
}

type candidate struct {
	name      string
	weight    int64
	inherited int64 // part of weight
}

// own is the weight that the name is known to have.
func (c *candidate) own() int64 { return c.weight - c.inherited }

func newTop(room int) top {
	return top{
		room: room, named: map[string]*member{}, seed: maphash.MakeSeed(),
		rest: &member{name: Rest, counts: newCounts()},
	}
}

// of returns the series of a name, which an event of the given weight touches.
func (t *top) of(name string, weight int64, now time.Duration) *member {
	if now-t.reviewed >= reviewEvery {
		t.review(now)
	}
	if m := t.named[name]; m != nil {
		m.weight += weight
		return m
	}
	if len(t.named) < t.room {
		return t.admit(name, weight)
	}
	hash := maphash.String(t.seed, name)
	if i := slices.Index(t.hashes, hash); i >= 0 && t.watched[i].name == name {
		t.watched[i].weight += weight
		return t.rest
	}
	lightest, least := 0, int64(math.MaxInt64)
	for i := range t.watched {
		if w := t.watched[i].weight; w < least {
			if lightest, least = i, w; w <= t.least {
				break // none is lighter
			}
		}
	}
	if len(t.watched) < min(t.room, watchedMost) {
		t.watched = append(t.watched, candidate{name: name, weight: weight})
		t.hashes, t.least = append(t.hashes, hash), 0
		return t.rest
	}
	t.least = least
	c := &t.watched[lightest]
	*c = candidate{name: name, weight: c.weight + weight, inherited: c.weight}
	t.hashes[lightest] = hash
	return t.rest
}

func (t *top) admit(name string, weight int64) *member {
	m := &member{name: name, counts: newCounts(), weight: weight}
	t.named[name] = m
	return m
}

func (t *top) review(now time.Duration) {
	t.reviewed = now
	slices.SortFunc(t.watched, func(a, b candidate) int { return cmp.Compare(b.own(), a.own()) })
	for len(t.watched) > 0 {
		var lightest *member
		for _, m := range t.named {
			if lightest == nil || m.weight < lightest.weight {
				lightest = m
			}
		}
		heaviest := t.watched[0]
		if heaviest.own() <= 2*lightest.weight {
			break
		}
		t.watched = t.watched[1:]
		delete(t.named, lightest.name)
		lightest.moved = t.rest
		t.rest.waiting += lightest.waiting
		t.rest.flight += lightest.flight
		t.admit(heaviest.name, heaviest.own())
	}
	for _, m := range t.named {
		m.weight /= 2
	}
	kept := make([]candidate, 0, min(t.room, watchedMost))
	for _, c := range t.watched {
		c.inherited /= 2
		if c.weight /= 2; c.weight > 0 {
			kept = append(kept, c)
		}
	}
	t.watched, t.hashes, t.least = kept, t.hashes[:0], 0
	for _, c := range kept {
		t.hashes = append(t.hashes, maphash.String(t.seed, c.name))
	}
}

// list returns the series by weight of the tokens charged, the heaviest first,
// and the rest last.
func (t *top) list() []Series {
	out := make([]Series, 0, len(t.named)+1)
	for _, m := range t.named {
		out = append(out, m.series())
	}
	slices.SortFunc(out, func(a, b Series) int {
		return cmp.Or(cmp.Compare(b.Charged.Sum(), a.Charged.Sum()), cmp.Compare(b.Queued, a.Queued), cmp.Compare(a.Name, b.Name))
	})
	return append(out, t.rest.series())
}

func (m *member) series() Series {
	return Series{Name: m.name, Waiting: m.waiting, InFlight: m.flight, Counts: m.counts.clone()}
}

// A Series is the sums of one budget, scope or tenant, with its calls under way.
type Series struct {
	Name     string `json:"name"`
	Waiting  int64  `json:"waiting"`  // calls in the line now
	InFlight int64  `json:"inFlight"` // calls admitted and not settled
	Counts
}
