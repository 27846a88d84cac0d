package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// since1970 is the instant in d from now, counted from 1970 in units.
func since1970(d, unit time.Duration) string {
	return fmt.Sprint(time.Now().Add(d).UnixNano() / int64(unit))
}

// said is a reply with header fields, as name, value, name, value.
func said(status int, body string, fields ...string) reply {
	return reply{status, nil, body}.with(fields...)
}

const rateLimited = `{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}`

// numbers are answers with one number that is odd: a wait, an instant, a reset, a
// balance, a limit or a count of usage. The next call leaves between least and most.
var numbers = []struct {
	name        string
	least, most time.Duration
	answer      func() reply
}{
	{"an instant with a fraction", 29 * time.Second, 32 * time.Second, func() reply { return said(503, "", "Retry-After", since1970(30*time.Second, time.Second)+".25") }},
	{"an instant with an exponent, in a body", 29 * time.Second, 32 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"x","retry_after":%.9e}}`, float64(time.Now().Add(30*time.Second).UnixMilli())))
	}},
	{"an instant as a string, in a body", 29 * time.Second, 32 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"x","retry_after_ms":"%s"}}`, since1970(30*time.Second, time.Millisecond)))
	}},
	{"resets_at in microseconds", 29 * time.Second, 32 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"x","resets_at":%s}}`, since1970(30*time.Second, time.Microsecond)))
	}},
	{"resets_in_seconds that is an instant", 29 * time.Second, 32 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"x","resets_in_seconds":%s}}`, since1970(30*time.Second, time.Millisecond)))
	}},
	{"resets_at that is past", 0, 5 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"x","resets_at":%s}}`, since1970(-3*time.Hour, time.Second)))
	}},
	{"a past date in a sentence", 0, 5 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"Rate limit. Try again at %s","type":"rate_limit_error"}}`, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)))
	}},
	{"a sentence, an instant in seconds", 29 * time.Second, 35 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"Rate limit. Try again at %s","type":"rate_limit_error"}}`, since1970(30*time.Second, time.Second)))
	}},
	{"a sentence, an instant in milliseconds", 29 * time.Second, 35 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"Rate limit. Try again at %s.","type":"rate_limit_error"}}`, since1970(30*time.Second, time.Millisecond)))
	}},
	{"a sentence, an instant with the unit seconds", 29 * time.Second, 35 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"Rate limit. Try again in %s seconds","type":"rate_limit_error"}}`, since1970(30*time.Second, time.Second)))
	}},
	{"a sentence, an instant with the unit ms", 29 * time.Second, 35 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"Rate limit. Try again in %sms","type":"rate_limit_error"}}`, since1970(30*time.Second, time.Millisecond)))
	}},
	{"a sentence, a past instant with a unit", 0, 5 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"Rate limit. Try again in %s seconds","type":"rate_limit_error"}}`, since1970(-30*time.Second, time.Second)))
	}},
	{"an instant with the unit s", 29 * time.Second, 35 * time.Second, func() reply { return said(503, "", "Retry-After", since1970(30*time.Second, time.Second)+"s") }},
	{"an instant with the unit ms", 29 * time.Second, 35 * time.Second, func() reply { return said(503, "", "Retry-After-Ms", since1970(30*time.Second, time.Millisecond)+"ms") }},
	{"retryDelay that is an instant", 29 * time.Second, 35 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"%ss"}]}}`, since1970(30*time.Second, time.Second)))
	}},
	{"a date of RFC 9651 in milliseconds", 29 * time.Second, 35 * time.Second, func() reply { return said(503, "", "Retry-After", "@"+since1970(30*time.Second, time.Millisecond)) }},
	{"a past date of RFC 9651", 0, time.Second, func() reply { return said(503, "", "Retry-After", "@"+since1970(-30*time.Second, time.Second)) }},
	{"an instant in quotes", 29 * time.Second, 35 * time.Second, func() reply { return said(503, "", "Retry-After", `"`+since1970(30*time.Second, time.Millisecond)+`"`) }},
	{"two instants, in two units", 59 * time.Second, 65 * time.Second, func() reply {
		return said(503, "", "Retry-After", since1970(30*time.Second, time.Second)+", "+since1970(60*time.Second, time.Millisecond))
	}},
	{"X-RateLimit-Retry-After in nanoseconds", 29 * time.Second, 35 * time.Second, func() reply {
		return said(429, rateLimited, "X-Ratelimit-Retry-After", since1970(30*time.Second, time.Nanosecond))
	}},
	{"X-AI-RateLimit-Retry-After in milliseconds", 29 * time.Second, 35 * time.Second, func() reply {
		return said(429, rateLimited, "X-Ai-Ratelimit-Retry-After", since1970(30*time.Second, time.Millisecond))
	}},
	{"X-Ratelimit-Timeremaining, an instant in seconds", 29 * time.Second, 35 * time.Second, func() reply {
		return said(429, rateLimited, "X-Ratelimit-Timeremaining", since1970(30*time.Second, time.Second))
	}},
	{"X-Ratelimit-Timeremaining, an instant in milliseconds", 29 * time.Second, 35 * time.Second, func() reply {
		return said(429, rateLimited, "X-Ratelimit-Timeremaining", since1970(30*time.Second, time.Millisecond))
	}},
	{"X-Ratelimit-Timeremaining of a year", ceiling, ceiling + 3*time.Minute, func() reply { return said(429, rateLimited, "X-Ratelimit-Timeremaining", "31536000") }},
	{"a date of 1970", 0, time.Second, func() reply { return said(503, "", "Retry-After", "Thu, 01 Jan 1970 00:00:00 GMT") }},
	{"a date of 9999", ceiling, ceiling + 3*time.Minute, func() reply { return said(503, "", "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT") }},
	{"a date of the year 1", 0, time.Second, func() reply { return said(503, "", "Retry-After", "Mon, 01 Jan 0001 00:00:00 GMT") }},
	{"a Date of 1970 beside an instant", 29 * time.Second, 35 * time.Second, func() reply {
		return said(503, "", "Retry-After", since1970(30*time.Second, time.Second), "Date", "Thu, 01 Jan 1970 00:00:00 GMT")
	}},
	{"a Date of 2099 beside an instant", 29 * time.Second, 35 * time.Second, func() reply {
		return said(503, "", "Retry-After", since1970(30*time.Second, time.Second), "Date", "Thu, 01 Jan 2099 00:00:00 GMT")
	}},
	{"a Date an hour behind beside a date", 29 * time.Second, 35 * time.Second, func() reply {
		n := time.Now().Add(-time.Hour).UTC()
		return said(503, "", "Retry-After", n.Add(30*time.Second).Format("Mon, 02 Jan 2006 15:04:05 GMT"), "Date", n.Format("Mon, 02 Jan 2006 15:04:05 GMT"))
	}},
	{"a Date of 1970 beside a date", 29 * time.Second, 35 * time.Second, func() reply {
		n := time.Now().UTC()
		return said(503, "", "Retry-After", n.Add(30*time.Second).Format("Mon, 02 Jan 2006 15:04:05 GMT"), "Date", "Thu, 01 Jan 1970 00:00:00 GMT")
	}},
	{"a century as ISO 8601 writes it", ceiling, ceiling + 3*time.Minute, func() reply { return said(503, "", "Retry-After", "PT876000H") }},
	{"days without end", ceiling, ceiling + 3*time.Minute, func() reply { return said(503, "", "Retry-After", "99999999999 days") }},
	{"a wait below zero", 0, 5 * time.Second, func() reply { return said(503, "", "Retry-After", "-1") }},
	{"-2^31 milliseconds", 0, 5 * time.Second, func() reply { return said(503, "", "Retry-After-Ms", "-2147483648") }},
	{"a member below zero", 0, 5 * time.Second, func() reply { return said(429, `{"error":{"message":"x","retry_after":-31536000}}`) }},
	{"2^31-1 seconds", ceiling, ceiling + 3*time.Minute, func() reply { return said(503, "", "Retry-After", "2147483647") }},
	{"2^32-1 seconds", ceiling, ceiling + 3*time.Minute, func() reply { return said(503, "", "Retry-After", "4294967295") }},
	{"2^31-1 milliseconds", ceiling, ceiling + 3*time.Minute, func() reply { return said(503, "", "Retry-After-Ms", "2147483647") }},
	{"a reset that is an instant", 0, 3 * time.Minute, func() reply {
		return said(200, ok, "X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", since1970(30*time.Second, time.Millisecond))
	}},
	{"a reset of a year", 0, 3 * time.Minute, func() reply {
		return said(200, ok, "X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "31536000")
	}},
	{"a reset of a year, refused", 0, ceiling + 3*time.Minute, func() reply {
		return said(429, rateLimited, "X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "31536000")
	}},
	{"a reset that is an instant, refused", 0, 3 * time.Minute, func() reply {
		return said(429, rateLimited, "X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", since1970(30*time.Second, time.Millisecond))
	}},
	{"a reset of 9999", 0, ceiling, func() reply {
		return said(200, ok, "Anthropic-Ratelimit-Tokens-Limit", "200000", "Anthropic-Ratelimit-Tokens-Remaining", "0", "Anthropic-Ratelimit-Tokens-Reset", "9999-12-31T23:59:59Z")
	}},
	{"a unified reset in a year", 0, ceiling + 3*time.Minute, func() reply {
		return said(429, rateLimited, "Anthropic-Ratelimit-Unified-Status", "rejected", "Anthropic-Ratelimit-Unified-Reset", since1970(400*ceiling, time.Second))
	}},
	{"resets_in_seconds of three years", 0, ceiling + 3*time.Minute, func() reply {
		return said(429, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":99999999}}`)
	}},
	{"a window of nineteen years", 0, ceiling + 3*time.Minute, func() reply {
		return said(200, ok, "X-Codex-Primary-Used-Percent", "100", "X-Codex-Primary-Window-Minutes", "9999999", "X-Codex-Primary-Reset-After-Seconds", "99999999")
	}},
	{"a share of 1000 times", 0, ceiling + 3*time.Minute, func() reply {
		return said(200, ok, "X-Codex-Primary-Used-Percent", "100000", "X-Codex-Primary-Window-Minutes", "300", "X-Codex-Primary-Reset-At", since1970(500*ceiling, time.Second))
	}},
	{"a balance of -1 without a limit", 0, 3 * time.Minute, func() reply { return said(200, ok, "X-Ratelimit-Remaining-Tokens", "-1") }},
	{"a balance of -2^40 tokens without a limit", 0, 3 * time.Minute, func() reply {
		return said(200, ok, "X-Ratelimit-Remaining-Tokens", "-1099511627776", "X-Ratelimit-Reset-Tokens", "30s")
	}},
	{"a balance of -2^40 requests without a limit", 0, 3 * time.Minute, func() reply {
		return said(200, ok, "X-Ratelimit-Remaining-Requests", "-1099511627776", "X-Ratelimit-Reset-Requests", "1h")
	}},
	{"a limit of one, a balance of -1", 0, 3 * time.Minute, func() reply {
		return said(200, ok, "X-Ratelimit-Limit-Tokens", "1", "X-Ratelimit-Remaining-Tokens", "-1")
	}},
	{"a limit of one a day", 0, ceiling + 3*time.Minute, func() reply {
		return said(200, ok, "X-Ratelimit-Limit-Requests-Day", "1", "X-Ratelimit-Remaining-Requests-Day", "-1")
	}},
	{"a limit of one a month", 0, ceiling, func() reply {
		return said(200, ok, "X-Ratelimit-Limit-Requests-Month", "1", "X-Ratelimit-Remaining-Requests-Month", "0")
	}},
	{"a window of 31,000 years", 0, ceiling, func() reply {
		return said(200, ok, "Ratelimit-Policy", `"a";q=1;w=999999999999`, "Ratelimit", `"a";r=0;t=999999999999`)
	}},
	{"a window of two days", 0, ceiling + 3*time.Minute, func() reply {
		return said(200, ok, "Ratelimit-Policy", `"a";q=1;w=172800`, "Ratelimit", `"a";r=0;t=172800`)
	}},
	{"a renewal period of 31 years", 0, ceiling, func() reply {
		return said(200, ok, "X-Ratelimit-Limit-Tokens", "10", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Renewalperiod-Tokens", "999999999")
	}},
	{"a sentence, a limit of zero", 0, 5 * time.Minute, func() reply {
		return said(429, `{"error":{"message":"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 0, Used 0, Requested 99. Please try again in 1s.","type":"tokens","code":"rate_limit_exceeded"}}`)
	}},
	{"a sentence, a limit of one", 0, 5 * time.Minute, func() reply {
		return said(429, `{"error":{"message":"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 1, Used 1, Requested 99. Please try again in 1s.","type":"tokens","code":"rate_limit_exceeded"}}`)
	}},
	{"a sentence, one request a day", 0, ceiling + 5*time.Minute, func() reply {
		return said(429, `{"error":{"message":"Rate limit reached for gpt-4o on requests per day (RPD): Limit 1, Used 1, Requested 1. Please try again in 24h0m0s.","type":"requests","code":"rate_limit_exceeded"}}`)
	}},
	{"more cached than read", 0, time.Second, func() reply {
		return said(200, `{"usage":{"input_tokens":10,"output_tokens":3,"cache_read_input_tokens":9007199254740991,"cache_creation_input_tokens":4294967295}}`)
	}},
	{"a total alone", 0, time.Second, func() reply { return said(200, `{"usage":{"total_tokens":9007199254740991}}`) }},
	{"more reasoning than output", 0, time.Second, func() reply {
		return said(200, `{"usage":{"prompt_tokens":10,"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":4294967295}}}`)
	}},
	{"usage of Gemini's form, thoughts", 0, time.Second, func() reply {
		return said(200, `{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":4294967295,"toolUsePromptTokenCount":4294967295}}`)
	}},
	{"usage of Ollama's form", 0, time.Second, func() reply {
		return said(200, `{"model":"m","done":true,"prompt_eval_count":4294967295,"eval_count":4294967295}`)
	}},
	{"usage of Bedrock's form", 0, time.Second, func() reply {
		return said(200, `{"usage":{"inputTokens":4294967295,"outputTokens":4294967295,"totalTokens":8589934590}}`)
	}},
	{"usage in a header", 0, time.Second, func() reply { return said(200, `{}`, "X-Amzn-Bedrock-Output-Token-Count", "4294967295") }},
	{"usage of Cohere's form", 0, time.Second, func() reply {
		return said(200, `{"usage":{"billed_units":{"input_tokens":4294967295,"output_tokens":4294967295},"tokens":{"input_tokens":4294967295,"output_tokens":4294967295}}}`)
	}},
	{"usage in a stream of Anthropic's form", 0, time.Second, func() reply {
		return said(200, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":4294967295,\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":4294967295}}\n\n", "Content-Type", "text/event-stream")
	}},
	{"years in a stream", 0, ceiling + 3*time.Minute, func() reply {
		return said(200, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"try again in 9999 days\"}}\n\n", "Content-Type", "text/event-stream")
	}},
	{"an instant in a stream", 29 * time.Second, 40 * time.Second, func() reply {
		return said(200, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"x\",\"reset_at\":"+since1970(30*time.Second, time.Millisecond)+"}}\n\n", "Content-Type", "text/event-stream")
	}},
	{"529, an instant", 29 * time.Second, 35 * time.Second, func() reply {
		return said(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "Retry-After", since1970(30*time.Second, time.Millisecond))
	}},
	{"529, ten years", ceiling, ceiling + 3*time.Minute, func() reply {
		return said(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "Retry-After", "315360000")
	}},
	{"500, ten years", 0, time.Second, func() reply { return said(500, "", "Retry-After", "315360000") }},
	{"301, ten years", 0, time.Second, func() reply { return said(301, "", "Retry-After", "315360000") }},
	{"413, ten years", 0, time.Second, func() reply { return said(413, "", "Retry-After", "315360000") }},
	{"401, ten years", 0, time.Second, func() reply { return said(401, "", "Retry-After", "315360000") }},
	{"200, ten years", 0, time.Second, func() reply { return said(200, ok, "Retry-After", "315360000") }},
	{"202, ten years", 0, time.Second, func() reply { return said(202, ok, "Retry-After", "315360000") }},
	{"a past reset in metadata", 0, 5 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"Rate limit exceeded: free-models-per-min. ","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"20","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"%s"},"provider_name":null}}}`, since1970(-90*time.Second, time.Millisecond)))
	}},
	{"a reset of ten years in metadata", 0, ceiling + 3*time.Minute, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"message":"Rate limit exceeded: free-models-per-day. ","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"%s"},"provider_name":null}}}`, since1970(4000*ceiling, time.Millisecond)))
	}},
	{"retryDelay as an object that is an instant", 29 * time.Second, 40 * time.Second, func() reply {
		return said(429, fmt.Sprintf(`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":{"seconds":%s,"nanos":0}}]}}`, since1970(30*time.Second, time.Second)))
	}},
	{"access on a day of 2999", 0, ceiling + 3*time.Minute, func() reply {
		return said(429, `{"type":"error","error":{"type":"rate_limit_error","message":"You will regain access on 2999-01-01 at 00:00 UTC."}}`)
	}},
	{"a reset of 2999 in a sentence", 0, ceiling + 3*time.Minute, func() reply {
		return said(429, `{"error":{"code":"1308","message":"Usage limit reached for 5 hour. Your limit will reset at 2999-01-01 00:00:00"}}`)
	}},
	{"quotaResetDelay of 11,000 years", 0, ceiling + 3*time.Minute, func() reply {
		return said(429, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","metadata":{"quotaResetDelay":"99999999h"}}]}}`)
	}},
}

// An answer may hold any number: the next call leaves at the longest time it can mean.
func TestEveryNumberIsBounded(t *testing.T) {
	for _, c := range numbers {
		for k, o := range map[string]transport.Options{"limits": {RPM: 6000, TPM: 600_000}, "none": {}} {
			t.Run(c.name+", "+k, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &scripted{answer: c.answer(), then: reply{200, nil, `{"usage":{"prompt_tokens":20,"completion_tokens":40}}`}}
					o.Base, o.Attempts = s, 1
					rt := gate(t, o)
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					if gap := s.gap(); gap < c.least || gap > c.most {
						t.Errorf("the next call left after %v; want %v to %v", gap, c.least, c.most)
					}
				})
			})
		}
	}
}

// Each pause is named in the error and in the snapshot: who asked for it, why, and until
// when. Resume ends it.
func TestEveryPauseIsNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		first reply
	}{
		{"503", said(503, "", "Retry-After", "3600")},
		{"429", said(429, "", "Retry-After", "3600")},
		{"529", said(529, "", "Retry-After", "3600")},
		{"sentence", said(429, `{"error":{"message":"Rate limit reached. Try again in 1 hour.","type":"rate_limit_error"}}`)},
		{"allowance with a reset", said(429, `{"error":{"code":"1308","message":"Usage limit reached for 5 hour. Your limit will reset at 2000-01-01T01:00:00Z"}}`)},
		{"allowance without a reset", said(429, `{"error":{"message":"Rate limit exceeded: free-models-per-day","code":429}}`)},
		{"a year", said(503, "", "Retry-After", "31536000")},
		{"rate in a stream", said(200, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"try again in 3600 seconds\"}}\n\n", "Content-Type", "text/event-stream")},
		{"overload in a stream", said(200, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"try again in 3600 seconds\"}}\n\n", "Content-Type", "text/event-stream")},
		{"403 of a gateway", said(403, errorBodies["gateway"], "Retry-After", "3600")},
	} {
		for kind, o := range map[string]transport.Options{"limits": {RPM: 6000, TPM: 600_000}, "none": {}, "MaxWait": {RPM: 6000, MaxWait: time.Minute}} {
			t.Run(c.name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { pauseIsNamed(t, o, c.first) })
			})
		}
	}
}

func pauseIsNamed(t *testing.T, o transport.Options, first reply) {
	o.Base, o.Attempts = &scripted{answer: first, then: reply{200, nil, ok}}, 1
	rt := gate(t, o)
	finish(rt.RoundTrip(ask(t, t.Context(), chat)))
	ctx := t.Context()
	if o.MaxWait == 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, time.Minute)
		defer cancel()
	}
	_, _, err := finish(rt.RoundTrip(ask(t, ctx, chat)))
	var e *limit.Error
	if !errors.As(err, &e) || e.By != "api.example.com" || e.Why == "" || !strings.Contains(err.Error(), "Transport.Resume") || strings.Contains(err.Error(), "send less") {
		t.Errorf("the error is %v", err)
	}
	snap := whole(rt)
	if snap.PausedBy != "api.example.com" || snap.PausedWhy == "" || !snap.PausedUntil.After(time.Now()) {
		t.Errorf("the snapshot is %v", snap)
	}
	if !strings.Contains(fmt.Sprint(rt), snap.PausedBy) {
		t.Errorf("the transport prints as %v", rt)
	}
	rt.Resume()
	start := time.Now()
	if finish(rt.RoundTrip(ask(t, t.Context(), chat))); time.Since(start) > 2*time.Second {
		t.Errorf("the call after Resume took %v", time.Since(start))
	}
}

// After a probe of any ending the next call goes when the answer lets it.
func TestProbesOfEveryEnding(t *testing.T) {
	status := func(code int) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) { return response(r, code, "", ""), nil }
	}
	waits := func(code int, value string) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) { return waitOf(code, value)(r), nil }
	}
	for _, c := range []struct {
		name        string
		answer      func(*http.Request) (*http.Response, error)
		least, most time.Duration
	}{
		{"its context ends", func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, 0, 10 * time.Minute},
		{"nobody listens", func(*http.Request) (*http.Response, error) { return nil, errDial }, 0, 2 * time.Minute},
		{"529", status(529), 500 * time.Millisecond, 2 * time.Minute},
		{"503", status(503), 500 * time.Millisecond, 2 * time.Minute},
		{"599", status(599), 0, 2 * time.Minute},
		{"600", status(600), 0, 2 * time.Minute},
		{"401", status(401), 0, 10 * time.Second},
		{"301", status(301), 0, 10 * time.Second},
		{"a past instant", func(r *http.Request) (*http.Response, error) {
			return waitOf(503, since1970(-time.Hour, time.Second))(r), nil
		}, 0, 2 * time.Minute},
		{"503, no wait", waits(503, "0"), 0, 2 * time.Minute},
		{"429, no wait", waits(429, "0"), 0, 2 * time.Minute},
		{"429, a year", waits(429, "31536000"), ceiling, ceiling + refill},
		{"years in a success", func(r *http.Request) (*http.Response, error) {
			return response(r, 200, "application/json", `{"error":{"message":"Rate limit reached. Please try again in 3650 days.","type":"rate_limit_error"}}`), nil
		}, ceiling, ceiling + refill},
		{"its body breaks", func(r *http.Request) (*http.Response, error) {
			resp := response(r, 200, "application/json", "")
			resp.Body = struct {
				io.Reader
				io.Closer
			}{broken{errReset}, resp.Body}
			return resp, nil
		}, 0, 2 * time.Minute},
		{"no money", func(r *http.Request) (*http.Response, error) {
			return response(r, 429, "application/json", errorBodies["quota"]), nil
		}, 0, 2 * time.Minute},
	} {
		for _, first := range []int{429, 503, 529} {
			t.Run(fmt.Sprint(c.name, " after ", first), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &sender{first: waitOf(first, "31536000"), answer: func(n int, r *http.Request) (*http.Response, error) {
						if n == 2 {
							return c.answer(r)
						}
						return response(r, 200, "", ""), nil
					}}
					rt := gate(t, transport.Options{Base: s, Attempts: 1, RPM: 600})
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					ctx, cancel := context.WithTimeout(t.Context(), ceiling+5*time.Minute)
					defer cancel()
					finish(rt.RoundTrip(ask(t, ctx, chat)))
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					if len(s.at) != 3 {
						t.Fatalf("%d calls left", len(s.at))
					}
					if d := s.at[1].Sub(s.at[0]); d < ceiling || d > ceiling+refill {
						t.Errorf("the probe left after %v", d)
					}
					if d := s.at[2].Sub(s.at[1]); d < c.least || d > c.most {
						t.Errorf("the next call left after %v; want %v to %v", d, c.least, c.most)
					}
				})
			})
		}
	}
}

// Of two waits the later counts. The answer of a call that left before a refusal ends no
// pause.
func TestTheLaterWaitCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		second reply // arrives a second after the wait was named, of a call that left with the refused one
		want   time.Duration
	}{
		{"an answer", said(200, ok), time.Hour},
		{"a shorter wait", said(503, "", "Retry-After", "5"), time.Hour},
		{"no wait", said(503, "", "Retry-After", "0"), time.Hour},
		{"a refusal without a wait", said(429, ""), time.Hour},
		{"a server error", said(500, ""), time.Hour},
		{"an overload", said(529, ""), time.Hour},
		{"a full balance", said(200, ok, "X-Ratelimit-Limit-Requests", "6000", "X-Ratelimit-Remaining-Requests", "5999"), time.Hour},
		{"a longer wait", said(503, "", "Retry-After", "7200"), 2*time.Hour + time.Second},
	} {
		for _, status := range []int{429, 503, 529} {
			for _, wait := range []string{"3600", "31536000"} {
				t.Run(fmt.Sprint(c.name, " after ", status, ", ", wait), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := &scripted{pick: func(n int, _ *http.Request) reply {
							switch n {
							case 1:
								return said(status, "", "Retry-After", wait)
							case 2:
								return c.second
							}
							return said(200, ok)
						}, delay: func(n int) time.Duration { return time.Duration(n) * time.Second }}
						rt := gate(t, transport.Options{Base: s, Attempts: 1, RPM: 6000, TPM: 600_000})
						var two sync.WaitGroup
						for range 2 {
							two.Go(func() { finish(rt.RoundTrip(ask(t, t.Context(), chat))) })
						}
						two.Wait()
						finish(rt.RoundTrip(ask(t, t.Context(), chat)))
						want := c.want
						if wait != "3600" {
							want = ceiling
						}
						if d := s.at[2].Sub(s.at[0]) - time.Second; d < want || d > want+refill {
							t.Errorf("the next call left after %v; want %v", d, want)
						}
					})
				})
			}
		}
	}
}

// A pause that one Transport met holds those that share its budget, and the Resume of
// each ends it.
func TestAPauseOfASharedBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answer: said(503, "", "Retry-After", "3600"), then: said(200, ok)}
		first := gate(t, transport.Options{Base: s, Attempts: 1, RPM: 6000})
		second := gate(t, transport.Options{Base: s, Attempts: 1, Scopes: transport.Scopes{Budget: first.Budget()}})
		finish(first.RoundTrip(ask(t, t.Context(), chat)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, _, err := finish(second.RoundTrip(ask(t, ctx, chat))); err == nil || !strings.Contains(err.Error(), "Transport.Resume") {
			t.Errorf("the error is %v", err)
		}
		time.AfterFunc(time.Minute, second.Resume)
		finish(first.RoundTrip(ask(t, t.Context(), chat)))
		if gap := s.gap(); gap != time.Minute {
			t.Errorf("the next call left after %v", gap)
		}
	})
}

// Instants in a refusal's body are measured from the Date of the response, as those in
// its header are. A Date that is no clock measures none.
func TestInstantsOfABodyAreOfTheServersClock(t *testing.T) {
	for name, date := range map[string]time.Duration{"an hour behind": -time.Hour, "an hour ahead": time.Hour, "right": 0} {
		for _, body := range []string{
			`{"error":{"message":"Rate limit","type":"rate_limit_error","reset_at":"%s"}}`,
			`{"error":{"message":"Rate limit","type":"rate_limit_error","retry_at":"%s"}}`,
			`{"error":{"message":"Rate limit reached. Try again at %s","type":"rate_limit_error"}}`,
			`{"error":{"code":"1308","message":"Usage limit reached. Your limit will reset at %s"}}`,
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					now := time.Now().Add(date).UTC()
					text := fmt.Sprintf(body, now.Add(30*time.Second).Format(time.RFC3339))
					s := &scripted{answer: said(429, text, "Date", now.Format(http.TimeFormat)), then: said(200, ok)}
					rt := gate(t, transport.Options{Base: s, Attempts: 1, RPM: 6000, TPM: 600_000})
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					if gap := s.gap(); gap < 29*time.Second || gap > 40*time.Second {
						t.Errorf("%s: the next call left after %v", text, gap)
					}
				})
			})
		}
	}
}

// A limit of a long window that one answer named holds the calls after it for one window.
// Then the answer that does not repeat it ends it.
func TestALongLimitThatIsNamedOnceEndsWithItsWindow(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  reply
		window time.Duration
	}{
		{"requests of a day", said(200, ok, "X-Ratelimit-Limit-Requests-Day", "1", "X-Ratelimit-Remaining-Requests-Day", "0"), 24 * time.Hour},
		{"requests of a day, refused", said(429, rateLimited, "X-Ratelimit-Limit-Requests-Day", "1", "X-Ratelimit-Remaining-Requests-Day", "0", "Retry-After", "1"), 24 * time.Hour},
		{"requests of an hour", said(200, ok, "X-Ratelimit-Limit-Requests-Hour", "1", "X-Ratelimit-Remaining-Requests-Hour", "0"), time.Hour},
		{"tokens of an hour", said(200, ok, "X-Ratelimit-Limit-Tokens-Hour", "10", "X-Ratelimit-Remaining-Tokens-Hour", "0"), time.Hour},
		{"a period of renewal", said(200, ok, "X-Ratelimit-Limit-Tokens", "10", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Renewalperiod-Tokens", "86400"), 24 * time.Hour},
		{"a policy", said(200, ok, "Ratelimit-Policy", `"d";q=1;w=43200`, "Ratelimit", `"d";r=0;t=43200`), 12 * time.Hour},
	} {
		for k, o := range map[string]transport.Options{"limits": {RPM: 600, TPM: 200_000}, "none": {}} {
			t.Run(c.name+", "+k, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &scripted{answer: c.first, then: said(200, ok)}
					o.Base, o.Attempts = s, 1
					rt := gate(t, o)
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					start := time.Now()
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					if d := time.Since(start); d > c.window+refill {
						t.Errorf("the second call left after %v", d)
					}
					for range 20 {
						finish(rt.RoundTrip(ask(t, t.Context(), chat)))
					}
					if d := time.Since(start); d > 2*c.window {
						t.Errorf("the calls after it took %v\n%v", d, rt.Snapshot())
					}
				})
			})
		}
	}
}
