package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// A Situation is a program that sends to more than one model, provider or tenant.
// tripmeter gets one unconfigured client for all of it. Each rival gets a client for
// each crowd, with the crowd's own limits: more than its technique can
// do with one.
type Situation struct {
	Name   string
	Boxes  map[string]providertest.Options // by host
	Crowds []Crowd
}

// A Crowd are callers of one kind. Each sends one call after the other.
type Crowd struct {
	Name, Host, Model string
	Limits            providertest.Limits // what a rival is configured with
	Callers           int
	Words, Cap        int           // of the prompt, and of the answer in tokens, on average
	Pause             time.Duration // between two calls of a caller
	Tenant            string
}

// A Got is what came of a crowd.
type Got struct {
	Answers int
	Tokens  int64 // words and cap of the calls answered
	P99     time.Duration
}

// Situations are those of the table in docs.
func Situations() []Situation {
	took := func(providertest.Call) providertest.Timing {
		return providertest.Timing{FirstByte: 200 * time.Millisecond, PerToken: 2 * time.Millisecond}
	}
	small, large := providertest.Limits{TPM: 30_000, RPM: 500}, providertest.Limits{TPM: 200_000, RPM: 3000}
	other := providertest.Limits{InputTPM: 20_000, RPM: 300}
	roomy := providertest.Limits{TPM: 600_000, RPM: 3000}
	third := func(l providertest.Limits) providertest.Limits {
		return providertest.Limits{TPM: l.TPM / 3, RPM: l.RPM / 3}
	}
	return []Situation{
		{"two models of one key", map[string]providertest.Options{"box": {
			ModelLimits: map[string]providertest.Limits{"small": small, "large": large}, Charge: providertest.Settle, Latency: took,
		}}, []Crowd{
			{Name: "small", Host: "box", Model: "small", Limits: small, Callers: 20, Words: 200, Cap: 200},
			{Name: "large", Host: "box", Model: "large", Limits: large, Callers: 20, Words: 200, Cap: 200},
		}},
		{"two providers", map[string]providertest.Options{
			"api.openai.com":    {Limits: large, Charge: providertest.PromptOnly, Latency: took},
			"api.anthropic.com": {Limits: other, Charge: providertest.Actual, Dialect: providertest.AnthropicHeaders, Latency: took},
		}, []Crowd{
			{Name: "the first", Host: "api.openai.com", Model: "gpt-4o", Limits: large, Callers: 20, Words: 400, Cap: 200},
			{Name: "the second", Host: "api.anthropic.com", Model: "claude-haiku-4-5", Limits: other, Callers: 20, Words: 400, Cap: 200},
		}},
		{"a model that always refuses", map[string]providertest.Options{"box": {
			Limits: roomy, Charge: providertest.Settle, Latency: took,
			Outages: []providertest.Outage{{Model: "sick", Step: providertest.Step{Kind: providertest.RefuseBare}}},
		}}, []Crowd{
			{Name: "sick", Host: "box", Model: "sick", Limits: roomy, Callers: 1, Words: 100, Cap: 100},
			{Name: "well", Host: "box", Model: "well", Limits: roomy, Callers: 20, Words: 100, Cap: 100, Pause: 700 * time.Millisecond},
		}},
		{"three tenants with calls of 1 to 4 to 20", map[string]providertest.Options{"box": {
			Limits: large, Charge: providertest.Settle, Latency: took, Output: providertest.Constant(1 << 19), // as long as the cap
		}}, []Crowd{
			{Name: "light", Host: "box", Model: "m", Limits: third(large), Callers: 100, Words: 50, Cap: 50, Tenant: "light"},
			{Name: "middle", Host: "box", Model: "m", Limits: third(large), Callers: 40, Words: 200, Cap: 200, Tenant: "middle"},
			{Name: "heavy", Host: "box", Model: "m", Limits: third(large), Callers: 20, Words: 1000, Cap: 1000, Tenant: "heavy"},
		}},
		{"a hog beside two light tenants", map[string]providertest.Options{"box": {
			Limits: large, Charge: providertest.Settle, Latency: took,
		}}, []Crowd{
			{Name: "hog", Host: "box", Model: "m", Limits: third(large), Callers: 60, Words: 400, Cap: 400, Tenant: "hog"},
			{Name: "one", Host: "box", Model: "m", Limits: third(large), Callers: 5, Words: 400, Cap: 400, Pause: 8 * time.Second, Tenant: "one"},
			{Name: "two", Host: "box", Model: "m", Limits: third(large), Callers: 5, Words: 400, Cap: 400, Pause: 8 * time.Second, Tenant: "two"},
		}},
	}
}

// Play plays a situation for five minutes, with one client for all or one for each
// crowd. It is called inside a synctest bubble.
func (s Situation) Play(p Policy, one bool) ([]Got, int64, error) {
	base := boxes{}
	for host, o := range s.Boxes {
		o.LedgerSize = 1
		b, err := providertest.New(o)
		if err != nil {
			return nil, 0, err
		}
		base[host] = b
	}
	clients, err := s.clients(p, base, one)
	if err != nil {
		return nil, 0, err
	}
	logs := make([]crowdLog, len(s.Crowds))
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	defer stop()
	var all sync.WaitGroup
	for i, c := range s.Crowds {
		ctx := ctx
		if c.Tenant != "" {
			ctx = transport.WithTenant(ctx, c.Tenant)
		}
		for k := range c.Callers {
			all.Go(func() { c.play(ctx, clients[i], &logs[i], k, rand.New(rand.NewPCG(uint64(i), uint64(k)))) })
		}
	}
	all.Wait()
	var refused int64
	for _, b := range base {
		refused += b.Stats().Refused
	}
	got := make([]Got, len(s.Crowds))
	for i := range logs {
		slices.Sort(logs[i].waits)
		got[i] = logs[i].got
		got[i].P99 = Quantile(logs[i].waits, .99)
	}
	return got, refused, nil
}

// clients are those of the crowds: one for all, or one for each.
func (s Situation) clients(p Policy, base http.RoundTripper, one bool) ([]http.RoundTripper, error) {
	out := make([]http.RoundTripper, len(s.Crowds))
	for i, c := range s.Crowds {
		if one && i > 0 {
			out[i] = out[0]
			continue
		}
		rt, err := p.New(base, Knows{Limits: c.Limits, Options: s.Boxes[c.Host], Processes: 1})
		if err != nil {
			return nil, err
		}
		out[i] = rt
	}
	return out, nil
}

// crowdLog is what the callers of a crowd write down.
type crowdLog struct {
	mu    sync.Mutex // guards below
	got   Got
	waits []time.Duration
}

// play is caller k: it sends one call after the other until ctx ends.
func (c Crowd) play(ctx context.Context, rt http.RoundTripper, log *crowdLog, k int, r *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		words, most := c.Words/2+r.IntN(c.Words), c.Cap/2+r.IntN(c.Cap)
		asked := time.Now()
		ok := sendTo(ctx, rt, c, words, most, fmt.Sprint(k, " ", n))
		pause := max(c.Pause, time.Millisecond)
		if !ok {
			time.Sleep(max(pause, time.Second)) // many are refused here at once, near the end
			continue
		}
		log.mu.Lock()
		log.got.Answers++
		log.got.Tokens += int64(words + most)
		log.waits = append(log.waits, time.Since(asked))
		log.mu.Unlock()
		time.Sleep(pause)
	}
}

func sendTo(ctx context.Context, rt http.RoundTripper, c Crowd, words, most int, id string) bool {
	body := fmt.Sprintf(`{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":"%s %s"}]}`, c.Model, most, id, strings.Repeat("abc ", words))
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+c.Host+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

// boxes are providers, by host.
type boxes map[string]*providertest.Provider

func (b boxes) RoundTrip(r *http.Request) (*http.Response, error) {
	p := b[r.URL.Host]
	if p == nil {
		return nil, fmt.Errorf("bench: no host %q", r.URL.Host)
	}
	return p.RoundTripper().RoundTrip(r)
}
