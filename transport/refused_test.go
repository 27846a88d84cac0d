package transport_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// tooLate holds everybody until MaxElapsed is over, so that the second attempt
// is admitted and must not leave.
func tooLate(t *testing.T, d *desk) {
	d.o.Retry.MaxElapsed = 5 * time.Second
	d.o.Retry.Deciding = func(retry.Event) { d.limiter.Pause(10 * time.Second) }
	read(t, d)
}

// What the provider says is left after a refusal is what it is left with:
// nothing comes off it but what the ledger is still to give back.
func TestLeftAfterARefusal(t *testing.T) {
	for name, change := range map[string]func(*profile.Profile){
		"a refusal counts as a request":     func(p *profile.Profile) {},
		"a refusal counts, with its tokens": func(p *profile.Profile) { p.Rule.RefusedCount = true },
		"a refusal is free":                 func(p *profile.Profile) { p.RefusedFree = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hour := limit.Rate{N: 1000, Window: 100 * time.Hour}
				tokens := limit.Rate{N: 100_000, Window: 100 * time.Hour}
				p := profile.Unknown()
				change(&p)
				rt := gate(t, transport.Options{
					Base: script("429;X-Ratelimit-Limit-Requests=1000;X-Ratelimit-Remaining-Requests=500;X-Ratelimit-Limit-Tokens=100000;X-Ratelimit-Remaining-Tokens=50000"),
					Limits: []limit.Limit{
						{Name: "requests", Unit: limit.Requests, Rate: hour, Burst: 1000},
						{Name: "tokens", Unit: limit.Tokens, Rate: tokens, Burst: 100_000},
					},
					Provider: p, Attempts: 1,
				})
				finish(rt.RoundTrip(ask(t, t.Context(), letter)))
				if r, k := balance(state(t, rt, "requests")), balance(state(t, rt, "tokens")); r != 500 || k != 50_000 {
					t.Errorf("%d requests and %d tokens are there; the provider has 500 and 50000", r, k)
				}
			})
		})
	}
}
