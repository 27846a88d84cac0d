package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// status: 200 OK
	// span "HTTP POST": 429
	// span "HTTP POST": 200
	// on the wire: 2 calls, 1 refused, 0 early
}
