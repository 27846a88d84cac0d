// Function limits a plain function, such as a tool that a model may call: no
// HTTP, only package limit. It needs no key and no network.
//
//	go run ./examples/function
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "function:", err)
		os.Exit(1)
	}
}

// lookUp is the tool: any function of a context.
func lookUp(context.Context) (string, error) { return "7 °C, rain", nil }

func run(w io.Writer) error {
	// Two calls a second, after three that may go at once.
	tools, err := limit.New(limit.Options{Limits: []limit.Limit{{Name: "tools", Rate: limit.PerSecond(2), Burst: 3}}})
	if err != nil {
		return err
	}
	one := limit.Cost{Requests: 1}

	// The one line: a function of the same shape that waits its turn.
	limited := limit.Wrap(tools, one, lookUp)

	ctx := context.Background()
	start := time.Now()
	for i := range 5 {
		answer, err := limited(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%.1f s  call %d: %s\n", time.Since(start).Seconds(), i+1, answer)
	}

	// The same for a call with arguments, in place.
	sum, err := limit.Do(ctx, tools, one, func(context.Context) (int, error) { return add(2, 3), nil })
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%.1f s  2 + 3 = %d\n", time.Since(start).Seconds(), sum)

	// Whoever does not want to wait asks, and is told at once.
	fmt.Fprintln(w, "now?", tools.Allow(one))

	// What no wait can make admissible is refused before anything happens.
	_, err = limit.Do(ctx, tools, limit.Cost{Requests: 4}, lookUp)
	fmt.Fprintln(w, "four at once?", !errors.Is(err, limit.ErrTooLarge))
	return nil
}

func add(a, b int) int { return a + b }
