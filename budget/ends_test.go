package budget

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
)

// foundEnds makes charges at the end of the token limit of s found, of which answers show
// balances of before the call.
func foundEnds(t *testing.T, s *Scope) *dimension {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.find(limit.Tokens, time.Minute)
	if d == nil || d.law.ends == nil {
		t.Fatal("nobody looks for charges at the end")
	}
	e := d.law.ends
	e.found, e.by[readAfter] = true, nil
	d.law.learner, d.law.atEnd = e.by[readBefore], true
	s.atEnd.Store(readBefore + 1)
	return d
}

// Charges at the end go with the limit of which they were found. Else no output would be
// reserved any more, and no other charge rule be looked for.
func TestChargesAtTheEndGoWithTheirLimit(t *testing.T) {
	for name, ends := range map[string]func(s *Scope){
		"answers do not name it any more": func(s *Scope) {
			s.mu.Lock()
			s.dims[0].silent = 1
			s.mu.Unlock()
			s.forget(time.Now(), s.dims[0], nil)
		},
		"it becomes a copy": func(s *Scope) {
			s.mu.Lock()
			s.dims[0].silent = 1
			s.mu.Unlock()
			s.forget(time.Now(), s.dims[0], &dimension{configured: limit.Limit{Name: tpm, Unit: limit.Tokens, Rate: limit.PerMinute(90_000)}})
		},
		"another is configured": func(s *Scope) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.change(time.Now(), limit.Limit{Name: tpm, Unit: limit.Tokens, Rate: limit.PerMinute(90_000)})
		},
		"it is removed": func(s *Scope) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.change(time.Now(), limit.Limit{Name: tpm})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(t, Options{Profile: ruled(estimate.ChargeSettle)})
				open(t, b, request(100, 100)).Hear(time.Now(), shows(50_000), false)
				p := b.Scope()
				foundEnds(t, p.inner)
				if !p.chargesAtEnd() {
					t.Fatal("they are not found")
				}
				if ends(p.inner); p.chargesAtEnd() {
					t.Error("calls are still charged when they end")
				}
			})
		})
	}
}
