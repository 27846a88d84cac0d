package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
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
	deaf   *retry.Transport // the same, but for waits that only a body names
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
	ro := o.Retry
	if o.Attempts != 0 {
		ro.Attempts = o.Attempts
	}
	ro.ResetHint = longest(t.resetHint, ro.ResetHint)
	ro.Deciding = chain(ro.Deciding, t.deciding)
	ro.Admit = chainAdmit(t.admit, ro.Admit)
	ro.Owned = true // RoundTrip makes a copy for its context
	var err error
	if t.retry, err = retry.New((*meter)(t), ro); err != nil {
		return nil, err
	}
	ro.IgnoreBodyWait = true
	if t.deaf, err = retry.New((*meter)(t), ro); err != nil {
		return nil, err
	}
	if o.Provider.Name != "" {
		if err := o.Provider.Validate(); err != nil {
			return nil, err
		}
		t.adopt(o.Provider)
	}
	return t, nil
}

// adopt takes on a provider's profile.
func (t *Transport) adopt(p profile.Profile) {
	if t.o.Charge != "" {
		r, _ := chargeNamed(t.o.Charge)
		p.Rule.Charge, p.Rule.ReserveCap = r.Charge, r.ReserveCap
	}
	if p.IgnoreBodyWait {
		t.retry = t.deaf
	}
	t.profile = p
	t.charge.Store(uint32(p.Rule.Charge))
	t.budget.adopt(p)
}

// rule is the charge rule in force for a model.
func (t *Transport) rule(model string) estimate.Rule {
	r := t.profile.Rule
	if len(t.profile.Factors) > 0 { // few: the others need not be copied as a whole
		r = t.profile.RuleFor(model)
	}
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
	if req.URL == nil {
		closeBody(req)
		return nil, errors.New("transport: nil Request.URL")
	}
	if t.o.Skip != nil && t.o.Skip(req) {
		return t.base.RoundTrip(req)
	}
	t.once.Do(func() {
		if t.profile.Name == "" {
			t.adopt(profile.ForHost(req.URL.Host))
		}
	})
	send, body, err := t.inspect(req)
	if err != nil {
		send.close()
		return nil, err
	}
	c := &call{Context: req.Context(), t: t, req: req}
	if c.prompted = req.Body != nil && req.Body != http.NoBody; c.prompted {
		c.priced = t.prices.price(body, t.rule(body.Model))
	}
	c.cost = c.priced.cost()
	waited, err := t.acquire(c)
	if err != nil {
		send.close()
		return nil, err
	}
	answered := false
	defer func() {
		if !answered { // an error, or a panic of the base or of a hook
			c.end(false)
		}
	}()
	if f := t.o.Trace.Granted; f != nil {
		f(req, c.cost, waited)
	}
	c.out = *req.WithContext(c)
	out := &c.out
	out.Body, out.GetBody = send.body, send.get
	resp, err := t.retry.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	t.final(c)
	answered = true
	if resp.Request == out || resp.Request == nil {
		resp.Request = req
	}
	if t.o.StopSDKRetries && temporary(resp) {
		// Of its own, as a base may answer with a header that it keeps.
		if resp.Header = resp.Header.Clone(); resp.Header == nil {
			resp.Header = http.Header{}
		}
		resp.Header.Set("X-Should-Retry", "false")
	}
	return c.answer(resp), nil
}

// temporary reports whether the official SDKs try again after that response
// (shouldRetry in requestconfig.go of openai-go and anthropic-sdk-go).
func temporary(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return resp.StatusCode >= 500 || field(resp.Header, "X-Should-Retry") == "true"
}

// acquire waits for the first attempt's turn, and says how long.
func (t *Transport) acquire(c *call) (waited time.Duration, err error) {
	if f := t.o.Trace.Queued; f != nil {
		f(c.req, c.cost)
	}
	var asked time.Time
	if t.o.Trace.Granted != nil {
		asked = time.Now()
	}
	ctx, stop := interest(c.req)
	defer stop()
	t.budget.ask(c.cost)
	r, err := t.budget.limiter.Acquire(ctx, c.cost)
	if err != nil {
		return 0, t.notSent(c.req, err)
	}
	c.account.take(r, c.cost)
	c.ready = true
	if !asked.IsZero() {
		waited = time.Since(asked)
	}
	return waited, nil
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

// String says what this is, and nothing of what it holds: the base may well
// carry a key.
func (t *Transport) String() string { return "tripmeter transport" }

// GoString is String, for %#v.
func (t *Transport) GoString() string { return t.String() }

// LogValue is String, for package log/slog.
func (t *Transport) LogValue() slog.Value { return slog.StringValue(t.String()) }

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// longest is the longer of two hints.
func longest(ours, theirs func(*http.Response) time.Duration) func(*http.Response) time.Duration {
	if theirs == nil {
		return ours
	}
	return func(r *http.Response) time.Duration {
		seen := bodyOf(r) // a bounded copy, of which each gets one
		again := func() *http.Response {
			r := *r
			r.Body = io.NopCloser(bytes.NewReader(seen))
			return &r
		}
		return max(ours(again()), theirs(again()))
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
