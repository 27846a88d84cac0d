package transport_test

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// requestsWith are the fields of a limit on requests, and that reset.
func requestsWith(reset func(r *rule) string) func(*rule, http.Header, time.Duration) {
	return func(r *rule, h http.Header, wait time.Duration) {
		h.Set("X-Ratelimit-Limit-Requests", strconv.Itoa(int(r.n)))
		h.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(int(max(0, r.level))))
		h.Set("X-Ratelimit-Reset-Requests", reset(r))
		if wait > 0 {
			retryAfter(h, wait)
		}
	}
}

// Some resets say nothing of the window. Twenty calls that are alone, and then a load of
// three times the limit: the limit of a minute stays one.
func TestAResetThatSaysNothingMakesNoShorterWindow(t *testing.T) {
	always := func(reset string) func(*rule) string { return func(*rule) string { return reset } }
	for _, c := range []struct {
		name  string
		o     transport.Options
		n     float64
		reset func(*rule) string
	}{
		{"always 1s", transport.Options{}, 10, always("1s")},
		{"always 0s", transport.Options{}, 20, always("0s")},
		{"always 500ms", transport.Options{}, 20, always("500ms")},
		{"always 500ms, the limit configured", transport.Options{RPM: 20}, 20, always("500ms")},
		{"always 500ms, a higher limit configured", transport.Options{RPM: 40}, 20, always("500ms")},
		{"until the next one", transport.Options{}, 20, func(r *rule) string {
			return time.Duration(max(0, 1-r.level) / r.n * float64(r.window)).Truncate(time.Millisecond).String()
		}},
		{"a second of Unix time", transport.Options{}, 20, func(r *rule) string { return strconv.FormatInt(time.Now().Add(r.full()).Unix(), 10) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rule{n: c.n, window: time.Minute, holds: c.n, quiet: 20, status: 429, body: `{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}`, fields: requestsWith(c.reset)}
				lost := r.drive(t, c.o, time.Duration(float64(time.Minute)/c.n/3))
				if fits := int(10*c.n) + r.quiet; lost > 0 || r.early > 0 || r.refused > 2 || r.served < fits*85/100 {
					t.Errorf("of %d calls that fit %d were served; %d were refused, %d lost, %d left within a named wait", fits, r.served, r.refused, lost, r.early)
				}
			})
		})
	}
}

// Fields that name no window are of the window that was configured for their number.
func TestAConfiguredWindowIsThatOfItsFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rule{n: 100, window: 10 * time.Second, holds: 100, status: 429, body: `{"error":{"message":"Rate limit reached"}}`,
			fields: requestsWith(func(r *rule) string { return r.full().Truncate(time.Millisecond).String() })}
		ten := limit.Limit{Unit: limit.Requests, Rate: limit.Rate{N: 100, Window: 10 * time.Second}}
		lost := r.drive(t, transport.Options{Limits: []limit.Limit{ten}}, 70*time.Millisecond)
		if lost > 0 || r.refused > 0 || r.served < 6000*95/100 {
			t.Errorf("of 6000 calls that fit %d were served; %d were refused, %d lost", r.served, r.refused, lost)
		}
	})
}
