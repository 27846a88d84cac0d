package profile

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
)

// A Profile is how one provider limits, charges, refuses and reports: data,
// with its source. A user's own is as good as one from the table: start from
// [Unknown], or a copy of one that is near, change what differs, and hand it to
// the transport. The zero Profile means: find one by the host.
type Profile struct {
	// Name is what [ByName] finds it by, in lower case, such as "openai".
	Name string

	// Hosts are patterns of the hosts it is chosen for, with * for any
	// characters: "api.openai.com", "*.openai.azure.com".
	Hosts []string

	// Rule is what a call is charged.
	Rule estimate.Rule

	// Factors replace Rule.OutputFactor for models whose name contains a word;
	// the longest word counts.
	Factors []Factor

	// InputOnly: a limit on tokens counts the prompt alone.
	InputOnly bool

	// RequestBurst and TokenBurst bound the burst after idling, for limits of a
	// minute or less. They are times: the rate over that time may go in one
	// instant. 0 is 1 s for requests and 10 s for tokens.
	RequestBurst, TokenBurst time.Duration

	// Headroom is the share of each limit, in per cent, that is used; 0 is all
	// of it. Windows whose edges the client cannot see need some.
	Headroom int64

	// StartEmpty: the program starts with no credit, since the window it
	// starts in may be used up.
	StartEmpty bool

	// Dialect is what the provider's documentation adds to its header fields.
	// The zero value adds nothing.
	Dialect headers.Dialect

	// Linear: a reset is the time until a continuous bucket is full, and so
	// tells which window a limit has.
	Linear bool

	// RemainingAfter: a remaining field is the balance at the end of the call,
	// not at its admission.
	RemainingAfter bool

	// Foreign: the fields speak of somebody else's limit (a shared deployment
	// behind the caller's own tier) and are not used.
	Foreign bool

	// IgnoreBodyWait: a wait that only an error body names is not honoured. Most
	// providers that name one there name it nowhere else, so the zero value does.
	IgnoreBodyWait bool

	// Unlimited: the provider limits no rates. Calls beyond its room wait there, as
	// with a server on one's own machine. So nothing is awaited from the first answer.
	Unlimited bool

	// RefusedFree: a refused call is not counted as a request.
	RefusedFree bool

	// Together are patterns of models, with * for any characters, that have used up an
	// allowance of the account together: a refusal that speaks of all of them holds all
	// of them, and no other model.
	Together []string

	// Endpoints are paths that the common table lacks, or that mean another thing
	// with this provider. See [Profile.Endpoint].
	Endpoints []Endpoint

	// Source names where the values come from, AsOf when, as "2026-10".
	Source, AsOf string
}

// A Factor is what an output token of some models counts for.
type Factor struct {
	Model  string // a word in the model's name, in lower case
	Output int64  // at least 1
}

// RuleFor is the charge rule for a model.
func (p Profile) RuleFor(model string) estimate.Rule {
	r := p.Rule
	if len(p.Factors) > 0 {
		model = strings.ToLower(model)
		best := 0
		for _, f := range p.Factors {
			if len(f.Model) > best && strings.Contains(model, f.Model) {
				best, r.OutputFactor = len(f.Model), f.Output
			}
		}
	}
	return r
}

// Charging is p with another moment of the charge, and the rest of its rule: for a
// provider that charges otherwise than its profile says. The output cap is reserved
// unless the answer itself is charged. [estimate.ParseCharge] reads a name.
func (p Profile) Charging(c estimate.Charge) Profile {
	p.Rule.Charge, p.Rule.ReserveCap = c, c != estimate.ChargeActual
	return p
}

// AsRecorded reports whether p charges as the profile of its name does. If so, the
// recorded traffic of single endpoints and models ([DebitFor]) applies to p. A rule
// that the user changed goes before the records. So do fields that speak of somebody
// else's limit.
func (p *Profile) AsRecorded() bool {
	for i := range table {
		if t := &table[i]; t.Name == p.Name {
			return t.Rule == p.Rule && !p.Foreign
		}
	}
	return false
}

// Validate reports a profile that contradicts itself, naming the field.
func (p Profile) Validate() error {
	switch {
	case p.Name == "" || p.Name != strings.ToLower(p.Name):
		return fmt.Errorf("profile: Name is %q: it must be there, in lower case", p.Name)
	case p.RequestBurst < 0 || p.TokenBurst < 0:
		return errors.New("profile: RequestBurst and TokenBurst must not be negative")
	case p.Headroom < 0 || p.Headroom > 100:
		return fmt.Errorf("profile: Headroom is %d: it must be from 0 to 100 per cent", p.Headroom)
	}
	for _, h := range p.Hosts {
		if _, err := path.Match(h, ""); err != nil || h == "" || h != strings.ToLower(h) {
			return fmt.Errorf("profile: Hosts: %q is no pattern in lower case", h)
		}
	}
	for _, t := range p.Together {
		if t == "" || strings.ContainsAny(t, `?[\`) {
			return fmt.Errorf("profile: Together: %q is no pattern: only * stands for others", t)
		}
	}
	for _, f := range p.Factors {
		if f.Model == "" || f.Output < 1 {
			return fmt.Errorf("profile: Factors: %+v needs a model and at least 1", f)
		}
	}
	for _, w := range p.Dialect.Windows {
		if w.Window <= 0 {
			return fmt.Errorf("profile: Dialect.Windows: the window of %q is %v: it must be above 0", w.Dimension, w.Window)
		}
	}
	for _, e := range p.Endpoints {
		if err := e.validate(); err != nil {
			return err
		}
	}
	return p.Rule.Validate()
}

// Unknown is the profile of a provider that nothing is known of: the prompt
// and the output cap are reserved, and corrected by the usage that comes back.
func Unknown() Profile {
	return Profile{
		Name: "unknown",
		Rule: estimate.Rule{Charge: estimate.ChargeSettle, ReserveCap: true},
	}
}

// ForHost returns the profile for a host, with or without a port: [Unknown] if
// there is none. The longest pattern that fits counts.
func ForHost(host string) Profile {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	best, found := "", -1
	for i, p := range table {
		for _, h := range p.Hosts {
			if ok, _ := path.Match(h, host); ok && len(h) > len(best) {
				best, found = h, i
			}
		}
	}
	if found < 0 {
		return Unknown()
	}
	return table[found].clone()
}

// otherNames are what a provider is called too.
var otherNames = map[string]string{
	"azure-openai": "azure", "google": "gemini", "github": "github-models",
	"aws-bedrock": "bedrock", "vertex-ai": "vertex", "x-ai": "xai", "grok": "xai",
	"nvidia-nim": "nvidia", "litellm-proxy": "litellm",
}

// ByName returns the profile of that name, in any case, with spaces or
// underscores for its hyphens.
func ByName(name string) (Profile, bool) {
	name = strings.NewReplacer(" ", "-", "_", "-").Replace(strings.ToLower(name))
	if other := otherNames[name]; other != "" {
		name = other
	}
	if name == "unknown" {
		return Unknown(), true
	}
	for _, p := range table {
		if p.Name == name {
			return p.clone(), true
		}
	}
	return Profile{}, false
}

// Names lists the names of all profiles, in order.
func Names() []string {
	names := []string{"unknown"}
	for _, p := range table {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// clone keeps the table out of the caller's reach.
func (p Profile) clone() Profile {
	p.Hosts, p.Factors = slices.Clone(p.Hosts), slices.Clone(p.Factors)
	p.Together = slices.Clone(p.Together)
	p.Dialect.Windows, p.Endpoints = slices.Clone(p.Dialect.Windows), slices.Clone(p.Endpoints)
	return p
}
