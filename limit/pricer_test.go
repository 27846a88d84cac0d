package limit

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// priced is a price that is asked for when the turn comes.
type priced struct {
	cost  Cost
	asked int
}

func (p *priced) Price() (cost, likely Cost) {
	p.asked++
	return p.cost, Cost{Requests: p.cost.Requests, Input: p.cost.Input / 2}
}

// A thousand callers wait whose price has changed when their turn comes. Each goes in
// its place, when there is the old price and the new one, and takes the new one.
func TestPriceAtTheHeadOfTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 13))
		const burst = 50
		l := mustNew(t, Options{Limits: []Limit{{Name: "tokens", Unit: Tokens, Rate: Rate{1, time.Millisecond}, Burst: burst, Empty: true}}})
		start, credit, at := time.Now(), int64(0), time.Duration(0)
		type caller struct {
			*Ticket
			*priced
			at time.Duration
		}
		var line []caller
		for range 1000 {
			old, now := 1+r.Int64N(burst), 1+r.Int64N(burst)
			p := &priced{cost: Cost{Requests: 1, Input: now}}
			k, err := l.Enter(t.Context(), Ask{Cost: Cost{Requests: 1, Input: old}, Pricer: p})
			if err != nil {
				t.Fatal(err)
			}
			if more := max(old, now) - credit; more > 0 {
				at, credit = at+time.Duration(more)*time.Millisecond, credit+more
			}
			credit -= now
			line = append(line, caller{k, p, at})
		}
		for i, c := range line {
			<-c.Ready()
			if went := time.Since(start); went != c.at {
				t.Fatalf("caller %d went at %v; want %v", i, went, c.at)
			}
			res, err := c.Take()
			if err != nil || res.Cost() != c.cost || c.asked > 2 {
				t.Fatalf("caller %d: %v, %v; asked %d times", i, res.Cost(), err, c.asked)
			}
			res.Keep()
		}
		if s := l.Snapshot().Limits[0]; s.Credit != credit {
			t.Errorf("%v; want %d", s, credit)
		}
		empty(t, l)
	})
}

// A caller that does not wait is not asked. A price that no wait can make admissible is
// not used, nor one in other units; and a caller that leaves was never there.
func TestPriceThatCannotBeUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Name: "tokens", Unit: Tokens, Rate: Rate{1, time.Millisecond}, Burst: 10}}})
		first := &priced{cost: Cost{Requests: 1, Input: 5}}
		if r, err := l.Admit(t.Context(), Ask{Cost: Cost{Requests: 1, Input: 10}, Pricer: first}); err != nil || r.Cost().Input != 10 || first.asked != 0 {
			t.Fatal(r.Cost(), err, first.asked)
		}
		for _, c := range []Cost{{Requests: 1, Input: 11}, {Requests: 1}, {Input: 5}, {Requests: 1, Input: 5, Output: 1}, {Requests: 1, Input: -1}} {
			start := time.Now()
			k, err := l.Enter(t.Context(), Ask{Cost: Cost{Requests: 1, Input: 10}, Pricer: &priced{cost: c}})
			if err != nil {
				t.Fatal(err)
			}
			away, err := l.Enter(t.Context(), Ask{Cost: Cost{Requests: 1, Input: 10}, Pricer: &priced{cost: Cost{Requests: 1, Input: 1}}})
			if err != nil {
				t.Fatal(err)
			}
			<-k.Ready()
			if r, err := k.Take(); err != nil || r.Cost().Input != 10 || time.Since(start) != 10*time.Millisecond {
				t.Errorf("%v: %v, %v after %v", c, r.Cost(), err, time.Since(start))
			} else {
				r.Keep()
			}
			away.Cancel()
		}
	})
}
