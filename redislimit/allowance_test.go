package redislimit_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// spent is what counts of an allowance of a scope, over all processes.
func spent(t testing.TB, l *redislimit.Limiter, scope, name string) int64 {
	t.Helper()
	take(t, l, limit.Ask{Scopes: []string{scope}}).Return()
	for _, s := range l.Snapshot().Scopes {
		for _, one := range s.Limits {
			if s.Scope == scope && one.Name == name {
				return one.Rate.N - one.Credit + one.Debt
			}
		}
	}
	t.Fatalf("%q has no %s", scope, name)
	return 0
}

// team has a month of 1000 tokens in every process.
func team(rolling bool) func(string) (limit.ScopeOptions, []limit.Limit) {
	return func(scope string) (limit.ScopeOptions, []limit.Limit) {
		if scope != "team" {
			return limit.ScopeOptions{}, nil
		}
		return limit.ScopeOptions{Allowances: &limit.Allowances{MonthTokens: 1000, Rolling: rolling}}, nil
	}
}

func spend(n int64) limit.Ask {
	return limit.Ask{Cost: tokens(1), Tenant: "team", Spend: limit.Spend{Tokens: n}}
}

// A call that waits holds nothing of a month, of any process. If the month is used up
// when its turn comes, it is refused then, and spends nothing else.
func TestACallIsRefusedAtItsTurnInTheStore(t *testing.T) {
	t.Parallel()
	limits := []limit.Limit{{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerSecond(1), Burst: 100}}
	bubble(t, 2, redislimit.Options{Limits: limits, Open: team(false)}, func(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, _ []*wire) {
		take(t, m[0], limit.Ask{Cost: tokens(95)}).Keep()
		done := make(chan error, 1)
		go func() {
			a := spend(300)
			a.Cost = tokens(10)
			_, err := m[0].Admit(t.Context(), a)
			done <- err
		}()
		time.Sleep(time.Second)
		if n := spent(t, m[1], "team", limit.MonthTokens); n != 0 {
			t.Errorf("%d are spent while the call waits", n)
		}
		r, err := m[1].TryAdmit(limit.Ask{Tenant: "team", Spend: limit.Spend{Tokens: 800}})
		if err != nil {
			t.Fatal(err)
		}
		var e *limit.Error
		if err := <-done; !errors.As(err, &e) || e.Reason != limit.ErrWaitTooLong || e.Scope != "team" || e.Dimension != limit.MonthTokens ||
			e.Cost != 300 || e.Capacity != 200 || !e.Earliest.Equal(time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC)) || e.Waited < 4*time.Second {
			t.Errorf("at its turn: %v, earliest %v", err, e.Earliest)
		}
		if c := credit(t, m[0], "tokens"); c < 10 {
			t.Errorf("%d are left of the limit of all", c)
		}
		r.SettleSpent(limit.Cost{}, limit.Spend{Tokens: 900})
		time.Sleep(time.Second)
		if n := spent(t, m[0], "team", limit.MonthTokens); n != 900 {
			t.Errorf("%d are spent, want 900", n)
		}
		if f := m[0].Forecast(spend(101)); !errors.Is(f.Err, limit.ErrWaitTooLong) || f.Dimension != limit.MonthTokens || f.Wait <= 0 {
			t.Errorf("forecast %+v", f)
		}
		if f := m[0].Forecast(spend(1001)); !errors.Is(f.Err, limit.ErrTooLarge) {
			t.Errorf("forecast %+v", f)
		}
	})
}

// No key of a month ends before the month, though nobody calls.
func TestTheKeysOfAMonthOutliveIt(t *testing.T) {
	t.Parallel()
	for _, rolling := range []bool{false, true} {
		bubble(t, 1, redislimit.Options{Open: team(rolling), MemberTTL: 10_000 * time.Hour}, func(t *testing.T, server *redistest.Server, m []*redislimit.Limiter, _ []*wire) {
			for range 3 { // parts of a rolling month
				take(t, m[0], spend(100)).Keep()
				time.Sleep(3 * time.Hour)
			}
			take(t, m[0], spend(100)).Keep()
			left := time.Until(time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC))
			if rolling {
				left = 30 * 24 * time.Hour
			}
			keys := []string{"s:team"}
			if rolling {
				keys = append(keys, "a:team")
			}
			for _, key := range keys {
				ms, _ := strconv.ParseInt(server.Must(t, "PTTL", "tripmeter:{"+t.Name()+"}:"+key), 10, 64)
				if d := time.Duration(ms) * time.Millisecond; d < left {
					t.Errorf("rolling %v: %s ends in %v, the month in %v", rolling, key, d, left)
				}
			}
			time.Sleep(left + 4*time.Hour)
			if n := spent(t, m[0], "team", limit.MonthTokens); n != 0 {
				t.Errorf("rolling %v: %d count after the month", rolling, n)
			}
		})
	}
}

// The share of a process spends its part of the rest while the store is away. The store
// charges it afterwards. Two processes together spend no more than the rest.
func TestTheShareSpendsItsPartOfAMonth(t *testing.T) {
	t.Parallel()
	bubble(t, 2, redislimit.Options{Open: team(false), Timeout: brisk}, func(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, lines []*wire) {
		take(t, m[0], spend(399)).Keep()
		for _, l := range m {
			spent(t, l, "team", limit.MonthTokens) // both have called, so both know
		}
		held := take(t, m[0], spend(1))
		for _, w := range lines {
			w.cut.Store(true)
		}
		time.Sleep(2 * time.Second)
		total := int64(400)
		for i, l := range m {
			for range 100 {
				r, err := l.TryAdmit(spend(70))
				if err == nil {
					total += 70
					r.Keep()
				} else if e := (*limit.Error)(nil); !errors.As(err, &e) || e.Dimension != limit.MonthTokens {
					t.Fatalf("process %d: %v", i, err)
				}
			}
		}
		if total < 400+560 || total > 1000 {
			t.Errorf("%d of 1000 were spent", total)
		}
		for _, w := range lines {
			w.cut.Store(false)
		}
		time.Sleep(2 * time.Second)
		held.SettleSpent(limit.Cost{}, limit.Spend{Tokens: 11})
		time.Sleep(time.Second)
		if n := spent(t, m[0], "team", limit.MonthTokens); n != total+10 {
			t.Errorf("%d are spent in the store, want %d", n, total+10)
		}
	})
}

// A month with nothing left gives the shares nothing either.
func TestTheShareOfNothingIsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, 1, redislimit.Options{Open: team(false), Timeout: brisk}, func(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, lines []*wire) {
		take(t, m[0], spend(1000)).Keep()
		lines[0].cut.Store(true)
		time.Sleep(2 * time.Second)
		if _, err := m[0].TryAdmit(spend(1)); !errors.Is(err, limit.ErrWaitTooLong) {
			t.Errorf("%v", err)
		}
	})
}

// The store loses everything. What its members knew of a month counts in the new state.
func TestAMonthSurvivesTheLossOfTheState(t *testing.T) {
	t.Parallel()
	bubble(t, 2, redislimit.Options{Open: team(false)}, func(t *testing.T, server *redistest.Server, m []*redislimit.Limiter, _ []*wire) {
		r := take(t, m[0], spend(300))
		take(t, m[1], spend(300)).Keep()
		server.Must(t, "FLUSHALL")
		r.SettleSpent(limit.Cost{}, limit.Spend{Tokens: 350}) // 50 that nobody has counted
		time.Sleep(3 * time.Second)
		if n := spent(t, m[0], "team", limit.MonthTokens); n != 650 {
			t.Errorf("%d are spent after the loss, want 650", n)
		}
	})
}

// The spending that a process reserved and did not report comes back when it is dead.
func TestADeadProcessGivesItsMonthBack(t *testing.T) {
	t.Parallel()
	limits := []limit.Limit{{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerSecond(1), Burst: 10}}
	bubble(t, 2, redislimit.Options{Limits: limits, Open: team(false), Timeout: brisk}, func(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, lines []*wire) {
		take(t, m[0], limit.Ask{Cost: tokens(10)}).Keep()
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			m[0].Admit(ctx, spend(400))
		}()
		time.Sleep(100 * time.Millisecond)
		lines[0].cut.Store(true)
		most := int64(0)
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			most = max(most, spent(t, m[1], "team", limit.MonthTokens))
		}
		if n := spent(t, m[1], "team", limit.MonthTokens); n != 0 || most != 400 {
			t.Errorf("%d are spent for the dead process, after %d", n, most)
		}
		cancel()
		<-gone
	})
}

// The month of a tenant is one for all processes with a budget over the store, in the
// one decision: of tenants that are set and of those by default. So is the limit of an
// account whose name is made of a credential: the processes hash it with one key.
func TestATenantsMonthIsOneForAllProcesses(t *testing.T) {
	t.Parallel()
	for _, byDefault := range []bool{false, true} {
		bubble(t, 2, redislimit.Options{}, func(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, _ []*wire) {
			tenant := budget.Tenant{MonthTokens: 1000}
			limits := []limit.Limit{{Name: ofModel, Unit: limit.Tokens, Rate: limit.PerMinute(100_000), Burst: 100_000}}
			var paths []*budget.Path
			for _, l := range m {
				o := budget.Options{Ledger: l, Limits: limits, Profile: profile.Unknown()}
				if byDefault {
					o.Tenants = func(string) budget.Tenant { return tenant }
				}
				b, err := budget.New(o)
				if err != nil {
					t.Fatal(err)
				}
				if !byDefault {
					if err := b.SetTenant("team", tenant); err != nil {
						t.Fatal(err)
					}
				}
				paths = append(paths, b.Path(budget.Address{Host: "api.example.com", Credential: "sk-1", Model: "m"}))
			}
			admit := func(i int, n int64) (*budget.Call, error) {
				c := &budget.Call{}
				c.Open(paths[i], &knower{t: t}, &estimate.Request{Model: "m", Input: n - 10, OutputCap: 10, Choices: 1}, 1)
				c.For(budget.Who{Tenant: "@team"})
				return c, c.Admit(t.Context(), time.Now())
			}
			account := func() (left int64) {
				for _, s := range m[0].Snapshot().Scopes {
					for _, l := range s.Limits {
						if l.Name == ofModel && (left == 0 || l.Credit < left) {
							left = l.Credit
						}
					}
				}
				return left
			}
			first, err := admit(0, 600)
			if err != nil {
				t.Fatal(err)
			}
			first.Leave(time.Now())
			before := account()
			var e *limit.Error
			if _, err := admit(1, 500); !errors.As(err, &e) || e.Dimension != limit.MonthTokens || e.Capacity != 400 {
				t.Errorf("by default %v: beyond the month: %v", byDefault, err)
			}
			if after := account(); before == 0 || after < before {
				t.Errorf("by default %v: the refused call took %d of the account", byDefault, before-after)
			}
			first.End(budget.Unsent)
			time.Sleep(time.Second)
			if _, err := admit(1, 500); err != nil {
				t.Errorf("by default %v: the first was not sent: %v", byDefault, err)
			}
		})
	}
}
