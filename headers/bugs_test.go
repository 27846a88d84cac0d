package headers

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

var (
	noon = time.Date(2026, 9, 19, 12, 0, 0, 0, time.UTC)
	y2k  = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// header reads "Name: value" lines.
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ":")
		h.Add(name, value)
	}
	return h
}

func known(n int64) Count          { return Count{n, true} }
func after(d time.Duration) Span   { return Span{d, true} }
func refused(lines ...string) Info { return Parse(header(lines...), Options{Status: 429, Now: noon}) }
func allowed(lines ...string) Info { return Parse(header(lines...), Options{Status: 200, Now: noon}) }

// The forms themselves are tested in internal/retryafter; here, that each of
// them arrives in Info, and that what is refused is unknown and not zero.
func TestB024ToB029_RetryAfter(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        Span
	}{
		{"B024 IMF-fixdate", "Sat, 19 Sep 2026 12:00:05 GMT", after(5 * time.Second)},
		{"B024 RFC 850", "Saturday, 19-Sep-26 12:00:05 GMT", after(5 * time.Second)},
		{"B024 asctime", "Sat Sep 19 12:00:05 2026", after(5 * time.Second)},
		{"B024 past", "Fri, 31 Dec 1999 23:59:59 GMT", after(0)},
		{"B025 seconds", "2", after(2 * time.Second)},
		{"B026 fraction", "1.5", after(1500 * time.Millisecond)},
		{"B027 plus", "+3", Span{}},
		{"B027 unit", "3s", Span{}},
		{"B027 exponent", "1e3", Span{}},
		{"B027 space", " 3 ", after(3 * time.Second)},
		{"B028 huge", "9223372036854775807", after(retryafter.Max)},
		{"B029 text", "retry after 33 seconds", Span{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := refused("Retry-After: " + c.value)
			if i.RetryAfter != c.want || i.NotBefore != c.want || i.Applies != c.want.OK || i.ResetWait() != c.want {
				t.Errorf("%+v, want %+v", i, c.want)
			}
			if (i.Unread == 1) == c.want.OK {
				t.Errorf("%d values unread", i.Unread)
			}
		})
	}
}

func TestRetryAfterApplies(t *testing.T) {
	stream := []string{"Retry-After: 4", "Content-Type: text/event-stream; charset=utf-8"}
	for _, c := range []struct {
		name    string
		status  int
		dialect string
		lines   []string
		want    bool
	}{
		{"429", 429, "", stream[:1], true},
		{"503", 503, "", stream[:1], true},
		{"529", 529, "", stream[:1], true},
		{"429 without a wait", 429, "", nil, false},
		{"429 with a wait that cannot be read", 429, "", []string{"Retry-After: soon"}, false},
		{"200", 200, "", stream, false},
		{"200 Anthropic", 200, "anthropic", stream, false},
		{"200 Azure, not a stream", 200, "azure-openai", stream[:1], false},
		{"200 Azure stream", 200, "azure-openai", stream, true},
		{"201", 201, "azure-openai", stream, false},
		{"400", 400, "", stream[:1], false},
		{"status unknown", 0, "", stream[:1], false},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := Parse(header(c.lines...), Options{Status: c.status, Dialect: dialects[c.dialect], Now: noon})
			if i.Applies != c.want {
				t.Errorf("applies is %v, want %v", i.Applies, c.want)
			}
		})
	}
}

func TestB030_ResetWait(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  Span
	}{
		{"the exhausted one", []string{
			"x-ratelimit-reset-requests: 2s", "x-ratelimit-remaining-requests: 7",
			"x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0"}, after(6 * time.Minute)},
		{"not the longer one that is not exhausted", []string{
			"x-ratelimit-reset-requests: 2s", "x-ratelimit-remaining-requests: 0",
			"x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 1"}, after(2 * time.Second)},
		{"the later of two", []string{
			"x-ratelimit-reset-requests: 2s", "x-ratelimit-remaining-requests: 0",
			"x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0"}, after(6 * time.Minute)},
		{"debt", []string{"x-ratelimit-reset-tokens: 64", "x-ratelimit-remaining-tokens: -27689"}, after(64 * time.Second)},
		{"Retry-After wins", []string{
			"Retry-After: 1", "x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0"}, after(time.Second)},
		{"the longest of several waits", []string{"Retry-After: 9", "Retry-After-Ms: 1500"}, after(9 * time.Second)},
		{"Retry-After rubbish does not win", []string{
			"Retry-After: soon", "x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0"}, after(6 * time.Minute)},
		{"input tokens", []string{
			"anthropic-ratelimit-input-tokens-remaining: 0", "anthropic-ratelimit-input-tokens-reset: 2026-09-19T12:00:23Z"}, after(23 * time.Second)},
		{"GitHub Models' own field", []string{"x-ratelimit-timeremaining: 55", "x-ratelimit-type: UserByMinute"}, after(55 * time.Second)},
		{"GitHub Models, the longer of both", []string{"x-ratelimit-timeremaining: 3600", "Retry-After: 5"}, after(time.Hour)},
		{"a further dimension", []string{
			"x-ratelimit-remaining-project-tokens: 0", "x-ratelimit-reset-project-tokens: 3s"}, after(3 * time.Second)},
		{"a further window", []string{
			"x-ratelimit-remaining-requests-minute: 0", "x-ratelimit-reset-requests-minute: 5",
			"x-ratelimit-remaining-requests-day: 0", "x-ratelimit-reset-requests-day: 5000"}, after(5000 * time.Second)},
		{"a policy", []string{`RateLimit: "burst";r=3;t=1, "daily";r=0;t=69076`}, after(69076 * time.Second)},
		{"resets alone", []string{"x-ratelimit-reset-requests: 1h", "x-ratelimit-reset-tokens: 60s"}, Span{}},
		{"a reset of zero with nothing left", []string{
			"x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 0", "x-ratelimit-limit-tokens: 5000"}, Span{}},
		{"nothing", nil, Span{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := refused(c.lines...)
			if got := i.ResetWait(); got != c.want {
				t.Errorf("wait %+v, want %+v; read %+v", got, c.want, i)
			}
		})
	}
}

// Every spelling of a reset, at t = 2000-01-01.
func TestB031B032B038_Resets(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        Span
	}{
		{"B031 timestamp", "2000-01-01T00:00:30Z", after(30 * time.Second)},
		{"B031 timestamp with fraction", "2000-01-01T00:00:30.25Z", after(30250 * time.Millisecond)},
		{"B031 timestamp with offset", "2000-01-01T02:00:30+02:00", after(30 * time.Second)},
		{"B031 past timestamp", "1999-12-31T23:59:59Z", after(0)},
		{"B031 far timestamp", "9999-12-31T23:59:59Z", after(retryafter.Max)},
		{"B031 half a timestamp", "2000-01-01", Span{}},
		{"B031 a year is seconds", "2026", after(2026 * time.Second)},
		{"B031 date", "Sat, 01 Jan 2000 00:00:30 GMT", after(30 * time.Second)},
		{"B032 minutes", "6m0s", after(6 * time.Minute)},
		{"B032 hours and minutes", "1h30m", after(90 * time.Minute)},
		{"B032 all", "1d2h3m4.5s", after(26*time.Hour + 3*time.Minute + 4500*time.Millisecond)},
		{"B032 milliseconds", "547ms", after(547 * time.Millisecond)},
		{"B032 microseconds", "30µs", after(30 * time.Microsecond)},
		{"B032 part of a nanosecond", "0.1ns", after(1)},
		{"B032 saturates", "999999999h", after(retryafter.Max)},
		{"B032 saturates in sum", "53375d23h2000000h", Span{}},
		{"B032 rising units", "1s1h", Span{}},
		{"B032 unit twice", "1s1s", Span{}},
		{"B032 no number", "s", Span{}},
		{"B032 number at the end", "1m30", Span{}},
		{"B032 minus", "-1s", Span{}},
		{"B032 plus", "+1s", Span{}},
		{"B032 space", "1m 30s", Span{}},
		{"B032 word", "invalid", Span{}},
		{"B032 None", "None", Span{}},
		{"B032 empty", "", Span{}},
		{"B038 small", "30", after(30 * time.Second)},
		{"B038 small with fraction", "11.382867097854614", after(11382867098)},
		{"B038 just below a thousand million", "999999999", after(53315199 * time.Second)},
		{"B038 epoch of this clock", "946684830", after(30 * time.Second)},
		{"B038 a length of ten years", "315360000", after(315360000 * time.Second)},
		{"B038 epoch", "1000000000", after(53315200 * time.Second)},
		{"B038 epoch fraction", "1000000000.5", after(53315200500 * time.Millisecond)},
		{"B038 epoch milliseconds", "1000000000000", after(53315200 * time.Second)},
		{"B038 epoch beyond the scale", "99999999999", after(retryafter.Max)},
		{"B038 epoch microseconds", "1000000000000000", after(53315200 * time.Second)},
		{"B038 epoch nanoseconds", "1000000000000000000", after(53315200 * time.Second)},
		{"B038 no epoch in any unit", "99999999999999", after(retryafter.Max)},
		{"B038 negative", "-1", Span{}},
		{"B038 exponent", "1e9", Span{}},
		{"B038 leading zeros", "00000000000030", after(30 * time.Second)},
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

	t.Run("B038 today", func(t *testing.T) {
		now := time.Unix(1790000000-45, 0)
		for value, want := range map[string]Span{"30": after(30 * time.Second), "1790000000": after(45 * time.Second), "1790000000000": after(45 * time.Second)} {
			i := Parse(header("x-ratelimit-reset: "+value), Options{Now: now})
			if i.Requests.Reset != want {
				t.Errorf("%s is %+v, want %+v", value, i.Requests.Reset, want)
			}
		}
	})
	t.Run("B031 an instant is measured against Date", func(t *testing.T) {
		i := Parse(header("Date: Sat, 01 Jan 2000 00:00:00 GMT", "anthropic-ratelimit-requests-reset: 2000-01-01T00:00:30Z"), Options{Now: noon})
		if i.Requests.Reset != after(30*time.Second) {
			t.Errorf("%+v", i.Requests)
		}
	})
}

func TestB033_BadValuesAreUnknown(t *testing.T) {
	for _, bad := range []string{
		"banana", "", " ", "None", "null", "NaN", "unlimited", "+5", "5.0", "1e3", "0x10", "1,000", "1_000", "5 requests",
		"9999999999999999", "9223372036854775807", "-9223372036854775808", "99999999999999999999", "--5", "-", "5-", `"5"`, "٥",
	} {
		for _, name := range []string{"x-ratelimit-remaining-tokens", "x-ratelimit-limit-tokens", "x-ratelimit-limit", "x-ratelimit-remaining", "ratelimit-limit", "x-ratelimit-limit-tokens-minute", "x-ratelimit-renewalperiod-tokens"} {
			if i := allowed(name + ": " + bad); !i.empty() {
				t.Errorf("%s: %s reads as %+v", name, bad, i)
			} else if want := min(1, len(strings.TrimSpace(bad))); i.Unread != want {
				t.Errorf("%s: %s: %d unread, want %d", name, bad, i.Unread, want)
			}
		}
	}
	t.Run("the rest is still read", func(t *testing.T) {
		i := allowed("x-ratelimit-remaining-tokens: banana", "x-ratelimit-limit-tokens: 100", "x-ratelimit-remaining-requests: 5")
		if i.Tokens != (Quota{Limit: known(100)}) || i.Requests != (Quota{Remaining: known(5)}) {
			t.Errorf("%+v", i)
		}
	})
}

func TestB034_HeaderIsNotAltered(t *testing.T) {
	for _, e := range loadEntries(t) {
		h := e.header()
		before := h.Clone()
		Parse(h, e.options())
		if !reflect.DeepEqual(h, before) {
			t.Errorf("%s: %v became %v", e.ID, before, h)
		}
	}
}

// Nothing but the header is needed, so a stream's limits are known before its
// body is.
func TestB035_StreamHeader(t *testing.T) {
	i := allowed("Content-Type: text/event-stream", "x-ratelimit-remaining-tokens: 0")
	if i.Tokens != (Quota{Remaining: known(0)}) || i.Applies {
		t.Errorf("%+v", i)
	}
}

// A value describes one answer. Two answers have nothing in common.
func TestB036_NothingIsKept(t *testing.T) {
	if i := allowed("x-ratelimit-remaining-requests: 0"); !i.Requests.exhausted() {
		t.Errorf("%+v", i)
	}
	if i := allowed("Content-Type: text/plain"); !i.empty() {
		t.Errorf("%+v", i)
	}
}

func TestB037_Unsuffixed(t *testing.T) {
	i := refused("Retry-After: 1", "x-ratelimit-remaining: 0", "x-ratelimit-burst: 10")
	if i.NotBefore != after(time.Second) || !i.Applies || i.Requests != (Quota{Remaining: known(0)}) ||
		i.Tokens.known() || i.Input.known() || i.Output.known() || len(i.Other)+len(i.Windows) != 0 {
		t.Errorf("%+v", i)
	}
	for _, dialect := range []string{"", "groq", "azure-openai", "api-football", "litellm-proxy"} {
		i := Parse(header("x-ratelimit-limit: 7", "ratelimit-remaining: 3", "x-ratelimit-reset: 9"), Options{Status: 200, Dialect: dialects[dialect], Now: noon})
		if i.Tokens.known() || i.Input.known() || i.Output.known() {
			t.Errorf("dialect %q: an unsuffixed value reached the tokens: %+v", dialect, i)
		}
	}
	t.Run("beside a suffixed one", func(t *testing.T) {
		i := allowed("x-ratelimit-limit: 10", "x-ratelimit-remaining: 4", "x-ratelimit-limit-requests: 100", "x-ratelimit-remaining-requests: 60")
		want := []Window{{Dimension: "requests", Quota: Quota{Limit: known(10), Remaining: known(4)}}}
		if i.Requests != (Quota{Limit: known(100), Remaining: known(60)}) || !reflect.DeepEqual(i.Windows, want) {
			t.Errorf("%+v", i)
		}
	})
	t.Run("said twice", func(t *testing.T) {
		i := allowed("x-ratelimit-limit: 10", "ratelimit-limit: 10", "x-ratelimit-limit-requests: 10", "ratelimit-reset: 5")
		if i.Requests != (Quota{Limit: known(10), Reset: after(5 * time.Second)}) || len(i.Windows) != 0 {
			t.Errorf("%+v", i)
		}
	})
	t.Run("two that differ", func(t *testing.T) {
		for range 20 {
			i := allowed("x-ratelimit-limit: 10", "x-ratelimit-remaining: 4", "ratelimit-limit: 1000", "ratelimit-remaining: 3")
			want := []Window{{Dimension: "requests", Quota: Quota{Limit: known(10), Remaining: known(4)}}}
			if i.Requests != (Quota{Limit: known(1000), Remaining: known(3)}) || !reflect.DeepEqual(i.Windows, want) {
				t.Fatalf("the one with less left is the main one, in any order of the map: %+v", i)
			}
		}
	})
	t.Run("in the other word order", func(t *testing.T) {
		for range 20 {
			i := allowed("x-ratelimit-requests-limit: 100", "x-ratelimit-limit-requests: 10")
			want := []Window{{Dimension: "requests", Quota: Quota{Limit: known(100)}}}
			if i.Requests != (Quota{Limit: known(10)}) || !reflect.DeepEqual(i.Windows, want) {
				t.Fatalf("%+v", i)
			}
		}
	})
}

func TestShouldRetry(t *testing.T) {
	for value, want := range map[string]Flag{"true": {true, true}, " FALSE ": {false, true}, "": {}, "1": {}, "yes": {}, "truee": {}} {
		if i := refused("x-should-retry: " + value); i.ShouldRetry != want {
			t.Errorf("%q is %+v, want %+v", value, i.ShouldRetry, want)
		}
	}
}

func TestCalendarWindows(t *testing.T) {
	i := allowed("x-ratelimit-limit-tokens-year: 9", "x-ratelimit-limit-tokens-month: 8", "x-ratelimit-limit-ocr-pages-month: 7", "x-ratelimit-limit-ocr-pages-minute: 1")
	want := []Window{
		{Dimension: "ocr_pages", Name: "month", Quota: Quota{Limit: known(7)}},
		{Dimension: "tokens", Name: "month", Quota: Quota{Limit: known(8)}},
		{Dimension: "tokens", Name: "year", Quota: Quota{Limit: known(9)}},
	}
	if i.Tokens.known() || !reflect.DeepEqual(i.Windows, want) || !reflect.DeepEqual(i.Other, []Named{{"ocr_pages", Quota{Limit: known(1), Window: time.Minute}}}) {
		t.Errorf("%+v", i)
	}
}

func TestSubscriptions(t *testing.T) {
	for range 20 {
		i := Parse(header(
			"anthropic-ratelimit-unified-5h-reset: 2026-09-19T13:00:00Z", "anthropic-ratelimit-unified-7d-reset: soon",
			"anthropic-ratelimit-unified-reset: 1789900000", "anthropic-ratelimit-unified-status: allowed",
			"x-codex-primary-reset-after-seconds: 60", "x-codex-primary-reset-at: 1789900000", "x-codex-primary-window-minutes: 300",
			"x-codex-secondary-reset-at: 1789819260", "x-codex-third-reset-after-seconds: 1789900000", "x-codex-credits: 5",
		), Options{Status: 200, Now: noon})
		want := []Named{
			{"primary", Quota{Reset: after(time.Minute), Window: 5 * time.Hour}},
			{"secondary", Quota{Reset: after(time.Minute)}},
			{"unified_5h", Quota{Reset: after(time.Hour), Window: 5 * time.Hour}},
		}
		if !reflect.DeepEqual(i.Other, want) || i.Unread != 2 {
			t.Fatalf("%+v, %d unread, want %+v", i.Other, i.Unread, want)
		}
	}
}
