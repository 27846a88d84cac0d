package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// stream false: 200 OK, application/json, abc 3 times
	// stream true: 200 OK, text/event-stream; charset=utf-8, abc 3 times
	// on the wire: 3 calls, 1 refused, 0 early
}
