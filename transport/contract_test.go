package transport_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// The suite holds over bases in memory and over net/http against real servers:
// HTTP/1.1, the same over TLS, and HTTP/2. A transport may not be told from its
// base, with retries or without, limited or not, watched or not.
func TestContract(t *testing.T) {
	watched := transport.Trace{
		Queued:       func(*http.Request, limit.Cost) {},
		Granted:      func(*http.Request, limit.Cost, time.Duration) {},
		Refused:      func(*http.Request, error) {},
		Answered:     func(transport.Attempt) {},
		Lowered:      func(*http.Request, string, int64) {},
		Paused:       func(*http.Request, time.Duration) {},
		LimitChanged: func(_, _ limit.Limit) {},
		Settled:      func(transport.Settlement) {},
		Doubted:      func(_, _ string) {},
	}
	for _, c := range []struct {
		name string
		o    transport.Options
	}{
		{"alone", transport.Options{Attempts: 1}},
		{"with retry", transport.Options{}},
		{"with everything", transport.Options{
			RPM: 1e9, TPM: 1e12, RPD: 1e12, MaxInFlight: 1000, MaxQueue: 1000, MaxWait: time.Minute,
			Retry: retry.Options{MaxElapsed: time.Minute}, Trace: watched,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rttest.Run(t, func(base http.RoundTripper) http.RoundTripper {
				o := c.o
				o.Base = base
				return gate(t, o)
			})
		})
	}
}

// A chain of layers in any order is still a RoundTripper.
func TestContractOfAChain(t *testing.T) {
	t.Run("retry over transport", func(t *testing.T) {
		rttest.Run(t, func(base http.RoundTripper) http.RoundTripper {
			rt, err := retry.New(gate(t, transport.Options{Base: base, Attempts: 1}), retry.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return rt
		})
	})
	t.Run("transport over transport", func(t *testing.T) {
		rttest.Run(t, func(base http.RoundTripper) http.RoundTripper {
			return gate(t, transport.Options{Base: gate(t, transport.Options{Base: base})})
		})
	})
}
