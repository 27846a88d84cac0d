// Package box is what the programs beside it talk to, so that they need neither a
// key nor a network: servers on the loopback interface. Each refuses its first call
// and asks for a twentieth of a second. So a program that reaches its end has been
// carried over a refusal.
package box

import (
	"fmt"
	"io"
	"net/http/httptest"
	"time"

	"github.com/tripmeter/tripmeter/providertest"
)

// Key is the key that the servers accept. No program prints it.
const Key = "sk-of-the-box-5f2c81"

const firstWait = 50 * time.Millisecond

// A Box is a provider that listens.
type Box struct {
	URL string // without a slash at its end
	*providertest.Provider
	server *httptest.Server
}

// Open starts a provider that speaks the OpenAI and Anthropic APIs, allows 600
// requests and 100,000 tokens a minute, and answers with three tokens.
func Open() (*Box, error) {
	p, err := providertest.New(providertest.Options{
		Key:        Key,
		Limits:     providertest.Limits{RPM: 600, TPM: 100_000},
		Charge:     providertest.Settle,
		RetryAfter: providertest.RetryAfterFraction,
		Output:     providertest.Constant(3),
	})
	if err != nil {
		return nil, err
	}
	p.Script(providertest.Step{Kind: providertest.Refuse, RetryAfter: firstWait})
	s := httptest.NewServer(p)
	return &Box{s.URL, p, s}, nil
}

// Close ends the provider, with the calls it serves.
func (b *Box) Close() {
	b.Provider.Close()
	b.server.Close()
}

// Report says what the provider saw.
func (b *Box) Report(w io.Writer) {
	s := b.Stats()
	fmt.Fprintf(w, "on the wire: %d calls, %d refused, %d early\n", s.Requests, s.Refused, s.Early)
}
