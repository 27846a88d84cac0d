// Otel puts otelhttp below tripmeter, which gives a span for each attempt on
// the wire. Above it, otelhttp.NewTransport(rt) would give one span for the
// call, the wait in the line included; both may be there.
//
//	go run ./otel
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/tripmeter/tripmeter/examples/internal/box"
	"github.com/tripmeter/tripmeter/transport"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "otel:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	b, err := box.Open()
	if err != nil {
		return err
	}
	defer b.Close()
	spans := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	defer provider.Shutdown(context.Background())

	client := &http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport, otelhttp.WithTracerProvider(provider))}
	// The change, 2 lines.
	client.Transport, err = transport.New(transport.Options{Base: client.Transport, RPM: 600, TPM: 100_000}) // tripmeter
	if err != nil {                                                                                          // tripmeter
		return err
	}

	req, err := http.NewRequest("POST", b.URL+"/v1/chat/completions",
		strings.NewReader(`{"model":"gpt-4o-mini","max_tokens":50,"messages":[{"role":"user","content":"Say abc."}]}`))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+box.Key)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	fmt.Fprintln(w, "status:", resp.Status)
	for _, s := range spans.Ended() {
		for _, a := range s.Attributes() {
			if a.Key == "http.response.status_code" {
				fmt.Fprintf(w, "span %q: %d\n", s.Name(), a.Value.AsInt64())
			}
		}
	}
	b.Report(w)
	return nil
}
