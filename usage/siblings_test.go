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

// A stream may end without an end marker: the event that says so has the final usage.
func TestStreamsThatEndByAFlag(t *testing.T) {
	for body, final := range map[string]bool{
		"data: {\"result\":\"a\",\"is_end\":false,\"usage\":{\"prompt_tokens\":31,\"completion_tokens\":3}}\n\ndata: {\"result\":\"b\",\"is_end\":true,\"usage\":{\"prompt_tokens\":31,\"completion_tokens\":8}}\n\n":         true,
		"data: {\"result\":\"a\",\"is_end\":false,\"usage\":{\"prompt_tokens\":31,\"completion_tokens\":8}}\n\n":                                                                                                              false,
		"data:{\"output\":{\"text\":\"a\",\"finish_reason\":\"null\"},\"usage\":{\"input_tokens\":31,\"output_tokens\":8}}\n\n":                                                                                               false,
		"data:{\"output\":{\"text\":\"a\",\"finish_reason\":\"stop\"},\"usage\":{\"input_tokens\":31,\"output_tokens\":8}}\n\n":                                                                                               true,
		"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"x_groq\":{\"usage\":{\"prompt_tokens\":31,\"completion_tokens\":8}}}\n\n":                                                                           true,
		"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":31,\"completion_tokens\":8}}\n\n":                                             true,
		"data: {\"content\":\"a\",\"stop\":false}\n\ndata: {\"content\":\"\",\"stop\":true,\"tokens_evaluated\":31,\"tokens_predicted\":8}\n\n":                                                                               true,
		"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":31,\"output_tokens\":1}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":8}}\n\n":                                      false,
		"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":31,\"output_tokens\":1}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":8}}\n\ndata: {\"type\":\"message_stop\"}\n\n": true,
	} {
		r := usage.Read("text/event-stream", "", []byte(body))
		if r.Counts.Output.N != 8 || r.Complete != final {
			t.Errorf("%s: output %v, complete %v; want 8, %v", body, r.Counts.Output, r.Complete, final)
		}
	}
}
