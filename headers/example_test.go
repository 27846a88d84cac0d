package headers_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tripmeter/tripmeter/headers"
)

func ExampleParse() {
	h := http.Header{}
	h.Set("x-ratelimit-limit-requests", "10000")
	h.Set("x-ratelimit-remaining-requests", "9999")
	h.Set("x-ratelimit-reset-requests", "8.64s")
	h.Set("x-ratelimit-limit-tokens", "200000")
	h.Set("x-ratelimit-remaining-tokens", "banana")

	i := headers.Parse(h, headers.Options{Status: http.StatusOK})
	fmt.Println("requests left:", i.Requests.Remaining.N, "of", i.Requests.Limit.N)
	fmt.Println("full again in", i.Requests.Reset.D, "so the window is", i.Requests.Inferred)
	fmt.Println("tokens left are known:", i.Tokens.Remaining.OK, "values unread:", i.Unread)
	// Output:
	// requests left: 9999 of 10000
	// full again in 8.64s so the window is 24h0m0s
	// tokens left are known: false values unread: 1
}

func ExampleInfo_ResetWait() {
	h := http.Header{}
	h.Set("x-ratelimit-remaining-requests", "12")
	h.Set("x-ratelimit-reset-requests", "1h0m0s")
	h.Set("x-ratelimit-remaining-tokens", "0")
	h.Set("x-ratelimit-reset-tokens", "6m0s")

	i := headers.Parse(h, headers.Options{Status: http.StatusTooManyRequests})
	fmt.Println(i.ResetWait().D) // the exhausted dimension, not the longest reset

	h.Set("Retry-After", "Sat, 19 Sep 2026 12:00:30 GMT")
	i = headers.Parse(h, headers.Options{
		Status: http.StatusTooManyRequests,
		Now:    time.Date(2026, 9, 19, 12, 0, 0, 0, time.UTC),
	})
	fmt.Println(i.ResetWait().D) // the server's own word
	// Output:
	// 6m0s
	// 30s
}

// Groq states no window in its fields; its documentation does.
func ExampleOptions_dialect() {
	h := http.Header{}
	h.Set("x-ratelimit-limit-requests", "14400")
	h.Set("x-ratelimit-remaining-requests", "14370")
	h.Set("x-ratelimit-limit-tokens", "18000")
	h.Set("x-ratelimit-remaining-tokens", "17997")

	groq := headers.Dialect{Windows: []headers.FieldWindow{
		{Dimension: "requests", Window: 24 * time.Hour},
		{Dimension: "tokens", Window: time.Minute},
	}}
	i := headers.Parse(h, headers.Options{Status: http.StatusOK, Dialect: groq})
	fmt.Println(i.Requests.Limit.N, "requests in", i.Requests.Window)
	fmt.Println(i.Tokens.Limit.N, "tokens in", i.Tokens.Window)
	// Output:
	// 14400 requests in 24h0m0s
	// 18000 tokens in 1m0s
}
