package redislimit_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// priced is a price that answers of others may change.
type priced struct {
	cost  limit.Cost
	asked atomic.Int64
}

func (p *priced) Price() (cost, likely limit.Cost) {
	p.asked.Add(1)
	return p.cost, limit.Cost{Requests: p.cost.Requests, Input: p.cost.Input / 2}
}

// Callers of one process wait, whose prices have changed since they came. Each goes in
// its place when its new price is there, and takes that.
func TestPriceAtTheHeadOfTheSharedLine(t *testing.T) {
	t.Parallel()
	const burst, callers = 50, 200
	limits := []limit.Limit{{Name: "tokens", Unit: limit.Tokens, Rate: limit.Rate{N: 1, Window: time.Millisecond}, Burst: burst, Empty: true}}
	inFakeTime(t, 1, redislimit.Options{Limits: limits}, func(t *testing.T, m []*redislimit.Limiter) {
		r := rand.New(rand.NewPCG(1, 13))
		// The first one comes to a pause, so that all stand in the line before any goes.
		m[0].PauseScope("", limit.Pause{For: time.Millisecond, KeepCredit: true})
		start := time.Now()
		var at time.Duration
		var line []*turn
		var prices []*priced
		for range callers {
			old, now := 1+r.Int64N(burst), 1+r.Int64N(burst)
			p := &priced{cost: limit.Cost{Requests: 1, Input: now}}
			prices = append(prices, p)
			line = append(line, queue(t, m[0], limit.Ask{Cost: limit.Cost{Requests: 1, Input: old}, Pricer: p}))
		}
		for i, x := range line {
			at += time.Duration(prices[i].cost.Input) * time.Millisecond
			x.within(t, time.Hour)
			if went := x.at.Sub(start); went < at || went > at+time.Millisecond {
				t.Fatalf("caller %d went at %v; want %v", i, went, at)
			}
			if x.r.Cost() != prices[i].cost {
				t.Fatalf("caller %d took %v, and costs %v", i, x.r.Cost(), prices[i].cost)
			}
			x.r.Keep()
		}
	})
}

// Four processes and three tenants, whose callers all cost another amount at their turn.
// They take the new price, also in the call of another process, and the ledger is charged
// exactly that. So it is for windows too.
func TestPricesOfManyProcessesAreExact(t *testing.T) {
	t.Parallel()
	for name, law := range map[string]limit.Law{"bucket": {}, "log": {Shape: limit.ShapeLog}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rate, burst, each = 1000, 100, 40
			limits := []limit.Limit{{Name: "tokens", Unit: limit.Tokens, Rate: limit.Rate{N: rate, Window: time.Second}, Burst: burst, Empty: true, Law: law}}
			if law.Shape.Windowed() {
				limits[0].Burst, limits[0].Empty = 0, false
			}
			inFakeTime(t, 4, redislimit.Options{Limits: limits}, func(t *testing.T, m []*redislimit.Limiter) {
				start := time.Now()
				var charged atomic.Int64
				var all sync.WaitGroup
				for i, l := range m {
					for k := range each {
						all.Go(func() {
							old, now := int64(10+(i*7+k*13)%80), int64(10+(i*31+k*5)%80)
							p := &priced{cost: limit.Cost{Requests: 1, Input: now}}
							a := limit.Ask{Cost: limit.Cost{Requests: 1, Input: old}, Pricer: p, Tenant: []string{"", "a", "b"}[k%3]}
							r, err := l.Admit(t.Context(), a)
							if err != nil {
								t.Error(err)
								return
							}
							if c := r.Cost().Input; c != now && (p.asked.Load() > 0 || c != old) {
								t.Errorf("took %d; it cost %d, and then %d", c, old, now)
							}
							charged.Add(r.Cost().Input)
							r.Keep()
						})
					}
				}
				all.Wait()
				time.Sleep(time.Second) // what was settled has left
				s := m[0].Snapshot()
				if s.Served.Input != charged.Load() || s.Waiting != 0 || s.InFlight != 0 {
					t.Errorf("the store served %d, callers took %d; %d wait, %d in flight", s.Served.Input, charged.Load(), s.Waiting, s.InFlight)
				}
				took := time.Since(start) - time.Second
				if used := float64(charged.Load()) / (rate * took.Seconds()); used < 0.98 {
					t.Errorf("%.3f of the rate used", used)
				}
			})
		})
	}
}

// A caller with a price that leaves the line leaves no trace, whether the store has taken
// the price or not. While the store is away the share asks for prices.
func TestPricesOfThoseWhoLeave(t *testing.T) {
	t.Parallel()
	limits := tokenLimit(limit.PerSecond(10), 100, true)
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		store := redislimit.NewFakeStore(server.Addr)
		line := &wire{Runner: store.Client(t)}
		o := redislimit.Options{Runner: line, Limits: limits, Timeout: brisk, MemberTTL: 30 * time.Second}
		l := open(t, o)
		o.Runner = store.Client(t)
		open(t, o) // which keeps the budget's time going
		ask := func(old, now int64) (limit.Ask, *priced) {
			p := &priced{cost: tokens(now)}
			return limit.Ask{Cost: tokens(old), Pricer: p}, p
		}
		first, _ := ask(50, 20)
		second, _ := ask(30, 60)
		a, b := queue(t, l, first), queue(t, l, second)
		b.stop()
		<-b.done
		third, _ := ask(10, 10)
		c := queue(t, l, third)
		a.within(t, time.Hour)
		c.within(t, time.Hour)
		a.r.Keep()
		c.r.Keep()
		time.Sleep(time.Second)
		if s := l.Snapshot(); s.Waiting != 0 || s.Served.Input != 30 || s.Limits[0].Waiting != 0 {
			t.Errorf("%+v after callers of 20 and 10", s)
		}
		line.cut.Store(true)
		fourth, p := ask(40, 15)
		done := make(chan limit.Reservation)
		go func() {
			r, err := l.Admit(t.Context(), fourth)
			if err != nil {
				t.Error(err)
			}
			done <- r
		}()
		r := <-done
		if r.Cost() != tokens(15) || p.asked.Load() == 0 {
			t.Errorf("the share took %v, asked %d times", r.Cost(), p.asked.Load())
		}
		r.Keep()
		line.cut.Store(false)
		time.Sleep(5 * time.Second)
		if s := l.Snapshot(); s.Degraded != "" || s.Served.Input != 45 {
			t.Errorf("back: %+v, %d served", s, s.Served.Input)
		}
	})
}
