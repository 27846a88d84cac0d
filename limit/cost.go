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

// A Unit says which part of a [Cost] a limit counts: [Requests], [Input],
// [Output] or [Tokens]. The zero Unit is Requests.
type Unit uint8

const (
	Requests Unit = 0 // Cost.Requests
	Input    Unit = 1 // Cost.Input
	Output   Unit = 2 // Cost.Output
	Tokens   Unit = 3 // Cost.Input + Cost.Output
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

// amounts is a cost in every unit, indexed by Unit. It is linear. So sums of
// costs are kept once for all limits, and converted to a unit when needed.
type amounts [4]int64

func (c Cost) amounts() amounts {
	return amounts{Requests: c.Requests, Input: c.Input, Output: c.Output, Tokens: c.Input + c.Output}
}

func (a *amounts) in(u Unit) int64 { return a[u&3] } // checked to be one of the four

func (c Cost) plus(d Cost) Cost {
	return Cost{c.Requests + d.Requests, c.Input + d.Input, c.Output + d.Output}
}

func (c Cost) minus(d Cost) Cost {
	return Cost{c.Requests - d.Requests, c.Input - d.Input, c.Output - d.Output}
}

func (c Cost) valid() bool { return c.Requests|c.Input|c.Output >= 0 } // no sign bit set

// usual reports in one comparison that c is valid and below a quarter of MaxUnits, as
// almost all are.
func (c Cost) usual() bool { return uint64(c.Requests|c.Input|c.Output) < 1<<38 }

// bounded keeps a cost summable. One above MaxUnits stays above it, and so is
// refused by any limit; where there is no limit, nobody can tell.
func (c Cost) bounded() Cost {
	return Cost{min(c.Requests, MaxUnits+1), min(c.Input, MaxUnits+1), min(c.Output, MaxUnits+1)}
}
