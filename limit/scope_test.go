package limit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A call that needs all of two limits goes in spite of streams of calls that need
// only one of them. These could pass it for ever. The streams get all that they may
// take without delaying it.
func TestTwoLimitsDoNotStarveALargeCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{
			{Name: "requests", Rate: PerSecond(10), Burst: 20},
			{Name: "tokens", Unit: Tokens, Rate: PerSecond(10), Burst: 20},
		}})
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		var taken [2]int64
		var mu sync.Mutex
		for i, cost := range []Cost{{Requests: 1}, {Input: 1}} {
			for range 50 {
				wg.Go(func() {
					for {
						r, err := l.Admit(ctx, Ask{Cost: cost, Tenant: fmt.Sprint(i)})
						if err != nil {
							return
						}
						r.Keep()
						mu.Lock()
						taken[i]++
						mu.Unlock()
					}
				})
			}
		}
		time.Sleep(10 * time.Second)
		for range 20 {
			start := time.Now()
			r, err := l.Admit(ctx, Ask{Cost: Cost{Requests: 20, Input: 20}, Tenant: "large"})
			if err != nil {
				t.Fatal(err)
			}
			r.Keep()
			// Twice through both lines, of 2 s each, and the shares of the others.
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("it waited %v", d)
			}
		}
		span := time.Since(l.base)
		cancel()
		wg.Wait()
		for i, n := range taken {
			if all := n + 400; float64(all) < 0.9*10*span.Seconds() {
				t.Errorf("limit %d gave %d in %v", i, all, span)
			}
		}
		empty(t, l)
	})
}

// A batch call that needs a floor's turn at one limit and a place at another gets
// both. It does so although interactive calls take every place that comes free.
func TestFloorAndPlacesDoNotStarveBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := perMinute(t, 60_000, nil)
		if err := l.SetScope("model", ScopeOptions{MaxInFlight: 2}); err != nil {
			t.Fatal(err)
		}
		people := &party{calls: 30, reserves: 300, works: 100 * time.Millisecond, scopes: []string{"model"}}
		others := &party{name: "others", calls: 30, reserves: 300}
		batch := &party{class: Batch, calls: 5, reserves: 700, works: 100 * time.Millisecond, scopes: []string{"model"}}
		share(t, l, time.Hour, people, others, batch)
		if total := people.served + others.served + batch.served; float64(total) < 0.99*3_600_000 || batch.served < 3_600_000/20 {
			t.Errorf("people %d, others %d, batch %d", people.served, others.served, batch.served)
		}
	})
}

// While two tenants wait, what they were served by weight differs by at most one
// largest call of each: at every instant, from any instant on.
func TestLagBetweenTenants(t *testing.T) {
	dice := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, Options{Limits: []Limit{{Unit: Tokens, Rate: PerSecond(1000), Burst: 200, Empty: true}}})
			type tenant struct {
				weight, largest, served int64
			}
			all := make([]tenant, 2+dice.IntN(4))
			var line []*waiter
			of := map[*waiter]int{}
			add := func(i int) {
				c := all[i].largest - dice.Int64N(all[i].largest/2)
				l.lock()
				w, _, err := l.ask(&Ask{Cost: Cost{Input: c}, Tenant: fmt.Sprint(i)}, true, time.Time{})
				l.mu.Unlock()
				if err != nil || w == nil {
					t.Fatal(err)
				}
				line, of[w] = append(line, w), i
			}
			for i := range all {
				all[i] = tenant{weight: 1 + dice.Int64N(9), largest: 20 + dice.Int64N(180)}
				if err := l.SetScope(fmt.Sprint(i), ScopeOptions{Weight: int(all[i].weight)}); err != nil {
					t.Fatal(err)
				}
				for range 40 {
					add(i)
				}
			}
			lowest, highest := make(map[[2]int]float64), make(map[[2]int]float64)
			for range 300 {
				time.Sleep(time.Duration(dice.IntN(100)) * time.Millisecond)
				synctest.Wait()
				// One grant at a time, in the order of the reservations.
				var went []*waiter
				l.lock()
				for _, w := range line {
					if w.lane == nil {
						went = append(went, w)
					}
				}
				l.mu.Unlock()
				for len(went) > 0 {
					next := went[0]
					for _, w := range went {
						if w.r.seq < next.r.seq {
							next = w
						}
					}
					i := of[next]
					all[i].served += next.cost.Input
					for a := range all {
						for b := range all[:a] {
							gap := float64(all[a].served)/float64(all[a].weight) - float64(all[b].served)/float64(all[b].weight)
							k := [2]int{a, b}
							lowest[k], highest[k] = min(lowest[k], gap), max(highest[k], gap)
							most := float64(all[a].largest)/float64(all[a].weight) + float64(all[b].largest)/float64(all[b].weight)
							if highest[k]-lowest[k] > 2*most+1e-9 || gap > most+1e-9 || gap < -most-1e-9 {
								t.Fatalf("%+v and %+v: %f ahead, at most %f", all[a], all[b], gap, most)
							}
						}
					}
					for j, w := range line {
						if w == next {
							line = append(line[:j], line[j+1:]...)
							break
						}
					}
					for j, w := range went {
						if w == next {
							went = append(went[:j], went[j+1:]...)
							break
						}
					}
					next.r.Keep()
					add(i)
				}
			}
			for _, w := range line {
				w.leave(nil, nil)
			}
			empty(t, l)
		})
	}
}

// Idle and full scopes are forgotten down to the number to be kept; those that are
// in debt, paused, waiting, in flight or set by hand are not.
func TestIdleScopesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := map[string]int{}
		own := []Limit{{Name: "own", Unit: Tokens, Rate: PerMinute(60), Burst: 10}}
		l := mustNew(t, Options{KeepIdle: 10, Open: func(name string) (ScopeOptions, []Limit) {
			opened[name]++
			return ScopeOptions{}, own
		}})
		take := func(name string, c int64) Reservation {
			t.Helper()
			r, err := l.TryAdmit(Ask{Cost: Cost{Input: c}, Tenant: name})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		take("debt", 1).Settle(Cost{Input: 1000})
		l.PauseScope("paused", Pause{For: time.Hour})
		flying := take("flying", 0)
		l.SetScope("hand", ScopeOptions{Weight: 7})
		l.SetScopeLimit("limit", Limit{Name: "mine", Rate: PerSecond(1)})
		take("empty", 10).Keep()
		l.lock()
		waits, _, _ := l.ask(&Ask{Cost: Cost{Input: 10}, Tenant: "empty"}, true, time.Time{})
		l.mu.Unlock()
		for i := range 10_000 {
			take(fmt.Sprint(i), 0).Keep()
		}
		if n := l.scopes.n; n > 20 {
			t.Errorf("%d scopes are kept", n)
		}
		for _, name := range []string{"debt", "paused", "flying", "hand", "limit", "empty"} {
			if l.scopes.find(name) == nil || opened[name] != 1 {
				t.Errorf("%q was forgotten, or opened %d times", name, opened[name])
			}
		}
		// One that spent something is kept until that is earned again.
		take("once", 5).Keep()
		for i := range 100 {
			take(fmt.Sprint("more", i), 0).Keep()
		}
		if l.scopes.find("once") == nil {
			t.Error("a tenant gets a new burst")
		}
		waits.leave(nil, nil)
		time.Sleep(2 * time.Hour)
		flying.Return()
		for i := range 100 {
			take(fmt.Sprint("late", i), 0).Keep()
		}
		for _, name := range []string{"debt", "paused", "flying", "empty", "once"} {
			if l.scopes.find(name) != nil {
				t.Errorf("%q is kept though it is idle and full", name)
			}
		}
		if s := l.lookup("hand"); s == nil || s.opt.Weight != 7 {
			t.Error("what was set by hand is gone")
		}
		// Set back, it may go.
		l2 := mustNew(t, Options{KeepIdle: 1})
		l2.SetScope("hand", ScopeOptions{Weight: 7})
		l2.SetScope("hand", ScopeOptions{})
		for i := range 10 {
			r, _ := l2.TryAdmit(Ask{Tenant: fmt.Sprint(i)})
			r.Keep()
		}
		if l2.lookup("hand") != nil {
			t.Error("a scope without anything set is kept")
		}
	})
}

// A tenant that is kept takes at most 300 bytes, and one that was forgotten none.
func TestMemoryOfTenants(t *testing.T) {
	const n = 100_000
	measure := func(keep int) (l *Limiter, bytes float64) {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("tenant/%08d", i)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		l = mustNew(t, Options{Limits: []Limit{{Rate: PerSecond(MaxUnits)}}, KeepIdle: keep})
		for _, name := range names {
			r, err := l.TryAdmit(Ask{Cost: Cost{Requests: 1}, Tenant: strings.Clone(name)})
			if err != nil {
				t.Fatal(err)
			}
			r.Keep()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(names)
		return l, (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / n
	}
	l, bytes := measure(2 * n)
	if l.scopes.n != n || bytes > 300 {
		t.Errorf("%d tenants of %.0f bytes each", l.scopes.n, bytes)
	}
	t.Logf("%.0f bytes each", bytes)
	if l, bytes := measure(100); l.scopes.n > 110 || bytes > 10 {
		t.Errorf("%d tenants of %.0f bytes each", l.scopes.n, bytes)
	}
}

// Seven hundred callers with a deadline of a minute each reserve 4,300 tokens and
// use 200. Those that can be served in time are not refused, and the others are
// refused at once.
func TestDeadlinesArePricedAtWhatIsLikely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := perMinute(t, 90_000, nil) // 450 calls of 200 a minute
		var mu sync.Mutex
		served, refused, late := 0, 0, 0
		var wg sync.WaitGroup
		for range 700 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				start := time.Now()
				r, err := l.Admit(ctx, Ask{Cost: Cost{Requests: 1, Input: 300, Output: 4000}, Likely: Cost{Requests: 1, Input: 100, Output: 100}})
				mu.Lock()
				switch {
				case err == nil:
					served++
				case time.Since(start) == 0:
					refused++
				default:
					late++
				}
				mu.Unlock()
				if err == nil {
					time.Sleep(300 * time.Millisecond)
					r.Settle(Cost{Input: 100, Output: 100})
				}
			})
		}
		wg.Wait()
		t.Logf("%d served, %d refused at once, %d at the deadline", served, refused, late)
		if served < 400 || 700-refused < served || refused == 0 {
			t.Errorf("%d served, %d refused at once, %d at the deadline", served, refused, late)
		}
		empty(t, l)
	})
}

// A ticket ends with its context, whether its turn came or not; one that was
// taken does not.
func TestTicketEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{MaxInFlight: 1})
		ctx, cancel := context.WithCancelCause(context.Background())
		taken, _ := l.Enter(ctx, Ask{})
		r, err := taken.Take()
		if err != nil {
			t.Fatal(err)
		}
		waits, _ := l.Enter(ctx, Ask{})
		why := errors.New("the user left")
		cancel(why)
		synctest.Wait()
		if s := l.Snapshot(); s.InFlight != 1 || s.Waiting != 0 {
			t.Errorf("%v", s)
		}
		if _, err := waits.Take(); !errors.Is(err, why) || !errors.Is(err, context.Canceled) || !errors.Is(err, ErrCanceled) {
			t.Error(err)
		}
		r.Keep()
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		granted, _ := l.Enter(ctx, Ask{})
		<-granted.Ready()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := l.Snapshot(); s.InFlight != 0 {
			t.Errorf("a ticket holds its place after its context: %v", s)
		}
		if _, err := l.Enter(ctx, Ask{}); !errors.Is(err, ErrCanceled) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		empty(t, l)
	})
}

// A ticket that was forgotten gives its place back when the collector finds it,
// and one that waits leaves the line.
func TestForgottenTicketsEnd(t *testing.T) {
	l := mustNew(t, Options{MaxInFlight: 1})
	forget := func() {
		for range 3 {
			if _, err := l.Reserve(Cost{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	forget()
	for {
		runtime.GC()
		if r, err := l.TryAcquire(Cost{}); err == nil {
			r.Keep()
			break
		}
	}
	empty(t, l)
}

// What a snapshot and a state print is the state.
func TestSnapshotsPrintTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Name: "tpm", Unit: Tokens, Rate: PerMinute(600), Burst: 100}}, MaxInFlight: 3})
		r, _ := l.TryAdmit(Ask{Cost: Cost{Input: 60}, Scopes: []string{"model"}})
		l.PauseScope("model", Pause{For: time.Hour, ProbeAfter: time.Minute, By: "example.org", Why: "overloaded"})
		l.EnforceScopeLimit("", Limit{Name: "tpm", Unit: Tokens, Rate: PerMinute(300), Burst: 50})
		inLine(l, 50)
		time.Sleep(1500 * time.Millisecond)
		s := l.Snapshot()
		want := "root: tpm: 300/1m0s, 47 of 50 left, 50 waiting (600/1m0s configured); 1 of 3 in flight, 1 waiting for up to 1.5s\n" +
			"model: no limits; 1 in flight, 0 waiting; paused until 2000-01-01T01:00:00Z by example.org (overloaded)"
		if got := fmt.Sprint(s); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
		var b strings.Builder
		log := slog.New(slog.NewTextHandler(&b, nil))
		log.Info("state", "root", s, "limit", s.Limits[0])
		for _, part := range []string{"root.in_flight=1", "root.tpm.credit=47", "limit.configured=600/1m0s", "root.scopes=1", "root.oldest=1.5s", "root.model.in_flight=1", "root.model.paused_by=example.org"} {
			if !strings.Contains(b.String(), part) {
				t.Errorf("%q is not in %s", part, b.String())
			}
		}
		_, err := l.TryAdmit(Ask{Scopes: []string{"model"}})
		if want := "limit: no credit now: pause of model asked for by example.org (overloaded), could go in 58.5s"; err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
		r.Keep()
	})
}

// Durations in texts have at most four digits, rounded up.
func TestTextsRoundDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "1ns", 9_999: "9.999µs", 123_456: "123.5µs", 285_714_286: "285.8ms", 1_000_000_001: "1.001s",
		8_571_428_571: "8.572s", 61*time.Minute + 1: "1h1m1s",
	} {
		if got := round(d).String(); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

// Names that cannot be, and options of Open that cannot be, are errors of the call.
func TestImpossibleScopes(t *testing.T) {
	l := mustNew(t, Options{Open: func(name string) (ScopeOptions, []Limit) {
		switch name {
		case "weight":
			return ScopeOptions{Weight: -1}, nil
		case "limit":
			return ScopeOptions{}, []Limit{{Rate: PerSecond(-1)}}
		}
		return ScopeOptions{}, nil
	}})
	var e *ConfigError
	for _, name := range []string{"weight", "limit", strings.Repeat("x", MaxName+1)} {
		if _, err := l.TryAdmit(Ask{Tenant: name}); !errors.As(err, &e) {
			t.Errorf("%.20s: %v", name, err)
		}
		if f := l.Forecast(Ask{Scopes: []string{name}}); !errors.As(f.Err, &e) {
			t.Errorf("%.20s: %v", name, f.Err)
		}
	}
	if _, err := l.TryAdmit(Ask{Class: 7}); !errors.As(err, &e) {
		t.Error(err)
	}
	for _, o := range []Options{{Floor: -1}, {Floor: 101}, {KeepIdle: -1}} {
		if _, err := New(o); !errors.As(err, &e) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if l.scopes.n != 0 {
		t.Errorf("%d scopes are there", l.scopes.n)
	}
}

// Goroutines of many tenants, scopes and classes at once: no credit is minted or
// lost at any level, and in the end nothing is left. Run it with -race.
func TestConservationAtEveryLevel(t *testing.T) {
	const most = 1_000_000
	l := mustNew(t, Options{
		Limits: []Limit{{Name: "x", Unit: Tokens, Rate: Rate{1, MaxWindow}, Burst: most}}, MaxInFlight: 20, KeepIdle: 1 << 10,
	})
	scopes := []string{"a", "b", "c", "d"}
	for _, name := range scopes {
		if err := l.SetScopeLimit(name, Limit{Name: "x", Unit: Tokens, Rate: Rate{1, MaxWindow}, Burst: most}); err != nil {
			t.Fatal(err)
		}
		l.SetScope(name, ScopeOptions{Weight: 2, MaxInFlight: 5})
	}
	var mu sync.Mutex
	spent := map[string]int64{}
	var wg sync.WaitGroup
	for g := range 40 {
		wg.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(g), 1))
			for range 300 {
				c := 1 + dice.Int64N(50)
				a := Ask{Cost: Cost{Input: c}, Scopes: []string{scopes[dice.IntN(2)]}, Tenant: scopes[2+dice.IntN(2)], Class: Class(dice.IntN(2)), First: dice.IntN(9) == 0}
				ctx, cancel := context.WithCancel(context.Background())
				if dice.IntN(4) == 0 {
					time.AfterFunc(time.Duration(dice.IntN(300))*time.Microsecond, cancel)
				}
				r, err := l.Admit(ctx, a)
				cancel()
				if err != nil {
					continue
				}
				used := c
				switch dice.IntN(3) {
				case 0:
					r.Keep()
				case 1:
					r.Return()
					used = 0
				case 2:
					used = dice.Int64N(80)
					r.Settle(Cost{Input: used})
				}
				mu.Lock()
				for _, name := range []string{"", a.Scopes[0], a.Tenant} {
					spent[name] += used
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	empty(t, l)
	s := l.Snapshot()
	for _, one := range append(s.Scopes, s) {
		if c := one.Limits[0].Credit; c != most-spent[one.Scope] || one.Served.Input != spent[one.Scope] {
			t.Errorf("%q: credit %d, served %v, want %d spent", one.Scope, c, one.Served, spent[one.Scope])
		}
	}
}
