package limittest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A Limiter is what the suite asks of an implementation. The meanings, and the
// errors, are those of [limit.Limiter].
type Limiter interface {
	Acquire(context.Context, limit.Cost) (Reservation, error)
	TryAcquire(limit.Cost) (Reservation, error)
	Pause(time.Duration)
	SetLimit(limit.Limit) error
}

// A Reservation is an admitted cost with one end, as [limit.Reservation].
type Reservation interface {
	Settle(actual limit.Cost)
	Keep()
	Return()
}

// Of makes a [*limit.Limiter] a Limiter.
func Of(l *limit.Limiter) Limiter { return local{l} }

type local struct{ *limit.Limiter }

func (l local) Acquire(ctx context.Context, c limit.Cost) (Reservation, error) {
	return l.Limiter.Acquire(ctx, c)
}

func (l local) TryAcquire(c limit.Cost) (Reservation, error) { return l.Limiter.TryAcquire(c) }

// Time says how time passes for an implementation.
type Time struct {
	// In runs a test in its own time; nil runs it as it is.
	In func(*testing.T, func(*testing.T))

	// Sleep lets d pass. Settled returns when whatever is due has happened.
	Sleep   func(d time.Duration)
	Settled func()

	// Slack is how much later than its exact instant something may happen, and
	// how long a question may take. Nothing may ever happen earlier.
	Slack time.Duration
}

// FakeTime is the time of [testing/synctest]: exact, and no time at all.
var FakeTime = Time{In: synctest.Test, Sleep: time.Sleep, Settled: synctest.Wait}

// WallTime is real time, for an implementation whose clock is elsewhere. Slack
// must cover its timers, its round trips and a busy machine.
func WallTime(slack time.Duration) Time {
	return Time{Sleep: time.Sleep, Settled: func() { time.Sleep(slack) }, Slack: slack}
}

// Run runs every promise as a subtest on a limiter that open makes anew. It
// fails if none ran, as when a -run pattern names none of them.
func Run(t *testing.T, open func(t *testing.T, o limit.Options) Limiter, clock Time) {
	t.Helper()
	ran := 0
	for _, p := range promises {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			ran++
			in := clock.In
			if in == nil {
				in = func(t *testing.T, f func(*testing.T)) { f(t) }
			}
			in(t, func(t *testing.T) {
				s := &script{clock: clock, open: func(o limit.Options) Limiter { return open(t, o) }}
				s.run(p)
				for _, fault := range s.faults {
					t.Error(fault)
				}
				if s.checks == 0 {
					t.Error("the promise checked nothing")
				}
			})
		})
	}
	if ran == 0 {
		t.Error("no promise was tested")
	}
}

// A promise is one thing a limiter is held to, told as a script.
type promise struct {
	name string
	keep func(*script)
}

// A script plays one promise and notes what was broken. It does not know of
// testing.T, so that the suite can be tried on limiters that are wrong.
type script struct {
	clock  Time
	open   func(limit.Options) Limiter
	checks int
	faults []string
	start  time.Time
}

func (s *script) run(p promise) {
	s.start = time.Now()
	done := make(chan bool)
	go func() { // a fatal fault ends the script, not the test
		defer close(done)
		p.keep(s)
	}()
	<-done
}

// check notes a fault unless ok.
func (s *script) check(ok bool, format string, args ...any) {
	s.checks++
	if !ok {
		_, file, line, _ := runtime.Caller(1)
		at := fmt.Sprintf("%s:%d: ", file[strings.LastIndexByte(file, '/')+1:], line)
		s.faults = append(s.faults, at+fmt.Sprintf(format, args...))
	}
}

// must is check, and ends the script on a fault.
func (s *script) must(ok bool, format string, args ...any) {
	s.check(ok, format, args...)
	if !ok {
		runtime.Goexit()
	}
}

func (s *script) limiter(o limit.Options) Limiter {
	l := s.open(o)
	s.start = time.Now()
	return l
}

func (s *script) since() time.Duration { return time.Since(s.start) }

// take is TryAcquire of a cost that must be there.
func (s *script) take(l Limiter, c limit.Cost) Reservation {
	r, err := l.TryAcquire(c)
	s.must(err == nil, "%v was refused: %v", c, err)
	return r
}

// A waiter is an Acquire in a goroutine of its own.
type waiter struct {
	done chan struct{}
	at   time.Duration
	r    Reservation
	err  error
	stop context.CancelFunc
}

// wait starts a waiter and returns when it stands in line, or is through.
func (s *script) wait(l Limiter, c limit.Cost, timeout time.Duration) *waiter {
	ctx, stop := context.WithCancel(context.Background())
	if timeout > 0 {
		ctx, stop = context.WithTimeout(context.Background(), timeout)
	}
	w := &waiter{done: make(chan struct{}), stop: stop}
	go func() {
		defer close(w.done)
		defer stop()
		w.r, w.err = l.Acquire(ctx, c)
		w.at = s.since()
	}()
	s.clock.Settled()
	return w
}

// waiting reports whether w is still in line.
func (w *waiter) waiting() bool {
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}
