// Package redistest starts a real redis-server for a test, and ends it. A test fails
// where the program is missing: a skipped one looks like one that passed.
package redistest

import (
	"net"
	"os/exec"
	"testing"
	"time"
)

// Start is the URL of an empty store on a free port. It ends with the test.
func Start(t testing.TB) (url string) {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("%v. Install redis-server: budgets of several processes are tested with it.", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.Command(program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 1000 {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return "redis://" + address
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the store does not answer")
	return ""
}
