package budget

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/tripmeter/tripmeter/limit"
)

// A Tenant is what one user of a budget may have of it. The zero Tenant has no
// limit of its own and an equal share of what all wait for.
type Tenant struct {
	// Weight is its share of a limit that several tenants wait for; 0 is 1. One
	// with twice the weight gets twice the tokens. See [limit.ScopeOptions].
	Weight int

	// MaxInFlight is how many of its calls may be under way, MaxQueue how many may
	// wait. 0 is any number.
	MaxInFlight, MaxQueue int

	// Limits are its own, of any windows. A call waits for them as for those of
	// the provider.
	Limits []limit.Limit

	// DayTokens, DayMoney, MonthTokens and MonthMoney limit its use in a day and in a
	// month: tokens, and millionths of the currency of Prices. 0 is any amount. A
	// call that would go beyond is refused at once: nobody waits for weeks. What a
	// call takes when it is admitted is its price, corrected when its usage is known.
	// The part of it that is a guess takes no more than is left. The money of a call
	// is rounded up to a millionth.
	//
	// They are part of the one decision about a call: see [limit.Allowances]. Only
	// where Options.Ledger does not keep them ([limit.Meters]) are they taken before the
	// ledger is asked, and given back if it refuses. The sums are those of the ledger. In
	// memory a program that starts anew starts a new day and a new month. They stay while a tenant is changed, and also when it
	// is removed and set again.
	DayTokens, DayMoney, MonthTokens, MonthMoney int64

	// Rolling counts the last 24 hours and the last 30 days. Unset, it is the day and
	// the month of the calendar, in UTC.
	Rolling bool

	// Prices say what DayMoney and MonthMoney buy. The first that fits a model counts. A model
	// that none fits costs as much as the dearest of them, so that nobody spends
	// without end on a model that was forgotten.
	Prices []ModelPrice
}

// A ModelPrice is what tokens of some models cost, in millionths of a currency for
// a million tokens: 2,500,000 is 2.50 for a million.
type ModelPrice struct {
	// Model is the model's name, with * for any characters.
	Model string

	// Input and Output are the prices of tokens. CachedInput is that of input
	// read from a cache; 0 is that of Input.
	Input, CachedInput, Output int64
}

// million is how many tokens a price is for.
const million = 1_000_000

// cost is what tokens cost, in millionths, rounded up. It saturates.
func (p *ModelPrice) cost(input, cached, output int64) int64 {
	cached = min(max(cached, 0), max(input, 0))
	cheap := p.CachedInput
	if cheap == 0 {
		cheap = p.Input
	}
	var hi, lo uint64
	for _, part := range [...][2]int64{{input - cached, p.Input}, {cached, cheap}, {output, p.Output}} {
		h, l := bits.Mul64(uint64(max(part[0], 0)), uint64(part[1]))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
	}
	lo, carry := bits.Add64(lo, million-1, 0)
	if hi += carry; hi >= million/2 {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, million)
	return int64(min(q, math.MaxInt64))
}

// cut takes off tokens what costs more than most, of the output first, but nothing
// of least.
func (p *ModelPrice) cut(tokens, least limit.Cost, most int64) limit.Cost {
	for _, part := range [...]struct {
		have  *int64
		least int64
	}{{&tokens.Output, least.Output}, {&tokens.Input, least.Input}} {
		if p.cost(tokens.Input, 0, tokens.Output) <= most {
			break
		}
		low, high := min(*part.have, part.least), *part.have // high is too much
		for low < high {
			*part.have = low + (high-low)/2 + (high-low)%2
			if p.cost(tokens.Input, 0, tokens.Output) <= most {
				low = *part.have
			} else {
				high = *part.have - 1
			}
		}
		*part.have = low
	}
	return tokens
}

// priceOf is the price of a model.
func (t *Tenant) priceOf(model string) ModelPrice {
	var dearest ModelPrice
	for _, p := range t.Prices {
		if glob(p.Model, model) {
			return p
		}
		dearest.Input = max(dearest.Input, p.Input)
		dearest.CachedInput = max(dearest.CachedInput, p.CachedInput, p.Input)
		dearest.Output = max(dearest.Output, p.Output)
	}
	return dearest
}

func (t Tenant) checked(name string) (Tenant, error) {
	for _, f := range []struct {
		name  string
		value int64
		most  int64
	}{
		{"Weight", int64(t.Weight), limit.MaxWeight}, {"MaxInFlight", int64(t.MaxInFlight), math.MaxInt64}, {"MaxQueue", int64(t.MaxQueue), 1 << 22},
		{"DayTokens", t.DayTokens, math.MaxInt64}, {"DayMoney", t.DayMoney, math.MaxInt64},
		{"MonthTokens", t.MonthTokens, math.MaxInt64}, {"MonthMoney", t.MonthMoney, math.MaxInt64},
	} {
		if f.value < 0 || f.value > f.most {
			return t, fmt.Errorf("budget: tenant %q: %s is %d: it must be from 0 to %d", name, f.name, f.value, f.most)
		}
	}
	for _, f := range [...]struct {
		name  string
		value int64
	}{{"DayMoney", t.DayMoney}, {"MonthMoney", t.MonthMoney}} {
		if f.value > 0 && len(t.Prices) == 0 {
			return t, fmt.Errorf("budget: tenant %q: %s is set, and Prices are not: say what tokens cost", name, f.name)
		}
	}
	for i, p := range t.Prices {
		if p.Model == "" || min(p.Input, p.CachedInput, p.Output) < 0 || max(p.Input, p.CachedInput, p.Output) > 1e15 {
			return t, fmt.Errorf("budget: tenant %q: Prices[%d] needs a model and prices from 0 to 10^15", name, i)
		}
	}
	var err error
	if t.Limits, err = checkLimits(t.Limits, 0); err != nil {
		return t, fmt.Errorf("budget: tenant %q: %w", name, err)
	}
	return t, nil
}

// ofTenant marks the scope of a tenant: no host begins with it.
const ofTenant = "@"

// TenantScope is the name of a tenant's scope in the ledger. Names that are long
// or have odd characters are cut and get a keyed hash. A name that is a secret,
// such as a token, must go through [Budget.Hash] before.
func (b *Budget) TenantScope(name string) string {
	if name == "" {
		return ""
	}
	return ofTenant + b.clean(name, 80, "")
}

// Hash is the keyed hash by which the budget shows a secret: 12 hexadecimal
// digits, the same for the same secret as long as the budget's key is the same.
func (b *Budget) Hash(secret string) string { return b.hash(secret) }

// SetTenant says what a tenant may have, from now on, also while its calls run. It
// replaces what was said before. A value that cannot be is an error and changes
// nothing.
func (b *Budget) SetTenant(name string, t Tenant) error {
	if name == "" {
		return errors.New("budget: SetTenant needs a name; calls without one are of the common tenant")
	}
	t, err := t.checked(name)
	if err != nil {
		return err
	}
	t.Prices = slices.Clone(t.Prices)
	scope := b.TenantScope(name)
	b.tenants.edit.Lock()
	defer b.tenants.edit.Unlock()
	b.mu.Lock()
	old := b.tenantLocked(scope)
	if b.tenants.set == nil {
		b.tenants.set = map[string]*Tenant{}
	}
	b.tenants.set[scope] = &t
	b.mu.Unlock()
	return b.enforce(scope, old, t)
}

// RemoveTenant takes back what [Budget.SetTenant] said: the tenant has again what
// Options.Tenants gives it. Its calls go on.
func (b *Budget) RemoveTenant(name string) {
	scope := b.TenantScope(name)
	b.tenants.edit.Lock()
	defer b.tenants.edit.Unlock()
	b.mu.Lock()
	old := b.tenantLocked(scope)
	delete(b.tenants.set, scope)
	delete(b.tenants.known, scope)
	now := b.tenantLocked(scope)
	b.mu.Unlock()
	b.enforce(scope, old, now)
}

// tenantLocked is what the tenant of a scope has. The caller holds b.mu.
func (b *Budget) tenantLocked(scope string) Tenant {
	if t := b.tenants.set[scope]; t != nil {
		return *t
	}
	return b.byDefault(scope)
}

// byDefault is what Options.Tenants gives the tenant of a scope.
func (b *Budget) byDefault(scope string) Tenant {
	if b.tenants.def == nil {
		return Tenant{}
	}
	name := strings.TrimPrefix(scope, ofTenant)
	t, err := b.tenants.def(name).checked(name)
	if err != nil {
		return Tenant{} // what cannot be limits nobody
	}
	return t
}

// enforce brings the ledger from the old limits of a tenant to the new ones.
func (b *Budget) enforce(scope string, old, t Tenant) error {
	if l, ok := b.ledger.(*limit.Limiter); ok && b.own {
		return l.Reopen(scope)
	}
	if b.beside != nil {
		if err := b.beside.Reopen(scope); err != nil {
			return err
		}
	}
	if err := b.ledger.SetScope(scope, b.options(&t)); err != nil {
		return err
	}
	for _, l := range old.Limits {
		if !slices.ContainsFunc(t.Limits, func(n limit.Limit) bool { return n.Name == l.Name }) {
			b.ledger.SetScopeLimit(scope, limit.Limit{Name: l.Name})
		}
	}
	for _, l := range t.Limits {
		if err := b.ledger.SetScopeLimit(scope, l); err != nil {
			return err
		}
	}
	return nil
}

// options are those of a tenant's scope in the ledger.
func (b *Budget) options(t *Tenant) limit.ScopeOptions {
	o := limit.ScopeOptions{Weight: t.Weight, MaxInFlight: t.MaxInFlight, MaxQueue: t.MaxQueue}
	if b.beside == nil {
		o.Allowances = t.allowances()
	}
	return o
}

// pays reports whether the tenant has allowances.
func (t *Tenant) pays() bool { return t.DayTokens|t.DayMoney|t.MonthTokens|t.MonthMoney != 0 }

// allowances are those of the tenant, nil if it has none.
func (t *Tenant) allowances() *limit.Allowances {
	if !t.pays() {
		return nil
	}
	return &limit.Allowances{
		DayTokens: t.DayTokens, DayMoney: t.DayMoney, MonthTokens: t.MonthTokens, MonthMoney: t.MonthMoney, Rolling: t.Rolling,
	}
}

// tenants are those of a budget. A Tenant in them never changes.
type tenants struct {
	def   func(name string) Tenant
	edit  sync.Mutex         // held for a whole SetTenant; before Budget.mu
	set   map[string]*Tenant // by scope; guarded by Budget.mu
	known map[string]*Tenant // some of those by default; guarded by Budget.mu
}

// maxKnown is how many tenants by default are kept, so that not every call asks for
// its own anew.
const maxKnown = 8192

// MonthTokens and the others are the names of a tenant's allowances in errors and
// snapshots.
const (
	DayTokens   = limit.DayTokens
	DayMoney    = limit.DayMoney
	MonthTokens = limit.MonthTokens
	MonthMoney  = limit.MonthMoney
)

// payer is the tenant of a scope, nil if it has no allowances.
func (b *Budget) payer(scope string) *Tenant {
	b.mu.RLock()
	t := b.tenants.set[scope]
	if t == nil {
		t = b.tenants.known[scope]
	}
	b.mu.RUnlock()
	if t == nil && b.tenants.def != nil {
		t = b.know(scope)
	}
	if t == nil || !t.pays() {
		return nil
	}
	return t
}

// know keeps what a tenant has by default.
func (b *Budget) know(scope string) *Tenant {
	t := b.byDefault(scope)
	b.mu.Lock()
	defer b.mu.Unlock()
	if set := b.tenants.set[scope]; set != nil {
		return set
	}
	if len(b.tenants.known) >= maxKnown {
		clear(b.tenants.known)
	}
	if b.tenants.known == nil {
		b.tenants.known = map[string]*Tenant{}
	}
	b.tenants.known[scope] = &t
	return &t
}

// openTenant is what the ledger gives the scope of a tenant that it does not know.
func (b *Budget) openTenant(scope string) (limit.ScopeOptions, []limit.Limit) {
	t := b.present(scope)
	return b.options(&t), t.Limits
}

// keepsAllowances reports whether a foreign ledger keeps the allowances of tenants, also
// of those by default if there are any: it must ask for them.
func (b *Budget) keepsAllowances(byDefault bool) bool {
	if !limit.MetersOf(b.ledger).Allowances {
		return false
	}
	if !byDefault {
		return true
	}
	o, ok := b.ledger.(limit.Opener)
	return ok && o.OpenWith(func(scope string) (limit.ScopeOptions, []limit.Limit) {
		if !strings.HasPrefix(scope, ofTenant) {
			return limit.ScopeOptions{}, nil
		}
		return b.openTenant(scope)
	})
}

// openBeside is what the limiter beside a foreign ledger gives such a scope.
func (b *Budget) openBeside(scope string) (limit.ScopeOptions, []limit.Limit) {
	t := b.present(scope)
	return limit.ScopeOptions{Allowances: t.allowances()}, nil
}

// present is what the tenant of a scope has now.
func (b *Budget) present(scope string) Tenant {
	b.mu.RLock()
	t := b.tenants.set[scope]
	b.mu.RUnlock()
	if t == nil && b.tenants.def != nil {
		t = b.know(scope)
	}
	if t == nil {
		return Tenant{}
	}
	return *t
}
