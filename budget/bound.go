package budget

import "time"

// Names of models and accounts come from requests, and there may be any number.
// What a Budget keeps of them is bounded:
//
//	maxPaths   addresses that are remembered; they are found again
//	keptScopes from here on, a scope is dropped for each new one: one that no call
//	           has used since the hand came by last, and that no refusal of the last
//	           minutes speaks of
//	maxScopes  from here on, a new model has no scope of its own but takes from its
//	           account, and new accounts share one
//	maxHosts   hosts whose prices are learned apart
//
// Credit, debt and pauses are in the ledger. It forgets a scope only if it holds as
// much as a new one. Here only the lessons of answers are dropped, and the next
// answers teach them again.
const (
	maxPaths   = 4096
	keptScopes = 2048
	maxScopes  = 8192
	maxHosts   = 256
)

// others is the account of those for whom there is no room.
const others = "others"

// room makes room for a new scope, and reports whether there is any. It looks at a
// few scopes, however many there are. The caller holds b.mu.
func (b *Budget) room(now time.Time) bool {
	for range 4 {
		if len(b.ring) < keptScopes {
			break
		}
		b.hand = (b.hand + 1) % len(b.ring)
		s := b.ring[b.hand]
		if s.busy.Swap(false) || s.remembers(now) {
			continue
		}
		s.gone.Store(true)
		delete(b.scopes, s.name)
		last := len(b.ring) - 1
		b.ring[b.hand] = b.ring[last]
		b.ring = b.ring[:last]
		b.hand = min(b.hand, max(0, last-1))
	}
	return len(b.ring) < maxScopes
}

// remembers reports whether s knows of a refusal that is not long ago.
func (s *Scope) remembers(now time.Time) bool {
	if !s.some.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.rest.Add(streakAge)) || now.Sub(s.streak.last) < streakAge {
		return true
	}
	for _, d := range s.dims {
		if d.cut.active() {
			return true
		}
	}
	return false
}

// touch notes that a call uses s.
func (s *Scope) touch() {
	if !s.busy.Load() {
		s.busy.Store(true)
	}
}
