package transport

import (
	"slices"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
)

// doubt checks the charge rule against the headers. Between two attempts the
// provider's balance falls by what it charged for the later one; each rule
// predicts that fall, and the least median error over the last pairs names the
// rule in force.
type doubt struct {
	mu   sync.Mutex
	sums predictions // since the start, of all attempts and ends
	last sample
	errs [pairs][rules]int64 // ring
	n    int
	told bool
}

const (
	pairs = 40
	rules = 3 // indexed by estimate.Charge
)

// predictions are the tokens charged so far under each rule.
type predictions [rules]int64

type sample struct {
	at        time.Time
	remaining int64
	sums      predictions
	set       bool
}

// sending notes an attempt that leaves, and returns the sums up to it.
func (d *doubt) sending(p *priced) predictions {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sums[estimate.ChargeSettle] += p.input + p.reserve
	d.sums[estimate.ChargeEstimate] += p.input + p.reserve
	d.sums[estimate.ChargeActual] += p.input
	return d.sums
}

// ended notes the tokens that an attempt used.
func (d *doubt) ended(p *priced, input, output int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sums[estimate.ChargeSettle] += input + output - p.input - p.reserve
	d.sums[estimate.ChargeActual] += input + output - p.input
}

// refused takes back an attempt that the provider did not charge.
func (d *doubt) refused(p *priced) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sums[estimate.ChargeSettle] -= p.input + p.reserve
	d.sums[estimate.ChargeEstimate] -= p.input + p.reserve
	d.sums[estimate.ChargeActual] -= p.input
}

// saw takes in what a token limit had left for an attempt sent at with sums. It
// returns the rule that the headers speak for, once, if it is not current.
func (d *doubt) saw(at time.Time, sums predictions, remaining int64, l limit.Limit, current estimate.Charge) (estimate.Charge, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	prev := d.last
	if prev.set && !at.After(prev.at) {
		return 0, false // an older answer
	}
	d.last = sample{at, remaining, sums, true}
	// Near the top the balance is cut by the capacity and says nothing.
	if full := l.Rate.N - l.Rate.N/50; !prev.set || remaining >= full || prev.remaining >= full {
		return 0, false
	}
	fall := prev.remaining - remaining + l.Rate.In(at.Sub(prev.at))
	for r := range d.errs[0] {
		d.errs[d.n%pairs][r] = abs(fall - (sums[r] - prev.sums[r]))
	}
	d.n++
	if d.n < pairs || d.told {
		return 0, false
	}
	var median [rules]int64
	for r := range median {
		var of [pairs]int64
		for i := range of {
			of[i] = d.errs[i][r]
		}
		slices.Sort(of[:])
		median[r] = of[pairs/2]
	}
	best := current
	for r := range median {
		if median[r]*2 < median[best] {
			best = estimate.Charge(r)
		}
	}
	d.told = best != current
	return best, d.told
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
