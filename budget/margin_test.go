package budget

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// shows is a header that shows tokens of 60,000 a minute.
func shows(remaining int64) *headers.Info {
	return &headers.Info{Tokens: headers.Quota{Limit: headers.Count{N: 60_000, OK: true}, Remaining: headers.Count{N: remaining, OK: true}}}
}

// A second of the rate is held back from a balance. Output that calls under way have
// reserved, and that is charged when it is made, is a part of that, half of it at most. It
// is none under a rule that charges the prompt alone, and none after its end.
func TestOutputUnderWayIsAPartOfTheMargin(t *testing.T) {
	for _, c := range []struct {
		name   string
		charge estimate.Charge
		calls  int
		ended  bool
		taught bool // balances taught the rule, which is then not that exact
		want   int64
	}{
		{"no output", estimate.ChargePrompt, 1, false, false, 39_000},
		{"one call", estimate.ChargeActual, 1, false, false, 39_300},
		{"four calls", estimate.ChargeActual, 4, false, false, 39_500},
		{"four calls, three over", estimate.ChargeActual, 4, true, false, 39_300},
		{"four calls, a rule that was learned", estimate.ChargeActual, 4, false, true, 39_000},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := ruled(c.charge)
			p.Rule.ReserveCap = false
			b := newBudget(t, Options{Limits: perMinute(), Profile: p})
			var calls []*Call
			for range c.calls {
				calls = append(calls, open(t, b, request(100, 300)))
			}
			if c.taught {
				b.Scope().inner.charge.Store(uint32(c.charge) + 1)
			}
			calls[0].Hear(time.Now(), shows(59_900), false) // it shows how much the limit holds
			if c.ended {
				for _, k := range calls[1:] {
					k.End(Unknown)
				}
			}
			calls[0].Hear(time.Now(), shows(40_000), false)
			if got := balance(state(t, b, tpm)); got != c.want {
				t.Errorf("%s: credit %d, want %d", c.name, got, c.want)
			}
			for _, k := range calls {
				k.End(Unknown)
			}
			if n := b.Scope().inner.unmade.Load(); n != 0 {
				t.Errorf("%s: %d are reserved when all is over", c.name, n)
			}
		})
	}
}

// A limit on output alone is charged when answers end. A balance is lowered by the output
// that was reserved as it was read. It is a part of the margin too, but for what rounding
// hides.
func TestOutputUnderWayComesOffItsOwnBalance(t *testing.T) {
	for _, c := range []struct {
		name  string
		calls int
		grain int64
		want  int64
	}{
		{"one call", 1, 1, 4_000},
		{"four calls", 4, 1, 3_100},
		{"four calls, rounded", 4, 1000, 2_600},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := ruled(estimate.ChargeActual)
			p.Rule.ReserveCap = false
			b := newBudget(t, Options{Limits: []limit.Limit{{Name: "output", Unit: limit.Output, Rate: limit.PerMinute(60_000)}}, Profile: p})
			var calls []*Call
			for range c.calls {
				calls = append(calls, open(t, b, request(100, 475)))
			}
			left := func(n int64) *headers.Info {
				return &headers.Info{Output: headers.Quota{Limit: headers.Count{N: 60_000, OK: true}, Remaining: headers.Count{N: n, OK: true}}}
			}
			last := calls[c.calls-1]
			for i := range int64(grains) {
				last.Hear(time.Now(), left(60_000-7_000*i-i*(c.grain%1000)), false)
			}
			last.Hear(time.Now(), left(5_000), false)
			if got := balance(state(t, b, "output")); got != c.want {
				t.Errorf("%s: credit %d, want %d", c.name, got, c.want)
			}
		})
	}
}

func TestGrainOfBalances(t *testing.T) {
	var g grain
	for i := range int64(grains) {
		if g.hides() != 0 {
			t.Errorf("%d balances hide %d", i, g.hides())
		}
		g.saw(40_000 - 3_000*i)
	}
	if g.saw(0); g.hides() != 500 {
		t.Errorf("thousands hide %d, want 500", g.hides())
	}
	if g.saw(12_345); g.hides() != 2 {
		t.Errorf("fives hide %d, want 2", g.hides())
	}
}

// Token fields of a whole answer of gpt-5 are of its end: what left since the call did
// is in them, and what was refilled. Fields of requests are of the sending.
func TestFieldsOfTheEndAreOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := profile.ByName("openai")
		time.Sleep(time.Until(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)))
		b := newBudget(t, Options{Limits: perMinute(), Profile: p})
		whole := request(100, 300)
		whole.Model, whole.Kind = "gpt-5.4", "responses"
		first := open(t, b, whole)
		time.Sleep(5 * time.Second)
		open(t, b, request(9_000, 300))
		time.Sleep(time.Second)
		info := shows(45_000)
		info.Requests = headers.Quota{Limit: headers.Count{N: 600, OK: true}, Remaining: headers.Count{N: 500, OK: true}}
		first.Hear(time.Now(), info, false)
		if got := balance(state(t, b, tpm)); got < 44_000 || got > 45_000 {
			t.Errorf("credit %d, want 45,000 less a margin of a second at most", got)
		}
		if got := balance(state(t, b, rpm)); got != 500-10+60-1 { // 6 s of refill since, and a call
			t.Errorf("%d requests, want 549", got)
		}
	})
}

// A call that reserves no output leaves beside others that do. Its balance of a limit on
// output is lowered by theirs.
func TestACallWithoutOutputIsBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := ruled(estimate.ChargeActual)
		b := newBudget(t, Options{Limits: []limit.Limit{{Name: "output", Unit: limit.Output, Rate: limit.PerMinute(60_000)}}, Profile: p})
		other := open(t, b, request(100, 475))
		r := request(100, 0)
		r.Kind = "embeddings"
		c := open(t, b, r)
		if c.cost.Output != 0 || c.under != other.cost.Output {
			t.Errorf("beside a call of %d tokens of output, one of %d counts %d", other.cost.Output, c.cost.Output, c.under)
		}
	})
}
