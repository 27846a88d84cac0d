package limit

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// Three calls of 4,000 are under way when the answer of the last teaches a limit of 60,000 a
// minute: 5,000 are left. What comes back of the others is bound by all that bounds credit.
func TestWhatEarlierCallsGiveBackIsBound(t *testing.T) {
	of := func(out int64) Cost { return Cost{Output: out} }
	set := func(t *testing.T, l *Limiter, u Unit, perMinute int64) {
		lim := Limit{Name: "x", Unit: u, Rate: PerMinute(perMinute), Burst: 30_000, ReadAt: ReadAtSending}
		if err := l.EnforceScopeLimit("", lim); err != nil {
			t.Fatal(err)
		}
	}
	said := func(l *Limiter) { l.EarlyScope("", "x", true) }
	for _, c := range []struct {
		name   string
		play   func(t *testing.T, l *Limiter, calls []Reservation)
		credit int64
	}{
		{"a drain that leaves 6,000", func(_ *testing.T, l *Limiter, calls []Reservation) {
			calls[0].Settle(of(1_000)) // 3,000 are set aside
			l.Drain("x", 6_000, 0)     // takes nothing of the 5,000
			said(l)
		}, 6_000},
		{"a call that used more than it reserved", func(_ *testing.T, l *Limiter, calls []Reservation) {
			calls[0].Settle(of(4_500))
			said(l)
		}, 4_500},
		{"the same, once it is said", func(_ *testing.T, l *Limiter, calls []Reservation) {
			said(l)
			calls[0].Settle(of(4_500))
		}, 4_500},
		{"another unit, of which nothing was read", func(t *testing.T, l *Limiter, calls []Reservation) {
			said(l)
			set(t, l, Output, 60_000)
			calls[0].Settle(of(1_000))
		}, 5_000},
		{"half the rate while a drain holds", func(t *testing.T, l *Limiter, calls []Reservation) {
			l.Drain("x", 0, 3*time.Second) // -3,000
			calls[0].Settle(of(0))         // 4,000 are set aside
			set(t, l, Tokens, 30_000)
			said(l)
		}, 1_000},
		{"a reading within a drain that ends", func(_ *testing.T, l *Limiter, calls []Reservation) {
			l.Drain("x", 0, 3*time.Second)          // -3,000, which took 8,000
			calls[0].Settle(of(1_000))              // 3,000 are set aside
			calls[2].Lower("x", 2_000-3_000, of(0)) // it states what was left before they came back
			l.ResumeScope("")
			said(l)
		}, 2_000},
		{"a call that was refused", func(_ *testing.T, l *Limiter, calls []Reservation) {
			calls[0].Lower("x", 3_000, of(4_000))
			calls[0].Return() // nobody has charged it
		}, 3_000},
		{"the same, once it is said", func(_ *testing.T, l *Limiter, calls []Reservation) {
			said(l)
			calls[0].Lower("x", 3_000, of(4_000))
			calls[0].Return()
		}, 3_000},
		{"a call that never left", func(_ *testing.T, l *Limiter, calls []Reservation) {
			said(l)
			calls[0].Return()
		}, 5_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := mustNew(t, Options{})
				var calls []Reservation
				for range 3 {
					r, err := l.TryAcquire(of(4_000))
					if err != nil {
						t.Fatal(err)
					}
					r.Sent()
					calls = append(calls, r)
				}
				set(t, l, Tokens, 60_000)
				calls[2].Lower("x", 5_000, Cost{})
				c.play(t, l, calls)
				if n := l.Snapshot().Limits[0].Credit; n != c.credit {
					t.Errorf("credit %d, want %d", n, c.credit)
				}
			})
		})
	}
}

// The two limits of TestALearnedLimitBecomesOneThatWasThere through drains, pauses, other
// rates and bursts, and calls that use more than they reserved. The learned one never holds
// more, with what is set aside too.
func TestALearnedLimitNeverHoldsMore(t *testing.T) {
	dice := rand.New(rand.NewPCG(*seedFlag, 18))
	for range orQuick(*opsFlag, 20_000) / 40 {
		synctest.Test(t, func(t *testing.T) { boundProgram(t, dice) })
	}
}

// boundTwins are the limiters of one program.
type boundTwins struct {
	there, learned *Limiter
	lim            Limit
	open           []twin
}

func boundProgram(t *testing.T, dice *rand.Rand) {
	unit := []Unit{Tokens, Output}[dice.IntN(2)]
	p := &boundTwins{lim: Limit{Name: "x", Unit: unit, Rate: PerSecond(100 + dice.Int64N(400)), Burst: 5000}}
	p.there, p.learned = mustNew(t, Options{Limits: []Limit{p.lim}}), mustNew(t, Options{})
	for range 1 + dice.IntN(6) {
		p.take(Cost{Requests: 1, Output: dice.Int64N(800)})
		time.Sleep(time.Duration(dice.Int64N(int64(300 * time.Millisecond))))
	}
	first := p.open[dice.IntN(len(p.open))]
	remaining := int64(3000)
	for !first.there.Lower("x", remaining, Cost{}) {
		remaining -= 500
	}
	if err := p.learned.EnforceScopeLimit("", p.lim); err != nil {
		t.Fatal(err)
	}
	first.learned.Lower("x", remaining, Cost{})
	for range 60 {
		time.Sleep(time.Duration(max(0, dice.Int64N(int64(time.Second))-int64(300*time.Millisecond))))
		p.step(t, dice)
		p.there.Snapshot() // both at the same instant
		p.learned.Snapshot()
		a, b := &p.there.root.limits[0], &p.learned.root.limits[0]
		a.advance(p.there.now())
		b.advance(p.learned.now())
		if all := b.level.add(b.early).min(b.cap); a.level.less(all) || b.early.hi < 0 || b.cap.less(b.level) {
			t.Fatalf("the learned limit has %d more units", all.sub(a.level).ceilDiv(a.w))
		}
	}
}

// take takes c in both, if the learned one has it.
func (p *boundTwins) take(c Cost) {
	x := twin{cost: c}
	var err error
	if x.learned, err = p.learned.TryAcquire(c); err != nil {
		return
	}
	if x.there, err = p.there.TryAcquire(c); err != nil {
		x.learned.Return()
		return
	}
	x.there.Sent()
	x.learned.Sent()
	p.open = append(p.open, x)
}

func (p *boundTwins) step(t *testing.T, dice *rand.Rand) {
	both := func(f func(l *Limiter)) { f(p.there); f(p.learned) }
	b := &p.learned.root.limits[0]
	// Where only one of them was above a drain, they hold until different instants.
	alike := p.there.root.limits[0].held() == b.held()
	d := time.Duration(dice.Int64N(int64(3 * time.Second)))
	switch k := dice.Int64N(3000); dice.IntN(9) {
	case 0, 1:
		p.take(Cost{Requests: 1, Output: dice.Int64N(900)})
	case 2, 3:
		p.end(dice)
	case 4:
		if len(p.open) > 0 {
			x, n := p.open[dice.IntN(len(p.open))], b.credit()+k-1000
			x.there.Lower("x", n, Cost{})
			x.learned.Lower("x", n, Cost{})
		}
	case 5:
		p.learned.EarlyScope("", "x", k%2 == 0)
		p.learned.EarlyScope("", "none", true)
		p.learned.EarlyScope("none", "x", true)
	case 6:
		both(func(l *Limiter) { l.Drain("x", k, d) })
	case 7:
		if k%2 == 0 {
			both(func(l *Limiter) { l.Pause(d) })
		} else if alike {
			both(func(l *Limiter) { l.ResumeScope("") })
		}
	case 8:
		if alike {
			p.lim.Rate, p.lim.Burst = Rate{1 + k/2, time.Second * time.Duration(1+k%3)}, 1000+dice.Int64N(5000)
			both(func(l *Limiter) {
				if err := l.EnforceScopeLimit("", p.lim); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// end ends one call in both, in one of three ways.
func (p *boundTwins) end(dice *rand.Rand) {
	if len(p.open) == 0 {
		return
	}
	i := dice.IntN(len(p.open))
	x := p.open[i]
	p.open = append(p.open[:i], p.open[i+1:]...)
	actual := Cost{Output: dice.Int64N(x.cost.Output*2 + 1)}
	how := dice.IntN(6)
	for _, r := range []Reservation{x.there, x.learned} {
		switch how {
		case 0:
			r.Keep()
		case 1:
			r.Return()
		default:
			r.Settle(actual)
		}
	}
}
