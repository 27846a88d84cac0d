package limit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A change from any law to any other raises no credit, with a guard or without. What
// the new books hold beyond it comes after a sixth of a window, or at the next edge.
func TestAnotherLawRaisesNoCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		edge := func(d time.Duration) time.Duration { return time.Duration(start.Add(d).UnixNano()) }
		laws := []limit.Law{
			{},
			{Shape: limit.ShapeBucket},
			{Shape: limit.ShapeFixed, Edge: edge(50 * time.Second)},
			{Shape: limit.ShapeFixed, Edge: edge(3 * time.Second)},
			{Shape: limit.ShapeLog},
			{Shape: limit.ShapeTwoWindows, Edge: edge(50 * time.Second)},
			{Shape: limit.ShapeSliding, FirstCall: true, Spare: 300},
		}
		for _, from := range laws {
			for _, to := range laws {
				for guards := range 4 {
					lim := limit.Limit{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(60_000), Burst: 60_000, Law: from}
					next := lim
					next.Law = to
					if guards&1 != 0 {
						lim.Guard = 10_000
					}
					if guards&2 != 0 {
						next.Guard = 10_000
					}
					l := newLimiter(t, limit.Options{Limits: []limit.Limit{lim}})
					one := func(cost, shown int64) { answered(t, l, cost, shown) }
					balance := func() int64 {
						s := l.Snapshot().Limits[0]
						return s.Credit - s.Debt
					}
					one(9_000, 51_000)
					time.Sleep(52 * time.Second)
					one(9_000, 20_000)
					time.Sleep(time.Second)
					before := balance()
					if err := l.SetLimit(next); err != nil {
						t.Fatal(err)
					}
					if now := balance(); now > before {
						t.Errorf("%+v, guard %d, to %+v, guard %d: credit rose from %d to %d", from, lim.Guard, to, next.Guard, before, now)
					}
					time.Sleep(3 * time.Minute)
					if now := balance(); now < 60_000-300-1 {
						t.Errorf("%+v to %+v: %d are there three minutes later", from, to, now)
					}
				}
			}
		}
	})
}

// answered takes cost when its turn comes, and settles it after an answer that shows what
// is left of "tpm".
func answered(t *testing.T, l *limit.Limiter, cost, left int64) {
	t.Helper()
	r, err := l.Reserve(tokens(cost))
	if err != nil {
		t.Fatal(err)
	}
	<-r.Ready()
	held, err := r.Take()
	if err != nil {
		t.Fatal(err)
	}
	held.Sent()
	held.Lower("tpm", left, limit.Cost{})
	held.Settle(tokens(cost))
}

// A window that was a guess, and turns out to be none, costs nothing after a sixth of a
// window: credit is that of a bucket all along. Until then it does not rise by the change.
// A call that waits goes at the instant at which the window is asked no more.
func TestAGuessThatEndsCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := limit.Limit{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(60_000), Burst: 60_000, Law: limit.Law{Shape: limit.ShapeSliding, FirstCall: true}, Guard: 1}
		bucket := lim
		bucket.Law, bucket.Guard = limit.Law{Shape: limit.ShapeBucket}, 0
		guessed := newLimiter(t, limit.Options{Limits: []limit.Limit{lim}})
		known := newLimiter(t, limit.Options{Limits: []limit.Limit{bucket}})
		credit := func(l *limit.Limiter) int64 { return l.Snapshot().Limits[0].Credit }
		take := func(cost int64) {
			answered(t, guessed, cost, 60_000-cost)
			answered(t, known, cost, limit.MaxUnits)
		}
		take(40_000)
		time.Sleep(20 * time.Second)
		if credit(guessed) != 20_000 || credit(known) != 40_000 {
			t.Fatalf("credit %d and %d, want 20,000 and 40,000", credit(guessed), credit(known))
		}
		if err := guessed.SetLimit(bucket); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if n := credit(guessed); n != 20_000 {
			t.Errorf("credit %d by the change, want 20,000", n)
		}
		take(30_000) // it waits until the window is asked no more
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("the call waited %v, want 10 s", d)
		}
		if a, b := credit(guessed), credit(known); a != 20_000 || b != a {
			t.Errorf("credit %d, want 20,000; of a bucket all along %d", a, b)
		}
	})
}
