package transport

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/usage"
)

// A call is one request from its admission to its settlement. It is its own
// context, so that the meter below the retry layer finds it. Until the response
// is handed over, the goroutine of RoundTrip uses it alone. After that only end
// touches it, once.
type call struct {
	context.Context // the request's
	trace           *Trace
	req             *http.Request // the caller's
	out             http.Request  // the copy that is sent
	books           budget.Call   // what it holds in the ledger
	ahead           *ahead        // of the request's body; nil if none was read ahead
	followRule      bool          // Options.FollowRule
	outputCap       int64         // that the request states, in tokens; 0 is none
	creates         bool          // another arrival makes another lasting thing
	asked           bool          // the header of the last answer asks for another attempt, whatever the status
	read            bool          // the retry layer has read the last answer's body

	// The attempt on the wire, or the last one.
	attempts int
	status   int // 0: no response
	wire     wire
	sent     time.Time
	order    retry.Order // what the header of its response says

	// What the header says of the body. Kept, as the caller may change the header.
	contentType, contentEncoding string
	usage                        http.Header // that states what the call cost; else nil

	// The body may be read on one goroutine and its end come on another.
	mu    sync.Mutex
	state state
	meter *usage.Meter  // nil until bytes come
	first time.Duration // Settlement.FirstChunk
	stop  func() bool   // ends the watch on the context
}

// A state is how far a call has come.
type state uint8

const (
	queued   state = iota // in line for its first attempt
	admitted              // an attempt holds its cost, and was not sent yet
	sent                  // that attempt is on the wire, or has its answer
	between               // that attempt has had its ending in the ledger
	metered               // the response was handed over; its body is read for usage
	passed                // the response was handed over; its body is not read
	ended                 // settled
)

// steps are the states that may follow each state.
//
//	queued ─▶ admitted ─▶ sent ─▶ metered or passed ─▶ ended
//	             ▲          │         ▲
//	             ╰─ between ◀─────────╯
//
// A call that was admitted may end from every state.
var steps = [...][]state{
	queued:   {admitted},
	admitted: {sent, between, ended},
	sent:     {between, metered, passed, ended},
	between:  {admitted, metered, passed, ended},
	metered:  {ended},
	passed:   {ended},
	ended:    {},
}

var stateNames = [...]string{"queued", "admitted", "sent", "between attempts", "metered", "passed", "ended"}

// step moves the call on.
func (c *call) step(to state) {
	for _, s := range steps[c.state] {
		if s == to {
			c.state = to
			return
		}
	}
	panic(fmt.Sprintf("transport: a call cannot go from %s to %s", stateNames[c.state], stateNames[to]))
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

// String is what printing a request's context shows: nothing of the call or of
// the caller's own context.
func (c *call) String() string { return "tripmeter call" }

// GoString is String, for %#v.
func (c *call) GoString() string { return c.String() }

func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// observer is the call as the budget sees it: it calls the hooks.
type observer call

func (o *observer) Lowered(dimension string, remaining int64) {
	if f := o.trace.Lowered; f != nil {
		f(o.req, dimension, remaining)
	}
}

func (o *observer) Paused(p limit.Pause) {
	if f := o.trace.Paused; f != nil {
		f(o.req, p)
	}
}

func (o *observer) LimitChanged(old, new limit.Limit) {
	if f := o.trace.LimitChanged; f != nil {
		f(old, new)
	}
}

func (o *observer) LawChanged(old, new limit.Limit) {
	if f := o.trace.LawChanged; f != nil {
		f(old, new)
	}
}

func (o *observer) Doubted(rule, seen estimate.Charge) (follow bool) {
	if f := o.trace.Doubted; f != nil {
		f(rule.String(), seen.String())
	}
	return o.followRule || o.books.Profile().Name == profile.Unknown().Name
}

// ending is how the last attempt ended.
func (c *call) ending() budget.Ending {
	return budget.EndingOf(c.status, !c.wire.unsent(), c.books.Prompt())
}

// again ends the last attempt in the ledger, as another one follows. Its place in
// flight is free for the time of the wait.
func (c *call) again(r *retry.Refusal) {
	c.read = r.Read
	if c.state == sent {
		c.step(between)
		c.books.End(c.ending())
	}
}

// refused takes in that the server refused the last attempt. wait is how long
// until the next one, 0 if there is none. What the ledger must know of a refusal
// does not wait until the caller has read the body: others in line must not meet
// credit that the provider does not have.
//
//	for the rate, and 429 without another word   everybody waits, and credit is drained
//	overload                                     everybody rests; nothing else
//	an allowance that is used up until a time    everybody waits for it
//	of the account, and anything else            everybody waits only if 503 names a wait
func (c *call) refused(r *retry.Refusal, wait time.Duration) {
	c.read = r.Read
	now := time.Now()
	named := r.Named && r.Wait > 0
	if wait == 0 {
		wait = r.Wait
	}
	switch rate := c.status == http.StatusTooManyRequests; {
	case r.Known && r.Class == retry.ClassOverload, !r.Known && overloaded(c.status):
		if !c.books.Waiting() {
			c.books.Overloaded(now, wait, named)
		}
		if rate {
			c.step(between)
			c.books.Refuse(now, budget.Refusal{NotRate: true})
		}
	case rate, r.Known && r.Class == retry.ClassRateLimit:
		c.step(between)
		notRate := r.Known && r.Class != retry.ClassRateLimit
		switch {
		case notRate:
			c.untilReset(now, r)
		case wait == 0 && !r.Named: // the last attempt, and no wait is planned
			wait = shortWait
		}
		c.books.Refuse(now, budget.Refusal{Wait: wait, Named: named, Dimension: r.Dimension, Scope: r.Scope, ScopeSure: r.ScopeSure, NotRate: notRate})
	case r.Known && r.Class == retry.ClassQuota:
		c.untilReset(now, r)
	case named && !c.books.Waiting() && c.status == http.StatusServiceUnavailable:
		c.books.Pause(now, r.Wait)
	}
}

// untilReset holds everybody for an allowance that is used up and will be there
// again. It is no use for an account without money, whose calls get the provider's
// own answer.
func (c *call) untilReset(now time.Time, r *retry.Refusal) {
	if r.Class == retry.ClassQuota && !r.Account {
		c.usedUp(now, budget.Allowance{Until: r.Reset, Window: r.Window, Wide: r.Wide, Dimension: r.Dimension, Scope: r.Scope, ScopeSure: r.ScopeSure}, r.Wait)
	}
}

// usedUp holds everybody for an allowance. wait is what the provider asks for beside
// a reset. A short one with an allowance of a day is a backoff and no reset: Gemini
// sends seconds.
func (c *call) usedUp(now time.Time, a budget.Allowance, wait time.Duration) {
	if a.Window == 0 || wait >= time.Minute {
		a.Until = max(a.Until, wait)
	}
	if !c.books.Waiting() || a.Wide || a.Until != wait {
		c.books.UsedUp(now, a)
	}
}

// overloaded reports whether a status speaks of the provider's own capacity.
func overloaded(status int) bool {
	return status == 498 || status == 529 // Groq: flex tier; Anthropic: overloaded
}

// show gives the usage meter a piece of the body.
func (c *call) show(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != metered || len(p) == 0 {
		return
	}
	if c.meter == nil {
		c.meter = meters.Get().(*usage.Meter)
		c.meter.Reset(c.contentType, c.contentEncoding)
		if c.trace.Settled != nil && streams(c.contentType) {
			c.first = time.Since(c.sent)
		}
	}
	c.meter.Write(p)
}

// streams reports whether an answer of that type comes event by event.
func streams(contentType string) bool {
	for _, kind := range [...]string{"text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream"} {
		if len(contentType) >= len(kind) && strings.EqualFold(contentType[:len(kind)], kind) {
			return true
		}
	}
	return false
}

// meters are used again: one is larger than everything else that a call needs.
var meters = sync.Pool{New: func() any { return new(usage.Meter) }}

// over reports whether the call has been settled.
func (c *call) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == ended
}

// end settles the call when its body ends, or when there is none. It does so
// once, at the first of EOF, Close, an error, the context's end, and the
// collector. It reports whether this was the first. complete is true if the body
// was read to its end.
func (c *call) end(complete bool) bool {
	c.mu.Lock()
	last := c.state
	if last == ended {
		c.mu.Unlock()
		return false
	}
	c.step(ended)
	if c.stop != nil {
		c.stop()
	}
	var r usage.Result
	if c.meter != nil {
		r = c.meter.Close()
		meters.Put(c.meter)
		c.meter = nil
	}
	if c.usage != nil {
		r = r.WithHeader(c.usage)
	}
	c.books.Bound(&r)
	c.mu.Unlock()
	c.settle(last, &r, complete)
	return true
}

// cut ends the call of a body that nobody reads to its end.
func (c *call) cut() { c.end(false) }

// settle gives the last attempt its ending in the ledger, unless it has had it.
func (c *call) settle(last state, r *usage.Result, complete bool) {
	c.ahead.release()
	reserved := c.books.Charged()
	if f := c.trace.Settled; f != nil {
		defer func() { // also if another hook panics
			f(Settlement{
				Request: c.req, Reserved: reserved, Charged: c.books.Charged(), Usage: reported(r),
				Attempts: c.attempts, Status: c.status, Complete: complete, FirstChunk: c.first,
			})
		}()
	}
	now := time.Now()
	v := r.Refusal
	if last == admitted {
		c.books.End(budget.Unsent)
	} else if !c.books.Between() {
		e := c.ending()
		if e == budget.Answered && v != nil && !v.AfterOutput && !r.Found {
			// No model ran: it is a refusal with another status. Who comes next hears of
			// it before the call gives back.
			c.refusedInside(now, v)
			switch {
			case v.Class == usage.RateLimit: // ended
				return
			case v.Class == usage.Overload:
				c.books.End(budget.Overloaded)
				return
			case v.Class == usage.Quota, !v.InStream && (v.Class == usage.TooLarge || v.Class == usage.Invalid):
				c.books.End(budget.Free)
				return
			}
			v = nil
		}
		switch {
		case e == budget.Answered:
			c.books.Settle(now, r)
		case e == budget.Refused:
			c.books.Refuse(now, budget.Refusal{})
		default:
			c.books.End(e)
		}
	}
	if v != nil && c.status < 300 {
		c.refusedInside(now, v)
	}
}

// shortWait is how long everybody waits after a refusal for the rate in a body that
// names no wait. With a status it is the backoff of package retry.
const shortWait = retry.DefaultMinBackoff

// refusedInside takes in a refusal that stood in the body of a success, or in a
// stream. Who comes next slows down as after the same refusal with a status.
func (c *call) refusedInside(now time.Time, v *usage.Refusal) {
	wait := v.Wait
	if c.order.IgnoreBodyWait {
		wait = 0
	}
	switch v.Class {
	case usage.RateLimit:
		c.books.Refuse(now, budget.Refusal{
			Wait: max(wait, shortWait), Named: wait > 0, Dimension: v.Dimension, Scope: v.Scope, ScopeSure: v.ScopeSure,
		})
	case usage.Overload:
		if !c.books.Waiting() {
			c.books.Overloaded(now, wait, wait > 0)
		}
	case usage.Quota:
		if !v.Account {
			c.usedUp(now, budget.Allowance{Until: v.Reset, Window: v.Window, Wide: v.Wide, Dimension: v.Dimension, Scope: v.Scope, ScopeSure: v.ScopeSure}, wait)
		}
	default:
		if wait > 0 && !c.books.Waiting() {
			c.books.Pause(now, wait)
		}
	}
}
