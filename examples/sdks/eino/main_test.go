package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// whole: "abc abc abc ", 3 tokens out
	// stream: "abc abc abc "
	// on the wire: 3 calls, 1 refused, 0 early
}
