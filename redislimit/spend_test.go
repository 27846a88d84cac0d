package redislimit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// The store and package limit agree over years on each decision, each wait and each sum
// of calendar and rolling periods. Calls settle above and below their reservation, some
// of them long after.
func TestTheStoreKeepsAllowancesAsTheLimiterDoes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { compareAllowances(t, server.Addr, seed) })
		})
	}
}

func compareAllowances(t *testing.T, addr string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	time.Sleep(2 * time.Hour) // a part of a rolling month begins, in the store and in the limiter
	here, err := limit.New(limit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	there, err := New(Options{Name: fmt.Sprint("allowances", seed), Runner: NewFakeStore(addr).Client(t), SettleWithin: time.Nanosecond, MemberTTL: 1000 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	a := limit.Allowances{DayTokens: 10_000, DayMoney: 20_000, MonthTokens: 100_000, MonthMoney: 210_000, Rolling: seed%2 == 1}
	set := func() {
		for _, l := range []limit.Ledger{here, there} {
			for _, scope := range []string{"", "team", "user"} {
				a := a
				a.DayTokens, a.MonthMoney = a.DayTokens+int64(len(scope))*100, a.MonthMoney-int64(len(scope))*1000
				if err := l.SetScope(scope, limit.ScopeOptions{Allowances: &a}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	set()
	type held struct{ here, there limit.Reservation }
	var open []held
	granted, refused := 0, 0
	for i := range *ops {
		switch k := r.IntN(20); {
		case k < 10:
			ask := limit.Ask{Spend: limit.Spend{Tokens: r.Int64N(2500), Money: r.Int64N(5000)}, Scopes: []string{"team"}, Tenant: "user"}
			x, errHere := here.TryAdmit(ask)
			y, errThere := there.TryAdmit(ask)
			if errHere == nil && errThere == nil {
				granted++
				open = append(open, held{x, y})
				break
			}
			refused++
			if !sameRefusal(errHere, errThere) {
				t.Fatalf("%d: %v: %+v\n%v, want\n%v", i, time.Now(), ask.Spend, errThere, errHere)
			}
		case k < 15 && len(open) > 0:
			j := r.IntN(len(open))
			h := open[j]
			open = append(open[:j], open[j+1:]...)
			switch r.IntN(4) {
			case 0:
				h.here.Return()
				h.there.Return()
			case 1:
				h.here.Keep()
				h.there.Keep()
			default:
				spent := limit.Spend{Tokens: r.Int64N(3500), Money: r.Int64N(6000)}
				h.here.SettleSpent(limit.Cost{}, spent)
				h.there.SettleSpent(limit.Cost{}, spent)
			}
		case k == 15 && r.IntN(8) == 0:
			a.Rolling = !a.Rolling
			set()
		case k == 16:
			time.Sleep(time.Duration(r.Int64N(int64(40 * 24 * time.Hour))).Truncate(time.Microsecond))
		default:
			time.Sleep(time.Duration(r.Int64N(int64([]time.Duration{time.Second, 10 * time.Minute, 5 * time.Hour}[r.IntN(3)]))).Truncate(time.Microsecond))
		}
		if want, got := states(here.Snapshot()), states(there.Snapshot()); got != want {
			t.Fatalf("%d: %v\n%s, want\n%s", i, time.Now(), got, want)
		}
	}
	if granted < *ops/10 || refused < *ops/10 {
		t.Errorf("%d granted, %d refused", granted, refused)
	}
}

// sameRefusal reports whether two ledgers refused a call for the same reason, with the
// same numbers.
func sameRefusal(a, b error) bool {
	var x, y *limit.Error
	if !errors.As(a, &x) || !errors.As(b, &y) {
		return a == nil && b == nil
	}
	return x.Reason == y.Reason && x.Scope == y.Scope && x.Dimension == y.Dimension && x.Cost == y.Cost &&
		x.Capacity == y.Capacity && x.Wait == y.Wait && x.Earliest.Equal(y.Earliest)
}

// states are the allowances of all scopes, in text.
func states(s limit.Snapshot) (text string) {
	for _, one := range append([]limit.Snapshot{s}, s.Scopes...) {
		for _, l := range one.Limits {
			text += fmt.Sprintf("%s: %s %d of %v since %v, %d owed\n", one.Scope, l.Name, l.Credit, l.Rate, l.Law, l.Debt)
		}
	}
	return text
}
