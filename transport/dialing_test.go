package transport_test

import (
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// The first call needs a second for its connection, and twenty others overtake
// it. What the provider then has left already is without what they cost: it must
// not be taken off once more.
func TestBalanceIsOfTheConnectionNotOfTheDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{Limits: providertest.Limits{TPM: 60_000}, Charge: providertest.Estimate})
		inner := p.RoundTripper()
		slow := true
		base := rttest.Func(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn("box:80")
			if slow {
				slow = false
				time.Sleep(time.Second)
			}
			trace.GotConn(httptrace.GotConnInfo{})
			return inner.RoundTrip(r)
		})
		rt := gate(t, transport.Options{Base: base, TPM: 60_000, Burst: time.Minute, Provider: ruled(estimate.ChargeEstimate)})
		c := &http.Client{Transport: rt}
		first := make(chan struct{})
		go func() {
			defer close(first)
			post(c, chat)
		}()
		synctest.Wait()
		time.Sleep(600 * time.Millisecond)
		var cost int64
		for range 20 {
			post(c, chat)
		}
		<-first
		for _, e := range p.Ledger() {
			cost += e.Settled.Total()
		}
		// 0.6 s of refill came to a full bucket and was lost but for the first's own.
		want := 60_000 - cost
		if got := rt.Snapshot().Limits[0].Credit; got < want {
			t.Errorf("credit %d, want at least %d", got, want)
		}
	})
}
