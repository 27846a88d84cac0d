package budget

import (
	"slices"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/law"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/usage"
)

// A doubt checks the charge rule against the headers. Between two attempts the
// provider's balance falls by what it charged for the later one, and for the
// answers that ended between. Each rule predicts that fall. The least median
// error over the last pairs names the rule in force.
//
// The refill between the two is not known: nothing if the limit is a window; all
// that the rate allows if it is a bucket, which is full at the limit less the charge
// of the later attempt. Both are tried, and the rules are compared under the better
// fit. Under the wrong one every fall would look too large, and a right rule too
// cheap.
//
// Only attempts that leave alone are compared: while no other is under way, or at
// another instant than all that leave and end. Of calls that leave and end at about one
// instant nobody knows which of them the balance has in it. With 25 a time, as after a
// wait of many, a rule without refunds explained most falls better than the right one.
//
// A rule that charges too much keeps the provider's balance near the limit. There a
// bucket still shows what it charged last, and a window shows nothing.
//
// A rule that is followed ends for ten minutes after the second refusal that the
// use of this budget does not explain.
type doubt struct {
	mu       sync.Mutex
	sums     predictions // since the start, of all attempts and ends
	last     sample
	errs     [refills][rules][pairs]int64 // rings
	want     [refills][rules][pairs]int64 // the falls predicted
	n        [refills]int
	reported bool // and not followed
	strikes  int
	until    time.Time // nothing is reported before that

	open    int                   // attempts that left and have not ended
	left    time.Time             // when the last one left
	pace    float64               // how fast they leave: 1 more than how many a second, or how many at once
	stirred time.Time             // when an attempt left or ended last
	flurry  uint64                // the number of that instant and those close to it; from 1
	crowded [flurries / 64]uint64 // a bit for each of the last flurries: more than one thing happened
}

const (
	pairs   = 40
	rules   = 4 // indexed by estimate.Charge
	refills = 2 // none, and all that the rate allows

	apart    = 2 * time.Millisecond // what is closer may reach the provider in another order
	flurries = 4096                 // that are remembered while an answer is made
)

// byPrice are the rules, those that charge most first.
var byPrice = [rules]estimate.Charge{estimate.ChargeEstimate, estimate.ChargeSettle, estimate.ChargeActual, estimate.ChargePrompt}

// predictions are the tokens charged so far under each rule.
type predictions [rules]int64

// A sample is a balance of a token limit, and what each rule had charged by then.
type sample struct {
	at        time.Time // when its attempt left
	remaining int64
	most      int64       // the largest balance there can be
	sums      predictions // with own
	flurry    uint64      // in which its attempt left
	own       predictions // of its attempt
	set       bool
}

// arrival is what each rule charges when the call comes: the rule in force its
// own price, which may leave the cap out, any other prompt and cap.
func (p *Price) arrival() predictions {
	var a predictions
	for r := range a {
		a[r] = p.input + p.reserve
	}
	a[estimate.ChargeActual], a[estimate.ChargePrompt] = p.input, p.input
	if c := p.rule.Charge; c != estimate.ChargeActual && c != estimate.ChargePrompt {
		a[c] = p.input + p.output
	}
	return a
}

// stir notes that an attempt leaves or ends at now, and returns the flurry of it. While
// none is under way, one that leaves begins a flurry: all others have ended before. The
// caller holds d.mu.
func (d *doubt) stir(now time.Time) uint64 {
	if d.open > 0 && now.Sub(d.stirred) < apart {
		d.crowded[d.flurry%flurries/64] |= 1 << (d.flurry % 64)
	} else {
		d.flurry++
		d.crowded[d.flurry%flurries/64] &^= 1 << (d.flurry % 64)
	}
	if now.After(d.stirred) {
		d.stirred = now
	}
	return d.flurry
}

// alone reports whether one thing happened in a flurry, as far as is known by now. The
// caller holds d.mu.
func (d *doubt) alone(flurry uint64) bool {
	return d.flurry-flurry < flurries && d.crowded[flurry%flurries/64]>>(flurry%64)&1 == 0
}

// sending adds an attempt that leaves at now. It returns the sums up to it, its flurry,
// how many others are under way, and the pace at which attempts leave.
func (d *doubt) sending(now time.Time, p *Price) (sums predictions, flurry uint64, others int, pace float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for r, n := range p.arrival() {
		d.sums[r] += n
	}
	flurry = d.stir(now)
	d.open++
	d.pace = 1 + d.pace/(1+max(0, now.Sub(d.left)).Seconds())
	d.left = now
	return d.sums, flurry, d.open - 1, d.pace
}

// gone notes that an attempt that left is over, in any way.
func (d *doubt) gone() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open--
}

// used returns the tokens that an answer has really used. charged are those that the
// rule of p charges for it.
func (p *Price) used(r *usage.Result, charged limit.Cost) (input, output int64) {
	if c := p.rule.Charge; c == estimate.ChargeSettle || c == estimate.ChargeActual {
		return charged.Input, charged.Output // the same
	}
	rule := p.rule
	rule.Charge = estimate.ChargeSettle
	return p.actual(r, &rule)
}

// ended adds the tokens that an answer has really used, at now.
func (d *doubt) ended(now time.Time, p *Price, input, output int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stir(now)
	a := p.arrival()
	for _, r := range [...]estimate.Charge{estimate.ChargeSettle, estimate.ChargeActual} {
		d.sums[r] += input + output - a[r]
	}
	d.sums[estimate.ChargePrompt] += input - a[estimate.ChargePrompt]
}

// refused takes back an attempt that the provider did not charge, at now.
func (d *doubt) refused(now time.Time, p *Price) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stir(now)
	for r, n := range p.arrival() {
		d.sums[r] -= n
	}
}

// saw takes in what a token limit had left for an attempt. It returns the rule that
// the headers speak for, if it is not current: once, or again if it is followed. known
// says that they have spoken for one.
func (d *doubt) saw(now time.Time, s sample, l limit.Rate, current estimate.Charge) (seen estimate.Charge, doubted, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	prev := d.last
	if prev.set && !s.at.After(prev.at) || !d.alone(s.flurry) {
		return 0, false, false // an older answer, or one among others
	}
	d.last = s
	if !prev.set || s.most != prev.most || s.remaining > s.most {
		return 0, false, false
	}
	// At the bottom the balance cannot show debt.
	if s.remaining <= 0 || prev.remaining <= 0 {
		return 0, false, false
	}
	d.compare(0, &prev, &s, 0)
	d.compare(1, &prev, &s, l.In(s.at.Sub(prev.at)))
	if d.reported || now.Before(d.until) {
		return 0, false, false
	}
	best, known := d.best(current)
	d.reported = best != current
	return best, d.reported, known
}

// compare enters by how much each rule misses the fall from one balance to the next
// under a refill.
func (d *doubt) compare(kind int, prev, s *sample, refill int64) {
	full := s.most - s.most/50
	if kind == 0 && (s.remaining >= full || prev.remaining >= full) {
		return // a window's use of before may have ended
	}
	at := d.n[kind] % pairs
	for r := range s.sums {
		charged := s.sums[r] - prev.sums[r]
		left := prev.remaining + refill - charged
		if kind > 0 {
			left = min(left, s.most-s.own[r])
		}
		d.want[kind][r][at], d.errs[kind][r][at] = charged, abs(s.remaining-left)
	}
	d.n[kind]++
}

// followed notes that the rule which was reported is in force now.
func (d *doubt) followed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reported, d.n, d.strikes = false, [refills]int{}, 0
}

// struck takes in a refusal at now that the use of this budget does not explain. It
// reports whether a rule that is followed must end.
func (d *doubt) struck(now time.Time) (end bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.strikes++; d.strikes < 2 {
		return false
	}
	d.n, d.strikes, d.until = [refills]int{}, 0, now.Add(law.Forgotten)
	return true
}

// best is the rule with the least median error. It must explain what it saw to a
// sixth of the usual fall, and twice as well as the current one: prompts are
// estimates, and the refill of a sliding window is not known. Of rules that explain
// it about as well the one counts that charges most.
//
// known says that the rule which it returns explains them.
func (d *doubt) best(current estimate.Charge) (best estimate.Charge, known bool) {
	var m, want predictions
	for kind := range refills {
		if d.n[kind] < pairs {
			continue
		}
		var errs, falls predictions
		for r := range errs {
			errs[r], falls[r] = median(d.errs[kind][r]), median(d.want[kind][r])
		}
		if !known || slices.Min(errs[:]) <= slices.Min(m[:]) {
			m, want, known = errs, falls, true
		}
	}
	best = current
	if !known {
		return best, false
	}
	for _, r := range byPrice {
		if (best == current && m[r] < m[best] || m[r]*4 < m[best]*3) && m[r]*2 < m[current] && m[r] <= want[r]/6 {
			best = r
		}
	}
	return best, m[best] <= want[best]/6
}

func median(of [pairs]int64) int64 {
	slices.Sort(of[:])
	return of[pairs/2]
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
