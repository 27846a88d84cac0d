package budget

import (
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A mute is a guess of a minute that refusals without headers taught.
type mute struct {
	*dimension
	t    *testing.T
	from time.Time
}

func newMute(t *testing.T) mute {
	d := &dimension{limit: limit.Limit{Unit: limit.Tokens, Rate: limit.Rate{N: 1, Window: time.Minute}}}
	d.waits.sends = new(recent)
	return mute{d, t, time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)}
}

func (m mute) at(second int) time.Time { return m.from.Add(time.Duration(second) * time.Second) }

// lets notes that n units a second were let in from one second to before another.
func (m mute) lets(from, to int, n int64) {
	for s := from; s < to; s++ {
		m.waits.sends.addAt(m.at(s), m.at(s), time.Minute, n)
	}
}

// refused is a refusal of 100 units, and expects what the guess holds then, 0 for a bucket.
func (m mute) refused(second int, named time.Duration, holds int64, shape limit.Shape, guarded bool) {
	m.t.Helper()
	m.heedWait(m.at(second), 100, named)
	var l limit.Limit
	if m.waits.n > 0 {
		l.Rate = limit.Rate{N: m.waits.n, Window: time.Minute}
		m.waits.obey(&l, 10)
	}
	if m.waits.n != holds || l.Law.Shape != shape || l.Guard > 0 != guarded {
		m.t.Errorf("after the refusal of second %d it holds %d by %v, guard %d; want %d by %v, guarded %v",
			second, m.waits.n, l.Law.Shape, l.Guard, holds, shape, guarded)
	}
}

func TestNamedWaitsOfAFixedWindow(t *testing.T) {
	m := newMute(t)
	m.lets(0, 10, 20) // before the edge of second 10
	m.lets(12, 30, 300)
	m.refused(30, 40*time.Second, 5420, limit.ShapeFixed, true) // it opens at 70, rounded up
	m.lets(70, 123, 100)
	m.refused(123, 7*time.Second, 5350, limit.ShapeFixed, false) // from 5,300 to 5,400
	if got := m.waits.edge; !got.Equal(m.at(70)) {
		t.Errorf("the edge is %v; want the first one named", got.Sub(m.from))
	}
	m.lets(130, 148, 300)
	m.refused(191, time.Second, 5150, limit.ShapeLog, false) // nothing was free at the edge
}

// The first estimate may have counted what was let in before the edge.
func TestNamedWaitsThatShowLess(t *testing.T) {
	m := newMute(t)
	m.lets(0, 20, 300)
	m.refused(20, 40*time.Second, 6000, limit.ShapeFixed, true)
	m.lets(60, 100, 100)
	m.refused(100, 20*time.Second, 4050, limit.ShapeFixed, true) // they differ
	m.lets(120, 160, 100)
	m.refused(160, 20*time.Second, 4050, limit.ShapeFixed, false)
}

// Where others use the window, one refusal that agrees by chance holds nobody back. The
// window grows by a fixed part of the most it was, faster each minute.
func TestNamedWaitsOfAWindowThatOthersUse(t *testing.T) {
	m := newMute(t)
	m.lets(0, 20, 300)
	m.refused(20, 40*time.Second, 6000, limit.ShapeFixed, true)
	m.lets(60, 100, 100)
	m.refused(100, 20*time.Second, 4050, limit.ShapeFixed, true)
	m.lets(120, 150, 100)
	m.refused(150, 30*time.Second, 3050, limit.ShapeFixed, true)
	m.lets(180, 210, 100)
	m.refused(210, 30*time.Second, 3050, limit.ShapeFixed, true) // it agrees
	for minutes, want := range []int64{3050, 3950, 5750, 9350} {
		if got := m.waits.most(m.at(210 + 60*minutes)); got != want {
			t.Errorf("after %d minutes it holds %d, want %d", minutes, got, want)
		}
	}
	var l limit.Limit
	l.Rate = limit.Rate{N: 3050, Window: time.Minute}
	if m.waits.obey(&l, 10); l.Guard != 3050/2 {
		t.Errorf("the guard is %d, want half of the window", l.Guard)
	}
}

func TestNamedWaitsOfALog(t *testing.T) {
	m := newMute(t)
	m.lets(0, 20, 300)
	m.refused(20, 40*time.Second, 6000, limit.ShapeFixed, true)
	m.lets(60, 95, 170)
	m.refused(95, 2*time.Second, 6000, limit.ShapeLog, false) // no edge
}

func TestNamedWaitsOfABucket(t *testing.T) {
	m := newMute(t)
	m.lets(0, 30, 100)
	m.refused(30, 2*time.Second, 0, limit.ShapeUnknown, false)  // the cost is refilled in that
	m.refused(30, 59*time.Second, 0, limit.ShapeUnknown, false) // a window that ends then let in next to nothing
	m.refused(30, 0, 0, limit.ShapeUnknown, false)
}

// Two refusals with much room end the window for ten minutes.
func TestNamedWaitsThatContradict(t *testing.T) {
	m := newMute(t)
	m.lets(0, 20, 300)
	m.refused(20, 40*time.Second, 6000, limit.ShapeFixed, true)
	m.lets(60, 70, 100)
	m.refused(75, 30*time.Second, 6000, limit.ShapeLog, false)
	if m.waits.full() {
		t.Error("a window with room is not drained")
	}
	m.refused(100, 30*time.Second, 0, limit.ShapeUnknown, false)
	m.lets(110, 130, 300)
	m.refused(130, 40*time.Second, 0, limit.ShapeUnknown, false)
	m.lets(800, 820, 300)
	m.refused(820, 40*time.Second, 6000, limit.ShapeFixed, true)
}

// A window that nothing refuses any more grows, and is a guess as any other in the end.
func TestAWindowWithoutRefusalsGrows(t *testing.T) {
	m := newMute(t)
	m.guess(1000, m.at(0))
	m.lets(0, 20, 300)
	m.refused(20, 40*time.Second, 6000, limit.ShapeFixed, true)
	last := int64(0)
	for s := 20; s < 340; s += 20 {
		m.grow(m.at(s))
		if m.waits.n == 0 || m.said < last || s < 80 && m.said > 6000*102/100 {
			t.Fatalf("after %d s it holds %d, after %d before", s-20, m.said, last)
		}
		last = m.said
	}
	if m.grow(m.at(360)); m.waits.n != 0 || m.said < 4*6000 || m.cut.left(m.at(360)) != whole-whole/guessRoom {
		t.Errorf("after 340 s it holds %d, by a window of %d", m.said, m.waits.n)
	}
}

// What comes back counts from its attempt: a window gives it back to nobody later.
func TestRecentCountsReturnsFromTheAttempt(t *testing.T) {
	m := newMute(t)
	m.lets(0, 40, 10)
	m.waits.sends.addAt(m.at(40), m.at(5), time.Minute, -10)
	for _, c := range []struct {
		now, from int
		want      int64
	}{{40, 0, 390}, {40, 5, 340}, {40, 6, 340}, {40, 39, 10}, {70, 0, 300}, {200, 0, 0}} {
		if got := m.waits.sends.since(m.at(c.now), m.at(c.from), time.Minute); got != c.want {
			t.Errorf("in second %d, since second %d: %d; want %d", c.now, c.from, got, c.want)
		}
	}
	m.waits.sends.addAt(m.at(200), m.at(30), time.Minute, -10) // long forgotten
	if got := m.waits.sends.in(m.at(200), time.Minute); got != 0 {
		t.Errorf("%d are used", got)
	}
}

// A crowd is refused one after the other. Those not yet refused are no part of the window.
func TestNamedWaitsOfACrowd(t *testing.T) {
	m := newMute(t)
	m.lets(0, 20, 300)
	m.lets(20, 21, 3000) // 30 of 100, of which the first is refused and taken back
	m.refused(20, 40*time.Second, 9000, limit.ShapeFixed, true)
	for range 30 {
		m.waits.sends.addAt(m.at(20), m.at(20), time.Minute, -100)
		m.heedCrowd(m.at(20), 40*time.Second)
	}
	if m.waits.n != 6000 || m.said != 6000 {
		t.Errorf("it holds %d, and %d are in force; want 6000", m.waits.n, m.said)
	}
	if m.heedCrowd(m.at(20), 59*time.Second); m.waits.n != 6000 {
		t.Errorf("a wait that leaves next to nothing made it %d", m.waits.n)
	}
}

// A call of any cost that is refused at once is no sign of a window: a bucket would name
// a long wait for it too.
func TestAHugeCostShowsNoWindow(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, cost := range []int64{1 << 30, limit.MaxUnits} {
		d := &dimension{limit: limit.Limit{Rate: limit.PerMinute(1)}}
		d.waits.sends = new(recent)
		d.waits.sends.addAt(now, now, time.Minute, 1)
		if d.heedWait(now.Add(time.Second), cost, 50*time.Second) {
			t.Errorf("cost %d: a window of %d", cost, d.waits.n)
		}
	}
}
