package rttest

import "net/http"

// Unsendable spoils a request, by the name of the part, so that net/http refuses it
// before it looks for a connection.
var Unsendable = map[string]func(*http.Request){
	"scheme":  func(r *http.Request) { r.URL.Scheme = "gopher" },
	"header":  func(r *http.Request) { r.Header["Bad Name"] = []string{"x"} },
	"value":   func(r *http.Request) { r.Header.Set("X", "a\nb") },
	"trailer": func(r *http.Request) { r.Trailer = http.Header{"Bad Name": nil} },
	"method":  func(r *http.Request) { r.Method = "BAD METHOD" },
	"host":    func(r *http.Request) { r.URL.Host = "" },
	"URL":     func(r *http.Request) { r.URL = nil },
	"headers": func(r *http.Request) { r.Header = nil },
}
