package transport_test

import (
	"testing"
	"testing/synctest"

	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// Answered says what is left after each answer, so that a shrinking headroom shows.
func TestAnsweredSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{Limits: providertest.Limits{RPM: 60, TPM: 6000}})
		var left []int64
		rt := gate(t, transport.Options{Base: p.RoundTripper(), Trace: transport.Trace{
			Answered: func(a transport.Attempt) { left = append(left, a.Left.Requests) },
		}})
		for range 5 {
			finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		}
		if len(left) != 5 || left[0] != 59 || left[4] >= left[0] {
			t.Errorf("left: %v", left)
		}
	})
}
