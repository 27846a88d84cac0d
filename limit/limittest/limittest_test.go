package limittest

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

func open(t *testing.T, o limit.Options) limit.Ledger { return local(t, o) }

func local(t *testing.T, o limit.Options) *limit.Limiter {
	l, err := limit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
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
				s := &script{clock: clock, open: func(o limit.Options) limit.Ledger { return remote{local(t, o)} }}
				s.run(p)
				for _, fault := range s.faults {
					t.Error(fault)
				}
			})
		})
	}
}

type remote struct{ *limit.Limiter }

func trip() { time.Sleep(1500 * time.Microsecond) }

func (l remote) TryAdmit(a limit.Ask) (limit.Reservation, error) {
	trip()
	defer trip()
	return l.Limiter.TryAdmit(a)
}

func (l remote) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	trip()
	defer trip()
	return l.Limiter.Admit(ctx, a)
}

// A broken limiter is one whose fault the suite must find.
func TestBrokenLimiters(t *testing.T) {
	for _, broken := range []struct {
		promise string
		make    func(l *limit.Limiter) limit.Ledger
	}{
		{"a burst and no more", func(l *limit.Limiter) limit.Ledger { return generous{l} }},
		{"a burst under contention", func(l *limit.Limiter) limit.Ledger { return generous{l} }},
		{"returned is as if never taken", func(l *limit.Limiter) limit.Ledger { return forgetful{l} }},
		{"a refund lets the head go", func(l *limit.Limiter) limit.Ledger { return polling{l} }},
		{"a cancelled waiter leaves no trace", func(l *limit.Limiter) limit.Ledger { return burning{l} }},
		{"first come first served", func(l *limit.Limiter) limit.Ledger { return overtaking{l} }},
		{"settled once", func(l *limit.Limiter) limit.Ledger { return twice{l} }},
		{"a pause is kept", func(l *limit.Limiter) limit.Ledger { return hasty{l} }},
		{"debt is paid off", func(l *limit.Limiter) limit.Ledger { return forgiving{l} }},
		{"a deadline too near is refused at once", func(l *limit.Limiter) limit.Ledger { return patient{l} }},
		{"an ended context gets nothing", func(l *limit.Limiter) limit.Ledger { return deaf{l} }},
		{"at most the burst and the rate in any window", func(l *limit.Limiter) limit.Ledger { return generous{l} }},
		{"a call takes from its whole path", func(l *limit.Limiter) limit.Ledger { return rootOnly{l} }},
		{"a refusal in one scope spends nothing in another", func(l *limit.Limiter) limit.Ledger { return stepwise{l} }},
		{"a pause holds its scope and no other", func(l *limit.Limiter) limit.Ledger { return pausesAll{l} }},
		{"one probe at a time goes after the ceiling", func(l *limit.Limiter) limit.Ledger { return opening{l} }},
		{"tenants share by weight", func(l *limit.Limiter) limit.Ledger { return oneTenant{l} }},
		{"interactive before batch, and batch gets its floor", func(l *limit.Limiter) limit.Ledger { return oneClass{l} }},
		{"a call that goes first is before the others of its tenant", func(l *limit.Limiter) limit.Ledger { return lastNotFirst{l} }},
		{"those ahead are priced at what they will probably cost", func(l *limit.Limiter) limit.Ledger { return pessimistic{l} }},
		{"what is in force leaves what is configured", func(l *limit.Limiter) limit.Ledger { return overwriting{l} }},
		{"a fixed window begins anew at its edge", func(l *limit.Limiter) limit.Ledger { return lawless{l} }},
		{"a log gives back what was used a window ago", func(l *limit.Limiter) limit.Ledger { return lawless{l} }},
		{"a guard lets a short burst go, and a reading lifts it", func(l *limit.Limiter) limit.Ledger { return unguarded{l} }},
		{"a pause that keeps credit takes none", func(l *limit.Limiter) limit.Ledger { return forfeiting{l} }},
		{"a call that waited takes what it costs then", func(l *limit.Limiter) limit.Ledger { return priceless{l} }},
		{"a call that does not wait keeps its price", func(l *limit.Limiter) limit.Ledger { return curious{l} }},
		{"a price that no wait can make admissible is not taken", func(l *limit.Limiter) limit.Ledger { return credulous{l} }},
		{"the cause of a context is found", func(l *limit.Limiter) limit.Ledger { return causeless{l} }},
	} {
		t.Run(strings.ReplaceAll(broken.promise, " ", "_"), func(t *testing.T) {
			found := false
			for _, p := range promises {
				if p.name != broken.promise {
					continue
				}
				found = true
				FakeTime.In(t, func(t *testing.T) {
					s := &script{clock: FakeTime, open: func(o limit.Options) limit.Ledger { return broken.make(local(t, o)) }}
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

// holder ends a reservation in another way than it should.
type holder struct {
	r      limit.Reservation
	settle func(r limit.Reservation, actual limit.Cost)
	back   func(r limit.Reservation)
}

func (h holder) Settle(_ uint64, actual limit.Cost) {
	if h.settle == nil {
		h.r.Settle(actual)
		return
	}
	h.settle(h.r, actual)
}
func (h holder) Keep(uint64) { h.r.Keep() }
func (h holder) Return(uint64) {
	if h.back == nil {
		h.r.Return()
		return
	}
	h.back(h.r)
}
func (h holder) Cost(uint64) limit.Cost { return h.r.Cost() }
func (h holder) Sent(uint64)            { h.r.Sent() }
func (h holder) Lower(_ uint64, scope, name string, remaining int64, own limit.Cost) bool {
	return h.r.LowerIn(scope, name, remaining, own)
}

// generous charges half.
type generous struct{ *limit.Limiter }

func (l generous) TryAdmit(a limit.Ask) (limit.Reservation, error) {
	a.Cost.Input /= 2
	return l.Limiter.TryAdmit(a)
}

func (l generous) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	a.Cost.Input /= 2
	return l.Limiter.Admit(ctx, a)
}

// forgetful keeps what is returned.
type forgetful struct{ *limit.Limiter }

func (l forgetful) TryAdmit(a limit.Ask) (limit.Reservation, error) {
	r, err := l.Limiter.TryAdmit(a)
	return limit.Hold(holder{r: r, back: limit.Reservation.Keep}, 0), err
}

// polling sleeps for the wait it was named, and ignores what happens meanwhile.
type polling struct{ *limit.Limiter }

func (l polling) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	for {
		r, err := l.TryAdmit(a)
		e, refused := err.(*limit.Error)
		if !refused {
			return r, err
		}
		time.Sleep(e.Wait)
	}
}

// burning charges for a wait that was given up.
type burning struct{ *limit.Limiter }

func (l burning) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	r, err := l.Limiter.Admit(context.WithoutCancel(ctx), a)
	if ctx.Err() != nil {
		return limit.Reservation{}, ctx.Err()
	}
	return r, err
}

// overtaking has no line.
type overtaking struct{ *limit.Limiter }

func (l overtaking) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	for {
		if r, err := l.TryAdmit(a); err == nil {
			return r, nil
		}
		time.Sleep(time.Millisecond)
	}
}

// twice gives back at every end, not only at the first: here, all there is.
type twice struct{ *limit.Limiter }

func (l twice) TryAdmit(a limit.Ask) (limit.Reservation, error) {
	r, err := l.Limiter.TryAdmit(a)
	ended := false
	return limit.Hold(holder{r: r, settle: func(r limit.Reservation, actual limit.Cost) {
		if ended {
			l.SetLimit(limit.Limit{Name: "tokens"})
		}
		ended = true
		r.Settle(actual)
	}}, 0), err
}

// hasty halves every pause.
type hasty struct{ *limit.Limiter }

func (l hasty) PauseScope(scope string, p limit.Pause) {
	p.For /= 2
	l.Limiter.PauseScope(scope, p)
}

// forgiving never charges more than was reserved.
type forgiving struct{ *limit.Limiter }

func (l forgiving) TryAdmit(a limit.Ask) (limit.Reservation, error) {
	r, err := l.Limiter.TryAdmit(a)
	return limit.Hold(holder{r: r, settle: func(r limit.Reservation, actual limit.Cost) {
		actual.Input = min(actual.Input, a.Cost.Input)
		r.Settle(actual)
	}}, 0), err
}

// patient waits for the deadline to pass.
type patient struct{ *limit.Limiter }

func (l patient) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	r, err := l.Limiter.Admit(ctx, a)
	if err != nil {
		<-ctx.Done()
	}
	return r, err
}

// deaf does not look at its context.
type deaf struct{ *limit.Limiter }

func (l deaf) Admit(_ context.Context, a limit.Ask) (limit.Reservation, error) {
	return l.TryAdmit(a)
}

// priceless asks for no price.
type priceless struct{ *limit.Limiter }

func (l priceless) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	a.Pricer = nil
	return l.Limiter.Admit(ctx, a)
}

// curious asks those for their price who do not wait.
type curious struct{ *limit.Limiter }

func (l curious) TryAdmit(a limit.Ask) (limit.Reservation, error) {
	if a.Pricer != nil {
		a.Cost, a.Likely = a.Pricer.Price()
	}
	return l.Limiter.TryAdmit(a)
}

// credulous takes any price, when it begins to wait.
type credulous struct{ *limit.Limiter }

func (l credulous) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	if a.Pricer != nil {
		a.Cost, a.Likely = a.Pricer.Price()
	}
	return l.Limiter.Admit(ctx, a)
}

// rootOnly forgets the scopes.
type rootOnly struct{ *limit.Limiter }

func (l rootOnly) TryAdmit(a limit.Ask) (limit.Reservation, error) {
	return l.Limiter.TryAdmit(limit.Ask{Cost: a.Cost})
}

// stepwise takes from the root first, and keeps that if another scope refuses.
type stepwise struct{ *limit.Limiter }

func (l stepwise) TryAdmit(a limit.Ask) (limit.Reservation, error) {
	if len(a.Scopes) > 0 {
		l.Limiter.Allow(a.Cost)
	}
	return l.Limiter.TryAdmit(a)
}

// pausesAll pauses the root for every scope.
type pausesAll struct{ *limit.Limiter }

func (l pausesAll) PauseScope(_ string, p limit.Pause) { l.Limiter.PauseScope("", p) }

// opening ends a pause for all at its ceiling.
type opening struct{ *limit.Limiter }

func (l opening) PauseScope(scope string, p limit.Pause) {
	l.Limiter.PauseScope(scope, limit.Pause{For: p.ProbeAfter})
}

// oneTenant has one line for all.
type oneTenant struct{ *limit.Limiter }

func (l oneTenant) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	a.Tenant = ""
	return l.Limiter.Admit(ctx, a)
}

// oneClass has no priorities.
type oneClass struct{ *limit.Limiter }

func (l oneClass) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	a.Class = limit.Interactive
	return l.Limiter.Admit(ctx, a)
}

// lastNotFirst lets nobody go first.
type lastNotFirst struct{ *limit.Limiter }

func (l lastNotFirst) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	a.First = false
	return l.Limiter.Admit(ctx, a)
}

// pessimistic prices those ahead at what they reserve.
type pessimistic struct{ *limit.Limiter }

func (l pessimistic) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	a.Likely = limit.Cost{}
	return l.Limiter.Admit(ctx, a)
}

// overwriting replaces the configured limit instead of only enforcing another.
type overwriting struct{ *limit.Limiter }

func (l overwriting) EnforceScopeLimit(scope string, lim limit.Limit) error {
	return l.SetScopeLimit(scope, lim)
}

// lawless meters every law as a bucket.
type lawless struct{ *limit.Limiter }

func (l lawless) EnforceScopeLimit(scope string, lim limit.Limit) error {
	lim.Law, lim.Burst = limit.Law{}, lim.Rate.N
	return l.Limiter.EnforceScopeLimit(scope, lim)
}

// unguarded has no guard.
type unguarded struct{ *limit.Limiter }

func (l unguarded) EnforceScopeLimit(scope string, lim limit.Limit) error {
	lim.Guard = 0
	return l.Limiter.EnforceScopeLimit(scope, lim)
}

// forfeiting takes credit in every pause.
type forfeiting struct{ *limit.Limiter }

func (l forfeiting) PauseScope(scope string, p limit.Pause) {
	p.KeepCredit = false
	l.Limiter.PauseScope(scope, p)
}

// causeless hides the cause of a context.
type causeless struct{ *limit.Limiter }

func (l causeless) Admit(ctx context.Context, a limit.Ask) (limit.Reservation, error) {
	r, err := l.Limiter.Admit(ctx, a)
	if err != nil {
		err = limit.ErrCanceled
	}
	return r, err
}
