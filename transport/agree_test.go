package transport_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// twin is a profile that charges as the provider in the box does under Settle:
// the prompt by characters, the cap, and the actual at the end; refused calls
// count as requests.
func twin() profile.Profile {
	return profile.Profile{Name: "twin", Rule: estimate.Rule{Charge: estimate.ChargeSettle, ReserveCap: true, PromptByChars: true}}
}

// Two ledgers that share no code, the provider's and ours, after random scripts
// of answers, refusals, failures, resets, time-outs and cut streams: the same
// attempts with the same outcomes, and for each call the same charge in each
// dimension. Calls that the client itself leaves may cost less at the provider
// than we keep, never more.
func TestLedgersAgree(t *testing.T) {
	const seeds, calls = 150, 25
	outcomes, overloads := map[providertest.Outcome]int{}, 0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 6))
			p := box(t, providertest.Options{
				Charge: providertest.Settle, RefusedCount: true, OverloadFree: true, Seed: seed, Output: providertest.Uniform(0, 300),
				Limits: providertest.Limits{RPM: 1e9, TPM: 1e12},
				Latency: func(providertest.Call) providertest.Timing {
					return providertest.Timing{FirstByte: time.Second, PerToken: 10 * time.Millisecond}
				},
			})
			kinds := []providertest.Kind{
				providertest.Serve, providertest.Serve, providertest.Serve, providertest.Gzip, providertest.Refuse, providertest.RefuseBare,
				providertest.ServerError, providertest.Unavailable, providertest.Overloaded, providertest.ResetAfter, providertest.Hang,
				providertest.Truncate, providertest.TruncateClean, providertest.StreamError, providertest.Reject,
			}
			for range calls * 4 {
				s := providertest.Step{Kind: kinds[r.IntN(len(kinds))], Chunks: r.IntN(20)}
				if s.Kind == providertest.Refuse {
					s.RetryAfter = time.Duration(r.IntN(5)) * time.Second
				}
				p.Script(s)
			}
			var (
				mu    sync.Mutex
				ours  = map[string]transport.Settlement{}
				wire  = map[string][]int{} // statuses of the attempts
				fails = map[string]bool{}  // the client left the call itself
			)
			b := new(books)
			trace := b.trace()
			settled, answered := trace.Settled, trace.Answered
			trace.Settled = func(s transport.Settlement) {
				settled(s)
				mu.Lock()
				ours[s.Request.Header.Get("X-Attempt-Id")] = s
				mu.Unlock()
			}
			trace.Answered = func(a transport.Attempt) {
				answered(a)
				mu.Lock()
				id := a.Request.Header.Get("X-Attempt-Id")
				wire[id] = append(wire[id], a.Status)
				mu.Unlock()
			}
			rt := gate(t, transport.Options{
				Base: p.RoundTripper(), Limits: slow(1e6, 1e9), Provider: twin(), Attempts: 1 + r.IntN(4), MaxInFlight: 1 + r.IntN(5), Trace: trace,
			})
			var wg sync.WaitGroup
			for i := range calls {
				id := fmt.Sprint("call-", i)
				body := fmt.Sprintf(`{"model":"m","max_tokens":%d,"n":%d,"stream":%v,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"%s"}]}`,
					1+r.IntN(300), 1+r.IntN(2), r.IntN(2) == 0, strings.Repeat("word ", r.IntN(40))+id)
				leave := r.IntN(3) == 0
				after := time.Duration(r.IntN(4000)) * time.Millisecond
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					if leave {
						defer time.AfterFunc(after, cancel).Stop()
					}
					req := ask(t, ctx, body)
					req.Header.Set("X-Attempt-Id", id)
					resp, err := rt.RoundTrip(req)
					if err == nil {
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
					if ctx.Err() != nil {
						mu.Lock()
						fails[id] = true
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			synctest.Wait()
			b.balanced(t, rt)

			theirs := map[string][]providertest.Entry{}
			for _, e := range p.Ledger() {
				theirs[e.Attempt] = append(theirs[e.Attempt], e)
				outcomes[e.Outcome]++
				if e.Outcome == providertest.Failed && (e.Status == http.StatusServiceUnavailable || e.Status == 529) {
					overloads++
				}
			}
			for id, s := range ours {
				entries := theirs[id]
				if n := len(entries); n != s.Attempts && !(fails[id] && n < s.Attempts) || len(wire[id]) != s.Attempts {
					t.Errorf("seed %d, %s: %d entries, %d attempts seen, %d settled", seed, id, len(entries), len(wire[id]), s.Attempts)
					continue
				}
				var sum limit.Cost
				for i, e := range entries {
					sum.Requests += e.Requests
					sum.Input += e.Settled.Input
					sum.Output += e.Settled.Output
					if e.Outcome == providertest.Rejected {
						sum.Requests++ // judged before its limits; we cannot know that
					}
					if got := wire[id][i]; got != e.Status && !fails[id] && e.Outcome != providertest.Gone {
						t.Errorf("seed %d, %s, attempt %d: we saw %d, it sent %d", seed, id, i+1, got, e.Status)
					}
				}
				// A time-out at the provider is an entry of its own. Another call
				// that the client left may have met it at the same instant. An
				// attempt left before it arrived has no entry.
				timedOut := len(entries) > 0 && len(entries) == s.Attempts && entries[len(entries)-1].Outcome == providertest.Failed
				exact := (!fails[id] || timedOut) && !slices.ContainsFunc(entries, func(e providertest.Entry) bool { return e.Outcome == providertest.Gone })
				if exact && s.Charged != sum {
					t.Errorf("seed %d, %s: we charged %v, the provider %v\n%+v\n%+v", seed, id, s.Charged, sum, s, entries)
				}
				if c := s.Charged; c.Requests < sum.Requests || c.Input < sum.Input || c.Output < sum.Output {
					t.Errorf("seed %d, %s: we charged %v, less than the provider's %v\n%+v", seed, id, c, sum, entries)
				}
				delete(theirs, id)
			}
			for id := range theirs {
				t.Errorf("seed %d: the provider has entries of %q, we have not", seed, id)
			}
		})
	}
	for _, o := range []providertest.Outcome{providertest.Served, providertest.Refused, providertest.Rejected, providertest.Failed, providertest.Gone} {
		if outcomes[o] < 20 {
			t.Errorf("only %d entries %q: the scripts are too tame", outcomes[o], o)
		}
	}
	if overloads < 20 {
		t.Errorf("only %d overloads: the scripts are too tame", overloads)
	}
	t.Log(outcomes, overloads)
}

// A connection that breaks before the provider judged the call cost nothing
// there. The client cannot tell, and keeps the estimate: never less than theirs.
func TestResetBeforeAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := box(t, providertest.Options{Charge: providertest.Settle})
		p.Script(providertest.Step{Kind: providertest.ResetBefore})
		b := new(books)
		rt := gate(t, transport.Options{Base: p.RoundTripper(), Limits: slow(100, 1e6), Provider: twin(), Trace: b.trace()})
		finish(rt.RoundTrip(ask(t, t.Context(), letter)))
		b.balanced(t, rt)
		if got := spent(rt); got.Requests != 2 || got.Output != 100+16 {
			t.Errorf("charged %v", got)
		}
	})
}

// Hooks get the caller's request, never a copy.
func TestHooksSeeTheCallersRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req := ask(t, t.Context(), letter)
		seen := 0
		check := func(r *http.Request) {
			seen++
			if r != req {
				t.Error("another request")
			}
		}
		rt := gate(t, transport.Options{Base: script("429 200"), Limits: slow(100, 1e6), Trace: transport.Trace{
			Queued:   func(r *http.Request, _ limit.Cost) { check(r) },
			Granted:  func(r *http.Request, _ limit.Cost, _ time.Duration) { check(r) },
			Answered: func(a transport.Attempt) { check(a.Request) },
			Paused:   func(r *http.Request, _ limit.Pause) { check(r) },
			Settled:  func(s transport.Settlement) { check(s.Request) },
		}})
		finish(rt.RoundTrip(req))
		if seen != 6 {
			t.Errorf("%d hooks", seen)
		}
	})
}
