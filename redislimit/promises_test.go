package redislimit_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/limit/limittest"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

func TestPromises(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, via := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runner := via(t, server.Addr)
			var n atomic.Int64
			limittest.Run(t, func(t *testing.T, o limit.Options) limit.Ledger {
				return open(t, redislimit.Options{Name: fmt.Sprint(name, n.Add(1)), Runner: runner,
					Limits: o.Limits, MaxInFlight: o.MaxInFlight, MaxQueue: o.MaxQueue, MaxWait: o.MaxWait, Open: o.Open, Timeout: patient, MemberTTL: 5 * patient})
			}, limittest.WallTime(60*time.Millisecond))
		})
	}
}
