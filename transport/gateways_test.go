package transport_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/internal/refusal"
	"github.com/tripmeter/tripmeter/transport"
)

// Refusals in the forms of gateways, clouds and inference servers, made for this test:
// each is of its class, and the next call leaves at the instant that it names.
func TestRefusalsOfGateways(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Now().Add(d).UTC() }
	type h = map[string]string
	const s, m = time.Second, time.Minute
	k := func(st int, hd h, b string) func() reply { return func() reply { return reply{st, hd, b} } }
	sse := h{"Content-Type": "text/event-stream"}
	for _, x := range []struct {
		name        string
		answer      func() reply
		least, most time.Duration // when the next call leaves
		class       string        // "": by the status alone, or in a success
	}{
		{"litellm cooldown", k(429, nil, `{"error":{"message":"No deployments available for selected model, Try again in 60 seconds. Passed model=gpt-4. pre-call-checks=False, cooldown_list=['abc']","type":"None","param":"None","code":"429"}}`), 60 * s, 70 * s, ""},
		{"litellm router rl", k(429, h{"Retry-After": "5"}, `{"error":{"message":"litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 1500. Please try again in 1s. Visit https://platform.openai.com/account/rate-limits to learn more.. Received Model Group=gpt-4o","type":null,"param":null,"code":"429"}}`), 5 * s, 8 * s, refusal.RateLimit},
		{"litellm parallel", k(429, h{"Retry-After": "30"}, `{"error":{"message":"Max parallel request limit reached Crossed TPM / RPM / Max Parallel Request Limit for api_key: abc. tpm limit: 1","type":"None","param":"None","code":"429"}}`), 30 * s, 33 * s, refusal.RateLimit},
		{"portkey", k(429, nil, `{"status":"failure","message":"Portkey Error: Request rate limit exceeded for the given API key. Please try again later.","success":false}`), 0, 5 * s, refusal.RateLimit},
		{"portkey budget", k(412, nil, `{"status":"failure","message":"Portkey Error: Usage limit exceeded for the given API key."}`), 0, 1 * s, ""},
		{"kong ai tokens", k(429, h{"X-AI-RateLimit-Reset-minute-azure": "17", "X-AI-RateLimit-Retry-After": "17"}, `{"message":"AI token rate limit exceeded for provider(s): azure"}`), 17 * s, 25 * s, refusal.RateLimit},
		{"envoy local", k(429, h{"X-Envoy-Ratelimited": "true"}, `local_rate_limited`), 0, 5 * s, refusal.RateLimit},
		{"envoy overload", k(503, h{"X-Envoy-Overloaded": "true"}, `upstream connect error or disconnect/reset before headers. reset reason: overflow`), 0, 5 * s, ""},
		{"cloudflare 1015", k(429, h{"Retry-After": "10"}, `error code: 1015`), 10 * s, 12 * s, refusal.RateLimit},
		{"cloudflare html", k(429, h{"Retry-After": "86", "Content-Type": "text/html"}, `<!DOCTYPE html><html><head><title>Access denied | api.x used Cloudflare to restrict access</title></head><body>You are being rate limited</body></html>`), 86 * s, 90 * s, refusal.RateLimit},
		{"cloudflare ai gateway", k(429, nil, `{"success":false,"result":[],"messages":[],"error":[{"code":2003,"message":"Rate limited"}]}`), 0, 5 * s, refusal.RateLimit},
		{"vercel", k(429, nil, `{"error":{"message":"Free credits temporarily have rate limits in place due to abuse. We are working on a resolution. Try again later, or pay for credits which continue to have unrestricted access.","type":"rate_limit_exceeded"}}`), 0, 5 * s, refusal.RateLimit},
		{"vercel no money", k(402, nil, `{"error":{"message":"Insufficient funds. Please add credits to your account to continue using AI services.","type":"insufficient_funds"}}`), 0, s, refusal.Quota},
		{"apim rate", k(429, h{"Retry-After": "27"}, `{ "statusCode": 429, "message": "Rate limit is exceeded. Try again in 27 seconds." }`), 27 * s, 30 * s, refusal.RateLimit},
		{"apim token", k(429, h{"Retry-After": "5"}, `{ "statusCode": 429, "message": "Token limit is exceeded. Try again in 59 seconds." }`), 59 * s, 65 * s, refusal.RateLimit},
		{"apim quota later", k(403, h{"Retry-After": "3600"}, `{ "statusCode": 403, "message": "Out of call volume quota. Quota will be replenished in 02:00:00." }`), 2 * time.Hour, 2*time.Hour + m, refusal.Quota},
		{"azure s0", k(429, h{"Retry-After": "44"}, `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-02-01 have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 44 seconds."}}`), 44 * s, 50 * s, refusal.RateLimit},
		{"azure ms vs s", k(429, h{"Retry-After": "44", "Retry-After-Ms": "43990"}, `{"error":{"code":"429","message":"x"}}`), 44 * s, 50 * s, refusal.RateLimit},
		{"bedrock wrapped", k(429, nil, `{"Message":"An error occurred (ThrottlingException) when calling the InvokeModel operation (reached max retries: 4): Too many requests, please wait before trying again. You have sent too many requests.  Wait before trying again."}`), 0, 5 * s, refusal.RateLimit},
		{"bedrock notready", k(429, nil, `{"message":"Model is not ready for inference","__type":"ModelNotReadyException"}`), 0, 5 * s, refusal.Overload},
		{"bedrock 503", k(503, nil, `{"message":"Bedrock is unable to process your request.","__type":"ServiceUnavailableException"}`), 0, 5 * s, refusal.Overload},
		{"vertex shared", k(429, nil, `[{"error":{"code":429,"message":"Resource exhausted. Please try again later. Please refer to https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429 for more details.","status":"RESOURCE_EXHAUSTED"}}]`), 0, 5 * s, refusal.Overload},
		{"vertex retryinfo", k(429, nil, `[{"error":{"code":429,"message":"Quota exceeded for aiplatform.googleapis.com/online_prediction_tokens_per_minute_per_base_model with base model: claude-sonnet-4. Please submit a quota increase request.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"19.5s"}]}}]`), 19500 * time.Millisecond, 25 * s, refusal.RateLimit},
		{"watsonx concurrency", k(429, nil, `{"errors":[{"code":"rate_limit_reached_requests","message":"Rate limit of 8 requests per second reached"}],"trace":"x","status_code":429}`), 0, 5 * s, refusal.RateLimit},
		{"dashscope concur", k(429, nil, `{"code":"Throttling.RateQuota","message":"You have exceeded your request limit. For details, see: https://help.aliyun.com","request_id":"x"}`), 0, 5 * s, refusal.RateLimit},
		{"moonshot quota 429", k(429, nil, `{"error":{"message":"Your account x is suspended, please check your plan and billing details","type":"exceeded_current_quota_error"}}`), 0, s, refusal.Quota},
		{"moonshot after 1 seconds", k(429, nil, `{"error":{"message":"Your account x request reached max request: 1, please try again after 7 seconds","type":"rate_limit_reached_error"}}`), 7 * s, 9 * s, refusal.RateLimit},
		{"minimax http 200 rate", k(200, nil, `{"id":"","choices":null,"base_resp":{"status_code":1002,"status_msg":"rate limit exceeded(RPM)"}}`), 0, 5 * s, ""},
		{"zhipu 1303", k(429, nil, `{"error":{"code":"1303","message":"您当前使用该API的频率过高，请降低频率，或联系客服增加限额。"}}`), 0, 5 * s, refusal.RateLimit},
		{"zhipu 1301", k(400, nil, `{"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容"}}`), 0, s, refusal.Invalid},
		{"baidu v2", k(429, nil, `{"error":{"code":"rpm_rate_limit_exceeded","message":"Rate limit reached for RPM","type":"rate_limit_exceeded"},"id":"x"}`), 0, 5 * s, refusal.RateLimit},
		{"baidu v2 tpm", k(429, nil, `{"error":{"code":"tpm_rate_limit_exceeded","message":"Rate limit reached for TPM","type":"rate_limit_exceeded"}}`), 0, 5 * s, refusal.RateLimit},
		{"volc tpm", k(429, nil, `{"error":{"code":"AccountRateLimitExceeded","message":"The request exceeded the rate limit of the account. Please try again later. Request id: 021","param":"","type":"TooManyRequests"}}`), 0, 5 * s, refusal.RateLimit},
		{"volc quota", k(429, nil, `{"error":{"code":"QuotaExceeded","message":"Your account 21 has exhausted its free trial quota for the x model. If you wish to continue using it, please activate the corresponding model in the Ark console.","type":"TooManyRequests"}}`), 0, s, refusal.Quota},
		{"volc inflight", k(429, nil, `{"error":{"code":"InflightBatchsizeExceeded","message":"The number of inflight batch requests has exceeded the limit.","type":"TooManyRequests"}}`), 0, 5 * s, refusal.RateLimit},
		{"stepfun", k(429, nil, `{"error":{"message":"you have reached the rate limit: concurrency 5","type":"request_limited"}}`), 0, 5 * s, refusal.RateLimit},
		{"stepfun 402", k(402, nil, `{"error":{"message":"Recharge required","type":"quota_exceeded"}}`), 0, s, refusal.Quota},
		{"perplexity html", k(429, h{"Content-Type": "text/html"}, "<html>\r\n<head><title>429 Too Many Requests</title></head>\r\n<body>\r\n<center><h1>429 Too Many Requests</h1></center>\r\n<hr><center>openresty/1.25.3.1</center>"), 0, 5 * s, refusal.RateLimit},
		{"writer", k(429, nil, `{"tpe":"rate_limit","errors":[{"description":"Rate limit exceeded: 400 requests per minute","key":"fail.rate.limit"}],"extras":{}}`), 0, 5 * s, refusal.RateLimit},
		{"snowflake 390112", k(429, nil, `{"code":"390112","message":"Your service request has been throttled. Please retry after 12 seconds","error_code":"390112"}`), 12 * s, 15 * s, refusal.RateLimit},
		{"replicate resets", k(429, nil, `{"detail":"Request was throttled. Your rate limit resets in ~30s.","status":429,"retry_after":30}`), 30 * s, 35 * s, refusal.RateLimit},
		{"replicate words only", k(429, nil, `{"detail":"Request was throttled. Your rate limit resets in ~30s.","status":429}`), 30 * s, 35 * s, refusal.RateLimit},
		{"fireworks", k(429, h{"X-Ratelimit-Over-Limit": "yes"}, `{"error":{"object":"error","type":"invalid_request_error","message":"You have exceeded your rate limit for this model"}}`), 0, 5 * s, refusal.RateLimit},
		{"fireworks 412", k(412, nil, `{"error":{"message":"Account x is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices."}}`), 0, s, ""},
		{"together dyn", k(429, h{"X-Ratelimit-Reset": "1"}, `{"id":"x","error":{"message":"Request was rejected due to dynamic rate limiting. Please slow down or upgrade.","type":"dynamic_request_limited","param":null,"code":null}}`), 0, 5 * s, refusal.RateLimit},
		{"nebius", k(429, nil, `{"detail":"Rate limit exceeded: tokens per minute"}`), 0, 5 * s, refusal.RateLimit},
		{"deepinfra rl", k(429, nil, `{"detail":"Rate limited, 200 concurrent requests per model"}`), 0, 5 * s, refusal.RateLimit},
		{"cerebras ret", k(429, h{"X-Should-Retry": "true", "Retry-After": "6"}, `{"message":"Requests per minute limit exceeded - too many requests sent.","type":"too_many_requests_error","param":"quota","code":"request_quota_exceeded"}`), 6 * s, 8 * s, refusal.RateLimit},
		{"nim", k(429, nil, `{"status":429,"title":"Too Many Requests","detail":"Rate limit exceeded, retry in 20 s"}`), 20 * s, 24 * s, refusal.RateLimit},
		{"tgi overloaded", k(429, nil, `{"error":"Model is overloaded","error_type":"overloaded"}`), 0, 5 * s, refusal.Overload},
		{"ollama busy", k(503, nil, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`), 0, 5 * s, refusal.Overload},
		{"vllm 503", k(503, h{"Retry-After": "3"}, `{"object":"error","message":"Server is sleeping","type":"ServiceUnavailable","code":503}`), 3 * s, 5 * s, refusal.Overload},
		{"anthropic stream overloaded", k(200, sse, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":14,\"output_tokens\":1}}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"), 100 * time.Millisecond, 5 * s, ""},
		{"anthropic stream rate w/ wait", k(200, sse, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"Rate limited. Please try again in 21 seconds.\"}}\n\n"), 21 * s, 25 * s, ""},
		{"openai stream rate", k(200, sse, "data: {\"error\":{\"message\":\"Rate limit reached for gpt-4o. Please try again in 8.64s.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}\n\ndata: [DONE]\n\n"), 8640 * time.Millisecond, 12 * s, ""},
		{"responses failed", k(200, sse, "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"Rate limit reached. Please try again in 11.5s.\"}}}\n\n"), 11500 * time.Millisecond, 15 * s, ""},
		{"gemini stream error", k(200, sse, "data: {\"error\":{\"code\":429,\"message\":\"x\",\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"9s\"}]}}\n\n"), 9 * s, 12 * s, ""},
		{"header date + body longer", func() reply {
			return reply{429, h{"Retry-After": at(5 * s).Format("Mon, 02 Jan 2006 15:04:05 GMT")}, `{"error":{"message":"rate limit, try again in 1m5s"}}`}
		}, 65 * s, 70 * s, refusal.RateLimit},
		{"discord-like", k(429, h{"X-Ratelimit-Reset-After": "3.25", "X-Ratelimit-Global": "true"}, `{"message":"You are being rate limited.","retry_after":3.25,"global":true}`), 3250 * time.Millisecond, 6 * s, refusal.RateLimit},
		{"problem+json", k(429, h{"Content-Type": "application/problem+json"}, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","violated-policies":["daily"]}`), 0, 30 * time.Hour, ""},
		{"openrouter meta", k(429, nil, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"message\":\"Rate limit reached, try again in 25s\"}}","provider_name":"X","headers":{"Retry-After":"25"}}}}`), 25 * s, 30 * s, refusal.Overload},
		{"xml", k(429, h{"Content-Type": "application/xml"}, `<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`), 0, 5 * s, refusal.RateLimit},
		{"504 gateway html", k(504, h{"Content-Type": "text/html"}, `<html><head><title>504 Gateway Time-out</title></head></html>`), 0, 5 * s, refusal.Timeout},
		{"524", k(524, nil, `error code: 524`), 0, 5 * s, ""},
		{"retry_after_seconds in details str", k(429, nil, `{"error":{"message":"slow down","details":{"retry_after_seconds":"16.2"}}}`), 16200 * time.Millisecond, 20 * s, refusal.RateLimit},
		{"minutes words", k(429, nil, `{"error":{"message":"Rate limit exceeded. Please try again in about 3 minutes."}}`), 3 * m, 4 * m, refusal.RateLimit},
		{"wait N more seconds", k(429, nil, `{"error":{"message":"Rate limit exceeded. Please wait another 40 seconds."}}`), 40 * s, 45 * s, refusal.RateLimit},
		{"retry after (N)s paren", k(429, nil, `{"message":"Too many requests. Retry after: 33s"}`), 33 * s, 36 * s, refusal.RateLimit},
		{"in N sec.", k(429, nil, `{"message":"Too many requests, retry in 33 sec."}`), 33 * s, 36 * s, refusal.RateLimit},
		{"wait_seconds member", k(429, nil, `{"error":"rate_limited","wait_seconds":18}`), 18 * s, 22 * s, refusal.RateLimit},
		{"ttl? unknown", k(429, nil, `{"error":"rate_limited","request_ttl":18000}`), 0, 5 * s, refusal.RateLimit},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := x.answer()
				gap, _ := next(t, transport.Options{RPM: 6000, TPM: 600_000}, r, chat)
				if gap < x.least || gap > x.most {
					t.Errorf("the next call left after %v; want %v to %v", gap, x.least, x.most)
				}
				if v := refusal.Classify(r.status, []byte(r.body)); x.class != "" && v.Class != x.class {
					t.Errorf("class %q, want %q", v.Class, x.class)
				}
			})
		})
	}
}
