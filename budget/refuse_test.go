package budget

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/usage"
)

// Four calls under way have reserved 1,000 tokens of output each when a fifth is refused
// for 10 s. They make 100 each, and give the others back. Under a rule that reserves, the
// provider had charged those, so they are there again. Under a rule that charges output
// when it is made, or not at all, it never had.
func TestARefusalKeepsWhatWasNeverCharged(t *testing.T) {
	const input, reserve, output, calls = 100, 1000, 100, 4
	for _, c := range []struct {
		charge estimate.Charge // in force when they left
		seen   estimate.Charge // learned since
		want   int64           // beyond what the refused call needs, after the wait
	}{
		{estimate.ChargeSettle, estimate.ChargeSettle, calls * (reserve - output)},
		{estimate.ChargeActual, estimate.ChargeActual, -calls * output},
		{estimate.ChargeSettle, estimate.ChargePrompt, 0},
	} {
		t.Run(fmt.Sprintf("%v, then %v", c.charge, c.seen), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(t, Options{Profile: ruled(c.charge), Limits: perMinute()})
				var under []*Call
				for range calls {
					under = append(under, open(t, b, request(input, reserve)))
				}
				refused := open(t, b, request(input, reserve))
				s := b.Scope().inner
				if c.seen != c.charge {
					s.charge.Store(uint32(c.seen) + 1)
				}
				needs := refused.Cost()
				refused.Refuse(time.Now(), Refusal{Wait: 10 * time.Second, Named: true, Dimension: "tokens"})
				for _, k := range under {
					answer := &usage.Result{Found: true, Complete: true}
					answer.Input, answer.Output = usage.Count{N: input, OK: true}, usage.Count{N: output, OK: true}
					k.Settle(time.Now(), answer)
				}
				time.Sleep(10 * time.Second)
				if got := balance(state(t, b, tpm)) - needs.Input - needs.Output; got != c.want {
					t.Errorf("%d beyond what the refused call needs, want %d", got, c.want)
				}
			})
		})
	}
}

// The refusal itself teaches the limit. Calls that left before give nothing back to it, so
// nothing is taken off for what they will.
func TestARefusalThatTeachesALimitIsOwedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Profile: ruled(estimate.ChargeActual)})
		var under []*Call
		for range 4 {
			under = append(under, open(t, b, request(100, 1000)))
		}
		refused := open(t, b, request(100, 1000))
		time.Sleep(time.Second)
		refused.Hear(time.Now(), shows(0), true)
		refused.Refuse(time.Now(), Refusal{Wait: 10 * time.Second, Named: true, Dimension: "tokens"})
		for _, k := range under {
			answer := &usage.Result{Found: true, Complete: true}
			answer.Input, answer.Output = usage.Count{N: 100, OK: true}, usage.Count{N: 100, OK: true}
			k.Settle(time.Now(), answer)
		}
		time.Sleep(10 * time.Second)
		if got := balance(state(t, b, tpm)); got < 0 {
			t.Errorf("after the wait the limit has %d, want no debt", got)
		}
	})
}
