package limit_test

import (
	"fmt"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A provider that counts ten calls in each wall-clock minute: all ten may go at
// once, and the next ten at the edge.
func ExampleWindow() {
	w, err := limit.NewWindow(limit.PerMinute(10), limit.Law{Shape: limit.ShapeFixed})
	if err != nil {
		panic(err)
	}
	for _, at := range []time.Duration{20 * time.Second, 21 * time.Second, time.Minute} {
		wait, _ := w.Take(at, 10)
		fmt.Println(at, "wait", wait)
	}
	// Output:
	// 20s wait 0s
	// 21s wait 39s
	// 1m0s wait 0s
}

// Nothing is known of how much may go at once: ten may, until an answer shows
// what is left.
func ExampleGuard() {
	g, err := limit.NewGuard(limit.PerMinute(600), 10)
	if err != nil {
		panic(err)
	}
	wait, _ := g.Take(0, 10)
	fmt.Println("ten: wait", wait)
	wait, _ = g.Take(0, 10)
	fmt.Println("ten more: wait", wait)
	g.Shown(0, 590, 590)
	wait, _ = g.Take(0, 100)
	fmt.Println("a hundred, once 590 are shown: wait", wait)
	// Output:
	// ten: wait 0s
	// ten more: wait 1s
	// a hundred, once 590 are shown: wait 0s
}
