package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/usage"
)

// A Call is what one call does to the ledger, from its price to its settlement.
// It holds the reservation of the attempt on the wire, and each reservation gets
// exactly one end. The order of its methods:
//
//	Open ─▶ Admit ─▶ Leave ─▶ Pass or Hear ─▶ Refuse, End or Settle
//	          ▲                                   │
//	          └───────── AdmitAgain ──────────────┘
//
// A refused attempt does not hold its tokens for the next one. Many that were
// refused together would then come back together, and only one of them would
// find what it needs. The next attempt takes its tokens again, in line. The
// budget was drained so that the first finds just enough and the line paces the
// others.
//
// One goroutine at a time may use a Call. The zero Call is ready for Open.
type Call struct {
	path    *Path
	scope   *Scope // the innermost of path
	watch   Observer
	price   Price
	cost    limit.Cost
	who     Who
	spend   *spend            // of the tenant's day and month
	open    limit.Reservation // of the attempt; may be of any ledger, and so is not compared
	charged limit.Cost        // what the ledger keeps of the call so far

	// The attempt on the wire, or the last one.
	sent       time.Time
	number     uint64        // of all attempts of the budget
	arrival    limit.Cost    // what the provider charged it on arrival, as far as it was entered
	marks      *marks        // nil is none
	later      []reading     // of its header, to be taken in with its settlement
	sums       predictions   // of the charge rules, when it left
	flurry     uint64        // in which its attempt left, 0 after the end: see doubt.stir
	unmade     int64         // output reserved, until the end
	under      int64         // the same of all attempts, its own too, when it left
	others     int           // attempts under way when it left
	pace       float64       // at which attempts left then: see doubt.pace
	heard      time.Duration // from then until its header came
	wait       time.Duration // that its header named, if named is set
	refusals   int           // for the rate, of all its attempts
	refusedBy  *Scope        // what the last refusal spoke of; nil is the innermost
	holds      bool          // an attempt holds open
	named      bool          // its header named a wait, and everybody waits for it
	noRequests bool          // its header left no request
	busy       bool          // the server failed, or had no capacity
	fitted     bool          // its price was cut to what a limit admits, and stays so
	repriced   bool          // Price was asked since the last grant
	begun      bool          // it left, and has not ended in the books of ends
}

// An Observer hears what an answer changed. Its methods are called with no lock
// held, on the goroutine of the call.
type Observer interface {
	Lowered(dimension string, remaining int64)
	Paused(limit.Pause) // By and Why say who asked for it, and for what reason
	LimitChanged(old, new limit.Limit)
	LawChanged(old, new limit.Limit)
	Doubted(rule, seen estimate.Charge) (follow bool) // follow changes the rule
}

// Open prices a call on a path. r is nil for a call that no model runs for, such as
// one without a body. It counts as that many requests, 1 at least.
func (c *Call) Open(p *Path, w Observer, r *estimate.Request, requests int64) {
	p.start()
	s := p.inner
	c.path, c.scope, c.watch = p, s, w
	if r != nil {
		rule, atEnd := s.rules(r, time.Now)
		if p.chargesAtEnd() {
			rule = chargedAtEnd(rule)
		}
		s.prices.price(&c.price, r, rule)
		c.price.atEnd = atEnd
	}
	c.cost = c.price.Cost()
	c.cost.Requests = max(1, requests)
}

// Cost is what each attempt of the call takes.
func (c *Call) Cost() limit.Cost { return c.cost }

// Charged is what the ledger keeps of the call so far: also of the attempt on the
// wire, at its price.
func (c *Call) Charged() limit.Cost { return c.charged }

// Prompt reports whether the call has a body, so that a model may run.
func (c *Call) Prompt() bool { return c.price.prompt }

// Profile is that of the account.
func (c *Call) Profile() *profile.Profile { return c.path.Profile() }

// Between reports whether no attempt holds anything.
func (c *Call) Between() bool { return !c.holds }

// Admit waits in line for the first attempt. Errors are those of
// [limit.Limiter.Admit].
func (c *Call) Admit(ctx context.Context, now time.Time) error {
	cost, largest := c.path.fit(c.cost, c.price.stated)
	c.fitted = cost != c.cost
	c.cut(cost)
	c.scope.touch()
	c.path.account.touch()
	if largest {
		c.path.ask(now, c.cost)
	}
	if c.price.prompt {
		c.path.begin()
	}
	return c.admit(ctx, now, false)
}

// AdmitAgain waits at the head of the line for a further attempt. A call that was itself
// refused more than twice waits behind the others, if the scope has refused again and
// again. Otherwise a call that is always refused would go first after each pause and
// bring the next pause. Calls that were refused less often keep their place: in a long
// line some were refused at its end once more, and failed after ten minutes.
func (c *Call) AdmitAgain(ctx context.Context, now time.Time) error {
	if c.prices() {
		c.reprice()
	}
	return c.admit(ctx, now, c.refusals <= probeFrom || !c.blamed().inStreak())
}

// Forecast is what the call would wait if it came at now, and for what.
func (c *Call) Forecast(now time.Time) limit.Forecast {
	c.cost, _ = c.path.fit(c.cost, c.price.stated)
	c.plan()
	if b := c.path.budget.beside; b != nil && c.spend != nil {
		f := b.Forecast(c.asksBeside())
		for c.cutSpend(f.Err) {
			f = b.Forecast(c.asksBeside())
		}
		if f.Err != nil {
			return f
		}
	}
	f := c.scope.ledger.Forecast(c.asks(false))
	for c.cutGuess(f.Err) || c.cutSpend(f.Err) {
		f = c.scope.ledger.Forecast(c.asks(false))
	}
	return f
}

// A Who says for whom a call is made, and how. The zero value of Who means the
// common tenant, interactive, ready to wait.
type Who struct {
	// Tenant is the name of a scope: [Budget.TenantScope].
	Tenant string
	Class  limit.Class
	Fast   bool // it does not wait: what would have to is refused
}

// For says for whom the call is made. It comes after Open and before Admit.
func (c *Call) For(w Who) { c.who = w }

// asks is what the call asks of the ledger.
func (c *Call) asks(first bool) limit.Ask {
	a := limit.Ask{
		Cost: c.cost, Likely: c.likely(c.cost, &c.price),
		Scopes: c.path.names, Tenant: c.who.Tenant, Class: c.who.Class, First: first, Spend: c.spend.asked(),
	}
	if c.prices() {
		a.Pricer = (*pricer)(c)
	}
	return a
}

// likely is what a call of that cost and price will probably cost in the end.
func (c *Call) likely(cost limit.Cost, p *Price) limit.Cost {
	return limit.Cost{Requests: cost.Requests, Input: cost.Input, Output: min(p.likely, cost.Output)}
}

// prices reports whether what answers tell changes the price of the call.
func (c *Call) prices() bool { return c.price.prompt && !c.fitted }

// reprice prices the call by what answers have taught so far.
func (c *Call) reprice() {
	c.again(&c.price)
	c.cost.Input, c.cost.Output = c.price.input, c.price.output
}

// again prices p anew, by the rule that was found meanwhile.
func (c *Call) again(p *Price) {
	if c.path.chargesAtEnd() {
		p.rule = chargedAtEnd(p.rule)
	}
	c.scope.prices.again(p)
}

// A pricer is a Call that waits in line. The ledger holds its lock when it asks: no
// lock of a scope may be taken here.
type pricer Call

func (p *pricer) Price() (cost, likely limit.Cost) {
	c := (*Call)(p)
	price := c.price
	c.again(&price)
	c.repriced = true
	cost = limit.Cost{Requests: c.cost.Requests, Input: price.input, Output: price.output}
	return cost, c.likely(cost, &price)
}

// asksBeside is what the call asks of the limiter beside a foreign ledger.
func (c *Call) asksBeside() limit.Ask {
	return limit.Ask{Tenant: c.who.Tenant, Spend: c.spend.asked()}
}

// admit takes what an attempt costs, of the tenant's day and month too: all in one
// decision of the ledger, or nothing. What a foreign ledger does not know of is taken
// before, and given back if it refuses.
func (c *Call) admit(ctx context.Context, now time.Time, first bool) error {
	c.plan()
	if b := c.path.budget.beside; b != nil && c.spend != nil {
		r, err := b.TryAdmit(c.asksBeside())
		for c.cutSpend(err) {
			r, err = b.TryAdmit(c.asksBeside())
		}
		if err != nil {
			return err
		}
		c.spend.beside = r
	}
	r, err := c.ask(ctx, first)
	for c.cutGuess(err) || c.cutSpend(err) {
		r, err = c.ask(ctx, first)
	}
	if err != nil {
		c.spend.held().Return()
		return err
	}
	c.take(r)
	return nil
}

func (c *Call) ask(ctx context.Context, first bool) (limit.Reservation, error) {
	a := c.asks(first)
	if !c.who.Fast {
		return c.scope.ledger.Admit(ctx, a)
	}
	for {
		r, err := c.scope.ledger.TryAdmit(a)
		var e *limit.Error
		if err == nil || !errors.As(err, &e) || e.Dimension != "in-flight" || e.Scope != c.scope.name || !c.scope.another() {
			return r, err
		}
	}
}

// cutGuess cuts a guess to a limit that could never admit it, and reports whether
// the call may be asked for again. Path.fit has cut it to the limits of the account
// and the model before; those of a tenant, and those that a foreign ledger has, are
// met only when they refuse. The error does not name the unit: it is one in which
// the call costs what the limit was asked for.
func (c *Call) cutGuess(err error) bool {
	if err == nil {
		return false // before e, which is on the heap
	}
	var e *limit.Error
	if !errors.As(err, &e) || e.Reason != limit.ErrTooLarge || e.Capacity <= 0 {
		return false
	}
	for _, u := range [...]limit.Unit{limit.Tokens, limit.Output, limit.Input, limit.Requests} {
		if part(u, c.cost) != e.Cost {
			continue
		}
		if cost := cut1(c.cost, c.price.stated, u, e.Capacity); part(u, cost) <= e.Capacity {
			c.cut(cost)
			c.fitted = true
			return true
		}
	}
	return false
}

// cut sets what the call takes.
func (c *Call) cut(cost limit.Cost) {
	if c.cost = cost; c.price.prompt {
		c.price.input, c.price.output = cost.Input, cost.Output
	}
}

func (c *Call) take(r limit.Reservation) {
	if c.repriced { // while it waited
		c.repriced = false
		c.reprice()
		c.cut(r.Cost())
	}
	c.holds, c.open = true, r
	c.charged = plus(c.charged, c.cost)
}

// Leave notes that an attempt leaves at now. It returns the reservation, so that
// its Sent can be called again when the attempt has its connection.
func (c *Call) Leave(now time.Time) limit.Reservation {
	c.sent, c.named, c.wait, c.noRequests, c.busy, c.later = now, false, 0, false, false, nil
	c.number = c.path.budget.attempts.Add(1)
	c.open.Sent()
	if c.price.prompt && c.scope.prices.unsure() {
		c.open.Unsure()
	}
	c.notMade(c.cost.Output)
	c.sums, c.flurry, c.others, c.pace = c.scope.doubt.sending(now, &c.price)
	c.arrival = c.arrives()
	c.marks = c.path.leave(now, c.cost, c.arrival, c.marks)
	c.begun = true
	return c.open
}

// Stay takes back what Leave noted, for an attempt that did not leave after all.
func (c *Call) Stay() {
	c.scope.doubt.refused(c.sent, &c.price)
	c.over()
	c.becomes(c.sent, limit.Cost{})
}

// Busy notes, before Pass or Hear, that the answer is one of a server that failed or
// had no capacity. It does not show that the next call would be answered.
func (c *Call) Busy() { c.busy = true }

// Pass notes an answer that is no refusal and whose header says nothing of
// limits.
func (c *Call) Pass(now time.Time) {
	c.letIn(now)
	c.path.admitted(now, c.sent, c.number, c.busy)
	c.path.answered(c.busy)
	c.open.Passed()
}

// Hear takes in the header of an answer at now: it lowers credit, follows limits,
// and pauses everybody if the header orders that. refused is true if the answer
// refuses the attempt for its rate; [Call.Refuse] must follow.
func (c *Call) Hear(now time.Time, i *headers.Info, refused bool) {
	s := c.scope
	c.heard = now.Sub(c.sent)
	if c.named = i.Applies && i.NotBefore.OK; c.named {
		c.wait = i.NotBefore.D
		defer func() { // after what is learned, and also if the observer panics
			if refused {
				c.watch.Paused(s.pause(now, c.wait, named(c.wait))) // Refuse drains
			} else {
				c.Pause(now, c.wait)
			}
		}()
	}
	own, uncharged := c.cost, limit.Cost{}
	if refused {
		r := i.Requests.Remaining
		c.noRequests = r.OK && r.N <= 0
		own, uncharged = limit.Cost{}, c.back(Refused)
		s.doubt.refused(now, &c.price)
		c.path.use(now, c.sent, minus(limit.Cost{}, c.cost))
		c.becomes(now, limit.Cost{})
	} else {
		defer c.open.Passed()
		c.letIn(now)
		c.path.admitted(now, c.sent, c.number, c.busy)
		if c.price.rule.Charge == estimate.ChargeActual {
			own.Output = 0 // not produced yet
		}
	}
	m := c.marks
	if refused {
		m = nil // no evidence
	}
	defer c.path.answered(refused || c.busy)
	if s.profile.RemainingAfter {
		c.open.Sent() // the balance is that of this moment
		if !refused {
			c.arrive(now, c.cost)
		}
	} else if c.path.readsAtEnd() {
		c.open.Sent()
	}
	if s.profile.Foreign {
		return
	}
	left, changes := c.path.learn(now, attempt{c.number, c.sent}, i, own, m)
	c.tell(changes)
	asked := refused // of the limits that one answer names one is asked: the others are copies of it
	for _, r := range c.ordered(left, refused) {
		if r.atEnd && !refused {
			c.later = append(c.later, r)
		} else {
			c.lower(r, uncharged, refused)
		}
		if !asked && r.unit == s.shape.tokens && r.limit.Rate.Window == time.Minute {
			asked = true
			c.question(now, r)
		}
	}
}

// ordered puts the readings of requests first where the others are of the end of the
// call: those are of its sending, and the note of that moves.
func (c *Call) ordered(left []reading, refused bool) []reading {
	if c.price.atEnd && !refused {
		slices.SortStableFunc(left, func(a, b reading) int { return cmp.Compare(min(a.unit, 1), min(b.unit, 1)) })
	}
	return left
}

// lower hands a reading to the ledger.
func (c *Call) lower(r reading, uncharged limit.Cost, refused bool) {
	if c.price.atEnd && !refused && r.unit != limit.Requests {
		c.open.Made()
	}
	if c.open.LowerIn(r.scope.name, r.limit.Name, r.remaining+c.slack(&r, refused), uncharged) {
		c.watch.Lowered(r.limit.Name, r.remaining)
	}
}

// slack is the part of a limit's margin that need not be held back from its balance.
// Output that calls under way have reserved, and that is charged when it is made, is held
// back already: both together were 2.2 to 2.5 s of the rate at Groq. Half of the margin
// stays: without it one call of 10,000 was refused, and nobody waited shorter. So does what
// the rounding of the balance hides.
//
// A limit on output alone is charged with nothing else. All that was under way when the
// balance was read is to come off it, so slack may be below zero. A bucket that stays full
// until the first answers end does not refill meanwhile, and ours does. In 20 runs at
// Anthropic 4 calls were refused when the first minute's credit was used up, and none now.
// Of tokens together the same made a median wait of 1.8 s one of 2.4 s at Groq.
func (c *Call) slack(r *reading, refused bool) int64 {
	if refused || r.unit != limit.Tokens && r.unit != limit.Output || c.price.rule.Charge != estimate.ChargeActual ||
		c.path.Profile().RemainingAfter || c.scope.charge.Load() > 0 {
		return 0 // a rule that balances taught is not that exact: two calls of 1,000 were refused
	}
	there := c.scope.unmade.Load()
	if c.price.atEnd || r.limit.ReadAt == limit.ReadAtAnswer {
		there -= c.unmade // it is made
	}
	if r.unit == limit.Tokens {
		return max(0, min((r.limit.Margin-r.hidden)/2, there))
	}
	if r.limit.ReadAt != limit.ReadAtAnswer {
		there = c.under
	}
	return max(0, min(r.limit.Margin-r.hidden, there)) - there
}

// question asks whether what a token limit has left fits the charge rule.
func (c *Call) question(now time.Time, r reading) {
	if c.path.chargesAtEnd() {
		return // no rule of the doubt's is that
	}
	s := c.scope
	c.heedCharge(now)
	current := s.inForceFor(&c.price)
	refill := limit.Rate{N: r.most, Window: r.limit.Rate.Window} // a cut rate is ours, not the provider's
	seen, doubted, known := s.doubt.saw(now, sample{at: c.sent, remaining: r.remaining, most: r.most, sums: c.sums, flurry: c.flurry, own: c.price.arrival(), set: true}, refill, current)
	if doubted {
		s.note(noteCharge, strconv.Itoa(int(seen)+1))
	}
	if doubted && c.watch.Doubted(current, seen) {
		s.charge.Store(uint32(seen) + 1)
		s.doubt.followed()
		s.rule(now, true)
		c.path.settle(false)
		if slices.Index(byPrice[:], seen) < slices.Index(byPrice[:], current) {
			s.uncut(now)
		}
	} else if known && !doubted && !s.ruled.Load() {
		s.rule(now, false)
	}
	if !doubted && current == estimate.ChargeSettle && !s.settles.Load() && s.doubt.settles() {
		c.path.settle(true)
	}
}

// Pause holds everybody of the innermost scope for d.
func (c *Call) Pause(now time.Time, d time.Duration) {
	c.together(now, d)
	c.watch.Paused(c.path.pause(now, d))
}

// blamed is the scope that the last refusal spoke of.
func (c *Call) blamed() *Scope {
	if c.refusedBy != nil {
		return c.refusedBy
	}
	return c.scope
}

// Waiting reports whether the header of the last answer named a wait, so that
// everybody waits already.
func (c *Call) Waiting() bool { return c.named }

// letIn notes that the attempt was let in, unless the server says that it is busy.
func (c *Call) letIn(now time.Time) {
	if !c.busy {
		c.scope.letIn(now, c.others, c.pace)
	}
}

// full reports whether a limit on calls at once explains a refusal. A wait or a limit
// with nothing left explains it otherwise.
func (c *Call) full(now time.Time, r *Refusal) bool {
	return !r.Named && !c.named && !c.noRequests && r.Dimension != "tokens" && r.Dimension != "input" && r.Dimension != "output" &&
		c.scope.full(now, c.sent, c.others, c.pace)
}

// kind is the kind of limit that refused: as the refusal says, or as its header shows.
func (c *Call) kind(r *Refusal) string {
	if r.Dimension == "" && c.noRequests {
		return "requests"
	}
	return r.Dimension
}

// namedIn is the wait that a refusal of the provider named, or 0.
func (c *Call) namedIn(r *Refusal) time.Duration {
	switch {
	case c.named:
		return c.wait
	case r.Named:
		return r.Wait
	}
	return 0
}

// Refuse ends an attempt that was refused for its rate. Nothing leaves until the
// wait is over. After that there is as much as the refused call needs and nothing
// beyond, for the first in line. What calls under way give back that was not charged
// is taken off first. Else 32 calls left at once after a wait of 43 s, on a sliding log
// that charges no output.
func (c *Call) Refuse(now time.Time, r Refusal) {
	if l, ok := c.scope.ledger.(interface{ Refused(limit.Reservation) }); ok && c.holds {
		l.Refused(c.open) // a ledger on paper counts them
	}
	if r.NotRate || c.full(now, &r) {
		c.path.failed(now)
		c.End(Refused)
		return
	}
	path := c.path.speaks(c.sent, &r)
	s := path.inner
	c.refusedBy = s
	c.refusals++
	more, again := s.patience(now, c.sent, c.number)
	d := max(r.Wait, more)
	wait := c.namedIn(&r)
	if s != c.scope && c.named { // the header held the model; the body says whom else
		d = max(d, c.wait-(now.Sub(c.sent)-c.heard))
		c.named = false
	}
	why := named(d)
	switch {
	case more >= r.Wait:
		why = fmt.Sprintf("it refused again and again, and named no wait above %v", r.Wait.Round(time.Millisecond))
	case c.named:
		why = named(c.wait)
	case !r.Named:
		why = "it refused for the rate"
	}
	// An observer hears of it once the call has given back, since it may panic.
	switch {
	case again && c.named: // without the jitter of this call: the others have their own
		defer c.watch.Paused(s.probe(now, max(c.wait-(now.Sub(c.sent)-c.heard), more), why))
	case again && d > 0:
		defer c.watch.Paused(s.probe(now, d, why))
	case d > 0 && (!c.named || more > c.wait):
		defer c.watch.Paused(s.pause(now, d, why))
	}
	if !c.named {
		c.path.failed(now) // a probe that was refused
	}
	d = min(max(d, c.wait), s.maxPause)
	concerned, changes := path.refused(now, c.sent, c.cost, d, wait, r.Dimension, c.noRequests, c.marks)
	if concerned == nil {
		if changes = append(changes, path.guess(now, c.cost, c.kind(&r), wait)...); len(changes) > 0 {
			concerned = path.learned()
		}
	}
	defer c.tell(append(changes, c.ended(now, limit.Cost{})...))
	// Drained before the call gives back, so that nobody takes what is still
	// there, and after: many that are refused at once would each add to what is
	// kept.
	keep := c.cost
	if s.profile.Rule.RefusedCount {
		keep = limit.Cost{Requests: c.cost.Requests}
	}
	drain(concerned, minus(keep, c.back(Refused)), c.owes(), d, true)
	c.End(Refused)
	drain(concerned, keep, c.owes(), d, false)
}

// End ends an attempt as the table of endings says. It does nothing if no
// attempt holds anything. [Call.Settle] is the end of an Answered one.
func (c *Call) End(e Ending) {
	if (e == Unknown || e == Overloaded) && !c.Between() {
		c.path.failed(time.Now())
	}
	if e == Free && !c.Between() {
		c.path.cleared(c.sent)
	}
	defer c.tell(c.ended(time.Now(), limit.Cost{})) // told last, as an observer may panic
	switch back := c.back(e); {
	case c.Between():
	case back == limit.Cost{}:
		c.open.Keep()
		c.spend.held().Keep()
		c.close(c.cost)
	case back == c.cost:
		c.open.Return()
		c.spend.held().Return()
		c.close(limit.Cost{})
	default:
		input, output := c.cost.Input-back.Input, c.cost.Output-back.Output
		c.settle(input, output, c.spend.spends(input, 0, output))
		if c.arrival != (limit.Cost{}) && back.Input|back.Output != 0 {
			c.becomes(c.sent, limit.Cost{Requests: c.arrival.Requests})
		}
	}
}

func (c *Call) back(e Ending) limit.Cost {
	p := c.path.Profile()
	return e.back(c.cost, &p.Rule, p.RefusedFree)
}

// Settle ends an attempt that was Answered, at now, with what the response
// reported.
func (c *Call) Settle(now time.Time, r *usage.Result) {
	if c.Between() {
		return
	}
	s := c.scope
	input, output, made := c.uses(r)
	changes := c.ended(now, c.chargedAtEnd(r)) // before those leave who wait for what comes back
	s.doubt.ended(now, &c.price, made)
	s.prices.learn(&c.price, r) // so that they are priced by it
	c.lowerLater(limit.Cost{Input: input - c.cost.Input, Output: output - c.cost.Output})
	c.settle(input, output, c.spend.used(r, input, output))
	charged := limit.Cost{Requests: c.arrival.Requests, Input: input, Output: output}
	wrong := minus(charged, c.arrival)
	c.arrival = charged
	changes = append(changes, c.path.settled(now, c.sent, wrong, limit.Cost{Input: input - c.cost.Input, Output: output - c.cost.Output})...)
	if r.Refusal == nil { // else Refuse may come yet
		c.marks.free()
		c.marks = nil
	}
	c.tell(changes) // last, as an observer may panic
}

// uses is what an answer is charged by the rule in force now, and the output it has made.
func (c *Call) uses(r *usage.Result) (input, output, made int64) {
	input, output = c.price.actual(r, &c.price.rule)
	made = c.price.used(r, limit.Cost{Input: input, Output: output})
	if c.path.chargesAtEnd() {
		end := c.chargedAtEnd(r)
		return end.Input, end.Output, made
	}
	if seen := c.scope.charge.Load(); seen > 0 { // learned since, perhaps
		p := c.price.under(learned(c.price.rule, estimate.Charge(seen-1)))
		input, output = p.actual(r, &p.rule)
	}
	return input, output, made
}

// chargedAtEnd is what an answer is charged if calls are charged when they end.
func (c *Call) chargedAtEnd(r *usage.Result) (cost limit.Cost) {
	rule := chargedAtEnd(c.price.rule)
	cost.Input, cost.Output = c.price.actual(r, &rule)
	return cost
}

// lowerLater takes in the balances that have the call's own charge in them, which was
// that much above its price.
func (c *Call) lowerLater(above limit.Cost) {
	for _, r := range c.later {
		if c.open.LowerIn(r.scope.name, r.limit.Name, r.remaining+part(r.limit.Unit, above), limit.Cost{}) {
			c.watch.Lowered(r.limit.Name, r.remaining)
		}
	}
	c.later = nil
}

// settle ends the reservation with the tokens that it really cost. Its request
// stays counted.
func (c *Call) settle(input, output int64, spent limit.Spend) {
	actual := limit.Cost{Requests: c.cost.Requests, Input: input, Output: output}
	if c.spend != nil {
		c.open.SettleSpent(actual, spent)
		c.spend.beside.SettleSpent(actual, spent)
	} else {
		c.open.Settle(actual)
	}
	c.close(actual)
}

// arrives is what the provider charges the call on arrival.
func (c *Call) arrives() limit.Cost {
	own := c.cost
	switch {
	case c.path.Profile().RemainingAfter:
		own.Input, own.Output = 0, 0
	case c.price.rule.Charge == estimate.ChargeActual:
		own.Output = 0 // not produced yet
	}
	return own
}

// arrive enters in the books of the laws what the provider has charged the call by
// now, and marks its place in them.
func (c *Call) arrive(now time.Time, own limit.Cost) {
	c.marks = c.path.enter(now, minus(own, c.arrival), c.marks)
	c.arrival = own
}

// becomes corrects at now what was entered of the call.
func (c *Call) becomes(now time.Time, own limit.Cost) {
	if diff := minus(own, c.arrival); diff != (limit.Cost{}) {
		c.path.correct(c.sent, now, diff)
		c.arrival = own
	}
}

// tell tells the observer of changes.
func (c *Call) tell(changes []change) {
	for _, ch := range changes {
		if ch.law {
			c.watch.LawChanged(ch.old, ch.new)
		} else {
			c.watch.LimitChanged(ch.old, ch.new)
		}
	}
}

func (c *Call) close(actual limit.Cost) {
	c.charged = plus(c.charged, minus(actual, c.cost))
	c.holds = false
	c.over()
}

// owes is what attempts under way, without this one, give back of a limit that did not
// charge it: the output that they reserve, if none is charged before it is made.
func (c *Call) owes() limit.Cost {
	if r := c.scope.inForceFor(&c.price); r != estimate.ChargeActual && r != estimate.ChargePrompt {
		return limit.Cost{}
	}
	return limit.Cost{Output: c.scope.unmade.Load() - c.unmade}
}

// notMade notes how much output the attempt has reserved.
func (c *Call) notMade(output int64) {
	c.under = c.scope.unmade.Add(output - c.unmade)
	c.unmade = output
}

// over ends what Leave noted, if it did: of the check of the charge rule, of output that
// is not made, and in the books of charges at the end.
func (c *Call) over() {
	c.notMade(0)
	if c.begun {
		c.ended(time.Now(), limit.Cost{})
	}
	if c.flurry > 0 {
		c.scope.doubt.gone()
		c.flurry = 0
	}
}

// ended ends the attempt in the books of charges at the end, once.
func (c *Call) ended(now time.Time, charged limit.Cost) []change {
	if !c.begun {
		return nil
	}
	c.begun = false
	return c.path.over(now, c.cost, charged, c.marks)
}

func plus(a, b limit.Cost) limit.Cost {
	return limit.Cost{Requests: a.Requests + b.Requests, Input: a.Input + b.Input, Output: a.Output + b.Output}
}

func minus(a, b limit.Cost) limit.Cost {
	return limit.Cost{Requests: a.Requests - b.Requests, Input: a.Input - b.Input, Output: a.Output - b.Output}
}
