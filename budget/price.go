package budget

import (
	"sync/atomic"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/usage"
)

// Prices turns what a request's body says into a price, and learns from the
// usage that answers report. The zero Prices is ready. It may be used by any
// number of goroutines.
type Prices struct {
	prompts estimate.Calibrator
	answers estimate.Output
	heard   atomic.Int64 // usages of prompts
}

// A Price is what a call is charged on arrival, in tokens. The zero Price is that
// of a call without a body.
type Price struct {
	prompt        bool            // there is a body
	learns        estimate.Prompt // the model, and what the usage teaches when it comes
	input, output int64           // under the charge rule
	stated        limit.Cost      // the part that the request itself states
	reserve       int64           // output under a rule that reserves the cap
	reserveStated int64           // the part of reserve that the request itself states
	likely        int64           // output charged in the end, as far as answers have shown it

	mostInput, mostOutput int64 // that the call can have used
	rule                  estimate.Rule
	atEnd                 bool // the token fields of the answer are of its end

	// What it takes to price the call again, beside learns.
	kind               string
	outputCap, choices int64
	corrected          int64 // Request.Input, after Correct
}

// Price prices a request under a rule.
func (p *Prices) Price(r estimate.Request, rule estimate.Rule) (out Price) {
	p.price(&out, &r, rule)
	return out
}

// price is Price that writes into the place of the result.
func (p *Prices) price(out *Price, of *estimate.Request, rule estimate.Rule) {
	*out = Price{prompt: true, rule: rule, learns: of.Prompt(), kind: of.Kind, outputCap: of.OutputCap, choices: of.Choices}
	r := p.prompts.Correct(*of)
	out.corrected = r.Input
	learned := p.answers.Learned(r.Model)
	price := rule.Price(r, learned)
	out.input = summable(price.Input)
	out.stated = limit.Cost{Requests: 1, Input: summable(price.StatedInput)}
	out.mostInput, out.mostOutput = bounds(&r)
	out.expect(price, r, learned)
}

// again prices a call anew that p has priced: answers may have taught more since. The
// rule stays.
func (p *Prices) again(c *Price) {
	r := estimate.Request{
		Model: c.learns.Model, Traits: c.learns.Traits, Understood: true, Input: c.learns.Tokens,
		Kind: c.kind, OutputCap: c.outputCap, Choices: c.choices,
	}
	if r.Input > 0 { // else nothing is learned of such prompts
		r = p.prompts.Correct(r)
		if !c.rule.PromptByChars && !c.rule.PromptFree {
			c.input = summable(max(1, plusOf(c.input-c.corrected, r.Input))) // both are below 2^41, or stay
			c.stated.Input = min(c.stated.Input, c.input)
		}
		c.corrected = r.Input
	}
	learned := p.answers.Learned(r.Model)
	c.expect(c.rule.Price(r, learned), r, learned)
}

// expect sets the output of out to what price says, and to what r costs under other
// rules.
func (out *Price) expect(price estimate.Price, r estimate.Request, learned int64) {
	rule := out.rule
	output, stated := summable(price.Output), summable(price.StatedOutput)
	out.output, out.reserve, out.likely = output, output, output
	out.stated.Output, out.reserveStated = stated, stated
	settles := rule.Charge == estimate.ChargeSettle || rule.Charge == estimate.ChargeActual
	if rule.ReserveCap && rule.Charge != estimate.ChargeEstimate {
		rule.ReserveCap = false
		out.likely = summable(rule.Price(r, learned).Output)
	} else if !rule.ReserveCap {
		rule.Charge, rule.ReserveCap = estimate.ChargeSettle, true
		reserve := rule.Price(r, learned)
		out.reserve, out.reserveStated = summable(reserve.Output), summable(reserve.StatedOutput)
	}
	if settles && learned == 0 {
		// A default is no expectation: by one of 512 tokens, 267 of 700 calls were
		// refused that could have been served within their minute.
		out.likely = min(out.likely, 1)
	}
}

// summable is n, or as little above every limit as possible: the sum of a few such
// numbers is still a number.
func summable(n int64) int64 { return min(n, limit.MaxUnits+1) }

// under is p under another rule for its charge, as headers show it. What the call
// took in line stays as it is.
func (p Price) under(rule estimate.Rule) Price {
	if rule.Charge == p.rule.Charge && rule.ReserveCap == p.rule.ReserveCap {
		return p
	}
	if rule.Charge == estimate.ChargePrompt {
		p.output = 0
	} else if rule.ReserveCap {
		p.output = p.reserve
	}
	p.rule = rule
	return p
}

// Cost is the price as the ledger takes it: one request, and the tokens.
func (p Price) Cost() limit.Cost {
	return limit.Cost{Requests: 1, Input: p.input, Output: p.output}
}

// bytesPerToken turns output that was seen into the least tokens that it can have
// been: no tokenizer in use makes more than this of a token on average.
const bytesPerToken = 6

// Actual is what a call that was answered is charged in the end, in tokens. It is
// the one charge rule that runs. If the answer was cut short its usage is a lower
// bound, so the price stands beside it.
//
// r.Complete decides whether the answer is whole. The end of the connection is no
// proof: a proxy ends a stream politely when its own connection was cut.
func (p Price) Actual(r *usage.Result, rule estimate.Rule) (input, output int64) {
	return p.actual(r, &rule)
}

// actual is Actual without a copy of p.
func (p *Price) actual(r *usage.Result, rule *estimate.Rule) (input, output int64) {
	if r.NoTokens { // seconds, images, searches: the provider says what it counts
		return 0, 0
	}
	used := used(r)
	input, output = rule.Actual(p.input, p.output, used)
	if (used.Output < 0 || !r.Complete) && rule.Charge != estimate.ChargeEstimate {
		output = max(output, p.output, rule.Made(r.OutputBytes/bytesPerToken))
	}
	return input, output
}

// used reads the usage of an answer. A count that is missing is -1.
//
//	total alone            all of it is input: embeddings, rerank
//	total and output       the rest is input
//	total above the sum    the rest is output: reasoning that no other field counts
func used(r *usage.Result) estimate.Used {
	if !r.Found {
		return estimate.Used{Input: -1, Cached: -1, Output: -1}
	}
	u := estimate.Used{Input: known(r.Input), Cached: known(r.CachedInput), Output: known(r.Output), Audio: known(r.AudioInput)}
	switch total := known(r.Total); {
	case total < 0:
	case u.Input < 0 && u.Output < 0:
		u.Input, u.Output = total, 0
	case u.Input < 0:
		u.Input = max(0, total-u.Output)
	case total > u.Input+max(0, u.Output):
		u.Output = total - u.Input
	}
	return u
}

func known(c usage.Count) int64 {
	if !c.OK {
		return -1
	}
	return c.N
}

// sureAfter is how many usages must be heard before estimates of prompts are as good as
// they get: the first correction comes after three, and it takes a few steps.
const sureAfter = 6

// unsure reports whether too few usages were heard to know how far estimates are off.
func (p *Prices) unsure() bool { return p.heard.Load() < sureAfter }

// learn takes in the usage of an answer.
func (p *Prices) learn(c *Price, r *usage.Result) {
	if !r.Found || c.learns.Model == "" {
		return
	}
	if r.Input.OK {
		p.heard.Add(1)
		p.prompts.Observe(c.learns, r.Input.N)
	}
	if r.Output.OK && r.Complete {
		p.answers.Observe(c.learns.Model, r.Output.N)
	}
}
