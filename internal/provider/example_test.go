package provider_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tripmeter/tripmeter/internal/provider"
)

func Example() {
	p, err := provider.New(provider.Options{
		Limits: provider.Limits{RPM: 1},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: p.RoundTripper()}
	for range 2 {
		res, err := client.Post("http://box/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		fmt.Printf("%d %q\n", res.StatusCode, res.Header.Get("Retry-After"))
	}
	for _, e := range p.Ledger() {
		fmt.Printf("%d %s %q %+v\n", e.Number, e.Outcome, e.Reason, e.Arrival)
	}
	// Output:
	// 200 ""
	// 429 "60"
	// 1 served "" {Input:4 Output:16}
	// 2 refused "requests" {Input:0 Output:0}
}

func ExampleProvider_Script() {
	p, _ := provider.New(provider.Options{})
	p.Script(provider.Step{Kind: provider.InsufficientQuota}, provider.Step{Kind: provider.ResetAfter})
	client := &http.Client{Transport: p.RoundTripper()}
	for range 3 {
		res, err := client.Post("http://box/v1/completions", "application/json", strings.NewReader(`{"model":"m","prompt":"x"}`))
		if err != nil {
			fmt.Println(err)
			continue
		}
		res.Body.Close()
		fmt.Println(res.StatusCode)
	}
	// Output:
	// 429
	// Post "http://box/v1/completions": read tcp: connection reset by peer
	// 200
}

func ExampleIdealSeconds() {
	calls := []provider.Cost{{Prompt: 500, Cap: 500}, {Prompt: 500, Cap: 500}, {Prompt: 500, Cap: 500}}
	seconds, err := provider.IdealSeconds(calls, provider.Options{Limits: provider.Limits{TPM: 1000}})
	fmt.Println(seconds, err)
	// Output: 120 <nil>
}
