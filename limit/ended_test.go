package limit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// An endTrial drives a limiter whose one limit has a law with AtEnd, beside three
// oracles of windows: what counts from the start, from the end, and by halves.
type endTrial struct {
	t                    *testing.T
	l                    *Limiter
	unit                 Unit
	n                    int64
	base                 time.Time
	start, whole, halves *windowOracle
	open                 []endOpen
}

type endOpen struct {
	r     Reservation
	taken int64
	cost  Cost
}

func newEndTrial(t *testing.T, s source) *endTrial {
	r := pick(s, []Rate{PerMinute(7), PerMinute(500), PerMinute(300_000), {600, 10 * time.Second}})
	law := Law{Shape: ShapeFixed + Shape(upTo(s, 4)), FirstCall: upTo(s, 2) == 0, AtEnd: true, Spare: upTo(s, r.N)}
	if upTo(s, 2) == 0 && law.Shape == ShapeLog {
		law.Margin = MinWindow / 10
	}
	x := &endTrial{t: t, unit: Unit(upTo(s, 4)), n: r.N - law.Spare, base: time.Now()}
	var err error
	if x.l, err = New(Options{Limits: []Limit{{Unit: x.unit, Rate: r, Burst: r.N, Law: law}}}); err != nil {
		t.Fatal(err)
	}
	here, less := law.From(x.base), Rate{x.n, r.Window}
	x.start, x.whole, x.halves = newWindowOracle(r, here, 0), newWindowOracle(less, here, 0), newWindowOracle(less, here, 0)
	return x
}

func (x *endTrial) of(c Cost) int64 { a := c.amounts(); return a.in(x.unit) }

func (x *endTrial) admits(at, c int64) bool {
	return x.start.admits(at, c) && x.whole.admits(at, c) && (x.unit != Tokens || x.halves.admits(at, c))
}

// take asks for a cost of at most what the further books hold.
func (x *endTrial) take(s source, at int64) {
	c := Cost{Requests: 1}
	switch x.unit {
	case Input:
		c.Input, c.Output = 1+spread(s, x.n), upTo(s, 100)
	case Output:
		c.Input, c.Output = upTo(s, 100), 1+spread(s, x.n)
	case Tokens:
		c.Input = spread(s, x.n)
		c.Output = spread(s, x.n-c.Input)
	}
	n := x.of(c)
	if n > x.n {
		return // it goes alone: see TestOracleWindow
	}
	r, err := x.l.TryAdmit(Ask{Cost: c})
	if want := x.admits(at, n); (err == nil) != want {
		x.t.Fatalf("at %d, %v of %d in %v: %v; the books say %v", at, x.unit, n, x.start.law.Shape, err, want)
	}
	if err == nil {
		x.start.charge(at, at, n)
		x.halves.charge(at, at, c.Input)
		x.open = append(x.open, endOpen{r, at, c})
		return
	}
	var e *Error
	if !errors.As(err, &e) || e.Wait <= 0 {
		x.t.Fatalf("refused without a wait: %v", err)
	}
	if at := at + int64(e.Wait); !x.admits(at, n) || x.admits(at-1, n) {
		x.t.Fatalf("the wait of %v is wrong: room after it %v, a nanosecond before %v", e.Wait, x.admits(at, n), x.admits(at-1, n))
	}
}

// end ends one of the open reservations in one of the three ways.
func (x *endTrial) end(s source, at int64) {
	i := upTo(s, int64(len(x.open)))
	o := x.open[i]
	x.open = append(x.open[:i], x.open[i+1:]...)
	charged := o.cost
	switch upTo(s, 4) {
	case 0:
		o.r.Keep()
	case 1:
		o.r.Return()
		charged = Cost{}
	default:
		charged.Input, charged.Output = upTo(s, 2*o.cost.Input+2), upTo(s, 2*o.cost.Output+2)
		o.r.Settle(charged)
	}
	x.corrects(x.start, at, o.taken, x.of(o.cost)-x.of(charged))
	x.whole.charge(at, at, x.of(charged))
	x.corrects(x.halves, at, o.taken, o.cost.Input-charged.Input)
	x.halves.charge(at, at, charged.Output)
}

func (x *endTrial) corrects(o *windowOracle, now, taken, back int64) {
	if back > 0 {
		o.refund(now, taken, back)
	} else {
		o.charge(now, now, -back)
	}
}

func (x *endTrial) step(s source) {
	time.Sleep(time.Duration(pick(s, []int64{0, 1, 1e6, 1e8, 1e9, 7e9, 61e9})))
	at := int64(time.Since(x.base))
	if len(x.open) > 0 && (len(x.open) > 50 || upTo(s, 2) == 0) {
		x.end(s, at)
	} else {
		x.take(s, at)
	}
	credit := x.start.level(at)
	for _, o := range []*windowOracle{x.whole, x.halves} {
		if level := o.level(at); level.Cmp(credit) < 0 && (o == x.whole || x.unit == Tokens) {
			credit = level
		}
	}
	st := x.l.Snapshot().Limits[0]
	if got, want := st.Credit-st.Debt, credit; want.Cmp(units(got)) < 0 || want.Cmp(units(got+1)) >= 0 {
		x.t.Fatalf("at %d the credit is %d; the books say %v", at, got, want)
	}
}

// A limit with AtEnd against three lists of charges in rational numbers: every decision,
// wait and level of a long random program is the same, in every shape and unit.
func TestOracleEnds(t *testing.T) {
	s := newSeeded(*seedFlag)
	for done := 0; done < orQuick(*opsFlag, 20_000); done += 300 {
		synctest.Test(t, func(t *testing.T) {
			x := newEndTrial(t, s)
			for range 300 {
				x.step(s)
			}
		})
	}
}

func FuzzEnds(f *testing.F) {
	f.Add([]byte("a log, a fixed minute and two weighted windows, charged when calls end"))
	f.Fuzz(func(t *testing.T, program []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := &fuzzed{program}
			x := newEndTrial(t, s)
			for !s.done() {
				x.step(s)
			}
		})
	})
}

// credits is a check of the credit of the first limit of l.
func credits(t *testing.T, l *Limiter) func(want int64, what string) {
	return func(want int64, what string) {
		t.Helper()
		if got := l.Snapshot().Limits[0].Credit; got != want {
			t.Fatalf("%s: the credit is %d; want %d", what, got, want)
		}
	}
}

// A reading shows use by others only as far as no call that was open can explain it.
func TestAReadingOfEndsIsTakenAsFarAsItIsSure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := Law{Shape: ShapeLog, AtEnd: true}
		l, err := New(Options{Limits: []Limit{{Name: "tpm", Unit: Tokens, Rate: PerMinute(1000), Burst: 1000, Law: law}}})
		if err != nil {
			t.Fatal(err)
		}
		credit := credits(t, l)
		first, _ := l.TryAdmit(Ask{Cost: Cost{Requests: 1, Input: 300}})
		second, _ := l.TryAdmit(Ask{Cost: Cost{Requests: 1, Output: 200}})
		credit(500, "two calls under way")
		time.Sleep(time.Second)
		first.Sent()
		first.Lower("tpm", 500, Cost{})
		credit(500, "500 missing are the two calls")
		first.Lower("tpm", 400, Cost{})
		credit(400, "600 missing are 100 more than the two calls hold")
		first.Settle(Cost{Input: 300})
		second.Settle(Cost{Output: 200})
		time.Sleep(time.Minute - 2*time.Second)
		credit(400, "before the first window is over")
		time.Sleep(2 * time.Second)
		credit(1000, "a window after the ends")
	})
}

// A limit that is copied has the use of the first, in all books.
func TestACopyOfAWindowHasItsUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, law := range []Law{{Shape: ShapeLog}, {Shape: ShapeLog, AtEnd: true}, {Shape: ShapeTwoWindows, FirstCall: true, AtEnd: true}} {
			lim := Limit{Name: "tpm", Unit: Tokens, Rate: PerMinute(1000), Burst: 1000, Law: law}
			l, err := New(Options{Limits: []Limit{lim}})
			if err != nil {
				t.Fatal(err)
			}
			done, _ := l.TryAdmit(Ask{Cost: Cost{Requests: 1, Input: 100, Output: 200}, Scopes: []string{"model"}})
			open, _ := l.TryAdmit(Ask{Cost: Cost{Requests: 1, Input: 50, Output: 50}, Scopes: []string{"model"}})
			time.Sleep(time.Second)
			done.Settle(Cost{Input: 100, Output: 100})
			if err := l.CopyScopeLimit("", "model", lim); err != nil {
				t.Fatal(err)
			}
			both := func() [2]int64 {
				return [2]int64{l.Snapshot().Limits[0].Credit, l.SnapshotOf("model").Limits[0].Credit}
			}
			if got := both(); got != [2]int64{700, 700} {
				t.Fatalf("%v: the credit is %v; want 700 in both", law, got)
			}
			open.Settle(Cost{Input: 50, Output: 100})
			if got := both(); got != [2]int64{650, 650} {
				t.Fatalf("%v: after the end the credit is %v; want 650 in both", law, got)
			}
		}
	})
}

// What calls held that ended while there was no window, or under another unit, is not taken
// off the books of ends that begin later.
func TestEndBooksBeginWithWhatIsOpenNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		window := Law{Shape: ShapeLog}
		lim := Limit{Name: "tpm", Unit: Tokens, Rate: PerMinute(1000), Burst: 1000, Guard: 1000, Law: window}
		l, err := New(Options{Limits: []Limit{lim}})
		if err != nil {
			t.Fatal(err)
		}
		enforce := func(change func()) {
			t.Helper()
			change()
			if err := l.EnforceScopeLimit("", lim); err != nil {
				t.Fatal(err)
			}
		}
		take := func(c Cost) Reservation {
			t.Helper()
			r, err := l.TryAdmit(Ask{Cost: c})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		ends := func(want int64, what string) {
			t.Helper()
			if got := l.root.limits[0].more.ends.whole.Credit(); got != want {
				t.Errorf("%s: the book of ends has %d; want %d", what, got, want)
			}
		}
		old := take(Cost{Requests: 1, Input: 400})
		enforce(func() { lim.Law = Law{} })
		time.Sleep(time.Minute)
		old.Keep()
		enforce(func() { lim.Law = window })
		take(Cost{Requests: 1, Input: 300}).Keep()
		enforce(func() { lim.Law.AtEnd = true })
		ends(700, "after a window that is no more")

		enforce(func() { lim.Law = window })
		old = take(Cost{Requests: 1, Input: 100})
		enforce(func() { lim.Unit = Requests })
		old.Keep()
		enforce(func() { lim.Law.AtEnd = true })
		ends(600, "after another unit")
	})
}

// What calls hold that left before the last edge is in no credit, and so it is not taken off
// what end books begin with.
func TestEndBooksBeginWithAllThatEndedSinceTheEdge(t *testing.T) {
	for _, shape := range []Shape{ShapeFixed, ShapeTwoWindows, ShapeLog} {
		synctest.Test(t, func(t *testing.T) {
			lim := Limit{Name: "tpm", Unit: Tokens, Rate: PerMinute(1000), Burst: 1000, Law: Law{Shape: shape, Edge: time.Duration(time.Now().UnixNano())}}
			l, err := New(Options{Limits: []Limit{lim}})
			if err != nil {
				t.Fatal(err)
			}
			take := func(n int64) Reservation {
				r, err := l.TryAdmit(Ask{Cost: Cost{Requests: 1, Input: n}})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			old := take(400)
			time.Sleep(121 * time.Second)
			take(300).Keep()
			young := take(200)
			time.Sleep(time.Second)
			lim.Law.AtEnd = true
			if err := l.EnforceScopeLimit("", lim); err != nil {
				t.Fatal(err)
			}
			for _, want := range []int64{700, 500, 100} {
				if got := l.root.limits[0].more.ends.whole.Credit(); got != want {
					t.Errorf("%v: the book of ends has %d; want %d", shape, got, want)
				}
				young.Keep()
				young, old = old, Reservation{}
			}
		})
	}
}

// Where input counts from the start, that of open calls is used already.
func TestTheBookOfHalvesBeginsWithTheInputOfOpenCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := Limit{Name: "tpm", Unit: Tokens, Rate: PerMinute(1000), Burst: 1000, Law: Law{Shape: ShapeLog}}
		l, err := New(Options{Limits: []Limit{lim}})
		if err != nil {
			t.Fatal(err)
		}
		first, _ := l.TryAdmit(Ask{Cost: Cost{Requests: 1, Input: 50, Output: 50}})
		open, _ := l.TryAdmit(Ask{Cost: Cost{Requests: 1, Input: 300, Output: 100}})
		first.Keep()
		lim.Law.AtEnd = true
		if err := l.EnforceScopeLimit("", lim); err != nil {
			t.Fatal(err)
		}
		for _, want := range [][2]int64{{900, 600}, {500, 500}} {
			e := l.root.limits[0].more.ends
			if whole, halves := e.whole.Credit(), e.halves.Credit(); whole != want[0] || halves != want[1] {
				t.Errorf("the books have %d and %d; want %d", whole, halves, want)
			}
			open.Keep()
		}
	})
}

// A window that is a guess keeps the books of ends, and does not ask them. When charges at
// the end are found they know when all was used, and what open calls hold counts once.
func TestEndBooksOfAGuessKnowWhatWasUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := Limit{Name: "tpm", Unit: Tokens, Rate: PerMinute(1000), Burst: 1000, Guard: 1000, Law: Law{Shape: ShapeSliding, FirstCall: true}}
		l, err := New(Options{Limits: []Limit{lim}})
		if err != nil {
			t.Fatal(err)
		}
		credit := credits(t, l)
		done, _ := l.TryAdmit(Ask{Cost: Cost{Requests: 1, Input: 300, Output: 200}})
		time.Sleep(time.Second)
		done.Settle(Cost{Input: 300})
		time.Sleep(20 * time.Second)
		open, _ := l.TryAdmit(Ask{Cost: Cost{Requests: 1, Input: 100, Output: 300}})
		lim.Guard, lim.Law = 0, Law{Shape: ShapeLog, AtEnd: true}
		if err := l.EnforceScopeLimit("", lim); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		credit(300, "300 used and 400 held")
		open.Settle(Cost{Input: 100})
		credit(600, "400 used, each once")
		time.Sleep(10*time.Second + 100*time.Millisecond)
		credit(900, "a window after the first end")
	})
}

// The grant of a call without a reservation and the end of its context meet. The end books
// are as if the call had never come.
func TestAGrantThatIsGivenBackIsInNoEndBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := Law{Shape: ShapeFixed, FirstCall: true, AtEnd: true}
		l := mustNew(t, Options{Limits: []Limit{{Name: "tpm", Unit: Tokens, Rate: PerMinute(1000), Burst: 1000, Law: law}}})
		if !l.Allow(Cost{Output: 1000}) {
			t.Fatal("a full window lets nothing go")
		}
		var w want
		w.tenant = &l.root
		w.price(Cost{Input: 60, Output: 40}, Cost{})
		l.lock()
		waits, _, err := l.enter(&w, time.Time{}, l.clock())
		l.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		<-waits.done
		if n := l.Snapshot().Limits[0].Credit; n != 900 {
			t.Fatalf("credit %d; want 900", n)
		}
		if _, err := waits.leave(context.Canceled, nil); !errors.Is(err, ErrCanceled) {
			t.Fatal(err)
		}
		if n := l.Snapshot().Limits[0].Credit; n != 1000 {
			t.Errorf("credit %d; want 1000", n)
		}
	})
}
