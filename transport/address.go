package transport

import (
	"net/http"
	"strings"

	"github.com/tripmeter/tripmeter/budget"
)

// address says which account and model a request takes from. It allocates nothing
// where the credential is a key.
func address(req *http.Request, model string) budget.Address {
	return budget.Address{
		Host: req.URL.Host, Credential: credential(req), Model: model,
		Organization: field(req.Header, "Openai-Organization"), Project: field(req.Header, "Openai-Project"),
	}
}

// credential is what tells accounts of a host apart, "" if nothing does.
func credential(req *http.Request) string {
	if s := field(req.Header, "Authorization"); s != "" {
		return lasting(s)
	}
	for _, name := range [...]string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if s := field(req.Header, name); s != "" {
			return s
		}
	}
	return parameter(req.URL.RawQuery, "key")
}

// lasting is the part of an Authorization that is the same in every request. AWS
// signs each request anew (Signature Version 4): there it is the access key.
func lasting(s string) string {
	if !strings.HasPrefix(s, "AWS4-") {
		return s
	}
	_, s, _ = strings.Cut(s, "Credential=")
	s, _, _ = strings.Cut(s, "/")
	return s
}

// parameter is the first value of a query parameter, as it is written.
func parameter(query, name string) string {
	for query != "" {
		var part string
		part, query, _ = strings.Cut(query, "&")
		if v, ok := strings.CutPrefix(part, name); ok && strings.HasPrefix(v, "=") {
			return v[1:]
		}
	}
	return ""
}
