package redislimit_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/headers"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
	"github.com/tripmeter/tripmeter/usage"
)

// A knower is a process with a budget over the store. It notes how often a
// charge was doubted.
type knower struct {
	t       *testing.T
	l       *redislimit.Limiter
	path    *budget.Path
	doubted atomic.Int64
	follow  bool
}

func (k *knower) Lowered(string, int64)         {}
func (k *knower) Paused(limit.Pause)            {}
func (k *knower) LimitChanged(_, _ limit.Limit) {}
func (k *knower) LawChanged(_, _ limit.Limit)   {}
func (k *knower) Doubted(_, _ estimate.Charge) (follow bool) {
	k.doubted.Add(1)
	return k.follow
}

const ofModel = "tokens per minute"

func knowers(t *testing.T, limits []limit.Limit, p profile.Profile) (a, b *knower) {
	server := redistest.Start(t)
	for _, k := range []**knower{&a, &b} {
		l := open(t, redislimit.Options{Runner: viaRueidis(t, server.Addr), Timeout: patient, MemberTTL: 5 * patient})
		shared, err := budget.New(budget.Options{Ledger: l, Limits: limits, Profile: p})
		if err != nil {
			t.Fatal(err)
		}
		*k = &knower{t: t, l: l, path: shared.Path(budget.Address{Host: "api.example.com", Model: "m"}), follow: true}
	}
	return a, b
}

// begin is a call on the wire.
func (k *knower) begin(input, output int64) *budget.Call {
	k.t.Helper()
	c := &budget.Call{}
	c.Open(k.path, k, &estimate.Request{Model: "m", Input: input, OutputCap: output, Choices: 1}, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.Admit(ctx, time.Now()); err != nil {
		k.t.Fatal(err)
	}
	c.Leave(time.Now())
	return c
}

func left(limited, remaining int64) *headers.Info {
	return &headers.Info{Tokens: headers.Quota{
		Limit: headers.Count{N: limited, OK: true}, Remaining: headers.Count{N: remaining, OK: true}, Window: time.Minute,
	}}
}

func answered(c *budget.Call, i *headers.Info, input, output int64) {
	c.Hear(time.Now(), i, false)
	r := usage.Read("application/json", "", fmt.Appendf(nil, `{"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, input, output, input+output))
	c.Settle(time.Now(), &r)
}

// model is the limit of the model's scope, as this process sees it.
func (k *knower) model() (limit.LimitState, limit.Snapshot) {
	for _, s := range k.l.Snapshot().Scopes {
		if len(s.Scope) > 2 && s.Scope[len(s.Scope)-2:] == "/m" {
			for _, l := range s.Limits {
				if l.Name == ofModel {
					return l, s
				}
			}
			return limit.LimitState{}, s
		}
	}
	return limit.LimitState{}, limit.Snapshot{}
}

// One process learns a limit and its balance. Both hold the other process, which has
// seen no answer.
func TestWhatOneLearnsAllKnowLimitsAndBalances(t *testing.T) {
	t.Parallel()
	a, b := knowers(t, nil, profile.Unknown())
	c := a.begin(100, 100)
	answered(c, left(60_000, 7_000), 100, 100)
	b.begin(100, 100).End(budget.Unsent)
	got, _ := b.model()
	if got.Rate != limit.PerMinute(60_000) {
		t.Fatalf("the other process sees %v", got)
	}
	if free := got.Credit - got.Held; free > 9_000 {
		t.Errorf("it may send %d at once, of 7,000 that are left", free)
	}
}

// A refusal of one process pauses and drains all.
func TestWhatOneLearnsAllKnowPausesAndDrains(t *testing.T) {
	t.Parallel()
	a, b := knowers(t, nil, profile.Unknown())
	answered(a.begin(100, 100), left(60_000, 59_000), 100, 100)
	answered(b.begin(100, 100), left(60_000, 58_000), 100, 100)
	c := a.begin(100, 100)
	c.Hear(time.Now(), left(60_000, 0), true)
	c.Pause(time.Now(), 400*time.Millisecond)
	c.Refuse(time.Now(), budget.Refusal{Wait: 400 * time.Millisecond, Named: true, Dimension: "tokens"})
	start := time.Now()
	_, s := b.model()
	if s.PausedUntil.IsZero() {
		t.Error("the other process is not paused")
	}
	c.End(budget.Refused)
	b.begin(100, 100).End(budget.Unknown)
	if d := time.Since(start); d < 350*time.Millisecond {
		t.Errorf("it sent after %v", d)
	}
	if got, _ := b.model(); got.Credit-got.Held > 3_000 { // a second or so of the rate
		t.Errorf("after the pause it may send %d at once", got.Credit-got.Held)
	}
}

// A cut that one process made stands when the other one hears an answer, and grows
// back from there.
func TestWhatOneLearnsAllKnowCuts(t *testing.T) {
	t.Parallel()
	a, b := knowers(t, []limit.Limit{{Name: ofModel, Unit: limit.Tokens, Rate: limit.PerMinute(60_000)}}, profile.Unknown())
	answered(a.begin(100, 100), left(60_000, 59_000), 100, 100)
	answered(b.begin(100, 100), left(60_000, 58_000), 100, 100)
	for range 2 { // the first one is explained by what was sent before the start
		c := a.begin(100, 100)
		c.Hear(time.Now(), left(60_000, 50_000), true)
		c.Refuse(time.Now(), budget.Refusal{Wait: 20 * time.Millisecond, Dimension: "tokens"})
		c.End(budget.Refused)
		time.Sleep(60 * time.Millisecond)
	}
	cut, _ := a.model()
	if cut.Rate.N > 50_000 {
		t.Fatalf("the rate is not cut: %v", cut)
	}
	for range 3 {
		answered(b.begin(100, 100), left(60_000, 55_000), 100, 100)
		// It grows back by 600 of 60,000 a second.
		if got, _ := b.model(); got.Rate.N < cut.Rate.N || got.Rate.N > 59_000 {
			t.Fatalf("cut to %v by one process, %v after an answer to the other", cut.Rate, got.Rate)
		}
	}
	// A further refusal deepens the cut of the first process, and begins no other.
	c := b.begin(100, 100)
	c.Hear(time.Now(), left(60_000, 50_000), true)
	c.Refuse(time.Now(), budget.Refusal{Wait: 20 * time.Millisecond, Dimension: "tokens"})
	c.End(budget.Refused)
	time.Sleep(60 * time.Millisecond)
	c = b.begin(100, 100)
	c.Hear(time.Now(), left(60_000, 50_000), true)
	c.Refuse(time.Now(), budget.Refusal{Wait: 20 * time.Millisecond, Dimension: "tokens"})
	c.End(budget.Refused)
	got, _ := a.model()
	if got.Rate.N >= cut.Rate.N*9/10 {
		t.Errorf("cut to %v, and after a refusal of the other process to %v", cut.Rate, got.Rate)
	}
}

// A charge rule that headers of one process show is known to the other, which asks
// once whether to follow it.
func TestWhatOneLearnsAllKnowDoubts(t *testing.T) {
	t.Parallel()
	p := profile.Unknown()
	p.Rule = estimate.Rule{Charge: estimate.ChargeSettle}
	a, b := knowers(t, nil, p)
	answered(b.begin(100, 100), left(6_000_000, 5_000_000), 100, 100)
	remaining := int64(5_000_000)
	for i := 0; i < 200 && a.doubted.Load() == 0; i++ {
		// The provider charges the cap on arrival, and gives nothing back.
		remaining -= 3_000
		answered(a.begin(1_000, 2_000), left(6_000_000, remaining), 1_000, 10)
	}
	if a.doubted.Load() != 1 {
		t.Fatalf("the rule was doubted %d times", a.doubted.Load())
	}
	for range 3 {
		remaining -= 3_000
		answered(b.begin(1_000, 2_000), left(6_000_000, remaining), 1_000, 10)
	}
	if b.doubted.Load() != 1 {
		t.Errorf("Doubted was called %d times on the other process, want 1", b.doubted.Load())
	}
	c := b.begin(1_000, 2_000)
	if got := c.Cost(); got.Input+got.Output < 3_000 {
		t.Errorf("the other process still reserves %+v", got)
	}
	c.End(budget.Unsent)
}

// A credential is one account for all processes that hash it with one key, and two
// accounts where keys differ: the name of an account is its hash.
func TestACredentialIsOneAccountForAllProcesses(t *testing.T) {
	t.Parallel()
	for _, own := range [][]byte{nil, []byte("ours")} {
		bubble(t, 2, redislimit.Options{Secret: own}, func(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, _ []*wire) {
			names := map[string]bool{}
			for i, secret := range [][]byte{nil, nil, []byte("another")} {
				b, err := budget.New(budget.Options{
					Ledger: m[i%2], Profile: profile.Unknown(), Secret: secret,
					Limits: []limit.Limit{{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(1000)}},
				})
				if err != nil {
					t.Fatal(err)
				}
				p := b.Path(budget.Address{Host: "api.example.com", Credential: "sk-1"})
				c := &budget.Call{}
				c.Open(p, &knower{t: t}, &estimate.Request{Input: 10}, 1)
				if err := c.Admit(t.Context(), time.Now()); err != nil {
					t.Fatal(err)
				}
				c.End(budget.Unsent)
				time.Sleep(time.Second)
				for _, s := range m[i%2].Snapshot().Scopes {
					if len(s.Limits) > 0 {
						names[s.Scope] = true
					}
				}
				if want := 1 + i/2; len(names) != want {
					t.Errorf("secret %q, of the ledger %q: the accounts are %v, want %d", secret, own, names, want)
				}
			}
		})
	}
}
