package refusal

import (
	"net/http"
	"slices"
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
	word    string // the code, type, status or reason word, compared without case; "*" at its end: any ending
	starts  string // the message starts with it, lower case
	holds   string // the message contains it outside quotes, lower case
	then    string // and the same sentence contains it behind holds
	until   bool   // with a wait in the body it is one to wait for
	short   bool   // only a message of at most shortMessage bytes: longer ones hold the caller's words
	limited bool   // the status is one that providers refuse with: none, 402, 403, 429, 498, 5xx
	atLeast int    // the status is in [atLeast, below), 0 = any
	below   int
	source  string
}

// unrecorded marks a rule for which no recorded body was found. Its words are those
// of translated interfaces. They count only in a short message of a status that
// providers refuse with, where no other meaning of them is known.
const unrecorded = "no recorded body: "

// rules in the order of their force: the first that matches decides. What
// cannot succeed comes before what can, since providers reuse the words of the
// second for the first.
var rules = [...]rule{
	// Codes that two refusals share: the message says that this one is of the rate.
	{verdict: waits, word: "insufficient_quota", holds: "error-code#token-limit", short: true, limited: true, source: "Alibaba Model Studio error messages: tokens of a second or a minute"},
	{verdict: waits, word: "consumption_limit_reached", holds: "concurrent requests", short: true, limited: true, source: "IBM watsonx.ai API, as recorded: free requests at once"},

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
	{verdict: noCredit, word: "exceeded_current_quota_error", source: "Moonshot errors; MoonshotAI/Kimi-K2#5"},
	{verdict: noCredit, word: "1110", limited: true, source: "Zhipu and Z.ai error codes: the account; continuedev/continue#11823"},
	{verdict: noCredit, word: "1111", limited: true, source: "Zhipu and Z.ai error codes: the account; continuedev/continue#11823"},
	{verdict: noCredit, word: "1112", limited: true, source: "Zhipu and Z.ai error codes: the account; continuedev/continue#11823"},
	{verdict: noCredit, word: "1113", limited: true, source: "Zhipu and Z.ai error codes: the account; continuedev/continue#11823"},
	{verdict: noCredit, word: "1121", limited: true, source: "Zhipu and Z.ai error codes: the account; continuedev/continue#11823"},
	{verdict: noCredit, word: "1309", limited: true, source: "Zhipu and Z.ai error codes: the plan"},
	{verdict: noCredit, word: "1313", limited: true, source: "Zhipu and Z.ai error codes: the plan"},
	{verdict: noCredit, word: "minimax:1008", source: "MiniMax error codes"},
	{verdict: noCredit, word: "Arrearage", source: "Alibaba Model Studio error messages"},
	{verdict: noCredit, word: "AccountArrearage", source: "Alibaba Model Studio error messages"},
	{verdict: noCredit, word: "AccountOverdueError", source: "Volcengine Ark error codes"},
	{verdict: noCredit, word: "FailedOperation.FreeResourcePackExhausted", source: "Tencent Hunyuan error codes"},
	{verdict: noCredit, word: "FailedOperation.ResourcePackExhausted", source: "Tencent Hunyuan error codes"},
	{verdict: noCredit, word: "FailedOperation.ServiceStop", source: "Tencent Hunyuan error codes"},
	{verdict: noCredit, word: "FailedOperation.ServiceStopArrears", source: "Tencent Hunyuan error codes"},
	{verdict: noCredit, word: "FailedOperation.ServiceNotActivated", source: "Tencent Hunyuan error codes"},
	{verdict: noCredit, word: "insufficient_user_quota", source: "One API and New API gateways"},
	{verdict: noCredit, word: "pre_consume_token_quota_failed", source: "One API and New API gateways"},
	{verdict: noCredit, word: "budget_exceeded", source: "LiteLLM proxy: virtual keys"},
	{verdict: noCredit, word: "BILLING_DISABLED", source: "google.rpc.ErrorInfo"},
	{verdict: noCredit, holds: "key limit exceeded (total limit)", short: true, limited: true, source: "OpenRouter errors"},
	{verdict: allowance, holds: "key limit exceeded (", short: true, limited: true, source: "OpenRouter errors: the limit of a key for a day, a week or a month"},
	{verdict: noCredit, word: "insufficient_credits", source: "gateways"},
	{verdict: noCredit, word: "insufficient_funds", source: "gateways"},
	{verdict: noCredit, word: "credits_exhausted", source: "gateways"},
	{verdict: noCredit, word: "payment_required", source: "gateways"},
	{verdict: noCredit, word: "billing_limit_reached", source: "gateways"},
	{verdict: noCredit, word: "insufficient_account_balance", source: "gateways"},
	{verdict: noCredit, holds: "insufficient balance", short: true, limited: true, source: "Moonshot errors; MoonshotAI/Kimi-K2#5; DeepSeek error codes"},
	{verdict: noCredit, holds: "insufficient account balance", short: true, limited: true, source: "Moonshot errors; MoonshotAI/Kimi-K2#5; DeepSeek error codes"},
	{verdict: noCredit, holds: "balance is insufficient", short: true, limited: true, source: "Moonshot errors; MoonshotAI/Kimi-K2#5; DeepSeek error codes"},
	{verdict: noCredit, holds: "balance insufficient", short: true, limited: true, source: "Moonshot errors; MoonshotAI/Kimi-K2#5; DeepSeek error codes"},
	{verdict: noCredit, holds: "balance not enough", short: true, limited: true, source: "Moonshot errors; MoonshotAI/Kimi-K2#5; DeepSeek error codes"},
	{verdict: noCredit, holds: "not enough balance", short: true, limited: true, source: "Moonshot errors; MoonshotAI/Kimi-K2#5; DeepSeek error codes"},
	{verdict: noCredit, holds: "余额不足", short: true, limited: true, source: "Zhipu error codes; continuedev/continue#11823; langgenius/dify#5850"},
	{verdict: noCredit, holds: "欠费", short: true, limited: true, source: "Zhipu error codes; continuedev/continue#11823; langgenius/dify#5850"},
	{verdict: noCredit, holds: "无可用资源包", short: true, limited: true, source: "Zhipu error codes; continuedev/continue#11823; langgenius/dify#5850"},
	{verdict: noCredit, holds: "账户余额", short: true, limited: true, source: "Zhipu error codes; continuedev/continue#11823; langgenius/dify#5850"},
	{verdict: noCredit, holds: "额度不足", short: true, limited: true, source: "Zhipu error codes; continuedev/continue#11823; langgenius/dify#5850"},
	{verdict: noCredit, holds: "账号已被锁定", short: true, limited: true, source: "Zhipu error codes; continuedev/continue#11823; langgenius/dify#5850"},
	{verdict: noCredit, holds: "账户已被锁定", short: true, limited: true, source: "Zhipu error codes; continuedev/continue#11823; langgenius/dify#5850"},
	{verdict: noCredit, holds: "套餐已到期", short: true, limited: true, source: "Zhipu error codes; continuedev/continue#11823; langgenius/dify#5850"},
	{verdict: noCredit, holds: "out of extra usage", short: true, limited: true, source: "griffinmartin/opencode-claude-auth#209"},
	{verdict: noCredit, holds: "used all available credits", short: true, limited: true, source: "xAI errors"},
	{verdict: noCredit, holds: "monthly spending limit", short: true, limited: true, source: "xAI errors"},
	{verdict: noCredit, holds: "credit limit exceeded", short: true, limited: true, source: "Together errors"},
	{verdict: noCredit, word: "credit_limit", source: "Together errors"},
	{verdict: noCredit, holds: "out of credits", short: true, limited: true, source: "gateways and Hugging Face"},
	{verdict: noCredit, holds: "insufficient credit", short: true, limited: true, source: "gateways and Hugging Face"},
	{verdict: noCredit, holds: "not enough credits", short: true, limited: true, source: "gateways and Hugging Face"},
	{verdict: noCredit, holds: "no credits left", short: true, limited: true, source: "gateways and Hugging Face"},
	{verdict: noCredit, holds: "credits are exhausted", short: true, limited: true, source: "gateways and Hugging Face"},
	{verdict: noCredit, holds: "credits have been exhausted", short: true, limited: true, source: "gateways and Hugging Face"},
	{verdict: noCredit, holds: "credit balance is too low", short: true, limited: true, source: "gateways and Hugging Face"},
	{verdict: noCredit, holds: "used all your credits", short: true, limited: true, source: "gateways and Hugging Face"},
	{verdict: noCredit, holds: "add more credits", short: true, limited: true, source: "gateways and Hugging Face"},
	{verdict: noCredit, holds: "guthaben", then: "aufgebraucht", short: true, limited: true, source: unrecorded + "no credit, in German"},
	{verdict: noCredit, holds: "guthaben", then: "verbraucht", short: true, limited: true, source: unrecorded + "no credit, in German"},
	{verdict: noCredit, holds: "guthaben", then: "erschöpft", short: true, limited: true, source: unrecorded + "no credit, in German"},
	{verdict: noCredit, holds: "guthaben", then: "reicht nicht", short: true, limited: true, source: unrecorded + "no credit, in German"},
	{verdict: noCredit, holds: "guthaben", then: "nicht ausreichend", short: true, limited: true, source: unrecorded + "no credit, in German"},
	{verdict: noCredit, holds: "kein guthaben", short: true, limited: true, source: unrecorded + "no credit, in German"},
	{verdict: noCredit, holds: "nicht genügend guthaben", short: true, limited: true, source: unrecorded + "no credit, in German"},
	{verdict: noCredit, holds: "nicht genug guthaben", short: true, limited: true, source: unrecorded + "no credit, in German"},
	{verdict: noCredit, holds: "unzureichendes guthaben", short: true, limited: true, source: unrecorded + "no credit, in German"},
	{verdict: noCredit, holds: "crédit", then: "épuisé", short: true, limited: true, source: unrecorded + "no credit, in French"},
	{verdict: noCredit, holds: "crédit", then: "insuffisant", short: true, limited: true, source: unrecorded + "no credit, in French"},
	{verdict: noCredit, holds: "solde", then: "épuisé", short: true, limited: true, source: unrecorded + "no credit, in French"},
	{verdict: noCredit, holds: "solde", then: "insuffisant", short: true, limited: true, source: unrecorded + "no credit, in French"},
	{verdict: noCredit, holds: "fonds insuffisants", short: true, limited: true, source: unrecorded + "no credit, in French"},
	{verdict: noCredit, holds: "plus de crédit", short: true, limited: true, source: unrecorded + "no credit, in French"},
	{verdict: noCredit, holds: "saldo", then: "insuficiente", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "crédito", then: "insuficiente", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "saldo", then: "agotad", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "crédito", then: "agotad", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "agotado", then: "saldo", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "agotado", then: "crédito", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "fondos insuficientes", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "sin saldo", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "sin crédito", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "saldo", then: "esgot", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "crédito", then: "esgot", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "crédito", then: "acabaram", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "fundos insuficientes", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "sem saldo", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "sem crédito", short: true, limited: true, source: unrecorded + "no credit, in Spanish and Portuguese"},
	{verdict: noCredit, holds: "недостаточно средств", short: true, limited: true, source: unrecorded + "no credit, in Russian"},
	{verdict: noCredit, holds: "недостаточно кредит", short: true, limited: true, source: unrecorded + "no credit, in Russian"},
	{verdict: noCredit, holds: "недостаточный баланс", short: true, limited: true, source: unrecorded + "no credit, in Russian"},
	{verdict: noCredit, holds: "баланс", then: "исчерпан", short: true, limited: true, source: unrecorded + "no credit, in Russian"},
	{verdict: noCredit, holds: "средства", then: "закончил", short: true, limited: true, source: unrecorded + "no credit, in Russian"},
	{verdict: noCredit, holds: "средства", then: "исчерпан", short: true, limited: true, source: unrecorded + "no credit, in Russian"},
	{verdict: noCredit, holds: "кредит", then: "исчерпан", short: true, limited: true, source: unrecorded + "no credit, in Russian"},
	{verdict: noCredit, holds: "кредит", then: "закончил", short: true, limited: true, source: unrecorded + "no credit, in Russian"},
	{verdict: noCredit, holds: "残高", then: "不足", short: true, limited: true, source: unrecorded + "no credit, in Japanese"},
	{verdict: noCredit, holds: "残高", then: "足りま", short: true, limited: true, source: unrecorded + "no credit, in Japanese"},
	{verdict: noCredit, holds: "残高がありません", short: true, limited: true, source: unrecorded + "no credit, in Japanese"},
	{verdict: noCredit, holds: "クレジット", then: "不足", short: true, limited: true, source: unrecorded + "no credit, in Japanese"},
	{verdict: noCredit, holds: "クレジット", then: "足りま", short: true, limited: true, source: unrecorded + "no credit, in Japanese"},
	{verdict: noCredit, holds: "クレジット", then: "使い切", short: true, limited: true, source: unrecorded + "no credit, in Japanese"},
	{verdict: noCredit, holds: "クレジット", then: "使い果た", short: true, limited: true, source: unrecorded + "no credit, in Japanese"},
	{verdict: noCredit, holds: "クレジットがありません", short: true, limited: true, source: unrecorded + "no credit, in Japanese"},
	{verdict: noCredit, holds: "잔액", then: "부족", short: true, limited: true, source: unrecorded + "no credit, in Korean"},
	{verdict: noCredit, holds: "잔액", then: "소진", short: true, limited: true, source: unrecorded + "no credit, in Korean"},
	{verdict: noCredit, holds: "크레딧", then: "부족", short: true, limited: true, source: unrecorded + "no credit, in Korean"},
	{verdict: noCredit, holds: "크레딧", then: "소진", short: true, limited: true, source: unrecorded + "no credit, in Korean"},
	{verdict: noCredit, holds: "크레딧이 없", short: true, limited: true, source: unrecorded + "no credit, in Korean"},
	{verdict: allowance, word: "MONTHLY_REQUEST_COUNT", limited: true, source: "chaogei/Kiro-account-manager#27"},
	{verdict: allowance, holds: "can only afford", atLeast: 402, below: 403, source: "OpenRouter errors: a smaller call may pass"},
	{verdict: noCredit, atLeast: 402, below: 403, source: "RFC 9110 section 15.5.3; DeepSeek, OpenRouter, Hugging Face"},

	// The allowance of a day or a month.
	{verdict: allowance, word: "3036", limited: true, source: "Cloudflare Workers AI errors: daily free allocation"},
	{verdict: allowance, word: "openrouter_free_tier_daily", limited: true, source: "Avarok-Cybersecurity/atlas#543: metadata.limit_source"},
	{verdict: allowance, starts: "rate limit exceeded: free-models-per-day", source: "OpenRouter limits"},
	{verdict: allowance, starts: "you are using a trial key, which is limited to 1000 api calls / month", source: "Cohere rate limits"},
	{verdict: allowance, starts: "token quota is exceeded", atLeast: 403, below: 404, source: "Azure API Management token limit policy"},
	{verdict: allowance, starts: "quota exceeded", atLeast: 403, below: 404, source: "Azure API Management quota policy"},
	{verdict: allowance, word: "ServiceQuotaExceededException", atLeast: 400, below: 429, source: "Amazon Bedrock API reference"},
	{verdict: allowance, word: "1304", limited: true, source: "Zhipu error codes: calls of a day"},
	{verdict: allowance, word: "1308", limited: true, source: "Z.ai error codes: calls of hours, a week or a month; continuedev/continue#13195"},
	{verdict: allowance, word: "1310", limited: true, source: "Z.ai error codes: calls of hours, a week or a month; continuedev/continue#13195"},
	{verdict: allowance, word: "1311", limited: true, source: "Z.ai error codes: the plan lacks the model"},
	{verdict: allowance, word: "quota_exceeded", limited: true, source: "GitHub Copilot API; gateways"},
	{verdict: allowance, word: "QuotaExceeded", limited: true, source: "Volcengine Ark error codes; Google Cloud errors"},
	{verdict: allowance, holds: "tokens per day, please wait", short: true, limited: true, source: "Amazon Bedrock troubleshooting"},
	{verdict: allowance, word: "token_quota_reached", limited: true, source: "IBM watsonx.ai API: the plan's tokens of a month, by model"},
	{verdict: allowance, word: "consumption_limit_reached", limited: true, source: "IBM watsonx.ai API"},
	{verdict: allowance, word: "SetLimitExceeded", limited: true, source: "Volcengine Ark error codes: a limit that the user set for the model"},
	{verdict: allowance, word: "BudgetLimitExceeded", limited: true, source: "Alibaba Model Studio error messages"},
	{verdict: allowance, holds: "reached your", then: "usage limit", short: true, limited: true, source: "Ollama cloud"},
	{verdict: allowance, word: "minimax:2056", source: "MiniMax error codes: usage limit"},
	{verdict: allowance, word: "qianfan:17", source: "Baidu Qianfan error codes: calls of a day, of all"},
	{verdict: allowance, word: "qianfan:19", source: "Baidu Qianfan error codes: calls of a day, of all"},
	{verdict: allowance, word: "AllocationQuota.FreeTierOnly", source: "Alibaba Model Studio error messages"},
	{verdict: allowance, word: "QUOTA_EXHAUSTED", source: "Google Cloud Code, google.rpc.ErrorInfo"},
	{verdict: allowance, word: "usage_limit_reached", source: "ChatGPT plans; NousResearch/hermes-agent#26893"},
	{verdict: allowance, word: "usage_limit_exceeded", source: "ChatGPT plans; NousResearch/hermes-agent#26893"},
	{verdict: allowance, holds: "kontingent", then: "aufgebraucht", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in German"},
	{verdict: allowance, holds: "kontingent", then: "erschöpft", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in German"},
	{verdict: allowance, holds: "quota", then: "épuisé", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in French"},
	{verdict: allowance, holds: "cuota", then: "agotad", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in Spanish and Portuguese"},
	{verdict: allowance, holds: "agotado", then: "cuota", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in Spanish and Portuguese"},
	{verdict: allowance, holds: "cota", then: "esgot", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in Spanish and Portuguese"},
	{verdict: allowance, holds: "квот", then: "исчерпан", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in Russian"},
	{verdict: allowance, holds: "исчерпан", then: "квот", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in Russian"},
	{verdict: allowance, holds: "クォータ", then: "使い切", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in Japanese"},
	{verdict: allowance, holds: "クォータ", then: "使い果た", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in Japanese"},
	{verdict: allowance, holds: "割り当て", then: "使い切", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in Japanese"},
	{verdict: allowance, holds: "利用枠", then: "使い切", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in Japanese"},
	{verdict: allowance, holds: "할당량", then: "소진", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in Korean"},
	{verdict: allowance, holds: "할당량", then: "모두 사용", until: true, short: true, limited: true, source: unrecorded + "the quota is used up, in Korean"},
	{verdict: allowance, holds: "out of call volume quota", short: true, limited: true, source: "Azure API Management quota policy; MicrosoftDocs/azure-docs#96103"},
	{verdict: allowance, holds: "out of bandwidth quota", short: true, limited: true, source: "Azure API Management quota policy; MicrosoftDocs/azure-docs#96103"},
	{verdict: allowance, holds: "quota will be replenished", short: true, limited: true, source: "Azure API Management quota policy; MicrosoftDocs/azure-docs#96103"},
	{verdict: allowance, holds: "usage limit reached for", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "reached your usage limit", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "reached your specified api usage limits", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "weekly usage limit", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "monthly usage limit", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "weekly/monthly limit", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "weekly limit reached", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "monthly limit reached", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "daily limit reached", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "reached your daily limit", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "daily quota", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "monthly quota", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "limit will reset at", short: true, limited: true, source: "Z.ai error codes; Anthropic errors; gateways"},
	{verdict: allowance, holds: "使用上限", short: true, limited: true, source: "Zhipu error codes"},
	{verdict: allowance, holds: "今日调用次数限额", short: true, limited: true, source: "Zhipu error codes"},
	{verdict: allowance, holds: "您的限额将在", short: true, limited: true, source: "Zhipu error codes"},
	{verdict: waits, word: "rateLimitExceeded", atLeast: 403, below: 404, source: "Google Cloud errors: 403 for a rate"},
	{verdict: waits, word: "userRateLimitExceeded", atLeast: 403, below: 404, source: "Google Cloud errors: 403 for a rate"},
	{verdict: waits, holds: "rate limit", short: true, atLeast: 403, below: 404, source: "GitHub REST API: 403 for a rate"},
	{verdict: allowance, holds: "quota", short: true, atLeast: 403, below: 404, source: "Azure API Management quota policy; Google Cloud errors"},

	// The size of the request.
	{verdict: tooLarge, word: "1261", atLeast: 400, below: 430, source: "Zhipu error codes: prompt too long"},
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
	{verdict: busy, word: "Throttling.ServiceOverloaded", source: "Alibaba Model Studio error messages"},
	{verdict: busy, holds: "worker local total request limit reached", short: true, limited: true, source: "NVIDIA NIM: QuantumNous/new-api#6619"},
	{verdict: busy, word: "UNAVAILABLE", source: "Gemini API troubleshooting"},
	{verdict: busy, word: "ServiceUnavailableException", source: "Amazon Bedrock API reference"},
	{verdict: busy, word: "ModelNotReadyException", source: "Amazon Bedrock API reference"},
	{verdict: busy, word: "3040", atLeast: 429, below: 430, source: "Cloudflare Workers AI errors: out of capacity"},
	{verdict: busy, word: "RESOURCE_EXHAUSTED", starts: "resource exhausted. please try again later", source: "Vertex AI error code 429: dynamic shared quota"},
	{verdict: busy, word: "engine_overloaded_error", source: "Moonshot errors"},
	{verdict: busy, word: "resource_unavailable", source: "OpenAI flex processing; Groq flex processing; gateways"},
	{verdict: busy, word: "server_overloaded", source: "OpenAI flex processing; Groq flex processing; gateways"},
	{verdict: busy, word: "model_overloaded", source: "OpenAI flex processing; Groq flex processing; gateways"},
	{verdict: busy, word: "capacity_exceeded", source: "OpenAI flex processing; Groq flex processing; gateways"},
	{verdict: busy, word: "over_capacity", source: "OpenAI flex processing; Groq flex processing; gateways"},
	{verdict: busy, word: "at_capacity", source: "OpenAI flex processing; Groq flex processing; gateways"},
	{verdict: busy, word: "no_capacity", source: "OpenAI flex processing; Groq flex processing; gateways"},
	{verdict: busy, word: "capacity_error", source: "OpenAI flex processing; Groq flex processing; gateways"},
	{verdict: busy, word: "flex_capacity_exceeded", source: "OpenAI flex processing; Groq flex processing; gateways"},
	{verdict: busy, word: "flex_tier_capacity_exceeded", source: "OpenAI flex processing; Groq flex processing; gateways"},
	{verdict: busy, word: "insufficient_capacity", source: "OpenAI flex processing; Groq flex processing; gateways"},
	{verdict: busy, word: "service_tier_capacity_exceeded", source: "Mistral errors"},
	{verdict: busy, word: "3505", source: "Mistral errors"},
	{verdict: busy, word: "ServerOverloaded", source: "Volcengine Ark error codes; gateways"},
	{verdict: busy, word: "ServiceOverloaded", source: "Volcengine Ark error codes; gateways"},
	{verdict: busy, word: "ModelOverloaded", source: "Volcengine Ark error codes; gateways"},
	{verdict: busy, word: "NoCapacity", source: "Volcengine Ark error codes; gateways"},
	{verdict: busy, word: "MODEL_CAPACITY_EXHAUSTED", source: "Google Cloud Code, google.rpc.ErrorInfo"},
	{verdict: busy, word: "1305", limited: true, source: "Zhipu and Z.ai error codes: load of the interface, of the model"},
	{verdict: busy, word: "1312", limited: true, source: "Zhipu and Z.ai error codes: load of the interface, of the model"},
	{verdict: busy, word: "qianfan:336100", source: "Baidu Qianfan error codes: try again later"},
	{verdict: busy, word: "FailedOperation.EngineServerLimitExceeded", source: "Tencent Hunyuan error codes"},
	{verdict: busy, word: "FailedOperation.EngineRequestTimeout", source: "Tencent Hunyuan error codes"},
	{verdict: busy, word: "ModelServingError", limited: true, source: "Alibaba Model Studio error messages"},
	{verdict: busy, word: "ServiceUnavailable", limited: true, source: "Alibaba Model Studio error messages"},
	{verdict: busy, holds: "due to system capacity limits", short: true, limited: true, source: "Alibaba Model Studio error messages; QwenLM/qwen-code#1641"},
	{verdict: busy, holds: "overloaded", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "over capacity", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "at capacity", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "no capacity", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "out of capacity", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "resource unavailable", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "capacity exceeded", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "insufficient capacity", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "capacity is exhausted", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "capacity constraints", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "high demand", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "heavy load", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "high load", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "heavy traffic", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "server is busy", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "servers are busy", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "system is busy", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "system busy", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "server busy", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "model busy", short: true, limited: true, source: "DeepInfra: truefoundry/models#862"},
	{verdict: busy, holds: "too busy", short: true, limited: true, source: "OpenAI, Groq, Anthropic and DeepSeek error texts"},
	{verdict: busy, holds: "服务器繁忙", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},
	{verdict: busy, holds: "系统繁忙", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},
	{verdict: busy, holds: "服务繁忙", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},
	{verdict: busy, holds: "模型繁忙", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},
	{verdict: busy, holds: "过载", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},
	{verdict: busy, holds: "访问量过大", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},
	{verdict: busy, holds: "负载较高", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},
	{verdict: busy, holds: "负载已饱和", short: true, limited: true, source: "One API and New API gateways: songquanpeng/one-api#1061, QuantumNous/new-api#991"},
	{verdict: busy, holds: "负载过高", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},
	{verdict: busy, holds: "触发流量限制", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},
	{verdict: busy, holds: "算力不足", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},
	{verdict: busy, holds: "资源紧张", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},
	{verdict: busy, holds: "拥堵", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},
	{verdict: busy, holds: "请求过多，请稍后", short: true, limited: true, source: "Zhipu, DeepSeek, Baidu, iFlytek and Alibaba error texts"},

	// The rate.
	{verdict: waits, word: "rate_limit_reached_error", source: "Moonshot errors; LLM-Red-Team/kimi-cc#16"},
	{verdict: waits, word: "1302", limited: true, source: "Zhipu and Z.ai error codes: calls at once, calls"},
	{verdict: waits, word: "1303", limited: true, source: "Zhipu and Z.ai error codes: calls at once, calls"},
	{verdict: waits, word: "minimax:1002", source: "MiniMax error codes: requests, tokens, connections, growth"},
	{verdict: waits, word: "minimax:1039", source: "MiniMax error codes: requests, tokens, connections, growth"},
	{verdict: waits, word: "minimax:1041", source: "MiniMax error codes: requests, tokens, connections, growth"},
	{verdict: waits, word: "minimax:2045", source: "MiniMax error codes: requests, tokens, connections, growth"},
	{verdict: waits, word: "qianfan:4", source: "Baidu Qianfan error codes"},
	{verdict: waits, word: "qianfan:18", source: "Baidu Qianfan error codes"},
	{verdict: waits, word: "qianfan:336501", source: "Baidu Qianfan error codes"},
	{verdict: waits, word: "qianfan:336502", source: "Baidu Qianfan error codes"},
	{verdict: waits, word: "qianfan:336503", source: "Baidu Qianfan error codes"},
	{verdict: waits, word: "Throttling*", source: "Alibaba Model Studio error messages"},
	{verdict: waits, word: "limit_requests", source: "Alibaba Model Studio error messages"},
	{verdict: waits, word: "limit_burst_rate", source: "Alibaba Model Studio error messages"},
	{verdict: waits, word: "limit_tokens", source: "Alibaba Model Studio error messages"},
	{verdict: waits, word: "RateLimitExceeded*", source: "Volcengine Ark error codes"},
	{verdict: waits, word: "ModelAccountRpmRateLimitExceeded", source: "Volcengine Ark error codes"},
	{verdict: waits, word: "ModelAccountTpmRateLimitExceeded", source: "Volcengine Ark error codes"},
	{verdict: waits, word: "ModelAccountIpmRateLimitExceeded", source: "Volcengine Ark error codes"},
	{verdict: waits, word: "RequestBurstTooFast", source: "Volcengine Ark error codes"},
	{verdict: waits, word: "InflightBatchsizeExceeded", source: "Volcengine Ark error codes"},
	{verdict: waits, word: "AccountRateLimitExceeded", source: "Volcengine Ark error codes"},
	{verdict: waits, word: "RequestLimitExceeded*", source: "Tencent Hunyuan error codes"},
	{verdict: waits, word: "LimitExceeded", limited: true, source: "Tencent Hunyuan error codes; not on 400, where Oracle Cloud says it of a service limit"},
	{verdict: waits, word: "FailedOperation.EngineServerLimitExceededQps", source: "Tencent Hunyuan error codes"},
	{verdict: waits, word: "RATE_LIMIT_EXCEEDED", source: "Google Cloud, google.rpc.ErrorInfo"},
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
	{verdict: waits, word: "ThrottledException", source: "AWS SDKs: throttling error codes"},
	{verdict: waits, word: "RequestThrottled*", source: "AWS SDKs: throttling error codes"},
	{verdict: waits, word: "TooManyRequestsException", source: "AWS SDKs: throttling error codes"},
	{verdict: waits, word: "ProvisionedThroughputExceededException", source: "AWS SDKs: throttling error codes"},
	{verdict: waits, word: "rate_limit_reached_requests", source: "IBM watsonx.ai API"},
	{verdict: waits, word: "REQUEST_LIMIT_EXCEEDED", source: "Databricks: n8n-io/n8n#38642, databricks/databricks-sdk-py#274"},
	{verdict: waits, word: "ThrottlingException", source: "Amazon Bedrock API reference"},
	{verdict: waits, word: "RESOURCE_EXHAUSTED", source: "Gemini API troubleshooting"},
	{verdict: waits, starts: "rate limit reached for ", atLeast: 429, below: 430, source: "OpenAI rate limits guide"},
	{verdict: waits, starts: "too many tokens, please wait before trying again", source: "Amazon Bedrock troubleshooting"},
	{verdict: waits, starts: "too many requests, please wait before trying again", source: "Amazon Bedrock troubleshooting"},
	{verdict: waits, starts: "you are using a trial key", atLeast: 429, below: 430, source: "Cohere rate limits"},
	{verdict: waits, starts: "too many requests", atLeast: 429, below: 430, source: "xAI errors"},
	{verdict: waits, holds: "速率限制", short: true, limited: true, source: "Zhipu, Alibaba, Baidu and iFlytek error texts"},
	{verdict: waits, holds: "请求频率", short: true, limited: true, source: "Zhipu, Alibaba, Baidu and iFlytek error texts"},
	{verdict: waits, holds: "频率过高", short: true, limited: true, source: "Zhipu, Alibaba, Baidu and iFlytek error texts"},
	{verdict: waits, holds: "并发数过高", short: true, limited: true, source: "Zhipu, Alibaba, Baidu and iFlytek error texts"},
	{verdict: waits, holds: "限流", short: true, limited: true, source: "Zhipu, Alibaba, Baidu and iFlytek error texts"},
	{verdict: waits, holds: "请求过于频繁", short: true, limited: true, source: "Zhipu, Alibaba, Baidu and iFlytek error texts"},
	{verdict: waits, holds: "调用频率", short: true, limited: true, source: "Zhipu, Alibaba, Baidu and iFlytek error texts"},
	{verdict: waits, holds: "超过频率", short: true, limited: true, source: "Zhipu, Alibaba, Baidu and iFlytek error texts"},
	{verdict: waits, holds: "qps request limit", short: true, limited: true, source: "Zhipu, Alibaba, Baidu and iFlytek error texts"},
	{verdict: waits, holds: "rate limit", short: true, atLeast: 429, below: 430, source: "many"},
	{verdict: waits, holds: "too many requests", short: true, atLeast: 429, below: 430, source: "many"},

	// The provider. Not on a 4xx: there the status knows better.
	{verdict: failed, word: "server_error", atLeast: 500, below: 600, source: "OpenAI error codes guide"},
	{verdict: failed, word: "api_error", atLeast: 500, below: 600, source: "Anthropic errors"},
	{verdict: failed, word: "INTERNAL", atLeast: 500, below: 600, source: "Gemini API troubleshooting"},
	{verdict: failed, word: "InternalServerException", source: "Amazon Bedrock API reference"},
	{verdict: failed, word: "ModelStreamErrorException", source: "Amazon Bedrock API reference"},
	{verdict: slow, word: "timeout_error", source: "Anthropic errors"},
	{verdict: slow, word: "ModelTimeoutException", source: "Amazon Bedrock API reference"},
	{verdict: slow, word: "DEADLINE_EXCEEDED", source: "Gemini API troubleshooting"},
	{verdict: failed, word: "minimax:1000", source: "MiniMax error codes: unknown, internal, system"},
	{verdict: failed, word: "minimax:1013", source: "MiniMax error codes: unknown, internal, system"},
	{verdict: failed, word: "minimax:1024", source: "MiniMax error codes: unknown, internal, system"},
	{verdict: failed, word: "minimax:1033", source: "MiniMax error codes: unknown, internal, system"},
	{verdict: slow, word: "minimax:1001", source: "MiniMax error codes: time-out"},
	{verdict: failed, word: "1234", limited: true, source: "Zhipu error codes: network, process"},
	{verdict: failed, word: "1230", limited: true, source: "Zhipu error codes: network, process"},
	{verdict: failed, word: "qianfan:2", source: "Baidu Qianfan error codes: service, internal"},
	{verdict: failed, word: "qianfan:336000", source: "Baidu Qianfan error codes: service, internal"},

	// The request.
	{verdict: faulty, word: "minimax:1004", source: "MiniMax error codes: key, content, arguments"},
	{verdict: faulty, word: "minimax:1026", source: "MiniMax error codes: key, content, arguments"},
	{verdict: faulty, word: "minimax:1027", source: "MiniMax error codes: key, content, arguments"},
	{verdict: faulty, word: "minimax:1042", source: "MiniMax error codes: key, content, arguments"},
	{verdict: faulty, word: "minimax:2013", source: "MiniMax error codes: key, content, arguments"},
	{verdict: faulty, word: "minimax:2049", source: "MiniMax error codes: key, content, arguments"},
	{verdict: tooLarge, word: "qianfan:336007", source: "Baidu Qianfan error codes: prompt too long"},
	{verdict: tooLarge, word: "qianfan:336103", source: "Baidu Qianfan error codes: prompt too long"},
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
	{verdict: busy, atLeast: 498, below: 499, source: "Groq flex processing: capacity exceeded"},
	{verdict: faulty, atLeast: 400, below: 500, source: "RFC 9110 section 15.5"},
	{verdict: faulty, atLeast: 501, below: 502, source: "RFC 9110 section 15.6.2"},
	{verdict: busy, atLeast: 503, below: 504, source: "RFC 9110 section 15.6.4; Together rate limits"},
	{verdict: slow, atLeast: 504, below: 505, source: "RFC 9110 section 15.6.5"},
	{verdict: faulty, atLeast: 505, below: 506, source: "RFC 9110 section 15.6.6"},
	{verdict: busy, atLeast: 529, below: 530, source: "Anthropic errors"},
	{verdict: failed, atLeast: 500, below: 600, source: "RFC 9110 section 15.6"},
}

// shortMessage bounds the messages whose words count in any position.
const shortMessage = 2 << 10

func (r *rule) match(status int, f *fields, s sentenceText) bool {
	if r.below != 0 && (status < r.atLeast || status >= r.below) {
		return false
	}
	if r.limited && !refuses(status) || r.short && len(s) > shortMessage {
		return false
	}
	if r.word != "" && !r.isWord(f.code) && !r.isWord(f.typ) && !r.isWord(f.status) && !r.isWord(f.scoped) && !r.isWord(f.reason) && !slices.ContainsFunc(f.codes, r.isWord) {
		return false
	}
	return strings.HasPrefix(string(s), r.starts) && (r.holds == "" || s.holds(r.holds, r.then))
}

// isWord compares without case.
func (r *rule) isWord(word string) bool {
	if begins, any := strings.CutSuffix(r.word, "*"); any {
		return len(word) >= len(begins) && strings.EqualFold(word[:len(begins)], begins)
	}
	return strings.EqualFold(r.word, word)
}

// refuses reports whether a status is one that providers refuse with, or none.
func refuses(status int) bool {
	switch status {
	case 0, http.StatusPaymentRequired, http.StatusForbidden, http.StatusTooManyRequests, 498:
		return true
	}
	return status >= 500
}

// judge finds the rule for a refusal, and whether the body had a part in it.
func judge(status int, f *fields, s sentenceText, v Verdict) (verdict, bool) {
	// Numbers first, for they hold with any code: OpenAI gives
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
			if (r.until || isPlan(r.word)) && f.waits.longest() > 0 {
				return waits, true // the body names when
			}
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

// isPlan reports whether a word says that a plan's usage is used up for now.
func isPlan(word string) bool {
	return word == "usage_limit_reached" || word == "usage_limit_exceeded"
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
	{"number of request tokens", "input", "Anthropic rate limits"},
	{"number of requests", "requests", "Anthropic rate limits"},
	{"tpm limit", "tokens", "SiliconFlow rate limits"},
	{"rpm limit", "requests", "SiliconFlow rate limits"},
	{"tpm rate limit", "tokens", "Moonshot errors"},
	{"max tpm", "tokens", "Moonshot errors"},
	{"max rpm", "requests", "Moonshot errors"},
	{"rpm rate limit", "requests", "Moonshot errors"},
	{"tokens per day", "tokens", "Groq rate limits"},
	{"requests per day", "requests", "Groq rate limits"},
	{"tokens per minute", "tokens", "many"},
	{"tokens per min", "tokens", "OpenAI rate limits guide"},
	{"requests per min", "requests", "OpenAI rate limits guide"},
	{"token limit is exceeded", "tokens", "Azure API Management token limit policy"},
	{"rpd limit", "requests", "SiliconFlow rate limits"},
	{"tpd limit", "tokens", "SiliconFlow rate limits"},
	{"call volume quota", "requests", "Azure API Management quota policy"},
	{"请求频率", "requests", "Zhipu error codes"},
	{"并发", "requests", "Zhipu error codes"},
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
	switch f.scoped {
	case "minimax:1039", "qianfan:336502":
		return "tokens"
	case "minimax:1002", "qianfan:18", "qianfan:4", "qianfan:336501":
		return "requests"
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
