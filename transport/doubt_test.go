package transport_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// ruled is a profile whose charge rule is c and whose prompts are counted as
// the provider in the box counts them.
func ruled(c estimate.Charge) profile.Profile {
	p := profile.Unknown()
	p.Name = "box"
	p.Rule = estimate.Rule{Charge: c, ReserveCap: c != estimate.ChargeActual, PromptByChars: true}
	return p
}

// chatOf is a chat of about so many prompt tokens.
func chatOf(i, prompt, most int) string {
	return fmt.Sprintf(`{"model":"box","max_tokens":%d,"messages":[{"role":"user","content":"%d %s"}]}`, most, i, strings.Repeat("abc ", prompt))
}

// offer sends n calls of mixed sizes, one each interval, and waits for all.
func offer(c *http.Client, n int, every time.Duration) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { post(c, chatOf(i, 100+i*37%400, 200+i*53%800)) })
		time.Sleep(every)
	}
	all.Wait()
}

// Every right rule is left alone. Every wrong one is found where the headers can
// show it, and FollowRule changes it for the right one.
func TestDoubt(t *testing.T) {
	rules := map[estimate.Charge]providertest.Charge{
		estimate.ChargeEstimate: providertest.Estimate,
		estimate.ChargeSettle:   providertest.Settle,
		estimate.ChargeActual:   providertest.Actual,
	}
	algorithms := map[string]providertest.Algorithm{
		"bucket": providertest.Bucket, "fixed minute": providertest.FixedMinute, "sliding minute": providertest.SlidingMinute,
	}
	for name, algorithm := range algorithms {
		for mine := range rules {
			for truth, charge := range rules {
				t.Run(fmt.Sprintf("%s by %v, profile %v", name, truth, mine), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						p := box(t, providertest.Options{
							Limits: providertest.Limits{TPM: 120_000}, Algorithm: algorithm, Charge: charge, Capacity: time.Minute,
							Output: providertest.Uniform(20, 300),
							// No multiple of the pace: an answer that ends just when another
							// call leaves is counted before it here and after it there.
							Latency: func(providertest.Call) providertest.Timing {
								return providertest.Timing{FirstByte: 2070 * time.Millisecond}
							},
						})
						var told []string
						rt := gate(t, transport.Options{
							Base: p.RoundTripper(), TPM: 120_000, Provider: ruled(mine), Attempts: 10,
							Trace: transport.Trace{Doubted: func(profile, seen string) { told = append(told, profile+" "+seen) }},
						})
						offer(&http.Client{Transport: rt}, 400, 200*time.Millisecond)
						switch {
						case mine == truth && len(told) > 0:
							t.Errorf("a right rule is doubted: %q", told)
						case mine == truth || algorithm == providertest.SlidingMinute:
						case mine == estimate.ChargeEstimate && algorithm == providertest.Bucket:
							// We send so little that the bucket is always full.
							if len(told) > 0 && told[0] != mine.String()+" "+truth.String() {
								t.Errorf("Doubted was called with %q", told)
							}
						case len(told) != 1 || told[0] != mine.String()+" "+truth.String():
							t.Errorf("Doubted was called with %q; want once, with %v and %v", told, mine, truth)
						}
					})
				})
			}
		}
	}
}

// With FollowRule the rule changes, and with it what calls are charged.
func TestFollowRule(t *testing.T) {
	kept := map[bool]bool{}
	for _, follow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := box(t, providertest.Options{
				Limits: providertest.Limits{TPM: 120_000}, Capacity: 20 * time.Second, Charge: providertest.Estimate, Output: providertest.Uniform(20, 300),
			})
			var mu sync.Mutex // calls settle side by side
			var last transport.Settlement
			rt := gate(t, transport.Options{
				Base: p.RoundTripper(), TPM: 120_000, Provider: ruled(estimate.ChargeSettle), Attempts: 10, FollowRule: follow,
				Trace: transport.Trace{Settled: func(s transport.Settlement) {
					mu.Lock()
					defer mu.Unlock()
					last = s
				}},
			})
			c := &http.Client{Transport: rt}
			offer(c, 600, 200*time.Millisecond)
			kept[follow] = last.Charged.Output == last.Reserved.Output
			t.Logf("follow %v: %v", follow, last)
		})
	}
	if !kept[true] || kept[false] {
		t.Errorf("the cap is kept: %v with the rule followed, %v without; want true and false", kept[true], kept[false])
	}
}

// A rule that leaves the cap out, such as that of OpenAI's headers, is a rule
// too: it is compared as it is, not with the cap.
func TestDoubtKnowsARuleWithoutTheCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{
			Limits: providertest.Limits{TPM: 60_000}, Charge: providertest.PromptOnly, Output: providertest.Uniform(20, 300),
		})
		prof := ruled(estimate.ChargeEstimate)
		prof.Rule.ReserveCap = false
		rt := gate(t, transport.Options{
			Base: p.RoundTripper(), TPM: 60_000, Provider: prof,
			Trace: transport.Trace{Doubted: func(profile, seen string) { t.Errorf("%s is taken for %s", profile, seen) }},
		})
		offer(&http.Client{Transport: rt}, 300, 200*time.Millisecond)
	})
}
