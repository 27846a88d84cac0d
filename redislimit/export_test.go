package redislimit

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// SkewClock sets the clock of this process off. It is for processes of tests.
func SkewClock(d time.Duration) { wall = func() time.Time { return time.Now().Add(d) } }

// FakeTime is a client whose script takes the time of the test for the server's. In a
// bubble of synctest that time stands still while the server answers. So a test there is
// exact however busy the machine is. It hears of no turns: a message would come at any
// time.
func FakeTime(t testing.TB, addr string) Runner {
	t.Helper()
	c, err := redistest.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	f := fakeTime{make(chan *redistest.Conn, 1)}
	f.turn <- c
	return f
}

type fakeTime struct{ turn chan *redistest.Conn }

var ledgerOfTests = newScript(strings.Replace(source, "call('TIME')", "{ARGV[2], ARGV[3]}", 1))

func (f fakeTime) Run(_ context.Context, _ *Script, keys, args []string) (string, error) {
	c := <-f.turn
	defer func() { f.turn <- c }()
	now := time.Now().UnixMicro()
	do := func(how, script string) (string, error) {
		return c.Do(how, script, "1", keys[0], args[0], strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10))
	}
	s, err := do("EVALSHA", ledgerOfTests.SHA1)
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		return do("EVAL", ledgerOfTests.Source)
	}
	return s, err
}
