package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// stream false: "abc abc abc " in 1, 3 tokens out
	// stream true: "abc abc abc " in 3, 3 tokens out
}
