package transport_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// A crowd sends calls of one kind, each caller one after the other, until the
// test's time is over.
type crowd struct {
	url, key, model string
	callers         int
	prompt, most    int // words, and the cap of the answer
	pause           time.Duration
}

// A harvest is what came of a crowd.
type harvest struct{ answered, refused, failed int }

// reap lets the crowds send for d, each through a RoundTripper of its own, and
// counts what the callers got. The calls that are under way at the end are
// cancelled.
func reap(d time.Duration, crowds []crowd, rts []http.RoundTripper) []harvest {
	var answered, refused, failed = make([]atomic.Int64, len(crowds)), make([]atomic.Int64, len(crowds)), make([]atomic.Int64, len(crowds))
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for i, c := range crowds {
		for k := range c.callers {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(k)))
				for n := 0; time.Now().Before(end); n++ {
					body := fmt.Sprintf(`{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":"%d %d %s"}]}`,
						c.model, c.most/2+r.IntN(c.most), k, n, strings.Repeat("abc ", c.prompt/2+r.IntN(c.prompt)))
					req, _ := http.NewRequest("POST", c.url+"/v1/chat/completions", strings.NewReader(body))
					req.Header.Set("Content-Type", "application/json")
					req.Header.Set("Authorization", "Bearer "+c.key)
					ctx, cancel := contextUntil(end)
					resp, err := rts[i].RoundTrip(req.WithContext(ctx))
					switch {
					case err != nil:
						failed[i].Add(1)
						if ctx.Err() == nil {
							time.Sleep(time.Second) // refused here
						}
					default:
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						switch {
						case resp.StatusCode == 200:
							answered[i].Add(1)
						default:
							refused[i].Add(1)
						}
					}
					cancel()
					time.Sleep(c.pause)
				}
			})
		}
	}
	all.Wait()
	out := make([]harvest, len(crowds))
	for i := range out {
		out[i] = harvest{int(answered[i].Load()), int(refused[i].Load()), int(failed[i].Load())}
	}
	return out
}

// situation is one of several providers behind one client, with those who call.
type situation struct {
	name    string
	boxes   map[string]providertest.Options // by host
	crowds  []crowd
	options transport.Options
	healthy int // crowds from this one on must do as well as apart
}

// play runs a situation through one Transport, or through one for each crowd. It
// returns what the crowds got, and the 429s that the providers gave.
func (s situation) play(t *testing.T, apart bool) (got []harvest, refused int64) {
	synctest.Test(t, func(t *testing.T) {
		hosts := map[string]*providertest.Provider{}
		for host, o := range s.boxes {
			hosts[host] = box(t, o)
		}
		base := byHost{hosts}
		rts := make([]http.RoundTripper, len(s.crowds))
		o := s.options
		o.Base = base
		one := gate(t, o)
		for i := range rts {
			if rts[i] = one; apart {
				rts[i] = gate(t, o)
			}
		}
		got = reap(5*time.Minute, s.crowds, rts)
		for _, p := range hosts {
			refused += p.Stats().Refused
		}
	})
	return got, refused
}

// byHost is a network of providers.
type byHost struct {
	hosts map[string]*providertest.Provider
}

func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	return b.hosts[r.URL.Host].RoundTripper().RoundTrip(r)
}

// One client does what one for each of its models, hosts and keys would do.
func TestOneClientIsAsGoodAsManyApart(t *testing.T) {
	took := func(providertest.Call) providertest.Timing {
		return providertest.Timing{FirstByte: 200 * time.Millisecond, PerToken: 2 * time.Millisecond}
	}
	twoModels := map[string]providertest.Options{"box": {
		ModelLimits: map[string]providertest.Limits{"small": {TPM: 30_000, RPM: 500}, "large": {TPM: 200_000, RPM: 3000}},
		Charge:      providertest.Settle, Latency: took,
	}}
	small := crowd{"http://box", "k", "small", 20, 200, 200, 0}
	large := crowd{"http://box", "k", "large", 20, 200, 200, 0}
	for _, s := range []situation{
		{name: "two models, nothing configured", boxes: twoModels, crowds: []crowd{small, large}},
		{name: "two models, tokens of the account configured", boxes: twoModels, crowds: []crowd{small, large}, options: transport.Options{TPM: 230_000}},
		{name: "two providers", boxes: map[string]providertest.Options{
			"api.openai.com":    {Limits: providertest.Limits{TPM: 200_000, RPM: 3000}, Charge: providertest.PromptOnly, Latency: took},
			"api.anthropic.com": {Limits: providertest.Limits{InputTPM: 20_000, RPM: 300}, Charge: providertest.Actual, Dialect: providertest.AnthropicHeaders, Latency: took},
		}, crowds: []crowd{
			{"http://api.openai.com", "k", "gpt-4o", 20, 400, 200, 0},
			{"http://api.anthropic.com", "a", "claude-haiku-4-5", 20, 400, 200, 0},
		}},
		{name: "a model that always refuses", boxes: map[string]providertest.Options{"box": {
			Limits: providertest.Limits{TPM: 600_000, RPM: 3000}, Charge: providertest.Settle, Latency: took,
			Outages: []providertest.Outage{{Model: "sick", Step: providertest.Step{Kind: providertest.RefuseBare}}},
		}}, crowds: []crowd{
			{"http://box", "k", "sick", 1, 100, 100, 0},
			{"http://box", "k", "well", 20, 100, 100, 700 * time.Millisecond},
		}, healthy: 1},
		{name: "a model that always refuses, tokens of the account configured", boxes: map[string]providertest.Options{"box": {
			Limits: providertest.Limits{TPM: 600_000, RPM: 3000}, Charge: providertest.Settle, Latency: took,
			Outages: []providertest.Outage{{Model: "sick", Step: providertest.Step{Kind: providertest.Refuse, RetryAfter: 20 * time.Second}}},
		}}, crowds: []crowd{
			{"http://box", "k", "sick", 1, 100, 100, 0},
			{"http://box", "k", "well", 20, 100, 100, 700 * time.Millisecond},
		}, healthy: 1, options: transport.Options{TPM: 600_000, RPM: 3000}},
		{name: "a picture host that is down for an hour", boxes: map[string]providertest.Options{
			"pictures": {Outages: []providertest.Outage{{Step: providertest.Step{Kind: providertest.Unavailable, RetryAfter: time.Hour}}}},
			"box":      {Limits: providertest.Limits{TPM: 600_000, RPM: 3000}, Charge: providertest.Settle, Latency: took},
		}, crowds: []crowd{
			{"http://pictures", "p", "draw", 1, 100, 100, time.Second},
			{"http://box", "k", "well", 20, 100, 100, 700 * time.Millisecond},
		}, healthy: 1},
		{name: "two keys of one host", boxes: map[string]providertest.Options{"box": {
			Accounts: []providertest.Account{{Name: "a", Key: "a", Limits: providertest.Limits{TPM: 200_000}}, {Name: "b", Key: "b", Limits: providertest.Limits{TPM: 20_000}}},
			Charge:   providertest.Settle, Latency: took,
		}}, crowds: []crowd{
			{"http://box", "a", "m", 20, 200, 200, 0},
			{"http://box", "b", "m", 20, 200, 200, 0},
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			apart, refusedApart := s.play(t, true)
			together, refused := s.play(t, false)
			t.Logf("apart %v, %d refused; together %v, %d refused", apart, refusedApart, together, refused)
			for i := s.healthy; i < len(s.crowds); i++ {
				if together[i].answered*100 < apart[i].answered*97 || apart[i].answered == 0 {
					t.Errorf("%s: %d answers, apart %d", s.crowds[i].model, together[i].answered, apart[i].answered)
				}
			}
			if refused > refusedApart {
				t.Errorf("%d refusals, apart %d", refused, refusedApart)
			}
		})
	}
}

func contextUntil(end time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadline(context.Background(), end)
}
