package estimate

import (
	"math"
	"strings"
	"testing"
)

func TestEveryNameOfTheOutputCapIsRead(t *testing.T) {
	for body, want := range map[string]int64{
		`"max_tokens":7`:                                       7,
		`"max_completion_tokens":7`:                            7,
		`"max_output_tokens":7`:                                7,
		`"max_tokens_to_sample":7`:                             7,
		`"maxTokens":7`:                                        7,
		`"max_new_tokens":7`:                                   7,
		`"max_gen_len":7`:                                      7,
		`"n_predict":7`:                                        7,
		`"generationConfig":{"maxOutputTokens":7}`:             7,
		`"generation_config":{"max_output_tokens":7}`:          7,
		`"inferenceConfig":{"maxTokens":7}`:                    7,
		`"textGenerationConfig":{"maxTokenCount":7}`:           7,
		`"parameters":{"max_new_tokens":7}`:                    7,
		`"options":{"num_predict":7}`:                          7,
		`"options":{"num_predict":-1}`:                         0,
		`"max_tokens":"7"`:                                     7,
		`"max_tokens":7.0`:                                     7,
		`"max_tokens":0.7e1`:                                   7,
		`"max_tokens":6.5`:                                     7,
		`"max_tokens":7e0`:                                     7,
		`"max_tokens":null`:                                    0,
		`"max_tokens":{"a":7}`:                                 0,
		`"max_tokens":[7]`:                                     0,
		`"max_tokens":3,"max_tokens":7`:                        7,
		`"max_tokens":7,"max_tokens":3`:                        3,
		`"max_tokens":7,"max_tokens":null`:                     0,
		`"max_tokens":7,"max_tokens":[]`:                       0,
		`"max_tokens":7,"max_completion_tokens":3`:             7,
		`"generationConfig":{"maxOutputTokens":7},"top_p":1`:   7,
		`"metadata":{"max_tokens":7}`:                          0,
		`"tools":[{"max_tokens":7}]`:                           0,
		`"max_tokens":1e999`:                                   math.MaxInt64,
		`"max_tokens":99999999999999999999999`:                 math.MaxInt64,
		`"max_tokens":1e-999`:                                  1,
		`"max_tokens":0`:                                       0,
		`"max_tokens":"lots"`:                                  0,
		`"max_tokens":true`:                                    0,
		`"max_tokens":"true"`:                                  0,
		`"max_tokens":-5`:                                      0,
		`"max_tokens":"-5"`:                                    0,
		`"max_tokens":" 7 "`:                                   7,
		`"max_tokens":"7e0"`:                                   7,
		`"max_tokens":"NaN"`:                                   0,
		`"max_tokens":1e99999999999999999999999`:               math.MaxInt64,
		`"max_tokens":0e99999999999999999999999`:               0,
		`"max_tokens":7` + strings.Repeat("0", 500) + `e-500`:  7,
		`"max_tokens":0.` + strings.Repeat("0", 500) + `7e501`: 7,
		`"max_tokens":` + strings.Repeat("9", 500):             math.MaxInt64,
		`"max_tokens":-5,"max_completion_tokens":7`:            7,
		`"max_tokens":null,"max_completion_tokens":"7"`:        7,
		`"thinking":{"budget_tokens":9},"max_tokens":7`:        7,
		`"reasoning":{"max_tokens":9}`:                         0,
		`"max_\u0074okens":7`:                                  7,
		`"generationConfig":{"thinkingConfig":{"x":7},"y":1}`:  0,
	} {
		for _, whole := range []string{`{"messages":[],` + body + `}`, `{` + body + `,"messages":[]}`} {
			if r := Inspect([]byte(whole), Options{}); r.OutputCap != want || !r.Understood {
				t.Errorf("%s: cap %d, understood %v; want %d", whole, r.OutputCap, r.Understood, want)
			}
		}
	}
}

func TestThinkingAndStreamAreRead(t *testing.T) {
	for body, want := range map[string]Request{
		`"thinking":{"type":"enabled","budget_tokens":9},"stream":true`: {Thinking: 9, Stream: true},
		`"generationConfig":{"thinkingConfig":{"thinkingBudget":9}}`:    {Thinking: 9},
		`"generationConfig":{"thinkingConfig":{"thinkingBudget":-1}}`:   {},
		`"reasoning":{"effort":"high","max_tokens":9}`:                  {Thinking: 9},
		`"stream":false`:               {},
		`"stream":true,"stream":false`: {},
		`"stream":"true"`:              {Stream: true},
		`"stream":"True"`:              {Stream: true},
		`"stream":"false"`:             {},
		`"stream":1`:                   {Stream: true},
		`"stream":0`:                   {},
		`"stream":"yes"`:               {},
		`"stream":null,"stream_options":{"include_usage":true}`:                   {},
		`"thinking":{"budget_tokens":9},"thinking":{"type":"disabled"},"top_k":1`: {},
	} {
		r := Inspect([]byte(`{"messages":[],`+body+`}`), Options{})
		if r.Thinking != want.Thinking || r.Stream != want.Stream {
			t.Errorf("%s: thinking %d, stream %v; want %d, %v", body, r.Thinking, r.Stream, want.Thinking, want.Stream)
		}
	}
}

func TestChoicesMultiplyTheOutput(t *testing.T) {
	for _, c := range []struct {
		body    string
		choices int64
	}{
		{`{"messages":[],"max_tokens":100,"n":5}`, 5},
		{`{"prompt":"a","max_tokens":100,"n":2,"best_of":5}`, 5},
		{`{"prompt":["a","b"],"max_tokens":100,"n":3}`, 6},
		{`{"prompt":[[1,2],[3]],"max_tokens":100}`, 2},
		{`{"prompt":[1,2,3],"max_tokens":100}`, 1},
		{`{"contents":[],"generationConfig":{"candidateCount":4,"maxOutputTokens":100}}`, 4},
		{`{"prompt":"a","max_tokens":100,"n":5,"best_of":2}`, 5},
		{`{"prompt":["a","b"],"max_tokens":100,"n":2,"best_of":4}`, 8},
		{`{"messages":[],"max_tokens":100,"n":"5"}`, 5},
		{`{"messages":[],"max_tokens":100,"n":5.0}`, 5},
		{`{"messages":[],"max_tokens":100,"n":null}`, 1},
		{`{"messages":[],"max_tokens":100,"n":true}`, 1},
		{`{"messages":[],"max_tokens":100,"n":2,"n":5}`, 5},
		{`{"messages":[],"max_tokens":100,"n":0}`, 1},
		{`{"messages":[],"max_tokens":100,"n":-5}`, 1},
		{`{"messages":[],"max_tokens":100}`, 1},
	} {
		r := Inspect([]byte(c.body), Options{})
		if r.Choices != c.choices {
			t.Errorf("%s: %d choices, want %d", c.body, r.Choices, c.choices)
		}
		output := Rule{ReserveCap: true}.Price(r, 0).Output
		if output != 100*c.choices {
			t.Errorf("%s: %d tokens of output reserved, want %d", c.body, output, 100*c.choices)
		}
	}
	huge := Inspect([]byte(`{"messages":[],"max_tokens":9e18,"n":9e18}`), Options{})
	if output := (Rule{ReserveCap: true}).Price(huge, 0).Output; output != math.MaxInt64 {
		t.Errorf("%d tokens reserved: the product wrapped round", output)
	}
}

func TestTheCapIsReservedAndTheRestComesBack(t *testing.T) {
	r := Inspect([]byte(`{"messages":[{"content":"hi"}],"max_tokens":4000}`), Options{})
	rule := Rule{ReserveCap: true}
	p := rule.Price(r, 0)
	if p.Output != 4000 {
		t.Errorf("reserved %d, want 4000", p.Output)
	}
	if in, out := rule.Actual(p.Input, p.Output, Used{Input: 9, Output: 20}); in != 9 || out != 20 {
		t.Errorf("settled at %d, %d; want 9, 20", in, out)
	}
}

func TestPathsTellKindAndModel(t *testing.T) {
	for path, want := range map[string]Request{
		"/openai/deployments/my-gpt/chat/completions":                        {Kind: "chat", Model: "my-gpt"},
		"/v1beta/models/gemini-2.5-pro:generateContent":                      {Kind: "gemini", Model: "gemini-2.5-pro"},
		"/v1beta/models/gemini-2.5-pro:streamGenerateContent":                {Kind: "gemini", Model: "gemini-2.5-pro", Stream: true},
		"/model/anthropic.claude-3-haiku-20240307-v1:0/converse":             {Kind: "converse", Model: "anthropic.claude-3-haiku-20240307-v1:0"},
		"/model/m/converse-stream":                                           {Kind: "converse", Model: "m", Stream: true},
		"/model/m/invoke-with-response-stream":                               {Kind: "completions", Model: "m", Stream: true},
		"/v1/messages":                                                       {Kind: "messages"},
		"/v1/messages/count_tokens":                                          {Kind: "count"},
		"/v1/projects/p/locations/l/publishers/google/models/g:embedContent": {Kind: "embeddings", Model: "g"},
		"": {Kind: "completions"},
	} {
		r := Inspect([]byte(`{"prompt":"x"}`), Options{Path: path})
		if r.Kind != want.Kind || r.Model != want.Model || r.Stream != want.Stream {
			t.Errorf("%s: %q, %q, %v; want %q, %q, %v", path, r.Kind, r.Model, r.Stream, want.Kind, want.Model, want.Stream)
		}
	}
}
