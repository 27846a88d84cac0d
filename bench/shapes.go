package bench

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// A Shape is a law of limits that tripmeter is measured under, with the load of
// a wide mix: prompts of 50 to 8,000 tokens and answers of 1 to 30 seconds.
type Shape struct {
	Name     string
	Provider providertest.Options // laws and headers; limits are shapeLimits unless set
	Profile  string               // name in package profile; empty is the unknown one
	Path     string               // endpoint; empty is chat
	Model    string               // of every call on that path; empty is "box"
	Day      string               // on which it is played, as "2025-10-01"; empty is any
	Load     Load
	N        int // calls
	Filler   int // of fillers, for the prompts
	Models   int // that the calls go to in turn; 0 is one
	Bars     Bars
	Unset    Bars // with nothing configured; the zero Bars hold it to none

	// Missed says why a row is not held to its bars: it does not meet them yet.
	Missed string
}

// Bars are the goals of a shape. A zero bar is not asked, but for Refused.
type Bars struct {
	OfIdeal  float64       // least share of the ideal client's throughput
	Used     float64       // least share of the quota used
	Refused  float64       // most 429s for 1,000 calls
	P50, P99 time.Duration // most added wait
}

// shapeLimits are the limits of every shape that sets none of its own.
var shapeLimits = providertest.Limits{RPM: 600, TPM: 300_000}

// splitLimits are those of a provider that limits input and output apart.
var splitLimits = providertest.Limits{RPM: 600, InputTPM: 300_000, OutputTPM: 200_000}

// shapeLatency makes answers last 1 to 30 s.
var shapeLatency = providertest.Timing{FirstByte: 800 * time.Millisecond, PerToken: 10 * time.Millisecond}

const shapeCap = 4096

// spread draws from lo to hi, each size of order as likely as the next.
func spread(r *rand.Rand, lo, hi float64) int64 { return int64(lo * math.Pow(hi/lo, r.Float64())) }

func shapeOutput(r *rand.Rand) int64 { return spread(r, 20, 2900) }

// options completes the provider's.
func (s Shape) options(seed uint64) providertest.Options {
	o := s.Provider
	if o.Limits == (providertest.Limits{}) {
		o.Limits = shapeLimits
	}
	o.Latency = func(providertest.Call) providertest.Timing { return shapeLatency }
	o.Output = shapeOutput
	o.Seed, o.LedgerSize = seed, 1
	return o
}

// path is the endpoint that the shape is called at.
func (s Shape) path() string {
	if s.Path != "" {
		return s.Path
	}
	return path(s.Provider)
}

// drain is how many of the calls a second the limits let through, by the
// tokens that the provider charges for them on average.
func (s Shape) drain(cs []Call) float64 {
	o := s.options(0)
	var in, out float64
	r := rand.New(rand.NewPCG(0, 7))
	for _, c := range cs {
		p, q := charged(o, c, shapeOutput(r))
		in, out = in+float64(p), out+float64(q)
	}
	n := float64(len(cs))
	most := math.Inf(1)
	if o.RPM > 0 {
		most = float64(o.RPM)
	}
	if o.TPM > 0 {
		most = min(most, float64(o.TPM)/((in+out)/n))
	}
	if o.InputTPM > 0 {
		most = min(most, float64(o.InputTPM)/(in/n), float64(o.OutputTPM)/(out/n))
	}
	return most / 60
}

// charged is what a provider of these options charges for a call in the end.
func charged(o providertest.Options, c Call, output int64) (in, out int64) {
	switch o.Charge {
	case providertest.Estimate:
		return c.Prompt, c.Cap
	case providertest.PromptOnly:
		return c.Prompt, 0
	case providertest.Larger:
		return max(c.Prompt, c.Cap), 0
	case providertest.Beyond:
		const reserve = 163 // of the preset, for a call without tools
		return c.Prompt + reserve, max(0, output-reserve)
	}
	return c.Prompt, output
}

// calls draws the calls of a shape.
func (s Shape) calls(seed uint64) []Call {
	r := rand.New(rand.NewPCG(seed, 11))
	cs := make([]Call, s.N)
	for i := range cs {
		cs[i].Prompt, cs[i].Cap, cs[i].Filler = spread(r, 50, 8000), shapeCap, s.Filler
		if s.Models > 0 {
			cs[i].Model = fmt.Sprint("box-", i%s.Models)
		}
		cs[i].Body = s.body(i, cs[i])
	}
	drain, at := s.drain(cs), 0.0
	for i := range cs {
		cs[i].At = time.Duration(at * float64(time.Second))
		switch s.Load {
		case AtOnce:
		case Bursts:
			if i%60 == 59 {
				at += 60 / (0.6 * drain)
			}
		default:
			at += r.ExpFloat64() / (3 * drain)
		}
	}
	return cs
}

// body is a request that the provider counts as c.Prompt tokens.
func (s Shape) body(i int, c Call) []byte {
	if s.path() != "/v1/responses" {
		return body(i, c)
	}
	text := prompt(i, c)
	return fmt.Appendf(nil, `{"model":%q,"max_output_tokens":%d,"input":[{"role":"user","content":%q}]}`, cmp.Or(s.Model, "box"), c.Cap, text)
}

// await sleeps until the shape's day. Records of a provider have dates.
func (s Shape) await() error {
	if s.Day == "" {
		return nil
	}
	day, err := time.Parse(time.DateOnly, s.Day)
	if err == nil {
		time.Sleep(time.Until(day))
	}
	return err
}

// scenario is the shape as the run takes it.
func (s Shape) scenario() Scenario {
	return Scenario{Name: s.Name, Load: s.Load, N: s.N, shape: &s}
}

// Configured is tripmeter with the limits and the shape's profile.
func (s Shape) Configured() Policy {
	return tripmeter("limits and profile", func(o *transport.Options, _ Knows) { o.Provider = s.profile() })
}

// Learning is tripmeter with neither.
func (s Shape) Learning() Policy { return Unconfigured }

// Bare is tripmeter as it is without a word of configuration, with its own number
// of attempts.
var Bare = Policy{"nothing set", func(base http.RoundTripper, _ Knows) (http.RoundTripper, error) {
	return transport.New(transport.Options{Base: base})
}}

// Whole is tripmeter with the whole limits in each process, and nothing else.
var Whole = Policy{"whole limits", func(base http.RoundTripper, k Knows) (http.RoundTripper, error) {
	l := k.Limits
	return transport.New(transport.Options{Base: base, RPM: l.RPM, TPM: l.TPM, InputTPM: l.InputTPM, OutputTPM: l.OutputTPM})
}}

func (s Shape) profile() profile.Profile {
	if s.Profile == "" {
		return profile.Unknown()
	}
	p, ok := profile.ByName(s.Profile)
	if !ok {
		panic("bench: no profile " + s.Profile)
	}
	return p
}

func preset(name string) providertest.Options {
	p, ok := providertest.PresetNamed(name)
	if !ok {
		panic("bench: no preset " + name)
	}
	switch name {
	case "anthropic", "anthropic-2024":
		return p.Options(splitLimits)
	case "groq": // requests are limited by the day
		return p.Options(providertest.Limits{RPD: 14_400, TPM: shapeLimits.TPM})
	}
	return p.Options(shapeLimits)
}

// judge is what a row misses of the bars, or nil.
func (b Bars) judge(r Row) error {
	var missed []error
	miss := func(what string, is, want any) {
		missed = append(missed, fmt.Errorf("%s is %v; the bar is %v", what, is, want))
	}
	if r.OfIdeal < b.OfIdeal {
		miss("share of the ideal throughput", r.OfIdeal, b.OfIdeal)
	}
	if r.Used < b.Used {
		miss("share of the quota used", r.Used, b.Used)
	}
	if 1000*r.Refused > b.Refused {
		miss("429s for 1,000 calls", 1000*r.Refused, b.Refused)
	}
	if w := Quantile(r.Waits, .5); b.P50 > 0 && w > b.P50 {
		miss("median added wait", w, b.P50)
	}
	if w := Quantile(r.Waits, .99); b.P99 > 0 && w > b.P99 {
		miss("p99 of the added wait", w, b.P99)
	}
	if r.Failed > 0 {
		miss("failed calls", r.Failed, 0)
	}
	return errors.Join(missed...)
}
