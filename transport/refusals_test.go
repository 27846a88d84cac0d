package transport_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// next is how long after the answer of the first call the second one leaves, and what
// was missing from the token limit in between.
func next(t *testing.T, o transport.Options, first reply, body string) (gap time.Duration, missing int64) {
	t.Helper()
	gap, missing, _ = drained(t, o, first, body)
	return gap, missing
}

// drained is next, and what was missing from the request limit too.
func drained(t *testing.T, o transport.Options, first reply, body string) (gap time.Duration, tokens, requests int64) {
	t.Helper()
	s := &scripted{answer: first, then: reply{200, nil, `{"usage":{"prompt_tokens":20,"completion_tokens":40}}`}}
	o.Base, o.Attempts = s, 1
	if o.TPM == 0 {
		o.TPM, o.RPM = 600_000, 6000
	}
	rt := gate(t, o)
	finish(rt.RoundTrip(ask(t, t.Context(), body)))
	l, r := state(t, rt, "tokens per minute"), state(t, rt, "requests per minute")
	tokens, requests = l.Capacity-balance(l), r.Capacity-balance(r)
	finish(rt.RoundTrip(ask(t, t.Context(), body)))
	return s.gap(), tokens, requests
}

// Overload says nothing of the credit: everybody rests a moment, and nothing is
// drained, under any status and words.
func TestOverloadIsNoRate(t *testing.T) {
	for _, c := range []struct {
		name  string
		first reply
	}{
		{"529", reply{529, nil, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}},
		{"529 without a body", reply{529, nil, ""}},
		{"429, flex tier", reply{429, nil, `{"error":{"message":"Resource unavailable","type":"resource_unavailable","code":"resource_unavailable"}}`}},
		{"429, overloaded model", reply{429, nil, `{"error":{"message":"That model is currently overloaded with other requests.","type":"server_error"}}`}},
		{"429, engine overloaded", reply{429, nil, `{"error":{"message":"The engine is currently overloaded, please try again later","type":"engine_overloaded_error"}}`}},
		{"498", reply{498, nil, `{"error":{"message":"Flex tier capacity exceeded. Please try again later.","type":"flex_capacity","code":"capacity_exceeded"}}`}},
		{"498 without a body", reply{498, nil, ""}},
		{"inside a success, Zhipu", reply{200, nil, `{"error":{"code":"1305","message":"该模型当前访问量过大，请您稍后再试"}}`}},
		{"inside a stream", reply{200, map[string]string{"Content-Type": "text/event-stream"}, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gap, missing := next(t, transport.Options{}, c.first, chat)
				if gap < 500*time.Millisecond || gap > 2*time.Second {
					t.Errorf("the next call left after %v", gap)
				}
				if missing > 1000 {
					t.Errorf("%d tokens were drained", missing)
				}
			})
		})
	}
}

// A named wait of an overload is kept.
func TestOverloadWithAWait(t *testing.T) {
	for _, status := range []int{429, 503, 529} {
		synctest.Test(t, func(t *testing.T) {
			gap, _ := next(t, transport.Options{}, reply{status, map[string]string{"Retry-After": "20"}, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, chat)
			if gap < 20*time.Second || gap > 25*time.Second {
				t.Errorf("%d: the next call left after %v", status, gap)
			}
		})
	}
}

// Six overloads in a row take what the backoff of two calls takes. Waits of a streak
// would double up to a minute.
func TestOverloadsInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answer: reply{429, nil, `{"error":{"message":"Resource unavailable","type":"resource_unavailable"}}`}}
		rt := gate(t, transport.Options{Base: s, RPM: 6000, TPM: 600_000})
		start := time.Now()
		for range 2 {
			finish(rt.RoundTrip(ask(t, t.Context(), chat)))
		}
		if d := time.Since(start); len(s.at) != 6 || d > 8*time.Second {
			t.Errorf("%d attempts took %v", len(s.at), d)
		}
	})
}

// One overload in ten answers costs a tenth of the throughput, not all of it.
func TestOverloadsNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{pick: func(n int, _ *http.Request) reply {
			if n%10 == 0 {
				return reply{529, nil, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}
			}
			return reply{200, nil, `{"usage":{"prompt_tokens":20,"completion_tokens":40}}`}
		}}
		rt := gate(t, transport.Options{Base: s, RPM: 6000, Attempts: 1})
		end := time.Now().Add(5 * time.Minute)
		calls := 0
		for time.Now().Before(end) {
			calls++
			finish(rt.RoundTrip(ask(t, t.Context(), chat)))
		}
		if calls < 25_000 {
			t.Errorf("%d calls in five minutes of 6000 a minute", calls)
		}
	})
}

// A refusal for the rate can come inside a success or a stream. It slows down later
// calls and drains, as the same refusal with a status does.
func TestRateRefusedInsideASuccess(t *testing.T) {
	const wait = `{"error":{"message":"Rate limit reached. Please try again in 33s.","type":"tokens","code":"rate_limit_exceeded"}}`
	const bare = `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`
	for _, c := range []struct {
		name        string
		first       reply
		least, most time.Duration
		requests    bool // it speaks of requests, and so they are drained and no tokens
	}{
		{"with a wait", reply{200, nil, wait}, 33 * time.Second, 40 * time.Second, false},
		{"without", reply{200, nil, bare}, 500 * time.Millisecond, 5 * time.Second, false},
		{"MiniMax, tokens", reply{200, nil, `{"base_resp":{"status_code":1039,"status_msg":"token limit"}}`}, 500 * time.Millisecond, 5 * time.Second, false},
		{"MiniMax, requests", reply{200, nil, `{"base_resp":{"status_code":1002,"status_msg":"rate limit exceeded(RPM)"}}`}, 500 * time.Millisecond, 5 * time.Second, true},
		{"Qianfan, requests", reply{200, nil, `{"error_code":18,"error_msg":"Open api qps request limit reached"}`}, 500 * time.Millisecond, 5 * time.Second, true},
		{"in a stream", reply{200, map[string]string{"Content-Type": "text/event-stream"}, "data: " + wait + "\n\n"}, 33 * time.Second, 40 * time.Second, false},
		{"with a status", reply{429, nil, wait}, 33 * time.Second, 40 * time.Second, false},
		{"with a status, requests", reply{429, nil, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`}, 500 * time.Millisecond, 5 * time.Second, true},
		{"Bedrock on 400", reply{400, map[string]string{"X-Amzn-Errortype": "ThrottlingException"}, `{"message":"Too many tokens, please wait before trying again."}`}, 500 * time.Millisecond, 5 * time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gap, tokens, requests := drained(t, transport.Options{}, c.first, chat)
				if gap < c.least || gap > c.most {
					t.Errorf("the next call left after %v", gap)
				}
				// Of 600,000 tokens a minute 100,000 are there at first; of 6,000 requests 100.
				if c.requests && (requests < 99 || tokens > 1000) || !c.requests && tokens < 99_000 {
					t.Errorf("%d tokens and %d requests were drained", tokens, requests)
				}
			})
		})
	}
}

// An allowance that is used up until a time that the body names holds everybody until
// then. An account without money holds nobody: each call gets the provider's answer.
func TestAnAllowanceThatComesBack(t *testing.T) {
	for _, c := range []struct {
		name        string
		first       reply
		least, most time.Duration
	}{
		{"Z.ai 1308", reply{429, nil, `{"error":{"code":"1308","message":"Usage limit reached for 5 hour. Your limit will reset at 2000-01-01 11:00:00"}}`}, 3 * time.Hour, 3*time.Hour + time.Minute}, // in UTC+8
		{"Zhipu 1308", reply{429, nil, `{"error":{"code":"1308","message":"已达到 5 小时的使用上限。您的限额将在 2000-01-01 11:00:00 重置。"}}`}, 3 * time.Hour, 3*time.Hour + time.Minute},
		{"Z.ai 1308 with a zone", reply{429, nil, `{"error":{"code":"1308","message":"Usage limit reached for 5 hour. Your limit will reset at 2000-01-01T11:00:00Z"}}`}, 11 * time.Hour, 11*time.Hour + time.Minute},
		{"another without a zone", reply{429, nil, `{"error":{"code":"usage_limit_reached","message":"Your limit will reset at 2000-01-01 11:00:00"}}`}, 11 * time.Hour, 11*time.Hour + time.Minute},
		{"resets_in_seconds", reply{429, nil, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":756}}`}, 756 * time.Second, 800 * time.Second},
		{"403 of a gateway", reply{403, map[string]string{"Retry-After": "7200"}, `{"statusCode":403,"message":"Out of call volume quota. Quota will be replenished in 02:00:00."}`}, 2 * time.Hour, 2*time.Hour + time.Minute},
		{"no balance", reply{429, nil, `{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}`}, 0, time.Second},
		{"no money", reply{429, nil, errorBodies["quota"]}, 0, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gap, _ := next(t, transport.Options{}, c.first, chat)
				if gap < c.least || gap > c.most {
					t.Errorf("the next call left after %v; want %v to %v", gap, c.least, c.most)
				}
			})
		})
	}
}

// One caller of a model that always refuses does not hold up the callers of another
// model. The host does not show whether its limits are a model's or the account's.
func TestARefusingModelDoesNotHoldTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served atomic.Int64
		rt := gate(t, transport.Options{RPM: 600, Base: rttest.Func(func(r *http.Request) (*http.Response, error) {
			rttest.Drain(r)
			if r.Header.Get("X-Model") == "refusing" {
				return response(r, 429, "application/json", `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`), nil
			}
			time.Sleep(100 * time.Millisecond)
			served.Add(1)
			return response(r, 200, "application/json", `{"usage":{"prompt_tokens":20,"completion_tokens":40}}`), nil
		})})
		end := time.Now().Add(10 * time.Minute)
		caller := func(name string, done chan bool) {
			for time.Now().Before(end) {
				req := ask(t, t.Context(), strings.Replace(chat, "gpt-4o", name, 1))
				req.Header.Set("X-Model", name)
				finish(rt.RoundTrip(req))
			}
			done <- true
		}
		done := make(chan bool)
		go caller("refusing", done)
		for range 20 {
			go caller("healthy", done)
		}
		for range 21 {
			<-done
		}
		if served.Load() < 5000 {
			t.Errorf("%d answers in ten minutes", served.Load())
		}
	})
}

// The header of Bedrock states what a call cost; its body does not.
// Report: maximhq/bifrost#3917
func TestUsageInTheHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got limit.Cost
		s := &scripted{answer: reply{200, map[string]string{"X-Amzn-Bedrock-Input-Token-Count": "31", "X-Amzn-Bedrock-Output-Token-Count": "8"}, `{"outputText":"Hello"}`}}
		rt := gate(t, transport.Options{Base: s, Trace: transport.Trace{Settled: func(s transport.Settlement) { got = s.Charged }}})
		finish(rt.RoundTrip(ask(t, t.Context(), chat)))
		if got != (limit.Cost{Requests: 1, Input: 31, Output: 8}) {
			t.Errorf("charged %v", got)
		}
	})
}

// Refusals in a row double what everybody waits, also where each of them comes with a
// header that sounds like an answer: 200, 400 or 403.
func TestRefusalsInARowByAnyStatus(t *testing.T) {
	for name, r := range map[string]reply{
		"429":         {429, nil, `{"error":{"type":"rate_limit_error","message":"slow down"}}`},
		"400, header": {400, map[string]string{"X-Amzn-Errortype": "ThrottlingException"}, `{"message":"Rate exceeded"}`},
		"400, body":   {400, nil, `{"__type":"ThrottlingException","message":"Rate exceeded"}`},
		"403":         {403, nil, `{"error":{"code":403,"errors":[{"reason":"rateLimitExceeded"}],"message":"Rate Limit Exceeded"}}`},
		"200":         {200, nil, `{"base_resp":{"status_code":1039,"status_msg":"token limit"}}`},
		"a stream":    {200, map[string]string{"Content-Type": "text/event-stream"}, "data: {\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow down\"}}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{answer: r}
				rt := gate(t, transport.Options{Base: s, RPM: 6000, Attempts: 1})
				for range 8 {
					finish(rt.RoundTrip(ask(t, t.Context(), chat)))
				}
				if d := s.at[7].Sub(s.at[0]); d < 60*time.Second || d > 4*time.Minute {
					t.Errorf("eight refusals in a row took %v", d)
				}
			})
		})
	}
}
