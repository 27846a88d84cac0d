package budget

import (
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/law"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/usage"
)

// A doubt checks the charge rule against the headers. Between two attempts the
// provider's balance falls by what it charged for the later one, and for the
// answers that ended between. Each rule predicts that fall ([falls]). The least median
// error over the last pairs names the rule in force.
//
// Only attempts that leave alone are compared: while no other is under way, or at
// another instant than all that leave and end. Of calls that leave and end at about one
// instant nobody knows which of them the balance has in it. With 25 a time, as after a
// wait of many, a rule without refunds explained most falls better than the right one.
//
// That less is charged shows sooner (doubt.less). Meanwhile the ledger loses the
// difference for each call: half a minute of the limit where output is reserved that is
// never charged. Balances that are a second apart show it, in any order. Some providers
// read the balance when they answer, so each counts as one of the sending and as one of
// the answer. For a rule that charges more such balances do not speak: sums over a second
// fit by chance.
//
// A rule that charges too much keeps the provider's balance near the limit. There a
// bucket still shows what it charged last, and a window shows nothing.
//
// A rule that is followed ends for ten minutes after the second refusal that the
// use of this budget does not explain.
type doubt struct {
	mu       sync.Mutex
	sums     predictions   // since the start, of all attempts and ends
	books    [books]*falls // nil: nothing yet
	compared int           // pairs
	reported bool          // and not followed
	asked    int           // answers after which settles was asked
	strikes  int
	until    time.Time // nothing is reported before that

	open    int                   // attempts that left and have not ended
	left    time.Time             // when the last one left
	pace    float64               // how fast they leave: 1 more than how many a second, or how many at once
	stirred time.Time             // when an attempt left or ended last
	flurry  uint64                // the number of that instant and those close to it; from 1
	many    int                   // attempts that left or ended in that flurry
	crowd   time.Time             // when the last flurry of a crowd was
	crowded [flurries / 64]uint64 // a bit for each of the last flurries: more than one thing happened
	packed  [flurries / 64]uint64 // the same: more than swap
}

// The books of a doubt.
const (
	inOrder    = iota // each balance and the one before
	asSent            // balances that are apart, by when the call left
	asAnswered        // the same, by when the answer came
	books
)

const (
	asks  = 500 // answers after which settles may be asked: the first calls are over then
	every = 2   // pairs to a verdict, for which some hundred numbers are sorted
	swap  = 2   // attempts: one ends, and one leaves that waited for what it gives back
	crowd = 8   // attempts that leave or end together

	apart    = 2 * time.Millisecond // what is closer may reach the provider in another order
	flurries = 4096                 // that are remembered while an answer is made
)

// byPrice are the rules, those that charge most first.
var byPrice = [rules]estimate.Charge{estimate.ChargeEstimate, estimate.ChargeSettle, estimate.ChargeActual, estimate.ChargePrompt}

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
		if d.many++; d.many > swap {
			d.packed[d.flurry%flurries/64] |= 1 << (d.flurry % 64)
		}
		if d.many >= crowd {
			d.crowd = now
		}
	} else {
		d.flurry++
		d.many = 1
		d.crowded[d.flurry%flurries/64] &^= 1 << (d.flurry % 64)
		d.packed[d.flurry%flurries/64] &^= 1 << (d.flurry % 64)
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

// paired reports whether no more than swap things happened in a flurry. In the sums of a
// second one more or less is no matter, and in a full line hardly a call leaves alone.
// The caller holds d.mu.
func (d *doubt) paired(flurry uint64) bool {
	return d.flurry-flurry < flurries && d.packed[flurry%flurries/64]>>(flurry%64)&1 == 0
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

// used returns the output that an answer has really used. charged are the tokens that
// the rule of p charges for it.
func (p *Price) used(r *usage.Result, charged limit.Cost) (output int64) {
	if c := p.rule.Charge; c == estimate.ChargeSettle || c == estimate.ChargeActual {
		return charged.Output // the same
	}
	rule := p.rule
	rule.Charge = estimate.ChargeSettle
	_, output = p.actual(r, &rule)
	return output
}

// ended adds the output that an answer has really used, at now. The prompt stays as it
// was estimated: the provider has charged it on arrival. Corrected at the end, the first
// prompts, which are estimated worst, would disturb the pairs of half a minute.
func (d *doubt) ended(now time.Time, p *Price, output int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stir(now)
	a := p.arrival()
	for _, r := range [...]estimate.Charge{estimate.ChargeSettle, estimate.ChargeActual} {
		d.sums[r] += p.input + output - a[r]
	}
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
	compared := false
	if d.alone(s.flurry) {
		compared = d.book(inOrder).follows(s, l)
	}
	if d.paired(s.flurry) {
		compared = d.book(asSent).apart(s, d.crowd, l) || compared
	}
	if now.Sub(d.stirred) >= apart {
		s.at, s.sums = now, d.sums
		compared = d.book(asAnswered).apart(s, d.crowd.Add(unseen), l) || compared
	}
	if !compared || d.reported || now.Before(d.until) {
		return 0, false, false
	}
	if d.compared++; d.compared%every != 0 {
		return 0, false, false
	}
	best, known := d.best(current)
	d.reported = best != current
	return best, d.reported, known
}

// book is that of the balances of an instant. The caller holds d.mu.
func (d *doubt) book(i int) *falls {
	if d.books[i] == nil {
		d.books[i] = new(falls)
	}
	return d.books[i]
}

// followed notes that the rule which was reported is in force now.
func (d *doubt) followed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reported, d.strikes = false, 0
}

// struck takes in a refusal at now that the use of this budget does not explain. It
// reports whether a rule that is followed must end.
func (d *doubt) struck(now time.Time) (end bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.strikes++; d.strikes < 2 {
		return false
	}
	d.books, d.strikes, d.until = [books]*falls{}, 0, now.Add(law.Forgotten)
	return true
}

// best is the rule with the least median error. It must explain what it saw to a
// sixth of the usual fall, and twice as well as the current one: prompts are
// estimates, and the refill of a sliding window is not known. Of rules that explain
// it about as well the one counts that charges most.
//
// known says that the rule which it returns explains them.
func (d *doubt) best(current estimate.Charge) (best estimate.Charge, known bool) {
	best = current
	m, want, ok := d.book(inOrder).last(pairs, 2)
	if ok {
		for _, r := range byPrice {
			if (best == current && m[r] < m[best] || m[r]*4 < m[best]*3) && m[r]*2 < m[current] && m[r] <= want[r]/6 {
				best = r
			}
		}
	}
	if best != current {
		return best, true
	}
	return d.less(current), ok && m[best] <= want[best]/6
}

// settles reports whether balances that are apart show that the provider charges what calls
// reserve, and gives back what is not used: no other rule is near. After so many asks it
// looks no more: calls from before a limit was learned are over by then.
func (d *doubt) settles() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked++; d.asked > asks {
		return false
	}
	for _, i := range [...]int{asSent, asAnswered} {
		const r = estimate.ChargeSettle
		if d.books[i] == nil {
			continue
		}
		m, want, ok := d.books[i].last(few/2, 4)
		if ok && m[r] <= want[r]/6 && m[r]*4 < min(m[estimate.ChargeEstimate], m[estimate.ChargeActual], m[estimate.ChargePrompt]) {
			return true
		}
	}
	return false
}

// less is the next rule that charges less than the current one, if balances that are
// apart show that the current one charges too much. Three of four pairs must show it, and
// no rule that reserves may be near on half of them under either refill: of a window in
// bursts, the wrong refill made three of four pairs speak against a rule that foretold most
// of them to ten tokens.
func (d *doubt) less(current estimate.Charge) estimate.Charge {
	if current == estimate.ChargeActual {
		m, want, ok := d.book(asSent).last(pairs, 4)
		if ok && m[estimate.ChargePrompt]*2 < m[current] && m[estimate.ChargePrompt] <= want[estimate.ChargePrompt]/6 {
			return estimate.ChargePrompt
		}
	}
	if current != estimate.ChargeSettle && current != estimate.ChargeEstimate {
		return current
	}
	for _, i := range [...]int{asSent, asAnswered} {
		m, want, ok := d.book(i).last(few, 4)
		near := d.book(i).nearest(few)
		reserved := min(near[estimate.ChargeSettle], near[estimate.ChargeEstimate])
		free := min(m[estimate.ChargeActual], m[estimate.ChargePrompt])
		if ok && free*4 < reserved && free <= want[estimate.ChargeActual]/6 {
			return estimate.ChargeActual
		}
	}
	return current
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
