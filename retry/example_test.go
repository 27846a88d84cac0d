package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/retry"
)

// provider stands for the network: it plays these answers, one per attempt.
type provider []http.Response

func (p *provider) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	resp := (*p)[0]
	if len(*p) > 1 {
		*p = (*p)[1:]
	}
	resp.Request = req
	return &resp, nil
}

func says(status int, body string, header http.Header) http.Response {
	return http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
}

const prompt = `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hello"}]}`

func Example() {
	base := &provider{
		says(429, "slow down", http.Header{"Retry-After-Ms": {"20"}}),
		says(200, "hello", nil),
	}
	transport, err := retry.New(base, retry.Options{
		MinBackoff: time.Millisecond,
		Deciding: func(e retry.Event) {
			fmt.Println("attempt", e.Attempt, "ended with", e.Response.StatusCode)
		},
	})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: transport}
	start := time.Now()
	resp, err := client.Post("https://api.example.com/v1/chat/completions", "application/json", strings.NewReader(prompt))
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(answer))
	fmt.Println("the second attempt was not early:", time.Since(start) >= 20*time.Millisecond)
	// Output:
	// attempt 1 ended with 429
	// 200 hello
	// the second attempt was not early: true
}

// A wait that is longer than the caller wants to sleep is not shortened: the
// caller has the provider's answer at once, and can find out why.
func ExampleWithTally() {
	transport, _ := retry.New(&provider{
		says(429, "come back in an hour", http.Header{"Retry-After": {"3600"}}),
	}, retry.Options{})

	var trace retry.Tally
	ctx := retry.WithTally(context.Background(), &trace)
	req, _ := http.NewRequestWithContext(ctx, "POST", "https://api.example.com/v1/chat/completions", strings.NewReader(prompt))
	resp, err := transport.RoundTrip(req)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(answer))
	fmt.Println(trace.Attempts(), "attempt:", trace.Reason())
	// Output:
	// 429 come back in an hour
	// 1 attempt: the server orders a wait above MaxRetryAfter
}

// A caller who leaves while the call waits still learns what the provider said.
func ExampleError() {
	ctx, leave := context.WithCancel(context.Background())
	transport, _ := retry.New(&provider{
		says(503, "overloaded", http.Header{"Retry-After": {"30"}}),
	}, retry.Options{
		Deciding: func(retry.Event) { leave() },
	})
	req, _ := http.NewRequestWithContext(ctx, "POST", "https://api.example.com/v1/chat/completions", strings.NewReader(prompt))
	_, err := transport.RoundTrip(req)

	var e *retry.Error
	if errors.As(err, &e) && errors.Is(err, context.Canceled) {
		fmt.Println(e.Attempts, e.Status, string(e.Body))
	}
	// Output: 1 503 overloaded
}
