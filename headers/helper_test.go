package headers

import (
	"net/http"
	"strings"
	"time"
)

var (
	noon = time.Date(2026, 9, 19, 12, 0, 0, 0, time.UTC)
	y2k  = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// header reads "Name: value" lines.
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ":")
		h.Add(name, value)
	}
	return h
}

func known(n int64) Count { return Count{n, true} }

func after(d time.Duration) Span { return Span{d, true} }

func refused(lines ...string) Info { return Parse(header(lines...), Options{Status: 429, Now: noon}) }

func allowed(lines ...string) Info { return Parse(header(lines...), Options{Status: 200, Now: noon}) }

// dialects are the dialects of the recorded providers that have one.
var dialects = map[string]Dialect{
	// Groq, Rate Limits: requests fields are of a day, tokens fields of a minute.
	"groq": {Windows: []FieldWindow{{Dimension: "requests", Window: day}, {Dimension: "tokens", Window: time.Minute}}},
	// LiteLLM, Budgets and Rate Limits: key limits are per minute.
	"litellm-proxy": {Windows: []FieldWindow{
		{Dimension: "api_key_requests", Window: time.Minute},
		{Dimension: "api_key_tokens", Window: time.Minute},
		{Dimension: "model_per_key_requests", Window: time.Minute},
		{Dimension: "model_per_key_tokens", Window: time.Minute},
	}},
	// Azure OpenAI Responses API, recorded August 2026.
	"azure-openai": {StreamRefusal: true},
	// API-Football, Rate limits: the requests pair is per day, the plain pair per minute.
	"api-football": {Windows: []FieldWindow{{Dimension: "requests", Swapped: true, Window: day}, {Window: time.Minute}}},
}

// empty reports whether nothing at all is known.
func (i *Info) empty() bool {
	return !i.Requests.known() && !i.Tokens.known() && !i.Input.known() && !i.Output.known() &&
		len(i.Other)+len(i.Windows)+len(i.Policies) == 0 &&
		!i.NotBefore.OK && !i.ShouldRetry.OK
}
