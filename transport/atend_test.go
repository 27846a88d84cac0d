package transport_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// atEnd plays a minute and a half of calls at a provider that nothing is known of. It
// returns how often charges at the end were believed, and how often given up.
func atEnd(t *testing.T, o providertest.Options) (believed, givenUp int64) {
	var on, off atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		o.Output = providertest.Uniform(20, 900)
		o.Latency = func(providertest.Call) providertest.Timing {
			return providertest.Timing{FirstByte: 500 * time.Millisecond, PerToken: 5 * time.Millisecond}
		}
		p := box(t, o)
		rt := gate(t, transport.Options{Base: p.RoundTripper(), Provider: profile.Unknown(), Attempts: 10, Trace: transport.Trace{
			LawChanged: func(old, new limit.Limit) {
				switch {
				case new.Law.AtEnd && !old.Law.AtEnd:
					on.Add(1)
				case old.Law.AtEnd && !new.Law.AtEnd:
					off.Add(1)
				}
			},
		}})
		offer(&http.Client{Transport: rt}, 300, 300*time.Millisecond)
	})
	return on.Load(), off.Load()
}

// With nothing configured, that calls are charged when they end is learned at the
// providers of which it was recorded, and at no other.
func TestChargesAtTheEndAreLearned(t *testing.T) {
	all := map[string]providertest.Options{
		"fixed minute":   {Limits: providertest.Limits{RPM: 600, TPM: 300_000}, Algorithm: providertest.FixedMinute, Charge: providertest.Settle},
		"sliding minute": {Limits: providertest.Limits{RPM: 600, TPM: 300_000}, Algorithm: providertest.SlidingMinute, Charge: providertest.Settle},
	}
	for _, p := range providertest.Presets() {
		all[p.Name] = p.Options(providertest.Limits{RPM: 600, TPM: 300_000})
	}
	for name, o := range all {
		want := name == "xai" || name == "mistral" || name == "mistral-2025"
		if believed, _ := atEnd(t, o); believed > 0 != want {
			t.Errorf("%s: charges at the end were believed %d times", name, believed)
		}
	}
}

// Refusals on which the books had room end it.
func TestChargesAtTheEndAreGivenUp(t *testing.T) {
	p, _ := providertest.PresetNamed("mistral")
	o := p.Options(providertest.Limits{RPM: 600, TPM: 300_000})
	refuses := providertest.Step{Kind: providertest.Reject, Status: 429, RetryAfter: time.Second, Body: `{"message":"Rate limit exceeded: tokens per minute","type":"rate_limited"}`}
	for _, from := range []time.Duration{50 * time.Second, 56 * time.Second} {
		o.Outages = append(o.Outages, providertest.Outage{From: from, For: time.Second, Step: refuses})
	}
	if believed, givenUp := atEnd(t, o); believed != 1 || givenUp != 1 {
		t.Errorf("charges at the end were believed %d times and given up %d times; want once each", believed, givenUp)
	}
}
