package limit

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// A limit that an answer taught, and one like it that was there from the start. After
// EarlyScope both hold the same, to the grain, in every order of takes, ends and readings.
// Before that the learned one never holds more.
func TestALearnedLimitBecomesOneThatWasThere(t *testing.T) {
	dice := rand.New(rand.NewPCG(*seedFlag, 17))
	gave := 0
	for range orQuick(*opsFlag, 20_000) / 100 {
		synctest.Test(t, func(t *testing.T) { gave += learnedProgram(t, dice) })
	}
	if gave < 20 {
		t.Errorf("in %d programs an earlier call gave something back, want 20 at least", gave)
	}
}

// twin is a call in both limiters.
type twin struct {
	there, learned Reservation
	cost           Cost
}

// learnedProgram plays one program. It returns 1 if something that was set aside came back.
func learnedProgram(t *testing.T, dice *rand.Rand) (gave int) {
	lim := Limit{Name: "x", Unit: Tokens, Rate: PerSecond(100 + dice.Int64N(400)), Burst: 5000}
	there, learned := mustNew(t, Options{Limits: []Limit{lim}}), mustNew(t, Options{})
	a := &there.root.limits[0]
	b := func() *bound { return &learned.root.limits[0] }
	var open []twin
	take := func(most int64) {
		c := Cost{Requests: 1, Input: dice.Int64N(most/2 + 1), Output: dice.Int64N(most/2 + 1)}
		x := twin{cost: c}
		var err error
		if x.there, err = there.TryAcquire(c); err != nil {
			t.Fatal(err)
		}
		if x.learned, err = learned.TryAcquire(c); err != nil {
			t.Fatal(err)
		}
		x.there.Sent()
		x.learned.Sent()
		open = append(open, x)
	}
	for range 1 + dice.IntN(6) {
		take(800)
		time.Sleep(time.Duration(dice.Int64N(int64(300 * time.Millisecond))))
	}
	remaining := int64(3000)
	for first := open[dice.IntN(len(open))]; ; remaining -= 500 {
		if first.there.Lower("x", remaining, Cost{}) {
			if err := learned.EnforceScopeLimit("", lim); err != nil {
				t.Fatal(err)
			}
			first.learned.Lower("x", remaining, Cost{})
			break
		}
	}
	said := false
	check := func(when string) {
		there.Snapshot() // both at the same instant
		learned.Snapshot()
		a.advance(there.now())
		b().advance(learned.now())
		switch {
		case a.level.less(b().level):
			t.Fatalf("%s: the learned limit has %d more units", when, b().level.sub(a.level).ceilDiv(a.w))
		case said && a.level != b().level:
			t.Fatalf("%s: the learned limit has %d units less", when, a.level.sub(b().level).ceilDiv(a.w))
		}
	}
	check("learned")
	for range 60 {
		time.Sleep(time.Duration(dice.Int64N(int64(700 * time.Millisecond))))
		check("later")
		switch dice.IntN(5) {
		case 0, 1:
			if n := b().credit(); n > 0 {
				take(min(n, 900))
			}
		case 2:
			if len(open) > 0 {
				i := dice.IntN(len(open))
				x := open[i]
				open = append(open[:i], open[i+1:]...)
				end := Cost{Input: x.cost.Input, Output: dice.Int64N(x.cost.Output + 1)}
				x.there.Settle(end)
				x.learned.Settle(end)
			}
		case 3:
			if len(open) > 0 {
				x, n := open[dice.IntN(len(open))], b().credit()+dice.Int64N(4000)-1000
				x.there.Lower("x", n, Cost{})
				x.learned.Lower("x", n, Cost{})
			}
		case 4:
			if !said && dice.IntN(4) == 0 {
				said = true
				if b().early != (wide{}) {
					gave = 1
				}
				learned.EarlyScope("", "x", true)
			}
		}
		check("done")
	}
	return gave
}

// Two calls of 4,000 are under way when the answer of a third teaches a limit of 60,000 a
// minute: 5,000 are left. They end with 1,000 each. Without a word that is lost; with it
// both give back 3,000, though one ended before and one ends later. A newer
// balance bounds what is given back.
func TestEarlierCallsGiveBack(t *testing.T) {
	for _, of := range []struct {
		name   string
		said   bool
		newer  int64 // a balance between, 0 is none
		unsaid bool  // it is taken back before the second ends
		credit int64
	}{
		{name: "nothing is said", credit: 5_000},
		{name: "it is said", said: true, credit: 11_000},
		{name: "a balance shows 1,000 more", said: true, newer: 6_000, credit: 9_000},
		{name: "a balance shows less", said: true, newer: 4_000, credit: 7_000},
		{name: "it is said for one", said: true, unsaid: true, credit: 8_000},
	} {
		t.Run(of.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := mustNew(t, Options{})
				var calls []Reservation
				for range 3 {
					r, err := l.TryAcquire(Cost{Output: 4_000})
					if err != nil {
						t.Fatal(err)
					}
					r.Sent()
					calls = append(calls, r)
				}
				lim := Limit{Name: "x", Unit: Tokens, Rate: PerMinute(60_000), Burst: 30_000, ReadAt: ReadAtSending}
				if err := l.EnforceScopeLimit("", lim); err != nil {
					t.Fatal(err)
				}
				calls[2].Lower("x", 5_000, Cost{})
				calls[0].Settle(Cost{Output: 1_000})
				if of.newer > 0 {
					// It states the balance of its sending; what came back since is added.
					calls[2].Lower("x", of.newer-3_000, Cost{})
				}
				if of.said {
					l.EarlyScope("", "x", true)
				}
				if of.unsaid {
					l.EarlyScope("", "x", false)
				}
				calls[1].Settle(Cost{Output: 1_000})
				if got := l.Snapshot().Limits[0].Credit; got != of.credit {
					t.Errorf("credit %d, want %d", got, of.credit)
				}
			})
		})
	}
}
