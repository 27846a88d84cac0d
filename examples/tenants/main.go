// Tenants gives each tenant a client of its own: a Transport is a budget, so one
// that is busy costs the others nothing. Tenants are told apart by their key, and
// a key is hashed before it names anything. It needs no key and no network.
//
//	go run ./examples/tenants
package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tenants:", err)
		os.Exit(1)
	}
}

// Tenants keeps one client for each key, for good: a tenant that was forgotten
// and comes back would start with a full budget, whatever it owed. It may be used
// by any number of goroutines.
type Tenants struct {
	options func(name string) transport.Options // the limits of a tenant
	secret  [32]byte

	mu      sync.Mutex
	clients map[string]*http.Client // by name
}

// NewTenants returns an empty set; options says what a tenant may.
func NewTenants(options func(name string) transport.Options) *Tenants {
	t := &Tenants{options: options, clients: map[string]*http.Client{}}
	rand.Read(t.secret[:])
	return t
}

// Name is what a tenant is called in maps, logs and metrics: a hash of its key.
// The hash is keyed with a secret of the process, since a bare one of a short key
// can be guessed. The same key has another name in another process.
func (t *Tenants) Name(key string) string {
	h := hmac.New(sha256.New, t.secret[:])
	h.Write([]byte(key))
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// Client returns the client of a tenant: the same one for the same key.
func (t *Tenants) Client(key string) (*http.Client, error) {
	name := t.Name(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.clients[name]; c != nil {
		return c, nil
	}
	o := t.options(name)
	if o.Base == nil {
		o.Base = http.DefaultTransport
	}
	o.Base = authorized(key, o.Base)
	rt, err := transport.New(o)
	if err != nil {
		return nil, fmt.Errorf("tenant %s: %w", name, err)
	}
	c := &http.Client{Transport: rt}
	t.clients[name] = c
	return c, nil
}

// A roundTripper is a function, so that printing it prints nothing it holds.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// authorized puts the key on, below the limiter, so that it is in no request
// that a hook sees.
func authorized(key string, base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+key)
		return base.RoundTrip(r)
	})
}

// The tenants of this program. Each has an account at the provider, which allows
// 10 requests a second; one asks for twice that.
var tenants = []struct {
	label, key string
	calls      int
}{
	{"busy", "sk-9d41e6", 20},
	{"quiet", "sk-77aa05", 2},
}

// run lets all tenants make all their calls at once.
func run(w io.Writer) error {
	accounts := map[string]*providertest.Provider{}
	for _, t := range tenants {
		p, err := providertest.New(providertest.Options{Key: t.key, Limits: providertest.Limits{RPM: 600}, Capacity: 2 * time.Second, Output: providertest.Constant(3)})
		if err != nil {
			return err
		}
		accounts["Bearer "+t.key] = p
	}

	var mu sync.Mutex
	longest := map[string]time.Duration{} // wait, by tenant's name
	clients := NewTenants(func(name string) transport.Options {
		return transport.Options{
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				return accounts[r.Header.Get("Authorization")].RoundTripper().RoundTrip(r)
			}),
			RPM: 600,
			Trace: transport.Trace{Granted: func(_ *http.Request, _ limit.Cost, wait time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				longest[name] = max(longest[name], wait)
			}},
		}
	})

	var all sync.WaitGroup
	errs := make([]error, len(tenants))
	for i, t := range tenants {
		client, err := clients.Client(t.key)
		if err != nil {
			return err
		}
		for range t.calls {
			all.Go(func() {
				if err := ask(client); err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs[i] = fmt.Errorf("%s: %w", t.label, err)
				}
			})
		}
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintf(w, "%-7s %6s %8s %13s\n", "tenant", "calls", "refused", "longest wait")
	for _, t := range tenants {
		s := accounts["Bearer "+t.key].Stats()
		fmt.Fprintf(w, "%-7s %6d %8d %11.1f s\n", t.label, s.Completed, s.Refused, longest[clients.Name(t.key)].Seconds())
	}
	return nil
}

func ask(c *http.Client) error {
	resp, err := c.Post("http://provider.in.the.box/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"gpt-4o-mini","max_tokens":50,"messages":[{"role":"user","content":"Say abc."}]}`))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
