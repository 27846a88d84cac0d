// Oauth puts a client of golang.org/x/oauth2 under tripmeter. The token goes on
// below: it is taken when a call has its turn. So it cannot expire in the line, and
// fetching it is no call of the budget.
//
//	go run ./oauth
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
	"golang.org/x/oauth2/clientcredentials"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oauth:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	b, err := box.Open()
	if err != nil {
		return err
	}
	defer b.Close()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, box.Key)
	}))
	defer tokens.Close()

	config := clientcredentials.Config{ClientID: "me", ClientSecret: "of the box", TokenURL: tokens.URL}
	client := config.Client(context.Background())
	// The change, 2 lines.
	client.Transport, err = transport.New(transport.Options{Base: client.Transport, RPM: 600, TPM: 100_000}) // tripmeter
	if err != nil {                                                                                          // tripmeter
		return err
	}

	resp, err := client.Post(b.URL+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"gpt-4o-mini","max_tokens":50,"messages":[{"role":"user","content":"Say abc."}]}`))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	fmt.Fprintln(w, "status:", resp.Status)
	b.Report(w)
	return nil
}
