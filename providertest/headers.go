package providertest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// reading is one limit as headers show it, at one instant.
type reading struct {
	limit     *limit
	value     int64 // limit per window
	remaining int64 // whole units, never negative
	reset     int64 // ns to full
}

// readingsLocked is every limit now. A day limit is shown only where there is
// none per minute: both would have the same name.
func (p *Provider) readingsLocked(e *engine, model string, at int64) []reading {
	var out []reading
	for _, l := range e.limits {
		if !l.judges(model) || l.window == day && e.has("requests", model) || l.model == "" && e.own(l.name, model) {
			continue
		}
		r := reading{limit: l, value: l.value, remaining: max(0, l.gauge.level(at)), reset: l.gauge.full(at)}
		if m := p.o.RoundRemaining; m > 1 && l.name != "requests" && l.name != "requests per day" {
			r.remaining = (r.remaining + m/2) / m * m
		}
		if r.reset == never {
			r.reset = 400 * day
		}
		out = append(out, r)
	}
	if p.o.ShowUnused > 0 && rand.New(rand.NewPCG(p.o.Seed, uint64(p.number))).IntN(100) < p.o.ShowUnused {
		for i := range out {
			out[i].remaining, out[i].reset = out[i].limit.gauge.holds(at), 0
		}
	}
	return out
}

// has says whether a limit of that name judges the model.
func (e *engine) has(name, model string) bool {
	return slices.ContainsFunc(e.limits, func(l *limit) bool { return l.name == name && l.judges(model) })
}

// own says whether the model has a limit of that name for itself.
func (e *engine) own(name, model string) bool {
	return slices.ContainsFunc(e.limits, func(l *limit) bool { return l.name == name && l.model == model && model != "" })
}

// combined is the tokens field that CombinedTokens adds: sums, and the earlier
// reset.
func combined(rs []reading) (r reading, ok bool) {
	sides := 0
	for _, x := range rs {
		switch x.limit.name {
		case "tokens":
			return reading{}, false
		case "input", "output":
			if sides == 0 || x.reset < r.reset {
				r.reset = x.reset
			}
			r.value, r.remaining, sides = r.value+x.value, r.remaining+x.remaining, sides+1
		}
	}
	r.limit = &limit{name: "tokens"}
	return r, sides == 2
}

// kind is the limit's name in headers.
func (l *limit) kind() string {
	switch l.name {
	case "requests", "requests per day":
		return "requests"
	case "input", "output":
		return l.name + "-tokens"
	}
	return l.name
}

// rateHeaders writes readings taken at an instant in the dialect.
func (p *Provider) rateHeaders(h http.Header, at int64, rs []reading) {
	if r, ok := combined(rs); ok && p.o.CombinedTokens {
		rs = append(slices.Clone(rs), r)
	}
	for _, r := range rs {
		kind := r.limit.kind()
		limit, remaining := strconv.FormatInt(r.value, 10), strconv.FormatInt(r.remaining, 10)
		reset := p.reset(at, r)
		var names [3]string // limit, remaining, reset
		switch p.o.Dialect {
		case OpenAIHeaders, AzureHeaders:
			names = [3]string{"X-Ratelimit-Limit-" + kind, "X-Ratelimit-Remaining-" + kind, "X-Ratelimit-Reset-" + kind}
			if p.o.Dialect == AzureHeaders && reset != "" {
				h.Set("X-Ratelimit-Renewalperiod-"+kind, strconv.FormatInt(max(r.limit.window, minute)/int64(time.Second), 10))
			}
		case AnthropicHeaders:
			name := "Anthropic-Ratelimit-" + kind
			names = [3]string{name + "-Limit", name + "-Remaining", name + "-Reset"}
		case MistralHeaders:
			if kind == "requests" {
				kind = "req"
			}
			names = [3]string{"X-Ratelimit-Limit-" + kind + "-Minute", "X-Ratelimit-Remaining-" + kind + "-Minute", "X-Ratelimit-Reset-" + kind + "-Minute"}
		default:
			return
		}
		h.Set(names[0], limit)
		h.Set(names[1], remaining)
		if reset != "" {
			h.Set(names[2], reset)
		}
	}
}

// reset writes the time to full of a reading, "" where none is sent.
func (p *Provider) reset(at int64, r reading) string {
	d := time.Duration(r.reset)
	switch p.o.Reset {
	case ResetSeconds:
		return strconv.FormatInt(int64(d/time.Second), 10)
	case ResetMillis:
		return strconv.FormatInt(int64(d/time.Millisecond), 10)
	case ResetFraction:
		return fmt.Sprintf("%d.%03d", d/time.Second, d%time.Second/time.Millisecond)
	case NoReset:
		return ""
	}
	switch p.o.Dialect {
	case AnthropicHeaders:
		return p.start.Add(time.Duration(at + r.reset)).UTC().Format(time.RFC3339)
	case MistralHeaders:
		return ""
	}
	return d.Truncate(time.Millisecond).String()
}

// retryAfter writes a wait that begins at an instant.
func (p *Provider) retryAfter(h http.Header, style RetryAfter, at int64, wait time.Duration) {
	if wait <= 0 {
		return
	}
	seconds := strconv.FormatInt(int64(ceil(wait, time.Second)/time.Second), 10)
	ms := ceil(wait, time.Millisecond)
	switch style {
	case RetryAfterSeconds:
		h.Set("Retry-After", seconds)
	case RetryAfterMillis:
		h.Set("Retry-After", seconds)
		h.Set("Retry-After-Ms", strconv.FormatInt(int64(ms/time.Millisecond), 10))
	case RetryAfterDate:
		until := p.start.Add(time.Duration(at) + wait).UTC()
		h.Set("Retry-After", until.Add(time.Second-1).Truncate(time.Second).Format(http.TimeFormat))
	case RetryAfterFraction:
		h.Set("Retry-After", fmt.Sprintf("%d.%03d", ms/time.Second, ms%time.Second/time.Millisecond))
	}
}

// ceil rounds d up to a multiple of unit; what would overflow is left alone.
func ceil(d, unit time.Duration) time.Duration {
	if r := d % unit; r > 0 && d+unit-r > 0 {
		return d + unit - r
	}
	return d
}
