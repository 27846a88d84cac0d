package law

import (
	"cmp"
	"container/heap"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// The policy that the parts are made for, on one provider with two limits, in
// instants alone: a line; a ledger that holds all the limit holds, behind a guard;
// readings that lower it with a margin; a learner; a window once one is believed.
// It is the specification for who joins the parts.

var seedsFlag = flag.Int("law.seeds", 10, "seeds of each simulation of the policy")

var tell = flag.Bool("law.tell", false, "tell what each simulated run believes and what is refused")

// server enforces tokens and requests of a minute by one law.
type server struct {
	law    string
	limits [2]*ruler
}

type ruler struct {
	law   string
	n     float64
	burst float64 // of a bucket
	edge  time.Duration
	level float64
	at    time.Duration
	log   []use
}

type use struct {
	at    time.Duration
	units float64
}

const minute = time.Minute

func (r *ruler) used(t time.Duration) float64 {
	begin := r.edge + (t-r.edge)/minute*minute
	if t < r.edge {
		begin = r.edge - minute
	}
	var sum float64
	switch r.law {
	case "bucket":
		return max(0, r.level-r.n*float64(t-r.at)/float64(minute))
	case "log":
		for _, u := range slices.Backward(r.log) {
			if u.at <= t-minute {
				break
			}
			sum += u.units
		}
	case "fixed", "two":
		for _, u := range slices.Backward(r.log) {
			switch {
			case u.at >= begin:
				sum += u.units
			case r.law == "two" && u.at >= begin-minute:
				sum += u.units * (1 - float64(t-begin)/float64(minute))
			default:
				return sum
			}
		}
	}
	return sum
}

func (r *ruler) holds() float64 {
	if r.law == "bucket" {
		return r.burst
	}
	return r.n
}

// earliest is when cost fits, from t on.
func (r *ruler) earliest(t time.Duration, cost float64) time.Duration {
	if r.used(t)+cost <= r.holds() {
		return t
	}
	lo, hi := t, t+2*minute
	for hi-lo > time.Microsecond {
		if mid := lo + (hi-lo)/2; r.used(mid)+cost <= r.holds() {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

func (r *ruler) take(t time.Duration, cost float64) {
	if r.law == "bucket" {
		r.level, r.at = r.used(t)+cost, t
		return
	}
	if r.law == "two" && r.used(t) == 0 {
		r.edge = t // from the first call after a rest
	}
	r.log = append(r.log, use{t, cost})
}

// job is one call.
type job struct {
	cost    [2]int64
	arrives time.Duration
	answer  time.Duration // how long it takes
	best    time.Duration // when the one who knows all sends it
	went    time.Duration // when it was admitted in the end
	sent    time.Duration
	marks   [2]Mark
}

// book is our side of one limit.
type book struct {
	n       int64
	rate    limit.Rate
	bucket  *limit.Bucket
	guard   *limit.Guard
	window  *limit.Window
	learner *Learner
	uses    []use // own charges
	burst   int64
	shown   int64
	known   bool // the law is from the profile
	ask     time.Duration
}

type client struct {
	t       *testing.T
	server  *server
	books   [2]*book
	line    []*job
	now     time.Duration
	events  events
	n       int
	wake    time.Duration
	base    time.Time
	paused  time.Duration
	refused int
	open    int // how many may be under way while no limit is known
	doubled time.Duration
	flying  int
	heard   bool // an answer has named the limits
	r       *rand.Rand
	asked   time.Duration // the edge that was looked at last
	few     int           // calls that looked at it
	edges   int           // in all
}

// due is something that happens at an instant; those of one instant in order.
type due struct {
	at time.Duration
	n  int
	do func()
}
type events []due

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(due)) }
func (e *events) Pop() any     { x := (*e)[len(*e)-1]; *e = (*e)[:len(*e)-1]; return x }

func (c *client) at(t time.Duration, do func()) {
	c.n++
	heap.Push(&c.events, due{max(t, c.now), c.n, do})
}

func (c *client) time() time.Time { return c.base.Add(c.now) }

func (c *client) wakeAt(t time.Duration) {
	if c.wake > c.now && c.wake <= t {
		return
	}
	c.wake = t
	c.at(t, c.pump)
}

// take spends cost if there is room, and else says how long to wait.
func (b *book) take(now time.Duration, cost int64) time.Duration {
	believed := b.learner.Belief().Law.Shape
	guard := *b.guard
	guarded, _ := guard.Take(now, cost)
	if believed.Windowed() || believed == limit.ShapeBucket && b.known {
		guarded = 0 // the law is known: its books say what may go at once
	}
	if b.window != nil {
		wait, _ := b.window.Take(now, cost)
		if bucket := *b.bucket; wait > 0 && (believed == limit.ShapeUnknown || believed == limit.ShapeSliding) && b.guard.Covers(cost) {
			// The reading is newer than these books are sure.
			if w, _ := bucket.Take(now, cost); w == 0 {
				b.window.Charge(now, cost)
				*b.guard, *b.bucket = guard, bucket
				return 0
			}
		}
		if wait == 0 && guarded > 0 {
			b.window.Return(now, cost)
		}
		if wait = max(wait, guarded); wait == 0 {
			*b.guard = guard
			b.bucket.Charge(now, cost)
		}
		return wait
	}
	bucket := *b.bucket
	wait, err := bucket.Take(now, min(cost, b.n))
	if err != nil {
		panic(err)
	}
	if wait == 0 && guarded == 0 {
		*b.bucket, *b.guard = bucket, guard
	}
	return max(wait, guarded)
}

func (b *book) force(now time.Duration, cost int64) {
	b.bucket.Charge(now, cost)
	b.guard.Charge(now, cost)
	if b.window != nil {
		b.window.Charge(now, cost)
	}
}

// asks reports whether a call is to go, though the books say wait, to see whether
// a window ended at the edge that answers named: four at each edge, at three edges.
// Package budget does not ask: these calls leave beyond the credit. Its calls that
// leave within the credit show an edge too.
func (c *client) asks() bool {
	for _, b := range c.books {
		if b.ask == 0 || c.now < b.ask+150*time.Millisecond || c.edges >= 12 {
			continue
		}
		if c.asked != b.ask {
			c.asked, c.few = b.ask, 0
		}
		if c.few < 4 {
			c.few++
			c.edges++
			return true
		}
	}
	return false
}

// doubtful is the next edge that answers have named, while it is not known whether the
// window ends there.
func (l *Learner) doubtful(now time.Time) (edge time.Time, ok bool) {
	w := l.windows[fixedFromReset]
	if w == nil || l.belief.Law.Shape == limit.ShapeFixed || l.belief.Law.Shape == limit.ShapeBucket || now.Before(l.belief.Until) {
		return edge, false
	}
	edge = l.base.Add(w.Law().Edge)
	if past := now.Sub(edge); past >= 0 {
		edge = edge.Add((past/l.o.Window + 1) * l.o.Window)
	}
	return edge, true
}

func (b *book) giveBack(taken time.Duration, cost int64) {
	if b.window != nil {
		b.window.Return(taken, cost)
	}
	b.bucket.Return(cost)
	b.guard.Return(cost)
}

// margin is held back of what a reading shows: a second of refill, where the
// limit holds more than the guard's burst.
func (b *book) margin() int64 { return min(max(0, b.shown-b.burst), b.rate.In(time.Second)) }

func (b *book) answered(c *client, j *job, i int, remaining int64, reset Span) {
	b.shown = max(b.shown, min(b.n, remaining+j.cost[i]))
	belief, changed := b.learner.Saw(Evidence{
		Mark: j.marks[i], Answered: c.time(), Limit: Count{b.n, true}, Remaining: Count{remaining, true},
		Reset: reset, Precise: time.Millisecond,
	})
	if changed {
		b.follow(c, belief)
	}
	if next, ok := b.learner.doubtful(c.time()); !ok {
		b.ask = 0
	} else if ask := next.Sub(c.base); b.ask == 0 || c.now > b.ask+30*time.Second {
		b.ask = ask
		c.at(ask+150*time.Millisecond, c.pump)
	}
	// What left within 250 ms after it may be in the reading already.
	var spent int64
	for _, u := range slices.Backward(b.uses) {
		if u.at <= j.sent+250*time.Millisecond {
			break
		}
		spent += int64(u.units)
	}
	left := remaining - b.margin()
	if b.window != nil {
		b.window.LowerSent(c.now, j.sent, remaining, spent, 0)
	}
	b.bucket.Lower(c.now, left-spent+b.rate.In(c.now-j.sent))
	// For what may go at once it is the other way round: all that may have arrived
	// later is taken off.
	var later int64
	for _, u := range slices.Backward(b.uses) {
		if u.at < j.sent-250*time.Millisecond {
			break
		}
		later += int64(u.units)
	}
	b.guard.Shown(j.sent, left-spent, left-later+j.cost[i])
	b.guard.Passed(c.now, j.sent)
	if belief.Law.Shape == limit.ShapeBucket {
		b.bucket.SetRate(c.now, b.rate, belief.Capacity)
	}
}

// follow changes the meter to what is believed; credit is carried over.
func (b *book) follow(c *client, belief Belief) {
	if *tell {
		c.t.Log(c.now, belief)
	}
	b.window = nil
	if belief.Law.Shape == limit.ShapeBucket {
		return // the bucket was charged all along
	}
	if belief.Law.Shape == limit.ShapeUnknown {
		belief.Law = limit.Law{Shape: limit.ShapeSliding, FirstCall: true}
	}
	law, rate := belief.At(c.base), b.rate
	law.Margin = 100 * time.Millisecond
	if law.Shape == limit.ShapeFixed {
		// A call that leaves at the edge must not be there before it.
		law.Edge += 100 * time.Millisecond
		law.Quiet = 200 * time.Millisecond
	}
	if law.Shape != limit.ShapeLog {
		rate.N -= rate.N / 200
	}
	w, err := limit.NewWindow(rate, law)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, u := range b.uses { // the books of the window replace the bucket
		if u.at > c.now-3*minute {
			w.Charge(u.at, int64(u.units))
		}
	}
	b.window = w
}

// pump sends the calls that may go, in order.
func (c *client) pump() {
	for len(c.line) > 0 {
		j := c.line[0]
		if c.now < c.paused {
			c.wakeAt(c.paused)
			return
		}
		if !c.heard {
			// No limit is known. The first answer comes first: 1, 2, 4, ... are under
			// way, more with each answer or two seconds.
			if c.flying >= c.open {
				if c.doubled == 0 {
					c.doubled = c.now + 2*time.Second
				}
				if c.now >= c.doubled {
					c.open, c.doubled = c.open*2, 0
					continue
				}
				c.wakeAt(c.doubled)
				return
			}
			for i, b := range c.books {
				b.force(c.now, j.cost[i])
			}
			c.line = c.line[1:]
			c.send(j)
			continue
		}
		if c.asks() {
			for i, b := range c.books {
				b.force(c.now, j.cost[i])
			}
			c.line = c.line[1:]
			c.send(j)
			continue
		}
		if wait := c.books[0].take(c.now, j.cost[0]); wait > 0 {
			c.wakeAt(c.now + wait)
			return
		}
		if wait := c.books[1].take(c.now, j.cost[1]); wait > 0 {
			c.books[0].giveBack(c.now, j.cost[0])
			c.wakeAt(c.now + wait)
			return
		}
		c.line = c.line[1:]
		c.send(j)
	}
}

func (c *client) lag() time.Duration { return 20*time.Millisecond + time.Duration(c.r.Int64N(60e6)) }

func (c *client) send(j *job) {
	j.sent, j.went = c.now, c.now
	c.flying++
	for i, b := range c.books {
		b.uses = append(b.uses, use{c.now, float64(j.cost[i])})
		j.marks[i] = b.learner.Charged(c.time(), j.cost[i])
	}
	c.at(c.now+c.lag(), func() {
		free := c.now
		for i, l := range c.server.limits {
			free = max(free, l.earliest(c.now, float64(j.cost[i])))
		}
		if free > c.now {
			wait := (free - c.now + time.Second - 1).Truncate(time.Second)
			var which [2]bool
			for i, l := range c.server.limits {
				which[i] = l.earliest(c.now, float64(j.cost[i])) > c.now
			}
			c.at(c.now+c.lag(), func() { c.refuse(j, wait, which) })
			return
		}
		var remaining [2]int64
		var resets [2]Span
		for i, l := range c.server.limits {
			l.take(c.now, float64(j.cost[i]))
			remaining[i] = int64(l.holds() - l.used(c.now))
			if l.law == "bucket" {
				resets[i] = Span{time.Duration(l.used(c.now) / l.n * float64(minute)), true}
			}
		}
		c.at(c.now+j.answer, func() {
			c.flying--
			c.heard = true
			for i, b := range c.books {
				if l := c.server.limits[i]; l.law == "fixed" {
					resets[i] = Span{minute - (c.now-l.edge)%minute, true}
				}
				b.answered(c, j, i, remaining[i], resets[i])
			}
			c.pump()
		})
	})
}

func (c *client) refuse(j *job, wait time.Duration, which [2]bool) {
	if *tell {
		c.t.Log(c.now, "refused, sent", j.sent, "wait", wait, c.books[0].learner.Belief().Law.Shape, c.books[1].learner.Belief().Law.Shape)
	}
	c.refused++
	c.flying--
	for i, b := range c.books {
		b.uses = slices.DeleteFunc(b.uses, func(u use) bool { return u.at == j.sent && u.units == float64(j.cost[i]) })
		b.giveBack(j.sent, j.cost[i])
		b.learner.Charged(c.base.Add(j.sent), -j.cost[i])
		belief, changed := b.learner.Saw(Evidence{Mark: j.marks[i], Answered: c.time(), Refused: true, Room: which[i]})
		if changed {
			b.follow(c, belief)
		}
		if !which[i] {
			continue
		}
		b.guard.Refused(c.now)
		b.known = false
		if b.window != nil {
			b.window.Drain(c.now, j.cost[i], wait)
		}
		b.bucket.Lower(c.now, j.cost[i]-b.rate.In(wait))
	}
	c.paused = max(c.paused, c.now+wait)
	c.line = slices.Insert(c.line, 0, j)
	c.pump()
}

// outcome of a run.
type outcome struct {
	optimum  float64       // the time of one who knows all, in per cent of ours
	refused  float64       // per 1,000
	p50, p99 time.Duration // wait beyond the optimum
	shape    [2]limit.Shape
}

func (o outcome) String() string {
	return fmt.Sprintf("%5.1f %% of the optimum, %4.1f refusals per 1,000, later than it p50 %v p99 %v; believed %v and %v",
		o.optimum, o.refused, o.p50.Round(10*time.Millisecond), o.p99.Round(10*time.Millisecond), o.shape[0], o.shape[1])
}

func newServer(law string, burst, edge time.Duration) *server {
	s := &server{law: law}
	for i, n := range []float64{300_000, 600} {
		s.limits[i] = &ruler{law: law, n: n, burst: n * float64(burst) / float64(minute), edge: edge - minute}
	}
	return s
}

func simulate(t *testing.T, law string, burst time.Duration, seed uint64, jobs []*job, known limit.Law, told bool) outcome {
	r := rand.New(rand.NewPCG(seed, 3))
	edge := time.Duration(r.Int64N(int64(minute)))
	best := newServer(law, burst, edge)
	var free time.Duration
	for _, j := range jobs {
		free = max(free, j.arrives)
		for {
			at := free
			for i, l := range best.limits {
				at = max(at, l.earliest(at, float64(j.cost[i])))
			}
			if at == free {
				break
			}
			free = at
		}
		for i, l := range best.limits {
			l.take(free, float64(j.cost[i]))
		}
		j.best = free
	}
	c := &client{t: t, server: newServer(law, burst, edge), base: time.Unix(1_700_000_000, 0), open: 1, r: r, heard: told}
	for i, n := range []int64{300_000, 600} {
		rate := limit.PerMinute(n)
		b := &book{n: n, rate: rate, burst: rate.In(10 * time.Second), learner: New(Options{Known: known, Why: "recorded"})}
		if i == 1 {
			b.burst = rate.In(time.Second)
		}
		b.bucket, _ = limit.NewBucket(rate, n)
		b.guard, _ = limit.NewGuard(rate, b.burst)
		if known.Shape == limit.ShapeBucket {
			b.known = true
		} else {
			b.follow(c, Belief{Law: known, Base: c.base})
		}
		c.books[i] = b
	}
	for _, j := range jobs {
		c.at(j.arrives, func() { c.line = append(c.line, j); c.pump() })
	}
	for len(c.events) > 0 {
		e := heap.Pop(&c.events).(due)
		c.now = e.at
		e.do()
	}
	var o outcome
	var late []time.Duration
	var end, ideal time.Duration
	for _, j := range jobs {
		if j.went == 0 && j.sent == 0 && j.arrives > 0 {
			t.Fatal("a call never went")
		}
		late = append(late, max(0, j.went-j.best))
		end, ideal = max(end, j.went), max(ideal, j.best)
	}
	slices.Sort(late)
	o.p50, o.p99 = late[len(late)/2], late[len(late)*99/100]
	if o.optimum = 100; end > 0 {
		o.optimum = 100 * float64(ideal) / float64(end)
	}
	o.refused = 1000 * float64(c.refused) / float64(len(jobs))
	for i, b := range c.books {
		o.shape[i] = b.learner.Belief().Law.Shape
	}
	return o
}

// drain is a backlog that all comes at once; bursts are sixty calls each, whose
// tokens are 0.6 of the limit in the mean.
func work(seed uint64, kind string, n int) (jobs []*job) {
	r := rand.New(rand.NewPCG(seed, 5))
	at := time.Duration(0)
	for i := range n {
		j := &job{cost: [2]int64{50 + r.Int64N(7_950), 1}, answer: time.Second + time.Duration(r.Int64N(int64(29*time.Second)))}
		switch kind {
		case "bursts":
			if i%60 == 0 && i > 0 {
				at += time.Duration(r.Int64N(int64(2*60*4_025*time.Minute/180_000/1000))) * 1000
			}
			j.arrives = at
		case "fresh":
			j.cost[0] = 50 + r.Int64N(1_950)
		}
		jobs = append(jobs, j)
	}
	slices.SortStableFunc(jobs, func(a, b *job) int { return cmp.Compare(a.arrives, b.arrives) })
	return jobs
}

// What the policy reaches over some seeds: the mean of throughput and refusals, the
// median of waits. Bounds are goals, not records.
func TestPolicy(t *testing.T) {
	unknown := limit.Law{}
	bucket := limit.Law{Shape: limit.ShapeBucket}
	log := limit.Law{Shape: limit.ShapeLog}
	two := limit.Law{Shape: limit.ShapeTwoWindows, FirstCall: true}
	for _, c := range []struct {
		law, work        string
		burst            time.Duration
		n                int
		known            limit.Law
		told             bool // the limits, from the start
		optimum, refused float64
		p50, p99         time.Duration
	}{
		{"bucket", "drain", time.Minute, 2000, unknown, true, 99, 1, 2 * time.Second, 0},
		{"bucket", "drain", time.Minute, 2000, bucket, true, 99, 1, 2 * time.Second, 0},
		{"bucket", "drain", 10 * time.Second, 2000, unknown, true, 97, 10, 20 * time.Second, 0},
		{"fixed", "drain", 0, 2000, unknown, true, 98.5, 1, 5 * time.Second, 0},
		{"log", "drain", 0, 2000, unknown, true, 96.5, 1, 30 * time.Second, 0},
		{"log", "drain", 0, 2000, log, true, 98.5, 1, 20 * time.Second, 0},
		{"two", "drain", 0, 2000, unknown, true, 96.5, 2, 20 * time.Second, 0},
		{"two", "drain", 0, 2000, two, true, 97.5, 1, 20 * time.Second, 0},
		{"bucket", "bursts", time.Minute, 1200, unknown, true, 99, 1, 200 * time.Millisecond, 3 * time.Second},
		{"bucket", "bursts", time.Minute, 1200, bucket, true, 99, 1, 200 * time.Millisecond, 1500 * time.Millisecond},
		{"fixed", "bursts", 0, 1200, unknown, true, 99, 1, time.Second, 30 * time.Second},
		{"log", "bursts", 0, 1200, unknown, true, 99, 1, time.Second, 35 * time.Second},
		{"log", "bursts", 0, 1200, log, true, 99, 1, time.Second, 15 * time.Second},
		{"two", "bursts", 0, 1200, unknown, true, 99, 1, time.Second, 35 * time.Second},
		{"two", "bursts", 0, 1200, two, true, 99, 1, time.Second, 15 * time.Second},
		{"bucket", "fresh", time.Minute, 100, bucket, true, 0, 0, 0, 300 * time.Millisecond},
		{"bucket", "drain", time.Minute, 2000, unknown, false, 97, 2, 20 * time.Second, 0},
		{"bucket", "drain", 10 * time.Second, 2000, unknown, false, 97, 10, 20 * time.Second, 0},
		{"fixed", "drain", 0, 2000, unknown, false, 96.5, 2, 20 * time.Second, 0},
		{"log", "drain", 0, 2000, unknown, false, 96.5, 2, 40 * time.Second, 0},
		{"two", "drain", 0, 2000, unknown, false, 96.5, 2, 20 * time.Second, 0},
		{"bucket", "bursts", time.Minute, 1200, unknown, false, 97, 2, 200 * time.Millisecond, 10 * time.Second}, // the first answer takes seconds here
	} {
		name := fmt.Sprintf("%s of a %s", c.work, c.law)
		if c.burst > 0 {
			name += fmt.Sprintf(" of %v", c.burst)
		}
		if c.known.Shape != limit.ShapeUnknown {
			name += ", known"
		}
		if !c.told {
			name += ", unconfigured"
		}
		t.Run(name, func(t *testing.T) {
			seeds := *seedsFlag
			var optimum, refused float64
			var p50, p99 []time.Duration
			for seed := range uint64(seeds) {
				o := simulate(t, c.law, c.burst, seed, work(seed, c.work, c.n), c.known, c.told)
				optimum, refused = optimum+o.optimum/float64(seeds), refused+o.refused/float64(seeds)
				p50, p99 = append(p50, o.p50), append(p99, o.p99)
				if *tell {
					t.Log(o)
				}
			}
			slices.Sort(p50)
			slices.Sort(p99)
			m50, m99 := p50[seeds/2], p99[seeds/2]
			t.Logf("%.1f %% of the optimum, %.1f refusals per 1,000, later than it p50 %v, p99 %v", optimum, refused, m50, m99)
			if optimum < c.optimum || refused > c.refused || m50 > c.p50 || c.p99 > 0 && m99 > c.p99 {
				t.Errorf("want at least %.1f %%, at most %.1f refusals, p50 %v, p99 %v", c.optimum, c.refused, c.p50, c.p99)
			}
		})
	}
}
