package budget

import (
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/usage"
)

// The ledger takes and settles for a call as recorded traffic shows of its endpoint,
// model and day.
func TestTheChargeThatRunsIsTheRecordedOne(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	const chars, tokens, output, most = 4000, 900, 700, 2000
	for _, row := range []struct {
		name, provider string
		r              estimate.Request
		cached         int64
		day            time.Time
		arrive, end    limit.Cost
	}{
		{"chat of OpenAI: characters / 4", "openai", estimate.Request{Kind: "chat", Model: "gpt-4o"}, 0, now,
			limit.Cost{Input: 1001}, limit.Cost{Input: 1001}},
		{"with the cap until March 2025", "openai", estimate.Request{Kind: "chat", Model: "gpt-4o"}, 0, now.AddDate(-2, 0, 0),
			limit.Cost{Input: 1001, Output: most}, limit.Cost{Input: 1001, Output: most}},
		{"Responses: real input and 19", "openai", estimate.Request{Kind: "responses", Model: "gpt-4o"}, 0, now,
			limit.Cost{Input: 919}, limit.Cost{Input: 919}},
		{"and 217 with function tools", "openai", estimate.Request{Kind: "responses", Model: "gpt-4o", Traits: estimate.WithTools}, 0, now,
			limit.Cost{Input: 1117}, limit.Cost{Input: 1117}},
		{"gpt-5: the reservation, and output beyond", "openai", estimate.Request{Kind: "responses", Model: "gpt-5.4-mini"}, 0, now,
			limit.Cost{Input: 1063, Output: 512 - 163}, limit.Cost{Input: 1063, Output: 537}},
		{"gpt-5 streams with tools", "openai", estimate.Request{Kind: "responses", Model: "gpt-5-nano", Stream: true, Traits: estimate.WithTools}, 0, now,
			limit.Cost{Input: 1349, Output: 512 - 449}, limit.Cost{Input: 1349, Output: 251}},
		{"Anthropic: output at the answer, cache reads free", "anthropic", estimate.Request{Kind: "messages", Model: "claude", Stream: true}, 600, now,
			limit.Cost{Input: 900, Output: 512}, limit.Cost{Input: 300, Output: 700}},
		{"its streams reserved until June 2025", "anthropic", estimate.Request{Kind: "messages", Model: "claude", Stream: true, OutputCap: 9000}, 0, time.Date(2025, 5, 1, 0, 0, 0, 0, time.UTC),
			limit.Cost{Input: 900, Output: 4000}, limit.Cost{Input: 900, Output: 700}},
		{"Azure: characters / 4 without the cap", "azure", estimate.Request{Kind: "chat", Model: "gpt-4o"}, 0, now,
			limit.Cost{Input: 1001}, limit.Cost{Input: 1001}},
		{"its grok: and 24", "azure", estimate.Request{Kind: "chat", Model: "grok-3"}, 0, now,
			limit.Cost{Input: 1025}, limit.Cost{Input: 1025}},
		{"a flat number", "azure", estimate.Request{Kind: "chat", Model: "Kimi-K2"}, 0, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
			limit.Cost{Input: 16}, limit.Cost{Input: 16}},
		{"Mistral: the total less what was cached", "mistral", estimate.Request{Kind: "chat", Model: "m"}, 600, now,
			limit.Cost{Input: 900, Output: 512}, limit.Cost{Input: 300, Output: 700}},
		{"xAI: the total", "xai", estimate.Request{Kind: "chat", Model: "grok"}, 600, now,
			limit.Cost{Input: 900, Output: 512}, limit.Cost{Input: 900, Output: 700}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, _ := profile.ByName(row.provider)
			s := &Scope{profile: &p, records: p.AsRecorded()}
			r := row.r
			r.Understood, r.Input, r.Quarters, r.Chars, r.Choices = true, tokens, chars/4, chars, 1
			if r.OutputCap == 0 {
				r.OutputCap = most
			}
			price := new(Prices).Price(r, s.Rule(row.day, &r))
			if in, out := price.input, price.output; in != row.arrive.Input || out != row.arrive.Output {
				t.Errorf("takes %d and %d on arrival, want %d and %d", in, out, row.arrive.Input, row.arrive.Output)
			}
			n := func(n int64) usage.Count { return usage.Count{N: n, OK: true} }
			a := usage.Result{Found: true, Complete: true}
			a.Input, a.Output, a.CachedInput = n(tokens), n(output), n(row.cached)
			if in, out := price.Actual(&a, price.rule); in != row.end.Input || out != row.end.Output {
				t.Errorf("settles %d and %d, want %d and %d", in, out, row.end.Input, row.end.Output)
			}
		})
	}
}
