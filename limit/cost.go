package limit

import "fmt"

// A Cost is what one call takes: requests, input tokens and output tokens, each
// from 0 to [MaxUnits]. The zero Cost takes nothing.
type Cost struct {
	Requests, Input, Output int64
}

// String reads "1 requests, 900 input, 100 output".

func (c Cost) String() string {
	return fmt.Sprintf("%d requests, %d input, %d output", c.Requests, c.Input, c.Output)
}

// A Unit says which part of a [Cost] a limit counts.
type Unit uint8

const (
	Requests Unit = iota // Cost.Requests
	Input                // Cost.Input
	Output               // Cost.Output
	Tokens               // Cost.Input + Cost.Output
)

// String names the unit as errors and snapshots do.
func (u Unit) String() string {
	switch u {
	case Requests:
		return "requests"
	case Input:
		return "input tokens"
	case Output:
		return "output tokens"
	case Tokens:
		return "tokens"
	}
	return "unknown unit"
}

// A price turns a cost into one unit's count: a mask for each part, all ones
// where the unit counts it. It is linear, so sums of costs (the line, all debits
// so far) are kept once for every limit and priced when asked.
type price struct{ requests, input, output int64 }

func (u Unit) price() price {
	switch u {
	case Requests:
		return price{requests: -1}
	case Input:
		return price{input: -1}
	case Output:
		return price{output: -1}
	}
	return price{input: -1, output: -1}
}

func (p *price) of(c *Cost) int64 {
	return c.Requests&p.requests + c.Input&p.input + c.Output&p.output
}

func (c Cost) plus(d Cost) Cost {
	return Cost{c.Requests + d.Requests, c.Input + d.Input, c.Output + d.Output}
}

func (c Cost) minus(d Cost) Cost {
	return Cost{c.Requests - d.Requests, c.Input - d.Input, c.Output - d.Output}
}

func (c Cost) valid() bool { return c.Requests|c.Input|c.Output >= 0 } // no sign bit set

// bounded keeps a cost summable. One above MaxUnits stays above it, and so is
// refused by any limit; where there is no limit, nobody can tell.
func (c Cost) bounded() Cost {
	return Cost{min(c.Requests, MaxUnits+1), min(c.Input, MaxUnits+1), min(c.Output, MaxUnits+1)}
}
