package limit

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"
)

// A windowOracle is a window by its definition: a list of what was charged and
// when, added up in rational numbers each time it is asked. It shares no
// arithmetic with Window.
type windowOracle struct {
	law    Law
	window int64
	n      int64

	// ShapeFixed and the weighted windows: units by number of the window, counted
	// from edge.
	edge  int64
	begun bool
	named bool // begun at an edge that the law names, and not charged yet
	count map[int64]int64

	// The log: units by slot, and the latest charge of the slot.
	units, latest map[int64]int64
}

func newWindowOracle(r Rate, l Law, now int64) *windowOracle {
	return &windowOracle{
		law: l, window: int64(r.Window), n: r.N,
		edge: int64(l.Edge), begun: !l.FirstCall || l.Edge != 0, named: l.FirstCall && l.Edge != 0, count: map[int64]int64{},
		units: map[int64]int64{}, latest: map[int64]int64{},
	}
}

func (o *windowOracle) hasPanes() bool { return o.law.Shape != ShapeLog }
func (o *windowOracle) hasLog() bool {
	return o.law.Shape == ShapeLog || o.law.Shape == ShapeSliding
}

func (o *windowOracle) span() int64 { return o.window + int64(o.law.Margin) }
func (o *windowOracle) slot(at int64) int64 {
	return at / ((o.span() + logSlots - 1) / logSlots)
}

// pane is the number of the window that at lies in.
func (o *windowOracle) pane(at int64) int64 {
	k := new(big.Int).Sub(big.NewInt(at), big.NewInt(o.edge))
	return k.Div(k, big.NewInt(o.window)).Int64() // Euclidean: down
}

func (o *windowOracle) rested(now int64) bool {
	k := o.pane(now)
	return o.law.FirstCall && !o.named && o.count[k] == 0 && (o.law.Shape == ShapeFixed || o.count[k-1] == 0)
}

func (o *windowOracle) charge(now, at, units int64) {
	if units <= 0 {
		return
	}
	if o.hasPanes() {
		o.enter(now, at, units)
	}
	if o.hasLog() {
		o.note(at, units)
	}
}

func (o *windowOracle) enter(now, at, units int64) {
	if !o.begun || o.rested(now) {
		o.edge, o.begun, o.count, at = now, true, map[int64]int64{}, now
	}
	o.named = false
	o.count[o.pane(at)] += units
}

func (o *windowOracle) note(at, units int64) {
	s := o.slot(at)
	o.units[s] += units
	o.latest[s] = max(o.latest[s], at)
}

func (o *windowOracle) refund(now, at, units int64) {
	if o.hasPanes() && o.begun {
		k := o.pane(at)
		o.count[k] -= min(units, o.count[k])
	}
	if o.hasLog() {
		s := o.slot(at)
		o.units[s] -= min(units, o.units[s])
	}
}

// weighed is what counts in the windows at instant at, in units.
func (o *windowOracle) weighed(at int64) *big.Rat {
	if !o.begun || o.rested(at) {
		return new(big.Rat)
	}
	k := o.pane(at)
	used := units(o.count[k])
	if o.law.Shape == ShapeFixed {
		return used
	}
	rest := big.NewRat(o.edge+(k+1)*o.window-at, o.window)
	return used.Add(used, rest.Mul(rest, units(o.count[k-1])))
}

func (o *windowOracle) logged(after int64) (sum int64) {
	for s, n := range o.units {
		if o.latest[s] > after {
			sum += n
		}
	}
	return sum
}

func (o *windowOracle) level(at int64) *big.Rat {
	level := units(o.n)
	if o.hasPanes() {
		level.Sub(level, o.weighed(at))
	}
	if o.hasLog() {
		if l := units(o.n - o.logged(at-o.span())); l.Cmp(level) < 0 {
			level = l
		}
	}
	return level
}

func (o *windowOracle) admits(at, cost int64) bool {
	if cost == 0 {
		return true
	}
	if o.law.Shape == ShapeFixed && o.law.Quiet > 0 && o.begun && !o.rested(at) &&
		o.pane(at+int64(o.law.Quiet)) != o.pane(at) {
		return false
	}
	return o.level(at).Cmp(units(cost)) >= 0
}

func roundUp(x *big.Rat) int64 {
	n := new(big.Int).Add(x.Num(), new(big.Int).Sub(x.Denom(), big.NewInt(1)))
	return n.Div(n, x.Denom()).Int64()
}

func (o *windowOracle) lower(now, to int64) {
	if x := new(big.Rat).Sub(o.level(now), units(to)); x.Sign() > 0 {
		o.charge(now, now, roundUp(x))
	}
}

// missing is what books that hold used at an instant lack, against a reading.
func (o *windowOracle) missing(used *big.Rat, remaining, charged, returned int64) *big.Rat {
	x := units(o.n - remaining + charged - returned)
	return x.Sub(x, used)
}

func (o *windowOracle) lowerSent(now, sent, remaining, charged, returned int64) {
	var least *big.Rat
	see := func(used *big.Rat) {
		if x := o.missing(used, remaining, charged, returned); least == nil || x.Cmp(least) < 0 {
			least = x
		}
	}
	if o.hasPanes() {
		if used := o.usedSince(now, sent); used != nil {
			see(used)
		}
	}
	if o.hasLog() && sent > now-o.span() {
		see(units(o.logged(sent - o.span())))
	}
	if least != nil && least.Sign() > 0 {
		o.charge(now, sent, roundUp(least))
	}
}

// usedSince is what the windows counted at sent and all charged since, or nil
// where that is forgotten.
func (o *windowOracle) usedSince(now, sent int64) *big.Rat {
	if !o.begun || o.rested(now) {
		if sent == now {
			return new(big.Rat)
		}
		return nil
	}
	here, then := o.pane(now), o.pane(sent)
	switch {
	case then == here:
		return o.weighed(sent)
	case then == here-1 && o.law.Shape != ShapeFixed:
		used := units(o.count[here] + o.count[then])
		rest := big.NewRat(o.edge+here*o.window-sent, o.window)
		return used.Add(used, rest.Mul(rest, units(o.count[then-1])))
	}
	return nil
}

func (o *windowOracle) setRate(now int64, r Rate) {
	if int64(r.Window) == o.window {
		o.charge(now, now, r.N-o.n)
		o.n = r.N
		return
	}
	level := o.level(now)
	credit := min(r.N, new(big.Int).Div(level.Num(), level.Denom()).Int64())
	*o = *newWindowOracle(r, o.law, now)
	o.charge(now, now, r.N-credit)
}

// A windowTrial drives a window and its oracle with one program.
type windowTrial struct {
	t     *testing.T
	o     *windowOracle
	w     *Window
	r     Rate
	at    int64
	taken [][2]int64 // instant, units: some of what was charged
}

var windowRates = []Rate{
	PerMinute(7), PerMinute(500), PerMinute(300_000), PerSecond(3), PerHour(10), PerDay(1000),
	{1, MinWindow}, {MaxUnits, MaxWindow}, {7_919, 60*time.Second + 1}, {600, 10 * time.Second},
}

func newWindowTrial(t *testing.T, s source) *windowTrial {
	r := pick(s, windowRates)
	l := Law{Shape: ShapeFixed + Shape(upTo(s, 4)), FirstCall: upTo(s, 2) == 0}
	switch upTo(s, 3) {
	case 0:
		l.Edge = time.Duration(upTo(s, 3*int64(r.Window)))
	case 1:
		l.Edge = -time.Duration(upTo(s, 3*int64(r.Window)))
	}
	if upTo(s, 2) == 0 {
		l.Margin, l.Quiet = MinWindow/10, MinWindow/10
	}
	w, err := NewWindow(r, l)
	if err != nil {
		t.Fatal(err)
	}
	return &windowTrial{t: t, o: newWindowOracle(r, l, 0), w: w, r: r}
}

func (x *windowTrial) fatal(format string, args ...any) {
	x.t.Helper()
	x.t.Fatalf("%v of %v, first call %v, at %d: %s", x.w.law.Shape, x.r, x.w.law.FirstCall, x.at, fmt.Sprintf(format, args...))
}

func (x *windowTrial) compare(what string) {
	x.t.Helper()
	got := new(big.Rat).SetFrac(x.w.levelAt(x.at).big(), new(big.Int).SetUint64(x.w.w))
	if want := x.o.level(x.at); got.Cmp(want) != 0 {
		x.fatal("after %s: level %v, want %v", what, got, want)
	}
}

func (x *windowTrial) take(at, cost int64) int64 {
	x.t.Helper()
	ok := x.o.admits(at, cost)
	wait, err := x.w.Take(time.Duration(at), cost)
	if err != nil {
		x.fatal("take %d: %v", cost, err)
	}
	x.at = at
	if ok != (wait == 0) {
		x.fatal("take %d: wait %d, want admitted %v", cost, wait, ok)
	}
	if ok {
		x.o.charge(at, at, cost)
		x.taken = append(x.taken, [2]int64{at, cost})
		return 0
	}
	if int64(wait) > math.MaxInt64-at || !x.o.admits(at+int64(wait), cost) || x.o.admits(at+int64(wait)-1, cost) {
		x.fatal("take %d: %d is not the first instant at which it goes", cost, wait)
	}
	return int64(wait)
}

func (x *windowTrial) step(s source) bool {
	window := int64(x.r.Window)
	gaps := []int64{0, 1, window / 1000, window / 100, window / 7, window / 2, window - 1, window, window + 1, 2*window + 3, 5 * window}
	at := later(x.at, pick(s, gaps))
	if upTo(s, 3) == 0 {
		at = later(x.at, upTo(s, window/3))
	}
	if at > math.MaxInt64/2 {
		return false
	}
	moved := func() { x.at = at; x.w.advance(at) }
	switch upTo(s, 12) {
	default:
		cost := min(x.r.N, spread(s, x.r.N+1))
		if wait := x.take(at, cost); wait > 0 && upTo(s, 2) == 0 {
			if x.take(x.at+wait, cost) != 0 {
				x.fatal("refused at the named instant")
			}
		}
		x.compare("take")
	case 6:
		moved()
		if len(x.taken) > 0 {
			i := upTo(s, int64(len(x.taken)))
			c := x.taken[i]
			back := upTo(s, c[1]+1)
			x.w.Return(time.Duration(c[0]), back)
			x.o.refund(at, c[0], back)
			x.taken[i][1] -= back
		}
		x.compare("return")
	case 7:
		n := spread(s, x.r.N+1)
		moved()
		x.w.Charge(time.Duration(at), n)
		x.o.charge(at, at, n)
		x.taken = append(x.taken, [2]int64{at, n})
		x.compare("charge")
	case 8:
		n := spread(s, x.r.N+1) - upTo(s, 2)*spread(s, x.r.N)
		moved()
		x.w.Lower(time.Duration(at), n)
		x.o.lower(at, n)
		x.compare("lower")
	case 9:
		moved()
		sent := max(0, at-pick(s, gaps))
		remaining, charged, returned := upTo(s, x.r.N+1), spread(s, x.r.N), spread(s, x.r.N)
		before := x.o.level(at)
		fell := x.w.LowerSent(time.Duration(at), time.Duration(sent), remaining, charged, returned)
		x.o.lowerSent(at, sent, remaining, charged, returned)
		x.compare("lower by a reading")
		after := x.o.level(at)
		if c := after.Cmp(before); c > 0 || c < 0 && !fell {
			x.fatal("reading of %d: level %v, before %v, fell %v", remaining, after, before, fell)
		}
	case 10:
		if upTo(s, 8) != 0 {
			return true
		}
		moved()
		r := pick(s, windowRates)
		if upTo(s, 2) == 0 {
			r = Rate{1 + spread(s, x.r.N*2), x.r.Window}
			r.N = min(r.N, MaxUnits)
		}
		before := x.o.level(at)
		if err := x.w.SetRate(time.Duration(at), r); err != nil {
			x.fatal("%v", err)
		}
		x.o.setRate(at, r)
		x.r = r
		x.compare("change of rate")
		if x.o.level(at).Cmp(before) > 0 {
			x.fatal("a change of rate raised credit from %v to %v", before, x.o.level(at))
		}
		x.taken = nil
	case 11:
		if upTo(s, 16) != 0 {
			return true
		}
		moved()
		keep, d := upTo(s, x.r.N+1), pick(s, gaps)
		x.w.Drain(time.Duration(at), keep, time.Duration(d))
		// What is used now and still counts then leaves keep; nothing else may.
		then := later(at, d)
		level := new(big.Rat).SetFrac(x.w.levelAt(then).big(), new(big.Int).SetUint64(x.w.w))
		if weight := x.w.panes.weight(then, x.w); (weight > 0 || !x.w.paned()) && (x.w.log == nil || d < x.w.log.span) && level.Cmp(units(keep)) > 0 {
			if weight == 0 || x.w.panes.cur < MaxUnits {
				x.fatal("drained to %d after %d, yet %v are there", keep, d, level)
			}
		}
		return false // the oracle has no drain: the program ends here
	}
	if len(x.taken) > 64 {
		x.taken = x.taken[32:]
	}
	return true
}

// Window against a list of charges in rational numbers: every decision, wait and
// level of a long random program is the same, in every shape.
func TestOracleWindow(t *testing.T) {
	s := newSeeded(*seedFlag)
	for done := 0; done < orQuick(*opsFlag, 50_000); {
		x := newWindowTrial(t, s)
		for range 300 {
			done++
			if !x.step(s) {
				break
			}
		}
	}
}

func FuzzWindow(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a fixed minute, a log and two weighted windows"))
	f.Add([]byte{0, 5, 0, 1, 9, 9, 9, 9, 0, 11, 0, 3, 255, 255, 0, 12, 0, 8, 1, 1, 0, 14, 0, 10, 7, 7, 0, 9})
	f.Fuzz(func(t *testing.T, program []byte) {
		s := &fuzzed{program}
		x := newWindowTrial(t, s)
		for !s.done() && x.step(s) {
		}
	})
}

// The wait behind others is never too late: those ahead, one after the other and
// each at its first instant, and then the cost itself, are not faster.
func TestAWaitBehindOthersIsNeverTooLate(t *testing.T) {
	s := newSeeded(*seedFlag)
	for range 3_000 {
		x := newWindowTrial(t, s)
		for range upTo(s, 20) {
			if upTo(s, 12) == 11 || !x.stepTake(s) {
				break
			}
		}
		var ahead int64
		var costs []int64
		for range 1 + upTo(s, 6) {
			c := 1 + upTo(s, x.r.N)
			costs, ahead = append(costs, c), ahead+c
		}
		cost := upTo(s, x.r.N+1)
		named := x.w.waitFrom(x.at, ahead, cost)
		at := x.at
		for _, c := range append(costs, cost) {
			if c == 0 {
				continue
			}
			wait := x.w.waitFrom(at, 0, c)
			at += wait
			if !x.w.take(at, c) {
				t.Fatalf("refused at the named instant")
			}
		}
		if at-x.at < named {
			x.fatal("wait %d named, but it takes %d", named, at-x.at)
		}
	}
}

func (x *windowTrial) stepTake(s source) bool {
	x.take(later(x.at, upTo(s, int64(x.r.Window))), upTo(s, x.r.N+1))
	return true
}

func TestAFixedMinuteIsSpentAtOnceAndIsThereAgainAtItsEdge(t *testing.T) {
	w, _ := NewWindow(PerMinute(10), Law{Shape: ShapeFixed, Edge: 7 * time.Second, Quiet: 100 * time.Millisecond})
	steps := []struct {
		at, wait time.Duration
		cost     int64
	}{
		{10 * time.Second, 0, 10},
		{11 * time.Second, 56 * time.Second, 1}, // the edge is at 67 s
		{67 * time.Second, 0, 4},
		{127*time.Second - 100*time.Millisecond, 100 * time.Millisecond, 1}, // there is room, but the edge is near
		{127 * time.Second, 0, 10},
	}
	for _, s := range steps {
		if wait, err := w.Take(s.at, s.cost); wait != s.wait || err != nil {
			t.Errorf("at %v take %d: wait %v, %v; want %v", s.at, s.cost, wait, err, s.wait)
		}
	}
}

func TestALogGivesBackInTheRhythmOfTheOldSends(t *testing.T) {
	w, _ := NewWindow(PerMinute(10), Law{Shape: ShapeLog, Margin: 100 * time.Millisecond})
	steps := []struct {
		at, wait time.Duration
		cost     int64
	}{
		{0, 0, 6},
		{20 * time.Second, 0, 4},
		{30 * time.Second, 30*time.Second + 100*time.Millisecond, 1},
		{60*time.Second + 100*time.Millisecond, 0, 6},
		{70 * time.Second, 10*time.Second + 100*time.Millisecond, 3},
		{80*time.Second + 100*time.Millisecond, 0, 4},
	}
	for _, s := range steps {
		if wait, err := w.Take(s.at, s.cost); wait != s.wait || err != nil {
			t.Errorf("at %v take %d: wait %v, %v; want %v", s.at, s.cost, wait, err, s.wait)
		}
	}
}

func TestTwoWindowsGiveTheLastOneBackEvenly(t *testing.T) {
	w, _ := NewWindow(PerMinute(60), Law{Shape: ShapeTwoWindows})
	for _, s := range []struct {
		at, wait time.Duration
		cost     int64
	}{
		{59 * time.Second, 0, 60},
		{60 * time.Second, time.Second, 1},
		{70 * time.Second, 0, 10},
		{90 * time.Second, 0, 20},
		{90 * time.Second, 10 * time.Second, 10},
	} {
		if wait, err := w.Take(s.at, s.cost); wait != s.wait || err != nil {
			t.Errorf("at %v take %d: wait %v, %v; want %v", s.at, s.cost, wait, err, s.wait)
		}
	}
}

func TestAReturnGivesBackToTheWindowThatWasCharged(t *testing.T) {
	w, _ := NewWindow(PerMinute(10), Law{Shape: ShapeFixed})
	w.Take(50*time.Second, 6)
	w.Take(70*time.Second, 3)
	w.Return(50*time.Second, 6) // of a minute that is over
	if c := w.Credit(); c != 7 {
		t.Errorf("credit %d, want 7: the minute of that charge is forgotten", c)
	}
	w.Return(70*time.Second, 2)
	if c := w.Credit(); c != 9 {
		t.Errorf("credit %d, want 9", c)
	}
}

func TestAWindowThatCannotBeIsRefused(t *testing.T) {
	for _, l := range []Law{{}, {Shape: ShapeBucket}, {Shape: ShapeFixed, Quiet: time.Minute}, {Shape: ShapeLog, Margin: -1}} {
		var bad *ConfigError
		if _, err := NewWindow(PerMinute(1), l); !errors.As(err, &bad) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if _, err := NewWindow(Rate{}, Law{Shape: ShapeLog}); err == nil {
		t.Error("a window without a rate")
	}
}
