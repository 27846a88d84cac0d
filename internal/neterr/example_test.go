package neterr_test

import (
	"errors"
	"fmt"
	"net"

	"github.com/tripmeter/tripmeter/internal/neterr"
)

// Nobody listens: nothing left, and the next attempt may find a listener.
func Example() {
	err := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	fmt.Println(neterr.Unsent(err), neterr.Mendable(err))
	// Output: true true
}
