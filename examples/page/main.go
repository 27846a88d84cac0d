// Page shows the live page with something to see: workers of several teams send
// calls through tripmeter to a provider in this process, which now and then refuses.
// It needs no key and no network.
//
//	go run ./examples/page
//
// Then open http://localhost:6060/debug/tripmeter/. Ctrl-C ends it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/debug"
	"github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	addr := flag.String("addr", "localhost:6060", "where to listen")
	workers := flag.Int("workers", 40, "how many send calls at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l, err := net.Listen("tcp", *addr)
	if err == nil {
		err = run(ctx, l, *workers, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

// run serves the page until ctx ends.
func run(ctx context.Context, l net.Listener, workers int, w io.Writer) error {
	provider, err := providertest.New(providertest.Options{
		Limits: providertest.Limits{RPM: 1200, TPM: 200_000}, Capacity: 10 * time.Second,
		Charge: providertest.Settle, Output: providertest.Uniform(20, 300),
		Latency: func(providertest.Call) providertest.Timing {
			return providertest.Timing{FirstByte: 200 * time.Millisecond, PerToken: time.Millisecond}
		},
	})
	if err != nil {
		return err
	}
	defer provider.Close()

	// These lines are what a program needs.
	m := meter.New(meter.Options{Tenant: func(r *http.Request) string { return r.Header.Get("X-Team") }})
	rt, err := transport.New(transport.Options{
		Base: provider.RoundTripper(), RPM: 1200, TPM: 200_000, Trace: m.Trace("box"),
	})
	if err != nil {
		return err
	}
	m.Watch("box", rt)
	mux := http.NewServeMux()
	mux.Handle("/debug/tripmeter/", debug.Handler(m, debug.Options{}))

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: mux, BaseContext: func(net.Listener) context.Context { return ctx }}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { work(ctx, &http.Client{Transport: rt}) })
	}
	all.Go(func() { trouble(ctx, provider) })
	all.Go(func() {
		<-ctx.Done()
		server.Close()
	})
	fmt.Fprintf(w, "http://%s/debug/tripmeter/\n", l.Addr())
	err = server.Serve(l)
	cancel()
	all.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// work sends one call after another, of some team.
func work(ctx context.Context, c *http.Client) {
	for ctx.Err() == nil {
		body := fmt.Sprintf(`{"model":"gpt-4o-mini","max_tokens":300,"messages":[{"role":"user","content":%q}]}`,
			strings.Repeat("what is a token bucket? ", 1+rand.IntN(30)))
		req, err := http.NewRequestWithContext(ctx, "POST", "http://provider.in.the.box/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			return
		}
		req.Header.Set("X-Team", []string{"search", "search", "search", "support", "reports"}[rand.IntN(5)])
		if resp, err := c.Do(req); err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
}

// trouble makes the provider refuse a call every minute and ask for ten seconds.
func trouble(ctx context.Context, p *providertest.Provider) {
	for t := time.NewTicker(time.Minute); ; {
		select {
		case <-t.C:
			p.Script(providertest.Step{Kind: providertest.Refuse, RetryAfter: 10 * time.Second})
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}
