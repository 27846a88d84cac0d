package providertest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// idsOf is ids for a model.
func idsOf(model string, n, cap int) string {
	return strings.Replace(ids(n, cap), `"m"`, fmt.Sprintf("%q", model), 1)
}

// Two models of one account have limits of their own, below one they share.
func TestModelsHaveLimitsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustNew(t, Options{
			Limits:      Limits{RPM: 5},
			ModelLimits: map[string]Limits{"small": {RPM: 2}, "big": {RPM: 4, TPM: 100}},
			Charge:      Actual, Count: countIDs, Output: Constant(0),
		})
		for _, c := range []struct {
			model           string
			status          int
			limit, tokens   string // of requests, and tokens left
			reason, retried string
		}{
			{"small", 200, "2", "", "", ""},
			{"small", 200, "2", "", "", ""},
			{"small", 429, "2", "", "requests", "30"},
			{"big", 200, "4", "60", "", ""},
			{"big", 200, "4", "20", "", ""},
			{"big", 429, "4", "20", "tokens", "12"},   // 40 tokens: 20 are missing at 100 a minute
			{"other", 200, "5", "", "", ""},           // the fifth of the account
			{"other", 429, "5", "", "requests", "12"}, // which holds no more
		} {
			r := send(t.Context(), p.RoundTripper(), "/v1/completions", idsOf(c.model, 40, 1))
			e := p.Ledger()
			if last := e[len(e)-1]; r.status != c.status || r.header.Get("X-Ratelimit-Limit-Requests") != c.limit ||
				r.header.Get("X-Ratelimit-Remaining-Tokens") != c.tokens || last.Reason != c.reason || r.header.Get("Retry-After") != c.retried {
				t.Errorf("%s: status %d, %s, wait %s, reason %q, %v", c.model, r.status, r.header.Get("X-Ratelimit-Limit-Requests"),
					r.header.Get("Retry-After"), last.Reason, r.header)
			}
		}
		q, ok := p.QuotaUsedBy("", "big", p.Start(), p.Start().Add(time.Minute))
		if !ok || q.Requests != 0.5 || q.Tokens != 0.8 {
			t.Errorf("%+v, %v", q, ok)
		}
		if err := p.SetModelLimits("small", Limits{RPM: -1}); err == nil {
			t.Error("a negative limit was taken")
		}
		if err := p.SetModelLimits("small", Limits{}); err != nil {
			t.Error(err)
		}
	})
}

// Each key is an account: what one spends the other still has.
func TestAccountsByKey(t *testing.T) {
	p := mustNew(t, Options{
		Limits:   Limits{RPM: 1},
		Accounts: []Account{{Name: "a", Key: "key-a"}, {Name: "b", Key: "key-b", Limits: Limits{RPM: 2}}},
	})
	got := ""
	for _, key := range []string{"key-a", "key-a", "key-b", "key-b", "key-b", "key-c"} {
		got += fmt.Sprint(send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1), "Authorization", "Bearer "+key).status, " ")
	}
	if got != "200 429 200 200 429 401 " {
		t.Fatal(got)
	}
	names := ""
	for _, e := range p.Ledger() {
		names += e.Account
	}
	if names != "aabbb" {
		t.Errorf("accounts %q", names)
	}
	if _, ok := p.QuotaUsedBy("nobody", "", p.Start(), time.Now()); ok {
		t.Error("an account that is not there has a quota")
	}
}

// Somebody else spends half of the account, unseen but in what remains.
func TestOthersShareTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{
			Limits: Limits{TPM: 600}, Charge: PromptOnly, Count: countIDs,
			Others: []Load{{Every: 10 * time.Second, Input: 50, Until: 50 * time.Second}},
		}
		p := mustNew(t, o)
		time.Sleep(time.Nanosecond)
		r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(550, 1))
		if r.status != 200 || r.header.Get("X-Ratelimit-Remaining-Tokens") != "0" {
			t.Fatalf("%d, %v", r.status, r.header)
		}
		time.Sleep(time.Minute)
		// 50 at 0 and 10, ..., 40 s: 300 came back by then.
		if r = send(t.Context(), p.RoundTripper(), "/v1/completions", ids(401, 1)); r.status != 429 {
			t.Errorf("status %d, left %s", r.status, r.header.Get("X-Ratelimit-Remaining-Tokens"))
		}
		if r = send(t.Context(), p.RoundTripper(), "/v1/completions", ids(400, 1)); r.status != 200 {
			t.Errorf("status %d, left %s", r.status, r.header.Get("X-Ratelimit-Remaining-Tokens"))
		}
		if s := p.Stats(); s.Others != 5 || s.OthersRefused != 0 || s.Requests != 3 {
			t.Errorf("%+v", s)
		}
		// The ideal client has the same neighbours: 600 less 50 at once, the
		// rest at ten a second, of which 50 go to the others at 10 s.
		ideal, err := IdealTimes([]Cost{{Prompt: 550}, {Prompt: 100}}, o, time.Now())
		if err != nil || ideal[1] != 15*time.Second {
			t.Errorf("%v, %v", ideal, err)
		}
	})
}

// For a minute one model is overloaded; another never has anything but refusals.
func TestOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustNew(t, Options{Outages: []Outage{
			{Model: "busy", From: 10 * time.Second, For: time.Minute, Step: Step{Kind: Overloaded}},
			{Model: "gone", Step: Step{Kind: Refuse, RetryAfter: 5 * time.Second}},
		}})
		got := ""
		for range 8 {
			for _, m := range []string{"busy", "gone", "well"} {
				got += fmt.Sprint(send(t.Context(), p.RoundTripper(), "/v1/completions", idsOf(m, 1, 1)).status, " ")
			}
			time.Sleep(10 * time.Second)
		}
		want := "200 429 200 " + strings.Repeat("529 429 200 ", 6) + "200 429 200 "
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		p.Script(Step{Kind: ServerError})
		if r := send(t.Context(), p.RoundTripper(), "/v1/completions", idsOf("gone", 1, 1)); r.status != 500 {
			t.Errorf("a scripted step does not go before an outage: %d", r.status)
		}
	})
}

// The charge differs by up to the jitter, the usage does not, and the same seed
// charges the same.
func TestChargeJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		charges := func(seed uint64) (out []int64) {
			p := mustNew(t, Options{Limits: Limits{TPM: 1e9}, Charge: Settle, ChargeJitter: 10, Seed: seed, Count: countIDs, Output: Constant(100)})
			for i := range 60 {
				r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1000+i%3, 100))
				if want := fmt.Sprintf(`"prompt_tokens":%d`, 1000+i%3); !strings.Contains(r.body, want) {
					t.Fatalf("no %s in %s", want, r.body)
				}
			}
			for _, e := range p.Ledger() {
				n := e.Settled.Total()
				if n < 988 || n > 1213 {
					t.Errorf("charged %d for about 1,100 with 10 %%", n)
				}
				out = append(out, n)
			}
			return out
		}
		a, b := charges(1), charges(1)
		different := map[int64]bool{}
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("charge %d is %d, then %d with the same seed", i, a[i], b[i])
			}
			different[a[i]] = true
		}
		if len(different) < 15 {
			t.Errorf("%d different charges of 60", len(different))
		}
	})
}

// A call is judged when it arrives, not when it left.
func TestNetworkDelaysTheJudgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustNew(t, Options{Limits: Limits{RPM: 60}, Network: func(r *rand.Rand) time.Duration {
			return time.Duration(1+r.IntN(3)) * 100 * time.Millisecond
		}})
		seen := map[time.Duration]bool{}
		for i := range 30 {
			before := time.Since(p.Start())
			send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1+i, 1))
			e := p.Ledger()
			seen[e[len(e)-1].Since-before] = true
		}
		if len(seen) != 3 || !seen[100*time.Millisecond] || !seen[300*time.Millisecond] {
			t.Errorf("delays %v", seen)
		}
	})
}

// When the balance is read decides what a header shows of the call itself: a
// prompt of 100 on arrival and an output of 20 at the end, of 1,000.
func TestReadings(t *testing.T) {
	for _, c := range []struct {
		reading       Reading
		charge        Charge
		whole, stream string
	}{
		{ReadAtAdmission, Actual, "900", "900"},
		{ReadBefore, Actual, "1000", "1000"},
		{ReadAtAnswer, Actual, "900", "900"},
		{ReadAtEnd, Actual, "880", "900"},
		{ReadAtEnd, Afterwards, "880", "1000"},
		{ReadBefore, Afterwards, "1000", "1000"},
		{ReadAtEnd, Beyond, "880", "885"}, // 15 of the output reserved, 5 beyond it
	} {
		t.Run(fmt.Sprintf("reading %d, charge %d", c.reading, c.charge), func(t *testing.T) {
			for stream, want := range map[string]string{"": c.whole, `,"stream":true`: c.stream} {
				p := mustNew(t, Options{Limits: Limits{TPM: 1000}, Algorithm: SlidingMinute, Charge: c.charge, Reading: c.reading,
					Count: countIDs, Output: Constant(20), Reserve: func(Prompt) int64 { return 15 }})
				body := strings.TrimSuffix(ids(100, 20), "}") + stream + "}"
				r := send(t.Context(), p.RoundTripper(), "/v1/completions", body)
				if got := r.header.Get("X-Ratelimit-Remaining-Tokens"); got != want {
					t.Errorf("stream %q: %s left, want %s", stream, got, want)
				}
			}
		})
	}
}

// A reset is written in the form asked for, and never rounded up.
func TestResetForms(t *testing.T) {
	for _, c := range []struct {
		reset   Reset
		dialect Dialect
		want    string
	}{
		{ResetByDialect, OpenAIHeaders, "7.009s"}, {ResetSeconds, OpenAIHeaders, "7"}, {ResetFraction, OpenAIHeaders, "7.009"},
		{ResetMillis, AzureHeaders, "7009"}, {NoReset, OpenAIHeaders, ""}, {ResetSeconds, AzureHeaders, "7"},
	} {
		p := mustNew(t, Options{Limits: Limits{TPM: 856}, Charge: PromptOnly, Count: countIDs, Reset: c.reset, Dialect: c.dialect})
		synctest.Test(t, func(t *testing.T) {
			p = mustNew(t, p.o)
			r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(100, 1)) // 100 x 60 / 856 s
			period := ""
			if c.dialect == AzureHeaders {
				period = "60"
			}
			if got := r.header.Get("X-Ratelimit-Reset-Tokens"); got != c.want || r.header.Get("X-Ratelimit-Renewalperiod-Tokens") != period {
				t.Errorf("reset %d: %q, want %q, %v", c.reset, got, c.want, r.header)
			}
		})
	}
}

// What each preset shows of one call, as recorded: a prompt of 15 characters,
// and 40 tokens of output.
func TestPresetsShowWhatWasRecorded(t *testing.T) {
	const body = `{"model":"m","max_tokens":500,"messages":[{"role":"user","content":"fifteen letters"}]}`
	seen := map[string]bool{}
	for _, c := range []struct {
		name, path string
		fields     map[string]string
		charged    int64
	}{
		{"openai-chat", "/v1/chat/completions", map[string]string{"X-Ratelimit-Remaining-Tokens": "29994", "X-Ratelimit-Reset-Tokens": "12ms", "X-Ratelimit-Reset-Requests": "120ms"}, 6},
		{"openai-responses", "/v1/responses", map[string]string{"X-Ratelimit-Remaining-Tokens": "29975"}, 25},
		{"openai-gpt5", "/v1/chat/completions", map[string]string{"X-Ratelimit-Remaining-Tokens": "29831"}, 169},
		{"azure-2025", "/openai/deployments/m/chat/completions", map[string]string{"X-Ratelimit-Remaining-Tokens": "29994", "X-Ratelimit-Reset-Tokens": "", "X-Ratelimit-Renewalperiod-Tokens": ""}, 6},
		{"azure", "/openai/deployments/m/chat/completions", map[string]string{"X-Ratelimit-Remaining-Tokens": "29994", "X-Ratelimit-Reset-Tokens": "0", "X-Ratelimit-Renewalperiod-Requests": "60"}, 6},
		{"groq", "/openai/v1/chat/completions", map[string]string{"X-Ratelimit-Remaining-Tokens": "29994", "X-Ratelimit-Reset-Tokens": "12ms"}, 46},
		{"xai", "/v1/chat/completions", map[string]string{"X-Ratelimit-Remaining-Tokens": "30000", "X-Ratelimit-Remaining-Requests": "500", "X-Ratelimit-Reset-Tokens": ""}, 46},
		{"mistral-2025", "/v1/chat/completions", map[string]string{"X-Ratelimit-Remaining-Tokens-Minute": "29954", "X-Ratelimit-Tokens-Query-Cost": "46", "X-Ratelimit-Remaining-Req-Minute": "499"}, 46},
		{"mistral", "/v1/chat/completions", map[string]string{"X-Ratelimit-Remaining-Tokens-Minute": "29954", "X-Ratelimit-Tokens-Query-Cost": "46"}, 46},
		{"anthropic", "/v1/messages", map[string]string{"Anthropic-Ratelimit-Input-Tokens-Remaining": "30000", "Anthropic-Ratelimit-Output-Tokens-Remaining": "8000",
			"Anthropic-Ratelimit-Tokens-Limit": "38000", "Anthropic-Ratelimit-Requests-Reset": "2000-01-01T00:00:00Z"}, 46},
		{"anthropic-2024", "/v1/messages", map[string]string{"Anthropic-Ratelimit-Input-Tokens-Reset": "2000-01-01T00:00:29Z", "Anthropic-Ratelimit-Tokens-Limit": ""}, 46},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				preset, ok := PresetNamed(strings.ToUpper(c.name))
				if !ok {
					t.Fatal("no such preset")
				}
				seen[preset.Name] = true
				limits := Limits{RPM: 500, TPM: 30_000}
				if c.path == "/v1/messages" {
					limits = Limits{RPM: 500, InputTPM: 30_000, OutputTPM: 8000}
				}
				o := preset.Options(limits)
				o.Output = Constant(40)
				p := mustNew(t, o)
				path := c.path
				b := body
				if path == "/v1/responses" {
					b = `{"model":"m","input":"ten letters, no"}`
				}
				r := send(t.Context(), p.RoundTripper(), path, b)
				for name, want := range c.fields {
					if got := r.header.Get(name); got != want {
						t.Errorf("%s is %q, want %q", name, got, want)
					}
				}
				if e := p.Ledger(); len(e) != 1 || r.status != 200 || e[0].Settled.Total() != c.charged {
					t.Errorf("status %d, ledger %+v; want %d charged", r.status, e, c.charged)
				}
			})
		})
	}
	for _, p := range Presets() {
		if !seen[p.Name] || p.Law == "" || p.Unknown == "" || p.From > p.Until {
			t.Errorf("%+v is not tested or says too little", p)
		}
	}
}

// Azure shows nothing left to a call that it refuses, and what is left to the
// next one.
func TestRefusedZero(t *testing.T) {
	preset, _ := PresetNamed("azure")
	p := mustNew(t, preset.Options(Limits{TPM: 100}))
	big := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}]}`
	small := `{"model":"m","messages":[{"role":"user","content":"x"}]}`
	for _, c := range [][3]string{{big, "429", "0"}, {small, "200", "97"}} {
		r := send(t.Context(), p.RoundTripper(), "/v1/chat/completions", c[0])
		if fmt.Sprint(r.status) != c[1] || r.header.Get("X-Ratelimit-Remaining-Tokens") != c[2] {
			t.Errorf("%d, %s left; want %s, %s", r.status, r.header.Get("X-Ratelimit-Remaining-Tokens"), c[1], c[2])
		}
	}
}

// A client in another process reaches the provider on a port.
func TestListen(t *testing.T) {
	p := mustNew(t, Options{})
	url, stop, err := p.Listen()
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(ids(1, 1)))
	if err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	res.Body.Close()
	stop()
	if _, err := http.Get(url + "/v1/models"); err == nil {
		t.Error("it still answers")
	}
}

// What contradicts itself names its field.
func TestScopesNameTheField(t *testing.T) {
	for want, o := range map[string]Options{
		"PhaseOffset":    {PhaseOffset: time.Second},
		"Accounts are":   {Key: "x", Accounts: []Account{{Name: "a", Key: "b"}}},
		"Accounts[1].N":  {Accounts: []Account{{Name: "a", Key: "b"}, {Name: "a", Key: "c"}}},
		"Accounts[1].K":  {Accounts: []Account{{Name: "a", Key: "b"}, {Name: "c", Key: "b"}}},
		"ModelLimits":    {ModelLimits: map[string]Limits{"m": {RPM: -1}}},
		"Others[0].Ev":   {Others: []Load{{}}},
		"Others[0].Acc":  {Others: []Load{{Every: 1, Account: "x"}}},
		"Others[0] is":   {Others: []Load{{Every: 1, Input: -1}}},
		"Outages[0]":     {Outages: []Outage{{For: -1}}},
		"ChargeJitter":   {ChargeJitter: 101},
		"Options.Phase ": {Phase: FirstCall + 1},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
