// Gateway is a reverse proxy with the key and the limits in one place: every
// client behind it draws on one budget. The clients need neither.
//
//	go run ./gateway
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	b, err := box.Open()
	if err != nil {
		return err
	}
	defer b.Close()

	proxy, err := gateway(b.URL, box.Key)
	if err != nil {
		return err
	}
	server := httptest.NewServer(proxy)
	defer server.Close()

	for _, stream := range []bool{false, true} {
		body := fmt.Sprintf(`{"model":"gpt-4o-mini","max_tokens":50,"stream":%t,"messages":[{"role":"user","content":"Say abc."}]}`, stream)
		resp, err := http.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "stream %t: %s, %s, abc %d times\n", stream,
			resp.Status, resp.Header.Get("Content-Type"), strings.Count(string(text), "abc"))
	}
	b.Report(w)
	return nil
}

// gateway passes everything on to one provider.
func gateway(to, key string) (*httputil.ReverseProxy, error) {
	target, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Authorization", "Bearer "+key)
		},
		ErrorHandler: refuse,
	}
	// The change, 2 lines.
	proxy.Transport, err = transport.New(transport.Options{RPM: 600, TPM: 100_000, MaxQueue: 1000}) // tripmeter
	if err != nil {                                                                                 // tripmeter
		return nil, err
	}
	return proxy, nil
}

// refuse answers what could not be passed on. Left alone, a ReverseProxy answers
// 502, which tells a client nothing and invites it to try again at once; what
// the limiter would not admit is the client's to hear, as a provider says it.
func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	var e *limit.Error
	switch {
	case !errors.As(err, &e):
		w.WriteHeader(http.StatusBadGateway)
	case errors.Is(err, limit.ErrTooLarge):
		http.Error(w, "larger than the limit can ever admit", http.StatusRequestEntityTooLarge)
	default:
		if e.Wait > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(int64((e.Wait+time.Second-1)/time.Second)))
		}
		http.Error(w, "the line is too long", http.StatusTooManyRequests)
	}
}
