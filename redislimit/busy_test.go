package redislimit_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// tolerated is how late timers are on a machine at rest, at most.
const tolerated = 10 * time.Millisecond

// Tests of real time need a machine that runs them when they are due. onTime judges f
// by an attempt during which timers came in time. It repeats a failed attempt, twice at
// most, if a timer came late by more than 10 ms. So a fault of the package fails at
// once on a machine at rest, and after three attempts on a busy one.
func onTime(t *testing.T, f func(t testing.TB)) {
	t.Helper()
	for try := 1; ; try++ {
		a := &attempt{TB: t}
		late := a.lateness()
		done := make(chan struct{})
		go func() {
			defer close(done)
			f(a)
		}()
		<-done
		for i := len(a.ends) - 1; i >= 0; i-- {
			a.ends[i]()
		}
		worst := late()
		if len(a.faults) == 0 {
			return
		}
		if try == 3 || worst < tolerated {
			t.Errorf("attempt %d, timers late by up to %v:\n%s", try, worst, strings.Join(a.faults, "\n"))
			return
		}
		t.Logf("again, for timers were late by up to %v: %s", worst, strings.Join(a.faults, "\n"))
	}
}

// lateness watches by how much timers are late until it is asked.
func (a *attempt) lateness() (worst func() time.Duration) {
	stop, out := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(out)
		for {
			start := time.Now()
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				a.late.Store(max(a.late.Load(), int64(time.Since(start)-5*time.Millisecond)))
			}
		}
	}()
	return func() time.Duration { close(stop); <-out; return time.Duration(a.late.Load()) }
}

// inFakeTime runs f with that many processes over one server, in fake time.
func inFakeTime(t *testing.T, n int, o redislimit.Options, f func(t *testing.T, m []*redislimit.Limiter)) {
	t.Helper()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		store := redislimit.NewFakeStore(server.Addr)
		f(t, members(t, n, func() redislimit.Runner { return store.Client(t) }, o))
	})
}

// bubble is inFakeTime for tests that cut lines to the server. No process hears of its
// turns there.
func bubble(t *testing.T, n int, o redislimit.Options, f func(t *testing.T, server *redistest.Server, m []*redislimit.Limiter, lines []*wire)) {
	t.Helper()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		var m []*redislimit.Limiter
		var lines []*wire
		store := redislimit.NewFakeStore(server.Addr)
		for range n {
			w := &wire{Runner: store.Client(t)}
			o := o
			o.Runner = w
			lines = append(lines, w)
			m = append(m, open(t, o))
		}
		f(t, server, m, lines)
	})
}

// An attempt keeps its faults for onTime.
type attempt struct {
	testing.TB
	mu     sync.Mutex
	faults []string
	late   atomic.Int64 // nanoseconds
	ends   []func()
}

func (a *attempt) note(fault string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, file, line, _ := runtime.Caller(2)
	a.faults = append(a.faults, fmt.Sprintf("%s:%d: %s", file[strings.LastIndexByte(file, '/')+1:], line, fault))
}

func (a *attempt) Cleanup(f func())             { a.ends = append(a.ends, f) }
func (a *attempt) Error(args ...any)            { a.note(fmt.Sprint(args...)) }
func (a *attempt) Errorf(f string, args ...any) { a.note(fmt.Sprintf(f, args...)) }
func (a *attempt) Fatal(args ...any)            { a.note(fmt.Sprint(args...)); runtime.Goexit() }
func (a *attempt) Fatalf(f string, args ...any) { a.note(fmt.Sprintf(f, args...)); runtime.Goexit() }
