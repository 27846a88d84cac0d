package limit

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// The benchmarks compare with golang.org/x/time/rate in one run. They take
// turns of a few milliseconds, so that a busy machine slows both alike. The result
// is the median turn of each, and the ratio of the medians:
//
//	go test ./limit -run '^$' -bench Against -benchtime 60x
//	go test ./limit -run '^$' -bench 'Kept|Line|Wake|Admissions|Phantom'

func unbound(b *testing.B) *Limiter {
	l, err := New(Options{
		Limits: []Limit{
			{Unit: Requests, Rate: PerMinute(MaxUnits), Burst: MaxUnits},
			{Unit: Tokens, Rate: PerMinute(MaxUnits), Burst: MaxUnits},
		},
		MaxInFlight: 1 << 20,
	})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

var (
	benchCost   = Cost{Requests: 1, Input: 900, Output: 100}
	benchActual = Cost{Input: 900, Output: 60}
)

// A contender is something timed in turns with others.
type contender struct {
	name string
	op   func()
	took []float64 // nanoseconds an operation, one for each turn
}

func (c *contender) median() float64 {
	slices.Sort(c.took)
	return c.took[len(c.took)/2]
}

// inTurns runs each contender for a turn, over and over, in so many
// goroutines.
func inTurns(b *testing.B, goroutines int, all []*contender) {
	each := max(100, 20000/goroutines)
	for b.Loop() {
		for _, c := range all {
			gate := make(chan struct{})
			var wg sync.WaitGroup
			for range goroutines - 1 {
				wg.Go(func() {
					<-gate
					for range each {
						c.op()
					}
				})
			}
			runtime.Gosched()
			start := time.Now()
			close(gate)
			for range each {
				c.op()
			}
			wg.Wait()
			c.took = append(c.took, float64(time.Since(start))/float64(goroutines*each))
		}
	}
	b.ReportMetric(0, "ns/op") // of a round of turns: says nothing
	for _, c := range all {
		b.ReportMetric(c.median(), c.name+"-ns")
		if c != all[0] {
			b.ReportMetric(all[0].median()/c.median(), "of-"+c.name)
		}
	}
}

// Acquire and settle with requests, tokens and a place in flight, against ONE
// AllowN, against two, and against two WaitN.
func BenchmarkAgainstXTime(b *testing.B) {
	ctx := context.Background()
	for _, goroutines := range []int{1, 8, 1000} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			l := unbound(b)
			m, n := rate.NewLimiter(1e12, 1e12), rate.NewLimiter(1e12, 1e12)
			inTurns(b, goroutines, []*contender{
				{name: "tripmeter", op: func() {
					r, err := l.Acquire(ctx, benchCost)
					if err != nil {
						b.Error(err)
					}
					r.Settle(benchActual)
				}},
				{name: "AllowN", op: func() { m.AllowN(time.Now(), 1) }},
				{name: "2xAllowN", op: func() { m.AllowN(time.Now(), 1); n.AllowN(time.Now(), 1000) }},
				{name: "2xWaitN", op: func() { m.WaitN(ctx, 1); n.WaitN(ctx, 1000) }},
			})
		})
	}
}

// The clock read before the lock, as it is, against the clock read inside it,
// as it was: the reason for [Limiter.see].
func BenchmarkAgainstClockInside(b *testing.B) {
	for _, goroutines := range []int{1, 8, 1000} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			before, inside := unbound(b), unbound(b)
			inTurns(b, goroutines, []*contender{
				{name: "before", op: func() {
					l := before
					stamp := l.clock()
					l.mu.Lock()
					r, _ := l.admitRoot(benchCost, true, l.see(stamp))
					l.mu.Unlock()
					r.Settle(benchActual)
				}},
				{name: "inside", op: func() {
					l := inside
					l.mu.Lock()
					r, _ := l.admitRoot(benchCost, true, l.see(l.clock()))
					l.mu.Unlock()
					r.Settle(benchActual)
				}},
			})
		})
	}
}

// A handle kept, handed to another goroutine, and ended there.
func BenchmarkKeptHandle(b *testing.B) {
	ctx := context.Background()
	b.Run("tripmeter", func(b *testing.B) {
		b.ReportAllocs()
		l, kept, done := unbound(b), make(chan Reservation, 256), make(chan bool)
		go func() {
			for r := range kept {
				r.Settle(benchActual)
			}
			close(done)
		}()
		for b.Loop() {
			r, err := l.Acquire(ctx, benchCost)
			if err != nil {
				b.Fatal(err)
			}
			kept <- r
		}
		close(kept)
		<-done
	})
	b.Run("xtime", func(b *testing.B) {
		b.ReportAllocs()
		l, kept, done := rate.NewLimiter(1e12, 1e12), make(chan *rate.Reservation, 256), make(chan bool)
		go func() {
			for r := range kept {
				r.Cancel()
			}
			close(done)
		}()
		for b.Loop() {
			kept <- l.ReserveN(time.Now(), 1)
		}
		close(kept)
		<-done
	})
}

// spent is a limiter whose tokens one reservation holds, so that all others wait.
func spent(b *testing.B) (*Limiter, Reservation) {
	l, err := New(Options{
		Limits:      []Limit{{Unit: Tokens, Rate: Rate{1, MaxWindow}, Burst: 1000}},
		MaxInFlight: 1 << 20,
	})
	if err != nil {
		b.Fatal(err)
	}
	held, err := l.TryAcquire(Cost{Input: 1000})
	if err != nil {
		b.Fatal(err)
	}
	return l, held
}

// Standing in line: a place is taken at the end, the head is admitted by a
// refund, and the line is as long as before. Flat from ten waiters to a hundred
// thousand.
func BenchmarkLine(b *testing.B) {
	for _, waiters := range []int{10, 100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(waiters), func(b *testing.B) {
			l, held := spent(b)
			var err error
			line := make([]*waiter, waiters) // a ring
			join := func(i int) {
				l.lock()
				line[i], _, err = l.ask(&Ask{Cost: Cost{Input: 1000}}, true, time.Time{})
				l.mu.Unlock()
				if err != nil {
					b.Fatal(err)
				}
			}
			for i := range line {
				join(i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % waiters {
				held.Return()
				<-line[i].done
				if held, err = line[i].r, line[i].err; err != nil {
					b.Fatal(err)
				}
				line[i].drop() // as await does
				join(i)
			}
		})
	}
}

// The same with tickets, which the collector must find when they are forgotten.
func BenchmarkTickets(b *testing.B) {
	const waiters = 1000
	l, held := spent(b)
	var err error
	line := make([]*Ticket, waiters) // a ring
	join := func(i int) {
		if line[i], err = l.Reserve(Cost{Input: 1000}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range line {
		join(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i = (i + 1) % waiters {
		held.Return()
		<-line[i].Ready()
		if held, err = line[i].Take(); err != nil {
			b.Fatal(err)
		}
		join(i)
	}
}

// Cancelling from the middle of a line of that length, and joining again.
func BenchmarkLineCancel(b *testing.B) {
	for _, waiters := range []int{10, 10_000, 100_000} {
		b.Run(fmt.Sprint(waiters), func(b *testing.B) {
			l, err := New(Options{Limits: []Limit{{Unit: Tokens, Rate: Rate{1, MaxWindow}, Burst: 1000, Empty: true}}})
			if err != nil {
				b.Fatal(err)
			}
			line := make([]*waiter, waiters)
			join := func(i int) {
				l.lock()
				line[i], _, _ = l.ask(&Ask{Cost: Cost{Input: 1}}, true, time.Time{})
				l.mu.Unlock()
			}
			for i := range line {
				join(i)
			}
			for i := 1; b.Loop(); i = (i + 7_919) % waiters {
				line[i].leave(nil, nil)
				<-line[i].done
				line[i].drop() // as await does
				join(i)
			}
		})
	}
}

// How late ten thousand waiters awake, in wall time: from the instant at which
// each is due, which follows from its place and the rate, to the instant at
// which its goroutine runs. In an idle program that is as late as the runtime's
// own timers, measured beside it; in one where something runs, as most do that
// send requests, the limiter's own share shows.
func BenchmarkWakeLateness(b *testing.B) {
	const waiters, perSecond = 10_000, 10_000
	for _, busy := range []bool{false, true} {
		name := "idle"
		if busy {
			name = "busy"
		}
		during := func(b *testing.B, measure func() []time.Duration) {
			stop := make(chan struct{})
			if busy {
				go func() {
					for {
						select {
						case <-stop:
							return
						default:
							runtime.Gosched()
						}
					}
				}()
			}
			var late []time.Duration
			for b.Loop() {
				late = append(late, measure()...)
			}
			close(stop)
			slices.Sort(late)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(late[len(late)/2])/1e3, "p50-µs")
			b.ReportMetric(float64(late[len(late)*99/100])/1e3, "p99-µs")
		}
		b.Run(name+"/tripmeter", func(b *testing.B) {
			during(b, func() []time.Duration {
				l, err := New(Options{Limits: []Limit{{Rate: PerSecond(perSecond)}}})
				if err != nil {
					b.Fatal(err)
				}
				l.Pause(200 * time.Millisecond) // everybody is in line by then
				late := make([]time.Duration, waiters)
				var wg sync.WaitGroup
				for range waiters {
					wg.Go(func() {
						l.mu.Lock()
						t, _, err := l.ask(&Ask{Cost: Cost{Requests: 1}}, false, time.Time{})
						place := l.waiting
						l.mu.Unlock()
						if err != nil {
							b.Error(err)
							return
						}
						<-t.done
						now := l.clock()
						// One request is there when the pause ends.
						due := l.root.pausedUntil + int64(place-1)*int64(time.Second)/perSecond
						late[place-1] = time.Duration(now - due)
					})
				}
				wg.Wait()
				return late
			})
		})
		b.Run(name+"/time.Sleep", func(b *testing.B) {
			during(b, func() []time.Duration {
				start := time.Now()
				late := make([]time.Duration, 2_000)
				for i := range late {
					due := time.Duration(i) * 500 * time.Microsecond
					time.Sleep(due - time.Since(start))
					late[i] = time.Since(start) - due
				}
				return late
			})
		})
	}
}

// Admissions a second through acquire and settle from a thousand goroutines.
func BenchmarkAdmissions(b *testing.B) {
	l := unbound(b)
	ctx := context.Background()
	b.SetParallelism(1000 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := l.Acquire(ctx, benchCost)
			if err != nil {
				b.Error(err)
			}
			r.Settle(benchActual)
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "admissions/s")
}

// Phantom credit: what a thousand spinning goroutines were granted beyond the
// burst and what the rate earned from first to last, as a share of the latter.
func BenchmarkPhantomCredit(b *testing.B) {
	const perSecond, burst = 100_000, 100
	spin := func(b *testing.B, take func() bool) {
		var granted atomic.Int64
		start := time.Now()
		b.SetParallelism(1000 / runtime.GOMAXPROCS(0))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if take() {
					granted.Add(1)
				}
			}
		})
		earned := float64(PerSecond(perSecond).In(time.Since(start)))
		phantom := max(0, float64(granted.Load())-burst-earned)
		b.ReportMetric(100*phantom/max(1, earned), "phantom-%")
	}
	b.Run("tripmeter", func(b *testing.B) {
		l, err := New(Options{Limits: []Limit{{Rate: PerSecond(perSecond), Burst: burst}}})
		if err != nil {
			b.Fatal(err)
		}
		spin(b, func() bool {
			r, err := l.TryAcquire(Cost{Requests: 1})
			r.Keep()
			return err == nil
		})
	})
	b.Run("xtime", func(b *testing.B) {
		l := rate.NewLimiter(perSecond, burst)
		spin(b, func() bool {
			r := l.ReserveN(time.Now(), 1)
			if r.Delay() > 0 {
				r.Cancel()
				return false
			}
			return true
		})
	})
}

// A ticket that waits, from Reserve to Take: what a waiting call costs, and the
// net for tickets that are forgotten.
func BenchmarkTicket(b *testing.B) {
	l, err := New(Options{MaxInFlight: 1})
	if err != nil {
		b.Fatal(err)
	}
	held, _ := l.TryAcquire(Cost{})
	b.ReportAllocs()
	for b.Loop() {
		t, err := l.Reserve(Cost{})
		if err != nil {
			b.Fatal(err)
		}
		held.Keep()
		if held, err = t.Take(); err != nil {
			b.Fatal(err)
		}
	}
}

// Admission and settlement with that many tenants of which each waits for the
// limit they share: what is measured grows at most with the logarithm.
func BenchmarkTenants(b *testing.B) {
	for _, tenants := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprint(tenants), func(b *testing.B) {
			l, err := New(Options{Limits: []Limit{{Unit: Tokens, Rate: Rate{1, MaxWindow}, Burst: 1000}}})
			if err != nil {
				b.Fatal(err)
			}
			held, _ := l.TryAcquire(Cost{Input: 1000})
			line := make([]*waiter, tenants) // a ring
			names := make([]string, tenants)
			join := func(i int) {
				l.lock()
				line[i], _, err = l.ask(&Ask{Cost: Cost{Input: 1000}, Tenant: names[i]}, true, time.Time{})
				l.mu.Unlock()
				if err != nil {
					b.Fatal(err)
				}
			}
			for i := range line {
				names[i] = fmt.Sprintf("tenant/%06d", i)
				join(i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % tenants {
				held.Settle(Cost{})
				<-line[i].done
				if held, err = line[i].r, line[i].err; err != nil {
					b.Fatal(err)
				}
				line[i].drop()
				join(i)
			}
		})
	}
}

// Admission in an account, a model and a tenant that have limits and credit, while
// nobody waits, against the root alone.
func BenchmarkScopes(b *testing.B) {
	limits := []Limit{
		{Unit: Requests, Rate: PerMinute(MaxUnits), Burst: MaxUnits},
		{Unit: Tokens, Rate: PerMinute(MaxUnits), Burst: MaxUnits},
	}
	for _, c := range []struct {
		name string
		ask  Ask
	}{
		{"root", Ask{}},
		{"model", Ask{Scopes: []string{"account", "model"}}},
		{"tenant", Ask{Scopes: []string{"account", "model"}, Tenant: "tenant"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			l, err := New(Options{Limits: limits, Open: func(string) (ScopeOptions, []Limit) { return ScopeOptions{}, limits }})
			if err != nil {
				b.Fatal(err)
			}
			c.ask.Cost = benchCost
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				r, err := l.Admit(ctx, c.ask)
				if err != nil {
					b.Fatal(err)
				}
				r.Settle(benchActual)
			}
		})
	}
}

// A snapshot of ten thousand tenants and of a million, of which one in ten waits.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l, err := New(Options{Limits: []Limit{{Unit: Tokens, Rate: PerMinute(1), Burst: 100}}, KeepIdle: 1 << 20})
			if err != nil {
				b.Fatal(err)
			}
			for i := range n {
				a := Ask{Tenant: fmt.Sprint(i)}
				if i%10 == 0 {
					a.Cost.Input = 1
					l.lock()
					l.ask(&a, true, time.Time{})
					l.mu.Unlock()
					continue
				}
				r, err := l.TryAdmit(a)
				if err != nil {
					b.Fatal(err)
				}
				r.Keep()
			}
			b.ReportAllocs()
			for b.Loop() {
				if s := l.Snapshot(); len(s.Scopes) != n {
					b.Fatal(len(s.Scopes))
				}
			}
		})
	}
}

// A million tenants, once each: the memory of one while it is kept, and the time of a
// call. The longest call is in processor time, with its share of garbage collection.
func BenchmarkMillionTenants(b *testing.B) {
	const n = 1_000_000
	for _, c := range []struct {
		name string
		keep int
		own  []Limit
	}{
		{"kept", n, nil},
		{"in debt", 1000, []Limit{{Unit: Tokens, Rate: PerDay(1000)}}},
		{"forgotten", 1000, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprintf("tenant/%07d", i)
			}
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				l, err := New(Options{
					Limits: []Limit{{Rate: PerSecond(MaxUnits)}}, KeepIdle: c.keep,
					Open: func(string) (ScopeOptions, []Limit) { return ScopeOptions{}, c.own },
				})
				if err != nil {
					b.Fatal(err)
				}
				runtime.LockOSThread()
				longest, start := time.Duration(0), time.Now()
				last := threadTime()
				slow := 0
				for _, name := range names {
					r, err := l.TryAdmit(Ask{Cost: Cost{Requests: 1, Input: 1000}, Tenant: name})
					if err != nil {
						b.Fatal(err)
					}
					r.Settle(Cost{Input: 1500})
					now := threadTime()
					d := now - last
					if longest = max(longest, d); d > time.Millisecond {
						slow++
					}
					last = now
				}
				b.ReportMetric(float64(time.Since(start))/n, "ns/tenant")
				runtime.UnlockOSThread()
				b.ReportMetric(float64(longest)/1e3, "longest-µs")
				b.ReportMetric(float64(slow), "above-1ms")
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/n, "B/tenant")
				b.ReportMetric(float64(l.scopes.n), "kept")
				b.ReportMetric(0, "ns/op")
				runtime.KeepAlive(names)
			}
		})
	}
}
