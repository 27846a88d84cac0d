package limit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// While costs are estimates of which nothing was heard, a guard lets go seven eighths of
// the tokens that a reading shows. Requests are no estimate. The next reading of an
// attempt that is sure counts in full, and no credit is lost.
func TestUnsureReadingLetsSevenEighthsGo(t *testing.T) {
	for _, c := range []struct {
		name   string
		unit   limit.Unit
		unsure bool
		guard  int64
		set    bool // configured, not learned
		want   int64
	}{
		{"tokens", limit.Tokens, true, 100, true, 70_000},
		{"tokens, sure", limit.Tokens, false, 100, true, 80_000},
		{"requests", limit.Requests, true, 100, true, 80_000},
		{"tokens, a learned guard as large as the balance", limit.Tokens, true, 90_000, false, 70_000},
		{"tokens, sure, a learned guard as large as the balance", limit.Tokens, false, 90_000, false, 80_000},
		{"tokens, a guard as large as the balance", limit.Tokens, true, 90_000, true, 80_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := limit.New(limit.Options{})
				if err != nil {
					t.Fatal(err)
				}
				lim := limit.Limit{Name: "l", Unit: c.unit, Rate: limit.Rate{N: 100_000, Window: time.Minute}, Burst: 100_000, Guard: c.guard}
				if c.set {
					err = l.SetScopeLimit("", lim)
				} else {
					err = l.EnforceScopeLimit("", lim)
				}
				if err != nil {
					t.Fatal(err)
				}
				of := func(n int64) limit.Cost {
					if c.unit == limit.Requests {
						return limit.Cost{Requests: n}
					}
					return limit.Cost{Input: n}
				}
				goes := func(n int64) bool {
					r, err := l.TryAdmit(limit.Ask{Cost: of(n)})
					r.Return()
					return err == nil
				}
				first, err := l.TryAdmit(limit.Ask{Cost: of(1)})
				if err != nil {
					t.Fatal(err)
				}
				first.Sent()
				if c.unsure {
					first.Unsure()
				}
				first.Lower("l", 80_000, limit.Cost{})
				if goes(c.want+1) || !goes(c.want) {
					t.Errorf("not %d may go at once", c.want)
				}
				if n := l.Snapshot().Limits[0].Credit; n != 80_000 {
					t.Errorf("credit %d, want 80,000", n)
				}
				first.Settle(of(1))
				time.Sleep(time.Second)
				next, err := l.TryAdmit(limit.Ask{Cost: of(1)})
				if err != nil {
					t.Fatal(err)
				}
				next.Sent()
				next.Lower("l", 80_000, limit.Cost{})
				if !goes(80_000) {
					t.Error("after a sure reading not all may go")
				}
			})
		})
	}
}
