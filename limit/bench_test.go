package limit

import (
	"context"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

func benchLimiter(b *testing.B) *Limiter {
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

var benchCost = Cost{Requests: 1, Input: 900, Output: 100}

func BenchmarkAcquireSettle(b *testing.B) {
	ctx := context.Background()
	goroutines := []struct {
		name string
		n    int
	}{{"1", 0}, {"8", 4}, {"1000", 500}}
	for _, g := range goroutines {
		run := func(b *testing.B, f func()) {
			b.ReportAllocs()
			if g.n == 0 {
				for b.Loop() {
					f()
				}
				return
			}
			b.SetParallelism(g.n)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					f()
				}
			})
		}
		b.Run("tripmeter/"+g.name, func(b *testing.B) {
			l := benchLimiter(b)
			run(b, func() {
				r, err := l.Acquire(ctx, benchCost)
				if err != nil {
					b.Error(err)
				}
				r.Settle(Cost{Input: 900, Output: 60})
			})
		})
		b.Run("xtime-AllowN/"+g.name, func(b *testing.B) {
			l := rate.NewLimiter(1e12, 1e12)
			run(b, func() { l.AllowN(time.Now(), 1) })
		})
		b.Run("xtime-AllowN-x2/"+g.name, func(b *testing.B) {
			l, m := rate.NewLimiter(1e12, 1e12), rate.NewLimiter(1e12, 1e12)
			run(b, func() { l.AllowN(time.Now(), 1); m.AllowN(time.Now(), 1000) })
		})
		b.Run("xtime-WaitN-x2/"+g.name, func(b *testing.B) {
			l, m := rate.NewLimiter(1e12, 1e12), rate.NewLimiter(1e12, 1e12)
			run(b, func() { l.WaitN(ctx, 1); m.WaitN(ctx, 1000) })
		})
	}
}
