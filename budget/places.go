package budget

import "time"

// places learn how many calls the provider serves at once, from refusals that name
// neither a limit nor a wait. A limit on calls at once refuses what leaves beside as many
// others, and nothing that leaves beside fewer. A limit on a rate does not care. So three
// refusals are needed, one after the other, and ten attempts that were let in beside
// fewer. One that was let in beside as many ends the count. A refusal at a higher pace
// than all that were let in does not count: a rate would refuse that too.
//
// The calls at once are held then, and the rate is as it was before these refusals. A
// few places are added now and then while all are taken. Once such a try is let in, the
// next follows after a minute. A limit that falls is learned as the first was. The zero
// places know nothing.
type places struct {
	seen crowding

	most  int           // places held; 0: none
	step  int           // of them, those that were added last; 0: they were taken back
	tried time.Time     // when that was
	after time.Duration // until the next is added
}

// A crowding is what may show a limit on calls at once, or a lower one.
type crowding struct {
	refusals int       // that count
	least    int       // the fewest others beside one of them
	lets     int       // attempts let in since the first
	last     time.Time // when the last of refusals came
	pace     float64   // the highest of those let in: see doubt.pace
}

const (
	placesRefusals = 3
	placesLets     = 10
	placeAfter     = time.Minute
	placeMost      = 16 * time.Minute // between two tries
)

// let takes in that an attempt was let in beside others, which left at that pace. It
// reports whether another place is held.
func (p *places) let(now time.Time, others int, pace float64) (changed bool) {
	if p.seen.refusals > 0 {
		p.seen.pace = max(p.seen.pace, pace)
		if p.seen.lets++; others >= p.seen.least {
			p.seen = crowding{}
		}
	}
	if p.step > 0 && now.Sub(p.tried) >= placeAfter && others+1 >= p.most {
		p.after = placeAfter // those were there
	}
	if p.most == 0 || others+1 < p.most || now.Sub(p.tried) < p.after {
		return false
	}
	p.step = max(1, p.most/8)
	p.most += p.step
	p.tried = now
	return true
}

// refused takes in such a refusal of an attempt that left at sent and at that pace, beside
// others. It reports whether a limit on calls at once explains it, whether the places
// changed, and whether a limit was learned.
func (p *places) refused(now, sent time.Time, others int, pace float64) (explained, changed, learned bool) {
	switch {
	case others == 0:
		changed = p.most > 0
		*p = places{} // no such limit refuses a call that is alone
		return false, changed, false
	case p.most > 0 && p.step > 0 && others >= p.most-p.step:
		p.most -= p.step // what was tried is not there
		p.tried, p.step, p.after = now, 0, min(2*p.after, placeMost)
		return true, true, false
	case p.most > 0 && others >= p.most:
		return true, false, false // it left before they were held
	case !sent.After(p.seen.last):
		return false, false, false // of one crowd
	}
	c := &p.seen
	if c.refusals == 0 || others < c.least {
		c.least = others
	}
	if c.refusals > 0 && pace > c.pace {
		return false, false, false // a rate may refuse that
	}
	c.refusals, c.last = c.refusals+1, now
	if c.refusals < placesRefusals || c.lets < placesLets {
		return false, false, false
	}
	*p = places{most: c.least, tried: now, after: placeAfter}
	return true, true, true
}

// letIn notes that an attempt of the scope was let in beside others.
func (s *Scope) letIn(now time.Time, others int, pace float64) {
	if !s.crowds.Load() {
		return // nothing was refused so: no lock for it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places.let(now, others, pace) {
		s.holdPlaces()
	}
	s.crowds.Store(s.places != places{})
}

// full reports whether a limit on calls at once explains a refusal that names neither a
// limit nor a wait.
func (s *Scope) full(now, sent time.Time, others int, pace float64) bool {
	if !s.own {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	explained, changed, learned := s.places.refused(now, sent, others, pace)
	s.crowds.Store(s.places != places{})
	if !changed {
		return explained
	}
	s.holdPlaces()
	if learned {
		s.forgive(now)
	}
	return explained
}

// holdPlaces brings the ledger to the places that are held. The caller holds s.mu.
func (s *Scope) holdPlaces() {
	n := s.places.most
	if o := s.opening.places; o > 0 && !s.opened.Load() && (n == 0 || o < n) {
		n = o
	}
	s.meter().HoldInFlight(s.name, n)
}

// forgive takes back what refusals did to the rate. The caller holds s.mu.
func (s *Scope) forgive(now time.Time) {
	s.streak = streak{}
	for i := 0; i < len(s.dims); i++ {
		d := s.dims[i]
		d.cut = cut{}
		if !d.guessed.IsZero() {
			s.drop(i)
			i--
			continue
		}
		s.apply(d, now)
	}
}
