package budget

import (
	"slices"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// What a header says of a limit counts as long as headers repeat it. A limit that
// some answers have named, and as many answers after them do not, is forgotten: it
// was another endpoint's, or a mistake. The number lies between these two.
const (
	leastSilence = 3
	mostSilence  = 30
)

// heard notes that a header has named the limit at now, that of a refusal or of
// another answer.
func (d *dimension) heard(now time.Time, refused bool) {
	d.named, d.silent = now, 0
	d.answered = d.answered || !refused
	d.times = min(d.times+1, mostSilence)
}

// silence notes that an attempt that left at sent was answered by a model. It
// forgets what answers do not repeat, and returns the limits that changed. Learned
// limits that are over come back in gone, for [Scope.forget]. The caller holds s.mu.
func (s *Scope) silence(now, sent time.Time) (changes []change, gone []forgotten) {
	for _, d := range s.dims {
		if d.said == 0 || d.copied || !d.guessed.IsZero() || !d.named.Before(sent) || d.rests(now) {
			d.silent = 0
			continue
		}
		if d.silent++; d.silent <= max(leastSilence, d.times) && !d.outlived(now) {
			continue
		}
		old := d.limit
		switch n := d.configured.Rate.N; {
		case !d.answered && d.limit.Rate.Window <= refusalAge:
			d.loosen(now)
		case n == 0:
			gone = append(gone, forgotten{d, quota{d.limit.Unit, d.limit.Rate.Window}})
			continue
		default:
			d.unsay()
		}
		if _, changed := s.apply(d, now); changed {
			changes = append(changes, change{old, d.limit, false})
		}
	}
	return changes, gone
}

// outlived reports whether d is a limit of a long window that few answers named, the last
// of them a window ago. Three more silent answers may take three more windows: a limit
// of one request a day, named once, held five calls for four days.
func (d *dimension) outlived(now time.Time) bool {
	w := d.limit.Rate.Window
	return d.times <= leastSilence && w > refusalAge && now.Sub(d.named) >= w
}

// refusalAge is how long a limit is kept that only refusals name.
const refusalAge = guessAge

// rests reports whether d is a limit that only refusals name, and did not long ago.
// Some providers show their limits on refusals alone, so the silence of other answers
// says nothing. A limit of a longer window is not kept for it: one wrong refusal would
// be a call an hour.
func (d *dimension) rests(now time.Time) bool {
	return !d.answered && d.limit.Rate.Window <= refusalAge && now.Sub(d.named) < refusalAge
}

// loosen lets a limit that only refusals named grow from where it is, as nothing was
// refused for long. Were it lifted at once, all who wait would leave together.
func (d *dimension) loosen(now time.Time) {
	said := d.said
	d.unsay()
	n := d.configured.Rate.N
	if n == 0 {
		d.guess(said, now)
		return
	}
	if missing := whole - min(said, n)*whole/n; missing > d.cut.left(now) {
		d.cut = cut{missing: missing, since: now}
	}
}

// A forgotten is a learned limit that answers do not repeat.
type forgotten struct {
	d *dimension
	quota
}

// unsay forgets what headers said of d.
func (d *dimension) unsay() { d.said, d.shown, d.silent, d.times, d.answered = 0, 0, 0, 0, false }

// forget removes the learned limit d. Where outer, a limit of its unit and window, is
// configured further out, d becomes a copy of that and keeps its credit. Else the
// silence of headers would raise what the path may use: readings lowered d, and not
// the limit further out.
func (s *Scope) forget(now time.Time, d *dimension, outer *dimension) (changes []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.dims, d)
	if i < 0 || d.silent == 0 || d.copied {
		return nil // another answer was first
	}
	old := d.limit
	if outer == nil {
		s.drop(i)
		return []change{{old, limit.Limit{Name: old.Name, Unit: old.Unit}, false}}
	}
	d.unsay()
	d.configured, d.copied = outer.configured, true
	// A bucket earns from here on. In a window that is a guess, what is missing would
	// stay so for all of it. So the law is studied after that.
	d.law = lawful{until: now.Add(d.limit.Rate.Window)}
	s.countEnds()
	s.apply(d, now)
	return []change{{old, d.limit, false}}
}

// drop removes a learned limit. The caller holds s.mu.
func (s *Scope) drop(i int) {
	name := s.dims[i].limit.Name
	s.dims = append(s.dims[:i:i], s.dims[i+1:]...)
	s.countEnds()
	if !s.short() {
		s.taught.Store(false) // the next refusal needs a tally for its guess
	}
	s.publish()
	s.ledger.EnforceScopeLimit(s.name, limit.Limit{Name: name})
}

// maxLearned is how many limits a scope learns. Providers have eight at most. A
// further one is not learned until another is forgotten. Were the oldest dropped
// for it, a header that names many windows would lift the limits that bind.
const maxLearned = 16

// learnsNoMore reports whether the scope has learned as many limits as it may. The
// caller holds s.mu.
func (s *Scope) learnsNoMore() bool {
	n := 0
	for _, d := range s.dims {
		if d.configured.Rate.N == 0 && !d.copied {
			n++
		}
	}
	return n >= maxLearned
}

// least is the lowest balance that is believed: a debt of one window, and no more
// than what is paid off within Options.MaxPause, with the window for the call that
// waits.
func (s *Scope) least(d *dimension) int64 {
	r := limit.Rate{N: d.most(), Window: d.limit.Rate.Window}
	return -min(r.N, r.In(s.maxPause-r.Window))
}
