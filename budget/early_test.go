package budget

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
)

// Refusals end a rule that balances taught. What they showed of giving back ends with it:
// calls from before a limit would give back to it what was never charged.
func TestARuleThatEndsGivesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Profile: ruled(estimate.ChargeEstimate), Limits: perMinute()})
		open(t, b, request(100, 100)).Pass(time.Now())
		p := b.Scope()
		s := p.inner
		s.charge.Store(uint32(estimate.ChargeSettle) + 1)
		p.settle(true)
		for range 4 {
			time.Sleep(2 * time.Minute)
			open(t, b, request(100, 100)).Refuse(time.Now(), Refusal{Wait: time.Second, Named: true, Dimension: "tokens"})
		}
		if s.charge.Load() != 0 {
			t.Fatal("the rule is still followed")
		}
		for _, s := range p.scopes {
			if s.settles.Load() {
				t.Errorf("calls from before a limit of %q still give back to it", s.name)
			}
		}
	})
}

// An earlyLedger keeps the last word on calls from before a limit.
type earlyLedger struct {
	notebook
	charged bool
}

func (l *earlyLedger) EarlyScope(scope, name string, charged bool) { l.charged = charged }

// Where calls are charged when they end, those from before the limit were not charged yet.
func TestChargesAtTheEndGiveNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := limit.New(limit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ledger := &earlyLedger{notebook: notebook{Limiter: l, text: map[string]string{}}}
		b := newBudget(t, Options{Ledger: ledger, Profile: ruled(estimate.ChargeSettle)})
		open(t, b, request(100, 100)).Hear(time.Now(), shows(50_000), false)
		p := b.Scope()
		if p.settle(true); !ledger.charged {
			t.Fatal("the ledger does not know that they were charged")
		}
		s := p.inner
		s.mu.Lock()
		defer s.mu.Unlock()
		d := s.find(limit.Tokens, time.Minute)
		exact(t, d.law.ends.by[readBefore])
		if !s.concludes(d, time.Now(), limit.Law{}) || ledger.charged {
			t.Error("the ledger takes them for charged")
		}
	})
}
