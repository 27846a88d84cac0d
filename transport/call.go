package transport

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/internal/refusal"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/usage"
)

// A call is one request from its admission to its settlement. It is its own
// context, so that the meter below the retry layer finds it. Until the
// response is handed over the goroutine of RoundTrip uses it alone; after that
// only end touches it, once.
type call struct {
	context.Context // the request's
	t               *Transport
	req             *http.Request // the caller's
	out             http.Request  // the copy that is sent
	priced          priced
	cost            limit.Cost
	account         account

	prompted bool // it has a body; else no model runs, whatever the answer reports
	ready    bool // an attempt has been admitted and was not sent yet
	told     bool // the wait that the last answer names, if any, has been heard
	metered  bool // the response's body is read for usage

	// The attempt on the wire, or the last one.
	attempts int
	status   int // 0: no response
	wire     wire
	sent     time.Time
	no       *refused    // what it said, if it was a refusal
	sums     predictions // of the charge rules, when it left

	// What the header says of the body. Kept, as the caller may change the header.
	contentType, contentEncoding string

	// The body may be read on one goroutine and its end come on another.
	mu       sync.Mutex
	ended    bool
	complete bool         // the body was read to its end
	meter    *usage.Meter // nil until bytes come
	stop     func() bool  // ends the watch on the context
}

// refused is what a refusal said.
type refused struct {
	info    headers.Info
	verdict refusal.Verdict // of the body, if the retry layer looked at that
}

type callKey struct{}

// Value lets the meter find the call, and net/http its hooks; everything else
// is the caller's.
func (c *call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	if key == traceKey {
		return c.wire.trace(c.Context)
	}
	return c.Context.Value(key)
}

// String is for whoever prints a request's context. What the call carries, and
// the caller's own context, are nobody's business.
func (c *call) String() string { return "tripmeter call" }

// GoString is String, for %#v.
func (c *call) GoString() string { return c.String() }

func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// deciding is told by the retry layer that a further attempt was decided. The
// place in flight is free for the time of the wait.
func (t *Transport) deciding(e retry.Event) {
	c := callFrom(e.Request.Context())
	switch {
	case c.refused():
		c.no.verdict = e.Verdict
		t.refuse(c, e.Wait)
	case c.free():
		c.account.settle(0, 0)
	case c.unsent():
		c.account.unsent()
	default:
		c.account.spent()
	}
	c.told = true // the retry layer has looked at the body too
}

// admit charges a further attempt at the head of the line, before it leaves.
// If it may not go, the retry layer returns the last response.
func (t *Transport) admit(ctx context.Context, e retry.Event) error {
	c := callFrom(e.Request.Context())
	r, err := t.budget.limiter.AcquireFirst(ctx, c.cost)
	if err != nil {
		return t.notSent(c.req, err)
	}
	c.ready = true
	c.account.take(r, c.cost)
	return nil
}

// final takes in a refusal that is not tried again; the others have been taken
// in when their next attempt was decided. It does not wait for the body, of
// which the retry layer has read what matters: whoever stands in line must not
// meet credit that the provider does not have.
func (t *Transport) final(c *call) {
	if !c.refused() || c.ready || c.account.waiting() {
		return
	}
	d := c.no.verdict.Wait
	if d > 0 && !c.told && !t.ignoresBodyWait() {
		c.told = true
		t.budget.limiter.Pause(d)
		defer t.paused(c, d) // a hook may panic
	} else {
		d = 0
	}
	t.refuse(c, d)
}

// refused reports whether the provider refused the last attempt for its rate.
func (c *call) refused() bool { return c.status == http.StatusTooManyRequests }

// free reports whether the last attempt was answered without the model having
// run: a refusal for its rate, or another answer that is no success and no
// failure of the server.
func (c *call) free() bool {
	return c.status != 0 && c.status < 500 && (c.status < 200 || c.status >= 300)
}

// unsent reports whether the last attempt never left.
func (c *call) unsent() bool { return c.status == 0 && c.wire.unsent() }

// show gives the meter a piece of the body.
func (c *call) show(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || !c.metered || len(p) == 0 {
		return
	}
	if c.meter == nil {
		c.meter = meters.Get().(*usage.Meter)
		c.meter.Reset(c.contentType, c.contentEncoding)
	}
	c.meter.Write(p)
}

// meters are used again: one is larger than everything else that a call needs.
var meters = sync.Pool{New: func() any { return new(usage.Meter) }}

// over reports whether the call has been settled.
func (c *call) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// end settles the call when its body ends, or when there is none. It does so
// once, whatever comes first of EOF, Close, an error, the context's end, and
// the collector; and it reports whether this was the one.
func (c *call) end(complete bool) bool {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return false
	}
	c.ended, c.complete = true, complete
	if c.stop != nil {
		c.stop()
	}
	var r usage.Result
	if c.meter != nil {
		r = c.meter.Close()
		meters.Put(c.meter)
		c.meter = nil
	}
	c.mu.Unlock()
	c.settle(&r)
	return true
}

// cut ends the call of a body that nobody reads to its end.
func (c *call) cut() { c.end(false) }

// settle gives the call its one ending in the ledger:
//
//	never dialled                       request and tokens returned
//	2xx, usage seen                     tokens settled to the rule's actual
//	2xx, no usage, or cut short         the estimate stands, at least what was seen
//	429                                 tokens returned, unless refused calls count
//	other 1xx, 3xx, 4xx                 tokens returned: the model did not run
//	a request without a body            none were taken, and none are
//	5xx, time-out, reset after sending  tokens kept
//
// and the request kept in all but the first. A call that ends between two
// attempts ends as its last attempt did.
func (c *call) settle(r *usage.Result) {
	t := c.t
	reserved := c.account.charged
	if f := t.o.Trace.Settled; f != nil {
		defer func() { // also if another hook panics
			f(Settlement{
				Request: c.req, Reserved: reserved, Charged: c.account.charged, Usage: tell(r),
				Attempts: c.attempts, Status: c.status, Complete: c.complete,
			})
		}()
	}
	switch {
	case c.account.waiting(): // the last attempt has had its ending
	case c.ready || c.unsent():
		c.account.unsent()
	case c.refused():
		t.refuse(c, 0)
	case c.free() || !c.prompted:
		c.account.settle(0, 0)
	case c.status == 0 || c.status >= 500:
		c.account.spent()
	default:
		// The end of the connection is no proof that an answer is whole: a
		// proxy ends a stream politely when its own connection was cut.
		whole := r.Complete
		rule := t.rule(c.priced.model)
		in, out := t.prices.actual(&c.priced, r, whole, rule)
		c.account.settle(in, out)
		t.prices.learn(&c.priced, r, whole)
		rule.Charge = estimate.ChargeSettle // what was used, whatever is charged
		usedIn, usedOut := t.prices.actual(&c.priced, r, whole, rule)
		t.doubt.ended(&c.priced, usedIn, usedOut)
		if in != c.cost.Input || out != c.cost.Output {
			t.budget.use(time.Now(), limit.Cost{Input: in - c.cost.Input, Output: out - c.cost.Output})
		}
	}
	t.lastWord(c, r)
}
