package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// tokensOf are the tokens of each tenant, in full calls, as the provider counts them.
type tokensOf map[string]int64

// A load is what one tenant sends: calls of one size, as many at a time as callers.
type load struct {
	tenant  string
	callers int
	output  int64 // tokens of an answer, and its cap
	class   limit.Class
}

// saturate lets the tenants send for d. It returns the tokens of the calls that
// were answered from the second minute on, and how long each waited.
func saturate(rt *transport.Transport, d time.Duration, loads []load) (tokens tokensOf, waits map[string][]time.Duration) {
	tokens, waits = tokensOf{}, map[string][]time.Duration{}
	var mu sync.Mutex
	var all sync.WaitGroup
	start := time.Now()
	ctx, stop := context.WithTimeout(context.Background(), d)
	defer stop()
	for _, l := range loads {
		for k := range l.callers {
			all.Go(func() {
				ctx := transport.WithClass(transport.WithTenant(ctx, l.tenant), l.class)
				for n := 0; ctx.Err() == nil; n++ {
					req, _ := http.NewRequestWithContext(ctx, "POST", "http://box/v1/chat/completions",
						strings.NewReader(fmt.Sprintf(`{"model":"m","max_tokens":%d,"messages":[{"role":"user","content":"%d %d"}]}`, l.output, k, n)))
					req.Header.Set("Content-Type", "application/json")
					asked := time.Now()
					status, body, err := finish(rt.RoundTrip(req))
					var answer struct {
						Usage struct {
							Total int64 `json:"total_tokens"`
						}
					}
					json.Unmarshal([]byte(body), &answer)
					if err != nil || status != 200 {
						time.Sleep(100 * time.Millisecond)
						continue
					}
					if time.Since(start) < time.Minute {
						continue // until all wait, who comes first is served first
					}
					mu.Lock()
					tokens[l.tenant] += answer.Usage.Total
					waits[l.tenant] = append(waits[l.tenant], time.Since(asked))
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	return tokens, waits
}

// exactly is a provider whose answers are as long as their cap: the estimate is exact but for the prompt.
func exactly(tpm int64) providertest.Options {
	return providertest.Options{
		Limits: providertest.Limits{TPM: tpm}, Charge: providertest.Settle, Output: providertest.Constant(1 << 19),
		Latency: func(providertest.Call) providertest.Timing {
			return providertest.Timing{FirstByte: 100 * time.Millisecond}
		},
	}
}

// Jain's index of shares is 1 where all are equal and 1/n where one has all.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += s
		squares += s * s
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// Three tenants that always wait, with calls of sizes 1 to 4 to 20, get tokens by
// their weights alone.
func TestTenantsGetTokensByWeight(t *testing.T) {
	for name, weights := range map[string][3]int{"equal weights": {1, 1, 1}, "weights 1, 2, 4": {1, 2, 4}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := box(t, exactly(600_000))
				rt := gate(t, transport.Options{Base: p.RoundTripper(), TPM: 600_000, Provider: ruled(estimate.ChargeSettle)})
				loads := []load{{"a", 80, 400, 0}, {"b", 40, 1600, 0}, {"c", 20, 8000, 0}}
				for i, l := range loads {
					if err := rt.SetTenant(l.tenant, transport.TenantOptions{Weight: weights[i]}); err != nil {
						t.Fatal(err)
					}
				}
				got, _ := saturate(rt, 20*time.Minute, loads)
				var shares []float64
				for i, l := range loads {
					shares = append(shares, float64(got[l.tenant])/float64(weights[i]))
				}
				mean := (shares[0] + shares[1] + shares[2]) / 3
				for i, s := range shares {
					if off := (s - mean) / mean; off > 0.005 || off < -0.005 {
						t.Errorf("tenant %s: %.3f %% off its share", loads[i].tenant, 100*off)
					}
				}
				if j := jain(shares); j < 0.999 {
					t.Errorf("Jain's index is %.4f", j)
				}
				if s := p.Stats(); s.Refused > 0 {
					t.Errorf("%d refused", s.Refused)
				}
				t.Logf("tokens %v, Jain %.5f", got, jain(shares))
			})
		})
	}
}

// A hog sends ten of twelve calls, three times what the limit allows. The others
// wait for little more than their own calls take, and no token is lost.
func TestAHogDelaysTheOthersLittle(t *testing.T) {
	run := func(t *testing.T, tenants bool) (light []time.Duration, end time.Duration, refused int64) {
		synctest.Test(t, func(t *testing.T) {
			p := box(t, providertest.Options{Limits: providertest.Limits{TPM: 60_000}, Charge: providertest.Settle, Output: providertest.Constant(1 << 19)})
			rt := gate(t, transport.Options{Base: p.RoundTripper(), TPM: 60_000, Provider: ruled(estimate.ChargeSettle)})
			start := time.Now()
			var mu sync.Mutex
			var all sync.WaitGroup
			for i := range 720 { // 500 tokens every third of a second: 90,000 to 180,000 a minute
				name := "hog"
				if i%6 == 0 {
					name = []string{"b", "c"}[i/6%2]
				}
				ctx := t.Context()
				if tenants {
					ctx = transport.WithTenant(ctx, name)
				}
				all.Go(func() {
					asked := time.Now()
					body := fmt.Sprintf(`{"model":"m","max_tokens":500,"messages":[{"role":"user","content":"%d"}]}`, i)
					req, _ := http.NewRequestWithContext(ctx, "POST", "http://box/v1/chat/completions", strings.NewReader(body))
					req.Header.Set("Content-Type", "application/json")
					if status, _, err := finish(rt.RoundTrip(req)); status != 200 {
						t.Error(status, err)
					}
					if name != "hog" {
						mu.Lock()
						light = append(light, time.Since(asked))
						mu.Unlock()
					}
				})
				time.Sleep(time.Second / 6)
			}
			all.Wait()
			end, refused = time.Since(start), p.Stats().Refused
		})
		slices.Sort(light)
		return light, end, refused
	}
	fifo, fifoEnd, fifoRefused := run(t, false)
	fair, end, refused := run(t, true)
	p99 := func(w []time.Duration) time.Duration { return w[len(w)*99/100] }
	t.Logf("the light ones' p99: %v in one line, %v by tenant; the end at %v and %v", p99(fifo), p99(fair), fifoEnd, end)
	if p99(fair) > 7*time.Second {
		t.Errorf("the light ones' p99 is %v", p99(fair))
	}
	if end != fifoEnd || refused > fifoRefused {
		t.Errorf("the end is at %v, in one line at %v; %d refused, %d", end, fifoEnd, refused, fifoRefused)
	}
}

// A tenant that is idle, at a limit of its own, or out of its month keeps nothing
// from the others: they use all that there is.
func TestATenantThatIsStoppedCostsNobodyAnything(t *testing.T) {
	for name, o := range map[string]transport.TenantOptions{
		"at its own limit":      {TPM: 600, Weight: 1000},
		"at its place":          {MaxInFlight: 1, Weight: 1000, TPM: 600},
		"at the end of a month": {MonthTokens: 1000, Weight: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := box(t, exactly(60_000))
				rt := gate(t, transport.Options{Base: p.RoundTripper(), TPM: 60_000, Provider: ruled(estimate.ChargeSettle)})
				if err := rt.SetTenant("stopped", o); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				tokens, _ := saturate(rt, 10*time.Minute, []load{{"stopped", 1, 100, 0}, {"other", 40, 200, 0}})
				if used, ok := p.QuotaUsed(start, time.Now()); !ok || used.Tokens < 0.99 {
					t.Errorf("%.4f of the quota used; %v", used.Tokens, tokens)
				}
				if tokens["stopped"] > 7200 {
					t.Errorf("the stopped tenant got %d tokens", tokens["stopped"])
				}
			})
		})
	}
}

// Batch calls get a tenth of what there is while interactive ones wait.
func TestBatchNeverStops(t *testing.T) {
	for _, floor := range []int{0, 25} {
		synctest.Test(t, func(t *testing.T) {
			p := box(t, exactly(600_000))
			rt := gate(t, transport.Options{Base: p.RoundTripper(), TPM: 600_000, Scopes: transport.Scopes{BatchFloor: floor}, Provider: ruled(estimate.ChargeSettle)})
			got, waits := saturate(rt, 20*time.Minute, []load{{"chat", 50, 1000, limit.Interactive}, {"batch", 50, 2500, limit.Batch}})
			want := float64(floor)
			if floor == 0 {
				want = 10
			}
			share := 100 * float64(got["batch"]) / float64(got["batch"]+got["chat"])
			if share < want-0.5 || share > want+0.5 {
				t.Errorf("batch got %.2f %%, want %v", share, want)
			}
			w := waits["chat"]
			slices.Sort(w)
			t.Logf("floor %v %%: batch %.2f %%; interactive p50 %v, p99 %v", want, share, w[len(w)/2], w[len(w)*99/100])
		})
	}
}

// One call of a tenant that comes when another has a thousand in line waits for
// the call that goes next, and no more.
func TestOneCallBehindAThousandOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, exactly(60_000))
		rt := gate(t, transport.Options{Base: p.RoundTripper(), TPM: 60_000, Provider: ruled(estimate.ChargeSettle)})
		ctx, stop := context.WithCancel(t.Context())
		send := func(tenant string, i int) (time.Duration, error) {
			body := fmt.Sprintf(`{"model":"m","max_tokens":1000,"messages":[{"role":"user","content":"%d"}]}`, i)
			req, _ := http.NewRequestWithContext(transport.WithTenant(ctx, tenant), "POST", "http://box/v1/chat/completions", strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			asked := time.Now()
			_, _, err := finish(rt.RoundTrip(req))
			return time.Since(asked), err
		}
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() { send("many", i) })
		}
		synctest.Wait()
		time.Sleep(20 * time.Second)
		if d, err := send("one", 0); err != nil || d > 2*1100*time.Millisecond { // two calls at 1000 tokens a second
			t.Errorf("it waited %v, %v", d, err)
		}
		stop()
		all.Wait()
	})
}

// A million tenants come once each. The memory they leave behind is bounded, and
// no tenant in debt is forgotten.
func TestAMillionTenantsComeOnce(t *testing.T) {
	if testing.Short() {
		return
	}
	const n = 1_000_000
	rt := gate(t, transport.Options{
		Base: script("200"), TPM: 1e12, Provider: ruled(estimate.ChargeSettle),
		Scopes: transport.Scopes{Tenants: func(string) transport.TenantOptions { return transport.TenantOptions{RPM: 600} }},
	})
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range n {
		f := rt.Forecast(transport.ForTenant(ask(t, t.Context(), letter), fmt.Sprintf("tenant %d", i)))
		if f.Err != nil {
			t.Fatal(f.Err)
		}
	}
	grown := heap() - before
	if kept := len(rt.Snapshot().Scopes); kept > 2000 || grown > 4<<20 {
		t.Errorf("%d scopes and %d bytes are kept after %d tenants", kept, grown, n)
	}
}

// Calls that cannot wait get an error at once that says how long they would have
// waited, for what, and who asked for it.
func TestFailFastSaysHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := gate(t, transport.Options{Base: script("503;Retry-After=3600"), TPM: 200_000, Attempts: 1})
		finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		_, err := rt.RoundTrip(ask(t, transport.FailFast(t.Context()), letter))
		var e *transport.Error
		if !errors.As(err, &e) || !errors.Is(err, limit.ErrLimited) || e.Err.Wait < time.Hour || e.Err.Wait > time.Hour+time.Minute || e.Err.By != "api.example.com" {
			t.Fatalf("error %v", err)
		}
		if text := err.Error(); !strings.Contains(text, "api.example.com asked for a pause") || strings.Contains(text, "send a smaller") {
			t.Errorf("error %v", err)
		}
		f := rt.Forecast(ask(t, t.Context(), letter))
		if f.Wait != e.Err.Wait || f.By != e.Err.By || !f.Known {
			t.Errorf("forecast %+v", f)
		}
	})
}

// Seven hundred callers have a minute each. The host is not known, and answers are
// far shorter than the cap that they are priced at. Those ahead are expected to
// cost what answers have cost: the minute is used, and nobody is turned away who
// could have been served. Where no answer was seen yet, nobody is turned away for a
// guess.
func TestSevenHundredCallersWithAMinuteEach(t *testing.T) {
	for _, c := range []struct {
		name    string
		warm    bool
		o       transport.Options
		output  int
		minimum int
	}{
		{"warm", true, transport.Options{TPM: 200_000}, 200, 700},
		{"warm, nothing configured", true, transport.Options{}, 200, 700},
		{"cold", false, transport.Options{TPM: 200_000}, 200, 700},
		{"cold, two limits", false, transport.Options{TPM: 200_000, RPM: 5000}, 200, 700},
		{"cold, nothing configured", false, transport.Options{}, 200, 700},
		// 400,000 tokens in the minute: the full bucket and a refill. That is 490 calls.
		{"warm, long answers", true, transport.Options{TPM: 200_000}, 800, 460},
		{"cold, long answers", false, transport.Options{TPM: 200_000}, 800, 460},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { sevenHundred(t, c.warm, c.o, c.output, c.minimum) })
		})
	}
}

func sevenHundred(t *testing.T, warm bool, o transport.Options, output, minimum int) {
	p := box(t, providertest.Options{
		Limits: providertest.Limits{TPM: 200_000, RPM: 5000}, Charge: providertest.Settle, Output: providertest.Constant(int64(output)),
		Latency: func(providertest.Call) providertest.Timing {
			return providertest.Timing{FirstByte: 500 * time.Millisecond}
		},
	})
	o.Base = p.RoundTripper()
	rt := gate(t, o)
	if warm { // what answers cost is known
		for range 12 {
			post(&http.Client{Transport: rt}, chatOf(0, 10, 4096))
		}
		time.Sleep(time.Minute)
	}
	var mu sync.Mutex
	var ok, late, atOnce int
	var all sync.WaitGroup
	for i := range 700 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			req, _ := http.NewRequestWithContext(ctx, "POST", "http://box/v1/chat/completions", strings.NewReader(chatOf(i, 10, 4096)))
			req.Header.Set("Content-Type", "application/json")
			status, _, err := finish(rt.RoundTrip(req))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && status == 200:
				ok++
			case time.Since(start) < time.Second:
				atOnce++
			default:
				late++
			}
		})
	}
	all.Wait()
	t.Logf("%d served, %d waited in vain, %d refused at once", ok, late, atOnce)
	if ok < minimum {
		t.Errorf("%d served, want %d", ok, minimum)
	}
}
