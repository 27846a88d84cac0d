// Package boxtest starts a provider in the test's own process, on a free port.
package boxtest

import (
	"testing"

	"github.com/tripmeter/tripmeter/providertest"
)

// Start is a provider and its URL. It ends with the test.
func Start(t testing.TB, o providertest.Options) (*providertest.Provider, string) {
	t.Helper()
	p, err := providertest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	url, stop, err := p.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return p, url
}
