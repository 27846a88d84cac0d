package budget

import (
	"slices"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
)

// A doubt checks the charge rule against the headers. Between two attempts the
// provider's balance falls by what it charged for the later one, and for the
// answers that ended between. Each rule predicts that fall. The least median
// error over the last pairs names the rule in force.
//
// The refill between the two is not known: all that the rate allows if the limit
// is a bucket, nothing if it is a window. Both are tried, and the rules are
// compared under the better fit. Under the wrong one every fall would look too
// large, and a right rule too cheap.
//
// A rule that charges far too much keeps the provider's balance full. A full
// balance says nothing, and then no doubt is reported.
type doubt struct {
	mu       sync.Mutex
	sums     predictions // since the start, of all attempts and ends
	last     sample
	errs     [refills][rules][pairs]int64 // rings
	want     [rules][pairs]int64          // the falls predicted
	n        int
	reported bool
}

const (
	pairs   = 40
	rules   = 3 // indexed by estimate.Charge
	refills = 2 // none, and all that the rate allows
)

// predictions are the tokens charged so far under each rule.
type predictions [rules]int64

type sample struct {
	at        time.Time
	remaining int64
	sums      predictions
	set       bool
}

// arrival is what each rule charges when the call comes: the rule in force its
// own price, which may leave the cap out, any other prompt and cap.
func (p *Price) arrival() predictions {
	var a predictions
	for r := range a {
		a[r] = p.input + p.reserve
	}
	if p.charge != estimate.ChargeActual {
		a[p.charge] = p.input + p.output
	}
	a[estimate.ChargeActual] = p.input
	return a
}

// sending adds an attempt that leaves, and returns the sums up to it.
func (d *doubt) sending(p *Price) predictions {
	d.mu.Lock()
	defer d.mu.Unlock()
	for r, n := range p.arrival() {
		d.sums[r] += n
	}
	return d.sums
}

// ended adds the tokens that an answer has really used.
func (d *doubt) ended(p *Price, input, output int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := p.arrival()
	for _, r := range [...]estimate.Charge{estimate.ChargeSettle, estimate.ChargeActual} {
		d.sums[r] += input + output - a[r]
	}
}

// refused takes back an attempt that the provider did not charge.
func (d *doubt) refused(p *Price) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for r, n := range p.arrival() {
		d.sums[r] -= n
	}
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
	// Near the top the capacity cuts the balance, and it says nothing; at the
	// bottom it cannot show debt.
	full := l.Rate.N - l.Rate.N/50
	if !prev.set || remaining >= full || prev.remaining >= full || remaining <= 0 || prev.remaining <= 0 {
		return 0, false
	}
	for r := range d.want {
		d.want[r][d.n%pairs] = sums[r] - prev.sums[r]
	}
	for refill := range d.errs {
		fall := prev.remaining - remaining
		if refill > 0 {
			fall += l.Rate.In(at.Sub(prev.at))
		}
		for r := range d.errs[refill] {
			d.errs[refill][r][d.n%pairs] = abs(fall - d.want[r][d.n%pairs])
		}
	}
	d.n++
	if d.n < pairs || d.reported {
		return 0, false
	}
	best := d.best(current)
	d.reported = best != current
	return best, d.reported
}

// best is the rule with the least median error. It must explain what it saw to a
// sixth of the usual fall, and twice as well as the current one: prompts are
// estimates, and the refill of a sliding window is not known.
func (d *doubt) best(current estimate.Charge) estimate.Charge {
	var err [refills]predictions
	for refill := range err {
		for r := range err[refill] {
			err[refill][r] = median(d.errs[refill][r])
		}
	}
	m := err[0]
	if slices.Min(err[1][:]) <= slices.Min(m[:]) {
		m = err[1]
	}
	best := current
	for r := range m {
		if m[r] < m[best] && m[r]*2 < m[current] && m[r] <= median(d.want[r])/6 {
			best = estimate.Charge(r)
		}
	}
	return best
}

func median(of [pairs]int64) int64 {
	slices.Sort(of[:])
	return of[pairs/2]
}
