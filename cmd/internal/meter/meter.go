// Package meter is the command's one view of tripmeter's Transport: limits by
// model and tenant in, an [http.RoundTripper] and its state out.
//
// The promise: calls of models with limits of their own never wait for each
// other's limits. Where no limit is configured, each model learns its own from
// its answers' headers. Under a limit that they share, tenants wait by weight.
//
// The refusal: limits of a tenant hold for all models without limits of their
// own together, and once more for each model that has some.
package meter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	Models map[string]Limits // of each of these models
	// Together: Limits bound the calls of all keys together, not those of each.
	Together bool
	Tenants  map[string]Tenant
	Provider string // name of a profile; "" is found by host
	Charge   string
	Burst    time.Duration
	InFlight int
	MaxQueue int
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
	// Seen, if set, counts what the calls do. Hidden keeps the state of the budget
	// out of it, for budgets that cannot have a name.
	Seen   *seen.Meter
	Hidden bool

	// Store, if set, makes a ledger that other processes share, by a name that is
	// the same in all. Secret is then the key of the hash by which the keys of
	// callers are told apart; it must be the same in all too.
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
	c       Config
	profile profile.Profile

	mu     sync.Mutex
	models map[string]*transport.Transport
	stops  []func() // of Seen, and of the ledgers of Store
}

// New makes a Meter. The error names the field or the flag that is wrong.
func New(c Config) (*Meter, error) {
	m := &Meter{c: c, models: map[string]*transport.Transport{}}
	if c.Provider != "" {
		p, ok := profile.ByName(c.Provider)
		if !ok {
			return nil, fmt.Errorf("provider %q is not known; there are %s", c.Provider, strings.Join(profile.Names(), ", "))
		}
		m.profile = p
	}
	// Every configured budget is made now, so that New returns its errors.
	if _, err := m.open(""); err != nil {
		return nil, err
	}
	for name := range c.Models {
		if _, err := m.open(name); err != nil {
			return nil, fmt.Errorf("limits of %s: %w", name, err)
		}
	}
	return m, nil
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
func (m *Meter) RoundTrip(r *http.Request) (*http.Response, error) {
	t, err := m.open(m.scope(modelOf(r.Context())))
	if err != nil {
		return nil, err
	}
	return t.RoundTrip(r)
}

// scope is whose budget a model takes from: its own if it has limits of its
// own, else the common one, "", in which each model still learns its own.
func (m *Meter) scope(model string) string {
	if _, own := m.c.Models[model]; own {
		return model
	}
	return ""
}

func (m *Meter) open(scope string) (*transport.Transport, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.models[scope]; t != nil {
		return t, nil
	}
	limits, own := m.c.Models[scope]
	if !own {
		limits = m.c.Limits
	}
	var charge *estimate.Charge
	if m.c.Charge != "" {
		c, err := estimate.ParseCharge(m.c.Charge)
		if err != nil {
			return nil, err
		}
		charge = &c
	}
	p := m.profile
	if m.c.StartEmpty {
		if p.Name == "" {
			p = profile.Unknown()
		}
		p.StartEmpty = true
	}
	b, err := m.budget(scope, limits, p)
	if err != nil {
		return nil, err
	}
	h := m.c.Hooks
	t, err := transport.New(transport.Options{
		Base: m.c.Base, Provider: p, Charge: charge, Budget: b, Attempts: m.c.Attempts,
		Retry:          retry.Options{MaxRetryAfter: m.c.MaxRetryAfter},
		StopSDKRetries: m.c.StopSDKRetries,
		Trace:          m.trace(h),
	})
	if err != nil {
		return nil, err
	}
	if m.c.Seen != nil && !m.c.Hidden {
		m.stops = append(m.stops, m.c.Seen.Watch(m.name(scope), t))
	}
	m.models[scope] = t
	return t, nil
}

// budget makes a budget whose line knows tenants.
func (m *Meter) budget(scope string, l Limits, p profile.Profile) (*budget.Budget, error) {
	limits := l.limits()
	o := limit.Options{MaxInFlight: m.c.InFlight, MaxQueue: m.c.MaxQueue, MaxWait: m.c.MaxWait}
	if m.c.Together {
		for i := range limits {
			limits[i].Burst = m.burst(limits[i], p)
			limits[i].Largest = limits[i].Rate.N
			if m.c.Burst > 0 {
				limits[i].Largest = 0
			}
		}
		o.Limits, limits = limits, nil
	}
	line, err := m.line(scope, o)
	if err != nil {
		return nil, err
	}
	for name, t := range m.c.Tenants {
		if err := line.SetScope(name, limit.ScopeOptions{Weight: t.Weight}); err != nil {
			return nil, fmt.Errorf("tenant %s: %w", name, err)
		}
		for _, x := range t.Limits.limits() {
			if err := line.SetScopeLimit(name, x); err != nil {
				return nil, fmt.Errorf("tenant %s: %w", name, err)
			}
		}
	}
	return budget.New(budget.Options{Limits: limits, Burst: m.c.Burst, Profile: p, Ledger: ledger{line}, Secret: m.c.Secret})
}

// line makes the ledger of a budget: in this process, or in the store.
func (m *Meter) line(scope string, o limit.Options) (limit.Ledger, error) {
	if m.c.Store == nil {
		return limit.New(o)
	}
	l, err := m.c.Store(m.name(scope), o)
	if err != nil {
		return nil, err
	}
	if c, ok := l.(io.Closer); ok {
		m.stops = append(m.stops, func() { c.Close() })
	}
	return l, nil
}

// name is what people and stores call the budget of a scope.
func (m *Meter) name(scope string) string {
	if scope == "" {
		return m.c.Name
	}
	return m.c.Name + "/" + scope
}

// trace is the hooks, and those that count.
func (m *Meter) trace(h Hooks) transport.Trace {
	if m.c.Seen == nil {
		return h.trace()
	}
	return seen.Join(h.trace(), m.c.Seen.Trace(m.c.Name))
}

// Close takes the budgets out of Seen and gives their places in a store back.
// Calls that are under way end as they would.
func (m *Meter) Close() {
	m.mu.Lock()
	stops := m.stops
	m.stops = nil
	m.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}

// TenantOf is the tenant of a request, for people.
func TenantOf(r *http.Request) string {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c.tenant
}

// burst is the capacity of a limit that bounds all keys together, as a budget
// gives it to a limit of one.
func (m *Meter) burst(l limit.Limit, p profile.Profile) int64 {
	d := cmp.Or(m.c.Burst, p.TokenBurst, 10*time.Second)
	if l.Unit == limit.Requests {
		d = cmp.Or(m.c.Burst, p.RequestBurst, time.Second)
	}
	return max(1, l.Rate.In(d))
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

// ledger gives each call the tenant and the class of its context.
type ledger struct{ limit.Ledger }

// Admit is that of the Ledger, for the tenant of ctx.
func (l ledger) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	if c, ok := ctx.Value(callerKey{}).(caller); ok {
		a.Tenant = c.tenant
		if c.batch {
			a.Class = limit.Batch
		}
	}
	return l.Ledger.Admit(ctx, a)
}

type callerKey struct{}

type caller struct {
	tenant string
	batch  bool
}

// WithCaller tells the Meter for whom a request is made, and whether others go
// first.
func WithCaller(ctx context.Context, tenant string, batch bool) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{tenant, batch})
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

// A State is one budget now. Its Limits are those of all its scopes, and
// PausedUntil is the last of theirs.
type State struct {
	Model string // "" is the common one
	limit.Snapshot
}

// State is every budget now, the common one first, then by name.
func (m *Meter) State() []State {
	m.mu.Lock()
	budgets := make(map[string]*transport.Transport, len(m.models))
	for name, t := range m.models {
		budgets[name] = t
	}
	m.mu.Unlock()
	var out []State
	for name, t := range budgets {
		s := State{name, t.Snapshot()}
		for _, in := range s.Scopes {
			s.Limits = append(s.Limits, in.Limits...)
			if in.PausedUntil.After(s.PausedUntil) {
				s.PausedUntil = in.PausedUntil
			}
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b State) int { return strings.Compare(a.Model, b.Model) })
	return out
}

// Idle reports whether nothing is under way, owed or paused, and every limit is
// full: a Meter made anew would be the same.
func (m *Meter) Idle() bool {
	for _, s := range m.State() {
		if s.InFlight+s.Waiting > 0 || !s.PausedUntil.IsZero() {
			return false
		}
		for _, l := range s.Limits {
			if l.Credit < l.Capacity {
				return false
			}
		}
	}
	return true
}

// CloseIdleConnections closes the idle connections of the base.
func (m *Meter) CloseIdleConnections() {
	m.mu.Lock()
	t := m.models[""]
	m.mu.Unlock()
	t.CloseIdleConnections()
}

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
