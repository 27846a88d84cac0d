// Chat is a server between people and one key of a provider. It streams answers and
// shares the limits of the key fairly by user. A paying user gets four times as many
// tokens, and a nightly batch goes on at low priority. When people leave, the rest of
// their price comes back at once. It needs no key and no network.
//
//	go run ./examples/chat              a minute's traffic in a few seconds, and a table
//	go run ./examples/chat -addr :8080  the server alone, for curl:
//
//	curl -N -H 'X-User: ann' -d '{"message":"Name a colour."}' localhost:8080/chat
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	addr := flag.String("addr", "", "address to serve at; empty plays traffic instead")
	flag.Parse()
	if err := start(os.Stdout, *addr); err != nil {
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

func start(w io.Writer, addr string) error {
	p, err := provider()
	if err != nil {
		return err
	}
	s, err := NewServer(p.RoundTripper(), "http://api.example.com", "sk-shared")
	if err != nil {
		return err
	}
	if addr != "" {
		return http.ListenAndServe(addr, s)
	}
	play(w, s, 6*time.Second)
	return nil
}

// provider allows 1,000 tokens a second to the one key.
func provider() (*providertest.Provider, error) {
	return providertest.New(providertest.Options{
		Key: "sk-shared", Limits: providertest.Limits{TPM: 60_000, RPM: 6000}, Capacity: 2 * time.Second,
		Charge: providertest.Settle, Output: providertest.Constant(60), ChunkTokens: 4,
		Latency: func(providertest.Call) providertest.Timing {
			return providertest.Timing{FirstByte: 50 * time.Millisecond, PerToken: 2 * time.Millisecond}
		},
	})
}

// A Server passes chats on to a provider. It is an http.Handler.
type Server struct {
	rt       *transport.Transport
	client   *http.Client
	upstream string
	mux      *http.ServeMux
}

// NewServer returns a server that sends to upstream through base with a key.
func NewServer(base http.RoundTripper, upstream, key string) (*Server, error) {
	rt, err := transport.New(transport.Options{
		Base: authorized{base, key},
		TPM:  60_000,
		// By the plan of a user.
		Scopes: transport.Scopes{Tenants: func(user string) transport.TenantOptions {
			if strings.HasPrefix(user, "paying-") {
				return transport.TenantOptions{Weight: 4}
			}
			return transport.TenantOptions{MaxInFlight: 8, MaxQueue: 100, MonthTokens: 5_000_000}
		}},
	})
	if err != nil {
		return nil, err
	}
	s := &Server{rt: rt, client: &http.Client{Transport: rt}, upstream: upstream, mux: http.NewServeMux()}
	s.mux.HandleFunc("POST /chat", s.chat)
	s.mux.HandleFunc("GET /limits", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, rt.Snapshot()) })
	return s, nil
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// chat answers one message. The request's context is that of the upstream call: it
// ends when the person leaves, in the line or in the middle of the answer.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	var in struct{ Message string }
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&in); err != nil || in.Message == "" {
		http.Error(w, `send {"message":"..."}`, http.StatusBadRequest)
		return
	}
	ctx := transport.WithTenant(r.Context(), r.Header.Get("X-User"))
	if r.Header.Get("X-Priority") == "batch" {
		ctx = transport.WithClass(ctx, limit.Batch)
	}
	body, _ := json.Marshal(map[string]any{
		"model": "gpt-4o-mini", "max_tokens": 80, "stream": true, "stream_options": map[string]any{"include_usage": true},
		"messages": []map[string]string{{"role": "user", "content": in.Message}},
	})
	req, err := http.NewRequestWithContext(ctx, "POST", s.upstream+"/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		http.Error(w, "the upstream address is wrong", http.StatusInternalServerError)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		refuse(w, err)
		return
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	flush(w, resp.Body)
}

// refuse says why a call was not sent, and when it could be.
func refuse(w http.ResponseWriter, err error) {
	var e *transport.Error
	if errors.As(err, &e) {
		if e.Err.Wait > 0 {
			w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(e.Err.Wait.Seconds()), 'f', -1, 64))
		}
		http.Error(w, e.Error(), http.StatusTooManyRequests)
		return
	}
	http.Error(w, "the provider cannot be reached", http.StatusBadGateway)
}

// flush copies an answer as it comes.
func flush(w http.ResponseWriter, r io.Reader) {
	c := http.NewResponseController(w)
	b := make([]byte, 4096)
	for {
		n, err := r.Read(b)
		if n > 0 {
			if _, err := w.Write(b[:n]); err != nil {
				return // the person has left
			}
			c.Flush()
		}
		if err != nil {
			return
		}
	}
}

// authorized adds the key below the limiter: no hook sees it.
type authorized struct {
	base http.RoundTripper
	key  string
}

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+a.key)
	return a.base.RoundTrip(r)
}

// String keeps the key out of what is printed.
func (a authorized) String() string { return "a base with a key" }

// The people of the traffic. Each has some chats open at a time.
var people = []struct {
	user, priority string
	chats          int
	leaves         time.Duration // that long after each question
}{
	{"ann", "", 8, 0},
	{"bob", "", 24, 0}, // three times as many, and no more of the tokens
	{"paying-eve", "", 32, 0},
	{"leaving-joe", "", 8, 2 * time.Second},
	{"nightly", "batch", 16, 0},
}

// play lets all talk for d, and says what each got.
func play(w io.Writer, s *Server, d time.Duration) {
	type sum struct {
		answers, left int
		waits         []time.Duration
	}
	sums := make([]sum, len(people))
	var mu sync.Mutex
	var all sync.WaitGroup
	ctx, stop := context.WithTimeout(context.Background(), d)
	defer stop()
	for i, p := range people {
		for range p.chats {
			all.Go(func() {
				for ctx.Err() == nil {
					ctx, leave := ctx, func() {}
					if p.leaves > 0 {
						ctx, leave = context.WithCancel(ctx)
						time.AfterFunc(p.leaves, leave)
					}
					asked := time.Now()
					first := talk(ctx, s, p.user, p.priority)
					mu.Lock()
					if first.IsZero() || ctx.Err() != nil {
						sums[i].left++
					} else {
						sums[i].answers++
						sums[i].waits = append(sums[i].waits, first.Sub(asked))
					}
					mu.Unlock()
					leave()
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
	}
	all.Wait()
	fmt.Fprintf(w, "%-12s %8s %6s %14s\n", "user", "answers", "left", "half wait")
	for i, p := range people {
		half := time.Duration(0)
		if waits := sums[i].waits; len(waits) > 0 {
			slices.Sort(waits)
			half = waits[len(waits)/2]
		}
		fmt.Fprintf(w, "%-12s %8d %6d %14v\n", p.user, sums[i].answers, sums[i].left, half.Round(time.Millisecond))
	}
	fmt.Fprintln(w, s.rt.Snapshot())
}

// talk asks the server once, and returns when the first piece of the answer came,
// zero if none did.
func talk(ctx context.Context, s *Server, user, priority string) time.Time {
	r, _ := http.NewRequestWithContext(ctx, "POST", "http://chat/chat", strings.NewReader(`{"message":"Name a colour."}`))
	r.Header.Set("X-User", user)
	r.Header.Set("X-Priority", priority)
	p := new(person)
	s.ServeHTTP(p, r)
	if p.status != http.StatusOK {
		return time.Time{}
	}
	return p.first
}

// person is a ResponseWriter that notes when the answer begins.
type person struct {
	header http.Header
	status int
	first  time.Time
}

func (p *person) Header() http.Header {
	if p.header == nil {
		p.header = http.Header{}
	}
	return p.header
}

func (p *person) WriteHeader(status int) { p.status = status }

func (p *person) Write(b []byte) (int, error) {
	if p.first.IsZero() {
		p.first = time.Now()
	}
	return len(b), nil
}

func (p *person) Flush() {}
