package transport

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

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

	adopt   sync.Once // settles profile, at the first request if not by hand
	profile profile.Profile
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
	t.prices.configure(&t.o)
	if o.Provider.Name != "" {
		t.adopt.Do(func() { t.use(o.Provider) })
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

// use takes on a provider's profile.
func (t *Transport) use(p profile.Profile) {
	if t.o.Charge != 0 {
		p.Rule = p.Rule.With(t.o.Charge)
	}
	t.profile = p
	t.budget.reshape(p)
}

// RoundTrip admits req, sends it, again where that can help, and returns the
// provider's own response with its body untouched. The call is settled when
// that body ends, by EOF, Close, an error or the end of its context, whichever
// is first. An error for a request that was not sent is an [*Error].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.o.Skip != nil && t.o.Skip(req) {
		return t.base.RoundTrip(req)
	}
	t.adopt.Do(func() { t.use(profile.ForHost(req.URL.Host)) })

	out, body, err := t.inspect(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	c := &call{Context: req.Context(), t: t, req: req}
	t.prices.price(c, body, t.profile.Rule)
	if f := t.o.Trace.Queued; f != nil {
		f(req, c.cost)
	}
	asked := time.Now()
	c.open, err = t.budget.limiter.Acquire(req.Context(), c.cost)
	if err != nil {
		closeBody(out)
		return nil, t.notSent(req, err)
	}
	c.slot = c.open
	c.attempted(c.cost)
	if f := t.o.Trace.Granted; f != nil {
		f(req, c.cost, time.Since(asked))
	}
	if out == req {
		out = req.WithContext(c)
	} else {
		*out = *out.WithContext(c)
	}
	resp, err := t.retry.RoundTrip(out)
	if err != nil {
		c.failed(err)
		return nil, err
	}
	if resp.Request == out {
		resp.Request = req
	}
	c.answer(resp)
	return resp, nil
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
