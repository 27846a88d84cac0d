package meter

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// One call, from the line to its settlement, as the meter sees it.
func BenchmarkCall(b *testing.B) {
	for _, tenants := range []int{1, 1000} {
		b.Run(strconv.Itoa(tenants)+"tenants", func(b *testing.B) {
			names := make([]string, tenants)
			for i := range names {
				names[i] = "tenant-" + strconv.Itoa(i)
			}
			m := New(Options{Tenant: func(r *http.Request) string { return r.Host }})
			t := m.Trace("a")
			r := &http.Request{}
			cost := limit.Cost{Requests: 1, Input: 100, Output: 400}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r.Host = names[i%tenants]
				t.Queued(r, cost)
				t.Granted(r, cost, time.Microsecond)
				t.Answered(transport.Attempt{Request: r, N: 1, Status: 200, Duration: time.Millisecond})
				t.Settled(transport.Settlement{Request: r, Reserved: cost, Charged: cost, Attempts: 1, Status: 200, Complete: true, Usage: transport.Usage{Input: 100, Output: 200, Found: true}})
			}
		})
	}
}
