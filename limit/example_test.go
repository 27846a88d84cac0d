package limit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// Any function limited in one line: its calls wait their turn.
func ExampleWrap() {
	tools, err := limit.New(limit.Options{
		Limits:      []limit.Limit{{Rate: limit.PerSecond(50), Burst: 1}},
		MaxInFlight: 2,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	search := limit.Wrap(tools, limit.Cost{Requests: 1}, func(context.Context) (string, error) { return "found", nil })

	start := time.Now()
	for range 3 {
		found, err := search(context.Background())
		fmt.Println(found, err)
	}
	fmt.Println("two waits of 20 ms:", time.Since(start) >= 40*time.Millisecond)
	// Output:
	// found <nil>
	// found <nil>
	// found <nil>
	// two waits of 20 ms: true
}

// A call is charged by estimate and settled by what it really cost.
func ExampleReservation_Settle() {
	l, _ := limit.New(limit.Options{Limits: []limit.Limit{
		{Name: "rpd", Unit: limit.Requests, Rate: limit.PerDay(1000)},
		{Name: "tpd", Unit: limit.Tokens, Rate: limit.PerDay(100_000)},
	}})
	show := func(when string) {
		s := l.Snapshot()
		fmt.Printf("%s: %d requests, %d tokens, %d in flight\n", when, s.Limits[0].Credit, s.Limits[1].Credit, s.InFlight)
	}

	r, err := l.Acquire(context.Background(), limit.Cost{Requests: 1, Input: 1_200, Output: 4_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Keep() // the estimate stands if nothing better is known
	show("asked")
	r.Settle(limit.Cost{Input: 1_150, Output: 350})
	show("settled")
	r.Settle(limit.Cost{}) // a second end does nothing
	show("again")
	// Output:
	// asked: 999 requests, 94800 tokens, 1 in flight
	// settled: 999 requests, 98500 tokens, 0 in flight
	// again: 999 requests, 98500 tokens, 0 in flight
}

// A place in the line can be selected on, beside anything else.
func ExampleLimiter_Reserve() {
	l, _ := limit.New(limit.Options{MaxInFlight: 1})
	busy, _ := l.TryAcquire(limit.Cost{Requests: 1})

	ticket, err := l.Reserve(limit.Cost{Requests: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ticket.Cancel() // nothing, once the reservation has ended

	hangup := make(chan struct{})
	select {
	case <-ticket.Ready():
		fmt.Println("my turn")
	case <-hangup:
		fmt.Println("hung up")
	default:
		fmt.Println("not yet")
	}

	busy.Keep()
	select {
	case <-ticket.Ready():
		r, err := ticket.Take()
		fmt.Println("my turn", err)
		r.Keep()
	case <-hangup:
		fmt.Println("hung up")
	}
	// Output:
	// not yet
	// my turn <nil>
}

// A burst is not an allowance per window. One a minute with a burst of 20 may
// admit 21 in a minute; String says so.
func ExampleLimit_String() {
	fmt.Println(limit.Limit{Rate: limit.PerMinute(1), Burst: 20})
	fmt.Println(limit.Limit{Rate: limit.PerMinute(1), Burst: 1})
	fmt.Println(limit.Limit{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(90_000)})
	fmt.Println(limit.Limit{})

	b, _ := limit.NewBucket(limit.PerMinute(1), 20)
	admitted := 0
	for at := time.Duration(0); at <= time.Minute; at += time.Second {
		for {
			if wait, err := b.Take(at, 1); wait > 0 || err != nil {
				break
			}
			admitted++
		}
	}
	fmt.Println("admitted in the first minute:", admitted)
	// Output:
	// requests: 1/1m0s after a burst of 20: at most 21 in any 1m0s
	// requests: 1/1m0s after a burst of 1: at most 2 in any 1m0s
	// tpm: 90000/1m0s after a burst of 15000: at most 105000 in any 1m0s; a larger cost, up to 90000, waits for the full burst and is paid off before the next
	// requests: unlimited
	// admitted in the first minute: 21
}

// A refusal has the numbers for the next step.
func ExampleError() {
	l, _ := limit.New(limit.Options{Limits: []limit.Limit{
		{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(600), Burst: 100},
	}})
	_, err := l.TryAcquire(limit.Cost{Input: 90, Output: 11})
	fmt.Println(err)

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l.Pause(time.Hour)
	_, err = l.Acquire(ctx, limit.Cost{Input: 10})
	var e *limit.Error
	fmt.Println(errors.Is(err, limit.ErrWaitTooLong), errors.Is(err, context.DeadlineExceeded))
	fmt.Println(errors.As(err, &e), e.Dimension, e.Wait.Round(time.Minute))
	// Output:
	// limit: cost can never be admitted: tpm: cost 101, capacity 100
	// true true
	// true tpm 1h0m0s
}

// What people and metrics want to know, without stopping traffic.
func ExampleLimiter_Snapshot() {
	l, _ := limit.New(limit.Options{
		Limits: []limit.Limit{
			{Name: "rpd", Rate: limit.PerDay(10)},
			{Name: "tpd", Unit: limit.Tokens, Rate: limit.PerDay(1000)},
		},
		MaxInFlight: 1,
	})
	r, _ := l.TryAcquire(limit.Cost{Requests: 1, Input: 500})
	next, _ := l.Reserve(limit.Cost{Requests: 1, Input: 300})
	defer next.Cancel()

	s := l.Snapshot()
	for _, lim := range s.Limits {
		fmt.Printf("%s: %d of %d, %d waiting\n", lim.Name, lim.Credit, lim.Capacity, lim.Waiting)
	}
	fmt.Printf("%d of %d in flight, %d in line, paused %v\n", s.InFlight, s.MaxInFlight, s.Waiting, !s.PausedUntil.IsZero())

	r.Settle(limit.Cost{Input: 2000}) // more than there was
	for _, lim := range l.Snapshot().Limits {
		fmt.Printf("%s: %d, debt %d\n", lim.Name, lim.Credit, lim.Debt)
	}
	// Output:
	// rpd: 9 of 10, 1 waiting
	// tpd: 500 of 1000, 300 waiting
	// 1 of 1 in flight, 1 in line, paused false
	// rpd: 9, debt 0
	// tpd: 0, debt 1000
}

// The arithmetic alone, with a pencil: 3 at once, then one each half second.
func ExampleBucket() {
	b, err := limit.NewBucket(limit.PerSecond(2), 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, at := range []time.Duration{0, 0, 0, 0, 499 * time.Millisecond, 500 * time.Millisecond} {
		wait, err := b.Take(at, 1)
		fmt.Println(at, wait, err)
	}
	// Output:
	// 0s 0s <nil>
	// 0s 0s <nil>
	// 0s 0s <nil>
	// 0s 500ms <nil>
	// 499ms 1ms <nil>
	// 500ms 0s <nil>
}

// One limiter for two tenants that share a provider's limit, by weight, and for
// batch calls that take what these leave.
func ExampleLimiter_Admit() {
	l, err := limit.New(limit.Options{
		Limits: []limit.Limit{{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(60_000), Burst: 1000}},
	})
	if err != nil {
		panic(err)
	}
	l.SetScope("tenant/paying", limit.ScopeOptions{Weight: 3})
	l.SetScopeLimit("model/large", limit.Limit{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(6_000), Burst: 500})

	r, err := l.Admit(context.Background(), limit.Ask{
		Cost:   limit.Cost{Requests: 1, Input: 300, Output: 200},
		Scopes: []string{"model/large"},
		Tenant: "tenant/paying",
	})
	if err != nil {
		panic(err)
	}
	r.Settle(limit.Cost{Input: 300, Output: 50}) // what the answer says

	for _, s := range l.Snapshot().Scopes {
		fmt.Println(s)
	}
	f := l.Forecast(limit.Ask{Cost: limit.Cost{Input: 450}, Scopes: []string{"model/large"}, Class: limit.Batch})
	fmt.Println("a batch call would wait", f.Wait > 2*time.Second, "for", f.Dimension, "of", f.Scope)
	// Output:
	// model/large: tpm: 6000/1m0s, 150 of 500 left; 0 in flight, 0 waiting
	// tenant/paying: no limits; 0 in flight, 0 waiting
	// a batch call would wait true for tpm of model/large
}
