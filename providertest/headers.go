package providertest

import (
	"fmt"
	"net/http"
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
func (p *Provider) readingsLocked(at int64) []reading {
	var out []reading
	for _, l := range p.engine.limits {
		if l.window == day && p.engine.o.RPM > 0 {
			continue
		}
		r := reading{limit: l, value: l.value, remaining: max(0, l.gauge.level(at)), reset: l.gauge.full(at)}
		if m := p.o.RoundRemaining; m > 1 && l.name != "requests" && l.name != "requests per day" {
			r.remaining = (r.remaining + m/2) / m * m
		}
		out = append(out, r)
	}
	return out
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
	for _, r := range rs {
		kind := r.limit.kind()
		switch p.o.Dialect {
		case OpenAIHeaders:
			reset := time.Duration(r.reset).Truncate(time.Millisecond)
			h.Set("X-Ratelimit-Limit-"+kind, strconv.FormatInt(r.value, 10))
			h.Set("X-Ratelimit-Remaining-"+kind, strconv.FormatInt(r.remaining, 10))
			h.Set("X-Ratelimit-Reset-"+kind, reset.String())
		case AnthropicHeaders:
			reset := p.start.Add(time.Duration(at + r.reset)).UTC()
			h.Set("Anthropic-Ratelimit-"+kind+"-Limit", strconv.FormatInt(r.value, 10))
			h.Set("Anthropic-Ratelimit-"+kind+"-Remaining", strconv.FormatInt(r.remaining, 10))
			h.Set("Anthropic-Ratelimit-"+kind+"-Reset", reset.Format(time.RFC3339))
		}
	}
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
