package providertest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A client that sends each call at its ideal instant is never refused, and one
// that sends it a nanosecond sooner always is. So the ideal is what the
// provider really enforces, to the nanosecond.
func TestIdealIsTheFirstInstant(t *testing.T) {
	delayed := 0
	for algorithm := Bucket; algorithm <= Slices; algorithm++ {
		for charge := Estimate; charge <= Larger; charge++ {
			for seed := range uint64(2) {
				name := fmt.Sprintf("algorithm %d, charge %d, seed %d", algorithm, charge, seed)
				synctest.Test(t, func(t *testing.T) {
					r := rand.New(rand.NewPCG(seed, uint64(10*algorithm)+uint64(charge)))
					time.Sleep(time.Duration(r.Int64N(int64(3 * time.Minute))))
					o := Options{
						Limits:    Limits{RPM: 20 + r.Int64N(200), TPM: 2000 + r.Int64N(4000), InputTPM: 2000, OutputTPM: 3000},
						Algorithm: algorithm, Charge: charge, Count: countIDs, Output: Constant(25), StartSpent: r.IntN(101),
						Slice: 20 * time.Second, HalveAfter: 45 * time.Second, MaxInFlight: 1 + r.Int64N(6),
						Latency: func(c Call) Timing {
							return Timing{FirstByte: time.Duration(c.Prompt) * 7 * time.Millisecond, PerToken: 11 * time.Millisecond}
						},
					}
					p := mustNew(t, o)
					var calls []Cost
					var bodies []string
					var due time.Duration // with the second seed the calls come one by one
					for range 40 {
						prompt, cap := 1+r.IntN(150), 1+r.IntN(120)
						calls = append(calls, Cost{Prompt: int64(prompt), Cap: int64(cap), Output: int64(min(cap, 25)), At: due})
						due += time.Duration(seed) * time.Duration(r.Int64N(int64(2*time.Second)))
						bodies = append(bodies, ids(prompt, cap))
					}
					times, err := IdealTimes(calls, o, p.Start())
					if err != nil {
						t.Fatal(name, err)
					}
					if s, err := IdealSeconds(calls, o); err != nil || s != times[len(times)-1].Seconds() {
						t.Errorf("%s: IdealSeconds %v, %v; want %v", name, s, err, times[len(times)-1])
					}
					var wg sync.WaitGroup
					for i, at := range times {
						if at > time.Since(p.Start()) {
							delayed++
							time.Sleep(at - 1 - time.Since(p.Start()))
							synctest.Wait()
							if time.Since(p.Start()) == at-1 && at > calls[i].At {
								if r := send(t.Context(), p.RoundTripper(), "/v1/completions", bodies[i]); r.status != 429 {
									t.Fatalf("%s: call %d, 1 ns before %v: status %d", name, i, at, r.status)
								}
							}
							time.Sleep(time.Until(p.Start().Add(at)))
						}
						synctest.Wait() // what ends now ends first
						wg.Go(func() {
							if r := send(t.Context(), p.RoundTripper(), "/v1/completions", bodies[i]); r.status != 200 {
								t.Errorf("%s: call %d at %v: status %d %s", name, i, at, r.status, r.body)
							}
						})
						synctest.Wait()
					}
					wg.Wait()
				})
			}
		}
	}
	if delayed < 300 {
		t.Errorf("only %d calls had to wait: nothing is proved", delayed)
	}
}

func TestIdealByPencil(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 30, 0, time.UTC)
	hundred := make([]Cost, 10)
	for i := range hundred {
		hundred[i] = Cost{Prompt: 60, Cap: 40, Output: 10}
	}
	for _, c := range []struct {
		name string
		o    Options
		want time.Duration
	}{
		{"no limit", Options{}, 0},
		// 10 x 100 tokens against 200 held and 10 a second.
		{"bucket of 20 s", Options{Limits: Limits{TPM: 600}, Capacity: 20 * time.Second}, 80 * time.Second},
		// The same, 100 at the start.
		{"half spent", Options{Limits: Limits{TPM: 600}, Capacity: 20 * time.Second, StartSpent: 50}, 90 * time.Second},
		{"prompt only", Options{Limits: Limits{TPM: 600}, Capacity: 20 * time.Second, Charge: PromptOnly}, 40 * time.Second},
		// Settled at once: each costs 70, but needs 100 to get in. Nine cost
		// 630, and 100 must be there: 730 - 200 = 530 at 10 a second.
		{"settle", Options{Limits: Limits{TPM: 600}, Capacity: 20 * time.Second, Charge: Settle}, 53 * time.Second},
		// 6 a minute: 6 go at :30, the rest at the next minute.
		{"fixed", Options{Limits: Limits{TPM: 600}, Algorithm: FixedMinute}, 30 * time.Second},
		{"sliding", Options{Limits: Limits{TPM: 600}, Algorithm: SlidingMinute}, time.Minute},
		{"slices", Options{Limits: Limits{TPM: 6000}, Algorithm: Slices}, 9 * time.Second},
		{"requests", Options{Limits: Limits{RPM: 60}, RequestCapacity: time.Second}, 9 * time.Second},
		{"one at a time", Options{MaxInFlight: 1, Latency: func(Call) Timing { return Timing{PerToken: time.Second} }}, 90 * time.Second},
	} {
		times, err := IdealTimes(hundred, c.o, start)
		if err != nil || len(times) != 10 || times[9] != c.want {
			t.Errorf("%s: %v, %v; want the last at %v", c.name, times, err, c.want)
		}
	}
	for _, bad := range []Cost{{Prompt: 601}, {Prompt: -1}, {Cap: maxTokens + 1}} {
		if _, err := IdealTimes([]Cost{bad}, Options{Limits: Limits{TPM: 600}}, start); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}
