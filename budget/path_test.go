package budget

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
)

func units(n int64) headers.Count { return headers.Count{N: n, OK: true} }

// hearing is a call of a model whose answer says something.
func hearing(t *testing.T, b *Budget, host, model string, i headers.Info) *Path {
	t.Helper()
	p := b.Path(Address{Host: host, Model: model})
	p.Adopt(time.Now(), profile.ForHost(host))
	var c Call
	c.Open(p, silent{}, &estimate.Request{Model: model, Input: 10, OutputCap: 10, Choices: 1}, 1)
	if err := c.Admit(context.Background(), time.Now()); err != nil {
		t.Fatal(err)
	}
	c.Leave(time.Now())
	c.Hear(time.Now(), &i, false)
	c.End(Unknown)
	return b.Path(Address{Host: host, Model: model})
}

// limits are those of the scopes of a path, one "scope: limit" each.
func limitsOf(b *Budget, p *Path) (all []string) {
	for _, s := range b.Snapshot().Scopes {
		if slices.Contains(p.names, s.Scope) {
			for _, l := range s.Limits {
				all = append(all, s.Scope+": "+l.Name+" "+l.Rate.String())
			}
		}
	}
	return all
}

// What a field says belongs to the scope that it was said of: the limit that is
// configured, if it is of the same size; else what recorded traffic of the provider
// shows; else the model.
func TestAReadingBelongsToTheScopeThatItSpeaksOf(t *testing.T) {
	minute := func(limit, left int64) headers.Quota {
		return headers.Quota{Limit: units(limit), Remaining: units(left), Window: time.Minute}
	}
	for _, row := range []struct {
		name, host string
		configured []limit.Limit
		say        headers.Info
		want       string
	}{
		{"the model's", "api.openai.com", nil, headers.Info{Tokens: minute(30_000, 29_000)},
			"api.openai.com/m: tokens per minute 30000/1m0s"},
		{"the configured one's", "api.openai.com", perMinute()[:1], headers.Info{Tokens: minute(60_000, 59_000)},
			"api.openai.com: tokens per minute 60000/1m0s"},
		{"beside a configured one", "api.openai.com", perMinute()[:1], headers.Info{Tokens: minute(30_000, 29_000)},
			"api.openai.com: tokens per minute 60000/1m0s, api.openai.com/m: tokens per minute 30000/1m0s"},
		{"the account's, by its law", "openrouter.ai", nil, headers.Info{Requests: headers.Quota{Limit: units(50), Remaining: units(49), Window: 24 * time.Hour}},
			"openrouter.ai: requests per day 50/24h0m0s"},
		{"models of one limit", "api.mistral.ai", nil, headers.Info{Tokens: minute(500_000, 499_000)},
			"api.mistral.ai/same tokens per minute 500000: tokens per minute 475000/1m0s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBudget(t, Options{Limits: row.configured, Burst: time.Minute})
				p := hearing(t, b, row.host, "m", row.say)
				if got := strings.Join(limitsOf(b, p), ", "); got != row.want {
					t.Errorf("got  %s\nwant %s", got, row.want)
				}
			})
		})
	}
}

// Two models that name the same limit share it, and one that names another does
// not: at Mistral. When a model is moved to another limit, it leaves the first.
func TestModelsThatNameTheSameLimitShareIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(t, Options{})
		say := func(model string, n int64) *Path {
			return hearing(t, b, "api.mistral.ai", model, headers.Info{Tokens: headers.Quota{Limit: units(n), Remaining: units(n - 100), Window: time.Minute}})
		}
		one, two, other := say("one", 500_000), say("two", 500_000), say("other", 50_000)
		if one.names[1] != two.names[1] || one.names[1] == other.names[1] || len(one.names) != 3 {
			t.Errorf("paths %v, %v, %v", one.names, two.names, other.names)
		}
		if moved := say("two", 50_000); moved.names[1] != other.names[1] || len(moved.names) != 3 {
			t.Errorf("moved to %v", moved.names)
		}
	})
}

// Limits of models: each model that fits has its own, or all share one; what is
// configured for the account binds them together.
func TestLimitsOfModels(t *testing.T) {
	tokens := func(n int64) []limit.Limit {
		return []limit.Limit{{Name: tpm, Unit: limit.Tokens, Rate: limit.PerMinute(n)}}
	}
	b := newBudget(t, Options{
		Limits: tokens(100_000),
		Models: []Model{
			{Names: []string{"mini*"}, Limits: tokens(9_000)},
			{Names: []string{"big", "*-big"}, Limits: tokens(30_000), Shared: true, MaxInFlight: 3},
		},
	})
	for model, want := range map[string]string{
		"mini-1": "api.test, api.test/mini-1",
		"big":    "api.test, api.test/shared big, api.test/big",
		"x-big":  "api.test, api.test/shared big, api.test/x-big",
		"other":  "api.test, api.test/other",
		"minimi": "api.test, api.test/minimi",
	} {
		if got := strings.Join(b.Path(Address{Host: "api.test", Model: model}).Scopes(), ", "); got != want {
			t.Errorf("%s: %s", model, got)
		}
	}
	p := hearing(t, b, "api.test", "x-big", headers.Info{})
	if got := strings.Join(limitsOf(b, p), ", "); got != "api.test: tokens per minute 100000/1m0s, api.test/shared big: tokens per minute 30000/1m0s" {
		t.Error(got)
	}
	for _, s := range b.Snapshot().Scopes {
		if s.Scope == "api.test/shared big" && s.MaxInFlight != 3 {
			t.Errorf("%d places", s.MaxInFlight)
		}
	}
	for want, m := range map[string]Model{
		"Models[0].Names is empty":    {},
		"no pattern":                  {Names: []string{"a?"}},
		"MaxInFlight is -1":           {Names: []string{"a"}, MaxInFlight: -1},
		"Models[0]: limit: Limits[0]": {Names: []string{"a"}, Limits: tokens(-1)},
	} {
		if _, err := New(Options{Models: []Model{m}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v", want, err)
		}
	}
}

// A pattern with stars against every split of a name, tried one by one.
func FuzzGlob(f *testing.F) {
	for _, s := range []string{"gpt-4o*|gpt-4o-mini", "*|", "a*b*c|aXbYc", "**|x", "*a*|bab", "ab|ab"} {
		pattern, name, _ := strings.Cut(s, "|")
		f.Add(pattern, name)
	}
	var slow func(p, n string) bool
	slow = func(p, n string) bool {
		switch {
		case p == "":
			return n == ""
		case p[0] == '*':
			return slow(p[1:], n) || n != "" && slow(p, n[1:])
		}
		return n != "" && n[0] == p[0] && slow(p[1:], n[1:])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 12 || len(name) > 12 {
			return
		}
		if got, want := glob(pattern, name), slow(pattern, name); got != want {
			t.Errorf("%q for %q: %v", pattern, name, got)
		}
	})
}
