package limittest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

func open(t *testing.T, o limit.Options) Limiter {
	l, err := limit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return Of(l)
}

// The limiter of package limit keeps every promise, to the nanosecond.
func TestLimiter(t *testing.T) {
	Run(t, open, FakeTime)
}

// An implementation whose clock is elsewhere, a round trip of some milliseconds
// away, keeps the promises too, within the slack that it asks for. (The bubble
// is here only to make the example quick and sure.)
func TestRemoteLimiter(t *testing.T) {
	clock := WallTime(20 * time.Millisecond)
	for _, p := range promises {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{clock: clock, open: func(o limit.Options) Limiter { return remote{open(t, o)} }}
				s.run(p)
				for _, fault := range s.faults {
					t.Error(fault)
				}
			})
		})
	}
}

type remote struct{ Limiter }

func trip() { time.Sleep(1500 * time.Microsecond) }

func (l remote) TryAcquire(c limit.Cost) (Reservation, error) {
	trip()
	defer trip()
	return l.Limiter.TryAcquire(c)
}

func (l remote) Acquire(ctx context.Context, c limit.Cost) (Reservation, error) {
	trip()
	defer trip()
	return l.Limiter.Acquire(ctx, c)
}

// A broken limiter is one whose fault the suite must find. The name of the
// promise that it breaks is part of its name.
func TestBrokenLimiters(t *testing.T) {
	for _, broken := range []struct {
		promise string
		make    func(l *limit.Limiter) Limiter
	}{
		{"a burst and no more", func(l *limit.Limiter) Limiter { return generous{local{l}} }},
		{"a burst under contention", func(l *limit.Limiter) Limiter { return generous{local{l}} }},
		{"returned is as if never taken", func(l *limit.Limiter) Limiter { return forgetful{local{l}} }},
		{"a refund lets the head go", func(l *limit.Limiter) Limiter { return polling{local{l}} }},
		{"a cancelled waiter leaves no trace", func(l *limit.Limiter) Limiter { return burning{local{l}} }},
		{"first come first served", func(l *limit.Limiter) Limiter { return overtaking{local{l}} }},
		{"settled once", func(l *limit.Limiter) Limiter { return twice{local{l}} }},
		{"a pause is kept", func(l *limit.Limiter) Limiter { return hasty{local{l}} }},
		{"debt is paid off", func(l *limit.Limiter) Limiter { return forgiving{local{l}} }},
		{"a deadline too near is refused at once", func(l *limit.Limiter) Limiter { return patient{local{l}} }},
		{"an ended context gets nothing", func(l *limit.Limiter) Limiter { return deaf{local{l}} }},
		{"at most the burst and the rate in any window", func(l *limit.Limiter) Limiter { return generous{local{l}} }},
	} {
		t.Run(strings.ReplaceAll(broken.promise, " ", "_"), func(t *testing.T) {
			found := false
			for _, p := range promises {
				if p.name != broken.promise {
					continue
				}
				found = true
				FakeTime.In(t, func(t *testing.T) {
					s := &script{clock: FakeTime, open: func(o limit.Options) Limiter {
						l, err := limit.New(o)
						if err != nil {
							t.Fatal(err)
						}
						return broken.make(l)
					}}
					s.run(p)
					if len(s.faults) == 0 {
						t.Errorf("%T passed", broken.make(nil))
					}
				})
			}
			if !found {
				t.Fatal("no such promise")
			}
		})
	}
}

// generous charges half.
type generous struct{ local }

func (l generous) TryAcquire(c limit.Cost) (Reservation, error) {
	c.Input /= 2
	return l.local.TryAcquire(c)
}

func (l generous) Acquire(ctx context.Context, c limit.Cost) (Reservation, error) {
	c.Input /= 2
	return l.local.Acquire(ctx, c)
}

// forgetful keeps what is returned.
type forgetful struct{ local }
type kept struct{ Reservation }

func (k kept) Return() { k.Keep() }

func (l forgetful) TryAcquire(c limit.Cost) (Reservation, error) {
	r, err := l.local.TryAcquire(c)
	return kept{r}, err
}

// polling sleeps for the wait it was named, whatever happens meanwhile.
type polling struct{ local }

func (l polling) Acquire(ctx context.Context, c limit.Cost) (Reservation, error) {
	for {
		r, err := l.local.TryAcquire(c)
		e, refused := err.(*limit.Error)
		if !refused {
			return r, err
		}
		time.Sleep(e.Wait)
	}
}

// burning charges for a wait that was given up.
type burning struct{ local }

func (l burning) Acquire(ctx context.Context, c limit.Cost) (Reservation, error) {
	r, err := l.local.Acquire(context.WithoutCancel(ctx), c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return r, err
}

// overtaking has no line.
type overtaking struct{ local }

func (l overtaking) Acquire(ctx context.Context, c limit.Cost) (Reservation, error) {
	for {
		if r, err := l.local.TryAcquire(c); err == nil {
			return r, nil
		}
		time.Sleep(time.Millisecond)
	}
}

// twice gives back at every end, not only at the first: here, all there is.
type twice struct{ local }
type again struct {
	Reservation
	l     local
	ended *bool
}

func (a again) Settle(actual limit.Cost) {
	if *a.ended {
		a.l.SetLimit(limit.Limit{Name: "tokens"})
	}
	*a.ended = true
	a.Reservation.Settle(actual)
}

func (l twice) TryAcquire(c limit.Cost) (Reservation, error) {
	r, err := l.local.TryAcquire(c)
	return again{r, l.local, new(bool)}, err
}

// hasty halves every pause.
type hasty struct{ local }

func (l hasty) Pause(d time.Duration) { l.local.Pause(d / 2) }

// forgiving never charges more than was reserved.
type forgiving struct{ local }
type capped struct {
	Reservation
	c limit.Cost
}

func (r capped) Settle(actual limit.Cost) {
	actual.Input = min(actual.Input, r.c.Input)
	r.Reservation.Settle(actual)
}

func (l forgiving) TryAcquire(c limit.Cost) (Reservation, error) {
	r, err := l.local.TryAcquire(c)
	return capped{r, c}, err
}

// patient waits for the deadline to pass.
type patient struct{ local }

func (l patient) Acquire(ctx context.Context, c limit.Cost) (Reservation, error) {
	r, err := l.local.Acquire(ctx, c)
	if err != nil {
		<-ctx.Done()
	}
	return r, err
}

// deaf does not look at its context.
type deaf struct{ local }

func (l deaf) Acquire(_ context.Context, c limit.Cost) (Reservation, error) {
	return l.local.TryAcquire(c)
}
