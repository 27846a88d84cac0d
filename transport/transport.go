package transport

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/retry"
)

// A Transport keeps the requests that pass through it within a provider's
// limits; the package comment tells how. Make one with [New] and share it: it
// is one budget. It may be used by any number of goroutines, and holds no
// goroutine of its own.
type Transport struct {
	o      Options
	base   http.RoundTripper
	retry  *retry.Transport
	budget budget
	prices prices
	doubt  doubt

	once    sync.Once // finds profile at the first request, unless set by hand
	profile profile.Profile
	charge  atomic.Uint32 // an estimate.Charge: the profile's, or what headers show
}

// New returns a Transport. Errors are a [*ConfigError], a [*limit.ConfigError]
// or those of [retry.New]; each names the field.
func New(o Options) (*Transport, error) {
	t := &Transport{o: o, base: o.Base}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	if err := t.o.check(); err != nil {
		return nil, err
	}
	if err := t.budget.configure(&t.o); err != nil {
		return nil, err
	}
	if o.Provider.Name != "" {
		if err := o.Provider.Validate(); err != nil {
			return nil, err
		}
		t.adopt(o.Provider)
	}
	ro := o.Retry
	if o.Attempts != 0 {
		ro.Attempts = o.Attempts
	}
	if ro.ResetHint == nil {
		ro.ResetHint = t.resetHint
	}
	ro.Deciding = chain(ro.Deciding, t.deciding)
	ro.Admit = chainAdmit(t.admit, ro.Admit)
	ro.Done = chain(ro.Done, t.done)
	var err error
	t.retry, err = retry.New((*meter)(t), ro)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// adopt takes on a provider's profile.
func (t *Transport) adopt(p profile.Profile) {
	if t.o.Charge != "" {
		r, _ := chargeNamed(t.o.Charge)
		p.Rule.Charge, p.Rule.ReserveCap = r.Charge, r.ReserveCap
	}
	t.profile = p
	t.charge.Store(uint32(p.Rule.Charge))
	t.budget.adopt(p)
}

// rule is the charge rule in force for a model.
func (t *Transport) rule(model string) estimate.Rule {
	r := t.profile.RuleFor(model)
	if c := estimate.Charge(t.charge.Load()); c != r.Charge {
		r.Charge, r.ReserveCap = c, c != estimate.ChargeActual
	}
	return r
}

// RoundTrip admits req, sends it, again where that can help, and returns the
// provider's own response with its body untouched. The call is settled when
// that body ends, by EOF, Close, an error or the end of its context, whichever
// is first. An error for a request that was not sent is an [*Error].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.o.Skip != nil && t.o.Skip(req) {
		return t.base.RoundTrip(req)
	}
	t.once.Do(func() {
		if t.profile.Name == "" {
			t.adopt(profile.ForHost(req.URL.Host))
		}
	})
	out, body, err := t.inspect(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	c := &call{Context: req.Context(), t: t, req: req}
	c.priced = t.prices.price(body, t.rule(body.Model))
	c.cost = c.priced.cost()
	if err := t.acquire(c); err != nil {
		closeBody(out)
		return nil, err
	}
	resp, err := t.retry.RoundTrip(out.WithContext(c))
	if err != nil {
		c.end(false)
		return nil, err
	}
	resp.Request = req
	c.answer(resp)
	return resp, nil
}

// acquire waits for the first attempt's turn.
func (t *Transport) acquire(c *call) error {
	if f := t.o.Trace.Queued; f != nil {
		f(c.req, c.cost)
	}
	var asked time.Time
	if t.o.Trace.Granted != nil {
		asked = time.Now()
	}
	r, err := t.budget.limiter.Acquire(c.Context, c.cost)
	if err != nil {
		return t.notSent(c.req, err)
	}
	c.account.take(r, c.cost)
	if f := t.o.Trace.Granted; f != nil {
		f(c.req, c.cost, time.Since(asked))
	}
	return nil
}

// CloseIdleConnections closes the idle connections of the base, if it can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Snapshot is the state of the budget now, for people and metrics.
func (t *Transport) Snapshot() limit.Snapshot { return t.budget.limiter.Snapshot() }

func (t *Transport) notSent(req *http.Request, err error) error {
	var le *limit.Error
	if errors.As(err, &le) {
		err = &Error{le}
	}
	if f := t.o.Trace.Refused; f != nil {
		f(req, err)
	}
	return err
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

func chain(theirs, ours func(retry.Event)) func(retry.Event) {
	if theirs == nil {
		return ours
	}
	return func(e retry.Event) { ours(e); theirs(e) }
}

func chainAdmit(ours, theirs func(context.Context, retry.Event) error) func(context.Context, retry.Event) error {
	if theirs == nil {
		return ours
	}
	return func(ctx context.Context, e retry.Event) error {
		if err := theirs(ctx, e); err != nil {
			return err
		}
		return ours(ctx, e)
	}
}
