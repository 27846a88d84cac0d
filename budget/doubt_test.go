package budget

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
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

// Calls leave one by one and answers come out of order, after one to ten seconds. A
// provider that reserves nothing is found out in 15 s, whether it reads its balance when it
// admits a call or when it answers. One that reserves is not doubted.
func TestNothingReservedShowsSoon(t *testing.T) {
	for _, of := range []struct {
		reserves, atAnswer bool
		want               []estimate.Charge
	}{
		{false, false, []estimate.Charge{estimate.ChargeActual}},
		{false, true, []estimate.Charge{estimate.ChargeActual}},
		{true, false, nil},
	} {
		var d doubt
		var doubts []estimate.Charge
		lone(&d, of.reserves, of.atAnswer, 15*time.Second, func(seen estimate.Charge) { doubts = append(doubts, seen) })
		if !slices.Equal(doubts, of.want) {
			t.Errorf("%+v: seen %v", of, doubts)
		}
		// Only where it reserves may calls from before a limit give back to it.
		if d.settles() != of.reserves {
			t.Errorf("%+v: settles is %v", of, !of.reserves)
		}
	}
}

// lone plays calls of a provider that charges a prompt of 1,000 tokens on arrival, and the
// output when the answer ends. If it reserves, it charges the cap on arrival and gives
// back at the end.
func lone(d *doubt, reserves, atAnswer bool, span time.Duration, doubted func(estimate.Charge)) {
	const most, prompt, reserve = 600_000, 1000, 4096
	rate := limit.Rate{N: most, Window: time.Minute}
	price := &Price{input: prompt, output: reserve, reserve: reserve, rule: estimate.Rule{ReserveCap: true}}
	r := rand.New(rand.NewPCG(1, 2))
	type call struct {
		ends time.Time
		s    sample
		out  int64
	}
	var open []call
	start := time.Unix(1e9, 0)
	now, left := start, int64(most)
	for now.Sub(start) < span {
		step := 20 * time.Millisecond
		now, left = now.Add(step), min(most, left+rate.In(step))
		if now.Sub(start)%(300*time.Millisecond) == 0 {
			c := call{ends: now.Add(time.Second + time.Duration(r.Int64N(9e9))).Truncate(step), out: 20 + r.Int64N(1200)}
			left -= prompt
			if reserves {
				left -= reserve
			}
			c.s = sample{at: now, remaining: left, most: most, own: price.arrival(), set: true}
			c.s.sums, c.s.flurry, _, _ = d.sending(now, price)
			open = append(open, c)
			continue
		}
		for i, c := range open {
			if c.ends.After(now) {
				continue
			}
			open = slices.Delete(open, i, i+1)
			if atAnswer {
				c.s.remaining = left
			}
			if seen, found, _ := d.saw(now, c.s, rate, estimate.ChargeSettle); found {
				doubted(seen)
			}
			left -= c.out
			if reserves {
				left += reserve
			}
			d.ended(now, price, c.out)
			d.gone()
			break
		}
	}
}

// ended is doubt.ended as Call.Settle calls it.
func ended(d *doubt, now time.Time, p *Price, r *usage.Result) {
	input, output := p.actual(r, &p.rule)
	d.ended(now, p, p.used(r, limit.Cost{Input: input, Output: output}))
}

// On a window in bursts a rule without a reserve fits three of four pairs under the wrong
// refill. The rule in force foretells most of them to some tokens, and stays.
func TestARuleThatForetellsMostPairsIsKept(t *testing.T) {
	fill := func(settled int64) *doubt {
		d := new(doubt)
		f := d.book(asSent)
		for i := range few {
			near := settled
			if i%4 == 3 {
				near = 8000
			}
			f.errs[0][estimate.ChargeSettle][i], f.errs[1][estimate.ChargeSettle][i] = near, 10_000
			f.errs[0][estimate.ChargeActual][i], f.errs[1][estimate.ChargeActual][i] = 9000, 3800
			f.errs[0][estimate.ChargePrompt][i], f.errs[1][estimate.ChargePrompt][i] = 9000, 1300
			f.errs[0][estimate.ChargeEstimate][i], f.errs[1][estimate.ChargeEstimate][i] = 20_000, 20_000
			f.want[0][estimate.ChargeActual][i], f.want[1][estimate.ChargeActual][i] = 10_000, 10_000
		}
		f.n = [refills]int{few, few}
		return d
	}
	if r, _ := fill(9).best(estimate.ChargeSettle); r != estimate.ChargeSettle {
		t.Errorf("%v, want settle: it foretold most pairs to 9 tokens", r)
	}
	if r, _ := fill(8000).best(estimate.ChargeSettle); r != estimate.ChargeActual {
		t.Errorf("%v, want actual: settle foretold none", r)
	}
}

// follower follows every rule that is doubted.
type follower struct {
	silent
	seen *[]estimate.Charge
}

func (f follower) Doubted(_, seen estimate.Charge) (follow bool) {
	*f.seen = append(*f.seen, seen)
	return true
}

// A provider refills at its own rate while ours is cut: the rule that it charges by shows
// all the same. Once a rule that charges more is followed, it explains the refusals that
// brought the cut, and the cut ends. A cheaper rule explains none.
func TestARuleIsFoundAtACutRate(t *testing.T) {
	const input, reserve, output = 300, 900, 100
	for _, c := range []struct {
		mine, truth estimate.Charge
		left        int64 // at the start
		rate        int64 // in the end
	}{
		{estimate.ChargeSettle, estimate.ChargeEstimate, 40_000, 60_000},
		{estimate.ChargeEstimate, estimate.ChargeSettle, 5_000, 45_000},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBudget(t, Options{Profile: ruled(c.mine)})
			path, left := b.Scope(), c.left
			var seen []estimate.Charge
			at := time.Now()
			for i := 0; len(seen) == 0 && i < 2*pairs; i++ {
				var k Call
				k.Open(path, follower{seen: &seen}, request(input, reserve), 1)
				if err := k.Admit(context.Background(), time.Now()); err != nil {
					t.Fatal(err)
				}
				k.Leave(time.Now())
				left += limit.PerMinute(60_000).In(time.Since(at)) - input - reserve
				at = time.Now()
				k.Hear(time.Now(), shows(left), false)
				if i == 0 {
					cutBy(path.inner, whole/4)
				}
				time.Sleep(50 * time.Millisecond)
				answer := &usage.Result{Found: true, Complete: true}
				answer.Input, answer.Output = usage.Count{N: input, OK: true}, usage.Count{N: output, OK: true}
				k.Settle(time.Now(), answer)
				if c.truth == estimate.ChargeSettle {
					left += reserve - output
				}
				time.Sleep(1100 * time.Millisecond)
			}
			if !slices.Equal(seen, []estimate.Charge{c.truth}) {
				t.Errorf("%v charged by %v: seen %v", c.mine, c.truth, seen)
			}
			if got := state(t, b, tpm).Rate.N; got != c.rate {
				t.Errorf("%v charged by %v: the rate is %d, want %d", c.mine, c.truth, got, c.rate)
			}
		})
	}
}

// cutBy cuts the token limit of s by so many parts, which do not come back soon.
func cutBy(s *Scope, missing int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.find(limit.Tokens, time.Minute)
	d.cut = cut{missing: missing, since: time.Now().Add(time.Hour)}
	s.apply(d, time.Now())
}
