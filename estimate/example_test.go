package estimate_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tripmeter/tripmeter/estimate"
)

// words counts one token a word, which a reader can check.
type words struct{}

func (words) CountJSON(model string, raw []byte) int64 {
	return int64(len(strings.Fields(string(raw))))
}

func ExampleInspect() {
	body := `{
		"model": "gpt-4o",
		"messages": [{"role": "user", "content": "What may this call cost?"}],
		"max_completion_tokens": 300,
		"n": 2
	}`
	r := estimate.Inspect([]byte(body), estimate.Options{Counter: words{}})
	fmt.Println(r.Kind, r.Model)
	fmt.Println("prompt:", r.Input) // 5 words, the role, 3 for the message, 3 for the answer's head
	fmt.Println("output:", r.Choices, "times at most", r.OutputCap)
	// Output:
	// chat gpt-4o
	// prompt: 12
	// output: 2 times at most 300
}

func ExampleBody() {
	req, err := http.NewRequest("POST", "https://api.example.org/v1/completions",
		strings.NewReader(`{"model":"m","prompt":"Once upon a time","max_tokens":16}`))
	if err != nil {
		panic(err)
	}
	r := estimate.Body(req.GetBody, req.Header.Get("Content-Type"), req.ContentLength,
		estimate.Options{Path: req.URL.Path, Counter: words{}})
	fmt.Println(r.Kind, r.Input, r.OutputCap)
	// Output: completions 4 16
}

func ExampleRule() {
	// This provider reserves the cap, corrects it at the end, and does not charge
	// what it read from its cache.
	rule := estimate.Rule{Charge: estimate.ChargeSettle, ReserveCap: true, CachedFree: true}
	r := estimate.Request{Kind: "chat", Input: 1200, OutputCap: 4000, Choices: 1}

	price := rule.Price(r, 0)
	fmt.Println("on arrival:", price.Input, price.Output)

	input, output := rule.Actual(price.Input, price.Output, estimate.Used{Input: 1150, Cached: 1024, Output: 20})
	fmt.Println("in the end:", input, output)
	// Output:
	// on arrival: 1200 4000
	// in the end: 126 20
}
