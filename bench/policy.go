package bench

import (
	"net/http"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/retry"
	"github.com/tripmeter/tripmeter/transport"
)

// A Policy is a way to keep inside limits.
type Policy struct {
	Name string
	New  func(base http.RoundTripper, k Knows) (http.RoundTripper, error)
}

// Knows is what a client is configured with: what it would read in the provider's
// documentation.
type Knows struct {
	providertest.Limits
	Options   providertest.Options
	Processes int // clients that share the limits, all with the same policy

	// Ledger is the store of all clients of a run.
	Ledger func() (limit.Ledger, error)
}

// share is what one of the processes may use.
func (k Knows) share() providertest.Limits {
	n := int64(max(1, k.Processes))
	return providertest.Limits{RPM: k.RPM / n, TPM: k.TPM / n, InputTPM: k.InputTPM / n, OutputTPM: k.OutputTPM / n}
}

// attempts is how often every policy tries a call: often enough that calls are
// not lost, so that policies are compared over the same calls.
const attempts = 1000

// Profile is the right profile for a provider of these options, which a user
// would take from the table or write down from the documentation.
func Profile(o providertest.Options) profile.Profile {
	p := profile.Unknown()
	switch o.Algorithm {
	case providertest.FixedMinute, providertest.SlidingMinute:
		p, _ = profile.ByName("window")
	case providertest.Slices:
		// The limit is of a minute and what is left of a slice: two things that
		// cannot be compared, so the fields are not used.
		p.RequestBurst, p.TokenBurst, p.Foreign = o.Slice/5, o.Slice/5, true
	default:
		// A second less than it holds, for the spread of the way there.
		p.RequestBurst, p.TokenBurst = max(time.Second, o.Capacity-time.Second), max(time.Second, o.Capacity-time.Second)
	}
	return ruled(p, o)
}

// ruled is p with the provider's own charge rule and dialect.
func ruled(p profile.Profile, o providertest.Options) profile.Profile {
	p.Rule = estimate.Rule{PromptByChars: true}
	switch o.Charge {
	case providertest.Estimate:
		p.Rule.Charge, p.Rule.ReserveCap = estimate.ChargeEstimate, true
	case providertest.Settle:
		p.Rule.Charge, p.Rule.ReserveCap = estimate.ChargeSettle, true
	case providertest.Actual:
		p.Rule.Charge = estimate.ChargeActual
	}
	p.Rule.RefusedCount = o.RefusedCount
	p.RefusedFree = !o.RefusedCount
	p.Name, p.Linear = "box", o.Algorithm <= providertest.Bucket
	if o.Dialect == providertest.AnthropicHeaders {
		p.Linear = false
	}
	return p
}

// tripmeter is the real transport. change may edit its options.
func tripmeter(name string, change func(*transport.Options, Knows)) Policy {
	return Policy{name, func(base http.RoundTripper, k Knows) (http.RoundTripper, error) {
		l := k.share()
		o := transport.Options{
			Base: base, RPM: l.RPM, TPM: l.TPM, InputTPM: l.InputTPM, OutputTPM: l.OutputTPM,
			Provider: Profile(k.Options), Attempts: attempts,
			Retry: retry.Options{MaxRetryAfter: time.Hour},
		}
		if change != nil {
			change(&o, k)
		}
		return transport.New(o)
	}}
}

// Tripmeter is configured as its documentation says: the limits, the profile.
var Tripmeter = tripmeter("tripmeter", nil)

// Unconfigured is tripmeter without limits and without a profile.
var Unconfigured = tripmeter("tripmeter, unconfigured", func(o *transport.Options, k Knows) {
	*o = transport.Options{Base: o.Base, Attempts: o.Attempts, Retry: o.Retry, Provider: profile.Unknown()}
})

// Policies are those of the scoreboard.
var Policies = []Policy{
	RetryAlone, ReserveCap, DebtBucket, FixedWindow, ChargeAfter, Unconfigured, Tripmeter,
}
