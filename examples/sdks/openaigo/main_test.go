package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// chat: "abc abc abc ", 3 tokens out
	// stream: "abc abc abc "
	// responses: "abc abc abc "
	// on the wire: 4 calls, 1 refused, 0 early
}
