package limit

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const crowd = 100_000

// A hundred thousand callers stand in line. They go strictly in the order in
// which they came, each exactly at its instant; a caller costs its own
// goroutine and nothing else; and when the line is empty nothing is left.
func TestLineOfAHundredThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = time.Millisecond
		l := mustNew(t, Options{Limits: []Limit{{Name: "rps", Rate: Rate{1, each}, Burst: 1, Empty: true}}})
		start := time.Now()
		before := runtime.NumGoroutine()
		var turns atomic.Int64
		for i := range crowd {
			ticket, err := l.Reserve(Cost{Requests: 1})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				<-ticket.Ready()
				r, err := ticket.Take()
				if err != nil {
					t.Error(err)
				}
				if place := turns.Add(1) - 1; place != int64(i) {
					t.Errorf("caller %d went in place %d", i, place)
				}
				if at := time.Since(start); at != time.Duration(i+1)*each {
					t.Errorf("caller %d went at %v", i, at)
				}
				r.Keep()
			}()
		}
		if n := runtime.NumGoroutine() - before; n > crowd {
			t.Errorf("%d goroutines for %d callers", n, crowd)
		}
		if s := l.Snapshot(); s.Waiting != crowd || s.Limits[0].Waiting != crowd {
			t.Errorf("%+v", s)
		}
		time.Sleep(crowd * each)
		synctest.Wait()
		empty(t, l)
		if turns.Load() != crowd {
			t.Errorf("%d went", turns.Load())
		}
	})
}

// empty fails unless the limiter is as if nobody had ever come.
func empty(t *testing.T, l *Limiter) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.waiting != 0 || l.oldest != nil || l.newest != nil || len(l.lanes) != 0 || len(l.due) != 0:
		t.Errorf("%d wait in %d lanes", l.waiting, len(l.lanes))
	case l.armed != 0 || l.timer != nil && l.timer.Stop():
		t.Error("a timer is set")
	case l.open.n != 0:
		t.Errorf("%d in flight", l.open.n)
	}
	for _, s := range append(slices.Collect(l.scopes.all()), &l.root) {
		if s != &l.root && s.refs != 0 {
			t.Errorf("scope %q: %+v", s.name, s)
		}
		if b := s.busy; b != nil && (b.waiting != 0 || b.asked != (Cost{}) || b.open != 0 || b.spare != (Cost{})) {
			t.Errorf("scope %q: %+v", s.name, b)
		}
		for i := range s.limits {
			if q := s.limits[i].line; q != nil && (q.n != 0 || len(q.flows) != 0 || q.idle != nil || q.claim != nil || q.class[0].likely != (Cost{}) || q.class[1].weight != 0) {
				t.Errorf("scope %q: the line of %s is not empty: %+v", s.name, s.limits[i].cfg.Name, q)
			}
		}
	}
}

// One wake an admission: the timer fires once for each of those who come one
// at a time, and once for all who go together.
func TestOneWakeAnAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		l := mustNew(t, Options{Limits: []Limit{{Rate: PerSecond(10), Burst: 1, Empty: true}}})
		var ticks, woken atomic.Int64
		l.mu.Lock()
		l.timer = time.AfterFunc(time.Hour, func() { ticks.Add(1); l.tick() })
		l.timer.Stop()
		l.mu.Unlock()
		for range n {
			go func() {
				if err := l.Wait(context.Background(), Cost{Requests: 1}); err != nil {
					t.Error(err)
				}
				woken.Add(1)
			}()
			synctest.Wait()
		}
		for i := range n {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if want := int64(i + 1); ticks.Load() != want || woken.Load() != want {
				t.Fatalf("at turn %d: %d ticks, %d awake", want, ticks.Load(), woken.Load())
			}
		}
		empty(t, l)
	})
}

// A storm of cancels from anywhere in the line: those who stay keep their
// order and run as if the others had never come.
func TestCancelStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Unit: Tokens, Rate: PerSecond(1000), Burst: 1000, Empty: true}}})
		dice := rand.New(rand.NewPCG(7, 8))
		tickets := make([]*Ticket, crowd)
		for i := range tickets {
			var err error
			if tickets[i], err = l.Reserve(Cost{Input: 1 + int64(i%1000)}); err != nil {
				t.Fatal(err)
			}
		}
		var stay []*Ticket
		order := dice.Perm(crowd)
		for _, i := range order {
			if i%1000 != 499 { // a hundred of 500 tokens stay
				tickets[i].Cancel()
				tickets[i].Cancel()
			}
		}
		for i, ticket := range tickets {
			if i%1000 == 499 {
				stay = append(stay, ticket)
			}
		}
		if s := l.Snapshot(); s.Waiting != len(stay) || s.Limits[0].Waiting != 500*int64(len(stay)) {
			t.Fatalf("%+v", s)
		}
		for i, ticket := range stay {
			time.Sleep(500*time.Millisecond - 1)
			synctest.Wait()
			if _, err := ticket.Take(); !errors.Is(err, ErrLimited) {
				t.Fatalf("survivor %d went 1 ns early: %v", i, err)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			r, err := ticket.Take()
			if err != nil {
				t.Fatalf("survivor %d: %v", i, err)
			}
			r.Keep()
		}
		empty(t, l)
	})
}

// Where grant and cancel meet at one instant, one of them wins, and nothing is
// lost: the next in line goes at that same instant if the cancel won, and one
// interval later if the grant did.
func TestGrantMeetsCancel(t *testing.T) {
	wins := map[bool]int{}
	for i := range 2000 {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, Options{Limits: []Limit{{Rate: PerSecond(1), Burst: 1, Empty: true}}, MaxInFlight: 1})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var granted bool
			go func() {
				r, err := l.Acquire(ctx, Cost{Requests: 1})
				if err != nil && (!errors.Is(err, ErrCanceled) || !errors.Is(err, context.Canceled)) {
					t.Error(err)
				}
				granted = err == nil
				r.Keep()
			}()
			synctest.Wait()
			second, err := l.Reserve(Cost{Requests: 1})
			if err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 { // by a timer set before or after the limiter's own
				time.AfterFunc(time.Second, cancel)
				time.Sleep(time.Second)
			} else {
				time.Sleep(time.Second)
				cancel()
			}
			synctest.Wait()
			wins[granted]++
			if granted {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			r, err := second.Take()
			if err != nil {
				t.Fatalf("first granted %v, second: %v", granted, err)
			}
			r.Keep()
			if s := l.Snapshot(); s.Limits[0].Credit != 0 || s.Limits[0].Debt != 0 {
				t.Fatalf("%+v", s)
			}
			empty(t, l)
		})
	}
	t.Logf("grant won %d times, cancel %d", wins[true], wins[false])
}

// A turn at the very instant of the deadline is granted, always: a wait that
// was named and fits is a wait that is kept. The same for the longest wait.
func TestTurnMeetsDeadline(t *testing.T) {
	for range 500 {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, Options{Limits: []Limit{{Rate: PerSecond(1), Burst: 1, Empty: true}}, MaxWait: 2 * time.Second})
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := l.Wait(ctx, Cost{Requests: 1}); err != nil {
				t.Fatal(err)
			}
			go l.Wait(context.Background(), Cost{Requests: 1})
			synctest.Wait()
			if err := l.Wait(context.Background(), Cost{Requests: 1}); err != nil {
				t.Fatal(err)
			}
			empty(t, l)
		})
	}
}

// Every event that moves the turn of the head moves it at once.
func TestHeadIsTimedAnew(t *testing.T) {
	tokens := Limit{Name: "tokens", Unit: Tokens, Rate: PerSecond(10), Burst: 100}
	for _, c := range []struct {
		name string
		do   func(l *Limiter, held Reservation)
		want time.Duration // from then to the turn; before, it was 5 s
	}{
		{"nothing", func(l *Limiter, held Reservation) {}, 5 * time.Second},
		{"raise the rate", func(l *Limiter, held Reservation) {
			l.SetLimit(Limit{Name: "tokens", Unit: Tokens, Rate: PerSecond(100), Burst: 100})
		}, 500 * time.Millisecond},
		{"lower the rate", func(l *Limiter, held Reservation) {
			l.SetLimit(Limit{Name: "tokens", Unit: Tokens, Rate: PerSecond(1), Burst: 100})
		}, 50 * time.Second},
		{"remove the limit", func(l *Limiter, held Reservation) { l.SetLimit(Limit{Name: "tokens"}) }, 0},
		{"refund a part", func(l *Limiter, held Reservation) { held.Settle(Cost{Input: 60}) }, time.Second},
		{"refund enough", func(l *Limiter, held Reservation) { held.Settle(Cost{Input: 50}) }, 0},
		{"return", func(l *Limiter, held Reservation) { held.Return() }, 0},
		{"settle above", func(l *Limiter, held Reservation) { held.Settle(Cost{Input: 110}) }, 6 * time.Second},
		{"drain", func(l *Limiter, held Reservation) { l.Drain("tokens", 0, 7*time.Second) }, 13 * time.Second},
		{"lower credit", func(l *Limiter, held Reservation) { held.Sent(); held.Lower("tokens", -20, Cost{}) }, 8 * time.Second},
		{"pause", func(l *Limiter, held Reservation) { l.Pause(8 * time.Second) }, 14 * time.Second},
		{"a new limit", func(l *Limiter, held Reservation) {
			l.SetLimit(Limit{Name: "input", Unit: Input, Rate: PerSecond(1), Burst: 60, Empty: true})
		}, 60 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := mustNew(t, Options{Limits: []Limit{tokens}})
				held, err := l.TryAcquire(Cost{Input: 100})
				if err != nil {
					t.Fatal(err)
				}
				ticket, err := l.Reserve(Cost{Input: 60})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // 10 of 60 are there
				start := time.Now()
				c.do(l, held)
				<-ticket.Ready()
				if got := time.Since(start); got != c.want {
					t.Errorf("turn after %v, want %v", got, c.want)
				}
			})
		})
	}
	gate := map[string]func(l *Limiter, held Reservation){
		"slot kept":     func(l *Limiter, held Reservation) { held.Keep() },
		"slot settled":  func(l *Limiter, held Reservation) { held.Settle(Cost{Input: 1000}) },
		"slot returned": func(l *Limiter, held Reservation) { held.Return() },
		"gate raised":   func(l *Limiter, held Reservation) { l.SetMaxInFlight(2) },
		"gate removed":  func(l *Limiter, held Reservation) { l.SetMaxInFlight(0) },
	}
	for name, do := range gate {
		t.Run(name, func(t *testing.T) {
			l := mustNew(t, Options{MaxInFlight: 1})
			held, _ := l.TryAcquire(Cost{Input: 1})
			ticket, err := l.Reserve(Cost{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ticket.Take(); !errors.Is(err, ErrLimited) {
				t.Fatal(err)
			}
			do(l, held)
			select { // at once: no time passes, no other goroutine is needed
			case <-ticket.Ready():
			default:
				t.Error("the head was not looked at")
			}
		})
	}
}

// A small cost does not overtake a large one in a limit that both need; one that
// needs nothing of that limit passes, and so does a retry that comes first.
func TestNobodyOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{
			{Name: "rpm", Rate: PerSecond(100), Burst: 100},
			{Name: "tpm", Unit: Tokens, Rate: PerSecond(10), Burst: 100, Empty: true},
		}})
		large, _ := l.Reserve(Cost{Requests: 1, Input: 100})
		small, _ := l.Reserve(Cost{Requests: 1, Input: 10})
		if !l.Allow(Cost{}) || !l.Allow(Cost{Requests: 1}) {
			t.Fatal("a cost that needs no tokens waits for them")
		}
		time.Sleep(time.Second)
		if _, err := l.TryAcquire(Cost{Input: 1}); !errors.Is(err, ErrLimited) {
			t.Fatal(err)
		}
		retry := make(chan Reservation)
		go func() {
			r, err := l.AcquireFirst(context.Background(), Cost{Requests: 1, Input: 10})
			if err != nil {
				t.Error(err)
			}
			retry <- r
		}()
		(<-retry).Keep() // at once
		start := time.Now()
		<-large.Ready()
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("the large one went after %v", d)
		}
		<-small.Ready()
		if d := time.Since(start); d != 11*time.Second {
			t.Errorf("the next went after %v", d)
		}
	})
}

// Among those who come first, first come first served; and their costs count
// in what is named to the line behind them.
func TestFirstLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Name: "rps", Rate: PerSecond(1), Burst: 1, Empty: true}}, MaxQueue: 1})
		start := time.Now()
		line, err := l.Reserve(Cost{Requests: 1})
		if err != nil {
			t.Fatal(err)
		}
		at := make([]time.Duration, 3)
		for i := range at {
			go func() {
				if _, err := l.AcquireFirst(context.Background(), Cost{Requests: 1}); err != nil {
					t.Error(err) // MaxQueue is for newcomers
				}
				at[i] = time.Since(start)
			}()
			synctest.Wait()
		}
		var e *Error
		if _, err := line.Take(); !errors.As(err, &e) || e.Wait != 4*time.Second {
			t.Errorf("the head of the line waits for %v", err)
		}
		if _, err := l.Reserve(Cost{Requests: 1}); !errors.Is(err, ErrQueueFull) {
			t.Error(err)
		}
		<-line.Ready()
		if d := time.Since(start); d != 4*time.Second {
			t.Errorf("the line went at %v", d)
		}
		synctest.Wait()
		for i, d := range at {
			if want := time.Duration(i+1) * time.Second; d != want {
				t.Errorf("retry %d went at %v, want %v", i, d, want)
			}
		}
	})
}

// A ticket that was canceled is no permit, whether its turn had come or not:
// Take says so. One whose reservation was ended by its owner is not canceled.
func TestTakeAfterCancel(t *testing.T) {
	l := mustNew(t, Options{MaxInFlight: 1})
	turn, _ := l.Reserve(Cost{Requests: 1})
	behind, _ := l.Reserve(Cost{Requests: 1})
	behind.Cancel()
	turn.Cancel()
	turn.Cancel()
	for name, ticket := range map[string]*Ticket{"granted": turn, "waiting": behind} {
		<-ticket.Ready()
		if r, err := ticket.Take(); !errors.Is(err, ErrCanceled) || r != (Reservation{}) {
			t.Errorf("%s, then canceled: %v, %v", name, r.Cost(), err)
		}
	}
	kept, _ := l.Reserve(Cost{Requests: 1})
	r, err := kept.Take()
	if err != nil {
		t.Fatal(err)
	}
	r.Keep()
	kept.Cancel()
	if again, err := kept.Take(); err != nil || again != r {
		t.Errorf("kept, then canceled: %v", err)
	}
	empty(t, l)
}
