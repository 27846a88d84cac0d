package budget

import (
	"slices"
	"time"

	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
)

// An opening is the cold start of a scope of which no limit is known. A crowd that
// went at once would be refused together, where the first answer would have named the
// limit. So one call is under way, and the others wait in line. The number grows
//
//   - twofold with each of the first openAnswers answers
//   - by one with each further answer: twofold in the time of an answer
//   - with time while calls wait, so that slow answers keep nobody for long: by one each
//     openStep up to openFew while no answer has come, else twofold each openLong
//
// The opening ends when a limit is known, or when mostOpen calls may be under way. A
// program that sends one call at a time never waits for it. A call that must not wait
// takes a place on top. A provider that has no limits ([profile.Profile.Unlimited]) has
// no opening. A host of this machine has one: gateways live there as often as servers
// without limits. Nor has a store: its scope belongs to other processes as well, which
// may know the limit.
//
// A call each openStep takes about what a common limit refills. So a bucket that is full
// loses little while nobody knows of it. A crowd of 200 on a bucket of 10 s reaches 99 % of
// the ideal, without a refusal. It was 94 to 96 % when the number doubled every two seconds
// from one call on. With a step of 250 ms 2.5 of 1,000 were refused, and with one of 400 ms
// the first crowds waited longer. With four calls at first more were refused: they leave at one
// instant, which a small limit on requests does not let in.
// A window is known later, as its first edge passes in a crowd: 0.2 to 0.8 % of the ideal.
//
// The zero opening has not begun.
type opening struct {
	places  int // calls that may be under way; 0: it has not begun
	answers int // that named no limit
	timer   *time.Timer
	timed   bool // the timer runs
	sick    bool // overloads began it, and only an answer ends it
}

const (
	openAnswers = 3
	openStep    = 300 * time.Millisecond
	openFew     = 8
	openLong    = 2 * time.Second
	mostOpen    = 1 << 10
)

// begin begins the opening of the path's inner scope, if no limit of the path is
// known.
func (p *Path) begin() {
	s := p.inner
	if s.opened.Load() {
		return
	}
	known := !s.own || p.Profile().Unlimited || p.hasLimits()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case known && !s.opening.sick:
		s.endOpening()
	case s.opened.Load():
	case s.opening.places == 0:
		s.setPlaces(1)
		s.clock()
	case !s.opening.timed:
		s.clock()
	}
}

// hasLimits reports whether a limit of the path is known.
func (p *Path) hasLimits() bool {
	for _, s := range p.scopes {
		if s.some.Load() {
			s.mu.Lock()
			n := len(s.dims)
			s.mu.Unlock()
			if n > 0 {
				return true
			}
		}
	}
	return false
}

// setPlaces lets n calls be under way. It returns how many waited for that. The caller
// holds s.mu.
func (s *Scope) setPlaces(n int) (waited int) {
	if n > mostOpen {
		s.endOpening()
		return 0
	}
	s.opening.places = n
	if most := s.places.most; most > 0 {
		n = min(n, most)
	}
	return s.meter().HoldInFlight(s.name, n)
}

// wider is how many calls may be under way next, and after what time.
func (o *opening) wider() (places int, after time.Duration) {
	if o.places < openFew && o.answers == 0 && !o.sick {
		return o.places + 1, openStep
	}
	return 2 * o.places, openLong
}

// clock has widen called in its time. The caller holds s.mu.
func (s *Scope) clock() {
	s.opening.timed = true
	if _, after := s.opening.wider(); s.opening.timer == nil {
		s.opening.timer = time.AfterFunc(after, s.widen)
	} else {
		s.opening.timer.Reset(after)
	}
}

// widen lets more calls be under way, if some wait.
func (s *Scope) widen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened.Load() {
		return
	}
	n := s.opening.places
	if more, _ := s.opening.wider(); s.setPlaces(more) > 0 {
		if !s.opened.Load() {
			s.clock()
		}
	} else if !s.opened.Load() {
		s.opening.timed = false // the next call starts it
		s.setPlaces(n)
	}
}

// another adds a place for a call that must not wait. It reports false if the
// opening is over.
func (s *Scope) another() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened.Load() || s.opening.places == 0 {
		return false
	}
	s.setPlaces(s.opening.places + 1)
	return true
}

// endOpening lets all calls go that the limits let go. The caller holds s.mu.
func (s *Scope) endOpening() {
	if s.opened.Swap(true) || s.opening.places == 0 {
		return
	}
	s.opening.timer.Stop()
	s.opening.places, s.opening.sick = 0, false
	s.holdPlaces()
}

// meter is the ledger of a budget that has one of its own.
func (s *Scope) meter() *limit.Limiter { return s.ledger.(*limit.Limiter) }

// reopen lets one call at a time go after overloads in a row. The caller holds s.mu.
func (s *Scope) reopen() {
	s.opened.Store(false)
	s.opening.sick = true
	s.setPlaces(1)
	s.clock()
}

// answered takes in that an answer of the path is there, or a refusal.
func (p *Path) answered(refused bool) {
	s := p.inner
	if s.opened.Load() {
		return
	}
	known := p.hasLimits()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := &s.opening; {
	case o.places == 0 || s.opened.Load():
	case refused && o.sick:
	case known:
		s.endOpening()
	case refused:
	case o.answers < openAnswers || o.sick:
		o.answers++
		o.sick = false
		if s.setPlaces(2 * o.places); !s.opened.Load() {
			s.clock()
		}
	default:
		s.setPlaces(o.places + 1)
	}
}

// Without headers nobody names a limit, and nothing bounds a client before it is
// refused. The refusal teaches one: about as much as the calls of the last window have
// used. That is a guess, which may be too low or too high. So it stands behind a [cut]: the guess is a quarter of
// the ceiling, and the rate grows from there. At the ceiling the ceiling doubles.
// After guessAge without a refusal that it had to answer the guess is given up. Where
// named waits show a window, [waits] replaces the cut.
const (
	guessWindow = time.Minute
	guessRoom   = 4 // ceiling to guess
	guessFrom   = 5 // calls let in at least: fewer say nothing of a rate
	guessAge    = 10 * time.Minute
)

// A tally is what a scope used in the last window that has no limit of a minute.
type tally struct {
	requests, input, output, tokens recent
}

// of is what was used of a unit.
func (t *tally) of(u limit.Unit) *recent {
	switch u {
	case limit.Requests:
		return &t.requests
	case limit.Input:
		return &t.input
	case limit.Output:
		return &t.output
	}
	return &t.tokens
}

// short reports whether the scope has a limit of a minute or less, which paces its
// calls, or one that was configured. The caller holds s.mu.
func (s *Scope) short() bool {
	return slices.ContainsFunc(s.dims, func(d *dimension) bool {
		return d.limit.Rate.Window <= guessWindow || d.configured.Rate.N > 0
	})
}

// paced reports whether a scope of the path has such a limit.
func (p *Path) paced() bool {
	return slices.ContainsFunc(p.scopes, func(s *Scope) bool {
		if !s.some.Load() {
			return false
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.short()
	})
}

// tallies counts what an attempt that left at sent takes of a scope without limits, or
// with long ones alone.
func (s *Scope) tallies(now, sent time.Time, c limit.Cost) {
	if s.taught.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.short() {
		s.tally = nil
		s.taught.Store(true)
		return
	}
	if s.tally == nil {
		s.tally = new(tally)
	}
	for _, u := range [...]limit.Unit{limit.Requests, limit.Input, limit.Output, limit.Tokens} {
		if n := part(u, c); n != 0 {
			s.tally.of(u).addAt(now, sent, guessWindow, n)
		}
	}
}

// guess teaches the inner scope a limit from a refusal of that kind, of an attempt of
// that cost, that named a wait or 0. It does nothing if the path has a limit that was
// configured or is of a minute or less. It returns the limit.
func (p *Path) guess(now time.Time, cost limit.Cost, kind string, named time.Duration) (changes []change) {
	s := p.inner
	if !s.own || s.taught.Load() || p.paced() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tally
	if t == nil || t.requests.in(now, guessWindow) < guessFrom {
		return nil
	}
	u := s.unitOf(kind)
	if t.of(u).in(now, guessWindow) <= 0 {
		u = limit.Requests // no model ran
	}
	d := &dimension{limit: limit.Limit{Name: NameOf(u, guessWindow), Unit: u, Rate: limit.Rate{Window: guessWindow}}, born: now}
	d.guess(t.of(u).in(now, guessWindow), now)
	s.add(d)
	if d.law.learner != nil {
		d.waits.sends = t.of(u)
		d.heedWait(now, part(u, cost), named)
	}
	old := d.limit
	s.apply(d, now)
	s.recall(d, now)
	s.endOpening()
	return []change{{old, d.limit, false}}
}

// guess makes d a guess of n units a window at now, that grows from there.
func (d *dimension) guess(n int64, now time.Time) {
	d.said, d.guessed, d.waits.n = min(guessRoom*n, limit.MaxUnits), now, 0
	d.cut = cut{missing: whole - whole/guessRoom, since: now}
}

// learned are the limits of the inner scope, to be drained after a guess.
func (p *Path) learned() (all []drained) {
	s := p.inner
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.dims {
		all = append(all, drained{s, d.limit, true, d.waits.full()})
	}
	return all
}

// grow raises the ceiling of a guess that was reached without a refusal, or gives up
// the guess, at now. It reports whether d is no limit any more.
func (d *dimension) grow(now time.Time) (over bool) {
	switch {
	case d.guessed.IsZero():
	case d.waits.n > 0:
		if d.said = d.waits.most(now); d.said >= guessRoom*d.waits.top {
			d.guess(d.said, now)
		}
	case d.cut.left(now) > 0:
	case now.Sub(d.lastRefusal()) > guessAge:
		return true
	case d.used.in(now, d.limit.Rate.Window) > d.said/guessRoom: // of a limit that grows anew it is not a minute
		d.said = min(2*d.said, limit.MaxUnits)
		d.cut = cut{missing: whole / 2, since: now}
	}
	return false
}

func (d *dimension) lastRefusal() time.Time {
	if d.refused.After(d.guessed) {
		return d.refused
	}
	return d.guessed
}

// nameLimit takes in that a header names the limit n of d.
func (d *dimension) nameLimit(q headers.Quota) {
	d.said = min(q.Limit.N, limit.MaxUnits)
	if !d.guessed.IsZero() {
		d.guessed, d.cut, d.waits = time.Time{}, cut{}, waits{}
	}
}
