package transport_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

// Requests with the same host and the same credential share an account. The place
// of the credential and all other differences do not count. No name shows a
// credential.
func TestWhoSharesAnAccount(t *testing.T) {
	const aws = "AWS4-HMAC-SHA256 Credential=AKIA-canary/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature="
	rt := gate(t, transport.Options{Base: script("200"), Scopes: transport.Scopes{Account: func(r *http.Request) string { return r.Header.Get("X-Team") }}})
	account := func(url string, header ...string) string {
		before := map[string]bool{}
		for _, s := range rt.Snapshot().Scopes {
			before[s.Scope] = true
		}
		req, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := rt.RoundTrip(req)
		if _, _, err := finish(resp, err); err != nil {
			t.Fatal(err)
		}
		for _, s := range rt.Snapshot().Scopes {
			if s.Served.Requests > chargedTo[s.Scope] {
				chargedTo[s.Scope] = s.Served.Requests
				return s.Scope
			}
		}
		t.Fatal("no account was charged")
		return ""
	}
	clear(chargedTo)
	bearer := account("https://a.test/v1/files", "Authorization", "Bearer canary")
	for name, row := range map[string]struct {
		same bool
		with string
	}{
		"the same key":                  {true, account("https://a.test/v1/other", "Authorization", "Bearer canary", "X-Trace", "1")},
		"the host in other letters":     {true, account("https://A.test/v1", "Authorization", "Bearer canary")},
		"another key":                   {false, account("https://a.test/v1", "Authorization", "Bearer canary2")},
		"another host":                  {false, account("https://b.test/v1", "Authorization", "Bearer canary")},
		"another port":                  {false, account("https://a.test:8443/v1", "Authorization", "Bearer canary")},
		"another organisation":          {false, account("https://a.test/v1", "Authorization", "Bearer canary", "OpenAI-Organization", "org")},
		"no key":                        {false, account("https://a.test/v1")},
		"the key as a field of its own": {false, account("https://a.test/v1", "X-Api-Key", "canary")},
		"the key as a parameter":        {false, account("https://a.test/v1?alt=sse&key=canary")},
		"a name":                        {false, account("https://a.test/v1", "X-Team", "blue", "Authorization", "Bearer canary")},
	} {
		if (row.with == bearer) != row.same {
			t.Errorf("%s: %s and %s", name, bearer, row.with)
		}
		if strings.Contains(row.with, "canary") {
			t.Errorf("%s: the name is %s", name, row.with)
		}
	}
	if one, two := account("https://c.test/", "Authorization", aws+"1"), account("https://c.test/", "Authorization", aws+"2"); one != two {
		t.Errorf("two signatures of one access key: %s and %s", one, two)
	}
	if name := account("https://a.test/", "X-Team", "blue"); name != "a.test#blue" {
		t.Errorf("a named account is %s", name)
	}
}

// chargedTo are the requests of each scope so far.
var chargedTo = map[string]int64{}

// A client for one tenant is the tenant's, even if the context names another; a
// context counts before the function.
func TestForWhomACallIsMade(t *testing.T) {
	rt := gate(t, transport.Options{
		Base: script("200"),
		Scopes: transport.Scopes{
			Tenant: func(r *http.Request) string { return r.Header.Get("X-Team") },
			Class:  func(*http.Request) limit.Class { return limit.Batch },
		},
	})
	of, err := rt.Tenant("own", transport.TenantOptions{Weight: 2})
	if err != nil {
		t.Fatal(err)
	}
	req := ask(t, transport.WithTenant(t.Context(), "context"), letter)
	req.Header.Set("X-Team", "function")
	finish(of.RoundTrip(req.Clone(req.Context())))
	finish(rt.RoundTrip(ask(t, transport.WithClass(transport.WithTenant(t.Context(), "context"), limit.Interactive), letter)))
	third := ask(t, t.Context(), letter)
	third.Header.Set("X-Team", "function")
	finish(rt.RoundTrip(third))
	finish(rt.RoundTrip(ask(t, t.Context(), letter)))
	got := ""
	for _, s := range rt.Snapshot().Scopes {
		if strings.HasPrefix(s.Scope, "@") {
			got += fmt.Sprint(s.Scope, " ", s.Served.Requests, " ")
		}
	}
	if got != "@context 1 @function 1 @own 1 " {
		t.Errorf("served: %s", got)
	}
	if text := fmt.Sprintf("%v %#v", of, of); text != "tripmeter transport of one tenant tripmeter transport of one tenant" {
		t.Errorf("it prints as %s", text)
	}
	if _, err := rt.Tenant("", transport.TenantOptions{}); err == nil {
		t.Error("a tenant without a name")
	}
	if err := rt.SetTenant("x", transport.TenantOptions{TPM: -1}); err == nil || !strings.Contains(err.Error(), "TPM") {
		t.Errorf("error %v", err)
	}
}
