package headers

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

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

// FuzzDuplicates: two lines of one field mean the same in either order, and leave
// no more, and no earlier, than each of them alone.
func FuzzDuplicates(f *testing.F) {
	names := []string{
		"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining", "Ratelimit-Limit",
		"Ratelimit", "Ratelimit-Policy", "Anthropic-Ratelimit-Tokens-Reset", "Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms",
		"X-Ratelimit-Timeremaining", "X-Should-Retry", "X-Ratelimit-Renewalperiod-Tokens", "X-Codex-Primary-Reset-At", "Ratelimitbysize-Remaining",
	}
	for i := range names {
		f.Add(uint8(i), "900", "3")
		f.Add(uint8(i), "-1", "1789819260")
		f.Add(uint8(i), `"a";r=5;t=9`, `"a";q=5;w=9`)
		f.Add(uint8(i), "6m0s", "Sat, 19 Sep 2026 12:00:05 GMT")
	}
	f.Fuzz(func(t *testing.T, which uint8, one, two string) {
		name := names[int(which)%len(names)]
		read := func(lines ...string) Info { return Parse(http.Header{name: lines}, Options{Status: 429, Now: noon}) }
		both, again := read(one, two), read(two, one)
		if strings.HasPrefix(name, "Ratelimit") && !strings.Contains(name, "-Limit") {
			both.Policies, again.Policies = nil, nil // a list in the order of the lines
		}
		if !reflect.DeepEqual(both, again) {
			t.Errorf("%s: %q, %q is %+v; in the other order %+v", name, one, two, both, again)
		}
		for _, alone := range []Info{read(one), read(two)} {
			if alone.NotBefore.D > both.NotBefore.D {
				t.Errorf("%s: %q, %q: nothing before %v, and before %v with one line", name, one, two, both.NotBefore.D, alone.NotBefore.D)
			}
			a, b := alone.Requests, both.Requests
			if a.Limit == b.Limit && a.Remaining.OK && a.Remaining.N >= 0 && (!b.Remaining.OK || b.Remaining.N > a.Remaining.N) {
				t.Errorf("%s: %q, %q: %+v, and %+v with one line", name, one, two, b, a)
			}
		}
	})
}
