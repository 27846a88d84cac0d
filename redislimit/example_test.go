package redislimit_test

import (
	"context"
	"fmt"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit"
)

// Two processes, here two limiters, share 100 tokens an hour. What one settles is
// there for the other.
func ExampleNew() {
	addr, stop := exampleServer()
	defer stop()
	o := redislimit.Options{
		Name:   "openai",
		Runner: viaGoRedis(&fatal{}, addr), // goredis.New(client)
		Limits: []limit.Limit{{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerHour(100)}},
	}
	one, err := redislimit.New(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer one.Close()
	two, err := redislimit.New(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer two.Close()

	r, _ := one.TryAdmit(limit.Ask{Cost: limit.Cost{Input: 80}})
	_, err = two.TryAdmit(limit.Ask{Cost: limit.Cost{Input: 30}})
	fmt.Println(err != nil)

	r.Settle(limit.Cost{Input: 60})
	_, err = two.Admit(context.Background(), limit.Ask{Cost: limit.Cost{Input: 30}})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// A budget without a store: each of four processes takes a quarter.
func ExampleSplit() {
	fmt.Println(redislimit.Split(limit.Limit{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(200_000)}, 4))
	fmt.Println(redislimit.Split(limit.Limit{Name: "rpm", Rate: limit.PerMinute(10)}, 4))
	// Output:
	// tpm: 50000/1m0s after a burst of 8333: at most 58333 in any 1m0s; a larger cost, up to 200000, waits for the full burst and is paid off before the next
	// rpm: 10/4m0s after a burst of 1: at most 11 in any 4m0s; a larger cost, up to 10, waits for the full burst and is paid off before the next
}

// Report: IBM/mcp-context-forge#3750
func ExampleSplit_sum() {
	var sum int64
	for range 3 {
		l := redislimit.Alone(redislimit.Split(limit.Limit{Name: "rpm", Rate: limit.PerMinute(60), Burst: 60}, 3))
		for {
			r, err := l.TryAdmit(limit.Ask{Cost: limit.Cost{Requests: 1}})
			if err != nil {
				break
			}
			r.Keep()
			sum++
		}
	}
	fmt.Println(sum, "of 60")
	// Output: 60 of 60
}
