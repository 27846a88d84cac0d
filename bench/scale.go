package bench

import (
	"container/heap"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A Store is the server of shared budgets, as measured: it does one thing at a
// time, a call takes Call and further Ask for each caller that it decides for.
type Store struct {
	Call, Ask time.Duration // of the server
	Way       time.Duration // there and back, without the server
	CallBytes float64       // there and back
	AskBytes  float64
	Most      int // callers that one call decides for
}

// Measured is the store of redislimit's benchmarks: see docs/scale.md for the
// machine and the command. An ask is with its settlement.
var Measured = Store{
	Call: 45 * time.Microsecond, Ask: 1800 * time.Nanosecond, Way: 200 * time.Microsecond,
	CallBytes: 420, AskBytes: 26, Most: 64,
}

// A Fleet is processes that share one budget.
type Fleet struct {
	Processes int
	Rate      float64 // decisions a second, of all
	Waiting   float64 // share of those that cannot go at once: they take a turn, and a second call delivers it
	Heartbeat time.Duration
}

// A Scale is what a fleet asks of a store.
type Scale struct {
	Calls, Bytes float64       // a second
	PerCall      float64       // callers decided for by one call
	Busy         float64       // of the server's one thread
	P50, P99     time.Duration // from the ask, or the turn, to the answer
	Worst        int           // callers that one call decided for, at most
}

type event struct {
	at   time.Duration
	proc int
	kind int
}

const (
	arrives = iota
	beats
	answered
	turns
)

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// Play lets a fleet ask a store for span, in time of its own, and returns what came
// of it. A process has one call under way, which takes all who wait when it leaves:
// that is the rule of redislimit, and all that is modelled of it. Calls queue for
// the server's one thread.
func Play(f Fleet, s Store, span time.Duration, seed uint64) Scale {
	p := play{fleet: f, store: s, r: rand.New(rand.NewPCG(seed, 7)), procs: make([]proc, f.Processes)}
	for i := range p.procs {
		p.push(p.next(0), i, arrives)
		p.push(time.Duration(p.r.Float64()*float64(f.Heartbeat)), i, beats)
	}
	for p.q.Len() > 0 {
		e := heap.Pop(&p.q).(event)
		if e.at > span {
			break
		}
		p.happen(e)
		p.send(e.at, e.proc)
	}
	seconds := span.Seconds()
	slices.Sort(p.waits)
	return Scale{
		Calls: float64(p.calls) / seconds, Bytes: p.bytes / seconds,
		PerCall: float64(p.asks) / math.Max(1, float64(p.calls)),
		Busy:    p.used.Seconds() / seconds,
		P50:     Quantile(p.waits, 0.5), P99: Quantile(p.waits, 0.99),
		Worst: p.worst,
	}
}

// play is a fleet and its store at an instant.
type play struct {
	fleet Fleet
	store Store
	r     *rand.Rand
	procs []proc
	q     events

	free, used         time.Duration // when the server's thread is free, and how long it worked
	waits              []time.Duration
	asks, calls, worst int
	bytes              float64
}

// proc is one process.
type proc struct {
	waiting []time.Duration // arrivals that no call has taken
	taken   []time.Duration
	turns   []time.Duration // instants of turns to fetch, with the next call
	fetched []time.Duration // of those, with the call under way
	busy    bool
	beat    bool
}

func (p *play) push(at time.Duration, proc, kind int) { heap.Push(&p.q, event{at, proc, kind}) }

// next is when the next caller of a process arrives.
func (p *play) next(at time.Duration) time.Duration {
	return at + time.Duration(p.r.ExpFloat64()/p.fleet.Rate*float64(p.fleet.Processes)*float64(time.Second))
}

// happen takes in an event.
func (p *play) happen(e event) {
	x := &p.procs[e.proc]
	switch e.kind {
	case arrives:
		x.waiting = append(x.waiting, e.at)
		p.push(p.next(e.at), e.proc, arrives)
	case beats:
		x.beat = true
		p.push(e.at+p.fleet.Heartbeat, e.proc, beats)
	case turns:
		x.turns = append(x.turns, e.at)
	case answered:
		x.busy = false
		for _, came := range x.taken {
			if p.r.Float64() < p.fleet.Waiting { // its turn comes later, at an instant of its own
				p.push(e.at+time.Duration(p.r.ExpFloat64()*float64(time.Second)), e.proc, turns)
				continue
			}
			p.waits = append(p.waits, e.at-came)
		}
		x.taken = x.taken[:0]
		for _, turn := range x.fetched {
			p.waits = append(p.waits, e.at-turn)
		}
		x.fetched = x.fetched[:0]
	}
}

// send sends the next call of a process, if none is under way and there is something
// to ask.
func (p *play) send(at time.Duration, i int) {
	x, s := &p.procs[i], &p.store
	if x.busy || len(x.waiting) == 0 && len(x.turns) == 0 && !x.beat {
		return
	}
	n := min(len(x.waiting), s.Most)
	x.taken = append(x.taken[:0], x.waiting[:n]...)
	x.waiting = append(x.waiting[:0], x.waiting[n:]...)
	x.busy, x.beat = true, false
	x.fetched, x.turns = append(x.fetched[:0], x.turns...), x.turns[:0]
	all := n + len(x.fetched)
	work := s.Call + time.Duration(all)*s.Ask
	p.bytes += s.CallBytes + float64(all)*s.AskBytes
	p.worst = max(p.worst, n)
	start := max(p.free, at+s.Way/2)
	p.free = start + work
	p.used += work
	p.calls++
	p.asks += n
	p.push(p.free+s.Way/2, i, answered)
}

// Crowding is the load of the fullest of so many shards, as a multiple of the mean.
// Budgets of equal load are spread over a cluster's slots by their names.
func Crowding(budgets, shards int, seed uint64) float64 {
	r := rand.New(rand.NewPCG(seed, 11))
	load := make([]int, shards)
	for range budgets {
		slot := r.IntN(16384)
		load[slot*shards/16384]++
	}
	return float64(slices.Max(load)) * float64(shards) / float64(budgets)
}

// writeScale writes the simulated tables of docs/scale.md.
func writeScale(w io.Writer, span time.Duration) error {
	_, err := fmt.Fprintf(w, "| processes | decisions/s | that wait | calls/s | callers a call | server busy | MB/s | added p50 | added p99 |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	const beat = 600 * time.Millisecond
	for _, f := range []Fleet{
		{10, 1_000, 0, beat}, {10, 10_000, 0, beat}, {10, 100_000, 0, beat},
		{100, 1_000, 0, beat}, {100, 10_000, 0, beat}, {100, 30_000, 0, beat},
		{1000, 1_000, 0, beat}, {1000, 5_000, 0, beat}, {1000, 10_000, 0, beat}, {1000, 20_000, 0, beat}, {1000, 50_000, 0, beat},
		{1000, 5_000, 1, beat}, {1000, 10_000, 1, beat},
	} {
		x := Play(f, Measured, span, 1)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "| %d | %.0f | %.0f %% | %.0f | %.2f | %.0f %% | %.1f | %v | %v |\n",
			f.Processes, f.Rate, 100*f.Waiting, x.Calls, x.PerCall, 100*x.Busy, x.Bytes/1e6,
			x.P50.Round(10*time.Microsecond), x.P99.Round(10*time.Microsecond))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n| budgets | shards | fullest shard, of the mean |\n| ---: | ---: | ---: |\n")
	for _, c := range []struct{ budgets, shards int }{{3, 3}, {30, 3}, {300, 3}, {30, 10}, {300, 10}, {3000, 10}} {
		sum := 0.0
		for seed := range uint64(200) {
			sum += Crowding(c.budgets, c.shards, seed)
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "| %d | %d | %.2f |\n", c.budgets, c.shards, sum/200)
		}
	}
	return err
}
