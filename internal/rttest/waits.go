package rttest

import (
	"net/http"
	"strconv"
	"time"
)

// A Wait is one spelling of a refusal's wait.
type Wait struct {
	Name   string
	Header []string // name, value, name, value
	Body   string
	Want   time.Duration // the wait that it orders
	Order  Order
}

// An Order is what kind of order a Wait gives.
type Order int

const (
	Named      Order = iota // a wait, on every status that refuses
	Reset                   // the reset of an exhausted limit, on a 429 only
	Unreadable              // none: it must not be taken for a wait of zero
)

// Waits is every spelling of a wait that providers use, for a response that
// arrives at now. It is the one table of them: the tests of every layer that must
// keep a wait run over it.
//
// Report: hashicorp/go-retryablehttp#144, hashicorp/go-retryablehttp#138,
// hashicorp/go-retryablehttp#130, hashicorp/go-retryablehttp#143,
// Azure/go-autorest#410 (dates); asecurityteam/transport#33 (seconds);
// teng-lin/notebooklm-py#1275, NousResearch/hermes-agent#23178 (fractions);
// x402-foundation/x402#2614, pulseaiclub/phi#30 (unreadable);
// openai/openai-node#1108, cline/cline#5202 (in the body);
// vectorize-io/hindsight#3508 (resets); promptfoo/promptfoo#10322 (an instant);
// BaseIntelligence/bounty-challenge#8839 (a duration);
// nextcloud/integration_openai#359 (no dimension); productdevbook/misina#107
// (seconds or an epoch); AstroVela/vane#170 (zones); diegosouzapw/OmniRoute#14188,
// NousResearch/hermes-agent#26893 (members).
func Waits(now time.Time) []Wait {
	in5 := now.Add(5 * time.Second).UTC()
	date := []string{"Date", now.UTC().Format(http.TimeFormat)} // both of one clock
	dated := func(layout string) []string { return append([]string{"Retry-After", in5.Format(layout)}, date...) }
	unix := func(name string, n int64) []string { return append([]string{name, strconv.FormatInt(n, 10)}, date...) }
	const text = `{"error":{"message":"Requests to the model have exceeded the rate limit. Please retry after 33 seconds."}}`
	waits := []Wait{
		{Name: "a date", Header: dated(http.TimeFormat), Want: 5 * time.Second},
		{Name: "a date of RFC 850", Header: dated("Monday, 02-Jan-06 15:04:05 GMT"), Want: 5 * time.Second},
		{Name: "a date of asctime", Header: dated(time.ANSIC), Want: 5 * time.Second},
		{Name: "seconds are seconds", Header: []string{"Retry-After", "2"}, Want: 2 * time.Second},
		{Name: "a fraction", Header: []string{"Retry-After", "1.5"}, Want: 1500 * time.Millisecond},
		{Name: "less than a second", Header: []string{"Retry-After", "0.5"}, Want: 500 * time.Millisecond},
		{Name: "spaces around", Header: []string{"Retry-After", " 2 "}, Want: 2 * time.Second},
		{Name: "seconds with their unit", Header: []string{"Retry-After", "3 seconds"}, Want: 3 * time.Second},
		{Name: "seconds in quotes, with parameters", Header: []string{"Retry-After", `"3";x`}, Want: 3 * time.Second},
		{Name: "hours, minutes and seconds", Header: []string{"Retry-After", "00:00:45"}, Want: 45 * time.Second},
		{Name: "the field of gateways", Header: []string{"X-Retry-After", "45"}, Want: 45 * time.Second},
		{Name: "the field of gateways in milliseconds", Header: []string{"X-Retry-After-Ms", "2500"}, Want: 2500 * time.Millisecond},
		{Name: "the field of other gateways", Header: []string{"X-RateLimit-Retry-After", "45"}, Want: 45 * time.Second},
		{Name: "an instant in the field of other gateways", Header: unix("X-RateLimit-Retry-After", in5.Unix()), Want: 5 * time.Second},
		{Name: "the field of Kong's AI gateway", Header: []string{"X-AI-RateLimit-Retry-After", "29", "X-AI-RateLimit-Reset", "29"}, Want: 29 * time.Second},
		{Name: "an empty member", Header: []string{"Retry-After", "3,"}, Want: 3 * time.Second},
		{Name: "milliseconds", Header: []string{"Retry-After-Ms", "2500"}, Want: 2500 * time.Millisecond},
		{Name: "the longest of two", Header: []string{"Retry-After-Ms", "100", "Retry-After", "3"}, Want: 3 * time.Second},
		{Name: "no milliseconds beside a second", Header: []string{"Retry-After-Ms", "0", "Retry-After", "1"}, Want: time.Second},
		{Name: "an instant in seconds", Header: unix("Retry-After", in5.Unix()), Want: 5 * time.Second},
		{Name: "an instant in milliseconds", Header: unix("Retry-After", in5.UnixMilli()), Want: 5 * time.Second},
		{Name: "an instant in microseconds", Header: unix("Retry-After", in5.UnixMicro()), Want: 5 * time.Second},
		{Name: "an instant in a field of milliseconds", Header: unix("Retry-After-Ms", in5.UnixMilli()), Want: 5 * time.Second},
		{Name: "an instant in Azure's field", Header: unix("X-Ms-Retry-After-Ms", in5.UnixMilli()), Want: 5 * time.Second},
		{Name: "a date with an offset", Header: dated("Mon, 02 Jan 2006 15:04:05 +0000"), Want: 5 * time.Second},
		{Name: "a date in UTC", Header: dated("Mon, 02 Jan 2006 15:04:05 UTC"), Want: 5 * time.Second},
		{Name: "a date of RFC 3339", Header: dated(time.RFC3339), Want: 5 * time.Second},
		{Name: "two lines that a proxy joined", Header: []string{"Retry-After", "2, 3"}, Want: 3 * time.Second},
		{Name: "a member of the body", Body: `{"error":{"message":"limited","retry_after":42}}`, Want: 42 * time.Second},
		{Name: "a reset in the body", Body: `{"error":{"type":"usage_limit_reached","resets_in_seconds":42}}`, Want: 42 * time.Second},
		{Name: "a duration of a protocol buffer", Body: `{"error":{"details":[{"retryDelay":{"seconds":"41","nanos":999999999}}]}}`, Want: 42*time.Second - 1},
		{Name: "a sentence in Chinese", Body: `{"error":{"message":"请求频率过高，请在 42 秒后重试"}}`, Want: 42 * time.Second},
		{Name: "the time remaining", Header: []string{"X-Ratelimit-Timeremaining", "7"}, Want: 7 * time.Second},
		{Name: "only in the text", Body: text, Want: 33 * time.Second},
		{Name: "longer in the text", Header: []string{"Retry-After", "1"}, Body: text, Want: 33 * time.Second},
		{Name: "no dimension beside the order", Header: []string{"Retry-After", "1", "X-Ratelimit-Remaining", "0", "X-Ratelimit-Burst", "10"}, Want: time.Second},
	}
	for _, v := range []string{"+3", "3 parsecs", "1e3", "", "-1", "NaN", "soon", "1,000"} {
		waits = append(waits, Wait{Name: "unreadable " + strconv.Quote(v), Header: []string{"Retry-After", v}, Order: Unreadable})
	}
	return append(waits, resets(now)...)
}

// resets are the waits for the reset of an exhausted limit.
func resets(now time.Time) []Wait {
	return []Wait{
		{Name: "the later of the exhausted", Header: []string{
			"X-Ratelimit-Limit-Tokens", "60000", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "50s",
			"X-Ratelimit-Remaining-Requests", "5", "X-Ratelimit-Reset-Requests", "2s",
		}, Want: 50 * time.Second, Order: Reset},
		{Name: "an instant, not a year", Header: []string{
			"Anthropic-Ratelimit-Tokens-Limit", "60000", "Anthropic-Ratelimit-Tokens-Remaining", "0",
			"Anthropic-Ratelimit-Tokens-Reset", now.Add(30 * time.Second).UTC().Format(time.RFC3339),
		}, Want: 30 * time.Second, Order: Reset},
		{Name: "a duration with minutes", Header: []string{
			"X-Ratelimit-Limit-Requests", "10", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "0m40s",
		}, Want: 40 * time.Second, Order: Reset},
		{Name: "a duration of ISO 8601", Header: []string{
			"X-Ratelimit-Limit-Requests", "10", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "PT40S",
		}, Want: 40 * time.Second, Order: Reset},
		{Name: "a reset in seconds", Header: []string{
			"X-Ratelimit-Limit", "10", "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "30",
		}, Want: 30 * time.Second, Order: Reset},
		{Name: "a reset of the epoch", Header: []string{
			"X-Ratelimit-Limit", "10", "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", strconv.FormatInt(now.Add(30*time.Second).Unix(), 10),
		}, Want: 30 * time.Second, Order: Reset},
	}
}
