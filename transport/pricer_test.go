package transport_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/internal/rttest"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/transport"
)

// charges answers each call after a second, and charges its prompt what wants says then.
func charges(mu *sync.Mutex, wants *int64) http.RoundTripper {
	return rttest.Func(func(r *http.Request) (*http.Response, error) {
		rttest.Drain(r)
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		return response(r, 200, "application/json", fmt.Sprintf(
			`{"model":"gpt-4o","choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":%d,"completion_tokens":1,"total_tokens":%d}}`, *wants, *wants+1)), nil
	})
}

// A crowd waits, and its prompts turn out to be dearer, or cheaper, than was estimated.
// Those who go after the first answers take what their prompts really cost, so nobody
// leaves debt.
func TestPriceAtTheHeadOfTheLine(t *testing.T) {
	for _, percent := range []int64{117, 80} {
		t.Run(fmt.Sprint(percent, " per cent"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n, tpm = 60, 60_000
				body := fmt.Sprintf(`{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", 500))
				var mu sync.Mutex
				queued, taken := map[*http.Request]int64{}, []int64(nil)
				var wants int64 // what each call is charged in the end
				p := profile.Profile{Name: "box", RefusedFree: true}
				p.Rule = estimate.Rule{Charge: estimate.ChargeSettle}
				rt := gate(t, transport.Options{
					TPM: tpm, Burst: 5 * time.Second, Provider: p,
					Trace: transport.Trace{
						Queued: func(r *http.Request, c limit.Cost) {
							mu.Lock()
							defer mu.Unlock()
							queued[r], wants = c.Input, c.Input*percent/100
						},
						Granted: func(r *http.Request, c limit.Cost, _ time.Duration) {
							mu.Lock()
							defer mu.Unlock()
							taken = append(taken, c.Input)
						},
					},
					Base: charges(&mu, &wants),
				})
				start := time.Now()
				var all sync.WaitGroup
				for range n {
					all.Go(func() { finish(rt.RoundTrip(ask(t, t.Context(), body))) })
				}
				all.Wait()
				var estimated int64
				for _, c := range queued {
					estimated = c
				}
				if taken[0] != estimated {
					t.Errorf("the first call took %d, and was estimated at %d", taken[0], estimated)
				}
				for i, c := range taken[n/2:] {
					if c < wants-1 || c > wants+1 {
						t.Errorf("call %d took %d; it costs %d", n/2+i, c, wants)
					}
				}
				took, whole := time.Since(start), time.Duration(n)*time.Duration(wants+1)*time.Minute/tpm-5*time.Second
				t.Logf("%d tokens, not %d; %v for %v", wants, estimated, took, whole)
				if took < whole {
					t.Errorf("all went in %v; the limit earns their cost in %v", took, whole)
				}
			})
		})
	}
}

// Who leaves the line because an answer ended is priced by that answer too. With one call
// in flight the fourth goes when the third ends, and three answers teach a price.
func TestTheNextInLineIsPricedByTheAnswerThatLetItGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var wants int64
		var taken []int64
		p := profile.Profile{Name: "box", RefusedFree: true}
		p.Rule = estimate.Rule{Charge: estimate.ChargeSettle}
		rt := gate(t, transport.Options{
			TPM: 1_000_000, MaxInFlight: 1, Provider: p,
			Trace: transport.Trace{
				Queued: func(_ *http.Request, c limit.Cost) {
					mu.Lock()
					defer mu.Unlock()
					wants = c.Input * 3 / 2
				},
				Granted: func(_ *http.Request, c limit.Cost, _ time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					taken = append(taken, c.Input)
				},
			},
			Base: charges(&mu, &wants),
		})
		body := fmt.Sprintf(`{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", 500))
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() { finish(rt.RoundTrip(ask(t, t.Context(), body))) })
			synctest.Wait()
		}
		all.Wait()
		if first := taken[0]; first == wants || !slices.Equal(taken, []int64{first, first, first, wants, wants, wants}) {
			t.Errorf("%d were taken; the calls cost %d each", taken, wants)
		}
	})
}
