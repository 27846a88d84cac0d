package profile

import (
	"github.com/tripmeter/tripmeter/estimate"
)

// profiles is the table.
var profiles = []Profile{
	{
		Name: "openai", Hosts: []string{"api.openai.com"},
		Rule:    estimate.Rule{Charge: estimate.ChargeEstimate, PromptByChars: true, ImageTokens: 765, RefusedCount: true},
		Dialect: "openai", Linear: true,
		Source: "OpenAI rate limits guide; fields of recorded responses", AsOf: "2026-10",
	},
	{
		// A fixed or sliding minute whose edges nobody tells: keep a distance.
		Name: "window", Rule: estimate.Rule{Charge: estimate.ChargeSettle, ReserveCap: true},
		Headroom: 95, StartEmpty: true,
	},
}
