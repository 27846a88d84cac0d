// Package meter is the command's one view of tripmeter's Transport: limits by
// model in, an [http.RoundTripper] and its state out.
//
// The promise: calls of models with limits of their own never wait for each
// other's limits. Where no limit is configured, each model learns its own from
// its answers' headers.
//
// The refusal: at most [MaxModels] models have a budget of their own; all others
// share one, so that made-up names cannot take the memory.
package meter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// MaxModels is how many models have a budget of their own.
const MaxModels = 256

// Limits are what a provider allows a minute. Zero is learned.
type Limits struct {
	RPM, TPM, InputTPM, OutputTPM int64
}

// Config is how a Meter is made. Zero fields are the Transport's defaults.
type Config struct {
	Base     http.RoundTripper
	Limits   Limits            // of all models that Models does not name, together
	Models   map[string]Limits // of each of these models
	Provider string            // name of a profile; "" is found by host
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
// own or nothing is configured, else the common one, "".
func (m *Meter) scope(model string) string {
	if _, own := m.c.Models[model]; own || m.c.Limits == (Limits{}) {
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
	if len(m.models) >= MaxModels && !own {
		return m.models[""], nil
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
	h := m.c.Hooks
	t, err := transport.New(transport.Options{
		Base: m.c.Base, Provider: p, Charge: charge, Burst: m.c.Burst,
		RPM: limits.RPM, TPM: limits.TPM, InputTPM: limits.InputTPM, OutputTPM: limits.OutputTPM,
		MaxInFlight: m.c.InFlight, MaxQueue: m.c.MaxQueue, MaxWait: m.c.MaxWait, Attempts: m.c.Attempts,
		Retry:          retry.Options{MaxRetryAfter: m.c.MaxRetryAfter},
		StopSDKRetries: m.c.StopSDKRetries,
		Trace:          h.trace(),
	})
	if err != nil {
		return nil, err
	}
	m.models[scope] = t
	return t, nil
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
	t.Paused, t.Doubted = h.Paused, h.Doubted
	return t
}

// A State is one budget now.
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
		out = append(out, State{name, t.Snapshot()})
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
