package providertest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tripmeter/tripmeter/providertest"
)

func Example() {
	p, err := providertest.New(providertest.Options{
		Limits: providertest.Limits{RPM: 1},
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
	p, _ := providertest.New(providertest.Options{})
	p.Script(providertest.Step{Kind: providertest.InsufficientQuota}, providertest.Step{Kind: providertest.ResetAfter})
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
	calls := []providertest.Cost{{Prompt: 500, Cap: 500}, {Prompt: 500, Cap: 500}, {Prompt: 500, Cap: 500}}
	seconds, err := providertest.IdealSeconds(calls, providertest.Options{Limits: providertest.Limits{TPM: 1000}})
	fmt.Println(seconds, err)
	// Output: 120 <nil>
}

// A test of a client in another language or process needs an address.
func ExampleProvider_Listen() {
	p, _ := providertest.New(providertest.Options{Key: "test-key"})
	url, stop, err := p.Listen()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	res, err := http.Get(url + "/v1/models") // export OPENAI_BASE_URL=url/v1
	if err != nil {
		fmt.Println(err)
		return
	}
	res.Body.Close()
	fmt.Println(res.StatusCode, "without the key")
	// Output: 401 without the key
}

func ExamplePresetNamed() {
	preset, _ := providertest.PresetNamed("mistral")
	p, _ := providertest.New(preset.Options(providertest.Limits{RPM: 60, TPM: 500_000}))
	client := &http.Client{Transport: p.RoundTripper()}
	res, err := client.Post("http://box/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"mistral-small","messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	res.Body.Close()
	fmt.Println("remaining:", res.Header.Get("X-Ratelimit-Remaining-Tokens-Minute"), "of", res.Header.Get("X-Ratelimit-Limit-Tokens-Minute"))
	fmt.Println("reset:", len(res.Header.Values("X-Ratelimit-Reset-Tokens-Minute")), "fields")
	// Output:
	// remaining: 499980 of 500000
	// reset: 0 fields
}
