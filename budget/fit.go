package budget

import (
	"math"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/usage"
)

// fit returns what a call of cost c is charged on arrival on this path. stated is
// the part of it that the request itself states; the rest is a guess.
//
//	configured limit   a guess is cut to what it admits, what is stated is not:
//	                   only that can be too large
//	learned limit      all is cut to its N. The provider would have refused more,
//	                   and what is kept of a call is a debt of one window at most.
//
// Output is cut before input, which is known better.
//
// largest is false if every limit was asked for as much before, so that [Path.ask]
// has nothing to note.
func (p *Path) fit(c, stated limit.Cost) (fits limit.Cost, largest bool) {
	for _, s := range p.scopes {
		if s.some.Load() {
			s.fit(&c, &stated, &largest)
		}
	}
	return c, largest
}

func (s *Scope) fit(c, stated *limit.Cost, largest *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.dims {
		u := d.limit.Unit
		if d.configured.Rate.N > 0 {
			most := d.largest()
			if part(u, *stated) > most { // it is refused: the error tells the whole prompt
				*c = cut1(*c, limit.Cost{Requests: c.Requests, Input: c.Input, Output: stated.Output}, u, most)
				*largest = true
				continue
			}
			*c = cut1(*c, *stated, u, most)
		}
		if n := d.configured.Rate.N; d.said > 0 && (n == 0 || d.said < n) {
			*c = cut1(*c, limit.Cost{Requests: 1}, u, d.said)
		}
		if part(u, *c) > d.asked { // later limits may cut it, and nothing adds to it
			*largest = true
		}
	}
}

// largest is the largest cost that the limit in force admits.
func (d *dimension) largest() int64 {
	switch l := &d.limit; {
	case l.Largest > 0:
		return l.Largest
	case l.Burst > 0:
		return l.Burst
	default:
		return l.Rate.N
	}
}

// cut1 takes off c what is above most of unit u, but nothing of least.
func cut1(c, least limit.Cost, u limit.Unit, most int64) limit.Cost {
	if part(u, c) <= most {
		return c
	}
	for _, n := range [...]struct {
		have  *int64
		least int64
		unit  limit.Unit
	}{{&c.Requests, least.Requests, limit.Requests}, {&c.Output, least.Output, limit.Output}, {&c.Input, least.Input, limit.Input}} {
		if n.unit != u && (u != limit.Tokens || n.unit == limit.Requests) {
			continue
		}
		if over := part(u, c) - most; over > 0 {
			*n.have = max(min(*n.have, n.least), *n.have-over)
		}
	}
	return c
}

// The bounds of what an answer can say that a call has used, in tokens. One wrong
// number would be a debt of days.
const (
	// overhead is more than any provider adds to a prompt by itself.
	overhead = 1 << 16
	// window is more than a model reads of what is not in the body: a stored
	// conversation, a file, what its tools have found.
	window = 1 << 21
	// answer is more than a model writes where no cap is stated.
	answer = 1 << 20
	// loose is what an answer may have beyond its cap. Some count the cap before
	// they stop, and some leave reasoning out of it.
	loose = 1 << 12
)

// bounds are the most input and output that a call can have used, by its request. A
// token has a byte at least.
func bounds(r *estimate.Request) (input, output int64) {
	input = plusOf(max(r.Size, r.Input), window)
	if r.Understood && r.Traits&(estimate.Unpredictable|estimate.WithMedia) == 0 {
		input = plusOf(max(r.Size, r.Input), overhead)
	}
	output = answer
	if r.OutputCap > 0 {
		output = min(r.OutputCap, answer)
		output += output/4 + loose
	}
	if n := max(1, r.Choices); output > math.MaxInt64/n {
		return input, math.MaxInt64
	} else {
		return input, output * n
	}
}

func plusOf(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Bound takes counts out of r that the call cannot have used. They are unknown.
func (c *Call) Bound(r *usage.Result) {
	if c.price.prompt {
		r.Counts = r.Counts.Bounded(c.price.mostInput, c.price.mostOutput)
		r.Found = r.Counts.Known()
	}
}
