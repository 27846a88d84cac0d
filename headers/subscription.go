package headers

import (
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// readSubscription reads the fields of two subscriptions, which give a share
// used and an end, and no counts:
//
//	anthropic-ratelimit-unified-5h-reset: 1785931200       ; or RFC 3339
//	x-codex-primary-reset-after-seconds: 14845
//	x-codex-primary-reset-at: 1790601527
//	x-codex-primary-window-minutes: 300
//
// The share is not a count and is not read. anthropic-ratelimit-unified-reset
// repeats one of the windows and is not read either. The result is as in field.
func (r *reader) readSubscription(k kind, key string, lines []string) bool {
	if len(key) > longestName {
		return true
	}
	key = strings.ToLower(key)
	if k == kindUnified {
		span, ok := strings.CutSuffix(strings.TrimPrefix(key, "anthropic-ratelimit-unified-"), "-reset")
		if !ok {
			return true
		}
		window, rest, ok := retryafter.Spelled(span)
		if !ok || rest != "" || window <= 0 || window == retryafter.Max || strings.ContainsAny(span, ".") {
			return true
		}
		v := latest(lines, &r.clock)
		if v.OK {
			v.how = asInstant
			r.find(slot{dim: other, label: "unified_" + span, window: window}).later(v)
		}
		return v.OK
	}
	rest := strings.TrimPrefix(key, "x-codex-")
	if window, ok := strings.CutSuffix(rest, "-window-minutes"); ok {
		c := lowest(lines)
		if c.N > 0 && c.N <= int64(retryafter.Max/time.Minute) {
			s := r.codex(window)
			s.period = max(s.period, time.Duration(c.N)*time.Minute)
		}
		return c.OK
	}
	relative := true
	window, ok := strings.CutSuffix(rest, "-reset-after-seconds")
	if !ok {
		relative = false
		if window, ok = strings.CutSuffix(rest, "-reset-at"); !ok {
			return true
		}
	}
	v := latest(lines, &r.clock)
	if !v.OK || relative != (v.how == asNumber) {
		return false
	}
	// Both say the same; the relative one needs no clock, so it wins.
	if s := r.codex(window); relative || !s.Reset.OK {
		s.Reset, s.spelled = v.Span, asInstant
	}
	return true
}

// codex returns the slot of one of the two windows.
func (r *reader) codex(window string) *slot {
	return r.find(slot{dim: other, label: strings.ReplaceAll(window, "-", "_")})
}
