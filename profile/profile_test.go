package profile

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tripmeter/tripmeter/estimate"
)

func TestTable(t *testing.T) {
	if len(table) < 20 {
		t.Fatalf("only %d profiles", len(table))
	}
	seen := map[string]bool{}
	hosts := map[string]string{}
	for _, p := range table {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if p.Source == "" || len(p.AsOf) != len("2026-10") {
			t.Errorf("%s: no source, or no date", p.Name)
		}
		if seen[p.Name] || p.Name == "unknown" {
			t.Errorf("%s is there twice", p.Name)
		}
		seen[p.Name] = true
		for _, h := range p.Hosts {
			if hosts[h] != "" {
				t.Errorf("%s and %s both have host %s", hosts[h], p.Name, h)
			}
			hosts[h] = p.Name
		}
	}
}

func TestForHost(t *testing.T) {
	for host, want := range map[string]string{
		"api.openai.com":                          "openai",
		"API.OpenAI.com:443":                      "openai",
		"api.openai.com.":                         "openai",
		"eu.api.openai.com":                       "openai",
		"api.openai.com.evil.example":             "unknown",
		"notapi.openai.com":                       "unknown",
		"my-res.openai.azure.com":                 "azure",
		"api.anthropic.com":                       "anthropic",
		"generativelanguage.googleapis.com":       "gemini",
		"us-central1-aiplatform.googleapis.com":   "vertex",
		"bedrock-runtime.us-east-1.amazonaws.com": "bedrock",
		"s3.us-east-1.amazonaws.com":              "unknown",
		"api.mistral.ai":                          "mistral",
		"api.groq.com":                            "groq",
		"127.0.0.1:8080":                          "unknown",
		"[::1]:8080":                              "unknown",
		"":                                        "unknown",
	} {
		if got := ForHost(host).Name; got != want {
			t.Errorf("ForHost(%q) = %s, want %s", host, got, want)
		}
	}
}

// A caller can change a profile from ByName without changing the table.
func TestCopies(t *testing.T) {
	p, ok := ByName("OpenAI")
	if !ok {
		t.Fatal("no openai")
	}
	p.Hosts[0] = "changed.example"
	if ForHost("api.openai.com").Name != "openai" {
		t.Fatal("the table was changed")
	}
	if !slices.Contains(Names(), "unknown") || !slices.IsSorted(Names()) {
		t.Fatal(Names())
	}
}

func TestOtherNames(t *testing.T) {
	for name, want := range map[string]string{
		"OpenAI": "openai", "Azure OpenAI": "azure", "azure_openai": "azure", "GitHub Models": "github-models",
		"LiteLLM proxy": "litellm", "xAI": "xai", "Unknown": "unknown", "window": "window",
	} {
		if p, ok := ByName(name); !ok || p.Name != want {
			t.Errorf("ByName(%q) = %q, %v", name, p.Name, ok)
		}
	}
	for other, name := range otherNames {
		if p, ok := ByName(other); !ok || p.Name != name {
			t.Errorf("%s names no profile", other)
		}
	}
	if _, ok := ByName("nobody"); ok {
		t.Error("nobody is known")
	}
}

func TestFactors(t *testing.T) {
	p, _ := ByName("bedrock")
	for model, want := range map[string]int64{
		"anthropic.claude-3-7-sonnet-20250219-v1:0":    5,
		"us.anthropic.claude-sonnet-4-20250514-v1:0":   5,
		"anthropic.claude-3-5-sonnet-20241022-v2:0":    1,
		"anthropic.claude-3-haiku-20240307-v1:0":       1,
		"amazon.nova-pro-v1:0":                         0,
		"ANTHROPIC.CLAUDE-OPUS-4-1-20250805-V1:0":      5,
		"arn:aws:bedrock:us-east-1::x/claude-opus-4-5": 5,
	} {
		if got := p.RuleFor(model).OutputFactor; got != want {
			t.Errorf("%s: factor %d, want %d", model, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, p := range []Profile{
		{},
		{Name: "Upper"},
		{Name: "x", RequestBurst: -1},
		{Name: "x", TokenBurst: -1},
		{Name: "x", Headroom: 101},
		{Name: "x", Headroom: -1},
		{Name: "x", Hosts: []string{"["}},
		{Name: "x", Hosts: []string{""}},
		{Name: "x", Together: []string{""}},
		{Name: "x", Together: []string{"m[ab]"}},
		{Name: "x", Factors: []Factor{{"m", 0}}},
		{Name: "x", Rule: estimate.Rule{DefaultCap: -1}},
	} {
		if p.Validate() == nil {
			t.Errorf("%+v is valid", p)
		}
	}
}

func Example() {
	// A gateway of one's own that charges as Azure does.
	p, _ := ByName("azure")
	p.Name, p.Hosts = "our-gateway", []string{"llm.example.com"}
	p.Headroom = 100
	fmt.Println(p.Name, p.Rule.Charge, p.Rule.ReserveCap, p.Validate())
	// Output: our-gateway estimate false <nil>
}
