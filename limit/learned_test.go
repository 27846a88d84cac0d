package limit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// Two calls leave before a limit is known. The balance of the first names it: the other
// side had charged that call and not yet the second. What both give back at their ends is
// there again, as it is on the other side. A limit of which no balance follows gets nothing.
func TestALearnedLimitGetsBackWhatTheBalanceHas(t *testing.T) {
	for _, heard := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			l, err := limit.New(limit.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var calls []limit.Reservation
			for range 2 {
				r, err := l.TryAdmit(limit.Ask{Cost: limit.Cost{Output: 4_000}})
				if err != nil {
					t.Fatal(err)
				}
				r.Sent()
				calls = append(calls, r)
				time.Sleep(time.Second)
			}
			lim := limit.Limit{Name: "l", Unit: limit.Tokens, Rate: limit.Rate{N: 60_000, Window: time.Minute}, Burst: 10_000}
			if heard {
				err = l.LearnScopeLimit("", lim)
			} else {
				err = l.EnforceScopeLimit("", lim)
			}
			if err != nil {
				t.Fatal(err)
			}
			credit := func(want int64) {
				t.Helper()
				if got := l.Snapshot().Limits[0].Credit; got != want {
					t.Errorf("heard %v: credit %d, want %d", heard, got, want)
				}
			}
			credit(10_000)
			calls[0].Lower("l", 5_000, limit.Cost{})
			credit(5_000 + 2_000 - 4_000) // refilled since, and charged since
			back := int64(3_000)
			if !heard {
				back = 0
			}
			calls[0].Settle(limit.Cost{Output: 1_000})
			credit(3_000 + back)
			calls[1].Settle(limit.Cost{Output: 1_000})
			credit(3_000 + 2*back)
		})
	}
}
