package headers

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The sentinels: what a server sends where it has nothing to say.
func TestSentinels(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		lines  []string
		want   Quota
	}{
		{"debt keeps its sign", 429, []string{"limit: 500000", "remaining: -65038"}, Quota{Limit: known(500000), Remaining: known(-65038)}},
		{"debt without a limit, with a reset", 200, []string{"remaining: -27689", "reset: 64"}, Quota{Remaining: known(-27689), Reset: after(64 * time.Second)}},
		{"negative without anything", 200, []string{"remaining: -2"}, Quota{}},
		{"negative with a reset of zero", 200, []string{"remaining: -1", "reset: 0"}, Quota{}},
		{"limit -1", 200, []string{"limit: -1", "remaining: -1", "reset: 0"}, Quota{}},
		{"limit -1 with a reset ahead", 200, []string{"limit: -1", "remaining: -1", "reset: 60"}, Quota{}},
		{"limit -1 beside a remaining", 200, []string{"limit: -1", "remaining: 5"}, Quota{Remaining: known(5)}},
		{"remaining above the limit", 200, []string{"limit: 10", "remaining: 12"}, Quota{Limit: known(10), Remaining: known(10)}},
		{"placeholder of zeros", 200, []string{"limit: 0", "remaining: 0", "reset: 0.000"}, Quota{}},
		{"placeholder on an error of the server", 500, []string{"limit: 0", "remaining: 0"}, Quota{}},
		{"placeholder, status unknown", 0, []string{"limit: 0", "remaining: 0"}, Quota{}},
		{"not entitled", 429, []string{"limit: 0", "remaining: 0"}, Quota{Limit: known(0), Remaining: known(0)}},
		{"used up", 200, []string{"limit: 10", "remaining: 0"}, Quota{Limit: known(10), Remaining: known(0)}},
		{"a window alone", 200, []string{"renewalperiod: 60"}, Quota{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines []string
			for _, l := range c.lines {
				verb, value, _ := strings.Cut(l, ":")
				lines = append(lines, "x-ratelimit-"+verb+"-tokens:"+value)
			}
			i := Parse(header(lines...), Options{Status: c.status, Now: noon})
			if i.Tokens != c.want {
				t.Errorf("%q: %+v, want %+v", lines, i.Tokens, c.want)
			}
		})
	}
}

// A reset without a unit beside a period: the unit that fits a linear refill.
// The test runs the rule both ways over every fill of the bucket.
func TestUnitOfReset(t *testing.T) {
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

func TestInfer(t *testing.T) {
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

// Two gateways that each count send a field twice. The cautious value counts, in
// either order, as lines and joined into one, for every kind of field.
//
// Report: Kong/kong#14353
func TestOfDuplicateFieldsTheCautiousOneCounts(t *testing.T) {
	for _, c := range []struct {
		name      string
		one, two  string
		quota     func(Info) any
		want      any
		onlyLines bool
	}{
		{"X-Ratelimit-Remaining-Requests", "900", "3", func(i Info) any { return i.Requests.Remaining }, known(3), false},
		{"X-Ratelimit-Remaining-Tokens", "0", "150000", func(i Info) any { return i.Tokens.Remaining }, known(0), false},
		{"X-Ratelimit-Remaining", "7", "8", func(i Info) any { return i.Requests.Remaining }, known(7), false},
		{"Ratelimit-Remaining", "7", "8", func(i Info) any { return i.Requests.Remaining }, known(7), false},
		{"X-Ratelimit-Limit-Tokens", "1000", "60", func(i Info) any { return i.Tokens.Limit }, known(60), false},
		{"X-Ratelimit-Limit-Tokens", "-1", "60", func(i Info) any { return i.Tokens.Limit }, known(60), false},
		{"X-Ratelimit-Limit", "1000", "60", func(i Info) any { return i.Requests.Limit }, known(60), false},
		{"Ratelimit-Limit", "60", "1000", func(i Info) any { return i.Requests.Limit }, known(60), false},
		{"X-Ratelimit-Reset-Tokens", "2s", "6m0s", func(i Info) any { return i.Tokens.Reset }, after(6 * time.Minute), false},
		{"X-Ratelimit-Reset-Requests", "9", "1789819260", func(i Info) any { return i.Requests.Reset }, after(time.Minute), false},
		{"Anthropic-Ratelimit-Input-Tokens-Remaining", "12000", "4000", func(i Info) any { return i.Input.Remaining }, known(4000), false},
		{"Anthropic-Ratelimit-Output-Tokens-Reset", "2026-09-19T12:00:09Z", "2026-09-19T12:00:03Z", func(i Info) any { return i.Output.Reset }, after(9 * time.Second), false},
		{"X-Ratelimit-Remaining-Tokens-Minute", "5", "6", func(i Info) any { return i.Tokens.Remaining }, known(5), false},
		{"X-Ratelimit-Remaining-Project-Tokens", "5", "6", func(i Info) any { return i.Other[0].Remaining }, known(5), false},
		{"X-Trial-Endpoint-Call-Remaining", "5", "6", func(i Info) any { return i.Requests.Remaining }, known(5), false},
		{"Ratelimit", `"a";r=900;t=1`, `"a";r=3;t=20`, func(i Info) any { return i.Requests }, Quota{Remaining: known(3), Reset: after(20 * time.Second)}, false},
		{"Ratelimit", "limit=10, remaining=9, reset=1", "limit=10, remaining=2, reset=7", func(i Info) any { return i.Requests.Remaining }, known(2), true},
		{"Retry-After", "3", "9", func(i Info) any { return i.NotBefore }, after(9 * time.Second), false},
		{"Retry-After-Ms", "3000", "900", func(i Info) any { return i.NotBefore }, after(3 * time.Second), false},
		{"X-Ms-Retry-After-Ms", "900", "3000", func(i Info) any { return i.NotBefore }, after(3 * time.Second), false},
		{"X-Ratelimit-Timeremaining", "5", "7200", func(i Info) any { return i.NotBefore }, after(2 * time.Hour), true},
		{"X-Should-Retry", "true", "false", func(i Info) any { return i.ShouldRetry }, Flag{false, true}, true},
	} {
		for _, lines := range [][]string{{c.one, c.two}, {c.two, c.one}, {c.one + ", " + c.two}, {c.two + ", " + c.one}} {
			if len(lines) == 1 && c.onlyLines {
				continue
			}
			i := Parse(http.Header{c.name: lines}, Options{Status: 429, Now: noon})
			if got := c.quota(i); got != c.want {
				t.Errorf("%s %q: %+v, want %+v", c.name, lines, got, c.want)
			}
		}
	}
}

func TestALineThatCannotBeReadHidesNoOther(t *testing.T) {
	i := allowed("x-ratelimit-reset-tokens: req_0000", "x-ratelimit-reset-tokens: 2ms", "x-ratelimit-limit-tokens: ", "x-ratelimit-limit-tokens: 7")
	if i.Tokens != (Quota{Limit: known(7), Reset: after(2 * time.Millisecond)}) {
		t.Errorf("%+v", i.Tokens)
	}
	i = allowed("x-ratelimit-remaining-tokens: 9", "x-rate-limit-remaining-tokens: 7", "x-rate-limit-limit-tokens: 10")
	if i.Tokens != (Quota{Limit: known(10), Remaining: known(7)}) {
		t.Errorf("of two spellings the lower count counts: %+v", i.Tokens)
	}
	i = allowed("x-ratelimit-remaining-tokens: 9, banana")
	if i.Tokens.known() || i.Unread != 1 {
		t.Errorf("half a list is no list: %+v", i)
	}
}

// What is left is at least minus the limit. Below that it is no balance.
func TestADebtIsAtMostTheLimit(t *testing.T) {
	for value, want := range map[string]Count{
		"-2147483648": {}, "-200001": {}, "-999999999999999": {},
		"-200000": known(-200000), "-5": known(-5), "0": known(0), "200001": known(200000),
	} {
		for _, dim := range []string{"tokens", "requests", "project-tokens"} {
			for _, reset := range []string{"6m0s", "0", ""} {
				i := allowed("x-ratelimit-limit-"+dim+": 200000", "x-ratelimit-remaining-"+dim+": "+value, "x-ratelimit-reset-"+dim+": "+reset)
				q := i.Tokens
				switch dim {
				case "requests":
					q = i.Requests
				case "project-tokens":
					q = i.Other[0].Quota
				}
				if q.Remaining != want || q.Limit != known(200000) {
					t.Errorf("%s %s: %+v, want %+v", dim, value, q, want)
				}
			}
		}
	}
	if i := allowed(`RateLimit-Policy: "a";q=10;w=60`, `RateLimit: "a";r=-11;t=9`); i.Requests.Remaining.OK {
		t.Errorf("%+v", i)
	}
}

func TestNamesInAnyCase(t *testing.T) {
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

func TestNames(t *testing.T) {
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
		{"X-Ratelimit-Ocr-Pages-Query-Cost", "cost ocr_pages"},
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
			name := n.dimensionName()
			if n.dim == unsuffixed {
				name = "requests"
			}
			got = map[verb]string{verbLimit: "limit ", verbRemaining: "remaining ", verbReset: "reset ", verbPeriod: "period ", verbCost: "cost "}[n.verb] + name
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

func TestCachedAnswer(t *testing.T) {
	i := refused("Age: 30", "Retry-After: 5", "x-ratelimit-remaining-requests: 3", `RateLimit: "a";r=5`)
	if i.Requests.known() || len(i.Policies) != 0 || i.NotBefore != after(5*time.Second) {
		t.Errorf("a stored answer tells of another request: %+v", i)
	}
	if i := refused("Age: 0", "x-ratelimit-remaining-requests: 3"); !i.Requests.known() {
		t.Errorf("an age of zero is fresh: %+v", i)
	}
}

// A header that names more quotas than there can be describes none, whatever
// order the map gives.
func TestBounds(t *testing.T) {
	h := header("x-ratelimit-remaining-tokens: 5", "Retry-After: 5", `RateLimit: `+strings.Repeat(`"a";r=1, `, 400)+`"b";r=1`)
	for i := range 5000 {
		h[fmt.Sprintf("X-Ratelimit-Limit-D%d", i)] = []string{"5"}
		h[fmt.Sprintf("X-Ratelimit-D%d-Query-Cost", i)] = []string{"5"}
	}
	i := Parse(h, Options{Status: 429, Now: noon})
	if i.Tokens.known() || len(i.Other)+len(i.QueryCost)+len(i.Policies) != 0 || i.NotBefore != after(5*time.Second) {
		t.Errorf("%+v", i)
	}
	long := strings.Repeat("1", 1<<20)
	for _, name := range []string{"x-ratelimit-limit", "x-ratelimit-limit-tokens", "x-ratelimit-reset", "ratelimit", "ratelimit-policy", "retry-after"} {
		for _, value := range []string{long, long + ";w=1", strings.Repeat("1;w=1,", 1<<18), strings.Repeat("(", 1<<20), strings.Repeat(`";pk=:`, 1<<18)} {
			if i := refused(name + ": " + value); i.Requests.known() || len(i.Policies) != 0 {
				t.Errorf("%s of %d bytes: %+v", name, len(value), i)
			}
		}
	}
}

func TestIETF(t *testing.T) {
	t.Run("lines stand alone", func(t *testing.T) {
		i := allowed(`RateLimit-Policy: "a";q=`, `RateLimit-Policy: "b";q=10;w=60`, `RateLimit: "b";r=4;t=9`)
		want := []Policy{{Name: "b", Quota: Quota{Limit: known(10), Remaining: known(4), Reset: after(9 * time.Second), Window: time.Minute}}}
		if !reflect.DeepEqual(i.Policies, want) || i.Requests != want[0].Quota {
			t.Errorf("%+v", i)
		}
	})
	t.Run("two partitions are two quotas", func(t *testing.T) {
		i := allowed(`RateLimit-Policy: "a";q=10;w=60`, `RateLimit: "a";r=4;t=9;pk=:YQ==:, "a";r=2;t=7;pk=:b:`)
		if len(i.Policies) != 2 || i.Policies[0].Partition != "YQ==" || i.Policies[1].Partition != "b" ||
			i.Policies[1].Limit != known(10) || i.Requests.Remaining != known(2) {
			t.Errorf("%+v", i)
		}
	})
	t.Run("the least remaining binds", func(t *testing.T) {
		i := allowed(`RateLimit: "burst";r=8;t=1, "daily";r=3;t=69076`)
		if i.Requests != (Quota{Remaining: known(3), Reset: after(69076 * time.Second)}) {
			t.Errorf("%+v", i)
		}
	})
	t.Run("another unit feeds nothing", func(t *testing.T) {
		i := allowed(`RateLimit-Policy: "a";q=10;qu="concurrent-requests"`, `RateLimit: "a";r=4`, `RateLimit: "c";r=1;qu="content-bytes"`)
		if i.Requests.known() || len(i.Policies) != 2 || i.Policies[0].Unit != "concurrent-requests" {
			t.Errorf("%+v", i)
		}
	})
	t.Run("a name that is a token", func(t *testing.T) {
		if i := allowed(`RateLimit: default;r=50;t=30`); i.Requests.Remaining != known(50) {
			t.Errorf("%+v", i)
		}
	})
	t.Run("partition as a string, with colons and quotes about", func(t *testing.T) {
		i := allowed(`RateLimit-Policy: "a;pk=:x:";q=1;pk="y", "b\";pk=:z:";q=2; pk=:not base64!:`)
		if len(i.Policies) != 2 || i.Policies[0].Name != "a;pk=:x:" || i.Policies[0].Partition != "y" ||
			i.Policies[1].Name != `b";pk=:z:` || i.Policies[1].Partition != "not base64!" {
			t.Errorf("%+v", i)
		}
	})
	t.Run("negative, huge and fractional parameters", func(t *testing.T) {
		i := allowed(`RateLimit: "a";r=1;t=-5, "b";r=2;t=1.5, "c";r=1.5;t=5, "d";r=3;t=1800000000`, `RateLimit-Policy: "e";q=-1, "f";q=5;w=-3, "g";q=5;w=999999999999999`)
		want := []Policy{
			{Name: "f", Quota: Quota{Limit: known(5)}},
			{Name: "g", Quota: Quota{Limit: known(5)}},
			{Name: "a", Quota: Quota{Remaining: known(1)}},
			{Name: "b", Quota: Quota{Remaining: known(2), Reset: after(1500 * time.Millisecond)}},
			{Name: "d", Quota: Quota{Remaining: known(3), Reset: after(time.Unix(1800000000, 0).Sub(noon))}},
		}
		if !reflect.DeepEqual(i.Policies, want) {
			t.Errorf("%+v, want %+v", i.Policies, want)
		}
	})
	t.Run("a number with a comma is no list", func(t *testing.T) {
		for _, v := range []string{"1,000", "1,001", "1,000;w=60", "10, 10;w=1, 20", "10;w=x", "a, 10;w=1", "-5, 5;w=1"} {
			if i := allowed("RateLimit-Limit: " + v); !i.empty() || i.Unread != 1 {
				t.Errorf("%s: %+v", v, i)
			}
		}
	})
	t.Run("two hops", func(t *testing.T) {
		i := allowed("x-ratelimit-limit: 10, 10;w=1, 10, 10;w=1", "x-ratelimit-remaining: 9")
		if i.Requests != (Quota{Limit: known(10), Remaining: known(9), Window: time.Second}) || len(i.Windows) != 0 {
			t.Errorf("%+v", i)
		}
	})
	t.Run("the hour binds and is named too", func(t *testing.T) {
		i := allowed("X-RateLimit-Limit-Second: 5", "X-RateLimit-Remaining-Second: 4", "X-RateLimit-Limit-Hour: 100", "X-RateLimit-Remaining-Hour: 2",
			"RateLimit-Limit: 100", "RateLimit-Remaining: 2", "RateLimit-Reset: 900")
		want := Quota{Limit: known(100), Remaining: known(2), Reset: after(15 * time.Minute), Window: time.Hour}
		if i.Requests != want || len(i.Windows) != 1 || i.Windows[0].Window != time.Second {
			t.Errorf("%+v", i)
		}
	})
}

func TestBody(t *testing.T) {
	read := func(body string) Info {
		return Parse(nil, Options{Status: 429, Now: noon, Body: []byte(body)})
	}
	const retry = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}`
	for _, c := range []struct {
		name, body string
		want       Span
	}{
		{"alone", `{"error":{"details":[` + retry + `]}}`, after(1500 * time.Millisecond)},
		{"in an array", `[{"error":{"details":[{"x":1},` + retry + `]}}]`, after(1500 * time.Millisecond)},
		{"other details", `{"error":{"details":[{"@type":"x","retryDelay":"9s"},7,` + retry + `]}}`, after(1500 * time.Millisecond)},
		{"huge", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"99999999999999999999s"}]}}`, after(1<<62 - 1)},
		{"negative", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"-5s"}]}}`, Span{}},
		{"no unit", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"5"}]}}`, Span{}},
		{"a number", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":5}]}}`, Span{}},
		{"cut off", `{"error":{"details":[` + retry, Span{}},
		{"a text", `{"error":"slow down"}`, Span{}},
		{"an empty array", `[]`, Span{}},
		{"too long", `{"error":{"details":[` + retry + `]},"pad":"` + strings.Repeat("a", longestBody) + `"}`, Span{}},
		{"deep", strings.Repeat("[", longestBody), Span{}},
		{"empty", ``, Span{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if i := read(c.body); i.BodyWait != c.want || i.BodyHeaders != nil || i.ResetWait().OK {
				t.Errorf("%+v, want %+v", i, c.want)
			}
		})
	}
	t.Run("headers in every JSON form", func(t *testing.T) {
		i := read(`{"error":{"metadata":{"headers":{"X-RateLimit-Limit":50,"x-ratelimit-remaining":["0"],"Retry-After":"7","X-RateLimit-Reset":null,"Authorization":"secret"}}}}`)
		if i.BodyHeaders == nil || i.BodyHeaders.Requests != (Quota{Limit: known(50), Remaining: known(0)}) || i.BodyHeaders.NotBefore != after(7*time.Second) {
			t.Errorf("%+v", i.BodyHeaders)
		}
		if i.Requests.known() || i.NotBefore.OK {
			t.Errorf("what stands in the body is kept apart: %+v", i)
		}
	})
	t.Run("headers that say nothing", func(t *testing.T) {
		if i := read(`{"error":{"metadata":{"headers":{"X-RateLimit-Limit":{},"X":"1"}}}}`); i.BodyHeaders != nil {
			t.Errorf("%+v", i.BodyHeaders)
		}
	})
}

// dialects are the dialects of the recorded providers that have one.
var dialects = map[string]Dialect{
	// Groq, Rate Limits: requests fields are of a day, tokens fields of a minute.
	"groq": {Windows: []FieldWindow{{Dimension: "requests", Window: day}, {Dimension: "tokens", Window: time.Minute}}},
	// LiteLLM, Budgets and Rate Limits: key limits are per minute.
	"litellm-proxy": {Windows: []FieldWindow{
		{Dimension: "api_key_requests", Window: time.Minute},
		{Dimension: "api_key_tokens", Window: time.Minute},
		{Dimension: "model_per_key_requests", Window: time.Minute},
		{Dimension: "model_per_key_tokens", Window: time.Minute},
	}},
	// Azure OpenAI Responses API, recorded August 2026.
	"azure-openai": {StreamRefusal: true},
	// API-Football, Rate limits: the requests pair is per day, the plain pair per minute.
	"api-football": {Windows: []FieldWindow{{Dimension: "requests", Swapped: true, Window: day}, {Window: time.Minute}}},
}

// Each family names its source.
func TestFamiliesAreData(t *testing.T) {
	for _, f := range families {
		if f.source == "" || f.prefix != strings.ToLower(f.prefix) {
			t.Errorf("%+v", f)
		}
	}
}

// A line that breaks the grammar is read where it has one reading.
func TestALooseLineWithOneReadingIsRead(t *testing.T) {
	for line, want := range map[string][]Policy{
		`"fixed window";"api";q=500;w=300`:             {{Name: "api", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}},
		`fixed window;q=500;w=300`:                     {{Name: "fixed window", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}},
		`"api";Q=500;W=300`:                            {{Name: "api", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}},
		`"api"; q = 500; w = 300;`:                     {{Name: "api", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}},
		`"a";q="500";w="300", "b";q=9;w=60,`:           {{Name: "a", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}, {Name: "b", Quota: Quota{Limit: known(9), Window: time.Minute}}},
		`"fixed window";"api";q=500;w=300;pk=:YWJj:`:   {{Name: "api", Partition: "YWJj", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}},
		`"fixed window";"api";q=500;w=300;qu=requests`: {{Name: "api", Unit: "requests", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}},
		`"a";"b";q=500;q=600`:                          nil,
		`"a";"b";q=-5`:                                 nil,
		`"a";"b";w=300`:                                nil,
		`"a";"b";q=many`:                               nil,
		`"a";"b";q=5, nonsense`:                        nil,
		`"a`:                                           nil,
		`,`:                                            nil,
	} {
		i := allowed("RateLimit-Policy: " + line)
		if !reflect.DeepEqual(i.Policies, want) || (i.Unread == 0) != (want != nil) {
			t.Errorf("%s: %+v, want %+v", line, i, want)
		}
	}
	i := allowed(`RateLimit-Policy: "fixed window";"api";q=500;w=300`, `RateLimit: "api";r=499;t=299`)
	if want := (Quota{Limit: known(500), Remaining: known(499), Reset: after(299 * time.Second), Window: 5 * time.Minute}); i.Requests != want {
		t.Errorf("%+v, want %+v", i.Requests, want)
	}
	i = allowed(`RateLimit: api limit; r=4 ; t=9`)
	if want := (Quota{Remaining: known(4), Reset: after(9 * time.Second)}); i.Requests != want {
		t.Errorf("%+v, want %+v", i.Requests, want)
	}
}

func TestMistralCountsTokensBySize(t *testing.T) {
	i := allowed("ratelimitbysize-limit: 500000", "ratelimitbysize-remaining: 467982", "ratelimitbysize-reset: 33", "ratelimitbysize-query-cost: 32018",
		"x-ratelimitbysize-limit-minute: 500000", "x-ratelimitbysize-remaining-minute: 467982",
		"x-ratelimitbysize-limit-month: 1000000000", "x-ratelimitbysize-remaining-month: 999967982")
	if i.Tokens.Limit != known(500000) || i.Tokens.Remaining != known(467982) || i.Requests.known() ||
		!reflect.DeepEqual(i.QueryCost, []Cost{{"tokens", 32018}}) || i.Unread != 0 {
		t.Errorf("%+v", i)
	}
	if n := len(i.Windows); n == 0 || i.Windows[n-1].Name != "month" || i.Windows[n-1].Limit != known(1000000000) {
		t.Errorf("%+v", i.Windows)
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
