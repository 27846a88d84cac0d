package bench

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

func TestDebug(t *testing.T) {
	if *only == "" {
		return
	}
	for _, b := range bars {
		if b.name != *only {
			continue
		}
		for seed := range uint64(2) {
			p := tripmeter("x", func(o *transport.Options, k Knows) {
				if b.change != nil {
					b.change(o, k)
				}
				start := time.Now()
				at := func() float64 { return time.Since(start).Seconds() }
				o.Trace.Paused = func(r *http.Request, d time.Duration) { fmt.Printf("%8.2f paused %v\n", at(), d) }
				o.Trace.LimitChanged = func(a, b limit.Limit) { fmt.Printf("%8.2f limit %s %v -> %v\n", at(), a.Name, a.Rate.N, b.Rate.N) }
				o.Trace.Answered = func(a transport.Attempt) {
					if a.Status == 429 {
						fmt.Printf("%8.2f 429 quota %+v\n", at(), a.Quota)
					}
				}
				o.Trace.Doubted = func(a, b string) { fmt.Printf("%8.2f doubted %s %s\n", at(), a, b) }
			})
			r := bubble(t, Scenario{Provider: b.provider, Load: Overload, N: 2000, Told: b.told}, p, seed)
			fmt.Printf("used %.2f ideal %.2f 429 %d %v span %v\n", 100*r.Used, 100*r.OfIdeal(), r.Refused, r.Thirds, r.Span)
		}
	}
}
