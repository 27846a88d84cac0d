package refusal

import (
	"strings"
	"time"
)

// The windows of allowances.
const (
	Day   = 24 * time.Hour
	Month = 30 * Day
)

// A period is a word that says of which window an allowance is.
type period struct {
	words  string // in lower case
	span   time.Duration
	alone  bool // it says so only with a word for a limit behind it
	source string
}

// periods, the longer window first: "1000 calls a month, 40 a day" may mean either,
// and an allowance that is back sooner is found by a probe.
var periods = [...]period{
	{"per month", Month, false, "Cohere rate limits"},
	{"/ month", Month, false, "Cohere rate limits"},
	{"per-month", Month, false, "OpenRouter limits"},
	{"monthly", Month, true, "Hugging Face Inference Providers; Anthropic errors"},
	{"每月", Month, false, "Zhipu error codes"},
	{"本月", Month, false, "Zhipu error codes"},
	{"perday", Day, false, "Gemini API rate limits: quotaId"},
	{"per day", Day, false, "Amazon Bedrock troubleshooting; Google Cloud Code"},
	{"per-day", Day, false, "OpenRouter limits"},
	{"per_day", Day, false, "Gemini API rate limits: quotaMetric"},
	{"/ day", Day, false, "many"},
	{"/day", Day, false, "many"},
	{"daily", Day, true, "Cloudflare Workers AI errors; Baidu Qianfan error codes"},
	{"(rpd)", Day, false, "OpenAI rate limits guide"},
	{"(tpd)", Day, false, "OpenAI rate limits guide"},
	{"rpd", Day, false, "SiliconFlow rate limits"},
	{"tpd", Day, false, "Moonshot errors"},
	{"每日", Day, false, "Zhipu error codes"},
	{"今日", Day, false, "Zhipu error codes"},
	{"当日", Day, false, "Baidu Qianfan error codes"},
}

// shorter are words of shorter windows. A message that has one too may only list the
// limits.
var shorter = [...]string{"per minute", "per min", "per-min", "/ min", "/min", "rpm", "tpm", "per second", "per hour", "per-hour", "perminute", "hourly", "5 hour", "每分钟", "每秒", "小时"}

// used fills in the window of an allowance that is used up. A refusal for the rate is
// one too if the body names a limit of a day or a month and asks for no wait: the same
// call cannot succeed within minutes.
func (v *Verdict) used(f *fields, s sentenceText) {
	if v.Class != RateLimit && v.Class != Quota || v.Account || f.quotaZero || s.zeroQuota() || s.hasNumbers() && v.Limit == 0 {
		return
	}
	rate := v.Class == RateLimit
	if rate && f.waits.longest() > 0 {
		return
	}
	switch {
	case f.daily():
		v.Span = Day
	case dayCodes[strings.ToLower(f.scoped)] || dayCodes[strings.ToLower(f.code)] || dayCodes[f.reason]:
		v.Span = Day
	default:
		v.Span = s.period(f)
	}
	if v.Span == 0 && !rate && v.Window >= Day {
		v.Span = v.Window
	}
	if v.Span == 0 && (strings.EqualFold(f.code, "token_quota_reached") || strings.EqualFold(f.reason, "MONTHLY_REQUEST_COUNT")) {
		v.Span = Month // IBM watsonx.ai, Kiro: the message does not say so
	}
	if v.Span == 0 {
		return
	}
	if rate {
		v.Class, v.Retryable, v.Known = Quota, false, true
	}
	v.Wide = s.ofAccount(f)
}

// dayCodes are codes of allowances of a day, whose message need not say so.
var dayCodes = map[string]bool{
	"3036":                       true, // Cloudflare Workers AI errors: daily free allocation
	"1304":                       true, // Zhipu error codes: calls of a day
	"qianfan:17":                 true, // Baidu Qianfan error codes: calls of a day
	"4006":                       true, // Cloudflare Workers AI, as recorded since 2026
	"openrouter_free_tier_daily": true, // OpenRouter, metadata.limit_source
}

// period is the window that the message or a code names, if it names one only.
func (s sentenceText) period(f *fields) time.Duration {
	if len(s) > shortMessage {
		return 0
	}
	text := string(s) + ". " + strings.ToLower(f.code+". "+f.typ+". "+f.reason)
	for _, w := range shorter {
		if strings.Contains(text, w) {
			return 0
		}
	}
	for i := range periods {
		p := &periods[i]
		for rest := text; ; {
			before, after, found := strings.Cut(rest, p.words)
			if !found {
				break
			}
			if (!isLetter(before, len(before)-1) && !isLetter(after, 0) || p.words[0] >= 0x80 || p.words == "perday") && (!p.alone || limits(after)) {
				return p.span
			}
			rest = after
		}
	}
	return 0
}

// limits reports whether the rest of a sentence has a word for a limit.
func limits(rest string) bool {
	if end := strings.IndexAny(rest, ".!?\n"); end >= 0 {
		rest = rest[:end]
	}
	for _, w := range [...]string{"limit", "quota", "allowance", "allocation", "credits", "cap"} {
		if strings.Contains(rest, w) {
			return true
		}
	}
	return false
}

func isLetter(s string, i int) bool {
	return i >= 0 && i < len(s) && 'a' <= s[i] && s[i] <= 'z'
}

// ofAccount reports whether an allowance that is used up is of more than the model.
// The names of Google's quotas have PerModel in them; sentences name the model or the account.
func (s sentenceText) ofAccount(f *fields) bool {
	for _, id := range f.quotaIDs {
		if strings.Contains(id, "PerDay") && strings.Contains(id, "PerModel") {
			return false
		}
	}
	if len(f.quotaIDs) > 0 && f.daily() {
		return true
	}
	text := string(s)
	if strings.Contains(text, "free allocation") || f.reason == "openrouter_free_tier_daily" || f.code == "3036" || f.code == "4006" || strings.Contains(text, "free-models-per-") || strings.Contains(text, "key limit exceeded (") {
		return true
	}
	if strings.Contains(text, "model") || strings.Contains(text, "deployment") || strings.Contains(text, "模型") {
		return false
	}
	for _, w := range [...]string{"organization", "your account", "your team", "workspace", "trial key", "api key", "subscription", "账户", "账号"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
