package providertest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Clients that hammer without mercy get, in every window of the ledger, at most
// capacity + rate x window. By waiting for the named waits they get all of it.
func TestHammeredLedger(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			const rpm, tpm, capacity = 300, 20_000, 6 * time.Second // holds 30 and 2000
			p := mustNew(t, Options{Limits: Limits{RPM: rpm, TPM: tpm}, Capacity: capacity, Count: countIDs, RetryAfter: RetryAfterMillis,
				Latency: func(c Call) Timing { return Timing{FirstByte: time.Duration(c.Prompt) * time.Millisecond} }})
			end := p.Start().Add(time.Minute)
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(seed, uint64(i)))
					for time.Now().Before(end) {
						res := send(t.Context(), p.RoundTripper(), "/v1/completions", ids(1+r.IntN(80), 1+r.IntN(80)))
						if res.status == 429 {
							time.Sleep(time.Duration(1 + r.Int64N(int64(400*time.Millisecond))))
						}
					}
				})
			}
			wg.Wait()
			var in []Entry
			for _, e := range p.Ledger() {
				switch e.Outcome {
				case Served:
					in = append(in, e)
				case Refused:
					if e.Requests != 0 || e.Arrival.Total() != 0 {
						t.Fatalf("a refusal was charged: %+v", e)
					}
				}
			}
			for i := range in {
				requests, tokens := int64(0), int64(0)
				for _, e := range in[i:] {
					requests, tokens = requests+e.Requests, tokens+e.Arrival.Total()
					window := int64(e.Since-in[i].Since) + int64(capacity)
					// units/limit <= window/minute, without rounding.
					if requests*minute > rpm*window || tokens*minute > tpm*window {
						t.Fatalf("seed %d: %d requests, %d tokens in %v", seed, requests, tokens, e.Since-in[i].Since)
					}
				}
			}
			q, ok := p.QuotaUsed(p.Start(), end)
			// The capacity at the start is 6 s on top of 60 s.
			if !ok || q.Max() < 0.9 || q.Max() > 66.0/60 {
				t.Errorf("seed %d: used %+v, %v", seed, q, ok)
			}
		})
	}
}

// What a simulation pays for a call, in memory.
func BenchmarkCall(b *testing.B) {
	for _, stream := range []bool{false, true} {
		b.Run(fmt.Sprintf("stream=%v", stream), func(b *testing.B) {
			p := mustNew(b, Options{Limits: Limits{RPM: maxLimit, TPM: maxLimit}})
			body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"hello"}],"stream":%v}`, stream)
			b.ReportAllocs()
			for b.Loop() {
				if r := send(b.Context(), p.RoundTripper(), "/v1/chat/completions", body); r.status != 200 {
					b.Fatal(r)
				}
			}
		})
	}
}
