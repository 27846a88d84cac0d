package redislimit

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// SkewClock sets the clock of this process off. It is for processes of tests.
func SkewClock(d time.Duration) { wall = func() time.Time { return time.Now().Add(d) } }

// A FakeStore is a server whose script takes the time of the test for the server's. In a
// bubble of synctest that time stands still while the server answers. So a test there is
// exact however busy the machine is. This process passes on the messages of a call
// after its answer.
type FakeStore struct {
	addr   string
	script *Script

	mu    sync.Mutex
	heard map[string]func(string) // by channel
}

// NewFakeStore is the server at addr in fake time.
func NewFakeStore(addr string) *FakeStore {
	text := source
	for _, x := range [][2]string{
		{"call('TIME')", "{ARGV[2], ARGV[3]}"},
		{"call('PUBLISH', pre .. 'w:' .. who, ", "call('RPUSH', 'published', pre .. 'w:' .. who, "},
	} {
		if !strings.Contains(text, x[0]) {
			panic("the script has no " + x[0])
		}
		text = strings.ReplaceAll(text, x[0], x[1])
	}
	return &FakeStore{addr: addr, script: newScript(text), heard: map[string]func(string){}}
}

// Client is a client of the store, with a connection of its own.
func (f *FakeStore) Client(t testing.TB) Listener {
	t.Helper()
	c, err := redistest.Dial(f.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	k := fakeClient{f, make(chan *redistest.Conn, 1)}
	k.turn <- c
	return k
}

type fakeClient struct {
	*FakeStore
	turn chan *redistest.Conn
}

func (f fakeClient) Run(_ context.Context, _ *Script, keys, args []string) (string, error) {
	c := <-f.turn
	defer func() { f.turn <- c }()
	now := time.Now().UnixMicro()
	do := func(how, script string) (string, error) {
		return c.Do(how, script, "1", keys[0], args[0], strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10))
	}
	s, err := do("EVALSHA", f.script.SHA1)
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		s, err = do("EVAL", f.script.Source)
	}
	if err != nil {
		return s, err
	}
	told, err := c.Do("LPOP", "published", "1000")
	for lines := strings.Split(told, "\n"); len(lines) > 1; lines = lines[2:] {
		f.mu.Lock()
		heard := f.heard[lines[0]]
		f.mu.Unlock()
		if heard != nil {
			heard(lines[1])
		}
	}
	return s, err
}

func (f fakeClient) Listen(ctx context.Context, channel string, ready func(), heard func(string)) error {
	f.mu.Lock()
	f.heard[channel] = heard
	f.mu.Unlock()
	ready()
	<-ctx.Done()
	f.mu.Lock()
	delete(f.heard, channel)
	f.mu.Unlock()
	return ctx.Err()
}
