package bench

import (
	"time"

	"github.com/tripmeter/tripmeter/providertest"
)

// A Scenario is a provider and a load on it.
type Scenario struct {
	Name     string
	Provider providertest.Options // Limits, Algorithm, Capacity, Charge and faults; the rest is set by the run
	Load     Load
	N        int // calls

	// Configured is the token limit that clients have, if it is not the true one.
	Configured int64

	shape *Shape // nil: the calls and the provider are as above
}

// TPM and RPM are the limits of every scenario: a common first paid tier. The
// load is such that tokens bind.
const (
	TPM = 200_000
	RPM = 500
)

// A call takes 300 ms to the first token, and 10 ms for each. The way to the
// provider takes 5 to 40 ms, and as much back.
var (
	latency = providertest.Timing{FirstByte: 300 * time.Millisecond, PerToken: 10 * time.Millisecond}
	wayLow  = 5 * time.Millisecond
	wayHigh = 40 * time.Millisecond
)

// options completes the provider's.
func (s Scenario) options(seed uint64) providertest.Options {
	if s.shape != nil {
		return s.shape.options(seed)
	}
	o := s.Provider
	if o.Limits == (providertest.Limits{}) {
		o.Limits = providertest.Limits{RPM: RPM, TPM: TPM}
	}
	if o.RequestAlgorithm == 0 && o.Algorithm == providertest.Bucket && o.RequestCapacity == 0 {
		o.RequestCapacity = o.Capacity
	}
	o.Latency = func(providertest.Call) providertest.Timing { return latency }
	o.Output = outputs
	o.Seed = seed
	o.LedgerSize = 1 // the run keeps its own account
	return o
}

// tpm is the limit that drains tokens, in tokens per minute.
func (s Scenario) tpm() int64 {
	l := s.options(0).Limits
	if l.TPM > 0 {
		return l.TPM
	}
	return l.InputTPM + l.OutputTPM
}

// algorithms are the providers of the scoreboard.
var algorithms = []struct {
	name string
	o    providertest.Options
}{
	{"bucket of 3 s", providertest.Options{Algorithm: providertest.Bucket, Capacity: 3 * time.Second}},
	{"bucket of 10 s", providertest.Options{Algorithm: providertest.Bucket, Capacity: 10 * time.Second}},
	{"bucket of 60 s", providertest.Options{Algorithm: providertest.Bucket, Capacity: 60 * time.Second}},
	{"fixed minute", providertest.Options{Algorithm: providertest.FixedMinute}},
	{"sliding minute", providertest.Options{Algorithm: providertest.SlidingMinute}},
	{"slices of 1 s", providertest.Options{Algorithm: providertest.Slices, Slice: time.Second}},
}

var charges = []struct {
	name string
	c    providertest.Charge
}{
	{"estimate", providertest.Estimate}, {"settle", providertest.Settle}, {"actual", providertest.Actual},
}

// calls draws the calls of a run.
func (s Scenario) calls(seed uint64) []Call {
	if s.shape != nil {
		return s.shape.calls(seed)
	}
	return calls(s.Load, s.N, s.tpm(), s.Provider.Charge, seed)
}

// path is the endpoint that they go to.
func (s Scenario) path() string {
	if s.shape != nil {
		return s.shape.path()
	}
	return path(s.Provider)
}
