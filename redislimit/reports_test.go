package redislimit_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// Five calls at once in five processes, each of more than half of the limit: one
// goes. The reservation is made with the decision.
//
// Report: BerriAI/litellm#18730
func TestParallelCallsCannotAllSeeTheSameCredit(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaRueidis(t, server.Addr)
	m := members(t, 5, func() redislimit.Runner { return runner }, redislimit.Options{Limits: tokenLimit(limit.PerDay(100), 100, false)})
	var went atomic.Int64
	var all sync.WaitGroup
	for _, l := range m {
		all.Go(func() {
			if _, err := l.TryAdmit(limit.Ask{Cost: tokens(60)}); err == nil {
				went.Add(1)
			}
		})
	}
	all.Wait()
	if went.Load() != 1 {
		t.Errorf("%d calls of 60 tokens went, of 100", went.Load())
	}
}

// Calls below the limit on average are never refused, wherever windows would begin.
//
// Report: BerriAI/litellm#24677
func TestNoWindowRefusesWhatIsBelowTheLimit(t *testing.T) {
	t.Parallel()
	o := redislimit.Options{Limits: tokenLimit(limit.Rate{N: 20, Window: 200 * time.Millisecond}, 4, false)}
	inFakeTime(t, 1, o, theNoWindowRefusesWhatIsBelowTheLimit)
}

func theNoWindowRefusesWhatIsBelowTheLimit(t *testing.T, m []*redislimit.Limiter) {
	for range 60 {
		r, err := m[0].TryAdmit(limit.Ask{Cost: tokens(1)})
		if err != nil {
			t.Fatal(err)
		}
		r.Keep()
		time.Sleep(15 * time.Millisecond) // at most 67 a second, of 100
	}
}

// A budget that was refilled is not raised by anything that was settled twice, and
// debt of one process holds the others.
func TestDebtOfOneProcessHoldsTheOthers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaGoRedis(t, server.Addr)
	m := members(t, 2, func() redislimit.Runner { return runner }, redislimit.Options{Limits: tokenLimit(limit.PerSecond(20), 10, false)})
	r := take(t, m[0], limit.Ask{Cost: tokens(10)})
	start := time.Now()
	r.Settle(tokens(15))
	eventually(t, time.Second, "the debt is known", func() bool { return credit(t, m[1], "tokens") < 0 })
	x := queue(t, m[1], limit.Ask{Cost: tokens(1)})
	x.within(t, 3*time.Second)
	if d := x.at.Sub(start); d < 280*time.Millisecond { // 5 of debt and 1, less what was earned before
		t.Errorf("went after %v", d)
	}
}
