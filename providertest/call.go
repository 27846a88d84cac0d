package providertest

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// errCut ends a handler by breaking the connection.
var errCut = http.ErrAbortHandler

// ServeHTTP answers one call.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &exchange{p: p, w: w, r: r, ctx: r.Context(), engine: p.engines[0]}
	c.path, c.deployment = endpoint(r.URL.Path)
	c.anthropic = c.path == "/v1/messages"
	c.entry = Entry{Path: c.path, Attempt: r.Header.Get(p.o.AttemptHeader)}
	c.serve()
}

// exchange is one call from arrival to end.
type exchange struct {
	p         *Provider
	w         http.ResponseWriter
	r         *http.Request
	ctx       context.Context
	path      string
	anthropic bool
	// deployment is the model that an Azure path names.
	deployment string
	engine     *engine // of the caller's account
	step       Step
	scripted   bool
	entry      Entry // until it is recorded

	// Set when the call was let in.
	*answer
	live     *Entry // in the ledger
	price    price
	stamp    int64
	readings []reading
	readAt   int64
	finished bool
	settled  Tokens
}

func (c *exchange) serve() {
	k, priced := kinds[c.path]
	switch method := c.r.Method; {
	case !c.allowed():
		c.reject(noKey)
		return
	case c.path == "/v1/models" && method == http.MethodGet:
		c.models()
		return
	case c.path == "/v1/models" || priced && method != http.MethodPost:
		c.reject(invalid(405, "method_not_supported", "Not allowed to "+method+" on "+c.path+"."))
		return
	case !priced:
		c.reject(invalid(404, "unknown_url", "Invalid URL ("+method+" "+c.path+")"))
		return
	}
	c.step, c.scripted = c.p.nextStep()
	if c.pause(c.step.Delay) != nil {
		c.leave(true)
		return
	}
	if c.step.Kind == ResetBefore {
		c.cut()
	}
	body, ok := c.receive()
	if !ok {
		return
	}
	q, bad := parse(c.path, k, body, c.deployment)
	c.entry.Model, c.entry.Stream = q.prompt.Model, q.stream
	if bad != "" {
		c.rejectBody(invalid(400, "", bad))
		return
	}
	if !c.scripted {
		if c.step, _ = c.p.o.outage(q.prompt.Model, time.Since(c.p.start)); c.pause(c.step.Delay) != nil {
			c.leave(false)
			return
		}
	}
	if c.pause(c.p.travel(body)) != nil {
		c.leave(true)
		return
	}
	o := &c.p.o
	prompt := min(max(0, o.Count(q.prompt)), maxTokens)
	estimate := min(max(0, o.EstimatePrompt(q.prompt)), maxTokens)
	if m := o.ContextWindow; m > 0 && prompt > m {
		c.rejectBody(invalid(400, "context_length_exceeded", "This model's maximum context length is "+strconv.FormatInt(m, 10)+
			" tokens. However, your messages resulted in "+strconv.FormatInt(prompt, 10)+" tokens."))
		return
	}
	if c.early() {
		return
	}
	c.price = o.priceOf(q, prompt, estimate)
	if c.admit(q, body) {
		c.run()
	}
}

// receive reads the body. If it cannot, it ends the call itself.
func (c *exchange) receive() (body []byte, ok bool) {
	most := c.p.o.MaxBody
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	if err == nil {
		return body, true
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		c.rejectBody(invalid(413, "request_too_large", "The request body is larger than "+strconv.FormatInt(most, 10)+" bytes."))
	} else {
		c.leave(true)
	}
	return nil, false
}

// priceOf is the price of a call before its output is drawn.
func (o *Options) priceOf(q inquiry, prompt, estimate int64) price {
	p := price{model: q.prompt.Model, estimate: estimate, prompt: prompt, produces: q.kind != embeddings}
	if o.Cached != nil {
		p.cached = min(max(0, o.Cached(q.prompt)), p.prompt)
	}
	if !p.produces {
		return p
	}
	if o.Reserve != nil {
		p.reserve = min(max(0, o.Reserve(q.prompt)), maxTokens)
	}
	p.cap = o.DefaultCap * q.choices
	if q.cap > 0 {
		p.cap = min(q.cap*q.choices, maxTokens)
	}
	return p
}

// allowed checks the key, and finds the account.
func (c *exchange) allowed() bool {
	p, r := c.p, c.r
	if p.o.Key == "" && len(p.o.Accounts) == 0 {
		return true
	}
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	for i, a := range p.o.accounts() {
		for _, k := range []string{bearer, r.Header.Get("X-Api-Key"), r.Header.Get("Api-Key")} {
			if subtle.ConstantTimeCompare([]byte(k), []byte(a.Key)) == 1 {
				c.engine, c.entry.Account = p.engines[i], a.Name
				return true
			}
		}
	}
	return false
}

// travel is how long a call with that body is on its way.
func (p *Provider) travel(body []byte) time.Duration {
	if p.o.Network == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := fnv64(body)
	if len(p.travels) >= maxBodies {
		clear(p.travels)
	}
	n := p.travels[h]
	p.travels[h] = n + 1
	return p.o.Network(rand.New(rand.NewPCG(p.o.Seed^h, ^n)))
}

// jitterLocked is by how many percent the next charge for a body differs.
func (p *Provider) jitterLocked(body []byte) int64 {
	j := int64(p.o.ChargeJitter)
	if j == 0 {
		return 0
	}
	h := fnv64(body)
	return rand.New(rand.NewPCG(p.o.Seed^h, p.draws[h]+1<<32)).Int64N(2*j+1) - j
}

// pause waits in the call's time. The error says that nobody waits any more.
func (c *exchange) pause(d time.Duration) error {
	var fire <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		fire = t.C
	} else {
		ready := make(chan time.Time)
		close(ready)
		fire = ready
	}
	// An end that is already there goes before a wait that is already over.
	select {
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-c.p.done:
		return errCut
	default:
	}
	select {
	case <-fire:
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-c.p.done:
		return errCut
	}
}

// record writes the entry of a call that is already over.
func (c *exchange) record(o Outcome, status int) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.entry.Outcome, c.entry.Status = o, status
	c.p.recordLocked(c.p.now(), c.entry)
}

// keepStep returns a step that needs a call that was let in.
func (c *exchange) keepStep() {
	if !c.scripted || !c.step.Kind.admitted() {
		return
	}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.p.putBackLocked(c.step)
}

// leave records a client that left before the limits were asked.
func (c *exchange) leave(keep bool) {
	if keep {
		c.keepStep()
	}
	c.record(Gone, 0)
	panic(errCut)
}

// cut breaks the connection of a call that was not let in.
func (c *exchange) cut() {
	c.record(Cut, 0)
	panic(errCut)
}

// reject answers a call that never reached the limits.
func (c *exchange) reject(e problem) {
	c.record(Rejected, e.status)
	c.problem(e)
}

// rejectBody is reject, of a call with a body that cannot be served.
func (c *exchange) rejectBody(e problem) {
	c.keepStep()
	c.reject(e)
}

// early is the scripted answers that come instead of the limits.
func (c *exchange) early() bool {
	var e problem
	outcome := Refused
	switch c.step.Kind {
	case Refuse:
		e = problem{429, "tokens", "rate_limit_exceeded", "Rate limit reached for " + c.entry.Model + " in organization org-box on tokens per min (TPM)."}
		if c.step.RetryAfter > 0 {
			e.message += " Please try again in " + ceil(c.step.RetryAfter, time.Millisecond).String() + "."
		}
	case RefuseBare:
		e = problem{status: 429}
	case ResetBefore: // of an outage
		c.cut()
	case InsufficientQuota:
		e = noMoney
	case Reject:
		outcome, e = Rejected, badRequest
		if c.step.Status != 0 {
			e.status = c.step.Status
		}
		if e.status == 429 {
			outcome = Refused
		}
	default:
		return false
	}
	p := c.p
	p.mu.Lock()
	now := p.now()
	c.entry.Outcome, c.entry.Status = outcome, e.status
	if outcome == Refused {
		c.entry.Reason, c.entry.Wait = "scripted", c.step.RetryAfter
		if p.o.RefusedCount {
			c.entry.Requests = c.engine.chargeRefused(now, c.entry.Model)
		}
	}
	p.recordLocked(now, c.entry)
	p.toldLocked(now, c.step.RetryAfter)
	if c.step.Kind == Refuse {
		c.readLocked(now)
	}
	c.stamp = now
	p.mu.Unlock()
	c.problem(e)
	return true
}

// admit asks the limits. It answers a refused call itself.
func (c *exchange) admit(q inquiry, body []byte) bool {
	p := c.p
	p.mu.Lock()
	now := p.now()
	c.stamp = now
	c.price.jitter = p.jitterLocked(body)
	if v := c.engine.judge(now, c.price); v.reason != "" {
		c.refuseLocked(now, &v)
		answer := refusal(v, q.prompt.Model, now, c.entry.Wait)
		p.mu.Unlock()
		p.retryAfter(c.w.Header(), p.o.RetryAfter, now, c.entry.Wait)
		c.problem(answer)
		return false
	}
	if p.o.Reading == ReadBefore {
		c.readLocked(now)
	}
	c.grantLocked(now, q, body)
	if p.o.Reading != ReadBefore {
		c.readLocked(now)
	}
	p.mu.Unlock()
	return true
}

// refuseLocked records a call that a limit refuses.
func (c *exchange) refuseLocked(now int64, v *verdict) {
	p := c.p
	if c.scripted && c.step.Kind.admitted() {
		p.putBackLocked(c.step)
	}
	c.step = Step{}
	e := &c.entry
	e.Outcome, e.Status, e.Reason = Refused, 429, v.reason
	if v.wait == never {
		e.Reason = "too large"
	}
	e.Requests = c.engine.refuse(now, c.price.model, v)
	if v.wait != never {
		e.Wait = time.Duration(v.wait)
	}
	p.recordLocked(now, *e)
	if p.o.RetryAfter != NoRetryAfter {
		p.toldLocked(now, e.Wait)
	}
	c.readLocked(now)
	if p.o.RefusedZero {
		for i, r := range c.readings {
			if r.limit == v.limit {
				c.readings[i].remaining, c.readings[i].reset = 0, 0
			}
		}
	}
}

// grantLocked lets a call in: it draws the output, charges and records the call.
func (c *exchange) grantLocked(now int64, q inquiry, body []byte) {
	p := c.p
	c.engine.admit(now, c.price)
	inFlight := int64(0)
	for _, e := range p.engines {
		inFlight += e.inFlight
	}
	p.stats.PeakInFlight = max(p.stats.PeakInFlight, inFlight)
	a := &answer{inquiry: q, number: p.number + 1, created: p.start.Add(time.Duration(now)).Unix(), prompt: c.price.prompt, cached: c.price.cached}
	if c.price.produces {
		a.length = p.drawLocked(body, q.choices)
		if q.cap > 0 && a.length >= q.cap {
			a.length, a.capped = q.cap, true
		}
	}
	c.answer = a
	c.price.output = a.output()
	t := p.o.onArrival(c.price)
	c.entry.Outcome, c.entry.Requests, c.entry.Arrival, c.entry.Prompt = Running, 1, Tokens{t.in, t.out}, c.price.prompt
	c.live = p.recordLocked(now, c.entry)
}

// readLocked reads the balances that the headers will show.
func (c *exchange) readLocked(at int64) {
	c.readings, c.readAt = c.p.readingsLocked(c.engine, c.entry.Model, at), at
}

// read is readLocked now, if the balances are read at that point.
func (c *exchange) read(when ...Reading) {
	if !slices.Contains(when, c.p.o.Reading) {
		return
	}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.readLocked(c.p.now())
}

// maxBodies bounds the memory of drawLocked; past it, counting starts anew.
const maxBodies = 1 << 16

// drawLocked draws the length of the output from the seed, the body, and how
// often that body was admitted before.
func (p *Provider) drawLocked(body []byte, choices int64) int64 {
	h := fnv64(body)
	if len(p.draws) >= maxBodies {
		clear(p.draws)
	}
	n := p.draws[h]
	p.draws[h] = n + 1
	r := rand.New(rand.NewPCG(p.o.Seed^h, n))
	return min(max(0, p.o.Output(r)), maxOutput/choices)
}

// fnv64 is FNV-1a. A hash with a random seed would draw other lengths in the
// next process.
func fnv64(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
