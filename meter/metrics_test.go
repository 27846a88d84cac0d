package meter

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// Names, units and labels keep to the rules, names come once, and every point has
// a value for each label.
func TestMetricsAreWellFormed(t *testing.T) {
	m := New(Options{Scope: func(*http.Request) string { return "model" }})
	l, err := limit.New(limit.Options{Limits: []limit.Limit{{Name: "rpm", Rate: limit.PerMinute(60)}}})
	if err != nil {
		t.Fatal(err)
	}
	m.Watch("a", l)
	tr := m.Trace("a")
	for _, genAI := range []GenAI{Stable, Latest, Off} {
		if genAI == Latest { // once with calls
			r := &http.Request{URL: &url.URL{Host: "api.openai.com", Path: "/v1/chat/completions"}}
			tr.Queued(r, limit.Cost{Requests: 1})
			tr.Granted(r, limit.Cost{}, 0)
			tr.Settled(transport.Settlement{Request: r, Status: 200, Usage: transport.Usage{Input: 5, Output: 7, Found: true}})
		}
		names := map[string]bool{}
		for _, v := range m.Metrics(genAI) {
			if !regexp.MustCompile(`^(tripmeter|gen_ai)(\.[a-z_]+)+$`).MatchString(v.Name) || names[v.Name] || !strings.HasSuffix(v.Help, ".") {
				t.Errorf("%q: %q", v.Name, v.Help)
			}
			names[v.Name] = true
			for _, p := range v.Points {
				if len(p.Values) != len(v.Labels) || (p.Histogram != nil) != (v.Kind == Distributed) || p.Value < 0 {
					t.Errorf("%s: %+v for labels %v", v.Name, p, v.Labels)
				}
			}
			if len(v.Points) == 0 && strings.HasPrefix(v.Name, "tripmeter.") {
				t.Errorf("%s has no series at the start", v.Name)
			}
		}
		for set, name := range map[GenAI]string{Stable: "gen_ai.client.operation.duration", Latest: "gen_ai.client.inference.duration"} {
			if names[name] != (set == genAI) {
				t.Errorf("set %d has %s: %v", genAI, name, names[name])
			}
		}
	}
}

func TestSwitchOfTheConventions(t *testing.T) {
	for optIn, want := range map[string]GenAI{
		"": Stable, "http": Stable, "gen_ai_latest_experimental": Latest, "http/dup, gen_ai_latest_experimental": Latest,
		"gen_ai_latest_experimental,database": Latest, "gen_ai_latest": Stable,
	} {
		if got := GenAIFrom(optIn); got != want {
			t.Errorf("%q: %d, want %d", optIn, got, want)
		}
	}
}

func TestOperationsAndProviders(t *testing.T) {
	for to, want := range map[string]string{
		"https://api.openai.com/v1/chat/completions":                                                     "openai chat",
		"https://api.openai.com/v1/responses":                                                            "openai chat",
		"https://api.anthropic.com/v1/messages":                                                          "anthropic chat",
		"https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent": "gcp.gemini generate_content",
		"https://api.mistral.ai/v1/embeddings":                                                           "mistral_ai embeddings",
		"https://bedrock-runtime.us-east-1.amazonaws.com/model/x/converse":                               "aws.bedrock chat",
		"https://api.openai.com/v1/completions":                                                          "openai text_completion",
		"http://localhost:11434/api/chat":                                                                " chat",
		"https://api.openai.com/v1/models":                                                               "openai other",
	} {
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{URL: u}
		if got := ProviderOf(r) + " " + OperationOf(r); got != want {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
	}
}
