package batch

import (
	"context"
	"sync"
	"time"
)

// trip is how many ends in a row of one kind, without a success, hold a lane.
const trip = 20

// lane is the requests of one model. There is one more lane for what concerns
// all of them: connections, the key, the account.
type lane struct {
	model string

	wire wire // the row, and what is out; guarded by the job's gate

	kind    kind // of the row
	detail  string
	held    bool
	since   time.Time // held, or of the first end of the row
	next    time.Time // when a probe may go
	probing bool

	stopped   bool // nothing more of it is sent in this run
	underWay  int
	successes int64     // 2xx
	born      time.Time // when its first request was read
	queue     []*item   // to be sent again, or parked while the lane is held

	// refused are ends that speak of their requests, from before the first success:
	// it is not known yet whether they are answers, or the address is wrong.
	refused []end
}

// passed notes an end that shows the lane in order. While the lane is held, only a
// probe shows that: another answer may be older than the row.
func (l *lane) passed(probe bool) {
	if !l.held || probe {
		l.held, l.probing = false, false
	}
}

// failed notes an end that does not, the row then being that long. It reports
// whether that is long enough to hold.
func (l *lane) failed(now time.Time, k kind, detail string, row int) bool {
	if !l.held && (l.kind != k || row <= 1 || l.since.IsZero()) {
		l.since = now
	}
	l.kind, l.detail = k, detail
	return row >= trip || l.held
}

// hold stops the lane until a probe shows it in order.
func (l *lane) hold(now time.Time, every time.Duration) {
	if l.held {
		return // since an end that was under way at the time
	}
	if l.kind == tooFast {
		every = 0 // the limiter holds the probe for as long as the server said
	}
	l.held, l.next = true, now.Add(every)
}

// probed notes the end of a probe. What it showed comes after.
func (l *lane) probed(now time.Time, every time.Duration) {
	if l.probing {
		l.probing, l.next = false, now.Add(every)
	}
}

// room is how many more may be begun, so that a row never grows beyond trip by
// what was already under way.
func (l *lane) room(now time.Time, row int) int {
	switch {
	case l.held && (l.probing || now.Before(l.next)):
		return 0
	case l.held:
		return 1
	case row > 0 || l.successes == 0:
		return max(0, trip-row-l.underWay)
	}
	return 1 << 30
}

// wire is what of a lane is out, and the row of its ends. The limiter lets the next
// request go as soon as one has failed, and that is before the job hears of it. So
// senders look here first: from the first failure on, no more go out than the row
// is long, or were out already.
type wire struct {
	row    int // ends in a row of kind, without a success
	kind   kind
	flying int
	good   bool // there was a 2xx

	failures int // in all
	first    int // failures when the row began
	turns    int // answers since then to what went out before: each lets one more go
}

func (w *wire) shut() bool {
	return w.row >= trip || w.row > 0 && w.row+w.flying >= trip && w.turns == 0
}

// enter returns a mark of the time at which a request goes out.
func (w *wire) enter() (mark int) {
	if w.row > 0 && w.row+w.flying >= trip && w.turns > 0 {
		w.turns--
	}
	w.flying++
	return w.failures
}

func (w *wire) failed(k kind) {
	if w.kind != k || w.row == 0 {
		w.row, w.turns, w.first = 0, 0, w.failures
	}
	w.kind = k
	w.row++
	w.failures++
}

// passed notes the answer to a request that went out at mark. If that was before the
// row began, the answer says nothing of the server now.
func (w *wire) passed(mark int, probe bool) {
	switch {
	case w.row == 0:
	case probe || mark > w.first && w.row < trip:
		w.row, w.turns = 0, 0
	default:
		w.turns++
	}
}

// gate is the wires of a job.
type gate struct {
	mu      sync.Mutex    // guards all wires, and changed
	changed chan struct{} // closed when one of them changes
}

func newGate() *gate { return &gate{changed: make(chan struct{})} }

// row is how long the row of a lane is.
func (g *gate) row(l *lane) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return l.wire.row
}

// enter waits until s may go out. It reports false if s must go back into the
// queue: a row is complete, or ctx has ended.
func (g *gate) enter(ctx context.Context, s *sending) bool {
	for {
		g.mu.Lock()
		wait, back := false, false
		for _, w := range s.wires {
			wait = wait || !s.probe && w.shut()
			back = back || !s.probe && w.row >= trip
		}
		if !wait {
			s.entered = true
			for i, w := range s.wires {
				s.marks[i] = w.enter()
			}
		}
		changed := g.changed
		g.mu.Unlock()
		if !wait || back {
			return !wait
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// left notes the end of a request that went out.
func (g *gate) left(o outcome, s *sending) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !s.entered {
		return
	}
	model, all := s.wires[0], s.wires[1]
	model.flying--
	all.flying--
	switch {
	case o.kind == withdrawn || o.local:
	case o.kind.everywhere():
		all.failed(o.kind)
	case o.kind == garbled: // perhaps cut off by the end of the server
		model.failed(o.kind)
	case o.kind == good || o.kind == final && model.good:
		model.good = true
		model.passed(s.marks[0], s.probe)
		all.passed(s.marks[1], s.probe)
	default:
		model.failed(o.kind)
		all.passed(s.marks[1], s.probe)
	}
	close(g.changed)
	g.changed = make(chan struct{})
}
