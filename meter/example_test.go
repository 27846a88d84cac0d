package meter_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

func Example() {
	provider, err := providertest.New(providertest.Options{Output: providertest.Constant(7)})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := meter.New(meter.Options{})
	rt, err := transport.New(transport.Options{
		Base: provider.RoundTripper(), RPM: 500, TPM: 200_000, Trace: m.Trace("openai"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Watch("openai", rt)

	resp, err := (&http.Client{Transport: rt}).Post("http://box/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()

	b := m.Read(0, 0).Budgets[0]
	fmt.Println(b.Admitted, "admitted,", b.Settled, "settled,", b.Waiting, "waiting")
	// Output: 1 admitted, 1 settled, 0 waiting
}
