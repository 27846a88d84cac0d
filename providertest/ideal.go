package providertest

import (
	"container/heap"
	"fmt"
	"time"
)

// Cost is one call as the ideal client knows it: everything, beforehand.
type Cost struct {
	At       time.Duration // when the call is there to be sent, since the start
	Prompt   int64         // tokens, actual
	Estimate int64         // prompt as the provider estimates it; zero is Prompt
	Cap      int64         // output cap over all choices, as charged
	Output   int64         // output over all choices
	Reserve  int64         // what Beyond charges for it on arrival
	Cached   int64         // of Prompt, from a cache
	Model    string        // for Options.ModelLimits
	Choices  int64         // zero is 1
	// NoOutput marks a call that cannot have output, such as embeddings.
	NoOutput bool
}

// IdealSeconds is when the last of calls could have been admitted with no
// refusal, in seconds after the provider's start, which is now: the calls go in
// order, none before its own Cost.At, each at the first instant at which a
// provider of these options admits it.
//
// It is the floor that a client's total time is measured against. Under rules
// that settle at the end of a call, Options.Latency says when that is.
func IdealSeconds(calls []Cost, o Options) (float64, error) {
	at, err := IdealTimes(calls, o, time.Now())
	if err != nil || len(at) == 0 {
		return 0, err
	}
	return at[len(at)-1].Seconds(), nil
}

// IdealTimes is IdealSeconds for every call, as the time since start. The
// start matters where windows stand on the wall clock. The error names the
// first call that could never be admitted.
func IdealTimes(calls []Cost, o Options, start time.Time) ([]time.Duration, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	e := newEngine(o, start)
	e.others = newTraffic(o.Others, o.accounts()[0].Name, true)
	times := make([]time.Duration, 0, len(calls))
	var running endings
	now := int64(0)
	for i, c := range calls {
		p := price{model: c.Model, estimate: c.Estimate, prompt: c.Prompt, cap: c.Cap, output: c.Output,
			reserve: c.Reserve, cached: c.Cached, produces: !c.NoOutput}
		if p.estimate == 0 {
			p.estimate = p.prompt
		}
		if min(p.estimate, p.prompt, p.cap, p.output, c.Reserve, c.Cached, c.Choices, int64(c.At)) < 0 || c.At > time.Duration(100*day) || max(p.estimate, p.prompt, p.cap, p.output, p.reserve) > maxTokens || c.Cached > c.Prompt {
			return nil, fmt.Errorf("providertest: call %d costs %+v: want 0 to %d tokens", i, c, maxTokens)
		}
		for {
			e.advance(now)
			for len(running) > 0 && running[0].at <= now {
				end := heap.Pop(&running).(ending)
				e.finish(end.at, end.stamp, end.price, false, false)
			}
			next := int64(never)
			if now < int64(c.At) {
				next = int64(c.At)
			} else {
				v := e.judge(now, p)
				if v.reason == "" {
					break
				}
				if v.reason != "in flight" && v.wait != never {
					next = now + v.wait
				}
				if next == never && len(running) == 0 && e.halved || now > 400*day {
					return nil, fmt.Errorf("providertest: call %d (%+v) can never be admitted: %s", i, c, v.reason)
				}
			}
			// A call that ends, or a halving, before the wait is over may change
			// it.
			if len(running) > 0 {
				next = min(next, running[0].at)
			}
			now = min(next, e.next())
		}
		e.admit(now, p)
		times = append(times, time.Duration(now))
		var took time.Duration
		if o.Latency != nil {
			choices := max(1, c.Choices)
			call := Call{Prompt: c.Prompt, Cap: c.Cap, Output: c.Output, Choices: choices}
			took = o.Latency(call).total(c.Output / choices)
		}
		heap.Push(&running, ending{at: now + int64(took), seq: i, stamp: now, price: p})
	}
	return times, nil
}

// total is how long a call with that many tokens a choice takes.
func (t Timing) total(tokens int64) time.Duration {
	q, _, ok := mulDiv(max(0, int64(t.PerToken)), tokens, 1)
	if !ok || q > 100*day {
		q = 100 * day
	}
	return min(max(0, t.FirstByte), time.Duration(100*day)) + time.Duration(q)
}

// endings is a heap of calls that run, the next to end first.
type endings []ending

type ending struct {
	at, stamp int64
	seq       int
	price     price
}

func (h endings) Len() int { return len(h) }
func (h endings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h endings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *endings) Push(x any)   { *h = append(*h, x.(ending)) }
func (h *endings) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
