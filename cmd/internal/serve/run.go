package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tripmeter/tripmeter/cmd/internal/store"
	"github.com/tripmeter/tripmeter/debug"
)

// Exit codes.
const (
	ExitDone   = 0 // drained and stopped
	ExitBroken = 1 // an address is taken, or calls had to be cut
	ExitUsage  = 2 // a flag or the configuration cannot be used
)

const usage = `tripmeter serve is a gateway: clients in any language point their base URL at it,
and where the provider would refuse, a call waits its turn.

  tripmeter serve -config tripmeter.toml

SIGHUP reads the configuration again; a wrong one changes nothing. SIGTERM or
Ctrl-C finishes what is under way; a second one stops at once.

Flags:
`

// Run is the command: it returns the exit code.
func Run(args []string, env func(string) string, signals <-chan os.Signal, stderr io.Writer) int {
	f := flag.NewFlagSet("tripmeter serve", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprint(stderr, usage); f.PrintDefaults() }
	name := f.String("config", "tripmeter.toml", "configuration file")
	check := f.Bool("check", false, "check the configuration and end")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return ExitDone
	} else if err != nil {
		return ExitUsage
	}
	logger := log.New(stderr, "serve: ", log.LstdFlags|log.Lmsgprefix)
	c, err := load(*name, env)
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q: the file is named by -config", f.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(stderr, "serve:", err)
		return ExitUsage
	}
	if *check {
		fmt.Fprintf(stderr, "serve: %s is fine: %d upstreams, %d tenants\n", *name, len(c.Upstreams), len(c.Tenants))
		return ExitDone
	}
	base := baseTransport()
	defer base.CloseIdleConnections()
	var budgets *shared
	if c.redis != "" {
		if budgets, err = openStore(c, logger); err != nil {
			fmt.Fprintln(stderr, "serve:", err)
			return ExitUsage
		}
		defer budgets.Close()
	}
	g, err := newGateway(c, base, logger, budgets)
	if err != nil {
		fmt.Fprintln(stderr, "serve:", err)
		return ExitUsage
	}
	s := &server{g: g, log: logger}
	return s.run(c, signals, func() (*Config, error) { return load(*name, env) })
}

// shared is the store that holds the budgets of several gateways.
type shared struct {
	*store.Store
	secret string // Config.secret
}

func openStore(c *Config, logger *log.Logger) (*shared, error) {
	s, err := store.Open(c.redis)
	if err != nil {
		return nil, fmt.Errorf("redis_env: %w", err)
	}
	logger.Print("budgets are shared through the store")
	return &shared{s, c.secret}, nil
}

func load(name string, env func(string) string) (*Config, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	c, err := Parse(b, env)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// server is the gateway on its addresses.
type server struct {
	g        *gateway
	log      *log.Logger
	draining atomic.Bool
}

func (s *server) run(c *Config, signals <-chan os.Signal, reload func() (*Config, error)) int {
	clients, err := net.Listen("tcp", c.Listen)
	if err != nil {
		s.log.Print(err)
		return ExitBroken
	}
	main := &http.Server{
		Handler: s.g, ErrorLog: s.log, MaxHeaderBytes: int(c.MaxHeader),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
	}
	failed := make(chan error, 2)
	go func() { failed <- main.Serve(clients) }()
	var admin *http.Server
	if c.Admin != "off" {
		l, err := net.Listen("tcp", c.Admin)
		if err != nil {
			main.Close()
			s.log.Print(err)
			return ExitBroken
		}
		admin = &http.Server{Handler: s.admin(), ErrorLog: s.log, ReadHeaderTimeout: 10 * time.Second}
		defer admin.Close()
		go func() { failed <- admin.Serve(l) }()
		s.log.Printf("listening on %s, for metrics on %s", clients.Addr(), l.Addr())
	} else {
		s.log.Printf("listening on %s", clients.Addr())
	}
	for {
		select {
		case err := <-failed:
			s.log.Print(err)
			return ExitBroken
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				return s.drain(main, s.g.now.Load().c.Drain.or(10*time.Minute), signals)
			}
			next, err := reload()
			if err == nil {
				err = s.g.load(next)
			}
			switch {
			case err != nil:
				s.log.Printf("not reloaded: %v", err)
			default:
				s.log.Printf("reloaded: %d upstreams, %d tenants", len(next.Upstreams), len(next.Tenants))
				if next.Listen != c.Listen || next.Admin != c.Admin || next.MaxHeader != c.MaxHeader || next.redis != c.redis {
					s.log.Print("listen, admin, max_header and redis_env need a restart")
				}
			}
		}
	}
}

// drain finishes what is under way.
func (s *server) drain(main *http.Server, d time.Duration, signals <-chan os.Signal) int {
	s.draining.Store(true)
	s.log.Printf("finishing what is under way, for at most %v; once more stops at once", d)
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- main.Shutdown(ctx) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				main.Close()
				s.log.Printf("calls were cut after %v", d)
				return ExitBroken
			}
			return ExitDone
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				continue
			}
			main.Close()
			return ExitBroken
		}
	}
}

// admin is what operators and orchestrators ask.
func (s *server) admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.draining.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ready\n")
	})
	mux.Handle("/debug/tripmeter/", debug.Handler(s.g.seen, debug.Options{}))
	mux.Handle("GET /metrics", s.g.stats.handler())
	return mux
}
