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

// ledger is the limit.Ledger under test, with shorthands for the root scope and
// the common tenant.
type ledger struct{ limit.Ledger }

func (l ledger) Acquire(ctx context.Context, c limit.Cost) (limit.Reservation, error) {
	return l.Admit(ctx, limit.Ask{Cost: c})
}

func (l ledger) TryAcquire(c limit.Cost) (limit.Reservation, error) {
	return l.TryAdmit(limit.Ask{Cost: c})
}

func (l ledger) Pause(d time.Duration) { l.PauseScope("", limit.Pause{For: d}) }

func (l ledger) SetLimit(lim limit.Limit) error { return l.SetScopeLimit("", lim) }

// Time says how time passes for an implementation.
type Time struct {
	// In runs a test in its own time; nil runs it as it is.
	In func(*testing.T, func(*testing.T))

	// Sleep lets d pass. Settled returns when everything that is due has happened.
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

// tries is how often a promise is asked for in real time, if the machine was late: a
// timer came later than a sixth of the slack. A ledger that breaks a promise on a
// machine in time fails at once, and on a late one after so many tries.
const tries = 3

// late watches by how much timers are late until it is asked. In other than real time
// they never are.
func (c Time) late() (worst func() time.Duration) {
	if c.In != nil || c.Slack == 0 {
		return func() time.Duration { return 0 }
	}
	stop, out := make(chan struct{}), make(chan time.Duration)
	go func() {
		var most time.Duration
		for {
			start := time.Now()
			select {
			case <-stop:
				out <- most
				return
			case <-time.After(5 * time.Millisecond):
				most = max(most, time.Since(start)-5*time.Millisecond)
			}
		}
	}()
	return func() time.Duration { close(stop); return <-out }
}

// Run runs every promise as a subtest on a ledger that open makes anew, with the
// limits and options of the root scope. It
// fails if none ran, as when a -run pattern names none of them.
func Run(t *testing.T, open func(t *testing.T, o limit.Options) limit.Ledger, clock Time) {
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
				var s *script
				for try := 1; ; try++ {
					s = &script{clock: clock, open: func(o limit.Options) limit.Ledger { return open(t, o) }}
					late := clock.late()
					s.run(p)
					if worst := late(); len(s.faults) == 0 || try == tries || worst <= clock.Slack/6 {
						break
					}
				}
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

// A promise is one requirement on a limiter, written as a script.
type promise struct {
	name string
	keep func(*script)
}

// A script plays one promise and notes what was broken. It does not know of
// testing.T, so that the suite can be tried on limiters that are wrong.
type script struct {
	clock   Time
	open    func(limit.Options) limit.Ledger
	checks  int
	faults  []string
	waiters []*waiter
	start   time.Time
}

func (s *script) run(p promise) {
	s.start = time.Now()
	done := make(chan bool)
	go func() { // a fatal fault ends the script, not the test
		defer close(done)
		p.keep(s)
	}()
	<-done
	for _, w := range s.waiters { // those that a fatal fault left behind
		s.clock.Settled()
		w.stop()
		<-w.done
	}
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

func (s *script) limiter(o limit.Options) ledger {
	start := time.Now() // before: what is earned while it opens is earned
	l := s.open(o)
	s.start = start
	return ledger{l}
}

func (s *script) since() time.Duration { return time.Since(s.start) }

// take is TryAcquire of a cost that must be there.
func (s *script) take(l ledger, c limit.Cost) limit.Reservation {
	return s.takeAs(l, limit.Ask{Cost: c})
}

// takeAs is take for any ask.
func (s *script) takeAs(l ledger, a limit.Ask) limit.Reservation {
	r, err := l.TryAdmit(a)
	s.must(err == nil, "%+v was refused: %v", a, err)
	return r
}

// A waiter is an Admit in a goroutine of its own.
type waiter struct {
	done chan struct{}
	at   time.Duration
	r    limit.Reservation
	err  error
	stop context.CancelFunc
}

// wait starts a waiter and returns when it stands in line, or is through.
func (s *script) wait(l ledger, c limit.Cost, timeout time.Duration) *waiter {
	return s.waitAs(l, limit.Ask{Cost: c}, timeout)
}

func (s *script) waitAs(l ledger, a limit.Ask, timeout time.Duration) *waiter {
	ctx, stop := context.WithCancel(context.Background())
	if timeout > 0 {
		ctx, stop = context.WithTimeout(context.Background(), timeout)
	}
	w := &waiter{done: make(chan struct{}), stop: stop}
	s.waiters = append(s.waiters, w)
	go func() {
		defer close(w.done)
		defer stop()
		w.r, w.err = l.Admit(ctx, a)
		w.at = s.since()
	}()
	s.clock.Settled()
	return w
}

// end waits for all, and gives up those who still wait after d.
func (s *script) end(d time.Duration, all ...*waiter) {
	for _, w := range all {
		for w.waiting() && s.since() < d {
			s.clock.Sleep(10 * time.Millisecond)
		}
		s.clock.Settled()
		w.stop()
		<-w.done
	}
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
