package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// idp issues tokens that live 30 s, and plays the provider, which takes none
// that has expired.
type idp struct{ issued, stale, charged int }

func (s *idp) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	answer := func(body string) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusOK, Request: r, ContentLength: int64(len(body)),
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
	if r.URL.Host == "tokens" {
		s.issued++
		return answer(fmt.Sprintf(`{"access_token":"%d","token_type":"Bearer","expires_in":30}`, time.Now().Unix()))
	}
	s.charged++
	var born int64
	fmt.Sscanf(r.Header.Get("Authorization"), "Bearer %d", &born)
	if time.Since(time.Unix(born, 0)) > 30*time.Second {
		s.stale++
	}
	return answer("{}")
}

// A call that stood a minute in the line leaves with a token that lives, and
// fetching tokens is not charged to the budget.
func TestTokenIsTakenAtItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(idp)
		ctx := context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: s})
		config := clientcredentials.Config{ClientID: "me", ClientSecret: "x", TokenURL: "http://tokens/", AuthStyle: oauth2.AuthStyleInParams}
		client := config.Client(ctx)
		var n box.Count
		var err error
		client.Transport, err = transport.New(transport.Options{Base: client.Transport, RPM: 1, Trace: n.Trace()})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			resp, err := client.Get("http://provider/v1/models")
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		if s.stale != 0 || s.issued != 4 || n.Charged != 4 || s.charged != 4 {
			t.Errorf("%d stale of %d issued, %d requests charged, %d on the wire", s.stale, s.issued, n.Charged, s.charged)
		}
	})
}
