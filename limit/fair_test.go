package limit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A party is a tenant of the tests that asks again and again.
type party struct {
	name     string
	class    Class
	calls    int           // at once
	reserves int64         // tokens reserved by each
	costs    int64         // what they really cost; 0: reserves
	works    time.Duration // how long each is in flight
	scopes   []string
	from, to time.Duration // when it asks; to 0: till the end

	served int64 // tokens, as settled
	went   int
	waits  []time.Duration
}

// share lets all parties ask for d, and returns when all is quiet.
func share(t *testing.T, l *Limiter, d time.Duration, parties ...*party) {
	t.Helper()
	start := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, p := range parties {
		if p.costs == 0 {
			p.costs = p.reserves
		}
		till := d
		if p.to > 0 {
			till = p.to
		}
		for range p.calls {
			wg.Go(func() {
				time.Sleep(p.from)
				ctx, cancel := context.WithDeadline(context.Background(), start.Add(till))
				defer cancel()
				for {
					asked := time.Now()
					r, err := l.Admit(ctx, Ask{
						Cost: Cost{Requests: 1, Input: p.reserves}, Likely: Cost{Requests: 1, Input: p.costs},
						Tenant: p.name, Class: p.class, Scopes: p.scopes,
					})
					if err != nil {
						return
					}
					mu.Lock()
					p.served += p.costs
					p.went++
					p.waits = append(p.waits, time.Since(asked))
					mu.Unlock()
					time.Sleep(p.works)
					r.Settle(Cost{Input: p.costs})
				}
			})
		}
	}
	wg.Wait()
}

// p99 is the wait that one call in a hundred exceeds.
func (p *party) p99() time.Duration {
	slices.Sort(p.waits)
	return p.waits[len(p.waits)*99/100]
}

// jain is Jain's index of shares by weight: 1 where all are equal.
func jain(shares ...float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	return sum * sum / float64(len(shares)) / squares
}

func perMinute(t *testing.T, n int64, weights map[string]int) *Limiter {
	t.Helper()
	l := mustNew(t, Options{Limits: []Limit{{Name: "tpm", Unit: Tokens, Rate: PerMinute(n), Burst: n / 6, Largest: n}}})
	for name, w := range weights {
		if err := l.SetScope(name, ScopeOptions{Weight: w}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// Three tenants that all wait, with calls of unequal size, share by weight; also
// where the reserved cost is far from the actual one, in another way for each.
func TestTenantsShareByWeight(t *testing.T) {
	for _, weights := range [][]int{{1, 1, 1}, {1, 2, 4}, {4, 2, 1}} {
		for _, over := range [][]int64{{1, 1, 1}, {10, 1, 3}, {1, 8, 2}} {
			t.Run(fmt.Sprint(weights, over), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := perMinute(t, 60_000, map[string]int{"a": weights[0], "b": weights[1], "c": weights[2]})
					var all []*party
					for i, size := range []int64{50, 200, 1000} {
						all = append(all, &party{name: string(rune('a' + i)), calls: 60, reserves: size * over[i], costs: size, works: time.Second})
					}
					share(t, l, 2*time.Hour, all...)
					total, sum := 0.0, 0
					var shares []float64
					for i, p := range all {
						total += float64(p.served)
						sum += weights[i]
						shares = append(shares, float64(p.served)/float64(weights[i]))
					}
					if j := jain(shares...); j < 0.999 {
						t.Errorf("Jain's index %f: %v", j, shares)
					}
					for i, p := range all {
						want := total * float64(weights[i]) / float64(sum)
						if d := math.Abs(float64(p.served)-want) / total; d > 0.005 {
							t.Errorf("%s got %d tokens, want %.0f", p.name, p.served, want)
						}
					}
					if most := 60_000.0 * 2 * 60; total < most*0.99 || total > most*1.01+10_000 {
						t.Errorf("%.0f tokens in all, of %.0f", total, most)
					}
					empty(t, l)
				})
			})
		}
	}
}

// A tenant with ten of twelve calls, each at three times the limit, does not make
// the others wait for it.
func TestHog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := perMinute(t, 60_000, nil)
		hog := &party{name: "hog", calls: 100, reserves: 3000}
		one, two := &party{name: "one", calls: 1, reserves: 500, works: 4 * time.Second}, &party{name: "two", calls: 1, reserves: 500, works: 4 * time.Second}
		share(t, l, time.Hour, hog, one, two)
		for _, p := range []*party{one, two} {
			if w := p.p99(); w > 7*time.Second {
				t.Errorf("%s: p99 %v", p.name, w)
			}
			t.Logf("%s: %d calls, p99 %v", p.name, p.went, p.p99())
		}
		if total := hog.served + one.served + two.served; total < 3_600_000-6000 {
			t.Errorf("%d tokens in all", total)
		}
	})
}

// The last of a set of calls goes at the same instant in two cases: all are of one
// tenant, or of three, of which one has ten calls of twelve. Only the order
// differs: in the fair one, the few calls of the others wait for seconds.
func TestFairLineEndsWithFIFO(t *testing.T) {
	end := func(t *testing.T, name func(i int) string) (last, light time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			l := perMinute(t, 60_000, nil)
			start := time.Now()
			var mu sync.Mutex
			var wg sync.WaitGroup
			var waits []time.Duration
			for i := range 1200 { // for five minutes, at three times the limit
				wg.Go(func() {
					time.Sleep(time.Duration(i) * 250 * time.Millisecond)
					asked, cost := time.Now(), Cost{Requests: 1, Input: 850}
					if i%12 >= 10 {
						cost.Input = 250
					}
					r, err := l.Admit(t.Context(), Ask{Cost: cost, Tenant: name(i)})
					if err != nil {
						t.Error(err)
						return
					}
					r.Settle(cost)
					mu.Lock()
					defer mu.Unlock()
					last = max(last, time.Since(start))
					if i%12 >= 10 {
						waits = append(waits, time.Since(asked))
					}
				})
			}
			wg.Wait()
			slices.Sort(waits)
			light = waits[len(waits)*99/100]
			empty(t, l)
		})
		return last, light
	}
	fair, light := end(t, func(i int) string { return [...]string{"hog", "one", "two"}[max(0, i%12-9)] })
	fifo, heavy := end(t, func(int) string { return "all" })
	t.Logf("end %v and %v, p99 %v and %v", fair, fifo, light, heavy)
	if fair != fifo {
		t.Errorf("the fair line ends after %v, first come first served after %v", fair, fifo)
	}
	if light > 7*time.Second || heavy < time.Minute {
		t.Errorf("p99 of the light tenants %v, first come first served %v", light, heavy)
	}
}

// Some tenants do not ask, are stopped by a limit of their own, or are paused. They
// leave all to the others, and earn nothing by it.
func TestTenantsThatAreStopped(t *testing.T) {
	for _, c := range []struct {
		name string
		stop func(l *Limiter)
		slow *party
		own  int64 // what it still gets
	}{
		{"idle", func(*Limiter) {}, &party{name: "slow", calls: 1, reserves: 100, from: 59 * time.Minute}, 40_000},
		{"own limit", func(l *Limiter) {
			l.SetScopeLimit("slow", Limit{Name: "own", Unit: Tokens, Rate: PerMinute(600), Burst: 100})
		}, &party{name: "slow", calls: 500, reserves: 100}, 36_100},
		{"own place", func(l *Limiter) { l.SetScope("slow", ScopeOptions{MaxInFlight: 1}) },
			&party{name: "slow", calls: 500, reserves: 100, works: time.Minute}, 6_000},
		{"paused", func(l *Limiter) { l.PauseScope("slow", Pause{For: 2 * time.Hour}) },
			&party{name: "slow", calls: 500, reserves: 100}, 0},
		{"in debt", func(l *Limiter) {
			l.SetScopeLimit("slow", Limit{Name: "own", Unit: Tokens, Rate: PerMinute(600), Burst: 100})
			r, _ := l.TryAdmit(Ask{Tenant: "slow", Cost: Cost{Input: 1}})
			r.Settle(Cost{Input: 36_000})
		}, &party{name: "slow", calls: 500, reserves: 100}, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := perMinute(t, 60_000, nil)
				c.stop(l)
				one, two := &party{name: "one", calls: 20, reserves: 200}, &party{name: "two", calls: 20, reserves: 1000}
				share(t, l, time.Hour, c.slow, one, two)
				most := 60*60_000 - c.slow.served
				if got := one.served + two.served; float64(got) < 0.99*float64(most) {
					t.Errorf("the others got %d of %d", got, most)
				}
				if c.slow.served > c.own+100 {
					t.Errorf("%s got %d tokens, want at most %d", c.slow.name, c.slow.served, c.own)
				}
				if j := jain(float64(one.served), float64(two.served)); j < 0.999 {
					t.Errorf("%d and %d", one.served, two.served)
				}
			})
		})
	}
}

// One call behind a thousand of another tenant waits for two of them at most.
func TestOneBehindAThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := perMinute(t, 60_000, nil) // a thousand tokens a second
		crowd := &party{name: "crowd", calls: 1000, reserves: 2000}
		one := &party{name: "one", calls: 1, reserves: 100, from: 10 * time.Minute, to: 10*time.Minute + time.Hour, works: 2 * time.Hour}
		share(t, l, 30*time.Minute, crowd, one)
		if len(one.waits) != 1 || one.waits[0] > 4*time.Second {
			t.Errorf("it waited %v", one.waits)
		}
	})
}

// Batch calls get a tenth of a limit that interactive calls could use up, and all
// that these leave. The amounts that were reserved do not matter.
func TestBatchFloor(t *testing.T) {
	for _, over := range [][]int64{{1, 1}, {10, 1}, {1, 10}, {7, 7}} {
		for _, tenants := range [][]string{{"", ""}, {"a", "b"}, {"a", "a"}} {
			t.Run(fmt.Sprint(over, tenants), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := perMinute(t, 60_000, nil)
					people := &party{name: tenants[0], calls: 50, reserves: 300 * over[0], costs: 300, works: time.Second}
					batch := &party{name: tenants[1], class: Batch, calls: 50, reserves: 700 * over[1], costs: 700, works: time.Second}
					share(t, l, 3*time.Hour, people, batch)
					total := float64(people.served + batch.served)
					if s := 100 * float64(batch.served) / total; s < 9.5 || s > 10.5 {
						t.Errorf("batch got %.2f %%", s)
					}
					if total < 0.995*60_000*3*60 {
						t.Errorf("%.0f tokens in all", total)
					}
					// Fifty calls of 300 at nine tenths of the limit, and a call of Batch.
					t.Logf("interactive p99 %v", people.p99())
					if w := people.p99(); over[0] == 1 && over[1] == 1 && w > 50*300*time.Second/900+2*time.Second {
						t.Errorf("interactive p99 %v", w)
					}
				})
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l := perMinute(t, 60_000, nil)
		people := &party{calls: 3, reserves: 300, works: 3 * time.Second}
		batch := &party{class: Batch, calls: 50, reserves: 700}
		share(t, l, time.Hour, people, batch)
		if total := people.served + batch.served; float64(total) < 0.995*60_000*60 {
			t.Errorf("%d tokens in all", total)
		}
		if w := people.p99(); w > 2*time.Second {
			t.Errorf("interactive calls that leave most to batch: p99 %v", w)
		}
	})
}

// Two models with limits far apart, one that is always refused and paused, and a
// host that is paused for an hour: each caller gets what it would get alone.
func TestScopesTogetherGetWhatTheyGetApart(t *testing.T) {
	run := func(t *testing.T, parties func() []*party) (served []int64) {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, Options{})
			for scope, n := range map[string]int64{"small": 30_000, "large": 200_000} {
				l.SetScopeLimit(scope, Limit{Name: "tpm", Unit: Tokens, Rate: PerMinute(n), Burst: n / 6, Largest: n})
			}
			l.PauseScope("pictures", Pause{For: time.Hour, By: "the server"})
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
			defer cancel()
			probes := 0
			go func() { // each call to the sick model is refused, and pauses it again
				for {
					l.PauseScope("sick", Pause{For: time.Hour, ProbeAfter: time.Second})
					r, err := l.Admit(ctx, Ask{Scopes: []string{"sick"}, First: true})
					if err != nil {
						return
					}
					probes++
					time.Sleep(100 * time.Millisecond)
					r.Return()
				}
			}()
			all := parties()
			share(t, l, 10*time.Minute, all...)
			for _, p := range all {
				served = append(served, p.served)
			}
			if probes > 600 {
				t.Errorf("%d probes in ten minutes", probes)
			}
		})
		return served
	}
	small := func() *party {
		return &party{calls: 20, reserves: 500, works: 2 * time.Second, scopes: []string{"account", "small"}}
	}
	large := func() *party {
		return &party{calls: 60, reserves: 1000, works: 2 * time.Second, scopes: []string{"account", "large"}}
	}
	sick := func() *party { return &party{calls: 20, reserves: 100, scopes: []string{"account", "sick"}} }
	pictures := func() *party { return &party{calls: 20, reserves: 100, scopes: []string{"pictures"}} }
	apart := append(run(t, func() []*party { return []*party{small()} }), run(t, func() []*party { return []*party{large()} })...)
	together := run(t, func() []*party { return []*party{small(), large(), sick(), pictures()} })
	for i, alone := range apart {
		if float64(together[i]) < 0.97*float64(alone) {
			t.Errorf("party %d got %d, alone %d", i, together[i], alone)
		}
	}
	if together[3] != 0 {
		t.Errorf("%d tokens of a paused host", together[3])
	}
}
