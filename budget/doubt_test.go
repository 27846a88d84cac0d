package budget

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/usage"
)

// Each half second a crowd of calls ends and another leaves. The provider has the
// refunds of the first before it charges the second, and we count them later. Two
// calls leave alone between. The falls of the balance from crowd to crowd speak for no
// rule, and those between lone calls for the right one.
func TestACrowdDoubtsNoRule(t *testing.T) {
	const most, crowd = 200_000, 40
	rate := limit.Rate{N: most, Window: time.Minute}
	price := &Price{input: 10, output: 4096, reserve: 4096, rule: estimate.Rule{ReserveCap: true}}
	answer := &usage.Result{Found: true, Complete: true}
	answer.Input, answer.Output = usage.Count{N: 10, OK: true}, usage.Count{N: 200, OK: true}
	for lone, refunds := range map[int]bool{2: true, 3: false} {
		r := rand.New(rand.NewPCG(1, 1))
		var d doubt
		now := time.Unix(1e9, 0)
		left, at := int64(most), now // at the provider
		wait := func(t time.Duration) {
			now = now.Add(t)
			left, at = min(most, left+rate.In(now.Sub(at))), now
		}
		leave := func(n int) (all []sample) {
			for range n {
				left -= 4106
				s := sample{at: now, remaining: left, most: most, own: price.arrival(), set: true}
				s.sums, s.flurry, _, _ = d.sending(now, price)
				all = append(all, s)
			}
			return all
		}
		end := func(n int) {
			for range n {
				ended(&d, now, price, answer)
				d.gone()
			}
		}
		refund := func(n int) {
			if refunds {
				left = min(most, left+int64(n)*3896)
			}
		}
		var doubts []estimate.Charge
		hear := func(all []sample) {
			for _, i := range r.Perm(len(all)) {
				if seen, doubted, _ := d.saw(now, all[i], rate, estimate.ChargeSettle); doubted {
					doubts = append(doubts, seen)
				}
			}
		}
		for i := range 200 {
			if i > 0 {
				refund(crowd)
			}
			all := leave(crowd)
			end(crowd)
			wait(50 * time.Millisecond)
			hear(all)
			for range lone {
				wait(70 * time.Millisecond)
				one := leave(1)
				wait(30 * time.Millisecond)
				hear(one)
				refund(1)
				end(1)
			}
			wait(3 * time.Second)
			if !refunds {
				wait(time.Minute) // what was taken comes back
			}
		}
		if refunds && len(doubts) > 0 {
			t.Errorf("the right rule is taken for %v", doubts)
		}
		if !refunds && (len(doubts) != 1 || doubts[0] != estimate.ChargeEstimate) {
			t.Errorf("a rule without refunds is taken for %v", doubts)
		}
	}
}

// Calls one after the other are compared, however soon they follow: when one leaves,
// all before it have ended.
func TestOneCallAfterAnotherIsCompared(t *testing.T) {
	const most = 1_000_000
	price := &Price{input: 10, output: 4096, reserve: 4096, rule: estimate.Rule{ReserveCap: true}}
	answer := &usage.Result{Found: true, Complete: true}
	answer.Input, answer.Output = usage.Count{N: 10, OK: true}, usage.Count{N: 200, OK: true}
	var d doubt
	now := time.Unix(1e9, 0)
	left, doubted := int64(most), false
	for range 2 * pairs {
		left -= 4106 // and nothing comes back
		s := sample{at: now, remaining: left, most: most, own: price.arrival(), set: true}
		s.sums, s.flurry, _, _ = d.sending(now, price)
		now = now.Add(time.Microsecond)
		_, found, _ := d.saw(now, s, limit.Rate{N: most, Window: time.Minute}, estimate.ChargeSettle)
		doubted = doubted || found
		ended(&d, now, price, answer)
		d.gone()
	}
	if !doubted {
		t.Error("a rule that gives back what the provider keeps is not doubted")
	}
}

// ended is doubt.ended as Call.Settle calls it.
func ended(d *doubt, now time.Time, p *Price, r *usage.Result) {
	input, output := p.actual(r, &p.rule)
	input, output = p.used(r, limit.Cost{Input: input, Output: output})
	d.ended(now, p, input, output)
}
