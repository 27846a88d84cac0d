package usage_test

import (
	"fmt"

	"github.com/tripmeter/tripmeter/usage"
)

// A stream states its cost in one of its last events; the meter sees it
// whichever way the bytes come.
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
