package meter

import (
	"strings"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// Three things that go wrong, and a run where nothing does.
func TestHintsNameTheFault(t *testing.T) {
	budget := func(change func(*Budget)) []Budget {
		b := Budget{Series: Series{Name: "openai"}, Scopes: []Scope{{Budget: "openai", Limits: []Limit{{Name: "tpm", N: 300_000, Wanted: 300_000, Window: time.Minute}}}}}
		b.Settled, b.Reported = 100, 100
		change(&b)
		return []Budget{b}
	}
	tenants := func(heavy, waiting int64) []Series {
		a, b := Series{Name: "heavy", Waiting: waiting}, Series{Name: "light", Waiting: 2}
		a.Charged.Input, b.Charged.Input, a.Queued, b.Queued = heavy, 100, 1, 1
		return []Series{a, b, {Name: Rest}}
	}
	cut := func(b *Budget) { b.Scopes[0].Limits[0].N, b.Attempts[RateLimited] = 190_000, 5 }
	for _, c := range []struct {
		name    string
		budgets []Budget
		tenants []Series
		want    []string
	}{
		{"nothing", budget(func(*Budget) {}), tenants(100, 3), nil},
		{"nothing, refused now and then", budget(func(b *Budget) { b.Attempts[RateLimited] = 5 }), nil, nil},
		{"another process", budget(cut), nil, []string{"openai: tpm is 190,000 now, and 300,000 was configured. After 5 refusals (429) that our own use does not explain"}},
		{"a wrong profile", budget(func(b *Budget) { cut(b); b.Doubted, b.Rule = 1, [2]string{"actual", "estimate"} }), nil,
			[]string{`openai: calls seem to be charged by the rule "estimate", and not by "actual"`, "openai: tpm is 190,000 now, and 300,000 was configured. After 5 refusals (429) it was cut; the charge rule"}},
		{"a header that states less", budget(func(b *Budget) { b.Scopes[0].Limits[0].N = 1000 }), nil, []string{"openai: tpm is 1,000 now, and 300,000 was configured. An answer's header"}},
		{"a learned limit", budget(func(b *Budget) { b.Scopes[0].Limits[0].Wanted = 0 }), nil, nil},
		{"a store that is away", budget(func(b *Budget) { b.Scopes[0].Degraded = "the store is away, a third is kept to" }), nil, []string{"openai is degraded: the store is away, a third is kept to."}},
		{"no usage", budget(func(b *Budget) { b.Reported = 3 }), nil, []string{"openai: only 3 of 100 answers"}},
		{"a profile that charges too much", budget(func(b *Budget) {
			b.Charged, b.Used, b.Waiting = Tokens{Input: 9000, Output: 400_000}, Tokens{Input: 9000, Output: 40_000}, 12
		}), nil, []string{"openai: the ledger keeps 8.3 tokens for each token that answers report, and 12 calls wait. If the provider does not charge so"}},
		{"one that the provider does refuse", budget(func(b *Budget) {
			b.Charged, b.Used, b.Waiting, b.Attempts[RateLimited] = Tokens{Output: 400_000}, Tokens{Output: 40_000}, 12, 1
		}), nil, nil},
		{"one that nobody waits for", budget(func(b *Budget) { b.Charged, b.Used = Tokens{Output: 400_000}, Tokens{Output: 40_000} }), nil, nil},
		{"a heavy tenant", nil, tenants(900, 50), []string{`The tenant "heavy" has 90 % of the tokens and 50 of the 52 calls that wait. The others wait behind it`}},
		{"a heavy tenant that the Transport knows", budget(func(b *Budget) { b.Scopes = append(b.Scopes, Scope{Name: "@heavy"}) }), tenants(900, 50),
			[]string{`The tenant "heavy" has 90 % of the tokens and 50 of the 52 calls that wait. Tenants share by weight`}},
		{"a heavy tenant that nobody waits behind", nil, tenants(900, 5), nil},
		{"one tenant", nil, tenants(900, 50)[:1], nil},
	} {
		got := hints(c.budgets, c.tenants)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", c.name, got)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", c.name, got[i], c.want[i])
			}
		}
	}
}

// Of limits with one name in two scopes the one is named that takes the longest.
func TestScopeThatHoldsUpIsNamed(t *testing.T) {
	at := time.Now()
	tpm := func(credit int64) []Limit {
		return []Limit{{Name: "tpm", Unit: "tokens", N: 60_000, Window: time.Minute, Capacity: 10_000, Credit: credit, Waiting: 900}}
	}
	scopes := []Scope{{Budget: "b"}, {Budget: "b", Name: "account", Limits: tpm(8000)}, {Budget: "b", Name: "account/model", Limits: tpm(100)}}
	name, of, wait := slowest(limit.Cost{Requests: 1, Input: 900}, 0, at, scopes)
	if name != "tpm" || of != "account/model" || wait != 800*time.Millisecond {
		t.Errorf("%s of %s in %v", name, of, wait)
	}
	b := Budget{Series: Series{Name: "b", Waiting: 1}, Scopes: scopes}
	want := "1 call waits. The next goes in about 800 ms: tpm of account/model has 100 of 10,000 tokens and earns 1,000 a second."
	if got := why(at, []Budget{b}, []Waiter{{Budget: "b", For: name, Of: of, Expected: wait}}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	scopes[2].Pause = &Pause{Until: at.Add(5 * time.Second), By: "the provider", Why: "it named a wait of 5s"}
	if name, _, wait := slowest(limit.Cost{Input: 900}, 0, at, scopes); name != "the end of the pause" || wait != 5*time.Second {
		t.Errorf("%s in %v", name, wait)
	}
}
