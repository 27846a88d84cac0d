package limit

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// The benchmarks compare with golang.org/x/time/rate in one run, taking turns
// of a few hundred microseconds, so that a busy machine slows both alike. What
// is told is the median turn of each, and the ratio of the medians:
//
//	go test ./limit -run '^$' -bench Against -benchtime 200x
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
	each := max(100, 2000/goroutines)
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
