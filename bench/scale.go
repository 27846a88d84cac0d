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
	r := rand.New(rand.NewPCG(seed, 7))
	type proc struct {
		waiting []time.Duration // arrivals that no call has taken
		taken   []time.Duration
		turns   []time.Duration // instants of turns to fetch, with the next call
		told    []time.Duration
		busy    bool
		beat    bool
	}
	procs := make([]proc, f.Processes)
	var q events
	push := func(at time.Duration, p, kind int) { heap.Push(&q, event{at, p, kind}) }
	next := func(at time.Duration) time.Duration {
		return at + time.Duration(r.ExpFloat64()/f.Rate*float64(f.Processes)*float64(time.Second))
	}
	for i := range procs {
		push(next(0), i, arrives)
		push(time.Duration(r.Float64()*float64(f.Heartbeat)), i, beats)
	}
	var out Scale
	var free, used time.Duration // when the server's thread is free, and how long it worked
	var waits []time.Duration
	asks, calls, bytes := 0, 0, 0.0
	send := func(at time.Duration, i int) {
		p := &procs[i]
		if p.busy || len(p.waiting) == 0 && len(p.turns) == 0 && !p.beat {
			return
		}
		n := min(len(p.waiting), s.Most)
		p.taken = append(p.taken[:0], p.waiting[:n]...)
		p.waiting = append(p.waiting[:0], p.waiting[n:]...)
		p.busy, p.beat = true, false
		p.told, p.turns = append(p.told[:0], p.turns...), p.turns[:0]
		all := n + len(p.told)
		work := s.Call + time.Duration(all)*s.Ask
		bytes += s.CallBytes + float64(all)*s.AskBytes
		out.Worst = max(out.Worst, n)
		start := max(free, at+s.Way/2)
		free = start + work
		used += work
		calls++
		asks += n
		push(free+s.Way/2, i, answered)
	}
	for q.Len() > 0 {
		e := heap.Pop(&q).(event)
		if e.at > span {
			break
		}
		p := &procs[e.proc]
		switch e.kind {
		case arrives:
			p.waiting = append(p.waiting, e.at)
			push(next(e.at), e.proc, arrives)
		case beats:
			p.beat = true
			push(e.at+f.Heartbeat, e.proc, beats)
		case turns:
			p.turns = append(p.turns, e.at)
		case answered:
			p.busy = false
			for _, came := range p.taken {
				if r.Float64() < f.Waiting { // its turn comes later, at an instant of its own
					push(e.at+time.Duration(r.ExpFloat64()*float64(time.Second)), e.proc, turns)
					continue
				}
				waits = append(waits, e.at-came)
			}
			p.taken = p.taken[:0]
			for _, turn := range p.told {
				waits = append(waits, e.at-turn)
			}
			p.told = p.told[:0]
		}
		send(e.at, e.proc)
	}
	seconds := span.Seconds()
	out.Calls, out.Bytes = float64(calls)/seconds, bytes/seconds
	out.PerCall = float64(asks) / math.Max(1, float64(calls))
	out.Busy = used.Seconds() / seconds
	slices.Sort(waits)
	out.P50, out.P99 = Quantile(waits, 0.5), Quantile(waits, 0.99)
	return out
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
