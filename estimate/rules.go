package estimate

import "strings"

// rules are the charge rules that are known, by the host that a request goes to:
// the longest suffix that fits.
var rules = []struct {
	host string
	rule Rule
}{
	{"api.openai.com", Rule{
		Charge: ChargeEstimate, PromptByChars: true, ImageTokens: 765, RefusedCount: true,
		Source: "x-ratelimit-remaining-tokens of recorded responses; OpenAI rate limits guide", AsOf: "2026-10",
	}},
	{"openai.azure.com", azure},
	{"cognitiveservices.azure.com", azure},
	{"services.ai.azure.com", azure},
	{"api.anthropic.com", Rule{
		Charge: ChargeActual, CachedFree: true,
		Source: "Anthropic rate limits page", AsOf: "2026-10",
	}},
	{"generativelanguage.googleapis.com", Rule{
		Charge: ChargeSettle, RefusedCount: true,
		Source: "Gemini rate limits page", AsOf: "2026-10",
	}},
	{"amazonaws.com", Rule{
		Charge: ChargeSettle, ReserveCap: true, CachedFree: true,
		Source: "Amazon Bedrock quotas: token burndown", AsOf: "2026-10",
	}},
	{"api.groq.com", Rule{
		Charge: ChargeSettle, CachedFree: true,
		Source: "Groq rate limits page", AsOf: "2026-10",
	}},
	{"api.mistral.ai", Rule{
		Charge: ChargeSettle, CachedFree: true,
		Source: "x-ratelimit-tokens-query-cost of recorded responses", AsOf: "2026-10",
	}},
	{"api.cerebras.ai", Rule{
		Charge: ChargeSettle, ReserveCap: true,
		Source: "Cerebras rate limits page", AsOf: "2026-10",
	}},
}

// azure counts the characters of the prompt and max_tokens, for every one of
// best_of (Microsoft, "Manage Azure OpenAI quota").
var azure = Rule{
	Charge: ChargeEstimate, PromptByChars: true, ReserveCap: true, RefusedCount: true,
	Source: `Microsoft "Manage Azure OpenAI quota"`, AsOf: "2026-10",
}

// RuleFor returns the charge rule of the provider at host (with or without a
// port) for a model. For a host that is in no table known is false, and the rule
// is the careful one: the cap is reserved and corrected by the usage that comes
// back. A Rule set by hand is always as good.
func RuleFor(host, model string) (rule Rule, known bool) {
	host = strings.ToLower(host)
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	fallback := Rule{Charge: ChargeSettle, ReserveCap: true}
	best := ""
	for _, row := range rules {
		whole := host == row.host || strings.HasSuffix(host, "."+row.host)
		if whole && len(row.host) > len(best) {
			best, rule = row.host, row.rule
		}
	}
	if best == "amazonaws.com" {
		if !strings.HasPrefix(host, "bedrock") {
			return fallback, false
		}
		if burnsFive(family(model)) {
			rule.OutputFactor = 5
		}
	}
	if best == "" {
		return fallback, false
	}
	return rule, true
}

// burnsFive reports whether a model's output costs five tokens of the quota each:
// Claude 3.7 and later (Amazon Bedrock quotas: token burndown).
func burnsFive(model string) bool {
	if !strings.HasPrefix(model, "claude") {
		return false
	}
	for _, old := range [...]string{"claude-instant", "claude-v2", "claude-2", "claude-3-5", "claude-3-opus", "claude-3-sonnet", "claude-3-haiku"} {
		if strings.HasPrefix(model, old) {
			return false
		}
	}
	return true
}
