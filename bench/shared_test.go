package bench

import (
	"testing"
)

// Four processes with one budget use what one process uses, and are refused as little;
// a quarter each leaves some of it unused.
func TestFourProcessesWithOneBudget(t *testing.T) {
	for _, s := range boardScenarios() {
		if s.Load != Processes {
			continue
		}
		t.Run(s.provider, func(t *testing.T) {
			t.Parallel()
			if !*scoreboard {
				s.N = 150
			}
			alone := s
			alone.Load = Overload
			one := bubble(t, alone.Scenario, Tripmeter, 0)
			four := bubble(t, s.Scenario, Shared, 0)
			r, a := row(s, Shared.Name, []Result{four}), row(alone, Tripmeter.Name, []Result{one})
			t.Logf("one process %.3f of ideal, four with one budget %.3f; refused %.4f and %.4f", a.OfIdeal, r.OfIdeal, a.Refused, r.Refused)
			if r.OfIdeal < a.OfIdeal-0.01 {
				t.Errorf("four processes reach %.3f of ideal, one %.3f", r.OfIdeal, a.OfIdeal)
			}
			if r.Refused > a.Refused+0.005 {
				t.Errorf("%.4f refusals a call, of one process %.4f", r.Refused, a.Refused)
			}
		})
	}
}
