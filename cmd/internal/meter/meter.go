// Package meter is the command's one view of tripmeter's Transport: limits by
// model and tenant in, an [http.RoundTripper] and its state out.
//
// The promise: calls of models with limits of their own never wait for each
// other's limits. Where no limit is configured, each model learns its own from
// its answers' headers. Under a limit that they share, tenants wait by weight.
//
// The refusal: it decides nothing. Limits, lines, tenants and priorities are those
// of packages transport and budget.
package meter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	seen "github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// Limits are what a provider allows a minute. Zero is learned.
type Limits struct {
	RPM, TPM, InputTPM, OutputTPM int64
}

// Config is how a Meter is made. Zero fields are the Transport's defaults.
type Config struct {
	Base   http.RoundTripper
	Limits Limits            // of all models that Models does not name, together
	Models map[string]Limits // of each of these models, with * for any characters
	// Together: Limits bound the calls of all keys together, not those of each.
	Together bool
	Tenants  map[string]Tenant
	Provider string // name of a profile; "" is found by host
	Charge   string
	Burst    time.Duration
	InFlight int
	MaxQueue int
	MaxBody  int64         // read into memory to price it; 0 is the Transport's
	MaxWait  time.Duration // in the line
	Attempts int
	// MaxRetryAfter is the longest wait of the server's that is slept before a
	// further attempt.
	MaxRetryAfter time.Duration
	// StopSDKRetries sets x-should-retry: false on answers that SDKs repeat.
	StopSDKRetries bool
	// StartEmpty begins with no credit: another Meter may have spent it.
	StartEmpty bool
	Hooks      Hooks

	// Name is what State and Seen call the budget.
	Name string
	// Seen, if set, counts what the calls do.
	Seen *seen.Meter

	// Store, if set, makes a ledger that other processes share, by a name that is
	// the same in all. Secret is then the key of the hash by which the keys of
	// callers are known; it must be the same in all too.
	Store  func(name string, o limit.Options) (limit.Ledger, error)
	Secret []byte
}

// A Tenant is a flow of calls that waits in turn with others.
type Tenant struct {
	Weight int    // share of a limit that others wait for too; zero is 1
	Limits Limits // its own; zero is none
}

// Hooks are called as the Transport's are. Each may be nil.
type Hooks struct {
	Queued   func(*http.Request)
	Granted  func(r *http.Request, wait time.Duration)
	Answered func(r *http.Request, status int, err error)
	Settled  func(Settlement)
	Paused   func(*http.Request, time.Duration)
	Doubted  func(profile, seen string)
}

// A Settlement is the end of a call.
type Settlement struct {
	Request                    *http.Request
	Model                      string // "" if the call named none
	Input, CachedInput, Output int64  // tokens as reported
	Reported                   bool
	Attempts                   int
	Status                     int
}

// A Meter sends calls within their model's limits. It may be used by any
// number of goroutines.
type Meter struct {
	c     Config
	t     *transport.Transport
	stops []func() // of Seen, and of the ledger of Store
	once  sync.Once
}

// New makes a Meter. The error names the field or the flag that is wrong.
func New(c Config) (*Meter, error) {
	m := &Meter{c: c}
	var p profile.Profile
	if c.Provider != "" {
		var ok bool
		if p, ok = profile.ByName(c.Provider); !ok {
			return nil, fmt.Errorf("provider %q is not known; there are %s", c.Provider, strings.Join(profile.Names(), ", "))
		}
	}
	if p.Name == "" && (c.StartEmpty || c.Charge != "") {
		p = profile.Unknown()
	}
	if c.StartEmpty {
		p.StartEmpty = true
	}
	if c.Charge != "" {
		charge, err := estimate.ParseCharge(c.Charge)
		if err != nil {
			return nil, err
		}
		p = p.Charging(charge)
	}
	b, err := m.budget(p)
	if err != nil {
		return nil, err
	}
	if m.t, err = m.transport(b, p); err != nil {
		return nil, err
	}
	if err := m.tenants(nil); err != nil {
		return nil, err
	}
	if c.Seen != nil {
		m.stops = append(m.stops, c.Seen.Watch(c.Name, m.t))
	}
	return m, nil
}

// Reload is a Meter with other limits and tenants over the same budget: what was
// used, owed, learned and paused stays. Base, Hooks and what else belongs to a way to the provider are c's. ok is
// false, and m is as before, where the budget itself must be another: another
// provider, charge rule or capacity. m must not be used afterwards, but for calls
// that are under way.
func (m *Meter) Reload(c Config) (n *Meter, ok bool, err error) {
	was := &m.c
	before, _ := was.limits()
	after, _ := c.limits()
	split := (len(was.Models) > 0) != (len(c.Models) > 0) && len(before)+len(after) > 0
	if was.Provider != c.Provider || was.Charge != c.Charge || was.Burst != c.Burst || was.Together != c.Together ||
		was.Name != c.Name || split || c.MaxWait != was.MaxWait || (was.Store == nil) != (c.Store == nil) {
		return nil, false, nil
	}
	if _, err := New(Config{Limits: c.Limits, Models: c.Models, Burst: c.Burst, Tenants: c.Tenants, Provider: c.Provider, InFlight: c.InFlight, MaxQueue: c.MaxQueue}); err != nil {
		return nil, false, err // before anything is changed
	}
	b := m.t.Budget()
	n = &Meter{c: c, stops: m.stops}
	var p profile.Profile
	if c.Provider != "" {
		p, _ = profile.ByName(c.Provider)
	}
	if n.t, err = n.transport(b, p); err != nil {
		return nil, false, err
	}
	account, models := c.limits()
	for _, l := range before {
		if !slices.ContainsFunc(account, func(n limit.Limit) bool { return n.Name == l.Name }) {
			if err := b.SetLimit(limit.Limit{Name: l.Name}); err != nil {
				return nil, false, err
			}
		}
	}
	for _, l := range account {
		if c.Burst > 0 {
			l.Burst = max(1, l.Rate.In(c.Burst))
		}
		if err := b.SetLimit(l); err != nil {
			return nil, false, err
		}
	}
	if err := b.SetModels(models); err != nil {
		return nil, false, err
	}
	if err := b.SetRoot(c.InFlight, c.MaxQueue); err != nil {
		return nil, false, err
	}
	if err := n.tenants(was.Tenants); err != nil {
		return nil, false, err
	}
	return n, true, nil
}

// transport makes the way to a budget.
func (m *Meter) transport(b *budget.Budget, p profile.Profile) (*transport.Transport, error) {
	o := transport.Options{
		Base: m.c.Base, Provider: p, Scopes: transport.Scopes{Budget: b}, Attempts: m.c.Attempts, MaxBody: m.c.MaxBody,
		Retry:          retry.Options{MaxRetryAfter: m.c.MaxRetryAfter},
		StopSDKRetries: m.c.StopSDKRetries,
		Trace:          m.trace(m.c.Hooks),
	}
	if m.c.Together {
		o.Scopes.Account = func(*http.Request) string { return "all" }
	}
	return transport.New(o)
}

// budget makes the budget, in this process or in the store.
func (m *Meter) budget(p profile.Profile) (*budget.Budget, error) {
	c := &m.c
	o := budget.Options{Burst: c.Burst, Profile: p, Secret: c.Secret}
	o.Limits, o.Models = c.limits()
	if c.Store == nil {
		o.MaxInFlight, o.MaxQueue, o.MaxWait = c.InFlight, c.MaxQueue, c.MaxWait
		return budget.New(o)
	}
	l, err := c.Store(c.Name, limit.Options{MaxInFlight: c.InFlight, MaxQueue: c.MaxQueue, MaxWait: c.MaxWait})
	if err != nil {
		return nil, err
	}
	o.Ledger = l
	b, err := budget.New(o)
	if c, ok := l.(io.Closer); ok {
		if err != nil {
			c.Close()
			return nil, err
		}
		m.stops = append(m.stops, func() { c.Close() })
	}
	return b, err
}

// limits are those of an account, and those of its models. Where models have
// limits of their own, those of the account are of all others together: a
// provider that limits models apart does not take one from the other.
func (c *Config) limits() (account []limit.Limit, models []budget.Model) {
	account = c.Limits.limits()
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		models = append(models, budget.Model{Names: []string{name}, Limits: c.Models[name].limits()})
	}
	if len(models) > 0 && len(account) > 0 {
		models = append(models, budget.Model{Names: []string{"*"}, Limits: account, Shared: true})
		account = nil
	}
	return account, models
}

// tenants tells the budget of them, and of those that are there no more.
func (m *Meter) tenants(old map[string]Tenant) error {
	for name, t := range m.c.Tenants {
		if err := m.t.SetTenant(name, transport.TenantOptions{Weight: t.Weight, Limits: t.Limits.limits()}); err != nil {
			return err
		}
	}
	for name := range old {
		if _, still := m.c.Tenants[name]; !still {
			m.t.RemoveTenant(name)
		}
	}
	return nil
}

// ModelOf is the model that a request's body or path names, "" if neither does.
func ModelOf(body []byte, path string) string {
	return estimate.Inspect(body, estimate.Options{Path: path, Counter: noCount{}}).Model
}

// noCount counts nothing: ModelOf needs the model alone.
type noCount struct{}

func (noCount) CountJSON(string, []byte) int64 { return 0 }

type modelKey struct{}

// WithModel tells the Meter the model of a request that is made with ctx.
func WithModel(ctx context.Context, model string) context.Context {
	return context.WithValue(ctx, modelKey{}, model)
}

func modelOf(ctx context.Context) string {
	s, _ := ctx.Value(modelKey{}).(string)
	return s
}

// RoundTrip sends r within the limits of its model.
func (m *Meter) RoundTrip(r *http.Request) (*http.Response, error) { return m.t.RoundTrip(r) }

// trace is the hooks, and those that count.
func (m *Meter) trace(h Hooks) transport.Trace {
	if m.c.Seen == nil {
		return h.trace()
	}
	return seen.Join(h.trace(), m.c.Seen.Trace(m.c.Name))
}

// Close takes the budget out of Seen and gives its places in a store back. Calls
// that are under way end as they would.
func (m *Meter) Close() {
	m.once.Do(func() {
		for _, stop := range m.stops {
			stop()
		}
	})
}

// TenantOf is the tenant of a request, for people.
func TenantOf(r *http.Request) string {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c.tenant
}

// limits are l as limits a minute.
func (l Limits) limits() (out []limit.Limit) {
	for _, f := range []struct {
		n    int64
		unit limit.Unit
	}{{l.RPM, limit.Requests}, {l.TPM, limit.Tokens}, {l.InputTPM, limit.Input}, {l.OutputTPM, limit.Output}} {
		if f.n != 0 {
			out = append(out, limit.Limit{Name: budget.NameOf(f.unit, time.Minute), Unit: f.unit, Rate: limit.PerMinute(f.n)})
		}
	}
	return out
}

type callerKey struct{}

type caller struct{ tenant string }

// WithCaller tells the Meter for whom a request is made, and whether others go
// first.
func WithCaller(ctx context.Context, tenant string, batch bool) context.Context {
	if tenant != "" {
		ctx = transport.WithTenant(context.WithValue(ctx, callerKey{}, caller{tenant}), tenant)
	}
	if batch {
		ctx = transport.WithClass(ctx, limit.Batch)
	}
	return ctx
}

func (h Hooks) trace() transport.Trace {
	var t transport.Trace
	if f := h.Queued; f != nil {
		t.Queued = func(r *http.Request, _ limit.Cost) { f(r) }
	}
	if f := h.Granted; f != nil {
		t.Granted = func(r *http.Request, _ limit.Cost, wait time.Duration) { f(r, wait) }
	}
	if f := h.Answered; f != nil {
		t.Answered = func(a transport.Attempt) { f(a.Request, a.Status, a.Err) }
	}
	if f := h.Settled; f != nil {
		t.Settled = func(s transport.Settlement) {
			f(Settlement{
				Request: s.Request, Model: modelOf(s.Request.Context()),
				Input: s.Usage.Input, CachedInput: s.Usage.CachedInput, Output: s.Usage.Output, Reported: s.Usage.Found,
				Attempts: s.Attempts, Status: s.Status,
			})
		}
	}
	if f := h.Paused; f != nil {
		t.Paused = func(r *http.Request, p limit.Pause) { f(r, p.For) }
	}
	t.Doubted = h.Doubted
	return t
}

// State is the budget now: what all share, and in it the accounts, models and
// tenants.
func (m *Meter) State() limit.Snapshot { return m.t.Snapshot() }

// CloseIdleConnections closes the idle connections of the base.
func (m *Meter) CloseIdleConnections() { m.t.CloseIdleConnections() }

// A Refusal is why a call was not sent at all.
type Refusal struct {
	TooLarge bool          // no wait makes it admissible
	Full     bool          // the line is full
	Wait     time.Duration // until it could have gone; 0 is unknown
}

// RefusalOf reads an error of RoundTrip. ok is false for what the base said, and
// where the caller's own context ended.
func RefusalOf(err error) (r Refusal, ok bool) {
	var e *limit.Error
	if !errors.As(err, &e) {
		return Refusal{}, false
	}
	r = Refusal{
		TooLarge: errors.Is(err, limit.ErrTooLarge),
		Full:     errors.Is(err, limit.ErrQueueFull),
		Wait:     e.Wait,
	}
	return r, r.TooLarge || r.Full || errors.Is(err, limit.ErrWaitTooLong)
}

// ParseBase reads the address of a provider. The error does not quote it: it may hold
// a password.
func ParseBase(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, errors.New("must be like https://api.openai.com, without a user and a query")
	}
	return u, nil
}
