package limit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// used is what counts of an allowance of a scope.
func used(t testing.TB, l *Limiter, scope, name string) int64 {
	t.Helper()
	for _, s := range append(l.Snapshot().Scopes, l.Snapshot()) {
		for _, lim := range s.Limits {
			if s.Scope == scope && lim.Name == name {
				return lim.Rate.N - lim.Credit + lim.Debt
			}
		}
	}
	t.Fatalf("%s has no %s", scope, name)
	return 0
}

// An allowance is charged in the one decision: what any level refuses spends nothing
// anywhere, and what is cancelled, returned or settled counts as it ended.
func TestAnAllowanceIsPartOfTheOneDecision(t *testing.T) {
	for _, rolling := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, Options{Limits: []Limit{{Name: "all", Unit: Tokens, Rate: PerSecond(1), Burst: 100}}})
			a := Allowances{DayTokens: 50, DayMoney: 1000, MonthTokens: 60, MonthMoney: 1200, Rolling: rolling}
			if err := l.SetScope("a", ScopeOptions{Allowances: &a}); err != nil {
				t.Fatal(err)
			}
			ask := func(input, tokens, money int64) (Reservation, error) {
				return l.TryAdmit(Ask{Cost: Cost{Requests: 1, Input: input}, Spend: Spend{tokens, money}, Tenant: "a"})
			}
			books := func(what string, left, tokens, money int64) {
				t.Helper()
				for _, name := range []string{DayTokens, MonthTokens} {
					if got := used(t, l, "a", name); got != tokens {
						t.Errorf("rolling %v: %s: %d of %s, want %d", rolling, what, got, name, tokens)
					}
				}
				for _, name := range []string{DayMoney, MonthMoney} {
					if got := used(t, l, "a", name); got != money {
						t.Errorf("rolling %v: %s: %d of %s, want %d", rolling, what, got, name, money)
					}
				}
				if got := l.Snapshot().Limits[0]; got.Credit != left {
					t.Errorf("rolling %v: %s: %d left for all, want %d", rolling, what, got.Credit, left)
				}
			}
			books("at first", 100, 0, 0)
			r, err := ask(30, 20, 300)
			if err != nil {
				t.Fatal(err)
			}
			books("reserved", 70, 20, 300)
			r.SettleSpent(Cost{Input: 10}, Spend{25, 250})
			r.SettleSpent(Cost{Input: 10}, Spend{1, 1}) // an end after the end
			books("settled", 90, 25, 250)

			if _, err := ask(95, 1, 1); !errors.Is(err, ErrLimited) {
				t.Errorf("beyond the limit of all: %v", err)
			}
			books("refused by the limit of all", 90, 25, 250)
			var e *Error
			if _, err := ask(1, 26, 1); !errors.As(err, &e) || e.Reason != ErrWaitTooLong || e.Dimension != DayTokens || e.Scope != "a" || e.Capacity != 25 {
				t.Errorf("beyond the day: %v", err)
			}
			books("refused by the day", 90, 25, 250)
			if _, err := ask(1, 51, 1); !errors.Is(err, ErrTooLarge) {
				t.Errorf("more than any day: %v", err)
			}
			if f := l.Forecast(Ask{Spend: Spend{Money: 800}, Tenant: "a"}); !errors.Is(f.Err, ErrWaitTooLong) || f.Dimension != DayMoney || f.Wait != e.Wait {
				t.Errorf("forecast %+v", f)
			}
			books("forecast", 90, 25, 250)

			// One waits for the limit of all. It holds nothing of the day meanwhile.
			ctx, cancel := context.WithCancel(t.Context())
			var waits sync.WaitGroup
			wait := func(want error) {
				waits.Go(func() {
					r, err := l.Admit(ctx, Ask{Cost: Cost{Requests: 1, Input: 95}, Spend: Spend{Tokens: 20}, Tenant: "a"})
					if !errors.Is(err, want) {
						t.Errorf("rolling %v: %v, want %v", rolling, err, want)
					}
					r.Return()
				})
				synctest.Wait()
			}
			wait(context.Canceled)
			books("while one waits", 90, 25, 250)
			cancel()
			waits.Wait()
			books("cancelled", 90, 25, 250)
			ctx = t.Context()
			wait(ErrWaitTooLong) // as another one takes the rest of the day
			if r, err = l.TryAdmit(Ask{Spend: Spend{Tokens: 25}, Tenant: "a"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			waits.Wait()
			books("refused when its turn came", 95, 50, 250)
			r.Return()
			books("returned", 95, 25, 250)
		})
	}
}

// When a call beyond an allowance could go, to the nanosecond: in the next day or
// month of the calendar, or when enough of the last ones is over.
func TestWhenAnAllowanceIsThereAgain(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		a         Allowances
		dimension string
		earliest  time.Time
	}{
		{Allowances{DayTokens: 10}, DayTokens, start.AddDate(0, 0, 2)},
		{Allowances{MonthTokens: 10}, MonthTokens, start.AddDate(0, 1, 0)},
		{Allowances{DayTokens: 10, MonthMoney: 10}, MonthMoney, start.AddDate(0, 1, 0)},
		{Allowances{DayMoney: 10, Rolling: true}, DayMoney, start.Add(36*time.Hour + 5*time.Minute + 24*time.Hour)},
		{Allowances{MonthMoney: 10, Rolling: true}, MonthMoney, start.Add(15*150*time.Minute + 30*24*time.Hour)},
	} {
		t.Run(row.dimension+fmt.Sprint(row.a.Rolling), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := mustNew(t, Options{})
				l.SetScope("a", ScopeOptions{Allowances: &row.a})
				ask := Ask{Spend: Spend{6, 6}, Tenant: "a"}
				time.Sleep(36*time.Hour + time.Minute) // one slot and one day are begun
				if _, err := l.TryAdmit(ask); err != nil {
					t.Fatal(err)
				}
				_, err := l.TryAdmit(ask)
				var e *Error
				if !errors.As(err, &e) || e.Dimension != row.dimension || !e.Earliest.Equal(row.earliest) || e.Wait != time.Until(row.earliest) {
					t.Fatalf("error %v, earliest %v; want %s at %v", err, e.Earliest, row.dimension, row.earliest)
				}
				time.Sleep(e.Wait - time.Nanosecond)
				if _, err := l.TryAdmit(ask); err == nil {
					t.Error("it went a nanosecond before")
				}
				time.Sleep(time.Nanosecond)
				if _, err := l.TryAdmit(ask); err != nil {
					t.Errorf("at that instant: %v", err)
				}
			})
		})
	}
}

// A settlement after the period changes nothing in the next one.
func TestASettlementBelongsToItsPeriod(t *testing.T) {
	for _, rolling := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, Options{})
			l.SetScope("a", ScopeOptions{Allowances: &Allowances{DayTokens: 100, MonthTokens: 1000, Rolling: rolling}})
			time.Sleep(23 * time.Hour)
			r, _ := l.TryAdmit(Ask{Spend: Spend{Tokens: 40}, Tenant: "a"})
			time.Sleep(26 * time.Hour)
			l.TryAdmit(Ask{Spend: Spend{Tokens: 7}, Tenant: "a"})
			r.SettleSpent(Cost{}, Spend{Tokens: 10})
			if d, m := used(t, l, "a", DayTokens), used(t, l, "a", MonthTokens); d != 7 || m != 17 {
				t.Errorf("rolling %v: %d of the day, %d of the month; want 7, 17", rolling, d, m)
			}
		})
	}
}

// Spending is kept while the allowances change, and the scope is not forgotten
// until the spending counts no more.
func TestWhatWasSpentIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{KeepIdle: 1, Open: func(scope string) (ScopeOptions, []Limit) {
			return ScopeOptions{Allowances: &Allowances{DayTokens: 100}}, nil
		}})
		spend := func(tenant string) {
			t.Helper()
			r, err := l.TryAdmit(Ask{Spend: Spend{Tokens: 1}, Tenant: tenant})
			if err != nil {
				t.Fatal(err)
			}
			r.Keep()
		}
		for i := range 10 {
			spend(fmt.Sprint(i))
		}
		if n := len(l.Snapshot().Scopes); n != 10 {
			t.Errorf("%d scopes, though all have spent", n)
		}
		time.Sleep(32 * 24 * time.Hour)
		for i := range 10 {
			spend(fmt.Sprint("b", i))
		}
		if n := len(l.Snapshot().Scopes); n > 11 {
			t.Errorf("%d scopes, and what 10 of them have spent is over", n)
		}
		for _, o := range []ScopeOptions{{}, {Allowances: &Allowances{MonthMoney: 5}}, {Allowances: &Allowances{DayTokens: 100, Rolling: true}}} {
			if err := l.SetScope("b9", o); err != nil {
				t.Fatal(err)
			}
		}
		if n := used(t, l, "b9", DayTokens); n != 1 {
			t.Errorf("%d used, want 1", n)
		}
		if err := l.SetScope("b9", ScopeOptions{Allowances: &Allowances{DayMoney: -1}}); err == nil || !strings.Contains(err.Error(), DayMoney) {
			t.Errorf("a negative allowance: %v", err)
		}
	})
}

// A newcomer that does not wait, while others do, is charged in their line. Its
// settlement corrects that too:
//
//	Batch waits for 100 of the 20 that are there
//	a takes 20, and settles 5        its tag is 5
//	b, a and b wait                  b at 0, a at 5, b at 16
func TestTheSettlementOfANewcomerMovesItsTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Unit: Input, Rate: PerSecond(1), Burst: 100, Empty: true}}})
		time.Sleep(20 * time.Second)
		var order []string
		var mu sync.Mutex
		var all sync.WaitGroup
		wait := func(tenant string, class Class, n int64) {
			all.Go(func() {
				r, err := l.Admit(t.Context(), Ask{Cost: Cost{Input: n}, Tenant: tenant, Class: class})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, tenant)
				mu.Unlock()
				r.Keep()
			})
			synctest.Wait()
		}
		wait("batch", Batch, 100)
		r, err := l.TryAdmit(Ask{Cost: Cost{Input: 20}, Tenant: "a"})
		if err != nil {
			t.Fatal(err)
		}
		wait("b", Interactive, 16) // more than what comes back
		r.Settle(Cost{Input: 5})
		wait("a", Interactive, 10)
		wait("b", Interactive, 10)
		all.Wait()
		if got := strings.Join(order, " "); got != "b a b batch" {
			t.Errorf("%s went, want b a b batch", got)
		}
	})
}

func ExampleAllowances() {
	l, err := New(Options{})
	if err != nil {
		panic(err)
	}
	l.SetScope("team", ScopeOptions{Allowances: &Allowances{MonthTokens: 1000, MonthMoney: 500}})
	r, _ := l.TryAdmit(Ask{Tenant: "team", Spend: Spend{Tokens: 900, Money: 300}})
	_, err = l.TryAdmit(Ask{Tenant: "team", Spend: Spend{Tokens: 200}})
	var e *Error
	errors.As(err, &e)
	fmt.Println(e.Dimension, e.Cost, "of", e.Capacity)
	r.SettleSpent(Cost{}, Spend{Tokens: 400, Money: 130}) // as it was used
	_, err = l.TryAdmit(Ask{Tenant: "team", Spend: Spend{Tokens: 200}})
	fmt.Println(err)
	// Output:
	// tokens per month 200 of 100
	// <nil>
}
