package usage_test

import (
	"testing"

	"github.com/tripmeter/tripmeter/usage"
)

// A count that is missing follows from the total. An object with an impossible count
// states nothing, and one that counts seconds, images or searches states no tokens.
func TestUsageThatIsPartOrImpossible(t *testing.T) {
	for _, c := range []struct {
		contentType, body string
		input, output     int64 // -1 is unknown
	}{
		{"application/json", `{"usage":{"completion_tokens":20,"total_tokens":1000}}`, 980, 20},
		{"application/json", `{"usage":{"prompt_tokens":980,"total_tokens":1000}}`, 980, 20},
		{"application/json", `{"usage":{"output_tokens":20,"total_tokens":1000}}`, 980, 20},
		{"application/json", `{"usage":{"prompt_tokens":12,"completion_tokens":-1,"total_tokens":12}}`, -1, -1},
		{"application/json", `{"usage":{"prompt_tokens":-12,"completion_tokens":1}}`, -1, -1},
		{"application/json", `{"usage":{"prompt_tokens":"12","completion_tokens":"7"}}`, -1, -1},
		{"application/json", `{"usage":{"prompt_tokens":12.0,"completion_tokens":7}}`, 12, 7},
		{"application/json", `{"usage":{"prompt_tokens":12.5,"completion_tokens":7}}`, -1, -1},
		{"application/json", `{"usage":{"prompt_tokens":1e999,"completion_tokens":7}}`, -1, -1},
		{"application/json", `{"usage":{"prompt_tokens":1e2,"completion_tokens":7}}`, 100, 7},
		{"application/json", `{"usage":{"prompt_tokens":true,"completion_tokens":7}}`, -1, -1},
		{"application/json", `{"usage":null}`, -1, -1},
		{"application/json", `{"result":{"response":"x","usage":{"prompt_tokens":12,"completion_tokens":7}}}`, 12, 7},
		{"application/json", `{"results":[{"input_token_count":3,"generated_token_count":4},{"input_token_count":5,"generated_token_count":6}]}`, 8, 10},
		{"application/json", `[{"generated_text":"x","details":{"generated_tokens":4,"prefill":[{"id":1},{"id":2}]}}]`, -1, 4},
		{"application/json", `{"metrics":{"input_token_count":9,"output_token_count":4}}`, 9, 4},
		{"application/json", `{"usage":{"type":"duration","seconds":375}}`, -1, -1},
		{"application/json", `{"usage":{"tokens":{"input_tokens":5,"output_tokens":6,"reasoning_tokens":2}}}`, 5, 6},
		{"application/json", `{"data":{"usage":{"prompt_tokens":5,"completion_tokens":6}}}`, 5, 6},
		{"application/json", `{"prompt_eval_count":5,"eval_count":6}`, 5, 6},
		{"application/json", `{"meta":{"billed_units":{"input_tokens":5,"output_tokens":6}}}`, 5, 6},
		{"application/json", `{"meta":{"billed_units":{"search_units":1}}}`, -1, -1},
		{"application/json", `{"usage":{"images":3}}`, -1, -1},
		{"application/json", `{"usage":{"inputTokens":5,"outputTokens":6,"totalTokens":11}}`, 5, 6},
		{"text/event-stream", "data: {\"usage\":{\"completion_tokens\":20,\"total_tokens\":1000}}\n\ndata: [DONE]\n\n", 980, 20},
		{"text/event-stream", "data: {\"response\":\"\",\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":6,\"total_tokens\":11}}\n\n", 5, 6},
		{"text/event-stream", "data: {\"results\":[{\"input_token_count\":0,\"generated_token_count\":3}]}\n\ndata: {\"results\":[{\"input_token_count\":5,\"generated_token_count\":6}]}\n\n", 5, 6},
		{"text/event-stream", "data:{\"token\":{\"text\":\"x\"},\"generated_text\":\"x\",\"details\":{\"generated_tokens\":6}}\n\n", -1, 6},
	} {
		r := usage.Read(c.contentType, "", []byte(c.body))
		input, output := int64(-1), int64(-1)
		if r.Counts.Input.OK {
			input = r.Counts.Input.N
		}
		if r.Counts.Output.OK {
			output = r.Counts.Output.N
		}
		if input != c.input || output != c.output {
			t.Errorf("%s: %d and %d, want %d and %d", c.body, input, output, c.input, c.output)
		}
	}
}
