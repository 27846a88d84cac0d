package budget

import (
	"fmt"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// DefaultMaxPause is what Options.MaxPause is when unset: the longest window that
// providers reset.
const DefaultMaxPause = 24 * time.Hour

// probeAgain is how long after a probe that failed the next one goes.
const probeAgain = time.Minute

// pause holds everybody of the scope for d. A wait up to Options.MaxPause is kept
// to the letter. Of a longer one it is not known whether it is meant: a number in
// another unit, a mistake, a month. So after MaxPause one call goes at a time, and
// the first that is answered ends the pause.
func (s *Scope) pause(now time.Time, d time.Duration, why string) limit.Pause {
	return s.hold(now, limit.Pause{For: d, Why: why})
}

func (s *Scope) hold(now time.Time, p limit.Pause) limit.Pause {
	if p.For > s.maxPause && (p.ProbeAfter == 0 || p.ProbeAfter > s.maxPause) {
		p.ProbeAfter = s.maxPause
	}
	if p.ProbeAfter > 0 && p.ProbeAfter < p.For {
		s.mu.Lock()
		s.some.Store(true) // an answer ends it
		s.asked = now
		if until := now.Add(p.For); until.After(s.probing) {
			s.probing = until
		}
		s.mu.Unlock()
	}
	return s.shut(now, p)
}

// awaited is how long the others wait for the answer of a probe after refusals in a
// row, at least.
const awaited = 5 * time.Second

// probe holds everybody of the scope for d. Then one call goes, and the others wait
// for its answer: for as long again, five seconds at least and a minute at most. After
// refusals in a row a crowd would be refused as a whole. Places in flight would not do:
// long streams hold them, which say nothing of the next call.
func (s *Scope) probe(now time.Time, d time.Duration, why string) limit.Pause {
	if !s.own || d >= s.maxPause {
		return s.pause(now, d, why)
	}
	return s.shut(now, limit.Pause{For: d + min(max(d, awaited), probeAgain), ProbeAfter: d, Why: why})
}

// shut pauses the scope, and says who asked for it.
func (s *Scope) shut(now time.Time, p limit.Pause) limit.Pause {
	p.By = s.by()
	closed := p.For
	if p.ProbeAfter > 0 {
		closed = min(closed, p.ProbeAfter)
	}
	s.mu.Lock()
	s.some.Store(true)
	s.gate.shut(now, closed)
	s.mu.Unlock()
	s.ledger.PauseScope(s.name, p)
	p.Scope = s.name
	return p
}

// by is who asks for a pause.
func (s *Scope) by() string {
	if s.host != "" {
		return s.host
	}
	if name := s.profile.Name; name != "" && name != "unknown" {
		return name
	}
	return "the provider"
}

// named says in an error and a snapshot why everybody waits.
func named(d time.Duration) string {
	return fmt.Sprintf("it named a wait of %v", d.Round(time.Millisecond))
}

// failed notes that an attempt ended without an answer that would end a pause, also if
// it said that the provider has no capacity. If it was a probe, the next one goes
// soon: the limiter alone would wait MaxPause again, or take it for an answer.
func (s *Scope) failed(now time.Time) {
	s.mu.Lock()
	long := now.Before(s.probing)
	s.mu.Unlock()
	if long {
		s.ledger.PauseScope(s.name, limit.Pause{For: probeAgain, By: s.by(), Why: "a probe failed"})
	}
}

// cleared notes that an attempt which left at sent was answered: it has ended a pause
// that lets probes go.
func (s *Scope) cleared(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear(sent)
}

// clear is cleared. The caller holds s.mu.
func (s *Scope) clear(sent time.Time) {
	if sent.After(s.asked) {
		s.probing = time.Time{}
	}
}

// resume ends the pause of the scope, and forgets what led to it.
func (s *Scope) resume() {
	s.mu.Lock()
	s.streak, s.overload, s.usedUp, s.probing = streak{}, overload{}, allowances{}, time.Time{}
	s.gate.lift()
	s.mu.Unlock()
	s.ledger.ResumeScope(s.name)
}

// Resume ends every pause now. It is the way out if a
// provider named a wait that it does not mean.
func (b *Budget) Resume() {
	b.mu.RLock()
	scopes := make([]*Scope, 0, len(b.scopes)+1)
	scopes = append(scopes, b.root)
	for _, s := range b.scopes {
		scopes = append(scopes, s)
	}
	b.mu.RUnlock()
	for _, s := range scopes {
		s.resume()
	}
}
