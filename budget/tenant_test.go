package budget

import (
	"context"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/usage"
)

// of makes a call of a tenant that is admitted and leaves now.
func of(t testing.TB, b *Budget, tenant string, r *estimate.Request) (*Call, error) {
	t.Helper()
	c := new(Call)
	c.Open(b.Scope(), silent{}, r, 1)
	c.For(Who{Tenant: b.TenantScope(tenant)})
	if err := c.Admit(context.Background(), time.Now()); err != nil {
		return nil, err
	}
	c.Leave(time.Now())
	return c, nil
}

// left is the credit of a tenant's allowance.
func left(t testing.TB, b *Budget, tenant, name string) int64 {
	t.Helper()
	for _, s := range b.Snapshot().Scopes {
		for _, l := range s.Limits {
			if s.Scope == b.TenantScope(tenant) && l.Name == name {
				return balance(l)
			}
		}
	}
	t.Fatalf("%s has no %s", tenant, name)
	return 0
}

// What a call takes from its tenant's month, for each ending: as much as it used,
// or its price where that is not known, and nothing if the ledger refused it.
func TestAMonthAtEachEnding(t *testing.T) {
	prices := []ModelPrice{{Model: "m", Input: 2_000_000, CachedInput: 500_000, Output: 8_000_000}}
	for name, row := range map[string]struct {
		end           func(*Call)
		tokens, money int64 // taken
	}{
		"answered": {func(c *Call) {
			r := usage.Result{Found: true, Complete: true}
			r.Input, r.CachedInput, r.Output = usage.Count{N: 100, OK: true}, usage.Count{N: 40, OK: true}, usage.Count{N: 7, OK: true}
			c.Settle(time.Now(), &r)
		}, 107, 60*2 + 20 + 56},
		"unknown": {func(c *Call) { c.End(Unknown) }, 400, 300*2 + 100*8},
		"unsent":  {func(c *Call) { c.End(Unsent) }, 0, 0},
		"free":    {func(c *Call) { c.End(Free) }, 0, 0},
		"refused, and tried again": {func(c *Call) {
			c.Hear(time.Now(), &headers.Info{}, true)
			c.Refuse(time.Now(), Refusal{Wait: time.Second})
			if err := c.AdmitAgain(context.Background(), time.Now()); err != nil {
				panic(err)
			}
			c.Leave(time.Now())
			c.End(Unknown)
		}, 400, 1400},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(t, Options{Limits: perMinute(), Profile: ruled(estimate.ChargeSettle)})
				if err := b.SetTenant("a", Tenant{MonthTokens: 10_000, MonthMoney: 10_000, Prices: prices}); err != nil {
					t.Fatal(err)
				}
				c, err := of(t, b, "a", request(300, 100))
				if err != nil {
					t.Fatal(err)
				}
				row.end(c)
				c.End(Unknown) // an end after the end does nothing
				if got := 10_000 - left(t, b, "a", MonthTokens); got != row.tokens {
					t.Errorf("%d tokens are taken, want %d", got, row.tokens)
				}
				if got := 10_000 - left(t, b, "a", MonthMoney); got != row.money {
					t.Errorf("%d of money are taken, want %d", got, row.money)
				}
			})
		})
	}
}

// A call beyond the month is refused at once, and says when the next one begins. A
// call that is given up in the line of the ledger takes nothing of the month.
func TestBeyondTheMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Limits: perMinute(), Profile: ruled(estimate.ChargeSettle)})
		if err := b.SetTenant("a", Tenant{MonthTokens: 1000}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			c, err := of(t, b, "a", request(300, 100))
			if err != nil {
				t.Fatal(err)
			}
			c.End(Unknown)
		}
		_, err := of(t, b, "a", request(300, 100))
		var e *limit.Error
		if !errors.As(err, &e) || !errors.Is(err, limit.ErrWaitTooLong) || e.Dimension != MonthTokens || e.Scope != "@a" || e.Capacity != 200 {
			t.Fatalf("error %v", err)
		}
		if next := time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC); !e.Earliest.Equal(next) || e.Wait != time.Until(next) {
			t.Errorf("earliest %v after %v; it is %v", e.Earliest, e.Wait, time.Now())
		}
		if _, err := of(t, b, "a", request(3000, 100)); !errors.Is(err, limit.ErrTooLarge) {
			t.Errorf("more than a month: error %v", err)
		}
		time.Sleep(e.Wait)
		if _, err := of(t, b, "a", request(300, 100)); err != nil {
			t.Errorf("in the next month: %v", err)
		}

		b.ledger.PauseScope("", limit.Pause{For: time.Hour})
		before := left(t, b, "a", MonthTokens)
		ctx, cancel := context.WithCancel(t.Context())
		var c Call
		c.Open(b.Scope(), silent{}, request(100, 10), 1)
		c.For(Who{Tenant: "@a"})
		time.AfterFunc(time.Second, cancel)
		if err := c.Admit(ctx, time.Now()); !errors.Is(err, context.Canceled) || left(t, b, "a", MonthTokens) != before {
			t.Errorf("error %v, %d left of %d", err, left(t, b, "a", MonthTokens), before)
		}
	})
}

// Only what a request states is too much for a month. A guess takes no more than is
// left, and the usage corrects it. A month with nothing left refuses it.
func TestAGuessIsNotTooLargeForAMonth(t *testing.T) {
	for _, charge := range []estimate.Charge{estimate.ChargeSettle, estimate.ChargeActual, estimate.ChargeEstimate} {
		for name, tenant := range map[string]Tenant{
			MonthTokens: {MonthTokens: 100},
			MonthMoney:  {MonthMoney: 100, Prices: []ModelPrice{{Model: "m", Input: million, Output: million}}},
		} {
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(t, Options{Limits: perMinute(), Profile: ruled(charge)})
				if err := b.SetTenant("a", tenant); err != nil {
					t.Fatal(err)
				}
				c, err := of(t, b, "a", request(30, 0))
				if err != nil {
					t.Fatalf("%v, %s: a call without a cap: %v", charge, name, err)
				}
				if got := left(t, b, "a", name); got != 0 {
					t.Errorf("%v, %s: the guess left %d, want what is left to be taken", charge, name, got)
				}
				if _, err := of(t, b, "a", request(1, 0)); !errors.Is(err, limit.ErrWaitTooLong) {
					t.Errorf("%v, %s: beside it: %v", charge, name, err)
				}
				r := usage.Result{Found: true, Complete: true}
				r.Input, r.Output = usage.Count{N: 30, OK: true}, usage.Count{N: 5, OK: true}
				c.Settle(time.Now(), &r)
				if _, err := of(t, b, "a", request(30, 71)); !errors.Is(err, limit.ErrTooLarge) {
					t.Errorf("%v, %s: a stated cap beyond the month: %v", charge, name, err)
				}
				guess := request(60, 0)
				guess.Guess = 60 // such as an upload that was not read
				if charge == estimate.ChargeEstimate {
					return // its price stays
				}
				if got := left(t, b, "a", name); got != 65 {
					t.Errorf("%v, %s: the usage left %d, want 65", charge, name, got)
				}
				c, err = of(t, b, "a", guess)
				if err != nil {
					t.Fatalf("%v, %s: a call of a guess: %v", charge, name, err)
				}
				if _, err := of(t, b, "a", guess); !errors.Is(err, limit.ErrWaitTooLong) {
					t.Errorf("%v, %s: a guess in a month without anything left: %v", charge, name, err)
				}
				c.End(Unsent)
				if got := left(t, b, "a", name); got != 65 {
					t.Errorf("%v, %s: the call that was not sent left %d, want 65", charge, name, got)
				}
			})
		}
	}
}

// The cut takes off exactly the tokens that cost too much.
func TestACutGuessCostsAllThatIsLeft(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 20_000 {
		p := ModelPrice{Input: r.Int64N(5 * million), Output: r.Int64N(5 * million)}
		c := limit.Cost{Input: r.Int64N(1000), Output: r.Int64N(1000)}
		least := limit.Cost{Input: r.Int64N(c.Input + 1), Output: r.Int64N(c.Output + 1)}
		most := r.Int64N(5000) - 100
		got := p.cut(c, least, most)
		price := p.cost(got.Input, 0, got.Output)
		switch {
		case got.Input < least.Input || got.Output < least.Output || got.Input > c.Input || got.Output > c.Output:
			t.Fatalf("%+v of %+v, at least %+v", got, c, least)
		case price > most && got != least:
			t.Fatalf("%+v costs %d of %d and could be %+v", got, price, most, least)
		case got.Output < c.Output && got.Input == c.Input && p.cost(got.Input, 0, got.Output+1) <= most,
			got.Input < c.Input && p.cost(got.Input+1, 0, got.Output) <= most:
			t.Fatalf("%+v costs %d, and a token more is within %d", got, price, most)
		}
	}
}

// Prices are exact: rounded up to a millionth, for any numbers.
func TestPricesAgainstBigNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 100_000 {
		n := func(bits int) int64 { return int64(r.Uint64N(1 << r.IntN(bits))) }
		p := ModelPrice{Input: n(50), CachedInput: n(50), Output: n(50)}
		input, cached, output := n(62), n(62), n(62)
		cheap := p.CachedInput
		if cheap == 0 {
			cheap = p.Input
		}
		sum := new(big.Int)
		for _, part := range [][2]int64{{input - min(cached, input), p.Input}, {min(cached, input), cheap}, {output, p.Output}} {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
		}
		sum.Add(sum, big.NewInt(million-1)).Quo(sum, big.NewInt(million))
		want := int64(math.MaxInt64)
		if sum.IsInt64() {
			want = sum.Int64()
		}
		if got := p.cost(input, cached, output); got != want {
			t.Fatalf("%+v for %d, %d, %d: %d, want %d", p, input, cached, output, got, want)
		}
	}
	dear := Tenant{Prices: []ModelPrice{{Model: "a*", Input: 5, Output: 1}, {Model: "b", Input: 1, Output: 9}}}
	if p := dear.priceOf("another"); p.Input != 5 {
		t.Errorf("the first that fits is %+v", p)
	}
	if p := dear.priceOf("x"); p.Input != 5 || p.Output != 9 {
		t.Errorf("a model without a price costs %+v", p)
	}
}

// A tenant is added, changed and removed while its calls run, and named by a
// function before anybody has set it.
func TestTenantsChangeWhileCallsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Profile: ruled(estimate.ChargeSettle), Tenants: func(name string) Tenant {
			return Tenant{Weight: len(name), Limits: []limit.Limit{{Name: rpm, Rate: limit.PerMinute(60), Burst: 1}}}
		}})
		scope := func() limit.Snapshot {
			for _, s := range b.Snapshot().Scopes {
				if s.Scope == "@abc" {
					return s
				}
			}
			return limit.Snapshot{}
		}
		c, err := of(t, b, "abc", request(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		if s := scope(); s.Options.Weight != 3 || len(s.Limits) != 1 || s.InFlight != 1 {
			t.Errorf("by default: %+v", s)
		}
		if err := b.SetTenant("abc", Tenant{Weight: 9, MaxInFlight: 2}); err != nil {
			t.Fatal(err)
		}
		if s := scope(); s.Options.Weight != 9 || s.MaxInFlight != 2 || len(s.Limits) != 0 || s.InFlight != 1 {
			t.Errorf("set: %+v", s)
		}
		if err := b.SetTenant("abc", Tenant{Weight: -1}); err == nil || !strings.Contains(err.Error(), "Weight is -1") {
			t.Errorf("error %v", err)
		}
		b.RemoveTenant("abc")
		if s := scope(); s.Options.Weight != 3 || len(s.Limits) != 1 {
			t.Errorf("removed: %+v", s)
		}
		c.End(Unknown)
		if n := b.Snapshot().InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
		if name := b.TenantScope(strings.Repeat("x", 1000)); len(name) > 100 {
			t.Errorf("a name of %d bytes", len(name))
		}
		if h := b.Hash("sk-secret"); len(h) != 12 || h != b.Hash("sk-secret") || h == newBudget(t, Options{}).Hash("sk-secret") {
			t.Errorf("hash %q", h)
		}
		for want, bad := range map[string]Tenant{
			"MonthMoney is set":    {MonthMoney: 1},
			"Prices[0]":            {Prices: []ModelPrice{{Model: "m", Input: -1}}},
			"MaxInFlight is -1":    {MaxInFlight: -1},
			"Limits[0].Rate.N":     {Limits: []limit.Limit{{Rate: limit.PerMinute(-1)}}},
			"MonthTokens is -1000": {MonthTokens: -1000},
		} {
			if err := b.SetTenant("x", bad); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: error %v", want, err)
			}
		}
	})
}

// A limit that is set by hand while calls run stays set after any refusal.
func TestALimitSetByHandStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Limits: perMinute(), Profile: ruled(estimate.ChargeEstimate)})
		refuse := func() {
			time.Sleep(70 * time.Second)
			c := open(t, b, request(300, 100))
			c.Hear(time.Now(), &headers.Info{}, true)
			c.Refuse(time.Now(), Refusal{Wait: time.Second, Dimension: "tokens"})
		}
		for range 3 {
			refuse()
		}
		if err := b.SetLimit(limit.Limit{Unit: limit.Tokens, Rate: limit.PerMinute(30_000)}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			refuse()
			if s := state(t, b, tpm); s.Configured.Rate.N != 30_000 || s.Rate.N > 30_000 {
				t.Fatalf("%v in force, %v configured", s.Rate, s.Configured.Rate)
			}
		}
		time.Sleep(time.Hour)
		c := open(t, b, request(300, 100))
		c.Pass(time.Now())
		c.End(Unknown)
		if s := state(t, b, tpm); s.Rate.N != 30_000 {
			t.Errorf("an hour later %v", s.Rate)
		}
		q := b.Path(Address{Host: "another.test"})
		if q.start(); len(q.account.dims) != 2 || q.account.dims[1].configured.Rate.N != 30_000 {
			t.Errorf("another account has %+v", q.account.dims)
		}
		if err := b.SetLimit(limit.Limit{Name: tpm}); err != nil {
			t.Fatal(err)
		}
		for _, s := range b.Snapshot().Scopes {
			for _, l := range s.Limits {
				if l.Name == tpm {
					t.Errorf("%s still has %v", s.Scope, l)
				}
			}
		}
		if b.SetLimit(limit.Limit{}) == nil || b.SetLimit(limit.Limit{Rate: limit.PerMinute(-1)}) == nil {
			t.Error("an impossible limit was set")
		}
	})
}
