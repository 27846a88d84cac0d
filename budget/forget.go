package budget

import (
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

// heard notes that a header has named the limit at now.
func (d *dimension) heard(now time.Time) {
	d.named, d.silent = now, 0
	d.times = min(d.times+1, mostSilence)
}

// silence notes that an attempt that left at sent was answered by a model. It
// forgets what answers do not repeat, and returns the limits that changed.
func (s *Scope) silence(now, sent time.Time) (changes []change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; i < len(s.dims); i++ {
		d := s.dims[i]
		if d.said == 0 || d.copied || !d.guessed.IsZero() || !d.named.Before(sent) {
			d.silent = 0
			continue
		}
		if d.silent++; d.silent <= max(leastSilence, d.times) {
			continue
		}
		old := d.limit
		d.said, d.shown, d.silent, d.times = 0, 0, 0, 0
		if d.configured.Rate.N > 0 {
			if _, changed := s.apply(d, now); changed {
				changes = append(changes, change{old, d.limit, false})
			}
			continue
		}
		s.drop(i)
		i--
		changes = append(changes, change{old, limit.Limit{Name: old.Name, Unit: old.Unit}, false})
	}
	return changes
}

// drop removes a learned limit. The caller holds s.mu.
func (s *Scope) drop(i int) {
	name := s.dims[i].limit.Name
	s.dims = append(s.dims[:i:i], s.dims[i+1:]...)
	s.publish()
	s.ledger.EnforceScopeLimit(s.name, limit.Limit{Name: name})
}

// maxLearned is how many limits a scope learns. Providers have eight at most. With
// each answer that names another window the oldest one goes.
const maxLearned = 16

// makeRoom drops the learned limit that was named longest ago if there are too
// many. The caller holds s.mu.
func (s *Scope) makeRoom() {
	n, oldest := 0, -1
	for i, d := range s.dims {
		if d.configured.Rate.N > 0 || d.copied {
			continue
		}
		if n++; oldest < 0 || d.named.Before(s.dims[oldest].named) {
			oldest = i
		}
	}
	if n >= maxLearned {
		s.drop(oldest)
	}
}

// least is the lowest balance that is believed: a debt of one window, and no more
// than what is paid off within Options.MaxPause, with the window for the call that
// waits.
func (s *Scope) least(d *dimension) int64 {
	r := limit.Rate{N: d.most(), Window: d.limit.Rate.Window}
	return -min(r.N, r.In(s.maxPause-r.Window))
}
