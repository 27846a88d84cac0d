package headers

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestAValueThatIsNoCountIsUnknown(t *testing.T) {
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

// The sentinels: what a server sends where it has nothing to say.
func TestASentinelIsUnknown(t *testing.T) {
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

// A remaining count is at least minus the limit. Below that it is no balance.
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

// A value describes one answer. Two answers have nothing in common.
func TestNothingIsKeptFromOneAnswerToTheNext(t *testing.T) {
	if i := allowed("x-ratelimit-remaining-requests: 0"); !i.Requests.exhausted() {
		t.Errorf("%+v", i)
	}
	if i := allowed("Content-Type: text/plain"); !i.empty() {
		t.Errorf("%+v", i)
	}
}

func TestTheHeaderIsNotAltered(t *testing.T) {
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
func TestAStreamsLimitsAreKnownBeforeItsBody(t *testing.T) {
	i := allowed("Content-Type: text/event-stream", "x-ratelimit-remaining-tokens: 0")
	if i.Tokens != (Quota{Remaining: known(0)}) || i.Applies {
		t.Errorf("%+v", i)
	}
}

// A header that names more quotas than there can be describes none, in any
// order of the map.
func TestTheWorkIsBounded(t *testing.T) {
	h := header("x-ratelimit-remaining-tokens: 5", "Retry-After: 5", `RateLimit: `+strings.Repeat(`"a";r=1, `, 400)+`"b";r=1`)
	for i := range 5000 {
		h[fmt.Sprintf("X-Ratelimit-Limit-D%d", i)] = []string{"5"}
		h[fmt.Sprintf("X-Ratelimit-D%d-Query-Cost", i)] = []string{"5"}
	}
	i := Parse(h, Options{Status: 429, Now: noon})
	if i.Tokens.known() || len(i.Other)+len(i.Policies) != 0 || i.NotBefore != after(5*time.Second) {
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
