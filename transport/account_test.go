package transport_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/transport"
)

// A clinic is a provider whose sick model refuses with a body, and a Retry-After unless
// after is empty.
type clinic struct {
	body, after string

	mu    sync.Mutex
	calls map[string][]time.Duration // by model, since start
	start time.Time
}

func (c *clinic) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body.Close()
	model := "well"
	if strings.Contains(string(b), `"sick"`) {
		model = "sick"
	}
	c.mu.Lock()
	c.calls[model] = append(c.calls[model], time.Since(c.start))
	c.mu.Unlock()
	time.Sleep(100 * time.Millisecond)
	resp := &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`)), Request: r,
	}
	if model == "sick" {
		resp.StatusCode = 429
		resp.Body = io.NopCloser(strings.NewReader(c.body))
		if c.after != "" {
			resp.Header.Set("Retry-After", c.after)
		}
	}
	return resp, nil
}

func (c *clinic) ask(ctx context.Context, rt http.RoundTripper, host, key, model string) (int, error) {
	req, _ := http.NewRequestWithContext(ctx, "POST", "http://"+host+"/v1/chat/completions",
		strings.NewReader(`{"model":"`+model+`","max_tokens":10,"messages":[{"role":"user","content":"hello"}]}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	status, _, err := finish(rt.RoundTrip(req))
	return status, err
}

// A refusal of the account holds all its models until the provider's instant. A
// refusal of a model holds that model. Neither holds another key or another host.
func TestARefusalHoldsWhatItSpeaksOf(t *testing.T) {
	for _, row := range []struct {
		name, body string
		account    bool
	}{
		{"a code of the account", `{"error":{"code":"account_rate_limit_exceeded","message":"Too many requests"}}`, true},
		{"a code of an account's rate", `{"error":{"code":"insufficient_account_rate","message":"Too many requests"}}`, true},
		{"a code of the model", `{"error":{"code":"ModelAccountTpmRateLimitExceeded","message":"The account has used up its rate"}}`, false},
		{"a scope", `{"error":{"message":"Rate limit exceeded","scope":"organization"}}`, true},
		{"a scope beside the error", `{"error":{"message":"Rate limit exceeded"},"scope":"account"}`, true},
		{"a scope of the model", `{"error":{"message":"The account's rate limit","scope":"model"}}`, false},
		{"all models", `{"error":{"message":"Rate limit exceeded for all models"}}`, true},
		{"the level", `{"error":{"message":"Organization-level rate limit reached"}}`, true},
		{"a mention", `{"error":{"message":"This request would exceed your account's rate limit. Please try again later."}}`, true},
		{"a mention, and the model", `{"error":{"message":"Rate limit reached for sick in organization org-1 on tokens per min"}}`, false},
		{"a mention in the caller's words", "{\"error\":{\"message\":\"Rate limit: `all models of your account`\"}}", false},
		{"a project's quota", `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProject"}]}]}}`, true},
		{"a project's quota of a model", `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"}]}]}}`, false},
		{"nothing", `{}`, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &clinic{body: row.body, after: "20", calls: map[string][]time.Duration{}, start: time.Now()}
				rt := gate(t, transport.Options{Base: c, Attempts: 1, TPM: 100_000})
				if status, err := c.ask(t.Context(), rt, "box", "k", "sick"); status != 429 {
					t.Fatal(status, err)
				}
				for _, other := range [][3]string{{"box", "another key", "well"}, {"other", "k", "well"}} {
					before := time.Now()
					c.ask(t.Context(), rt, other[0], other[1], other[2])
					if w := time.Since(before); w > time.Second {
						t.Errorf("%v waited %v", other, w)
					}
				}
				c.ask(t.Context(), rt, "box", "k", "well")
				last := c.calls["well"][len(c.calls["well"])-1]
				if held := last >= 20*time.Second; held != row.account {
					t.Errorf("the model that is well was sent at %v", last)
				}
				if row.account && last < 20*time.Second+100*time.Millisecond {
					t.Errorf("sent at %v, before the instant that was named", last)
				}
			})
		})
	}
}

// What a refusal of the account drains is what its models have: they do not leave as a
// crowd when the wait is over, though nobody knows a limit of the account.
func TestAfterARefusalOfTheAccountNoCrowdLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clinic{body: `{"error":{"code":"account_rate_limit_exceeded"}}`, after: "20", calls: map[string][]time.Duration{}, start: time.Now()}
		rt := gate(t, transport.Options{Base: c, Attempts: 1, Scopes: transport.Scopes{Models: []transport.ModelOptions{{Names: []string{"*"}, RPM: 60, TPM: 10_000}}}})
		c.ask(t.Context(), rt, "box", "k", "well")
		c.ask(t.Context(), rt, "box", "k", "sick")
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { c.ask(t.Context(), rt, "box", "k", "well") })
		}
		all.Wait()
		early := 0
		for _, at := range c.calls["well"][1:] {
			if at < 25*time.Second {
				early++
			}
		}
		if early == 0 || early > 6 {
			t.Errorf("%d of 20 left within 5 s after the wait, at 60 a minute", early)
		}
	})
}

// One model that is sick for good cannot stop those that are well: not by words that
// mention the account, and by clear ones not for more than three waits. Each wait that
// it names is kept to by itself.
func TestASickModelCannotBlameTheAccountForEver(t *testing.T) {
	for name, row := range map[string]struct {
		body string
		most int // waits of the others
	}{
		"a mention": {`{"error":{"message":"You have exceeded the rate limit of your organization"}}`, 1},
		"a code":    {`{"error":{"code":"account_rate_limit_exceeded"}}`, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &clinic{body: row.body, after: "5", calls: map[string][]time.Duration{}, start: time.Now()}
				rt := gate(t, transport.Options{Base: c, Attempts: 1})
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
				defer stop()
				var all sync.WaitGroup
				ask := func(model string) {
					all.Go(func() {
						for ctx.Err() == nil {
							c.ask(ctx, rt, "box", "k", model)
							time.Sleep(400 * time.Millisecond)
						}
					})
				}
				ask("sick")
				ask("well")
				all.Wait()
				waits := 0
				for i, at := range c.calls["well"][1:] {
					if at-c.calls["well"][i] > 2*time.Second {
						waits++
					}
				}
				if waits > row.most {
					t.Errorf("the model that is well waited %d times, want at most %d", waits, row.most)
				}
				for i, at := range c.calls["sick"][1:] {
					if d := at - c.calls["sick"][i]; d < 5*time.Second {
						t.Errorf("the sick model was asked again after %v", d)
						break
					}
				}
			})
		})
	}
}
