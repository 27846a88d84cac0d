package profile

import (
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
)

// subSecond is the request capacity where a provider judges by the second:
// 60 a minute may mean one a second.
const subSecond = 200 * time.Millisecond

// openaiHeaders: the shares of a project, the images and the tokens that are
// charged by use are buckets of a minute (recorded responses, 2023 to 2026: the
// reset is what is missing times 60 s over the limit). The plain fields are of a
// minute or of a day, by account, which only their arithmetic tells.
var openaiHeaders = headers.Dialect{Windows: []headers.FieldWindow{
	{Dimension: "project_requests", Window: time.Minute},
	{Dimension: "project_tokens", Window: time.Minute},
	{Dimension: "input_images", Window: time.Minute},
	{Dimension: "tokens_usage_based", Window: time.Minute},
}}

// groqHeaders: the fields of requests are of a day, those of tokens of a minute
// (Groq, Rate Limits, 2026-10).
var groqHeaders = headers.Dialect{Windows: []headers.FieldWindow{
	{Dimension: "requests", Window: 24 * time.Hour},
	{Dimension: "tokens", Window: time.Minute},
}}

// litellmHeaders: limits of a key are per minute (LiteLLM, Budgets and Rate
// Limits, 2026-10).
var litellmHeaders = headers.Dialect{Windows: []headers.FieldWindow{
	{Dimension: "api_key_requests", Window: time.Minute},
	{Dimension: "api_key_tokens", Window: time.Minute},
	{Dimension: "model_per_key_requests", Window: time.Minute},
	{Dimension: "model_per_key_tokens", Window: time.Minute},
}}

// azureHeaders: every refused stream of the Responses API had a Retry-After,
// and no accepted call had one (recorded responses, 2026-08).
var azureHeaders = headers.Dialect{StreamRefusal: true}

// table is every provider that is known. A value that no source states is left
// at its zero, which is what an unknown provider gets.
var table = []Profile{
	{
		// The header debits a quarter of the characters of each text, one a
		// message and one, and, since March 2025, no output: it is never
		// corrected. (The guide speaks of the larger of max_tokens and the
		// prompt; until March 2025 the header showed their sum.)
		Name: "openai", Hosts: []string{"api.openai.com", "*.api.openai.com"},
		Rule:    estimate.Rule{Charge: estimate.ChargeEstimate, PromptByChars: true, ImageTokens: 765},
		Dialect: openaiHeaders, Linear: true,
		Source: "OpenAI rate limits guide; x-ratelimit fields of recorded responses", AsOf: "2026-10",
	},
	{
		// The header debits a quarter of the characters and no output. (The quota
		// page speaks of max_tokens too; recorded fields contradict it.) By that page
		// requests are judged over slices of 1 or 10 seconds.
		Name: "azure", Hosts: []string{"*.openai.azure.com", "*.cognitiveservices.azure.com", "*.services.ai.azure.com"},
		Rule:         estimate.Rule{Charge: estimate.ChargeEstimate, PromptByChars: true, RefusedCount: true},
		RequestBurst: subSecond, Dialect: azureHeaders,
		Source: "Microsoft, Manage Azure OpenAI quota; x-ratelimit fields of recorded responses", AsOf: "2026-10",
	},
	{
		// Continuous buckets for input and output apart; output counts as it is
		// produced, and reads from the cache do not count.
		Name: "anthropic", Hosts: []string{"api.anthropic.com"},
		Rule:         estimate.Rule{Charge: estimate.ChargeActual, CachedFree: true},
		RequestBurst: subSecond,
		Source:       "Anthropic rate limits page", AsOf: "2026-10",
	},
	{
		// A limit on tokens counts the prompt; a minute begins at :00. Waits
		// come in the body (google.rpc.RetryInfo).
		Name: "gemini", Hosts: []string{"generativelanguage.googleapis.com"},
		Rule:      estimate.Rule{Charge: estimate.ChargeSettle},
		InputOnly: true, Headroom: 95,
		Source: "Gemini API rate limits page; a forum report on the minute", AsOf: "2026-10",
	},
	{
		// The same limits behind Gemini's OpenAI-compatible paths.
		Name:      "gemini-openai",
		Rule:      estimate.Rule{Charge: estimate.ChargeSettle},
		InputOnly: true, Headroom: 95,
		Source: "Gemini API rate limits page; OpenAI compatibility page", AsOf: "2026-10",
	},
	{
		// Pay-as-you-go has no number to keep to: a shared quota refuses.
		Name: "vertex", Hosts: []string{"aiplatform.googleapis.com", "*-aiplatform.googleapis.com"},
		Rule:   estimate.Rule{Charge: estimate.ChargeSettle},
		Source: "Vertex AI, error code 429", AsOf: "2026-10",
	},
	{
		// Input, cache writes and max_tokens on arrival; at the end output
		// counts fivefold for Claude 3.7 and later, and cache reads are free.
		Name: "bedrock", Hosts: []string{"bedrock-runtime.*.amazonaws.com", "bedrock-runtime-fips.*.amazonaws.com", "bedrock-mantle.*.api.aws"},
		Rule: estimate.Rule{Charge: estimate.ChargeSettle, ReserveCap: true, CachedFree: true},
		Factors: []Factor{
			{"claude", 5}, {"claude-instant", 1}, {"claude-v2", 1}, {"claude-2", 1},
			{"claude-3-5", 1}, {"claude-3-opus", 1}, {"claude-3-sonnet", 1}, {"claude-3-haiku", 1},
		},
		RefusedFree: true,
		Source:      "Amazon Bedrock quotas, token burndown", AsOf: "2026-10",
	},
	{
		// A wall-clock minute; the balance is reported after the call, without
		// tokens from the cache. Audio is counted in seconds.
		Name: "mistral", Hosts: []string{"api.mistral.ai", "codestral.mistral.ai"},
		Rule:     estimate.Rule{Charge: estimate.ChargeSettle, CachedFree: true, AudioFree: true},
		Headroom: 95, RemainingAfter: true,
		Source: "Mistral limits page; query-cost fields of recorded responses", AsOf: "2026-10",
	},
	{
		// Continuous. Request fields are a day's, token fields a minute's.
		Name: "groq", Hosts: []string{"api.groq.com"},
		Rule:    estimate.Rule{Charge: estimate.ChargeSettle, CachedFree: true},
		Dialect: groqHeaders, Linear: true,
		Source: "Groq rate limits page", AsOf: "2026-10",
	},
	{
		// The cap is reserved (the model's maximum, if none is given), and
		// corrected.
		Name: "cerebras", Hosts: []string{"api.cerebras.ai"},
		Rule:   estimate.Rule{Charge: estimate.ChargeSettle, ReserveCap: true},
		Source: "Cerebras rate limits page", AsOf: "2026-10",
	},
	{
		// Requests a minute are enforced as a sixtieth each second.
		Name: "xai", Hosts: []string{"api.x.ai", "*.api.x.ai"},
		Rule:         estimate.Rule{Charge: estimate.ChargeSettle},
		RequestBurst: subSecond,
		Source:       "xAI rate limits page", AsOf: "2026-10",
	},
	{
		// No fixed limit: under load the connection is held open.
		Name: "deepseek", Hosts: []string{"api.deepseek.com"},
		Rule:   estimate.Rule{Charge: estimate.ChargeSettle},
		Source: "DeepSeek rate limit page", AsOf: "2026-10",
	},
	{
		// Limits follow use; 503 below one's own rate is the server's load.
		Name: "together", Hosts: []string{"api.together.xyz", "api.together.ai"},
		Rule:         estimate.Rule{Charge: estimate.ChargeSettle},
		RequestBurst: subSecond, RemainingAfter: true,
		Source: "Together rate limits page", AsOf: "2026-10",
	},
	{
		// Prompt and generated tokens apart, with limits that shrink and grow.
		Name: "fireworks", Hosts: []string{"api.fireworks.ai"},
		Rule:   estimate.Rule{Charge: estimate.ChargeActual},
		Source: "Fireworks rate limits page", AsOf: "2026-10",
	},
	{
		// Free models are limited by requests, failed ones included, a minute
		// and a UTC day, over all models whose name ends in :free.
		Name: "openrouter", Hosts: []string{"openrouter.ai"},
		Rule:     estimate.Rule{Charge: estimate.ChargeSettle},
		Together: []string{"*:free"},
		Source:   "OpenRouter limits page", AsOf: "2026-10",
	},
	{
		// A rolling minute of requests; the fields are gone on a refusal.
		Name: "cohere", Hosts: []string{"api.cohere.com", "api.cohere.ai"},
		Rule:     estimate.Rule{Charge: estimate.ChargeSettle},
		Headroom: 95, RemainingAfter: true,
		Source: "Cohere rate limits page", AsOf: "2026-10",
	},
	{
		// The fields are those of the deployment behind, not of the tier.
		Name: "github-models", Hosts: []string{"models.github.ai", "models.inference.ai.azure.com"},
		Rule:    estimate.Rule{Charge: estimate.ChargeSettle, ReserveCap: true},
		Foreign: true,
		Source:  "GitHub Models documentation; recorded responses", AsOf: "2026-10",
	},
	{
		// Nothing is published.
		Name: "nvidia", Hosts: []string{"integrate.api.nvidia.com"},
		Rule:   estimate.Rule{Charge: estimate.ChargeSettle, ReserveCap: true},
		Source: "third-party pages; no page of NVIDIA's states a limit", AsOf: "2026-10",
	},
	{
		// No limits of its own: what is set by hand holds.
		Name: "vllm", Rule: estimate.Rule{Charge: estimate.ChargeActual}, Unlimited: true,
		Source: "vLLM OpenAI-compatible server documentation", AsOf: "2026-10",
	},
	{
		// Counters in a window, written when the call ends.
		Name: "litellm", Rule: estimate.Rule{Charge: estimate.ChargeActual},
		Headroom: 95, Dialect: litellmHeaders, RemainingAfter: true,
		Source: "LiteLLM proxy documentation", AsOf: "2026-10",
	},
	{
		// Any fixed or sliding window whose edges cannot be seen.
		Name: "window", Rule: estimate.Rule{Charge: estimate.ChargeSettle, ReserveCap: true},
		Headroom: 95, StartEmpty: true,
		Source: "simulation against fixed and sliding minutes", AsOf: "2026-11",
	},
}
