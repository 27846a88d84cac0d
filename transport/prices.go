package transport

import (
	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/usage"
)

// prices turns what a body says into a cost, and learns from the usage that
// comes back.
type prices struct {
	prompts estimate.Calibrator
	answers estimate.Output
}

// priced is a request with its price, in tokens.
type priced struct {
	model         string
	prompt        estimate.Prompt // to learn from when the usage comes
	input, output int64           // under the charge rule
	reserve       int64 // output under a rule that reserves the cap
	charge        estimate.Charge
}

func (p *prices) price(r estimate.Request, rule estimate.Rule) priced {
	out := priced{model: r.Model, charge: rule.Charge, prompt: r.Prompt()}
	r = p.prompts.Correct(r)
	learned := p.answers.Learned(r.Model)
	price := rule.Price(r, learned)
	out.input, out.output, out.reserve = price.Input, price.Output, price.Output
	if !rule.ReserveCap {
		rule.Charge, rule.ReserveCap = estimate.ChargeSettle, true
		out.reserve = rule.Price(r, learned).Output
	}
	return out
}

func (p priced) cost() limit.Cost {
	return limit.Cost{Requests: 1, Input: p.input, Output: p.output}
}

// bytesPerToken turns output that was seen into the least tokens it can have
// been: no tokenizer in use makes more than this of a token on average.
const bytesPerToken = 6

// actual is what a call that was answered is charged in the end. Of an answer
// that was cut short the usage is a lower bound: the estimate stands beside it.
func (p *prices) actual(c *priced, r *usage.Result, whole bool, rule estimate.Rule) (input, output int64) {
	used := estimate.Used{Input: -1, Cached: -1, Output: -1}
	if r.Found {
		used = estimate.Used{Input: known(r.Input), Cached: known(r.CachedInput), Output: known(r.Output)}
		if used.Input < 0 && used.Output < 0 {
			if used.Input = known(r.Total); used.Input >= 0 {
				used.Output = 0 // a total alone: embeddings, rerank
			}
		} else if r.Total.OK && r.Total.N > used.Input+used.Output {
			used.Output = r.Total.N - used.Input // reasoning that is told nowhere else
		}
	}
	input, output = rule.Actual(c.input, c.output, used)
	if (used.Output < 0 || !whole) && rule.Charge != estimate.ChargeEstimate {
		output = max(output, c.output, r.OutputBytes/bytesPerToken*max(1, rule.OutputFactor))
	}
	return input, output
}

// learn takes in the usage of an answer.
func (p *prices) learn(c *priced, r *usage.Result, whole bool) {
	if !r.Found || c.model == "" {
		return
	}
	if r.Input.OK {
		p.prompts.Observe(c.prompt, r.Input.N)
	}
	if r.Output.OK && whole {
		p.answers.Observe(c.model, r.Output.N)
	}
}

func known(c usage.Count) int64 {
	if !c.OK {
		return -1
	}
	return c.N
}

func tell(r *usage.Result) Usage {
	if !r.Found {
		return Usage{}
	}
	return Usage{Input: r.Input.N, CachedInput: r.CachedInput.N, Output: r.Output.N, Found: true}
}
