package budget_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/usage"
)

// observer hears what answers change; here it does nothing.
type observer struct{}

func (observer) Lowered(string, int64)                      {}
func (observer) Paused(limit.Pause)                         {}
func (observer) LimitChanged(_, _ limit.Limit)              {}
func (observer) LawChanged(_, _ limit.Limit)                {}
func (observer) Doubted(_, _ estimate.Charge) (follow bool) { return false }

// One call in the books: its price is taken before it leaves, and settled to what
// the answer says that it cost.
func Example() {
	b, err := budget.New(budget.Options{
		Limits:  []limit.Limit{{Name: "tokens per minute", Unit: limit.Tokens, Rate: limit.PerMinute(60_000)}},
		Profile: profile.Unknown(),
	})
	if err != nil {
		panic(err)
	}
	path := b.Path(budget.Address{Host: "api.example.com", Model: "m"})
	left := func() int64 { return b.Snapshot().Scopes[0].Limits[0].Credit }

	var c budget.Call
	c.Open(path, observer{}, &estimate.Request{Model: "m", Input: 300, OutputCap: 100, Choices: 1}, 1)
	if err := c.Admit(context.Background(), time.Now()); err != nil {
		panic(err)
	}
	c.Leave(time.Now())
	fmt.Println("on the wire:", left() < 59_800)
	r := usage.Read("application/json", "", []byte(`{"usage":{"prompt_tokens":290,"completion_tokens":20,"total_tokens":310}}`))
	c.Settle(time.Now(), &r)
	fmt.Println("charged:", c.Charged().Input, c.Charged().Output)
	// Output:
	// on the wire: true
	// charged: 290 20
}
