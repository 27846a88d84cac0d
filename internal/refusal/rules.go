package refusal

import (
	"net/http"
	"strings"
)

// A verdict is the part of [Verdict] that a rule decides.
type verdict struct {
	class              string
	retryable, account bool
}

var (
	waits      = verdict{RateLimit, true, false}
	busy       = verdict{Overload, true, false}
	failed     = verdict{Server, true, false}
	slow       = verdict{Timeout, true, false}
	noCredit   = verdict{Quota, false, true}  // the account
	allowance  = verdict{Quota, false, false} // this model or this day; other calls may pass
	tooLarge   = verdict{TooLarge, false, false}
	faulty     = verdict{Invalid, false, false}
	unfamiliar = verdict{"", false, false}
)

// A rule is one line of the table below. A rule matches when every condition
// it states does.
type rule struct {
	verdict
	word    string // the code, type or status word, compared without case
	starts  string // the message starts with it, lower case
	holds   string // the message contains it outside quotes, lower case
	atLeast int    // the status is in [atLeast, below), 0 = any
	below   int
	source  string
}

// rules in the order of their force: the first that matches decides. What
// cannot succeed comes before what can, since providers reuse the words of the
// second for the first.
var rules = [...]rule{
	// The account.
	{verdict: noCredit, word: "insufficient_quota", source: "OpenAI error codes guide"},
	{verdict: noCredit, word: "credit_balance_exhausted", source: "OpenAI error codes guide"},
	{verdict: noCredit, word: "organization_spend_limit_exceeded", source: "OpenAI error codes guide"},
	{verdict: noCredit, word: "project_spend_limit_exceeded", source: "OpenAI error codes guide"},
	{verdict: noCredit, word: "organization_usage_limit_exceeded", source: "OpenAI error codes guide"},
	{verdict: noCredit, word: "billing_hard_limit_reached", source: "OpenAI images API"},
	{verdict: noCredit, word: "billing_not_active", source: "OpenAI error codes guide"},
	{verdict: noCredit, word: "account_deactivated", source: "OpenAI error codes guide"},
	{verdict: noCredit, word: "enforced_spend_limit_reached", source: "Anthropic rate limits"},
	{verdict: noCredit, word: "billing_error", source: "Anthropic errors"},
	{verdict: noCredit, starts: "your credit balance is too low", source: "Anthropic errors"},
	{verdict: noCredit, word: "insufficient_balance", source: "DeepSeek error codes"},
	{verdict: noCredit, starts: "insufficient balance", source: "DeepSeek error codes"},
	{verdict: noCredit, word: "3036", atLeast: 429, below: 430, source: "Cloudflare Workers AI errors: daily free allocation"},
	{verdict: allowance, holds: "can only afford", atLeast: 402, below: 403, source: "OpenRouter errors: a smaller call may pass"},
	{verdict: noCredit, atLeast: 402, below: 403, source: "RFC 9110 section 15.5.3; DeepSeek, OpenRouter, Hugging Face"},

	// The allowance of a day or a month.
	{verdict: allowance, starts: "rate limit exceeded: free-models-per-day", source: "OpenRouter limits"},
	{verdict: allowance, starts: "you are using a trial key, which is limited to 1000 api calls / month", source: "Cohere rate limits"},
	{verdict: allowance, starts: "token quota is exceeded", atLeast: 403, below: 404, source: "Azure API Management token limit policy"},
	{verdict: allowance, starts: "quota exceeded", atLeast: 403, below: 404, source: "Azure API Management quota policy"},
	{verdict: allowance, word: "ServiceQuotaExceededException", atLeast: 400, below: 429, source: "Amazon Bedrock API reference"},

	// The size of the request.
	{verdict: tooLarge, word: "context_length_exceeded", source: "OpenAI error codes guide"},
	{verdict: tooLarge, word: "string_above_max_length", source: "OpenAI API reference"},
	{verdict: tooLarge, word: "request_too_large", source: "Anthropic errors"},
	{verdict: tooLarge, word: "tokens_limit_reached", source: "GitHub Models errors"},
	{verdict: tooLarge, starts: "prompt is too long", source: "Anthropic errors"},
	{verdict: tooLarge, starts: "the input token count", atLeast: 400, below: 401, source: "Gemini API troubleshooting"},
	{verdict: tooLarge, starts: "input is too long for requested model", atLeast: 400, below: 401, source: "Amazon Bedrock API reference"},
	{verdict: tooLarge, starts: "this model's maximum context length is", atLeast: 400, below: 401, source: "OpenAI API reference; vLLM"},
	{verdict: tooLarge, atLeast: 413, below: 414, source: "RFC 9110 section 15.5.14; Anthropic errors; Groq rate limits"},

	// Capacity shared with others.
	{verdict: busy, word: "overloaded_error", source: "Anthropic errors; Together errors"},
	{verdict: busy, word: "overloaded", source: "Hugging Face text generation inference"},
	{verdict: busy, word: "slow_down", source: "OpenAI error codes guide"},
	{verdict: busy, word: "server_is_overloaded", source: "OpenAI error codes guide"},
	{verdict: busy, word: "service_unavailable_error", source: "OpenAI error codes guide"},
	{verdict: busy, word: "engine_overloaded", source: "OpenAI error codes guide"},
	{verdict: busy, word: "queue_exceeded", source: "Cerebras error codes"},
	{verdict: busy, word: "UNAVAILABLE", source: "Gemini API troubleshooting"},
	{verdict: busy, word: "ServiceUnavailableException", source: "Amazon Bedrock API reference"},
	{verdict: busy, word: "ModelNotReadyException", source: "Amazon Bedrock API reference"},
	{verdict: busy, word: "3040", atLeast: 429, below: 430, source: "Cloudflare Workers AI errors: out of capacity"},
	{verdict: busy, word: "RESOURCE_EXHAUSTED", starts: "resource exhausted. please try again later", source: "Vertex AI error code 429: dynamic shared quota"},

	// The rate.
	{verdict: waits, word: "rate_limit_exceeded", source: "OpenAI error codes guide; Groq errors"},
	{verdict: waits, word: "rate_limit_error", source: "Anthropic errors"},
	{verdict: waits, word: "rate_limited", source: "Mistral errors"},
	{verdict: waits, word: "1300", atLeast: 429, below: 430, source: "Mistral errors"},
	{verdict: waits, word: "RateLimitReached", source: "GitHub Models and Azure AI errors"},
	{verdict: waits, word: "too_many_requests", source: "Azure OpenAI errors"},
	{verdict: waits, word: "TooManyRequests", source: "Azure OpenAI errors"},
	{verdict: waits, word: "token_quota_exceeded", source: "Cerebras error codes"},
	{verdict: waits, word: "request_quota_exceeded", source: "Cerebras error codes"},
	{verdict: waits, word: "too_many_tokens_error", source: "Cerebras error codes"},
	{verdict: waits, word: "too_many_requests_error", source: "Cerebras error codes"},
	{verdict: waits, word: "ThrottlingException", source: "Amazon Bedrock API reference"},
	{verdict: waits, word: "RESOURCE_EXHAUSTED", source: "Gemini API troubleshooting"},
	{verdict: waits, starts: "rate limit reached for ", atLeast: 429, below: 430, source: "OpenAI rate limits guide"},
	{verdict: waits, starts: "too many tokens, please wait before trying again", source: "Amazon Bedrock troubleshooting"},
	{verdict: waits, starts: "too many requests, please wait before trying again", source: "Amazon Bedrock troubleshooting"},
	{verdict: waits, starts: "you are using a trial key", atLeast: 429, below: 430, source: "Cohere rate limits"},
	{verdict: waits, starts: "too many requests", atLeast: 429, below: 430, source: "xAI errors"},

	// The provider. Not on a 4xx: there the status knows better.
	{verdict: failed, word: "server_error", atLeast: 500, below: 600, source: "OpenAI error codes guide"},
	{verdict: failed, word: "api_error", atLeast: 500, below: 600, source: "Anthropic errors"},
	{verdict: failed, word: "INTERNAL", atLeast: 500, below: 600, source: "Gemini API troubleshooting"},
	{verdict: failed, word: "InternalServerException", source: "Amazon Bedrock API reference"},
	{verdict: failed, word: "ModelStreamErrorException", source: "Amazon Bedrock API reference"},
	{verdict: slow, word: "timeout_error", source: "Anthropic errors"},
	{verdict: slow, word: "ModelTimeoutException", source: "Amazon Bedrock API reference"},
	{verdict: slow, word: "DEADLINE_EXCEEDED", source: "Gemini API troubleshooting"},

	// The request.
	{verdict: faulty, word: "invalid_request_error", atLeast: 400, below: 401, source: "OpenAI error codes guide; Anthropic errors"},
	{verdict: faulty, word: "authentication_error", atLeast: 400, below: 404, source: "Anthropic errors"},
	{verdict: faulty, word: "permission_error", atLeast: 400, below: 404, source: "Anthropic errors"},
	{verdict: faulty, word: "not_found_error", atLeast: 404, below: 405, source: "Anthropic errors"},
	{verdict: faulty, word: "invalid_api_key", atLeast: 400, below: 404, source: "OpenAI error codes guide"},
	{verdict: faulty, word: "model_not_found", atLeast: 400, below: 405, source: "OpenAI error codes guide"},
	{verdict: faulty, word: "content_filter", atLeast: 400, below: 401, source: "Azure OpenAI content filtering"},
	{verdict: faulty, word: "INVALID_ARGUMENT", atLeast: 400, below: 401, source: "Gemini API troubleshooting"},
	{verdict: faulty, word: "ValidationException", source: "Amazon Bedrock API reference"},
	{verdict: faulty, word: "AccessDeniedException", source: "Amazon Bedrock API reference"},
}

// inStream are the words that have a meaning of their own only where no status
// speaks: in an error event of a stream that began with 200.
var inStream = [...]rule{
	{verdict: failed, word: "server_error", source: "OpenAI Responses API streaming"},
	{verdict: failed, word: "api_error", source: "Anthropic streaming messages"},
	{verdict: failed, word: "INTERNAL", source: "Gemini API troubleshooting"},
	{verdict: faulty, word: "invalid_request_error", source: "Anthropic streaming messages"},
	{verdict: faulty, word: "authentication_error", source: "Anthropic streaming messages"},
	{verdict: faulty, word: "permission_error", source: "Anthropic streaming messages"},
	{verdict: faulty, word: "not_found_error", source: "Anthropic streaming messages"},
	{verdict: faulty, word: "invalid_prompt", source: "OpenAI Responses API error codes"},
	{verdict: faulty, word: "content_filter", source: "Azure OpenAI content filtering"},
	{verdict: faulty, word: "INVALID_ARGUMENT", source: "Gemini API troubleshooting"},
}

// byStatus is the verdict of a status alone, from the narrowest range on.
var byStatus = [...]rule{
	{verdict: waits, atLeast: 429, below: 430, source: "RFC 6585 section 4"},
	{verdict: slow, atLeast: 408, below: 409, source: "RFC 9110 section 15.5.9"},
	{verdict: failed, atLeast: 409, below: 410, source: "OpenAI and Anthropic client libraries retry lock conflicts"},
	{verdict: failed, atLeast: 425, below: 426, source: "RFC 8470 section 5.2"},
	{verdict: faulty, atLeast: 400, below: 500, source: "RFC 9110 section 15.5"},
	{verdict: faulty, atLeast: 501, below: 502, source: "RFC 9110 section 15.6.2"},
	{verdict: busy, atLeast: 503, below: 504, source: "RFC 9110 section 15.6.4; Together rate limits"},
	{verdict: slow, atLeast: 504, below: 505, source: "RFC 9110 section 15.6.5"},
	{verdict: faulty, atLeast: 505, below: 506, source: "RFC 9110 section 15.6.6"},
	{verdict: busy, atLeast: 529, below: 530, source: "Anthropic errors"},
	{verdict: failed, atLeast: 500, below: 600, source: "RFC 9110 section 15.6"},
}

func (r *rule) match(status int, f *fields, s sentenceText) bool {
	if r.below != 0 && (status < r.atLeast || status >= r.below) {
		return false
	}
	if r.word != "" && !strings.EqualFold(r.word, f.code) && !strings.EqualFold(r.word, f.typ) && !strings.EqualFold(r.word, f.status) {
		return false
	}
	return strings.HasPrefix(string(s), r.starts) && (r.holds == "" || strings.Contains(string(s), r.holds))
}

// judge finds the rule for a refusal, and whether the body had a part in it.
func judge(status int, f *fields, s sentenceText, v Verdict) (verdict, bool) {
	// Numbers first, for they hold whatever the code is: OpenAI gives
	// rate_limit_exceeded both to what fits in a minute and to what never
	// will.
	switch {
	case s.hasNumbers() && v.Limit == 0, f.quotaZero, s.zeroQuota():
		return allowance, true // not entitled to this model
	case v.Requested > v.Limit && v.Limit > 0:
		return tooLarge, true
	case v.Limit == 0 && strings.HasPrefix(string(s), "request too large for "):
		return tooLarge, true
	case f.daily():
		return allowance, true
	case f.upstream && status == http.StatusTooManyRequests:
		return busy, true // OpenRouter errors: metadata names the provider that refused
	}
	for i := range rules {
		if r := &rules[i]; r.match(status, f, s) {
			return r.verdict, r.word != "" || r.starts != "" || r.holds != ""
		}
	}
	if status == 0 {
		for i := range inStream {
			if r := &inStream[i]; r.match(status, f, s) {
				return r.verdict, true
			}
		}
		return unfamiliar, false
	}
	for i := range byStatus {
		if r := &byStatus[i]; r.match(status, f, s) {
			return r.verdict, false
		}
	}
	return unfamiliar, false
}

// daily reports whether one of the quotas that Google names is of a day: no
// wait of seconds brings it back, although RetryInfo offers one. (Gemini API
// rate limits: "GenerateRequestsPerDayPerProjectPerModel".)
func (f *fields) daily() bool {
	for _, id := range f.quotaIDs {
		if strings.Contains(id, "PerDay") {
			return true
		}
	}
	return false
}

// zeroQuota finds Gemini's "* Quota exceeded for metric: m, limit: 0, model: x":
// the model is not part of the plan.
func (s sentenceText) zeroQuota() bool {
	rest := string(s)
	for {
		_, after, found := strings.Cut(rest, "quota exceeded for metric: ")
		if !found {
			return false
		}
		line, _, _ := strings.Cut(after, "\n")
		if _, n, found := strings.Cut(line, ", limit: "); found && strings.HasPrefix(n, "0") && (len(n) == 1 || !isDigit(n[1]) && n[1] != '.') {
			return true
		}
		rest = after
	}
}

// dimensions are the words by which a provider names the limit that refused,
// narrow before wide.
var dimensions = [...]struct{ words, dimension, source string }{
	{"(itpm)", "input", "Groq rate limits"},
	{"(otpm)", "output", "Groq rate limits"},
	{"(tpm)", "tokens", "OpenAI rate limits guide"},
	{"(tpd)", "tokens", "OpenAI rate limits guide"},
	{"(rpm)", "requests", "OpenAI rate limits guide"},
	{"(rpd)", "requests", "OpenAI rate limits guide"},
	{"input tokens per minute", "input", "Anthropic rate limits"},
	{"output tokens per minute", "output", "Anthropic rate limits"},
	{"requests per minute", "requests", "Anthropic rate limits"},
	{"token rate limit", "tokens", "Azure OpenAI quotas and limits"},
	{"call rate limit", "requests", "Azure OpenAI quotas and limits"},
	{"tokens per minute limit exceeded", "tokens", "Cerebras error codes"},
	{"requests per minute limit exceeded", "requests", "Cerebras error codes"},
	{"_input_token_count", "input", "Gemini API rate limits"},
	{"_free_tier_requests", "requests", "Gemini API rate limits"},
	{"too many tokens", "tokens", "Amazon Bedrock troubleshooting"},
	{"too many requests", "requests", "Amazon Bedrock troubleshooting"},
	{"api calls", "requests", "Cohere rate limits"},
}

// dimension tells which limit refused, as far as the body says.
func dimension(f *fields, s sentenceText) string {
	switch f.typ {
	case "tokens", "requests":
		return f.typ
	case "too_many_tokens_error":
		return "tokens"
	}
	for _, id := range f.quotaIDs {
		switch {
		case strings.Contains(id, "InputTokens"):
			return "input"
		case strings.Contains(id, "Requests"):
			return "requests"
		}
	}
	for _, d := range dimensions {
		if strings.Contains(string(s), d.words) {
			return d.dimension
		}
	}
	return ""
}
