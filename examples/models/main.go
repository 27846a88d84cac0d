// Models sends through one http.Client to two models of one provider and to
// another provider, and configures nothing: no limit, no host, no model. What the
// answers say belongs to the account and the model that they are of, so each is
// used to its own limit. It needs no key and no network.
//
//	go run ./examples/models
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	if err := run(os.Stdout, 8*time.Second); err != nil {
		fmt.Fprintln(os.Stderr, "models:", err)
		os.Exit(1)
	}
}

// One provider has a small and a large model, the other one has one.
const (
	first  = "api.first.example"
	second = "api.second.example"
)

// network is both providers, as a base that finds them by the host.
type network map[string]*providertest.Provider

func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	p := n[r.URL.Host]
	if p == nil {
		return nil, fmt.Errorf("no host %q", r.URL.Host)
	}
	return p.RoundTripper().RoundTrip(r)
}

func providers() (network, error) {
	a, err := providertest.New(providertest.Options{
		ModelLimits: map[string]providertest.Limits{
			"small": {RPM: 3000, TPM: 60_000},
			"large": {RPM: 9000, TPM: 600_000},
		},
		Capacity: 5 * time.Second, Charge: providertest.Settle, Output: providertest.Constant(80),
	})
	if err != nil {
		return nil, err
	}
	b, err := providertest.New(providertest.Options{
		Limits: providertest.Limits{RPM: 2000, InputTPM: 120_000, OutputTPM: 60_000}, Dialect: providertest.AnthropicHeaders,
		Capacity: 5 * time.Second, Charge: providertest.Actual, Output: providertest.Constant(80),
	})
	return network{first: a, second: b}, err
}

// A target is what callers send to.
type target struct{ host, model string }

// run lets eight callers send to each target for d, and says what came of it.
func run(w io.Writer, d time.Duration) error {
	hosts, err := providers()
	if err != nil {
		return err
	}
	rt, err := transport.New(transport.Options{Base: hosts})
	if err != nil {
		return err
	}
	client := &http.Client{Transport: rt}

	targets := []target{{first, "small"}, {first, "large"}, {second, "other"}}
	answers := make([]int, len(targets))
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed error
	end := time.Now().Add(d)
	for i, to := range targets {
		for range 8 {
			all.Go(func() {
				for time.Now().Before(end) {
					ok, err := ask(client, to)
					mu.Lock()
					if ok {
						answers[i]++
					} else if err != nil {
						failed = err
					}
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	for i, to := range targets {
		fmt.Fprintf(w, "%-20s %-6s %4d answers\n", to.host, to.model, answers[i])
	}
	for _, host := range []string{first, second} {
		fmt.Fprintf(w, "%-20s %d refusals\n", host, hosts[host].Stats().Refused)
	}
	fmt.Fprintln(w, rt.Snapshot())
	return failed
}

func ask(client *http.Client, to target) (bool, error) {
	body := fmt.Sprintf(`{"model":%q,"max_tokens":100,"messages":[{"role":"user","content":"Name a colour."}]}`, to.model)
	resp, err := client.Post("http://"+to.host+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK, err
}
