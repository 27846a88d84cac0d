package limit

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// twoBooks is what credit is with readings: the lower of two books, in rational numbers.
// The own books know nothing of readings. The others are a reading, carried forward:
// input that a settlement finds above its estimate was in it, if the call left before.
type twoBooks struct {
	own, read oracle
	heard     bool
	at        time.Duration // of the reading in read
	by        *foundCall
}

type foundCall struct {
	r    Reservation
	cost Cost
	sent time.Duration // the instant of its mark
	left time.Duration
	made bool
}

type foundCharge struct {
	at   time.Duration
	cost int64
}

func (b *twoBooks) each(do func(*oracle)) {
	do(&b.own)
	if b.heard {
		do(&b.read)
	}
}

func (b *twoBooks) level() *big.Rat {
	if b.heard && b.read.level.Cmp(b.own.level) < 0 {
		return b.read.level
	}
	return b.own.level
}

// Settlements above the estimate, and readings that know of them or not, in a random
// program: credit is that of the two books after every step. No charge counts twice, and
// credit is never above the own books.
func TestOracleFound(t *testing.T) {
	dice := rand.New(rand.NewPCG(*seedFlag, 13))
	found := 0
	for range orQuick(*opsFlag, 20_000) / 100 {
		synctest.Test(t, func(t *testing.T) { found += foundProgram(t, dice) })
	}
	if found < 100 {
		t.Errorf("%d settlements were known before, want 100 at least", found)
	}
}

func foundProgram(t *testing.T, dice *rand.Rand) (known int) {
	const burst = 5000
	rate := PerSecond(100 + dice.Int64N(400))
	unit := []Unit{Tokens, Input}[dice.IntN(2)]
	l := mustNew(t, Options{Limits: []Limit{{Name: "x", Unit: unit, Rate: rate, Burst: burst}}})
	start := time.Now()
	b := &twoBooks{own: *newOracle(rate, burst, burst), read: *newOracle(rate, burst, burst)}
	var open []*foundCall
	var charges, ends []foundCharge
	count := func(c Cost) int64 {
		if unit == Tokens {
			return c.Input + c.Output
		}
		return c.Input
	}
	for range 100 {
		time.Sleep(time.Duration(dice.Int64N(int64(400 * time.Millisecond))))
		now := time.Since(start)
		b.each(func(o *oracle) { o.advance(int64(now)) })
		var c *foundCall
		if len(open) > 0 {
			c = open[dice.IntN(len(open))]
		}
		switch op := dice.IntN(10); {
		case op < 4 || c == nil:
			c = &foundCall{cost: Cost{Input: dice.Int64N(400), Output: dice.Int64N(200)}, sent: now, left: now}
			r, err := l.TryAcquire(c.cost)
			if err != nil {
				continue
			}
			c.r = r
			r.Sent()
			b.each(func(o *oracle) { o.add(-count(c.cost)) })
			charges = append(charges, foundCharge{now, count(c.cost)})
			open = append(open, c)
		case op < 5:
			c.r.Made()
			c.sent, c.made = now, true
		case op < 7: // a reading, somewhat below what is there
			remaining := new(big.Int).Quo(b.level().Num(), b.level().Denom()).Int64() + dice.Int64N(1500) - 1000
			bound := new(big.Rat).Mul(b.own.perNano, units(int64(now-c.sent)))
			bound.Add(bound, units(remaining))
			for _, x := range charges {
				if x.at > c.sent+250*time.Millisecond {
					bound.Sub(bound, units(x.cost))
				}
			}
			for _, x := range ends {
				if x.at >= c.sent {
					bound.Add(bound, units(x.cost))
				}
			}
			fell := bound.Cmp(b.level()) < 0
			if got := c.r.Lower("x", remaining, Cost{}); got != fell {
				t.Fatalf("a reading of %d lowered: %v, want %v", remaining, got, fell)
			}
			if fell {
				b.read = *newOracle(rate, burst, burst)
				b.read.at = int64(now)
				b.read.level.Set(bound)
				b.read.bound()
				b.heard, b.at, b.by = true, c.sent, c
			}
		default:
			actual := Cost{Input: dice.Int64N(800), Output: dice.Int64N(400)}
			c.r.Settle(actual)
			diff := Cost{Input: c.cost.Input - actual.Input, Output: c.cost.Output - actual.Output}
			b.own.add(count(diff))
			late := diff
			late.Input = max(0, late.Input)
			if b.heard {
				if b.by == c && c.sent <= b.at && c.made {
					known++
					b.read.add(max(0, count(diff)))
				} else if b.by == c && c.sent <= b.at || c.left+250*time.Millisecond <= b.at {
					known++
					b.read.add(count(late))
				} else {
					b.read.add(count(diff))
				}
			}
			ends = append(ends, foundCharge{now, count(late)})
			for i := range open {
				if open[i] == c {
					open = append(open[:i], open[i+1:]...)
					break
				}
			}
		}
		l.Snapshot()
		got := l.root.limits[0].level
		want := b.level()
		if want.Cmp(new(big.Rat).SetFrac(got.big(), new(big.Int).SetUint64(l.root.limits[0].w))) != 0 {
			t.Fatalf("at %v: level %v, want %s", now, got.big(), want.FloatString(6))
		}
	}
	return known
}
