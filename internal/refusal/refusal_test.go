package refusal

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"time"
)

func openai(code, typ, message string) []byte {
	return fmt.Appendf(nil, `{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, message, typ, code)
}

// An exhausted account is not retried, on any status and with the word in any place.
func TestAnExhaustedAccountIsNotTriedAgain(t *testing.T) {
	for _, word := range []string{
		"insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded",
		"project_spend_limit_exceeded", "organization_usage_limit_exceeded",
		"billing_hard_limit_reached", "billing_not_active", "enforced_spend_limit_reached",
	} {
		for name, body := range map[string][]byte{
			"code":       openai(word, "requests", "Please try again in 20s."),
			"type":       openai("", word, "Please try again in 20s."),
			"error_code": fmt.Appendf(nil, `{"type":"error","error":{"type":"rate_limit_error","error_code":%q,"message":"x"}}`, word),
			"top level":  fmt.Appendf(nil, `{"message":"x","code":%q}`, word),
			"list":       fmt.Appendf(nil, `[{"error":{"code":%q,"message":"x"}}]`, word),
			"in message": openai("429", "None", string(openai(word, "", "x"))),
		} {
			for _, status := range []int{400, 403, 429, 500} {
				v := Classify(status, body)
				if v.Class != Quota || v.Retryable || !v.Account || v.Wait != 0 || !v.Known {
					t.Errorf("%s as %s on %d: %+v", word, name, status, v)
				}
			}
		}
	}
	for name, body := range map[string]string{
		"DeepSeek":     `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`,
		"Hugging Face": `{"error":"You have exceeded your monthly included credits."}`,
		"no body":      "",
	} {
		if v := Classify(402, []byte(body)); v.Class != Quota || v.Retryable || !v.Account {
			t.Errorf("402 %s: %+v", name, v)
		}
	}
	if v := Classify(402, []byte(`{"error":{"code":402,"message":"This request requires more credits, or fewer max_tokens. You requested up to 9 tokens, but can only afford 3."}}`)); v.Retryable || v.Account {
		t.Errorf("a smaller call may pass, so it is not the account: %+v", v)
	}
}

// A gateway may send the code without any JSON around it.
func TestACodeInPlainTextIsHeard(t *testing.T) {
	for body, want := range map[string]verdict{
		"insufficient_quota":                                    noCredit,
		"INSUFFICIENT_QUOTA\n":                                  noCredit,
		`"insufficient_quota"`:                                  noCredit,
		"429 insufficient_quota: see your plan":                 noCredit,
		"Error code: insufficient_quota.":                       noCredit,
		"Arrearage":                                             noCredit,
		"usage_limit_reached":                                   allowance,
		"usage_limit_reached, try again in 20s":                 waits,
		"rate_limit_exceeded":                                   waits,
		"overloaded_error":                                      busy,
		"You said `insufficient_quota`, wait":                   waits,
		"my_insufficient_quota_model is busy":                   waits,
		"1113":                                                  waits,
		"The 1113 tokens are too many":                          waits,
		"<html><p class=insufficient_quota>slow down</p>":       waits,
		strings.Repeat("x ", 2000) + "insufficient_quota":       waits,
		`Rate limited: {"error":{"code":"insufficient_quota"}}`: waits,
	} {
		if v := Classify(429, []byte(body)); v.Class != want.class || v.Retryable != want.retryable || v.Account != want.account {
			t.Errorf("%.60q: %+v, want %+v", body, v, want)
		}
	}
}

// No credit is no credit in every language; a quota that has a wait beside it is
// waited for.
func TestNoCreditIsHeardInOtherLanguages(t *testing.T) {
	for text, want := range map[string]verdict{
		"Ihr Guthaben ist aufgebraucht.": noCredit, "Nicht genügend Guthaben": noCredit, "Sie haben Ihr gesamtes Guthaben verbraucht.": noCredit, "Ihr Kontingent ist erschöpft.": allowance,
		"Vos crédits sont épuisés.": noCredit, "Solde insuffisant": noCredit, "CRÉDIT INSUFFISANT": noCredit, "Vous n'avez plus de crédits.": noCredit, "Votre quota est épuisé.": allowance,
		"Saldo insuficiente": noCredit, "Se han agotado los créditos. Sus créditos están agotados.": noCredit, "Se ha agotado su saldo": noCredit, "Su cuota está agotada.": allowance, "Se ha agotado la cuota": allowance,
		"Seus créditos se esgotaram.": noCredit, "Você está sem saldo": noCredit, "Sua cota foi esgotada": allowance,
		"Недостаточно средств на счёте": noCredit, "НЕДОСТАТОЧНО СРЕДСТВ": noCredit, "Ваш баланс исчерпан": noCredit, "Кредиты закончились": noCredit, "Квота исчерпана": allowance, "Исчерпана квота": allowance,
		"残高が不足しています。": noCredit, "クレジットを使い切りました": noCredit, "クレジットがありません": noCredit, "割り当てを使い切りました": allowance,
		"잔액이 부족합니다": noCredit, "크레딧이 모두 소진되었습니다": noCredit, "할당량이 모두 소진되었습니다": allowance,

		// What says something else with the same words.
		"Kontingent erschöpft, wiederholen Sie in 20 Sekunden: retry in 20s": waits,
		"Zu viele Anfragen. Ihr Guthaben beträgt 5 Euro.":                    waits,
		"Ihr Guthaben ist gut. Das Minutenlimit ist erschöpft":               waits,
		"Trop de requêtes": waits, "Demasiadas solicitudes": waits, "Слишком много запросов": waits, "リクエストが多すぎます": waits, "요청이 너무 많습니다": waits,
		"You said `Saldo insuficiente`": waits,
	} {
		for name, body := range map[string][]byte{"plain": []byte(text), "JSON": openai("", "", text)} {
			if v := Classify(429, body); v.Class != want.class || v.Retryable != want.retryable || v.Account != want.account {
				t.Errorf("%s, %s: %+v, want %+v", text, name, v, want)
			}
		}
		if v := Classify(400, openai("", "", text)); v.Class == Quota {
			t.Errorf("%s on 400: %+v", text, v)
		}
	}
}

func TestARequestLargerThanTheLimitIsNotTriedAgain(t *testing.T) {
	const head = "Request too large for gpt-4o in organization org-x on tokens per min (TPM): "
	for _, c := range []struct {
		name, message string
		status        int
		class         string
	}{
		{"OpenAI", head + "Limit 30000, Requested 61337. The input or output tokens must be reduced in order to run successfully.", 429, TooLarge},
		{"Groq", head + "Limit 12000, Requested 15243, please reduce your message size and try again.", 413, TooLarge},
		{"thousands", head + "Limit 30,000, Requested 61,337.", 429, TooLarge},
		{"with Used", "Rate limit reached for m on tokens per min (TPM): Limit 100, Used 1, Requested 101. Please try again in 6ms.", 429, TooLarge},
		{"no numbers", head + "see the documentation.", 429, TooLarge},
		{"fits", head + "Limit 30000, Requested 30000.", 429, RateLimit},
		{"fits, but the minute is full", "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29937, Requested 385. Please try again in 644ms.", 429, RateLimit},
		{"number too long to read", "Rate limit reached for m (TPM): Limit 30000, Used 1, Requested 99999999999999999999.", 429, RateLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Classify(c.status, openai("rate_limit_exceeded", "tokens", c.message))
			if v.Class != c.class || v.Retryable != (c.class == RateLimit) || v.Account || v.Dimension != "tokens" {
				t.Errorf("%+v", v)
			}
		})
	}
	for name, body := range map[string]string{
		"code":      `{"error":{"code":"context_length_exceeded","message":"x"}}`,
		"Anthropic": `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`,
		"Gemini":    `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}`,
	} {
		if v := Classify(400, []byte(body)); v.Class != TooLarge || v.Retryable {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestALimitOfZeroIsNoEntitlement(t *testing.T) {
	for name, body := range map[string]string{
		"OpenAI":       `{"error":{"code":"rate_limit_exceeded","type":"requests","message":"Rate limit reached for m (RPM): Limit 0, Used 0, Requested 1. Please try again in 1s."}}`,
		"Gemini text":  `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: m\nPlease retry in 45.5s."}}`,
		"Gemini value": `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinute","quotaValue":"0"}]},{"retryDelay":"5s"}]}}`,
	} {
		if v := Classify(429, []byte(body)); v.Class != Quota || v.Retryable || v.Account || v.Wait != 0 {
			t.Errorf("%s: %+v", name, v)
		}
	}
	// A limit that only begins with 0 or stands elsewhere is not a limit of 0.
	for _, line := range []string{"limit: 20, model: m", "limit: 05", "x-limit: 0", "limit: 0.5"} {
		body := openai("", "", "Quota exceeded for metric: m/requests, "+line+"\nPlease retry in 45.5s.")
		if v := Classify(429, body); !v.Retryable {
			t.Errorf("%s: %+v", line, v)
		}
	}
}

func TestGeminiDailyQuota(t *testing.T) {
	body := func(id string) []byte {
		return fmt.Appendf(nil, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"m","quotaId":%q,"quotaDimensions":{"model":"m"},"quotaValue":"25"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"5s"}]}}`, id)
	}
	if v := Classify(429, body("GenerateRequestsPerDayPerProjectPerModel-FreeTier")); v.Retryable || v.Class != Quota || v.Account || v.Wait != 0 || v.Dimension != "requests" {
		t.Errorf("day: %+v", v)
	}
	if v := Classify(429, body("GenerateContentInputTokensPerModelPerMinute-FreeTier")); !v.Retryable || v.Class != RateLimit || v.Wait != 5*time.Second || v.Dimension != "input" {
		t.Errorf("minute: %+v", v)
	}
}

func TestAWaitThatOnlyTheMessageNamesIsHeard(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
	}{
		{"Please retry after 33 seconds.", 33 * time.Second},
		{"retry after 33 seconds", 33 * time.Second},
		{"Please retry after 1 second.", time.Second},
		{"Please try again in 17m31.056s.", 17*time.Minute + 31056*time.Millisecond},
		{"Please try again in 644ms. Visit https://example.invalid to learn more.", 644 * time.Millisecond},
		{"Please try again in 7m12s", 7*time.Minute + 12*time.Second},
		{"Please try again in 1h0m0s", time.Hour},
		{"Please retry in 48.939935699s.", 48939935699},
		{"retry in 0.0000000001s.", 1},
		{"retry in 0.00000000010000000000000001ms.", 1},
		{"retry in 1.0000000000000s.", time.Second},
		{"retry in 1.00000000000001 seconds", time.Second + 1},
		{"try again in 1.5 hours", 90 * time.Minute},
		{"Token limit is exceeded. Try again in 26 seconds.", 26 * time.Second},
		{"Please wait 26 seconds before retrying.", 26 * time.Second},
		{"try again in 1 minute and 30 seconds.", 90 * time.Second},
		{"try again in 1 minute, 30 seconds.", 90 * time.Second},
		{"try again in 99999999999999999999999 seconds", MaxWait},
		{"try again in 9223372036s9ms", MaxWait},
		{"try again in 106751d23h", MaxWait},
		{"try again in 0s", 0},

		{"try again in a while", 0},
		{"try again in 5", 0},
		{"try again in 5 parsecs", 0},
		{"try again in 5 monthly instalments", 0},
		{"try again in -5s", 0},
		{"try again in +5s", 0},
		{"try again in 1e3s", 0},
		{"try again in 5.s", 0},
		{"try again in .5s", 0},
		{"try again in 1.2.3s", 0},
		{"try again in 5s10m", 0},
		{"try again in 5s5s", 0},
		{"try again in 5s-3", 0},
		{"try again in 5s9", 0},
		{"try again in 1m 5", 0},
		{"try again in 17m31.056", 0},
		{"do not-retry in 5s", 0},
		{"xretry in 5s", 0},
		{"retry in 5s·", 0},
	} {
		body := openai("rate_limit_exceeded", "tokens", c.text)
		if v := Classify(429, body); v.Wait != c.want || !v.Retryable {
			t.Errorf("%q: %v, want %v", c.text, v.Wait, c.want)
		}
		if v := Classify(429, []byte(c.text)); v.Wait != c.want || v.Known != (c.want > 0) {
			t.Errorf("plain %q: %v known %v, want %v", c.text, v.Wait, v.Known, c.want)
		}
	}
	t.Run("longest of text and RetryInfo", func(t *testing.T) {
		v := Classify(429, []byte(`{"error":{"status":"RESOURCE_EXHAUSTED","message":"Please retry in 48.939935699s.","details":[{"retryDelay":"48s"}]}}`))
		if v.Wait != 48939935699 {
			t.Errorf("%v", v.Wait)
		}
	})
	t.Run("cut in the middle of the number", func(t *testing.T) {
		whole := openai("rate_limit_exceeded", "tokens", "Please try again in 17m31.056s.")
		for n := range whole {
			if v := Classify(429, whole[:n]); v.Wait != 0 && v.Wait != 17*time.Minute+31056*time.Millisecond {
				t.Errorf("after %d bytes: wait %v", n, v.Wait)
			}
		}
	})
	t.Run("inside a stream", func(t *testing.T) {
		v := Classify(200, []byte("event: error\ndata: "+string(openai("rate_limit_exceeded", "", "Please try again in 6s."))+"\n\n"))
		if v.Class != RateLimit || v.Wait != 6*time.Second {
			t.Errorf("%+v", v)
		}
	})
}

// One model's limit is not the account's.
func TestOneModelsLimitIsNotTheAccounts(t *testing.T) {
	if v := Classify(429, openai("rate_limit_exceeded", "tokens", "Rate limit reached for m.")); v.Account || !v.Retryable {
		t.Errorf("one model: %+v", v)
	}
	if v := Classify(429, openai("insufficient_quota", "insufficient_quota", "x")); !v.Account || v.Retryable {
		t.Errorf("account: %+v", v)
	}
	if v := Classify(429, []byte(`{"error":{"message":"Rate limit exceeded: free-models-per-day","code":429}}`)); v.Account || v.Retryable {
		t.Errorf("free models only: %+v", v)
	}
}

// What a provider repeats of the caller's words decides nothing.
func TestEchoedText(t *testing.T) {
	for name, message := range map[string]string{
		"model name":  "The model `insufficient_quota try again in 9h` is busy. Please try again in 2s.",
		"quoted":      `The value "retry after 86400 seconds" is busy. Please try again in 2s.`,
		"first, bare": "You said retry after 86400 seconds. Please try again in 2s.",
		"inside":      "You said prompt is too long: 9 tokens > 1 maximum. Please try again in 2s.",
		"JSON":        `Rate limited: {"error":{"code":"insufficient_quota"}}. Please try again in 2s.`,
		"very long":   "Busy " + strings.Repeat("request too large for insufficient balance ", 2000) + " Please try again in 2s.",
	} {
		v := Classify(429, openai("rate_limit_exceeded", "tokens", message))
		if v.Class != RateLimit || !v.Retryable || v.Account || v.Wait != 2*time.Second {
			t.Errorf("%s: %+v", name, v)
		}
	}
	v := Classify(400, []byte(`{"error":{"message":"bad","type":"invalid_request_error","input":{"error":{"code":"rate_limit_exceeded"}},"code":null}}`))
	if v.Retryable || v.Class != Invalid || v.Code != "" {
		t.Errorf("nested echo: %+v", v)
	}
}

func TestStatusAlone(t *testing.T) {
	for status, want := range map[int]struct {
		class string
		retry bool
	}{
		498: {Overload, true}, 200: {"", false}, 0: {"", false}, 302: {"", false},
		400: {Invalid, false}, 401: {Invalid, false}, 403: {Invalid, false}, 404: {Invalid, false},
		402: {Quota, false}, 408: {Timeout, true}, 409: {Server, true}, 413: {TooLarge, false}, 422: {Invalid, false},
		425: {Server, true}, 429: {RateLimit, true}, 500: {Server, true}, 501: {Invalid, false}, 502: {Server, true},
		503: {Overload, true}, 504: {Timeout, true}, 520: {Server, true}, 529: {Overload, true}, 600: {"", false},
	} {
		for _, body := range []string{"", "{}", "{", "[]", "null", "<html>", "\x00\x01", `{"error":null}`} {
			v := Classify(status, []byte(body))
			if v.Class != want.class || v.Retryable != want.retry || v.Known || v.Wait != 0 {
				t.Errorf("%d %q: %+v", status, body, v)
			}
		}
	}
}

func TestSuccessIsNoRefusal(t *testing.T) {
	for _, body := range []string{
		`{"id":"x","type":"message","content":[{"text":"rate_limit_exceeded"}],"error":null}`,
		`{"message":"insufficient_quota, try again in 5s","code":"insufficient_quota"}`,
		`{"choices":[{"error":{"code":"insufficient_quota"}}]}`,
	} {
		if v := Classify(200, []byte(body)); v != (Verdict{}) {
			t.Errorf("%s: %+v", body, v)
		}
	}
}

// The work and the answer stay small for any body.
func TestHugeAndHostile(t *testing.T) {
	var zipped bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	zw.Write(openai("insufficient_quota", "", "x"))
	zw.Close()
	for name, body := range map[string][]byte{
		"gzip":        zipped.Bytes(),
		"deep arrays": bytes.Repeat([]byte("["), 10<<20),
		"deep errors": bytes.Repeat([]byte(`{"error":`), 1<<20),
		"escapes":     append([]byte(`{"error":{"message":"`), bytes.Repeat([]byte(`\"`), 5<<20)...),
		"backslashes": append([]byte(`{"error":{"message":"`), bytes.Repeat([]byte(`\\`), 5<<20)...),
		"long words":  openai(strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20), "z"),
		"many quotas": []byte(`{"error":{"details":[{"violations":[` + strings.Repeat(`{"quotaId":"x"},`, 10000) + `]}]}}`),
		"comments":    bytes.Repeat([]byte(":\n"), 5<<20),
		"metrics":     openai("", "", strings.Repeat("quota exceeded for metric: ", 10000)),
	} {
		v := Classify(429, body)
		if v.Class != RateLimit || !v.Retryable || v.Account || len(v.Code)+len(v.Type) > 2*maxWord {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// The table is only as good as its sources.
func TestEveryRuleHasASource(t *testing.T) {
	seen := 0
	for _, table := range [][]rule{rules[:], inStream[:], byStatus[:]} {
		for _, r := range table {
			seen++
			if r.source == "" || r.class == "" || r.account && r.retryable {
				t.Errorf("%+v", r)
			}
			if r.starts != strings.ToLower(r.starts) || r.holds != strings.ToLower(r.holds) {
				t.Errorf("sentences are compared in lower case: %+v", r)
			}
			if r.word == "" && r.starts == "" && r.holds == "" && r.below == 0 {
				t.Errorf("a rule without a condition: %+v", r)
			}
		}
	}
	if seen == 0 {
		t.Fatal("no rules")
	}
}

// A body never makes an unretryable status retryable by its sentence alone. A verdict
// on an account is never retryable, and a wait comes only with a retry.
func FuzzClassify(f *testing.F) {
	for _, e := range facts(f) {
		f.Add(e.Status, []byte(e.Body))
	}
	f.Add(429, []byte("try again in 17m31.056s"))
	f.Add(429, []byte(`[{"error":{"details":[{"retryDelay":"1.5s"}]}}]`))
	f.Add(200, []byte("data: {\"error\":\"x\"}"))
	f.Add(429, []byte("\xef\xbb\xbf{\"errors\":[{\"code\":3040}]}"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		v := ClassifyWith(status, body, Options{Now: noon})
		if v.Account && v.Retryable || v.Wait != 0 && !v.Retryable || v.Wait < 0 || v.Wait > MaxWait {
			t.Errorf("%+v", v)
		}
		if v.Limit < 0 || v.Used < 0 || v.Requested < 0 || len(v.Code) > 3*maxWord || len(v.Type) > 3*maxWord {
			t.Errorf("%+v", v)
		}
		if again := ClassifyWith(status, append([]byte("\r\n\r\n"), body...), Options{Now: noon}); len(body) < MaxBody-4 && !bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) && again != v {
			t.Errorf("leading blank lines change the verdict: %+v, then %+v", v, again)
		}
	})
}

func BenchmarkClassify(b *testing.B) {
	body := openai("rate_limit_exceeded", "tokens", "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29937, Requested 385. Please try again in 644ms.")
	b.ReportAllocs()
	for b.Loop() {
		Classify(429, body)
	}
}
