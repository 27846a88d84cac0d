package budget

import (
	"fmt"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A Model is what a user configures for some models of each account, beside the
// limits of the account. The first whose names fit a call counts.
type Model struct {
	// Names are the models it is for, as requests name them, with * for any
	// characters: "gpt-4o", "gpt-4o-mini*". At least one is needed.
	Names []string

	// Limits are those of each model that fits, or of all of them together if
	// Shared is set.
	Limits []limit.Limit

	// MaxInFlight is how many calls may be under way; 0 is any number. It is of
	// each model, or of all of them together, as Limits are.
	MaxInFlight int

	// Shared: the models share one limit, as several names of one model do, or a
	// family of models at some providers.
	Shared bool
}

// fits reports whether m is for a model.
func (m *Model) fits(model string) bool {
	for _, name := range m.Names {
		if glob(name, model) {
			return true
		}
	}
	return false
}

// glob matches a name against a pattern, in which * is any characters.
func glob(pattern, name string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	for {
		var part string
		part, rest, wild = strings.Cut(rest, "*")
		if !wild {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
}

// checked fills in names of limits, and reports what cannot be.
func (m Model) checked(i int, burst time.Duration) (Model, error) {
	if len(m.Names) == 0 {
		return m, fmt.Errorf("budget: Options.Models[%d].Names is empty: name a model, or * for every model", i)
	}
	for _, n := range m.Names {
		if n == "" || strings.ContainsAny(n, `?[\`) {
			return m, fmt.Errorf("budget: Options.Models[%d].Names: %q is no pattern: only * stands for others", i, n)
		}
	}
	if m.MaxInFlight < 0 {
		return m, fmt.Errorf("budget: Options.Models[%d].MaxInFlight is %d: it must not be negative", i, m.MaxInFlight)
	}
	var err error
	if m.Limits, err = checkLimits(m.Limits, burst); err != nil {
		return m, fmt.Errorf("budget: Options.Models[%d]: %w", i, err)
	}
	return m, nil
}

// checkLimits are the limits that are set, with their names and the capacity that
// burst gives them.
func checkLimits(limits []limit.Limit, burst time.Duration) (set []limit.Limit, err error) {
	for _, l := range limits {
		if burst > 0 && l.Burst == 0 && l.Rate.Window <= time.Minute {
			l.Burst = max(1, l.Rate.In(burst))
		}
		if l.Name == "" {
			l.Name = NameOf(l.Unit, l.Rate.Window)
		}
		set = append(set, l)
	}
	if _, err := limit.New(limit.Options{Limits: set}); err != nil {
		return nil, err
	}
	kept := set[:0]
	for _, l := range set {
		if l.Rate != (limit.Rate{}) {
			kept = append(kept, l)
		}
	}
	return kept, nil
}

// modelOf returns the configuration of a model, or nil.
func (b *Budget) modelOf(model string) *Model {
	for i := range b.models {
		if b.models[i].fits(model) {
			return &b.models[i]
		}
	}
	return nil
}
