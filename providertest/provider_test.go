package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func mustNew(t testing.TB, o Options) *Provider {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// reply is an answer read to its end.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of RoundTrip or of reading the body
}

func send(ctx context.Context, rt http.RoundTripper, path, body string, header ...string) reply {
	req, err := http.NewRequestWithContext(ctx, "POST", "http://box"+path, strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := rt.RoundTrip(req)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(b), err}
}

// ids is a completions body whose prompt is n token ids; with countIDs it
// weighs exactly n.
func ids(n, cap int) string {
	return fmt.Sprintf(`{"model":"m","prompt":[%s],"max_tokens":%d}`, strings.TrimSuffix(strings.Repeat("1,", n), ","), cap)
}

func countIDs(p Prompt) int64 { return p.Tokens }

// The published worked example of an exact integer bucket: capacity 3, rate 2
// a second, starting full. Refusals change nothing and name the exact wait.
func TestWorkedExample(t *testing.T) {
	for _, c := range []struct {
		name       string
		tpm        int64
		capacity   time.Duration
		startSpent int
		rows       []struct{ t, cost, wait, left int } // ms, tokens, ms (0: accepted), whole tokens
	}{
		{"capacity 3, rate 2", 120, 1500 * time.Millisecond, 0, []struct{ t, cost, wait, left int }{
			{0, 2, 0, 1}, {0, 2, 500, 1}, {499, 2, 1, 1}, {500, 2, 0, 0}, {750, 1, 250, 0}, {1000, 1, 0, 0},
		}},
		{"capacity 2, rate 3, drained", 180, 2 * time.Second / 3, 100, []struct{ t, cost, wait, left int }{
			{0, 1, 334, 0}, {333, 1, 1, 0}, {334, 1, 0, 0},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// 2/3 s is not whole nanoseconds: the next one up holds 2 units and a bit.
				capacity := c.capacity
				if c.tpm == 180 {
					capacity++
				}
				p := mustNew(t, Options{Limits: Limits{TPM: c.tpm}, Capacity: capacity, Charge: PromptOnly,
					StartSpent: c.startSpent, Count: countIDs, RetryAfter: RetryAfterMillis})
				for i, row := range c.rows {
					time.Sleep(time.Until(p.Start().Add(time.Duration(row.t) * time.Millisecond)))
					r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(row.cost, 1))
					want := 200
					if row.wait > 0 {
						want = 429
					}
					if r.err != nil || r.status != want {
						t.Fatalf("row %d: %v, status %d, want %d", i, r.err, r.status, want)
					}
					if got := r.header.Get("X-Ratelimit-Remaining-Tokens"); got != fmt.Sprint(row.left) {
						t.Errorf("row %d: remaining %s, want %d", i, got, row.left)
					}
					ms := r.header.Get("Retry-After-Ms")
					if row.wait > 0 && ms != fmt.Sprint(row.wait) || row.wait == 0 && ms != "" {
						t.Errorf("row %d: Retry-After-Ms %q, want %d", i, ms, row.wait)
					}
				}
			})
		})
	}
}

// For each algorithm: a nanosecond before the wait ends the call is refused,
// at its end it is let in.
func TestExactInstants(t *testing.T) {
	for _, c := range []struct {
		name  string
		o     Options
		first int // tokens that go at once
		then  int
		wait  time.Duration
	}{
		{"bucket", Options{Limits: Limits{TPM: 7}, Charge: PromptOnly}, 7, 1, time.Minute/7 + 1},
		{"bucket of 10 s", Options{Limits: Limits{TPM: 60}, Capacity: 10 * time.Second, Charge: PromptOnly}, 10, 10, 10 * time.Second},
		{"fixed minute", Options{Limits: Limits{TPM: 7}, Algorithm: FixedMinute, Charge: PromptOnly}, 7, 1, 30 * time.Second},
		{"sliding minute", Options{Limits: Limits{TPM: 7}, Algorithm: SlidingMinute, Charge: PromptOnly}, 7, 1, time.Minute},
		{"slices", Options{Limits: Limits{TPM: 420}, Algorithm: Slices, Charge: PromptOnly}, 7, 1, time.Second},
		{"requests", Options{Limits: Limits{RPM: 1}}, 1, 1, time.Minute},
		{"requests of a day", Options{Limits: Limits{RPD: 1}}, 1, 1, 24 * time.Hour},
		{"requests of a UTC day", Options{Limits: Limits{RPD: 1}, Algorithm: FixedMinute}, 1, 1, 24*time.Hour - 30*time.Second},
		{"the longest of several", Options{Limits: Limits{RPM: 60, TPM: 7}, RequestCapacity: time.Second, Charge: PromptOnly}, 7, 7, time.Minute},
		{"input apart", Options{Limits: Limits{InputTPM: 60, OutputTPM: 1000}, Charge: Actual}, 60, 30, 30 * time.Second},
		{"output owed", Options{Limits: Limits{InputTPM: 60_000, OutputTPM: 16}, Charge: Actual, Output: Constant(31)}, 1, 1, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(30 * time.Second) // off the start of the minute
				o := c.o
				o.Count, o.RetryAfter = countIDs, RetryAfterMillis
				p := mustNew(t, o)
				do := func(n int) reply {
					return send(t.Context(), p.RoundTripper(), "/v1/completions", ids(n, 100))
				}
				if r := do(c.first); r.status != 200 {
					t.Fatalf("first: %+v", r)
				}
				for _, wait := range []time.Duration{c.wait, 1} {
					if wait == 1 {
						time.Sleep(c.wait - 1)
					}
					r := do(c.then)
					last := p.Ledger()[len(p.Ledger())-1]
					if r.status != 429 || last.Wait != wait {
						t.Fatalf("status %d, wait %v, want 429 and %v: %s", r.status, last.Wait, wait, r.body)
					}
				}
				time.Sleep(time.Nanosecond)
				if r := do(c.then); r.status != 200 {
					t.Fatalf("at the instant named: %+v", r)
				}
				if s := p.Stats(); s.Completed != 2 || s.Refused != 2 || s.Early != 1 {
					t.Errorf("stats %+v", s)
				}
			})
		})
	}
}

func TestChargeRules(t *testing.T) {
	// Prompt 100, estimated at 80; cap 50; output 20.
	for _, c := range []struct {
		charge           Charge
		factor           int64
		arrival, settled Tokens
	}{
		{Estimate, 0, Tokens{80, 50}, Tokens{80, 50}},
		{Settle, 0, Tokens{80, 50}, Tokens{100, 20}},
		{Settle, 5, Tokens{80, 50}, Tokens{100, 100}},
		{Actual, 0, Tokens{100, 0}, Tokens{100, 20}},
		{PromptOnly, 0, Tokens{80, 0}, Tokens{80, 0}},
		{Larger, 0, Tokens{80, 0}, Tokens{80, 0}},
	} {
		for _, limits := range []Limits{{TPM: 6000}, {InputTPM: 6000, OutputTPM: 6000}} {
			synctest.Test(t, func(t *testing.T) {
				p := mustNew(t, Options{Limits: limits, Charge: c.charge, OutputFactor: c.factor, Output: Constant(20),
					Count: countIDs, EstimatePrompt: func(q Prompt) int64 { return q.Tokens * 4 / 5 },
					Latency: func(Call) Timing { return Timing{FirstByte: time.Nanosecond} }})
				r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(100, 50))
				e := p.Ledger()[0]
				if r.status != 200 || e.Arrival != c.arrival || e.Settled != c.settled || e.Produced != 20 || e.Prompt != 100 {
					t.Errorf("rule %d: %d, entry %+v; want arrival %v, settled %v", c.charge, r.status, e, c.arrival, c.settled)
				}
				// The gauge says the same as the ledger: the limits, less the
				// settled charge, are left.
				var left int64
				for _, l := range p.engines[0].limits {
					left += l.gauge.level(p.last)
				}
				want := int64(6000)*int64(len(p.engines[0].limits)) - c.settled.Total()
				if left != want {
					t.Errorf("rule %d: %d left, want %d", c.charge, left, want)
				}
				q, ok := p.QuotaUsed(p.Start(), p.Start().Add(time.Minute))
				if !ok || limits.TPM > 0 && q.Max() != float64(c.settled.Total())/6000 {
					t.Errorf("rule %d: quota %+v, %v", c.charge, q, ok)
				}
			})
		}
	}
}

func TestRefusedCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustNew(t, Options{Limits: Limits{RPM: 60}, RequestCapacity: time.Second, RefusedCount: true})
		codes := ""
		for range 4 {
			codes += fmt.Sprint(send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1)).status, " ")
		}
		// One goes; three refusals are charged, so the debt is 3 and the next
		// may go in 4 s.
		if codes != "200 429 429 429 " {
			t.Fatal(codes)
		}
		time.Sleep(4*time.Second - 1)
		p.mu.Lock()
		wait := p.engines[0].judge(p.now(), price{}).wait
		p.mu.Unlock()
		if wait != 1 {
			t.Errorf("wait %d, want 1", wait)
		}
		// Hammering is charged until a whole window is owed: 60 requests more,
		// at a level that was a nanosecond short of 1.
		for range 200 {
			send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1))
		}
		l := p.Ledger()
		if last := l[len(l)-1]; last.Requests != 0 || last.Wait != time.Minute+1 {
			t.Errorf("last refusal %+v", last)
		}
	})
}

func TestPenaltyGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustNew(t, Options{Limits: Limits{RPM: 60}, RequestCapacity: time.Second, Penalty: 2 * time.Second, PenaltyMax: 5 * time.Second})
		do := func() Entry {
			send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1))
			l := p.Ledger()
			return l[len(l)-1]
		}
		do()
		for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
			if e := do(); e.Outcome != Refused || e.Wait != want {
				t.Errorf("refusal %d: %+v, want a wait of %v", i, e, want)
			}
		}
		time.Sleep(5*time.Second - 1)
		if e := do(); e.Reason != "cool-down" {
			t.Errorf("in the cool-down: %+v", e)
		}
		time.Sleep(5 * time.Second)
		if e := do(); e.Outcome != Served {
			t.Errorf("after it: %+v", e)
		}
		if e := do(); e.Wait != 2*time.Second {
			t.Errorf("an admission starts the growth anew: %+v", e)
		}
	})
}

func TestRetryAfterStyles(t *testing.T) {
	for _, c := range []struct {
		style    RetryAfter
		seconds  string
		ms       string
		isInTime bool
	}{
		{RetryAfterSeconds, "2", "", true},
		{RetryAfterMillis, "2", "1334", true},
		{RetryAfterDate, "Sat, 01 Jan 2000 00:00:02 GMT", "", true},
		{RetryAfterFraction, "1.334", "", true},
		{NoRetryAfter, "", "", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := mustNew(t, Options{Limits: Limits{RPM: 45}, RequestCapacity: time.Second, RetryAfter: c.style})
			send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1))
			r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1))
			if r.header.Get("Retry-After") != c.seconds || r.header.Get("Retry-After-Ms") != c.ms {
				t.Errorf("style %d: %v", c.style, r.header)
			}
			if !strings.Contains(r.body, "Limit 45, Used 45, Requested 1. Please try again in 1.334s.") {
				t.Errorf("style %d: %s", c.style, r.body)
			}
		})
	}
}

func TestHeaderDialects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{RPM: 60, RPD: 10_000, TPM: 60_000, InputTPM: 40_000, OutputTPM: 20_000}
		for _, c := range []struct {
			o    Options
			want map[string]string
		}{
			{Options{Limits: limits, Dialect: OpenAIHeaders}, map[string]string{
				"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1s",
				"x-ratelimit-limit-tokens": "60000", "x-ratelimit-remaining-tokens": "59880", "x-ratelimit-reset-tokens": "120ms",
				"x-ratelimit-limit-input-tokens": "40000", "x-ratelimit-remaining-output-tokens": "19980"}},
			{Options{Limits: Limits{RPD: 10_000}, Dialect: OpenAIHeaders}, map[string]string{
				"x-ratelimit-limit-requests": "10000", "x-ratelimit-remaining-requests": "9999", "x-ratelimit-reset-requests": "8.64s",
				"x-ratelimit-limit-tokens": ""}},
			{Options{Limits: limits, Dialect: AnthropicHeaders, RoundRemaining: 1000}, map[string]string{
				"anthropic-ratelimit-requests-limit": "60", "anthropic-ratelimit-requests-remaining": "59",
				"anthropic-ratelimit-requests-reset": "2000-01-01T00:00:01Z",
				"anthropic-ratelimit-tokens-limit":   "60000", "anthropic-ratelimit-tokens-remaining": "60000",
				"anthropic-ratelimit-input-tokens-limit": "40000", "anthropic-ratelimit-output-tokens-remaining": "20000"}},
			{Options{Limits: limits, Dialect: NoHeaders}, map[string]string{
				"x-ratelimit-limit-requests": "", "anthropic-ratelimit-requests-limit": "", "date": "Sat, 01 Jan 2000 00:00:00 GMT"}},
		} {
			c.o.Count = countIDs
			p := mustNew(t, c.o)
			r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(100, 20))
			for k, v := range c.want {
				if got := r.header.Get(k); got != v {
					t.Errorf("dialect %d: %s is %q, want %q", c.o.Dialect, k, got, v)
				}
			}
			for k := range r.header {
				if http.CanonicalHeaderKey(k) != k {
					t.Errorf("dialect %d: %s is not in canonical form", c.o.Dialect, k)
				}
			}
		}
	})
}

func TestLimitsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustNew(t, Options{Limits: Limits{TPM: 600, RPM: 1}, Charge: PromptOnly, Count: countIDs, HalveAfter: 10 * time.Second})
		send(t.Context(), p.RoundTripper(), "/v1/completions", ids(600, 1))
		time.Sleep(20 * time.Second)
		if got, want := p.Limits(), (Limits{TPM: 300, RPM: 1}); got != want {
			t.Fatalf("limits %+v, want %+v", got, want)
		}
		// 10 s at 600 a minute and 10 s at 300.
		if got := p.engines[0].limits[1].gauge.level(p.last); got != 150 {
			t.Errorf("level %d, want 150", got)
		}
		if err := p.SetLimits(Limits{TPM: -1}); err == nil || !strings.Contains(err.Error(), "TPM") || p.Limits().TPM != 300 {
			t.Errorf("a negative limit: %v, limits %+v", err, p.Limits())
		}
		if err := p.SetLimits(Limits{TPM: 60, RPM: 60}); err != nil {
			t.Fatal(err)
		}
		// The level of 150 is cut to the new capacity; the request is still owed.
		if r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(60, 1)); r.status != 429 {
			t.Errorf("the request limit was forgotten: %+v", r)
		}
		time.Sleep(time.Second)
		if r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(60, 1)); r.status != 200 {
			t.Errorf("%+v", r)
		}
	})
}

// A call that no wait can admit is refused as too large: the limit named is below
// the request, no wait is named, nothing is charged.
func TestTooLarge(t *testing.T) {
	for _, c := range []struct {
		o     Options
		cost  int
		limit int
	}{
		{Options{Limits: Limits{TPM: 600}, Capacity: 10 * time.Second}, 101, 100},
		{Options{Limits: Limits{TPM: 600}, Capacity: 10 * time.Second, Oversize: true}, 601, 600},
		{Options{Limits: Limits{TPM: 600}, Algorithm: FixedMinute}, 601, 600},
		{Options{Limits: Limits{TPM: 600}, Algorithm: SlidingMinute}, 601, 600},
		{Options{Limits: Limits{TPM: 601}, Algorithm: Slices}, 12, 11},
	} {
		c.o.Charge, c.o.Count = PromptOnly, countIDs
		p := mustNew(t, c.o)
		r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(c.cost, 1))
		want := fmt.Sprintf("Limit %d, Requested %d.", c.limit, c.cost)
		if r.status != 429 || r.header.Get("Retry-After") != "" || !strings.Contains(r.body, want) {
			t.Errorf("%+v, want %s", r, want)
		}
		if e := p.Ledger()[0]; e.Reason != "too large" || e.Arrival != (Tokens{}) || e.Wait != 0 {
			t.Errorf("%+v", e)
		}
	}
}

func TestStartSpent(t *testing.T) {
	for _, a := range []Algorithm{Bucket, FixedMinute, SlidingMinute, Slices} {
		synctest.Test(t, func(t *testing.T) {
			p := mustNew(t, Options{Limits: Limits{RPM: 6000}, Algorithm: a, RequestCapacity: time.Second, StartSpent: 100})
			if r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1)); r.status != 429 {
				t.Errorf("algorithm %d: %d", a, r.status)
			}
		})
	}
}

func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mustNew(t, Options{MaxInFlight: 2, Latency: func(Call) Timing { return Timing{FirstByte: time.Second} }})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1)) })
		}
		synctest.Wait()
		if r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1)); r.status != 429 || p.Ledger()[2].Reason != "in flight" {
			t.Errorf("%+v", r)
		}
		wg.Wait()
		if r := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1, 1)); r.status != 200 {
			t.Errorf("%+v", r)
		}
		if s := p.Stats(); s.PeakInFlight != 2 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// The lengths drawn depend on the bodies, not on who comes first.
func TestDrawsAreDeterministic(t *testing.T) {
	run := func(seed uint64, bodies []string) map[string]int64 {
		p := mustNew(t, Options{Seed: seed, Output: Uniform(1, 1000)})
		out := map[string]int64{}
		for _, b := range bodies {
			r := send(t.Context(), p.RoundTripper(), "/v1/chat/completions", b)
			var v struct {
				Usage struct {
					N int64 `json:"completion_tokens"`
				}
			}
			if err := json.Unmarshal([]byte(r.body), &v); err != nil {
				t.Fatal(err)
			}
			out[b] += v.Usage.N
		}
		return out
	}
	a := `{"model":"m","messages":[{"role":"user","content":"a"}]}`
	b := `{"model":"m","messages":[{"role":"user","content":"b"}]}`
	one, two, other := run(1, []string{a, b, a}), run(1, []string{a, a, b}), run(2, []string{a, b, a})
	if fmt.Sprint(one) != fmt.Sprint(two) {
		t.Errorf("another order, other lengths: %v, %v", one, two)
	}
	if fmt.Sprint(one) == fmt.Sprint(other) {
		t.Errorf("another seed, the same lengths: %v", one)
	}
	for _, l := range []Lengths{Constant(9), Uniform(9, 9), Uniform(9, 3), LogNormal(9, 0)} {
		if n := l(rand.New(rand.NewPCG(1, 2))); n != 9 {
			t.Errorf("length %d, want 9", n)
		}
	}
}

// 64 clients over real sockets: the ledger agrees with the answers that they got,
// and these are no more than the limits hold.
func TestClients64(t *testing.T) {
	p := mustNew(t, Options{Limits: Limits{RPM: 60, TPM: 60_000}, Charge: Settle, Output: Uniform(1, 40),
		Latency: func(c Call) Timing { return Timing{FirstByte: time.Duration(c.Output) * 10 * time.Microsecond} }})
	srv := httptest.NewServer(p)
	defer srv.Close()
	base := srv.Client().Transport
	var mu sync.Mutex
	got := map[int]int{}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 4 {
				body := fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"client %d call %d"}]}`, j%2 == 0, i, j)
				req, _ := http.NewRequest("POST", srv.URL+"/v1/chat/completions", strings.NewReader(body))
				res, err := base.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil {
					t.Error(err)
				}
				res.Body.Close()
				mu.Lock()
				got[res.StatusCode]++
				mu.Unlock()
				p.Stats()
			}
		})
	}
	wg.Wait()
	s := p.Stats()
	l := p.Ledger()
	if s.Requests != 256 || int(s.Completed) != got[200] || int(s.Refused) != got[429] || len(l) != 256 {
		t.Fatalf("clients saw %v, stats %+v, %d entries", got, s, len(l))
	}
	took := l[len(l)-1].Since - l[0].Since
	if bound := 60 + int64(took/time.Second) + 1; s.Completed < 60 || s.Completed > bound {
		t.Errorf("%d completed in %v, want 60 to %d", s.Completed, took, bound)
	}
	for i, e := range l {
		if e.Number != int64(i+1) || i > 0 && e.Since < l[i-1].Since {
			t.Fatalf("entry %d out of order: %+v", i, e)
		}
		if e.Outcome == Served && e.Settled.Output != e.Produced {
			t.Fatalf("entry %d not settled: %+v", i, e)
		}
	}
	if s.InFlight != 0 || s.PeakRequests != s.Completed {
		t.Errorf("%+v", s)
	}
}

func TestOptionsNameTheField(t *testing.T) {
	for field, o := range map[string]Options{
		"RPM":        {Limits: Limits{RPM: -1}},
		"TPM":        {Limits: Limits{TPM: maxLimit + 1}},
		"Slice":      {Slice: 7 * time.Second},
		"Capacity":   {Capacity: 2 * time.Minute},
		"PenaltyMax": {Penalty: 2, PenaltyMax: 1},
		"Penalty":    {PenaltyMax: 1},
		"StartSpent": {StartSpent: 101},
		"Charge":     {Charge: 9},
		"LedgerSize": {LedgerSize: -1},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// An overload gives the tokens back only with OverloadFree; other failures never do.
func TestOverloadFree(t *testing.T) {
	for _, free := range []bool{false, true} {
		for kind, returns := range map[Kind]bool{Unavailable: true, Overloaded: true, ServerError: false} {
			p := mustNew(t, Options{Charge: Settle, OverloadFree: free, Limits: Limits{RPM: 100, TPM: 100_000}})
			p.Script(Step{Kind: kind})
			req, _ := http.NewRequest("POST", "http://provider.test/v1/chat/completions", strings.NewReader(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`))
			resp, err := p.RoundTripper().RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			e := p.Ledger()[0]
			if e.Arrival.Output != 50 || (e.Settled == Tokens{}) != (free && returns) || e.Requests != 1 {
				t.Errorf("%v, free %v: %+v", kind, free, e)
			}
		}
	}
}
