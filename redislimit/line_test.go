package redislimit_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// members are n limiters of one budget, as n processes have them.
func members(t testing.TB, n int, runner func() redislimit.Runner, o redislimit.Options) []*redislimit.Limiter {
	t.Helper()
	var all []*redislimit.Limiter
	for range n {
		o.Runner = runner()
		all = append(all, open(t, o))
	}
	return all
}

func TestASettlementOfOneProcessLetsAnotherGo(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, via := range clients {
		t.Run(name, func(t *testing.T) {
			runner := via(t, server.Addr)
			m := members(t, 2, func() redislimit.Runner { return runner }, redislimit.Options{Limits: tokenLimit(limit.PerHour(1), 10, false)})
			r := take(t, m[0], limit.Ask{Cost: tokens(10)})
			x := queue(t, m[1], limit.Ask{Cost: tokens(4)})
			if !x.waits() {
				t.Fatal("admitted without credit")
			}
			settled := time.Now()
			r.Settle(tokens(6))
			x.within(t, time.Second)
			t.Logf("the other process went %v after the settlement", x.at.Sub(settled))
		})
	}
}

// Without a client that listens, a process asks again after Refresh at the latest.
func TestWithoutListeningAProcessAsks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaRueidis(t, server.Addr)
	m := members(t, 2, func() redislimit.Runner { return &wire{Runner: runner} }, redislimit.Options{
		Limits: tokenLimit(limit.PerHour(1), 10, false), Refresh: 30 * time.Millisecond})
	r := take(t, m[0], limit.Ask{Cost: tokens(10)})
	x := queue(t, m[1], limit.Ask{Cost: tokens(4)})
	r.Return()
	x.within(t, time.Second)
}

func TestTurnsAreInOrderOverAllProcesses(t *testing.T) {
	t.Parallel()
	inFakeTime(t, 4, redislimit.Options{Limits: tokenLimit(limit.PerSecond(100), 10, true)}, theTurnsAreInOrderOverAllProcesses)
}

func theTurnsAreInOrderOverAllProcesses(t *testing.T, m []*redislimit.Limiter) {
	m[0].PauseScope("", limit.Pause{For: time.Hour})
	var line []*turn
	for i := range 24 {
		line = append(line, queue(t, m[i%4], limit.Ask{Cost: tokens(1 + int64(i)*7%10)})) // small ones do not overtake
	}
	m[1].ResumeScope("")
	before := time.Time{}
	for i, x := range line {
		x.within(t, 10*time.Second)
		if x.at.Before(before) {
			t.Errorf("turn %d went %v before turn %d", i, before.Sub(x.at), i-1)
		}
		before = x.at
	}
}

func TestWhoGivesUpLeavesNoTraceInTheSharedLine(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaGoRedis(t, server.Addr)
	m := members(t, 2, func() redislimit.Runner { return runner }, redislimit.Options{Limits: tokenLimit(limit.PerSecond(10), 10, true), MaxInFlight: 50})
	gone := queue(t, m[0], limit.Ask{Cost: tokens(10)})
	next := queue(t, m[1], limit.Ask{Cost: tokens(2)})
	gone.stop()
	<-gone.done
	if !errors.Is(gone.err, limit.ErrCanceled) {
		t.Fatal(gone.err)
	}
	next.within(t, 900*time.Millisecond) // ten tokens would have taken a second
	next.r.Return()
	eventually(t, time.Second, "nothing is left", func() bool {
		s := m[0].Snapshot()
		return s.Waiting == 0 && s.InFlight == 0
	})
}

// The callers of a dead process lose their turns, and its places come back. Grants
// whose answers it never got are returned.
func TestPlacesAndTurnsOfADeadProcessComeBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaRueidis(t, server.Addr)
	lines := []*wire{{Runner: runner}, {Runner: runner}}
	i := 0
	m := members(t, 2, func() redislimit.Runner { i++; return lines[i-1] }, redislimit.Options{
		MaxInFlight: 3, Limits: tokenLimit(limit.PerHour(1), 100, false),
		Timeout: 100 * time.Millisecond, MemberTTL: 500 * time.Millisecond})
	for range 3 {
		take(t, m[0], limit.Ask{Cost: tokens(10)})
	}
	queue(t, m[0], limit.Ask{Cost: tokens(10)})
	x := queue(t, m[1], limit.Ask{Cost: tokens(10)})
	lines[0].cut.Store(true)
	start := time.Now()
	x.within(t, 2*time.Second)
	if d := x.at.Sub(start); d < 300*time.Millisecond {
		t.Errorf("taken for dead after %v", d)
	}
	s := m[1].Snapshot()
	if s.InFlight != 1 || s.Waiting != 0 {
		t.Errorf("%d in flight and %d waiting, of one process with one call", s.InFlight, s.Waiting)
	}
	if c := credit(t, m[1], "tokens"); c != 60 {
		t.Errorf("credit %d: three calls of the dead one may have been sent, and one of the other was, of 10 each", c)
	}
}

// A process that was taken for dead and was not: what it settles late counts, once.
func TestAProcessThatWasTakenForDeadSettlesLate(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaRueidis(t, server.Addr)
	lines := []*wire{{Runner: runner}, {Runner: runner}}
	i := 0
	m := members(t, 2, func() redislimit.Runner { i++; return lines[i-1] }, redislimit.Options{
		MaxInFlight: 3, Limits: tokenLimit(limit.PerHour(1), 100, false),
		Timeout: 100 * time.Millisecond, MemberTTL: 400 * time.Millisecond})
	a, b := take(t, m[0], limit.Ask{Cost: tokens(20)}), take(t, m[0], limit.Ask{Cost: tokens(30)})
	lines[0].cut.Store(true)
	eventually(t, 3*time.Second, "its places are back", func() bool { return m[1].Snapshot().InFlight == 0 })
	a.Settle(tokens(5))
	lines[0].cut.Store(false)
	eventually(t, 3*time.Second, "it is back with one place", func() bool {
		return !m[0].State().Away && m[1].Snapshot().InFlight == 1 && credit(t, m[1], "tokens") == 65
	})
	b.Settle(tokens(31))
	b.Settle(tokens(0))
	eventually(t, time.Second, "the rest is settled", func() bool { return credit(t, m[1], "tokens") == 64 })
	if s := m[1].Snapshot(); s.InFlight != 0 {
		t.Errorf("%d in flight", s.InFlight)
	}
}

func TestWhatOneLearnsAllKnow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaRueidis(t, server.Addr)
	m := members(t, 2, func() redislimit.Runner { return runner }, redislimit.Options{Limits: tokenLimit(limit.PerSecond(1000), 1000, false)})

	m[0].PauseScope("", limit.Pause{For: time.Hour, By: "server", Why: "429"})
	_, err := m[1].TryAdmit(limit.Ask{})
	var e *limit.Error
	if !errors.As(err, &e) || e.Dimension != "pause" || e.Wait < 59*time.Minute {
		t.Errorf("in a pause that the other asked for: %v", err)
	}
	s := m[1].Snapshot()
	if s.PausedBy != "server" || s.PausedWhy != "429" || time.Until(s.PausedUntil) < 59*time.Minute {
		t.Errorf("the pause is %v, by %q, why %q", s.PausedUntil, s.PausedBy, s.PausedWhy)
	}
	m[1].ResumeScope("")
	eventually(t, time.Second, "credit after the pause", func() bool {
		_, err := m[0].TryAdmit(limit.Ask{Cost: tokens(1)})
		return err == nil
	})

	if !m[0].DrainScope("", "tokens", 0, time.Hour) {
		t.Error("a drain of credit that was there did nothing")
	}
	if _, err := m[1].TryAdmit(limit.Ask{Cost: tokens(1)}); !errors.Is(err, limit.ErrLimited) {
		t.Errorf("after the other's drain: %v", err)
	}

	if err := m[0].SetScopeLimit("model", limit.Limit{Name: "learned", Unit: limit.Tokens, Rate: limit.PerHour(7), Burst: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := m[1].TryAdmit(limit.Ask{Cost: tokens(8), Scopes: []string{"model"}}); !errors.As(err, &e) || e.Dimension != "learned" || e.Capacity != 7 {
		t.Errorf("under a limit that the other learned: %v", err)
	}
	if err := m[1].EnforceScopeLimit("model", limit.Limit{Name: "learned", Unit: limit.Tokens, Rate: limit.PerHour(3), Burst: 3}); err != nil {
		t.Fatal(err)
	}
	for _, sub := range m[0].Snapshot().Scopes {
		if sub.Scope == "model" && (sub.Limits[0].Rate.N != 3 || sub.Limits[0].Configured.Rate.N != 7) {
			t.Errorf("in force %v, configured %v", sub.Limits[0].Limit, sub.Limits[0].Configured)
		}
	}
	if err := m[0].EnforceScopeLimit("model", limit.Limit{Name: "learned"}); err != nil {
		t.Fatal(err)
	}
	if got := m[1].Snapshot().Scopes[0].Limits[0].Rate.N; got != 7 {
		t.Errorf("after the cut was lifted: %d an hour", got)
	}
}

// A reading of the other side's balance is carried forward by what all processes
// have debited and refunded since.
func TestAReadingLowersForAll(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaRueidis(t, server.Addr)
	m := members(t, 2, func() redislimit.Runner { return runner }, redislimit.Options{Limits: tokenLimit(limit.PerHour(1), 1000, false)})
	r := take(t, m[0], limit.Ask{Cost: tokens(100)})
	r.Sent()
	time.Sleep(300 * time.Millisecond)
	m[0].Snapshot() // the debits of the first 250 ms are known
	take(t, m[1], limit.Ask{Cost: tokens(50)})
	if !r.LowerIn("", "tokens", 500, limit.Cost{}) {
		t.Error("500 left, and 850 known: nothing fell")
	}
	if c := credit(t, m[1], "tokens"); c != 450 {
		t.Errorf("credit %d; 500 were left, and 50 were debited after it", c)
	}
	if r.LowerIn("", "tokens", 900, limit.Cost{}) {
		t.Error("a reading raised credit")
	}
}

func TestLimitsOfDifferentScopesDoNotHoldEachOther(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaRueidis(t, server.Addr)
	m := members(t, 2, func() redislimit.Runner { return runner }, redislimit.Options{
		Limits: tokenLimit(limit.PerHour(1000), 1000, false),
		Open: func(scope string) (limit.ScopeOptions, []limit.Limit) {
			return limit.ScopeOptions{}, []limit.Limit{{Name: "own", Unit: limit.Tokens, Rate: limit.PerHour(10), Burst: 10}}
		}})
	take(t, m[0], limit.Ask{Cost: tokens(10), Scopes: []string{"a"}}).Keep()
	x := queue(t, m[0], limit.Ask{Cost: tokens(5), Scopes: []string{"a"}})
	take(t, m[0], limit.Ask{Cost: tokens(5), Scopes: []string{"b"}}).Keep()
	take(t, m[1], limit.Ask{Cost: tokens(5), Tenant: "c"}).Keep()
	take(t, m[1], limit.Ask{Cost: requests(1), Scopes: []string{"a"}}).Keep() // it needs nothing of what is lacking
	if !x.waits() {
		t.Error("admitted without credit in its scope")
	}
	if _, err := m[1].TryAdmit(limit.Ask{Cost: tokens(1), Scopes: []string{"a"}}); !errors.Is(err, limit.ErrLimited) {
		t.Errorf("overtook the line of its scope: %v", err)
	}
}

// A scope that the store has dropped is made again, with its limits, before anybody
// takes from it.
func TestADroppedScopeComesBackWithItsLimits(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := open(t, redislimit.Options{Runner: viaRueidis(t, server.Addr),
		Open: func(string) (limit.ScopeOptions, []limit.Limit) {
			return limit.ScopeOptions{}, tokenLimit(limit.PerHour(10), 10, false)
		}})
	a := limit.Ask{Cost: tokens(10), Tenant: "t"}
	take(t, l, a).Keep()
	server.Must(t, "DEL", "tripmeter:{"+t.Name()+"}:s:t")
	take(t, l, a).Keep()
	if _, err := l.TryAdmit(a); !errors.Is(err, limit.ErrLimited) {
		t.Errorf("after it was dropped: %v", err)
	}
}

func TestAProbeGoesAloneAndItsEndDecides(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	runner := viaRueidis(t, server.Addr)
	m := members(t, 2, func() redislimit.Runner { return runner }, redislimit.Options{Limits: tokenLimit(limit.PerSecond(1000), 1000, false)})
	m[0].PauseScope("", limit.Pause{ProbeAfter: 200 * time.Millisecond, Why: "no such account"})
	a, b := queue(t, m[0], limit.Ask{}), queue(t, m[1], limit.Ask{})
	a.within(t, 2*time.Second)
	if !b.waits() {
		t.Fatal("two probes at once")
	}
	failed := time.Now()
	a.r.Keep()
	b.within(t, 2*time.Second)
	if d := b.at.Sub(failed); d < 200*time.Millisecond {
		t.Errorf("the next probe went %v after one that failed", d)
	}
	c := queue(t, m[0], limit.Ask{})
	if !c.waits() {
		t.Fatal("admitted while a probe is under way")
	}
	b.r.Settle(limit.Cost{})
	c.within(t, time.Second)
	if s := m[1].Snapshot(); !s.PausedUntil.IsZero() {
		t.Errorf("paused until %v after a probe that succeeded", s.PausedUntil)
	}
}

// Three tenants with costs of 1, 4 and 20 tokens, all of them always waiting, in
// four processes. Over all four processes each tenant gets the same service. At no
// instant does one lag behind another by more than the largest cost of each and
// the calls in flight.
func TestTenantsShareFairlyOverProcesses(t *testing.T) {
	t.Parallel()
	const rate = 3000
	inFakeTime(t, 4, redislimit.Options{Limits: tokenLimit(limit.PerSecond(rate), 200, true)}, func(t *testing.T, m []*redislimit.Limiter) {
		theTenantsShareFairlyOverProcesses(t, m, rate)
	})
}

func theTenantsShareFairlyOverProcesses(t *testing.T, m []*redislimit.Limiter, rate float64) {
	sizes := map[string]int64{"small": 10, "middle": 40, "large": 200}
	var mu sync.Mutex
	served := map[string]float64{}
	lag := 0.0
	ctx, stop := context.WithTimeout(context.Background(), 4*time.Second)
	defer stop()
	var all sync.WaitGroup
	begun := time.Now()
	for i, l := range m {
		for name, size := range sizes {
			if i == 3 && name == "large" {
				continue // tenants need not be everywhere
			}
			for range 8 {
				all.Go(func() {
					for {
						r, err := l.Admit(ctx, limit.Ask{Cost: tokens(size), Tenant: name})
						if err != nil {
							return
						}
						actual := size / 2 // the estimate is twice too high, for everybody
						mu.Lock()
						served[name] += float64(actual)
						if time.Since(begun) > time.Second {
							for _, a := range served {
								for _, b := range served {
									lag = max(lag, a-b)
								}
							}
						}
						mu.Unlock()
						r.Settle(tokens(actual))
					}
				})
			}
		}
	}
	all.Wait()
	sum, squares := 0.0, 0.0
	for _, x := range served {
		sum += x
		squares += x * x
	}
	jain := sum * sum / (3 * squares)
	used := sum / (rate * 4)
	t.Logf("Jain %.4f, largest lag %.0f tokens, %.3f of the rate used, %v", jain, lag, used, served)
	if jain < 0.99 {
		t.Errorf("Jain %.4f", jain)
	}
	if bound := 2*200.0 + 200; lag > bound {
		t.Errorf("one lagged by %.0f tokens, more than %.0f", lag, bound)
	}
	if used < 0.98 || used > 1.05 {
		t.Errorf("%.3f of the rate used", used)
	}
}

func TestWeightsAndClasses(t *testing.T) {
	t.Parallel()
	inFakeTime(t, 2, redislimit.Options{
		Limits: tokenLimit(limit.PerSecond(2000), 20, true),
		Open: func(scope string) (limit.ScopeOptions, []limit.Limit) {
			return limit.ScopeOptions{Weight: map[string]int{"one": 1, "two": 2, "four": 4}[scope]}, nil
		}}, theWeightsAndClasses)
}

func theWeightsAndClasses(t *testing.T, m []*redislimit.Limiter) {
	run := func(asks map[string]limit.Ask) map[string]float64 {
		served := map[string]float64{}
		var mu sync.Mutex
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
		defer stop()
		var all sync.WaitGroup
		for name, a := range asks {
			for i := range 12 {
				all.Go(func() {
					for {
						r, err := m[i%2].Admit(ctx, a)
						if err != nil {
							return
						}
						mu.Lock()
						served[name] += float64(a.Cost.Input)
						mu.Unlock()
						r.Keep()
					}
				})
			}
		}
		all.Wait()
		sum := 0.0
		for _, x := range served {
			sum += x
		}
		for name := range served {
			served[name] /= sum
		}
		return served
	}
	got := run(map[string]limit.Ask{"one": {Cost: tokens(10), Tenant: "one"}, "two": {Cost: tokens(10), Tenant: "two"}, "four": {Cost: tokens(10), Tenant: "four"}})
	for name, want := range map[string]float64{"one": 1. / 7, "two": 2. / 7, "four": 4. / 7} {
		if math.Abs(got[name]-want) > 0.03 {
			t.Errorf("%s has %.3f of it, want %.3f", name, got[name], want)
		}
	}
	got = run(map[string]limit.Ask{"interactive": {Cost: tokens(10)}, "batch": {Cost: tokens(10), Class: limit.Batch}})
	if math.Abs(got["batch"]-0.1) > 0.03 {
		t.Errorf("the lower class has %.3f of it, want the floor of 0.1", got["batch"])
	}
}
