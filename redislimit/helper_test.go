package redislimit_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/goredis"
	"github.com/tripmeter/tripmeter/redislimit/rueidis"
)

var clients = map[string]func(t testing.TB, addr ...string) redislimit.Listener{
	"goredis": viaGoRedis,
	"rueidis": viaRueidis,
}

// silence keeps what go-redis writes to standard error out of the tests' output.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silence{}) }

func viaGoRedis(t testing.TB, addr ...string) redislimit.Listener {
	c := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addr, DialTimeout: time.Second})
	t.Cleanup(func() { c.Close() })
	return goredis.New(c)
}

func viaRueidis(t testing.TB, addr ...string) redislimit.Listener {
	c, err := rueidisclient.NewClient(rueidisclient.ClientOption{InitAddress: addr, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return rueidis.New(c)
}

// open makes a member of the budget named after the test.
func open(t testing.TB, o redislimit.Options) *redislimit.Limiter {
	t.Helper()
	if o.Name == "" {
		o.Name = t.Name()
	}
	if o.Timeout == 0 { // the test is not about a store that is away
		o.Timeout = patient
		if o.MemberTTL == 0 {
			o.MemberTTL = 5 * patient
		} else {
			o.Timeout = min(patient, o.MemberTTL/2)
		}
	}
	l, err := redislimit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// patient is the Timeout of tests that are not about a store that is away: on a busy
// machine a server may have no core for longer than the default.
const patient = 2 * time.Second

// brisk is the default Timeout, for tests about a store that is away.
const brisk = 250 * time.Millisecond

func tokens(n int64) limit.Cost   { return limit.Cost{Input: n} }
func requests(n int64) limit.Cost { return limit.Cost{Requests: n} }

func tokenLimit(r limit.Rate, burst int64, empty bool) []limit.Limit {
	return []limit.Limit{{Name: "tokens", Unit: limit.Tokens, Rate: r, Burst: burst, Empty: empty}}
}

// A wire is a line to the store. A test can cut it, as when a process or its
// network dies. It can also lose answers after the store has decided.
type wire struct {
	redislimit.Runner
	cut    atomic.Bool
	frozen atomic.Bool // nothing answers, until the context ends
	lose   func() bool
	n      atomic.Int64
}

// A phone is a wire that hears of turns.
type phone struct {
	*wire
	listener redislimit.Listener
}

func (p phone) Listen(ctx context.Context, channel string, ready func(), heard func(string)) error {
	return p.listener.Listen(ctx, channel, ready, heard)
}

var errCut = errors.New("the line is cut")

func (w *wire) Run(ctx context.Context, s *redislimit.Script, keys, args []string) (string, error) {
	if w.cut.Load() {
		return "", errCut
	}
	if w.frozen.Load() {
		<-ctx.Done()
		return "", ctx.Err()
	}
	w.n.Add(1)
	r, err := w.Runner.Run(ctx, s, keys, args)
	if err == nil && w.lose != nil && w.lose() {
		return "", errCut
	}
	return r, err
}

func take(t testing.TB, l *redislimit.Limiter, a limit.Ask) limit.Reservation {
	t.Helper()
	r, err := l.TryAdmit(a)
	if err != nil {
		t.Fatalf("%+v: %v", a, err)
	}
	return r
}

// A turn is somebody who waits.
type turn struct {
	done chan struct{}
	at   time.Time
	r    limit.Reservation
	err  error
	stop context.CancelFunc
}

// queue begins an Admit and returns when it stands in the line, or is through.
func queue(t testing.TB, l *redislimit.Limiter, a limit.Ask) *turn {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	x := &turn{done: make(chan struct{}), stop: stop}
	before := l.Snapshot().Waiting
	go func() {
		defer close(x.done)
		x.r, x.err = l.Admit(ctx, a)
		x.at = time.Now()
	}()
	for range 200 {
		select {
		case <-x.done:
			return x
		default:
		}
		if l.Snapshot().Waiting > before {
			return x
		}
	}
	t.Fatal("nobody stands in the line")
	return nil
}

func (x *turn) waits() bool {
	select {
	case <-x.done:
		return false
	default:
		return true
	}
}

// within fails the test unless x is admitted in d.
func (x *turn) within(t testing.TB, d time.Duration) {
	t.Helper()
	select {
	case <-x.done:
		if x.err != nil {
			t.Fatal(x.err)
		}
	case <-time.After(d):
		t.Fatalf("still in the line after %v", d)
	}
}

// credit is what a limit of the root has, below zero what it owes.
func credit(t testing.TB, l *redislimit.Limiter, name string) int64 {
	t.Helper()
	for _, s := range l.Snapshot().Limits {
		if s.Name == name {
			return s.Credit - s.Debt
		}
	}
	t.Fatalf("there is no limit %q", name)
	return 0
}

// eventually waits, in the time of the store, for what must come.
func eventually(t testing.TB, d time.Duration, what string, f func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !f() {
		if time.Since(start) > d {
			t.Fatalf("not within %v: %s", d, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(start)
}
