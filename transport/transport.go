package transport

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/retry"
)

// A Transport keeps the requests that pass through it within the limits of the
// providers that they go to; the package comment says how. Make one with [New] and
// share it: it has one budget, in which each account, model and tenant has its
// own. It may be used by any number of goroutines, and holds no
// goroutine of its own.
type Transport struct {
	o      Options
	base   http.RoundTripper
	retry  *retry.Transport
	budget *budget.Budget
	paths  endpoints
}

// New returns a Transport. Errors are a [*ConfigError], a [*limit.ConfigError]
// or those of [retry.New] and [budget.New]; each names the field.
func New(o Options) (*Transport, error) {
	t := &Transport{o: o, base: o.Base, budget: o.Scopes.Budget}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	if err := t.o.check(); err != nil {
		return nil, err
	}
	if t.budget == nil {
		b, err := budget.New(t.o.budget())
		if err != nil {
			return nil, err
		}
		t.budget = b
	}
	ro := o.Retry
	ro.Attempts = o.Attempts
	if ro.Attempts == 0 && ro.RateLimitFor == 0 {
		ro.RateLimitFor = retry.DefaultRateLimitFor
	}
	ro.Refused = both(refused, ro.Refused)
	ro.Deciding = both(deciding, ro.Deciding)
	ro.Admit = inTurn(ro.Admit, t.admit)
	var err error
	t.retry, err = retry.New(&meter{t.base, &t.o}, ro)
	return t, err
}

// path returns what a request takes from. The profile of its account is found by
// the host, unless it was set.
func (t *Transport) path(req *http.Request, model string) *budget.Path {
	a := address(req, model)
	if f := t.o.Scopes.Account; f != nil {
		a.Account = f(req)
	}
	p := t.budget.Path(a)
	if !p.Adopted() {
		pr := t.o.Provider
		if pr.Name == "" {
			pr = profile.ForHost(req.URL.Host)
		}
		p.Adopt(time.Now(), pr)
	}
	return p
}

// RoundTrip admits req, sends it, again where that can help, and returns the
// provider's own response with its body untouched. The call is settled when that
// body ends, at the first of EOF, Close, an error and the end of its context. An
// error for a request that was not sent is an [*Error].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.roundTrip(req, "")
}

// roundTrip is RoundTrip for the tenant of a scope. If that is empty, the request
// names its tenant.
func (t *Transport) roundTrip(req *http.Request, tenant string) (*http.Response, error) {
	body, ahead := req.Body, (*ahead)(nil)
	defer func() { // on every way out before it is sent, also by a panic of a hook
		if body != nil {
			ahead.release()
			body.Close()
		}
	}()
	if req.URL == nil {
		return nil, errors.New("transport: nil Request.URL")
	}
	if t.o.Skip != nil && t.o.Skip(req) {
		body = nil
		return t.base.RoundTrip(req)
	}
	seen, err := inspect(req, t.o.MaxBody, t.o.Counter)
	body, ahead = seen.body, seen.ahead
	if err != nil {
		return nil, err
	}
	p := t.path(req, seen.Model)
	c := &call{Context: req.Context(), trace: &t.o.Trace, followRule: t.o.FollowRule, req: req, ahead: seen.ahead}
	e := t.paths.endpoint(p.Profile(), req.Method, req.URL.Path)
	c.creates = e.Creates
	r, requests := seen.price(e)
	if r != nil {
		c.outputCap = r.OutputCap
	}
	c.books.Open(p, (*observer)(c), r, requests)
	who := t.who(req, tenant)
	c.books.For(who)
	if f := t.o.Trace.Who; f != nil {
		f(req, strings.TrimPrefix(who.Tenant, "@"), who.Class)
	}
	waited, err := t.acquire(c)
	if err != nil {
		return nil, err
	}
	answered := false
	defer func() {
		if !answered { // an error, or a panic of the base or of a hook
			c.end(false)
		}
	}()
	if f := t.o.Trace.Granted; f != nil {
		f(req, c.books.Cost(), waited)
	}
	c.out = *req.WithContext(c)
	c.out.Body, c.out.GetBody = seen.body, seen.get
	body = nil
	resp, err := t.retry.RoundTrip(&c.out)
	if err != nil {
		return nil, err
	}
	answered = true
	return t.handOver(c, resp), nil
}

// acquire waits for the first attempt's turn, and says how long.
func (t *Transport) acquire(c *call) (waited time.Duration, err error) {
	if f := t.o.Trace.Queued; f != nil {
		f(c.req, c.books.Cost())
	}
	ctx, stop := interest(c.req)
	defer stop()
	asked := time.Now()
	if err := c.books.Admit(ctx, asked); err != nil {
		return 0, t.notSent(c, err)
	}
	c.step(admitted)
	if t.o.Trace.Granted != nil {
		waited = time.Since(asked)
	}
	return waited, nil
}

// admit charges a further attempt at the head of the line, before it leaves. If it
// may not go, the retry layer returns the last response.
func (t *Transport) admit(ctx context.Context, e retry.Event) error {
	c := callFrom(e.Request.Context())
	if err := c.books.AdmitAgain(ctx, time.Now()); err != nil {
		return t.notSent(c, err)
	}
	c.step(admitted)
	return nil
}

// refused is called by the retry layer for every refused attempt.
func refused(e retry.Event) { callFrom(e.Request.Context()).refused(&e.Refusal, e.Wait) }

// deciding is called by the retry layer when a further attempt was decided.
func deciding(e retry.Event) { callFrom(e.Request.Context()).again(&e.Refusal) }

// notSent makes the error of a call that was not admitted.
func (t *Transport) notSent(c *call, err error) error {
	var le *limit.Error
	if errors.As(err, &le) {
		err = newError(le, c.books.Cost(), c.outputCap, c.req.Context())
	}
	if f := t.o.Trace.Refused; f != nil {
		f(c.req, err)
	}
	return err
}

// handOver makes the response the caller's.
func (t *Transport) handOver(c *call, resp *http.Response) *http.Response {
	if c.state == admitted { // for an attempt that did not leave: the last response came back instead
		c.books.End(budget.Unsent)
		c.step(between)
	}
	if resp.Request == &c.out || resp.Request == nil {
		resp.Request = c.req
	}
	if t.o.StopSDKRetries && (c.asked || temporary(resp.StatusCode)) {
		// A header of its own, as a base may answer with one that it keeps.
		if resp.Header = resp.Header.Clone(); resp.Header == nil {
			resp.Header = http.Header{}
		}
		resp.Header.Set("X-Should-Retry", "false")
	}
	return c.answer(resp)
}

// temporary reports whether the official SDKs try again after that status
// (shouldRetry in requestconfig.go of openai-go and anthropic-sdk-go).
func temporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// CloseIdleConnections closes the idle connections of the base, if it can.
func (t *Transport) CloseIdleConnections() { closeIdleConnections(t.base) }

// Snapshot is the state of the budget now, for people and metrics: what all share,
// and in its Scopes the accounts, models and tenants. Their names are
//
//	api.openai.com                       an account without a credential
//	api.openai.com#3f2a9b1c0d4e          one with a credential, by a keyed hash
//	api.openai.com#3f2a9b1c0d4e/gpt-4o   a model of it
//	@name                                a tenant
func (t *Transport) Snapshot() limit.Snapshot { return t.budget.Snapshot() }

// Resume ends every pause of the budget now, no matter who asked for it. It is the
// way out if a provider named a wait that it does not mean: [Transport.Snapshot]
// says who asked, why, and until when. A call that was refused is not sent again by
// it.
func (t *Transport) Resume() { t.budget.Resume() }

// Budget is the budget of the Transport, to share it with others.
func (t *Transport) Budget() *budget.Budget { return t.budget }

// String is the state of the budget in words, and nothing else of what t holds:
// the base may well carry a key.
func (t *Transport) String() string { return "tripmeter transport: " + t.Snapshot().String() }

// GoString is String, for %#v.
func (t *Transport) GoString() string { return t.String() }

// LogValue is String, for package log/slog.
func (t *Transport) LogValue() slog.Value { return slog.StringValue(t.String()) }

// both calls ours, then theirs if there is one.
func both(ours, theirs func(retry.Event)) func(retry.Event) {
	if theirs == nil {
		return ours
	}
	return func(e retry.Event) { ours(e); theirs(e) } // ours reads no body
}

// inTurn asks theirs, if there is one, before ours charges.
func inTurn(theirs, ours func(context.Context, retry.Event) error) func(context.Context, retry.Event) error {
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
