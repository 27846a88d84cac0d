package limit

import "fmt"

// A Cost is what one call takes: requests, input tokens and output tokens. The
// zero Cost takes nothing.
type Cost struct {
	Requests, Input, Output int64
}

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

// of prices c in this unit. It is linear, so sums of costs (the line, all
// debits so far) can be kept once for every limit and priced when asked.
func (u Unit) of(c Cost) int64 {
	switch u {
	case Requests:
		return c.Requests
	case Input:
		return c.Input
	case Output:
		return c.Output
	}
	return c.Input + c.Output
}

func (c Cost) plus(d Cost) Cost {
	return Cost{c.Requests + d.Requests, c.Input + d.Input, c.Output + d.Output}
}

func (c Cost) minus(d Cost) Cost {
	return Cost{c.Requests - d.Requests, c.Input - d.Input, c.Output - d.Output}
}

func (c Cost) valid() bool { return c.Requests >= 0 && c.Input >= 0 && c.Output >= 0 }

// bounded keeps a cost summable. One above MaxUnits stays above it, and so is
// refused by any limit; where there is no limit, nobody can tell.
func (c Cost) bounded() Cost {
	return Cost{min(c.Requests, MaxUnits+1), min(c.Input, MaxUnits+1), min(c.Output, MaxUnits+1)}
}
