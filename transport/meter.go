package transport

import (
	"net/http"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/internal/refusal"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/usage"
)

// meter is the inner face of a Transport, below the retry layer: it sees every
// attempt on the wire.
type meter Transport

func (m *meter) RoundTrip(req *http.Request) (*http.Response, error) {
	t := (*Transport)(m)
	c := callFrom(req.Context())
	if req.Context().Err() != nil { // since it was admitted
		closeBody(req)
		return nil, ended(req.Context())
	}
	c.ready = false
	c.status, c.told, c.no = 0, false, nil
	c.wire.begin(c.account.open)
	c.attempts++
	c.sent = time.Now()
	c.sums = t.doubt.sending(&c.priced)
	t.budget.use(c.sent, c.cost)

	resp, err := t.base.RoundTrip(req)
	if err != nil {
		c.wire.failed(err)
	}
	left := untold
	switch {
	case resp != nil && err == nil:
		if resp.Request == nil {
			resp.Request = req
		}
		c.status = resp.StatusCode
		left = t.hear(c, resp)
	case c.unsent():
		t.doubt.refused(&c.priced)
	}
	if f := t.o.Trace.Answered; f != nil {
		f(Attempt{
			Request: c.req, N: c.attempts, Status: c.status, Err: err,
			Duration: time.Since(c.sent), Quota: left,
		})
	}
	return resp, err
}

// CloseIdleConnections closes the idle connections of the base, if it can.
func (m *meter) CloseIdleConnections() { (*Transport)(m).CloseIdleConnections() }

// hear takes in a response header: it lowers credit, follows limits, and
// pauses the budget. That must not wait for the body, which may last. It
// returns what the header says is left.
func (t *Transport) hear(c *call, resp *http.Response) Quota {
	if !c.refused() && !headers.Any(resp.Header) {
		t.budget.answered(c.sent)
		return untold
	}
	i := headers.Parse(resp.Header, headers.Options{Status: resp.StatusCode, Dialect: t.profile.Dialect})
	if c.told = i.Applies && i.NotBefore.OK; c.told {
		defer t.pause(c, i.NotBefore.D) // after what is learned, and also if a hook panics
	}
	var own, uncharged limit.Cost
	if c.refused() {
		c.no = &refused{info: i}
		uncharged = t.back(c)
		t.doubt.refused(&c.priced)
		t.budget.use(c.sent, minus(limit.Cost{}, c.cost))
	} else {
		t.budget.answered(c.sent)
		own = c.cost
		if c.priced.charge == estimate.ChargeActual {
			own.Output = 0 // not produced yet
		}
	}
	if t.profile.RemainingAfter {
		c.account.open.Sent() // the balance is that of this moment
	}
	var readings []reading
	if !t.profile.Foreign {
		readings = t.budget.learn(&i, own, t.profile.Linear)
	}
	for _, r := range readings {
		if c.account.open.Lower(r.limit.Name, r.remaining, uncharged) {
			if f := t.o.Trace.Lowered; f != nil {
				f(c.req, r.limit.Name, r.remaining)
			}
		}
		t.question(c, r)
	}
	return left(&i)
}

// question asks whether what a token limit has left fits the charge rule.
func (t *Transport) question(c *call, r reading) {
	if r.unit != t.budget.shape.tokens || r.limit.Rate.Window != time.Minute || c.refused() {
		return
	}
	now := estimate.Charge(t.charge.Load())
	seen, doubted := t.doubt.saw(c.sent, c.sums, r.remaining, r.limit, now)
	if !doubted {
		return
	}
	if f := t.o.Trace.Doubted; f != nil {
		f(now.String(), seen.String())
	}
	if t.o.FollowRule {
		t.charge.Store(uint32(seen))
	}
}

func (t *Transport) pause(c *call, d time.Duration) {
	t.budget.limiter.Pause(d)
	t.paused(c, d)
}

func (t *Transport) paused(c *call, d time.Duration) {
	if f := t.o.Trace.Paused; f != nil {
		f(c.req, d)
	}
}

// refuse ends an attempt that was refused for its rate, as the provider charges
// it: nothing leaves for d, and after that there is what the refused call needs
// and nothing beyond, whoever takes it. A refusal that has nothing to do with
// the balance (no credit on the account, a request too large, the provider's
// own overload) drains nothing.
func (t *Transport) refuse(c *call, d time.Duration) {
	v := &c.no.verdict
	if v.Known && v.Class != refusal.RateLimit {
		t.giveBack(c)
		return
	}
	more := t.budget.patience(c.sent)
	if d = max(d, more); d > 0 && (!c.told || more > c.no.info.NotBefore.D) {
		t.budget.limiter.Pause(d)
		defer t.paused(c, d) // once the call has given back: a hook may panic
	}
	d = max(d, c.no.info.NotBefore.D)
	concerned := t.budget.refused(c.sent, c.cost, d, v.Dimension, &c.no.info)
	// Before the call gives back, so that nobody takes what is still there, and
	// after: many that are refused at once would each add to what is kept.
	keep := c.cost
	if t.profile.Rule.RefusedCount {
		keep = limit.Cost{Requests: c.cost.Requests}
	}
	back := t.back(c)
	t.budget.drain(concerned, minus(keep, back), d)
	t.giveBack(c)
	t.budget.drain(concerned, keep, d)
}

// giveBack ends an attempt that was refused for its rate.
func (t *Transport) giveBack(c *call) {
	switch t.back(c) {
	case limit.Cost{}:
		c.account.spent()
	case c.cost:
		c.account.unsent()
	default:
		c.account.settle(0, 0)
	}
}

// back is what an attempt that was refused for its rate is not charged.
func (t *Transport) back(c *call) limit.Cost {
	back := c.cost
	switch {
	case t.profile.Rule.RefusedCount:
		back = limit.Cost{}
	case !t.profile.RefusedFree:
		back.Requests = 0
	}
	return back
}

// lastWord takes in what only the body said: a wait in a refusal that was handed
// over without having been looked at, or in an error inside a stream. A wait
// that a header named, or that the retry layer found, has been heard already.
func (t *Transport) lastWord(c *call, r *usage.Result) {
	if v := r.Refusal; v != nil && v.Wait > 0 && !c.told && !t.ignoresBodyWait() {
		t.pause(c, v.Wait)
	}
}

func (t *Transport) ignoresBodyWait() bool {
	return t.o.Retry.IgnoreBodyWait || t.profile.IgnoreBodyWait
}

// resetHint is the wait for a refusal that names none, neither in header nor
// in body: the longest reset among the dimensions known to be exhausted.
func (t *Transport) resetHint(resp *http.Response) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests {
		return 0
	}
	body := bodyOf(resp)
	i := headers.Parse(resp.Header, headers.Options{
		Status: resp.StatusCode, Now: time.Now(), Dialect: t.profile.Dialect, Body: body,
	})
	v := refusal.Classify(resp.StatusCode, body)
	if c := callFrom(resp.Request.Context()); c != nil && c.no != nil {
		c.no.verdict = v
	}
	if i.NotBefore.OK || i.BodyWait.OK || v.Wait > 0 {
		return 0
	}
	if i.BodyHeaders != nil {
		return i.BodyHeaders.ResetWait().D
	}
	return i.ResetWait().D
}

// untold is the Quota of a header that says nothing.
var untold = Quota{-1, -1, -1, -1}

// left is what a header says is left, for people.
func left(i *headers.Info) Quota {
	n := func(q headers.Quota) int64 {
		if !q.Remaining.OK {
			return -1
		}
		return max(0, q.Remaining.N)
	}
	return Quota{n(i.Requests), n(i.Tokens), n(i.Input), n(i.Output)}
}
