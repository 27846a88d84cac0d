package budget

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
)

// withoutAllowances is a ledger that knows nothing of allowances.
type withoutAllowances struct{ limit.Ledger }

// The day and the month, in tokens and in money, of the calendar and rolling, in this
// ledger and beside another one: each refuses at once, and the ledger has spent nothing.
func TestEachAllowanceRefusesBeforeAnythingIsSpent(t *testing.T) {
	prices := []ModelPrice{{Model: "m", Input: million, Output: million}}
	for name, tenant := range map[string]Tenant{
		DayTokens:   {DayTokens: 1000},
		DayMoney:    {DayMoney: 1000, Prices: prices},
		MonthTokens: {MonthTokens: 1000},
		MonthMoney:  {MonthMoney: 1000, Prices: prices},
	} {
		for i := range 4 {
			rolling, other := i%2 == 0, i/2 == 0
			t.Run(fmt.Sprintf("%s, rolling %v, another ledger %v", name, rolling, other), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := Options{Limits: perMinute(), Profile: ruled(estimate.ChargeSettle)}
					if other {
						l, err := limit.New(limit.Options{})
						if err != nil {
							t.Fatal(err)
						}
						o.Ledger = withoutAllowances{l}
					}
					b := newBudget(t, o)
					tenant := tenant
					tenant.Rolling = rolling
					if err := b.SetTenant("a", tenant); err != nil {
						t.Fatal(err)
					}
					c, err := of(t, b, "a", request(700, 100))
					if err != nil {
						t.Fatal(err)
					}
					c.End(Unknown)
					before := state(t, b, tpm).Credit
					_, err = of(t, b, "a", request(200, 100))
					var e *limit.Error
					if !errors.As(err, &e) || e.Dimension != name || e.Capacity != 200 || e.Earliest.IsZero() {
						t.Fatalf("error %v", err)
					}
					if left := state(t, b, tpm).Credit; left != before {
						t.Errorf("%d of the account were spent", before-left)
					}
					var f Call
					f.Open(b.Scope(), silent{}, request(200, 100), 1)
					f.For(Who{Tenant: "@a"})
					if got := f.Forecast(time.Now()); got.Dimension != name || got.Wait != e.Wait || got.Err == nil {
						t.Errorf("forecast %+v, want a wait of %v", got, e.Wait)
					}
					if _, err := of(t, b, "b", request(200, 100)); err != nil {
						t.Errorf("another tenant: %v", err)
					}
					if _, err := of(t, b, "a", request(100, 100)); err != nil {
						t.Errorf("what is left: %v", err)
					}
				})
			})
		}
	}
}

// While a call waits for a limit, others may have its part of the month: it holds
// nothing before its turn.
func TestAWaitingCallHoldsNothingOfTheMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{Limits: perMinute(), Profile: ruled(estimate.ChargeSettle)})
		if err := b.SetTenant("a", Tenant{MonthTokens: 1000}); err != nil {
			t.Fatal(err)
		}
		p := b.Path(Address{Host: "slow.test"})
		p.start()
		b.ledger.PauseScope(p.Scopes()[0], limit.Pause{For: time.Minute})
		done := make(chan error, 1)
		go func() {
			var c Call
			c.Open(p, silent{}, request(500, 100), 1)
			c.For(Who{Tenant: "@a"})
			done <- c.Admit(context.Background(), time.Now())
		}()
		synctest.Wait()
		if got := left(t, b, "a", MonthTokens); got != 1000 {
			t.Errorf("%d are left while a call waits", got)
		}
		if _, err := of(t, b, "a", request(700, 100)); err != nil {
			t.Errorf("another host: %v", err)
		}
		if err := <-done; !errors.Is(err, limit.ErrWaitTooLong) {
			t.Errorf("at its turn: %v", err)
		}
		if got := left(t, b, "a", MonthTokens); got != 200 {
			t.Errorf("%d are left, want 200", got)
		}
	})
}

// Tenants by default are bounded in number, also those with a month.
func TestTenantsByDefaultAreBounded(t *testing.T) {
	asked := 0
	b := newBudget(t, Options{Profile: ruled(estimate.ChargeSettle), Tenants: func(string) Tenant {
		asked++
		return Tenant{MonthTokens: 1000}
	}})
	for i := range 2 * maxKnown {
		b.payer(fmt.Sprint("@", i))
	}
	if n := len(b.tenants.known); n > maxKnown || asked != 2*maxKnown {
		t.Errorf("%d are kept, and %d were asked for", n, asked)
	}
	asked = 0
	for range 2 {
		if b.payer("@0") == nil {
			t.Error("@0 does not pay")
		}
	}
	if asked != 1 {
		t.Errorf("the same was asked for %d times", asked)
	}
}
