package budget

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"

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

	// MonthTokens and MonthMoney are what it may use in a calendar month, in UTC:
	// tokens, and millionths of the currency of Prices. 0 is any amount. A call
	// that would go beyond is refused at once: nobody waits for weeks. What a call
	// takes on arrival is its price, corrected when its usage is known; the part of
	// it that is a guess takes no more than the month has left. The sums
	// are in memory: a program that starts anew starts a new month.
	MonthTokens, MonthMoney int64

	// Prices say what MonthMoney buys. The first that fits a model counts. A model
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
		{"MonthTokens", t.MonthTokens, math.MaxInt64}, {"MonthMoney", t.MonthMoney, math.MaxInt64},
	} {
		if f.value < 0 || f.value > f.most {
			return t, fmt.Errorf("budget: tenant %q: %s is %d: it must be from 0 to %d", name, f.name, f.value, f.most)
		}
	}
	if t.MonthMoney > 0 && len(t.Prices) == 0 {
		return t, fmt.Errorf("budget: tenant %q: MonthMoney is set, and Prices are not: say what tokens cost", name)
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
	s := b.tenants.set[scope]
	old := b.tenantLocked(scope)
	if s == nil {
		s = new(tenant)
		if b.tenants.set == nil {
			b.tenants.set = map[string]*tenant{}
		}
		b.tenants.set[scope] = s
	}
	s.mu.Lock()
	s.Tenant = t
	s.mu.Unlock()
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
	now := b.tenantLocked(scope)
	b.mu.Unlock()
	b.enforce(scope, old, now)
}

// tenantLocked is what the tenant of a scope has. The caller holds b.mu.
func (b *Budget) tenantLocked(scope string) Tenant {
	if s := b.tenants.set[scope]; s != nil {
		return s.Tenant
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
	if err := b.ledger.SetScope(scope, t.options()); err != nil {
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

func (t *Tenant) options() limit.ScopeOptions {
	return limit.ScopeOptions{Weight: t.Weight, MaxInFlight: t.MaxInFlight, MaxQueue: t.MaxQueue}
}

// tenants are those of a budget.
type tenants struct {
	def  func(name string) Tenant
	edit sync.Mutex         // held for a whole SetTenant; before Budget.mu
	set  map[string]*tenant // by scope; those that were set, and those with a month; guarded by Budget.mu
}

// tenant is a Tenant and its use of the month.
type tenant struct {
	mu sync.Mutex // guards below
	Tenant
	month         int // since year 0
	tokens, money int64
}

// monthly reports whether t has allowances of a month.
func (t *Tenant) monthly() bool { return t.MonthTokens > 0 || t.MonthMoney > 0 }

// turn begins a new month, if now is in one.
func (t *tenant) turn(now time.Time) {
	if m := monthOf(now); m > t.month { // a clock that is set back begins nothing
		t.month, t.tokens, t.money = m, 0, 0
	}
}

func monthOf(t time.Time) int {
	y, m, _ := t.UTC().Date()
	return y*12 + int(m) - 1
}

// nextMonth is when the month of now ends.
func nextMonth(now time.Time) time.Time {
	y, m, _ := now.UTC().Date()
	return time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
}

// A share is what a call holds of its tenant's month.
type share struct {
	of            *tenant
	month         int
	price         ModelPrice
	tokens, money int64
}

// take takes what a call costs on arrival from the month. Only what the request
// itself states can be too much: a guess is cut to what the month has left, and the
// usage corrects it. A month that has nothing left refuses also a guess.
func (t *tenant) take(now time.Time, scope, model string, cost, stated limit.Cost) (share, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.monthly() {
		return share{}, nil
	}
	t.turn(now)
	s := share{of: t, month: t.month, price: t.priceOf(model)}
	costs := cost.Input > 0 || cost.Output > 0
	if t.MonthTokens > 0 {
		cost = cut1(cost, stated, limit.Tokens, max(0, t.MonthTokens-t.tokens))
	}
	if t.MonthMoney > 0 {
		cost = s.price.cut(cost, stated, t.MonthMoney-t.money)
	}
	s.tokens, s.money = addSat(cost.Input, cost.Output), s.price.cost(cost.Input, 0, cost.Output)
	for _, a := range [...]struct {
		name             string
		cost, used, most int64
	}{{MonthTokens, s.tokens, t.tokens, t.MonthTokens}, {MonthMoney, s.money, t.money, t.MonthMoney}} {
		left := a.most - a.used
		if a.most == 0 || a.cost <= left && (left > 0 || !costs) {
			continue
		}
		e := &limit.Error{Reason: limit.ErrWaitTooLong, Dimension: a.name, Scope: scope, Cost: a.cost, Capacity: max(0, left)}
		if a.cost > a.most {
			e.Reason, e.Capacity = limit.ErrTooLarge, a.most
		} else {
			e.Earliest = nextMonth(now)
			e.Wait = e.Earliest.Sub(now)
		}
		return share{}, e
	}
	t.tokens = addSat(t.tokens, s.tokens)
	t.money = addSat(t.money, s.money)
	return s, nil
}

// settle corrects the share of a call to its cost. A month that is over stays as it
// was.
func (s *share) settle(input, cached, output int64) {
	t := s.of
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.month == s.month {
		t.tokens = addSat(t.tokens-s.tokens, addSat(input, output))
		t.money = addSat(t.money-s.money, s.price.cost(input, cached, output))
	}
	s.of = nil
}

// keep leaves it as it is.
func (s *share) keep() { s.of = nil }

func addSat(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// MonthTokens and MonthMoney are the names of a tenant's allowances of a month in
// errors and snapshots.
const (
	MonthTokens = "tokens per month"
	MonthMoney  = "money per month"
)

// monthOfTenant is the tenant of a scope, if it has allowances of a month.
func (b *Budget) monthOfTenant(scope string) *tenant {
	b.mu.RLock()
	t := b.tenants.set[scope]
	b.mu.RUnlock()
	if t != nil || b.tenants.def == nil {
		return t
	}
	def := b.byDefault(scope)
	if !def.monthly() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.tenants.set[scope]; t != nil {
		return t
	}
	if b.tenants.set == nil {
		b.tenants.set = map[string]*tenant{}
	}
	t = &tenant{Tenant: def}
	b.tenants.set[scope] = t
	return t
}

// openTenant is what the ledger gives the scope of a tenant that it does not know.
func (b *Budget) openTenant(scope string) (limit.ScopeOptions, []limit.Limit) {
	b.mu.RLock()
	s := b.tenants.set[scope]
	b.mu.RUnlock()
	var t Tenant
	if s != nil {
		s.mu.Lock()
		t = s.Tenant
		s.mu.Unlock()
	} else {
		t = b.byDefault(scope)
	}
	return t.options(), t.Limits
}

// complete adds the allowances of a month to the state of a tenant's scope.
func (t *tenant) complete(now time.Time, snap *limit.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(now)
	add := func(name string, u limit.Unit, most, used int64) {
		if most == 0 {
			return
		}
		begun := nextMonth(nextMonth(now).AddDate(0, -2, 0))
		l := limit.Limit{Name: name, Unit: u, Rate: limit.Rate{N: most, Window: nextMonth(now).Sub(begun)}}
		snap.Limits = append(snap.Limits, limit.LimitState{
			Limit: l, Configured: l, Capacity: most, Credit: max(0, most-used), Debt: max(0, used-most),
		})
	}
	add(MonthTokens, limit.Tokens, t.MonthTokens, t.tokens)
	add(MonthMoney, limit.Tokens, t.MonthMoney, t.money)
}
