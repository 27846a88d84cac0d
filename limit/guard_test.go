package limit

import (
	"math/big"
	"testing"
	"time"
)

// A guardOracle is a guard in rational numbers. Its pace is the oracle of a
// bucket; what evidence does is written anew.
type guardOracle struct {
	*oracle
	base               int64
	open, known        bool
	shown, newest      int64
	sure               int64
	full, spent        bool
	since, bad, banned int64
	wrong              int
	deaf               int64
}

func (o *guardOracle) passes(cost int64) bool {
	return o.open || o.known && cost <= o.shown || o.wait(cost) == 0
}

func (o *guardOracle) spend(cost int64) {
	o.full = o.full || o.level.Cmp(o.burst) == 0
	after := new(big.Rat).Sub(o.level, units(cost))
	if (o.open || o.known && cost <= o.shown) && after.Sign() < 0 {
		after.SetInt64(0)
		if o.level.Sign() < 0 {
			after.Set(o.level)
		}
	}
	o.level = after
	o.bound()
	if o.known {
		o.shown -= cost
		o.sure -= cost
	}
	if half := new(big.Rat).Quo(o.burst, units(2)); o.full && o.level.Cmp(half) < 0 {
		o.full, o.spent, o.since = false, true, o.at
	}
}

func (o *guardOracle) resize(burst int64) { o.setRate(o.rate, burst, MaxUnits) }

type guardTrial struct {
	t *testing.T
	o *guardOracle
	g *Guard
}

func newGuardTrial(t *testing.T, s source) *guardTrial {
	r := pick(s, windowRates)
	burst := 1 + upTo(s, r.N)
	g, err := NewGuard(r, burst)
	if err != nil {
		t.Fatal(err)
	}
	return &guardTrial{t, &guardOracle{oracle: newOracle(r, burst, MaxUnits), base: burst}, g}
}

func (x *guardTrial) step(s source) bool {
	at := later(x.o.at, int64(gap(s))>>upTo(s, 20))
	if at > 1<<61 {
		return false
	}
	now, o, g := time.Duration(at), x.o, x.g
	n := o.rate.N
	o.advance(at)
	switch upTo(s, 10) {
	default:
		cost := spread(s, n+1)
		want := o.passes(cost)
		wait, err := g.Take(now, cost)
		if err != nil || want != (wait == 0) {
			x.t.Fatalf("take %d: wait %v, %v; want it to pass %v", cost, wait, err, want)
		}
		if want {
			o.spend(cost)
		} else if w := o.wait(cost); w != int64(wait) {
			x.t.Fatalf("take %d: wait %d, want %d", cost, wait, w)
		}
	case 5:
		sent, shown := max(0, at-spread(s, int64(time.Minute))), spread(s, n+1)
		g.Shown(time.Duration(sent), shown, shown/2)
		if sent >= o.newest && sent >= o.deaf {
			o.known, o.newest, o.shown, o.sure = true, sent, shown, shown/2
		}
	case 6:
		sent := max(0, at-spread(s, int64(time.Minute)))
		g.Passed(now, time.Duration(sent))
		if o.spent && sent >= o.since {
			o.spent = false
			if next := min(2*o.cap, n); o.bad == 0 || at >= o.banned || next < o.bad {
				o.resize(next)
			}
		}
	case 7:
		if upTo(s, 4) == 0 {
			g.Refused(now)
			if o.known && o.sure >= 0 {
				if o.wrong++; o.wrong == 2 {
					o.wrong, o.deaf = 0, later(at, int64(BackOff))
				}
				o.newest = at
			}
			if o.cap > o.base {
				o.bad, o.banned = o.cap, later(at, int64(BackOff))
			}
			o.open, o.known, o.shown, o.sure, o.full, o.spent = false, false, 0, 0, false, false
			o.resize(o.base)
		} else if upTo(s, 8) == 0 {
			g.Open()
			o.open = true
		}
	case 8:
		back := spread(s, n+1)
		g.Return(back)
		o.add(back)
		if o.known {
			o.shown = min(MaxUnits, o.shown+back)
			o.sure = min(MaxUnits, o.sure+back)
		}
	case 9:
		more := spread(s, n+1)
		g.Charge(now, more)
		o.spend(more)
	}
	if g.pace.advance(at); !o.levelIs(&g.pace) || g.pace.burst != o.cap || g.shown != o.shown || g.Covers(o.sure) != o.known || g.Covers(o.sure+1) {
		x.t.Fatalf("level %v of %d, shown %d; want %v of %d, shown %d", g.pace.level.big(), g.pace.burst, g.shown, o.level, o.cap, o.shown)
	}
	return true
}

// Guard against rational numbers: every decision, wait and level of a long random
// program is the same.
func TestOracleGuard(t *testing.T) {
	s := newSeeded(*seedFlag)
	for done := 0; done < orQuick(*opsFlag, 50_000); {
		x := newGuardTrial(t, s)
		for range 300 {
			done++
			if !x.step(s) {
				break
			}
		}
	}
}

func FuzzGuard(f *testing.F) {
	f.Add([]byte("a burst, an answer, a refusal"))
	f.Fuzz(func(t *testing.T, program []byte) {
		s := &fuzzed{program}
		x := newGuardTrial(t, s)
		for !s.done() && x.step(s) {
		}
	})
}

func TestAGuardLetsABurstGoAndThenWhatEvidenceShows(t *testing.T) {
	g, _ := NewGuard(PerMinute(600), 10)
	take := func(at time.Duration, cost int64, want time.Duration) {
		t.Helper()
		if wait, _ := g.Take(at, cost); wait != want {
			t.Errorf("at %v take %d: wait %v, want %v", at, cost, wait, want)
		}
	}
	take(0, 10, 0)
	take(0, 1, 100*time.Millisecond)
	g.Shown(0, 590, 590)
	take(0, 100, 0) // 490 of what was shown are left
	take(0, 490, 0)
	take(0, 1, 100*time.Millisecond)
	g.Passed(0, 0)              // the burst was not refused: 20 may go at once
	take(10*time.Second, 20, 0) // all of it
	g.Refused(10 * time.Second) // as at the start
	take(20*time.Second, 11, 0) // a cost above the burst goes when it is full
	take(20*time.Second, 1, 200*time.Millisecond)
	g.Passed(20*time.Second, 20*time.Second)
	if b := g.Burst(); b != 10 {
		t.Errorf("burst %d: 20 were refused less than ten minutes ago", b)
	}
	g.Open()
	take(20*time.Second, 600, 0)
}

// A window behind a guard lets no more go than the newest reading shows, less what is
// spare, for a sixth of the window. Its credit stays.
func TestAGuessIsHeldToTheNewestReading(t *testing.T) {
	m := meter{Bucket: newBucket(PerMinute(6000), 6000, 6000, 0)}
	m.protect(1000)
	if err := m.follow(Law{Shape: ShapeSliding, FirstCall: true, Spare: 30}, false); err != nil {
		t.Fatal(err)
	}
	m.lowerSent(0, reading{remaining: 6000})
	at := int64(time.Second)
	m.advance(at)
	if !m.take(at, 5000) {
		t.Fatal("5000 of 6000 do not go")
	}
	at = int64(2 * time.Second)
	m.advance(at)
	m.lowerSent(at, reading{remaining: 700})
	if c := m.more.window.Credit(); c != 970 {
		t.Errorf("the window has %d, want 970", c)
	}
	at = int64(8 * time.Second) // by now the guard's pace has earned 600, and the bucket more
	m.advance(at)
	m.more.guard.shown, m.more.guard.sure = 0, 0 // the pace alone lets go
	if m.take(at, 671) {
		t.Error("671 went: 700 are left, and 30 are spare")
	}
	if wait := m.waitFrom(at, 0, 671); wait != int64(4*time.Second) {
		t.Errorf("wait %v, want 4s: a sixth of a minute after the reading", time.Duration(wait))
	}
	if !m.take(at, 670) {
		t.Error("670 did not go")
	}
}

// A meter in each of its forms against its parts: a cost goes through all that
// decides or through nothing, a wait is the longest, an undone take leaves no
// trace.
func TestAMeterDecidesAsItsPartsDo(t *testing.T) {
	s := newSeeded(*seedFlag)
	for range orQuick(*opsFlag, 20_000) / 20 {
		r := pick(s, windowRates)
		burst := 1 + upTo(s, r.N)
		m := meter{Bucket: newBucket(r, burst, r.N, 0)}
		form := upTo(s, 4) // 3 is a window behind a guard
		switch form {
		case 1:
			m.protect(1 + upTo(s, burst))
		case 2, 3:
			if form == 3 {
				m.protect(1 + upTo(s, burst))
				m.more.guard.heard = upTo(s, 2) == 0 // else the window is charged and not asked
			}
			if err := m.follow(Law{Shape: ShapeFixed + Shape(upTo(s, 4)), FirstCall: upTo(s, 2) == 0}, false); err != nil {
				t.Fatal(err)
			}
			if c := m.credit(); c != burst {
				t.Fatalf("a window begins with a credit of %d, want the bucket's %d", c, burst)
			}
		}
		at := int64(0)
		for range 20 {
			at += upTo(s, int64(r.Window))
			cost := upTo(s, r.N+1)
			m.advance(at)
			wait := m.waitFrom(at, 0, cost)
			level, credit := m.level, m.credit()
			if ok := m.take(at, cost); ok != (wait == 0) {
				t.Fatalf("form %d: take %d is %v, wait %d", form, cost, ok, wait)
			} else if !ok {
				if m.level != level || m.credit() != credit {
					t.Fatalf("form %d: a refused take left a trace", form)
				}
				continue
			}
			next := m.waitFrom(at, 0, r.N)
			if upTo(s, 2) == 0 {
				m.untake(cost)
				if m.level != level || m.credit() != credit || m.waitFrom(at, 0, cost) != 0 {
					t.Fatalf("form %d: an undone take left a trace", form)
				}
				if !m.take(at, cost) || m.waitFrom(at, 0, r.N) != next {
					t.Fatalf("form %d: an undone take changed the next", form)
				}
			}
			if upTo(s, 3) == 0 {
				m.refund(at, upTo(s, cost+1))
			}
			if upTo(s, 8) == 0 {
				n := upTo(s, r.N)
				before := m.credit()
				m.charge(n)
				if after := m.credit(); after != before-n {
					t.Fatalf("form %d: a charge of %d took %d", form, n, before-after)
				}
			}
			if upTo(s, 8) == 0 {
				keep := upTo(s, r.N+1)
				m.drain(keep, 0)
				if m.credit() > keep {
					t.Fatalf("form %d: drained to %d, yet %d are there", form, keep, m.credit())
				}
				m.set(Rate{1 + upTo(s, r.N), r.Window}, burst, r.N)
				m.set(r, burst, r.N)
				if m.credit() > keep {
					t.Fatalf("form %d: a change of rate raised credit", form)
				}
			}
			if upTo(s, 4) == 0 {
				before := m.credit()
				m.lowerSent(at, reading{remaining: upTo(s, r.N+1)})
				if m.credit() > before {
					t.Fatalf("form %d: a reading raised credit", form)
				}
			}
		}
		// Another law changes which books are asked, and raises none of them.
		level, used := m.level, int64(0)
		if m.more != nil && m.more.window != nil {
			used = m.more.window.log.used(at)
		}
		for _, next := range []Law{{Shape: ShapeLog}, {Shape: ShapeFixed}, {Shape: ShapeLog}, {Shape: ShapeBucket}} {
			if err := m.follow(next, false); err != nil {
				t.Fatal(err)
			}
			if m.level != level {
				t.Fatalf("form %d: the bucket moved", form)
			}
			if next.Shape == ShapeLog && form >= 2 && m.more.asks() && m.credit() > r.N-used {
				t.Fatalf("form %d: credit %d under %v, but %d of %d are used", form, m.credit(), next.Shape, used, r.N)
			}
		}
	}
}

func TestEvidenceRaisesNoCredit(t *testing.T) {
	m := meter{Bucket: newBucket(PerMinute(600), 600, 600, 0)}
	m.protect(10)
	m.take(0, 10)
	m.lowerSent(0, reading{remaining: 100})
	if c := m.credit(); c != 100 {
		t.Errorf("credit %d, want the 100 that the reading shows", c)
	}
	if m.lowerSent(0, reading{remaining: 600}); m.credit() != 100 {
		t.Errorf("credit %d, want 100: a reading raised it", m.credit())
	}
	if !m.take(0, 100) || m.take(0, 1) {
		t.Error("want what was shown to go at once, and no more than there is")
	}
}

// The cost of the forms beside the bare bucket; see the file for what each is.
func BenchmarkMeter(b *testing.B) {
	r := PerMinute(MaxUnits)
	bare := newBucket(r, MaxUnits, MaxUnits, 0)
	run := func(name string, take func(now int64) bool) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				take(int64(i))
			}
		})
	}
	run("bucket", func(now int64) bool { return bare.take(now, 1) })
	alone := meter{Bucket: newBucket(r, MaxUnits, MaxUnits, 0)}
	run("meter", func(now int64) bool { return alone.take(now, 1) })
	alone = meter{Bucket: newBucket(r, MaxUnits, MaxUnits, 0)}
	run("meter, asked in place", func(now int64) bool { // as a hot loop would
		if alone.more == nil {
			return alone.Bucket.take(now, 1)
		}
		return alone.takeMore(now, 1)
	})
	guarded := meter{Bucket: newBucket(r, MaxUnits, MaxUnits, 0)}
	guarded.protect(MaxUnits / 2)
	run("guarded", func(now int64) bool { return guarded.take(now, 1) })
	for _, shape := range []Shape{ShapeFixed, ShapeLog, ShapeTwoWindows, ShapeSliding} {
		m := meter{Bucket: newBucket(r, MaxUnits, MaxUnits, 0)}
		if err := m.follow(Law{Shape: shape}, false); err != nil {
			b.Fatal(err)
		}
		run(shape.String(), func(now int64) bool { return m.take(now, 1) })
	}
}

// A snapshot says how much of the whole limit is left, and how much the guard lets go.
func TestASnapshotOfAGuardedLimit(t *testing.T) {
	l, err := New(Options{Limits: []Limit{{Name: "tpm", Unit: Tokens, Rate: PerMinute(600), Burst: 600, Guard: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := l.Snapshot().Limits[0].String(), "tpm: 600/1m0s, 600 of 600 left (100 at once)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
