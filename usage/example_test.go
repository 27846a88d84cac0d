package usage_test

import (
	"fmt"
	"net/http"

	"github.com/tripmeter/tripmeter/usage"
)

// A stream states its cost in one of its last events. The meter sees the cost
// however the bytes are cut.
func ExampleMeter() {
	m := usage.NewMeter("text/event-stream", "")
	for _, piece := range []string{
		`data: {"choices":[{"delta":{"content":"The \"usage\":{\"prompt_tokens\":9}"}}],"usage":null}` + "\n\nda",
		`ta: {"choices":[],"usage":{"prompt_tokens":23,"comple`,
		`tion_tokens":8,"total_tokens":31}}` + "\n\ndata: [DONE]\n\n",
	} {
		m.Write([]byte(piece))
	}
	r := m.Close()
	fmt.Println(r.Found, r.Input.N, r.Output.N, r.Total.N, r.CachedInput.OK, r.Complete)
	// Output: true 23 8 31 false true
}

// A stream that began with 200 may still be refused.
func ExampleResult_refusal() {
	r := usage.Read("text/event-stream", "", []byte(
		`data: {"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Please try again in 6s."},"usage":null}}`+"\n\n"))
	fmt.Println(r.Found, r.Refusal.Class, r.Refusal.Retryable, r.Refusal.Wait)
	// Output: false rate_limit true 6s
}

// Bedrock states the cost of InvokeModel in the header, for models whose bodies do
// not.
func ExampleFromHeader() {
	h := http.Header{}
	h.Set("X-Amzn-Bedrock-Input-Token-Count", "12")
	h.Set("X-Amzn-Bedrock-Output-Token-Count", "34")
	r := usage.Read("application/json", "", []byte(`{"generations":[{"text":"Hi"}]}`)).WithHeader(h)
	fmt.Println(r.Found, r.Input.N, r.Output.N)
	// Output: true 12 34
}

// A call that asked for 100 tokens of output cannot have used four thousand million.
func ExampleCounts_Bounded() {
	r := usage.Read("application/json", "", []byte(`{"usage":{"prompt_tokens":12,"completion_tokens":4294967295}}`))
	c := r.Bounded(1000, 100)
	fmt.Println(c.Input.N, c.Output.OK)
	// Output: 12 false
}
