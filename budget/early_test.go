package budget

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
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
		p.settles(true)
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
