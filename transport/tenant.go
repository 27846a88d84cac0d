package transport

import (
	"context"
	"net/http"
	"slices"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/limit"
)

// ModelOptions are limits of some models of each account, beside those of the
// account: a call takes from both in one decision. Every number may be zero, which
// is unset.
type ModelOptions struct {
	// Names are the models, as requests or paths name them, with * for any
	// characters: "gpt-4o", "gpt-4o-mini*". The first ModelOptions that fit count.
	Names []string

	// Requests and tokens a minute and a day, as in [Options].
	RPM, RPD, TPM, TPD, InputTPM, OutputTPM int64

	// Limits are further limits, of any window.
	Limits []limit.Limit

	// MaxInFlight is how many calls may be under way.
	MaxInFlight int

	// Shared: all models that fit share these limits. Unset, each has them for
	// itself.
	Shared bool
}

// TenantOptions are what one tenant may have of what all share. The zero
// TenantOptions have no limit, and an equal share of what several wait for.
type TenantOptions struct {
	// Weight is the tenant's share of a limit that several wait for: with twice
	// the weight it gets twice the tokens. 0 is 1.
	Weight int

	// Requests and tokens a minute and a day, as in [Options]. A call waits for
	// them as for the provider's.
	RPM, RPD, TPM, TPD int64

	// Limits are further limits, of any window.
	Limits []limit.Limit

	// DayTokens, DayMoney, MonthTokens and MonthMoney are what the tenant may use in
	// a day and in a month, of the calendar in UTC. A call beyond is refused at once.
	// See [budget.Tenant].
	DayTokens, DayMoney, MonthTokens, MonthMoney int64

	// Rolling counts the last 24 hours and the last 30 days instead.
	Rolling bool

	// Prices say what DayMoney and MonthMoney buy.
	Prices []budget.ModelPrice

	// MaxInFlight is how many calls may be under way, MaxQueue how many may wait;
	// one more is refused.
	MaxInFlight, MaxQueue int
}

// budget is what the budget knows of them.
func (o TenantOptions) budget() budget.Tenant {
	limits := Options{RPM: o.RPM, RPD: o.RPD, TPM: o.TPM, TPD: o.TPD, Limits: o.Limits}
	return budget.Tenant{
		Weight: o.Weight, MaxInFlight: o.MaxInFlight, MaxQueue: o.MaxQueue, Limits: limits.limits(),
		DayTokens: o.DayTokens, DayMoney: o.DayMoney, MonthTokens: o.MonthTokens, MonthMoney: o.MonthMoney, Rolling: o.Rolling,
		Prices: o.Prices,
	}
}

// check names the number that is negative.
func (o TenantOptions) check() error {
	for _, f := range []number{
		{"TenantOptions.RPM", o.RPM, false}, {"TenantOptions.RPD", o.RPD, false}, {"TenantOptions.TPM", o.TPM, false}, {"TenantOptions.TPD", o.TPD, false},
	} {
		if f.value < 0 {
			return &ConfigError{f.name, f.value, "must not be negative; zero is unset"}
		}
	}
	return nil
}

func (o ModelOptions) budget() budget.Model {
	limits := Options{RPM: o.RPM, RPD: o.RPD, TPM: o.TPM, TPD: o.TPD, InputTPM: o.InputTPM, OutputTPM: o.OutputTPM, Limits: o.Limits}
	return budget.Model{Names: slices.Clone(o.Names), Limits: limits.limits(), MaxInFlight: o.MaxInFlight, Shared: o.Shared}
}

// SetTenant says what a tenant may have, from now on, also while its calls run. It
// replaces what was said before. What cannot be is an error and changes nothing.
func (t *Transport) SetTenant(name string, o TenantOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	return t.budget.SetTenant(name, o.budget())
}

// RemoveTenant takes back what [Transport.SetTenant] said. The tenant has again
// what Scopes.Tenants gives it; its calls go on.
func (t *Transport) RemoveTenant(name string) { t.budget.RemoveTenant(name) }

// Tenant is a RoundTripper for one tenant, to be used where an SDK takes a client
// for itself. All that it sends is the tenant's, also if a context says
// otherwise. The
// options are set as by [Transport.SetTenant].
func (t *Transport) Tenant(name string, o TenantOptions) (http.RoundTripper, error) {
	if err := t.SetTenant(name, o); err != nil {
		return nil, err
	}
	return &tenant{t, t.budget.TenantScope(name)}, nil
}

// tenant is a Transport for one tenant.
type tenant struct {
	t     *Transport
	scope string
}

func (t *tenant) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.t.roundTrip(req, t.scope)
}

// CloseIdleConnections closes the idle connections of the base, if it can.
func (t *tenant) CloseIdleConnections() { t.t.CloseIdleConnections() }

// String says what this is, and nothing of what it holds.
func (t *tenant) String() string { return "tripmeter transport of one tenant" }

// GoString is String, for %#v.
func (t *tenant) GoString() string { return t.String() }

// wishes are what a context says of the calls that are made with it.
type wishes struct {
	tenant     string
	class      limit.Class
	fast       bool
	has, hasCl bool
}

type wishesKey struct{}

func wishesOf(ctx context.Context) wishes {
	w, _ := ctx.Value(wishesKey{}).(*wishes)
	if w == nil {
		return wishes{}
	}
	return *w
}

func (w wishes) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, wishesKey{}, &w)
}

// WithTenant makes the calls of a context those of a tenant. It counts before
// [Scopes.Tenant].
func WithTenant(ctx context.Context, name string) context.Context {
	w := wishesOf(ctx)
	w.tenant, w.has = name, true
	return w.in(ctx)
}

// WithClass gives the calls of a context a priority. It counts before
// [Scopes.Class].
func WithClass(ctx context.Context, c limit.Class) context.Context {
	w := wishesOf(ctx)
	w.class, w.hasCl = c, true
	return w.in(ctx)
}

// FailFast makes the calls of a context not wait in the line: one that would have
// to is refused with an [*Error] that says how long.
func FailFast(ctx context.Context) context.Context {
	w := wishesOf(ctx)
	w.fast = true
	return w.in(ctx)
}

// who says for whom a request is sent. scope is the tenant's whose RoundTripper it
// came through, "" if it came through none.
func (t *Transport) who(req *http.Request, scope string) budget.Who {
	w := wishesOf(req.Context())
	who := budget.Who{Tenant: scope, Class: w.class, Fast: w.fast}
	if !w.hasCl && t.o.Scopes.Class != nil {
		who.Class = t.o.Scopes.Class(req)
	}
	if scope != "" {
		return who
	}
	name := w.tenant
	if !w.has && t.o.Scopes.Tenant != nil {
		name = t.o.Scopes.Tenant(req)
	}
	who.Tenant = t.budget.TenantScope(name)
	return who
}
