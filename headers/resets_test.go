package headers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// Every spelling of a reset, at t = 2000-01-01.
func TestAResetIsReadInEverySpelling(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        Span
	}{
		{"timestamp", "2000-01-01T00:00:30Z", after(30 * time.Second)},
		{"timestamp with fraction", "2000-01-01T00:00:30.25Z", after(30250 * time.Millisecond)},
		{"timestamp with offset", "2000-01-01T02:00:30+02:00", after(30 * time.Second)},
		{"past timestamp", "1999-12-31T23:59:59Z", after(0)},
		{"far timestamp", "9999-12-31T23:59:59Z", after(retryafter.Max)},
		{"half a timestamp", "2000-01-01", Span{}},
		{"a year is seconds", "2026", after(2026 * time.Second)},
		{"date", "Sat, 01 Jan 2000 00:00:30 GMT", after(30 * time.Second)},
		{"minutes", "6m0s", after(6 * time.Minute)},
		{"hours and minutes", "1h30m", after(90 * time.Minute)},
		{"all", "1d2h3m4.5s", after(26*time.Hour + 3*time.Minute + 4500*time.Millisecond)},
		{"milliseconds", "547ms", after(547 * time.Millisecond)},
		{"microseconds", "30µs", after(30 * time.Microsecond)},
		{"part of a nanosecond", "0.1ns", after(1)},
		{"saturates", "999999999h", after(retryafter.Max)},
		{"saturates in sum", "53375d23h2000000h", Span{}},
		{"rising units", "1s1h", Span{}},
		{"unit twice", "1s1s", Span{}},
		{"no number", "s", Span{}},
		{"number at the end", "1m30", Span{}},
		{"minus", "-1s", Span{}},
		{"plus", "+1s", Span{}},
		{"space", "1m 30s", Span{}},
		{"word", "invalid", Span{}},
		{"None", "None", Span{}},
		{"empty", "", Span{}},
		{"ISO 8601", "PT1M30S", after(90 * time.Second)},
		{"ISO 8601 of months", "P1M", Span{}},
		{"time span", "00:01:30", after(90 * time.Second)},
		{"time span with days", "1.00:01:30.5", after(24*time.Hour + 90500*time.Millisecond)},
		{"small", "30", after(30 * time.Second)},
		{"small with fraction", "11.382867097854614", after(11382867098)},
		{"just below a thousand million", "999999999", after(53315199 * time.Second)},
		{"epoch of this clock", "946684830", after(30 * time.Second)},
		{"a length of ten years", "315360000", after(315360000 * time.Second)},
		{"epoch", "1000000000", after(53315200 * time.Second)},
		{"epoch fraction", "1000000000.5", after(53315200500 * time.Millisecond)},
		{"epoch milliseconds", "1000000000000", after(53315200 * time.Second)},
		{"epoch beyond the scale", "99999999999", after(retryafter.Max)},
		{"epoch microseconds", "1000000000000000", after(53315200 * time.Second)},
		{"epoch nanoseconds", "1000000000000000000", after(53315200 * time.Second)},
		{"no epoch in any unit", "99999999999999", after(retryafter.Max)},
		{"negative", "-1", Span{}},
		{"exponent", "1e9", Span{}},
		{"leading zeros", "00000000000030", after(30 * time.Second)},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"x-ratelimit-reset", "x-ratelimit-reset-tokens", "ratelimit-reset", "anthropic-ratelimit-tokens-reset"} {
				i := Parse(header(name+": "+c.value), Options{Status: 429, Now: y2k})
				got := i.Tokens.Reset
				if !strings.Contains(name, "tokens") {
					got = i.Requests.Reset
				}
				if got != c.want {
					t.Errorf("%s: %s is %+v, want %+v", name, c.value, got, c.want)
				}
				if unread := !c.want.OK && c.value != ""; (i.Unread == 1) != unread {
					t.Errorf("%s: %s: %d values unread", name, c.value, i.Unread)
				}
			}
		})
	}

	t.Run("today", func(t *testing.T) {
		now := time.Unix(1790000000-45, 0)
		for value, want := range map[string]Span{"30": after(30 * time.Second), "1790000000": after(45 * time.Second), "1790000000000": after(45 * time.Second)} {
			i := Parse(header("x-ratelimit-reset: "+value), Options{Now: now})
			if i.Requests.Reset != want {
				t.Errorf("%s is %+v, want %+v", value, i.Requests.Reset, want)
			}
		}
	})
	t.Run("an instant is measured against Date", func(t *testing.T) {
		i := Parse(header("Date: Sat, 01 Jan 2000 00:00:00 GMT", "anthropic-ratelimit-requests-reset: 2000-01-01T00:00:30Z"), Options{Now: noon})
		if i.Requests.Reset != after(30*time.Second) {
			t.Errorf("%+v", i.Requests)
		}
	})
}

// A reset without a unit beside a period: the unit that fits a linear refill.
// The test runs the rule both ways over every fill of the bucket.
func TestTheUnitOfAResetIsTheOneThatFits(t *testing.T) {
	for used := int64(1); used <= 1000; used++ {
		seconds := float64(used) / 1000 * 60
		for _, c := range []struct {
			value string
			want  time.Duration
		}{
			{fmt.Sprintf("%.3f", seconds), time.Duration(seconds * 1e9)},
			{fmt.Sprintf("%.0f", seconds*1000), time.Duration(seconds * 1e9)},
		} {
			i := allowed("x-ratelimit-limit-tokens: 1000", fmt.Sprintf("x-ratelimit-remaining-tokens: %d", 1000-used),
				"x-ratelimit-renewalperiod-tokens: 60", "x-ratelimit-reset-tokens: "+c.value)
			if d := i.Tokens.Reset.D - c.want; d < -time.Millisecond || d > time.Millisecond || i.Tokens.Window != time.Minute {
				t.Fatalf("%d of 1000 used, reset %s: %+v, want %v", used, c.value, i.Tokens, c.want)
			}
		}
	}
	t.Run("a unit is a unit", func(t *testing.T) {
		i := allowed("x-ratelimit-limit-tokens: 1000", "x-ratelimit-remaining-tokens: 999",
			"x-ratelimit-renewalperiod-tokens: 60", "x-ratelimit-reset-tokens: 500s")
		if i.Tokens.Reset != after(500*time.Second) {
			t.Errorf("%+v", i.Tokens)
		}
	})
}

func TestAWindowIsNamedOnlyWhereTheResetFitsIt(t *testing.T) {
	for _, c := range []struct {
		limit, used int64
		reset       time.Duration
		want        time.Duration
	}{
		{10000, 1, 6 * time.Millisecond, time.Minute},
		{10000, 1, 8640 * time.Millisecond, day},
		{10000, 13, 111535 * time.Millisecond, 0}, // refill in between: 112.32 s when full before
		{200000, 7, 2 * time.Millisecond, time.Minute},
		{50000, 1, time.Millisecond, time.Minute},
		{200000, 4, time.Millisecond, 0},             // one digit of several units
		{1000000000, 1, time.Millisecond, 0},         // cannot be told from anything
		{10, 5, 30 * time.Second, time.Minute},       // exact
		{10, 10, 154 * time.Second, 0},               // no window that exists
		{10, 0, time.Second, 0},                      // full, yet a reset
		{10, -3, time.Second, 0},                     // nonsense
		{0, 0, time.Second, 0},                       // no division by zero
		{999999999999999, 999999999999999, day, day}, // no overflow
	} {
		q := Quota{Limit: known(c.limit), Remaining: known(c.limit - c.used), Reset: after(c.reset)}
		if got := infer("tokens", q); got != c.want {
			t.Errorf("%d of %d, reset %v: window %v, want %v", c.used, c.limit, c.reset, got, c.want)
		}
		if got := infer("something_else", q); got != 0 {
			t.Errorf("a window of %v was inferred for an unknown dimension", got)
		}
	}
}

// The window of a project's requests is that of its bucket where the arithmetic
// gives one, and else unknown: no field states it.
func TestAProjectsShareHasTheWindowOfItsReset(t *testing.T) {
	for _, dim := range []string{"project-requests", "project-tokens", "input-images"} {
		i := allowed("x-ratelimit-limit-"+dim+": 10000", "x-ratelimit-remaining-"+dim+": 9999", "x-ratelimit-reset-"+dim+": 6ms")
		if len(i.Other) != 1 || i.Other[0].Inferred != time.Minute {
			t.Errorf("%s: %+v", dim, i.Other)
		}
		i = allowed("x-ratelimit-limit-"+dim+": 10000", "x-ratelimit-remaining-"+dim+": 10000", "x-ratelimit-reset-"+dim+": 0s")
		if len(i.Other) != 1 || i.Other[0].Inferred != 0 || i.Other[0].Window != 0 {
			t.Errorf("%s: %+v", dim, i.Other)
		}
	}
}
