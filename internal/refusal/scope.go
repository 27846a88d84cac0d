package refusal

import "strings"

// What a refusal speaks of, [Verdict.Scope].
const (
	ScopeModel   = "model"
	ScopeAccount = "account" // or an organization, a project, a workspace, a key: all its models
)

// A speaker is a word that says what a refusal speaks of.
type speaker struct{ word, scope, source string }

// scopeMembers are values of a member "scope", "limit_scope" or "rate_limit_scope".
var scopeMembers = [...]speaker{
	{"account", ScopeAccount, "gateways"},
	{"organization", ScopeAccount, "gateways"},
	{"organisation", ScopeAccount, "gateways"},
	{"org", ScopeAccount, "gateways"},
	{"project", ScopeAccount, "gateways"},
	{"workspace", ScopeAccount, "gateways"},
	{"team", ScopeAccount, "gateways"},
	{"tenant", ScopeAccount, "gateways"},
	{"user", ScopeAccount, "gateways"},
	{"key", ScopeAccount, "gateways"},
	{"api_key", ScopeAccount, "gateways"},
	{"global", ScopeAccount, "gateways"},
	{"model", ScopeModel, "gateways"},
	{"deployment", ScopeModel, "gateways"},
}

// scopeCodes are parts of codes and types, in lower case, narrow before wide.
var scopeCodes = [...]speaker{
	{"model", ScopeModel, "Volcengine Ark error codes: ModelAccountTpmRateLimitExceeded"},
	{"deployment", ScopeModel, "Azure OpenAI quotas and limits"},
	{"account", ScopeAccount, "Volcengine Ark error codes: AccountRateLimitExceeded"},
	{"organization", ScopeAccount, "gateways"},
	{"organisation", ScopeAccount, "gateways"},
	{"org_", ScopeAccount, "gateways"},
	{"project", ScopeAccount, "gateways"},
	{"workspace", ScopeAccount, "gateways"},
}

// scopeLevels are words of a message that leave no doubt, in lower case.
var scopeLevels = [...]speaker{
	{"all models", ScopeAccount, "gateways"},
	{"all of your models", ScopeAccount, "gateways"},
	{"any model", ScopeAccount, "gateways"},
	{"every model", ScopeAccount, "gateways"},
	{"across models", ScopeAccount, "gateways"},
	{"account-level", ScopeAccount, "gateways"},
	{"account level", ScopeAccount, "gateways"},
	{"account-wide", ScopeAccount, "gateways"},
	{"organization-level", ScopeAccount, "gateways"},
	{"organization level", ScopeAccount, "gateways"},
	{"organization-wide", ScopeAccount, "gateways"},
	{"organisation-level", ScopeAccount, "gateways"},
	{"organisation level", ScopeAccount, "gateways"},
	{"project-level", ScopeAccount, "gateways"},
	{"project level", ScopeAccount, "gateways"},
	{"workspace-level", ScopeAccount, "gateways"},
	{"workspace level", ScopeAccount, "gateways"},
	{"rate limit reached for ", ScopeModel, "OpenAI rate limits guide: for a model in an organization"},
	{"model", ScopeModel, "many name the model that refused"},
	{"deployment", ScopeModel, "Azure OpenAI quotas and limits"},
	{"模型", ScopeModel, "Zhipu and Alibaba error texts"},
}

// scopeHints are words that mention the account. Some providers use them where the
// limit is one of the model: "would exceed your organization's rate limit".
var scopeHints = [...]speaker{
	{"account", ScopeAccount, "Anthropic errors; gateways"},
	{"organization", ScopeAccount, "Anthropic rate limits"},
	{"organisation", ScopeAccount, "gateways"},
	{"project", ScopeAccount, "Gemini API rate limits"},
	{"workspace", ScopeAccount, "Anthropic rate limits"},
	{"账户", ScopeAccount, "Zhipu error codes: 1302"},
	{"账号", ScopeAccount, "Zhipu error codes"},
}

// scope is what a refusal for the rate speaks of, "" if it does not say. sure is set
// unless only a mention says so.
func scope(f *fields, s sentenceText) (scope string, sure bool) {
	for _, m := range scopeMembers {
		if strings.EqualFold(f.scope, m.word) {
			return m.scope, true
		}
	}
	for _, id := range f.quotaIDs { // Google: "GenerateRequestsPerMinutePerProjectPerModel"
		switch {
		case strings.Contains(id, "PerModel") || strings.Contains(id, "PerBaseModel"):
			return ScopeModel, true
		case strings.Contains(id, "PerProject"):
			return ScopeAccount, true
		}
	}
	for _, code := range append([]string{f.code, f.typ, f.status, f.reason}, f.codes...) {
		code = strings.ToLower(code)
		if !strings.Contains(code, "limit") && !strings.Contains(code, "rate") && !strings.Contains(code, "throttl") {
			continue
		}
		for _, c := range scopeCodes {
			if strings.Contains(code, c.word) {
				return c.scope, true
			}
		}
	}
	if len(s) > shortMessage {
		return "", false // longer ones hold the caller's words
	}
	for _, l := range scopeLevels {
		if strings.Contains(string(s), l.word) {
			return l.scope, true
		}
	}
	for _, h := range scopeHints {
		if strings.Contains(string(s), h.word) {
			return h.scope, false
		}
	}
	return "", false
}
