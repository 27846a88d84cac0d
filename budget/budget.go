package budget

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

// Options configure a [Budget]. Every field may be zero, which is unset:
// unlimited for a limit. The zero Options learn the limits from headers.
type Options struct {
	// Limits are what the user configured for each account: they bound all that
	// passes to one account together. Each is a ceiling: headers may lower it,
	// nothing raises it. A limit without a name gets that of [NameOf].
	Limits []limit.Limit

	// Burst is the capacity of every limit of a minute or less, as a time of its
	// rate. Unset, the profile says.
	Burst time.Duration

	// MaxInFlight, MaxQueue and MaxWait are those of [limit.Options]: of all
	// accounts together.
	MaxInFlight, MaxQueue int
	MaxWait               time.Duration

	// MaxPause is the longest wait of a provider that holds everybody; 0 is
	// [DefaultMaxPause]. After it one call goes at a time while the provider's wait
	// lasts, and the first that is answered ends the wait. The refused call itself is
	// never sent before the provider's time.
	MaxPause time.Duration

	// Profile is that of every account, if it is known before the first call. The
	// zero Profile waits for [Path.Adopt].
	Profile profile.Profile

	// Ledger is used instead of a [limit.Limiter] made by the Budget. MaxInFlight,
	// MaxQueue and MaxWait must then be unset. The limits that its root has when it
	// is handed over bound all accounts together.
	Ledger limit.Ledger

	// Models are limits of models, beside those of the account that they are of.
	Models []Model

	// Tenants says what a tenant has that [Budget.SetTenant] has not named, by its
	// name as it is shown. It is called when the tenant's scope is made, and may be
	// called by several goroutines. Nil is the zero Tenant. It is not asked where
	// Ledger is set that is no [limit.Opener]: [Budget.SetTenant] then names each tenant.
	Tenants func(name string) Tenant

	// Floor is the share of each limit, in per cent, that calls of the class
	// [limit.Batch] get while interactive ones wait for it too; 0 is 10.
	Floor int

	// Secret is the key of the hash that stands for a credential in the names of
	// scopes. Unset, it is that of a Ledger that is [limit.Keyed], else random: the
	// names are then of this Budget alone. Budgets in several processes over one store
	// need the same.
	Secret []byte
}

// String counts what is set, and shows nothing of Secret.
func (o Options) String() string {
	return fmt.Sprintf("budget options: %d limits, %d models", len(o.Limits), len(o.Models))
}

// GoString is String, for %#v.
func (o Options) GoString() string { return o.String() }

// LogValue is String, for package log/slog.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// A Budget is the credit of the accounts that calls pass to, and what was
// configured for them. Several Transports may share it. Make it with [New]; it may
// be used by any number of goroutines.
type Budget struct {
	ledger     limit.Ledger
	own        bool          // the ledger asks open for what it has forgotten
	configured []limit.Limit // of each account
	models     []Model
	burst      time.Duration
	maxPause   time.Duration
	profile    profile.Profile
	secret     []byte
	born       time.Time // instants that are kept as numbers count from it, on the monotonic clock
	seeds      [2]maphash.Seed
	root       *Scope
	tenants    tenants
	beside     *limit.Limiter // of allowances, where the ledger cannot keep them; or nil
	setting    sync.Mutex     // held for a whole SetLimit; before mu

	last     atomic.Pointer[found] // that was asked for last
	attempts atomic.Uint64         // that have left

	mu sync.RWMutex // guards below; never held while the ledger is called
	// changed counts SetModels.
	changed uint64
	paths   map[key]*found
	scopes  map[string]*Scope
	ring    []*Scope           // all of scopes, in no order
	hand    int                // in ring: see room
	prices  map[string]*Prices // by host
}

// found is a path with the key that finds it.
type found struct {
	key  key
	path *Path
}

// New returns a Budget. Errors are a [*limit.ConfigError], or name a field of
// Options.
func New(o Options) (*Budget, error) {
	b := &Budget{
		ledger: o.Ledger, own: o.Ledger == nil, burst: o.Burst, maxPause: cmp.Or(o.MaxPause, DefaultMaxPause), profile: o.Profile, secret: o.hashKey(),
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		paths: map[key]*found{}, scopes: map[string]*Scope{}, prices: map[string]*Prices{},
	}
	if o.MaxPause < 0 {
		return nil, fmt.Errorf("budget: Options.MaxPause is %v: it must not be negative; zero is unset", o.MaxPause)
	}
	if o.Burst < 0 {
		return nil, fmt.Errorf("budget: Options.Burst is %v: it must not be negative; zero is unset", o.Burst)
	}
	var err error
	if b.configured, err = checkLimits(o.Limits, o.Burst); err != nil {
		return nil, err // each account will get them
	}
	for i, m := range o.Models {
		if m, err = m.checked(i, o.Burst); err != nil {
			return nil, err
		}
		b.models = append(b.models, m)
	}
	b.tenants.def = o.Tenants
	limits := limit.Options{MaxInFlight: o.MaxInFlight, MaxQueue: o.MaxQueue, MaxWait: o.MaxWait, Floor: o.Floor, Open: b.open}
	if o.Ledger != nil {
		if isNil(o.Ledger) {
			return nil, fmt.Errorf("budget: Options.Ledger is a nil %T: make it first, or leave the field unset", o.Ledger)
		}
		if o.MaxInFlight|o.MaxQueue|o.Floor != 0 || o.MaxWait != 0 {
			return nil, errors.New("budget: Options.Ledger is set, and so are MaxInFlight, MaxQueue, MaxWait or Floor: set them in the ledger itself")
		}
	} else {
		l, err := limit.New(limits)
		if err != nil {
			return nil, err
		}
		b.ledger = l
	}
	if !b.own && !b.keepsAllowances(o.Tenants != nil) {
		l, err := limit.New(limit.Options{Open: b.openBeside})
		if err != nil {
			return nil, err
		}
		b.beside = l
	}
	b.born = time.Now()
	b.root = b.newScope("", "")
	if !b.own {
		b.root.inherit(b.stateOf(""), nil)
	}
	if o.Profile.Name != "" {
		b.root.Adopt(time.Now(), o.Profile)
	}
	return b, nil
}

// Path returns what a call takes from. It takes tens of nanoseconds for an address
// that was asked for before.
func (b *Budget) Path(a Address) *Path {
	if len(a.Host)+len(a.Account)+len(a.Model) > 500 { // keys are kept
		a.Host, a.Account, a.Model = b.clean(a.Host, 80, "#/"), b.clean(a.Account, 40, "/"), b.clean(a.Model, 80, "")
	}
	k := b.key(&a)
	if f := b.last.Load(); f != nil && f.key == k && !f.path.gone() {
		return f.path
	}
	b.mu.RLock()
	f := b.paths[k]
	b.mu.RUnlock()
	if f == nil || f.path.gone() {
		f = b.find(k, &a)
	}
	b.last.Store(f)
	return f.path
}

// find makes the path of an address that is not known, or is not any more.
func (b *Budget) find(k key, a *Address) *found {
	p := &Path{budget: b, key: k, host: a.Host, scopes: []*Scope{b.root}}
	changed := p.addScopes(a)
	if b.profile.Name != "" {
		p.Adopt(time.Now(), b.profile)
	}
	f := &found{k, p}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != changed {
		p.replaced.Store(true) // the next call finds it anew
		return f
	}
	if of := b.paths[k]; of != nil && !of.path.gone() {
		return of
	}
	if len(b.paths) >= maxPaths {
		clear(b.paths) // they are made again from the scopes, which stay
	}
	b.paths[k] = f
	return f
}

// addScopes adds the scopes below the root: the account, what models share, the model.
// It returns how often the configuration had changed when it was read.
func (p *Path) addScopes(a *Address) (changed uint64) {
	b := p.budget
	account := b.accountName(a)
	b.mu.RLock()
	configured, m, changed := b.configured, b.modelOf(a.Model), b.changed // * fits a call that names no model
	b.mu.RUnlock()
	p.addScope(account, configured, limit.ScopeOptions{})
	p.account = p.inner
	p.account.isAccount()
	if m != nil && m.Shared {
		p.addScope(b.groupName(account, m), m.Limits, limit.ScopeOptions{MaxInFlight: m.MaxInFlight})
		p.inner.shared.Store(true)
		p.inner.isOf(belongs{m.Names[0], true})
		m = nil
	}
	if m == nil {
		m = new(Model)
	}
	if t := together(&b.profile, a.Model); t != "" {
		p.addScope(b.togetherName(account, t), nil, limit.ScopeOptions{})
		p.inner.shared.Store(true)
	}
	if a.Model != "" {
		outer := p.inner
		p.addScope(b.modelName(account, a.Model), m.Limits, limit.ScopeOptions{MaxInFlight: m.MaxInFlight})
		if p.inner != outer { // else there is no room for one of its own
			p.inner.isOf(belongs{a.Model, false})
		}
	}
	return changed
}

// addScope adds the scope of a name below the others, with the limits that are
// configured for it. Where there is no room for a scope more, it adds none below an
// account. In place of an account it adds the scope that all further ones share.
func (p *Path) addScope(name string, limits []limit.Limit, options limit.ScopeOptions) {
	b := p.budget
	s, made := b.scope(name, p.host)
	if s == nil && p.account != nil {
		return // its calls take from the account alone
	}
	if s == nil {
		name = others
		s, made = b.scope(name, "")
	}
	s.configure(limits, options)
	if made && !b.own { // another budget may have put limits in force there
		s.inherit(b.stateOf(name), p.scopes)
	}
	p.names, p.scopes, p.inner = append(p.names, name), append(p.scopes, s), s
}

// scope is the scope of that name, made if it is not there; nil if there is no room
// for it.
func (b *Budget) scope(name, host string) (s *Scope, made bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.scopes[name]; s != nil {
		return s, false
	}
	if !b.room(time.Now()) && name != others {
		return nil, false
	}
	s = b.newScope(name, host)
	b.scopes[name] = s
	b.ring = append(b.ring, s)
	return s, true
}

// newScope makes a scope. The caller holds b.mu.
func (b *Budget) newScope(name, host string) *Scope {
	p := b.prices[host]
	if p == nil {
		if len(b.prices) >= maxHosts {
			host = others
		}
		if p = b.prices[host]; p == nil {
			p = new(Prices)
			b.prices[host] = p
		}
	}
	return &Scope{
		ledger: b.ledger, own: b.own, name: name, host: b.clean(host, 80, ""), burst: b.burst, maxPause: b.maxPause,
		shape: shapeOf(&profile.Profile{}, b.burst), profile: new(profile.Profile), prices: p,
	}
}

// open tells the ledger what a scope has that it does not know any more. It was
// full when the ledger forgot it.
func (b *Budget) open(name string) (limit.ScopeOptions, []limit.Limit) {
	b.mu.RLock()
	s := b.scopes[name]
	b.mu.RUnlock()
	switch {
	case s != nil:
		return s.opt(), s.limits()
	case strings.HasPrefix(name, ofTenant):
		return b.openTenant(name)
	}
	return limit.ScopeOptions{}, nil
}

// stateOf is the state of one scope of the ledger. With very many scopes a snapshot of
// all of them would take a tenth of a second for each new model.
func (b *Budget) stateOf(scope string) limit.Snapshot {
	if l, ok := b.ledger.(interface{ SnapshotOf(string) limit.Snapshot }); ok {
		return l.SnapshotOf(scope)
	}
	all := b.ledger.Snapshot()
	for _, one := range all.Scopes {
		if one.Scope == scope {
			return one
		}
	}
	if scope != all.Scope {
		return limit.Snapshot{Scope: scope}
	}
	return all
}

// Snapshot is the state of the budget now, for people and metrics: what all share,
// and in it the accounts and models that are in use.
func (b *Budget) Snapshot() limit.Snapshot {
	snap := b.ledger.Snapshot()
	allowed := map[string][]limit.LimitState{}
	if b.beside != nil {
		for _, one := range b.beside.Snapshot().Scopes {
			allowed[one.Scope] = one.Limits
		}
	}
	b.root.complete(&snap)
	for i := range snap.Scopes {
		one := &snap.Scopes[i]
		b.mu.RLock()
		s := b.scopes[one.Scope]
		b.mu.RUnlock()
		if s != nil {
			s.complete(one)
		}
		one.Limits = append(one.Limits, allowed[one.Scope]...)
	}
	return snap
}

// String says what this is, and nothing of what it holds.
func (b *Budget) String() string { return "tripmeter budget" }

// GoString is String, for %#v.
func (b *Budget) GoString() string { return b.String() }
