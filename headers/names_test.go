package headers

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestNamesAreReadInAnyCase(t *testing.T) {
	for _, e := range loadEntries(t) {
		want := Parse(e.header(), e.options())
		raw := map[string][]string{}
		for k, v := range e.header() {
			switch k {
			case "Date", "Age", "Content-Type", "Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms":
				raw[k] = v // net/http canonicalises these; they are looked up, not searched
			default:
				raw[strings.ToUpper(k)] = v
			}
		}
		if got := Parse(raw, e.options()); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v in upper case, else %+v", e.ID, got, want)
		}
	}
}

func TestANameIsTakenApart(t *testing.T) {
	for _, c := range []struct {
		key  string
		want string // verb, dimension, window; empty: refused
	}{
		{"X-Ratelimit-Limit", "limit requests"},
		{"X-Ratelimit-Limit-Requests", "limit requests"},
		{"X-Rate-Limit-Reset-Tokens", "reset tokens"},
		{"Ratelimit-Remaining-Minute", "remaining requests 1m0s"},
		{"X-Ratelimit-Limit-Req-10-Second", "limit requests 10s"},
		{"X-Ratelimit-Limit-5-Minute", "limit requests 5m0s"},
		{"X-Ratelimit-Reset-Tokens-Per-Minute", "reset tokens 1m0s"},
		{"X-Ratelimit-Reset-Per-Day", "reset requests 24h0m0s"},
		{"X-Ratelimit-Limit-Tokens-Month", "limit tokens month"},
		{"X-Ratelimit-Limit-Tokens_usage_based", "limit tokens_usage_based"},
		{"X-Ratelimit-Limit-Tokens-Cache-Adjusted-Prompt", "limit cache_adjusted_prompt_tokens"},
		{"X-Ratelimit-Model_per_key-Limit-Requests", "limit model_per_key_requests"},
		{"X-Ratelimit-Requests-Limit", "limit requests"},
		{"X-Ratelimit-Ocr-Pages-Query-Cost", ""},
		{"Ratelimitbysize-Query-Cost", ""},
		{"Ratelimitbysize-Limit", "limit tokens"},
		{"X-Ratelimitbysize-Remaining-Minute", "remaining tokens 1m0s"},
		{"Anthropic-Ratelimit-Input-Tokens-Remaining", "remaining input_tokens 1m0s"},
		{"X-Trial-Endpoint-Call-Remaining", "remaining requests 1m0s"},
		{"X-Endpoint-Monthly-Call-Limit", "limit requests month"},
		{"X-Ratelimit-Renewalperiod-Tokens", "period tokens"},
		{"X-Ratelimit-Type", ""},
		{"X-Ratelimit-Key", ""},
		{"X-Ratelimit-Used", ""},
		{"X-Ratelimit-Resource", ""},
		{"X-Ratelimit-Timeremaining", ""},
		{"X-Ratelimit-Over-Limit", ""},
		{"X-Ratelimit-Abusepenalty-Active", ""},
		{"X-Ratelimit-Burst", ""},
		{"X-Ratelimit-Limits-Tokens", ""},
		{"X-Ratelimit-Query-Cost", ""},
		{"Ratelimit-Reset-Date", ""},
		{"X-Ratelimit-Reset-After", ""},
		{"X-Trial-Endpoint-Call-Limit-Tokens", ""},
		{"X-Ratelimit-", ""},
		{"Llm_provider-X-Ratelimit-Limit-Tokens", ""},
		{"X-Ratelimit-Limit-" + strings.Repeat("a", longestName), ""},
	} {
		n, ok := parseName(c.key)
		got := ""
		if ok {
			name := dimensionNames[n.dim]
			switch n.dim {
			case unsuffixed:
				name = "requests"
			case other:
				name = n.label
			}
			got = map[verb]string{verbLimit: "limit ", verbRemaining: "remaining ", verbReset: "reset ", verbPeriod: "period "}[n.verb] + name
			if n.window != 0 {
				got += " " + n.window.String()
			}
			if n.calendar != "" {
				got += " " + n.calendar
			}
		}
		if got != c.want {
			t.Errorf("%s is %q, want %q", c.key, got, c.want)
		}
	}
	if len(common) != 18 {
		t.Errorf("%d names are prepared, want 18", len(common))
	}
}

func TestAValueThatNamesNoDimensionCountsRequests(t *testing.T) {
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

func TestAMonthHasNoLength(t *testing.T) {
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

func TestASubscriptionStatesItsEnd(t *testing.T) {
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

// Each family names its source.
func TestEachFamilyNamesItsSource(t *testing.T) {
	for _, f := range families {
		if f.source == "" || f.prefix != strings.ToLower(f.prefix) {
			t.Errorf("%+v", f)
		}
	}
}

func TestMistralCountsTokensBySize(t *testing.T) {
	i := allowed("ratelimitbysize-limit: 500000", "ratelimitbysize-remaining: 467982", "ratelimitbysize-reset: 33", "ratelimitbysize-query-cost: 32018",
		"x-ratelimitbysize-limit-minute: 500000", "x-ratelimitbysize-remaining-minute: 467982",
		"x-ratelimitbysize-limit-month: 1000000000", "x-ratelimitbysize-remaining-month: 999967982")
	if i.Tokens.Limit != known(500000) || i.Tokens.Remaining != known(467982) || i.Requests.known() ||
		i.Unread != 0 {
		t.Errorf("%+v", i)
	}
	if n := len(i.Windows); n == 0 || i.Windows[n-1].Name != "month" || i.Windows[n-1].Limit != known(1000000000) {
		t.Errorf("%+v", i.Windows)
	}
}
