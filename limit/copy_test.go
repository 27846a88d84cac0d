package limit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A copy of a limit that is drained gets back what open calls of before give back, as
// the limit itself does. A limit that is only put in force gets nothing.
func TestACopiedLimitGetsBack(t *testing.T) {
	for _, from := range []string{"", "account"} {
		for _, copied := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				tokens := limit.Limit{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerMinute(6000), Burst: 1000}
				l, err := limit.New(limit.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := l.SetScopeLimit(from, tokens); err != nil {
					t.Fatal(err)
				}
				r, err := l.TryAdmit(limit.Ask{Cost: limit.Cost{Requests: 1, Output: 800}, Scopes: []string{"account", "model"}})
				if err != nil {
					t.Fatal(err)
				}
				want := int64(100) // what the drain kept
				if copied {
					want += 700
					err = l.CopyScopeLimit(from, "model", tokens)
				} else {
					err = l.EnforceScopeLimit("model", tokens)
				}
				if err != nil {
					t.Fatal(err)
				}
				l.DrainScope("model", "tokens", 100, time.Second)
				time.Sleep(time.Second)
				r.Settle(limit.Cost{Requests: 1, Output: 100})
				got := int64(-1)
				for _, s := range l.Snapshot().Scopes {
					if s.Scope == "model" {
						got = s.Limits[0].Credit
					}
				}
				if got != want {
					t.Errorf("from %q, copied %v: credit %d; want %d", from, copied, got, want)
				}
			})
		}
	}
}
