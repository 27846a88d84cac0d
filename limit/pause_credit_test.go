package limit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A pause empties what counts a minute or less, unless it says that the credit stays.
func TestAPauseKeepsTheCreditIfItSaysSo(t *testing.T) {
	for _, c := range []struct {
		keep   bool
		window time.Duration
		credit int64 // when the pause ends: 1000 were there, of 10,000 a window
	}{
		{true, time.Minute, 1000},
		{false, time.Minute, 0},
		{true, time.Hour, 1000},
		{false, time.Hour, 1000},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, err := limit.New(limit.Options{Limits: []limit.Limit{{Name: "t", Unit: limit.Tokens, Rate: limit.Rate{N: 10_000, Window: c.window}, Burst: 1000}}})
			if err != nil {
				t.Fatal(err)
			}
			l.PauseScope("", limit.Pause{For: time.Second, KeepCredit: c.keep})
			if _, err := l.TryAdmit(limit.Ask{Cost: limit.Cost{Input: 1}}); err == nil {
				t.Error("it went in the pause")
			}
			time.Sleep(time.Second)
			if got := l.Snapshot().Limits[0]; got.Credit-got.Debt != c.credit {
				t.Errorf("keep %v, %v: %d left, want %d", c.keep, c.window, got.Credit-got.Debt, c.credit)
			}
		})
	}
}
