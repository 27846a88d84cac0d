package redislimit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// books are one limit as package limit counts it: what the script is compared with.
type books struct {
	b     *limit.Bucket
	g     *limit.Guard
	w     *limit.Window
	heard bool
}

func (x *books) trusts(c int64) bool { return !x.heard || x.g.Covers(c) }

// take is what the ledger does with a cost at now.
func (x *books) take(t *testing.T, now time.Duration, c int64) time.Duration {
	if x.g == nil { // a window decides alone
		wait, err := x.w.Take(now, c)
		if err != nil {
			t.Fatal(err)
		}
		if wait == 0 {
			x.b.Charge(now, c)
		}
		return wait
	}
	g, b := *x.g, *x.b
	wait, err := g.Take(now, c)
	if err != nil {
		t.Fatal(err)
	}
	d, err := b.Take(now, c)
	if err != nil {
		t.Fatal(err)
	}
	wait = max(wait, d)
	if x.w != nil {
		x.w.Take(now, 0)
		if !x.trusts(c) && x.w.Credit() < c {
			d, _ := x.w.Take(now, c)
			wait = max(wait, d)
		}
	}
	if wait == 0 {
		*x.g, *x.b = g, b
		if x.w != nil {
			x.w.Charge(now, c)
		}
	}
	return wait
}

func (x *books) refund(taken, now time.Duration, n int64) {
	x.b.Return(n)
	if x.g != nil {
		x.g.Return(n)
	}
	if x.w != nil {
		x.w.Take(now, 0)
		x.w.Return(taken, n)
	}
}

func (x *books) reading(now, sent time.Duration, r limit.Rate, remaining, charged, near int64) {
	earned := r.In(now - sent)
	x.b.Lower(now, remaining-charged+earned)
	if x.g != nil {
		x.heard = true
		x.g.Shown(sent, remaining-charged, remaining-charged-near)
	} else if x.w != nil {
		x.w.LowerSent(now, sent, remaining, charged, 0)
	}
}

func (x *books) credit(now time.Duration) int64 {
	x.b.Charge(now, 0)
	if x.w == nil {
		return x.b.Credit()
	}
	x.w.Take(now, 0)
	switch {
	case x.g == nil:
		return x.w.Credit()
	case !x.heard:
		return x.b.Credit()
	}
	return min(x.w.Credit(), x.b.Credit())
}

// Every law and the guard: what the script decides, how long it says to wait and what
// credit it shows are what package limit says at the store's instant.
func TestTheScriptCountsAsTheLimiterDoes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := connect(t, server.Addr)
	rate := limit.Rate{N: 511 * 600, Window: 511 * 600 * time.Microsecond} // whole slots of a log, and a unit each microsecond
	for name, l := range map[string]limit.Limit{
		"guard":                    {Guard: 30_000},
		"fixed window":             {Law: limit.Law{Shape: limit.ShapeFixed}},
		"fixed window, quiet":      {Law: limit.Law{Shape: limit.ShapeFixed, Edge: 77 * time.Millisecond, Quiet: 50 * time.Millisecond, Spare: 3000}},
		"fixed from a call":        {Law: limit.Law{Shape: limit.ShapeFixed, FirstCall: true}},
		"log":                      {Law: limit.Law{Shape: limit.ShapeLog}},
		"log with a margin":        {Law: limit.Law{Shape: limit.ShapeLog, Margin: 511 * 100 * time.Microsecond}},
		"two windows":              {Law: limit.Law{Shape: limit.ShapeTwoWindows, Edge: time.Millisecond}},
		"two windows from a call":  {Law: limit.Law{Shape: limit.ShapeTwoWindows, FirstCall: true}},
		"sliding":                  {Law: limit.Law{Shape: limit.ShapeSliding, FirstCall: true, Spare: 1500}},
		"sliding behind a guard":   {Law: limit.Law{Shape: limit.ShapeSliding, FirstCall: true}, Guard: 45_000},
		"fixed behind a guard":     {Law: limit.Law{Shape: limit.ShapeFixed}, Guard: 45_000},
		"a law that is a bucket's": {Law: limit.Law{Shape: limit.ShapeBucket}, Guard: 90_000},
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				t.Parallel()
				l.Name, l.Unit, l.Rate, l.Burst = "tokens", limit.Input, rate, rate.N
				if l.Guard == 0 && !l.Law.Shape.Windowed() {
					t.Fatal("nothing to compare")
				}
				compare(t, d, fmt.Sprint(name, seed), l, rand.New(rand.NewPCG(seed, 23)))
			})
		}
	}
}

func compare(t *testing.T, d direct, name string, lim limit.Limit, r *rand.Rand) {
	l, err := New(Options{Name: name, Runner: d, SettleWithin: time.Nanosecond, Timeout: 5 * time.Second, MemberTTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.SetScopeLimit("s", lim); err != nil {
		t.Fatal(err)
	}
	instant := func() time.Duration { // the store's, of the last answer
		l.mu.Lock()
		defer l.mu.Unlock()
		return time.Duration(l.lastSrv) * time.Microsecond
	}
	x := &books{}
	x.b, _ = limit.NewBucket(lim.Rate, lim.Burst)
	if lim.Guard > 0 {
		x.g, _ = limit.NewGuard(lim.Rate, lim.Guard)
	}
	if lim.Law.Shape.Windowed() {
		if x.w, err = limit.NewWindow(lim.Rate, lim.Law); err != nil {
			t.Fatal(err)
		}
	}
	x.credit(instant())
	type held struct {
		r     limit.Reservation
		taken time.Duration
		cost  int64
	}
	var open []held
	debits := int64(0)
	granted, refused := 0, 0
	for i := range *ops / 2 {
		switch k := r.IntN(20); {
		case k < 11:
			c := 1 + r.Int64N(1+lim.Rate.N>>(2+r.IntN(5)))
			got, err := l.TryAdmit(limit.Ask{Cost: limit.Cost{Input: c}, Scopes: []string{"s"}})
			now := instant()
			want := x.take(t, now, c)
			if (want == 0) != (err == nil) {
				t.Fatalf("%d: a cost of %d: %v, want a wait of %v", i, c, err, want)
			}
			if err == nil {
				granted++
				debits += c
				open = append(open, held{got, now, c})
				break
			}
			refused++
			var e *limit.Error
			if !errors.As(err, &e) || e.Wait != (want+time.Microsecond-1)/time.Microsecond*time.Microsecond {
				t.Fatalf("%d: a cost of %d waits %v, want %v", i, c, e.Wait, want)
			}
		case k < 14 && len(open) > 0:
			j := r.IntN(len(open))
			h := open[j]
			open = append(open[:j], open[j+1:]...)
			switch r.IntN(3) {
			case 0:
				h.r.Keep()
			case 1:
				h.r.Return()
				l.Snapshot()
				x.refund(h.taken, instant(), h.cost)
			default:
				n := r.Int64N(h.cost + 1)
				h.r.Settle(limit.Cost{Input: h.cost - n})
				l.Snapshot()
				if n > 0 {
					x.refund(h.taken, instant(), n)
				}
			}
		case k == 14:
			l.Snapshot()
			l.mu.Lock()
			s := l.scopes["s"]
			sums, now := s.sums, l.lastSrv
			l.mu.Unlock()
			sent := now - r.Int64N(200_000)
			charged, near := r.Int64N(15_000), r.Int64N(6000)
			remaining := r.Int64N(lim.Rate.N)
			dd, ff := sums.debits, sums.refunds
			dd[1] = (dd[1] - charged + wrap) % wrap
			bb := dd
			bb[1] = (bb[1] - near + wrap) % wrap
			l.change(&control{kind: ctlLower, scope: s, name: lim.Name, nums: []int64{remaining, sent, 0, 0,
				dd[0], dd[1], dd[2], ff[0], ff[1], ff[2], bb[0], bb[1], bb[2], 1, 0}})
			x.reading(instant(), time.Duration(sent)*time.Microsecond, lim.Rate, remaining, charged, near)
		case k == 15 && lim.Guard > 0:
			l.DrainScope("s", lim.Name, 3000, 50*time.Millisecond)
			now := instant()
			x.g.Refused(now)
			x.b.Lower(now, 3000-lim.Rate.In(50*time.Millisecond))
		case k == 15 && r.IntN(4) == 0:
			l.DrainScope("s", lim.Name, 3000, 30*time.Millisecond)
			now := instant()
			x.w.Drain(now, 3000, 30*time.Millisecond)
		case k == 16 && lim.Guard > 0:
			l.mu.Lock()
			p, sent := l.pathOf(&limit.Ask{Scopes: []string{"s"}}), l.lastSrv
			p.refs++
			l.mu.Unlock()
			done := make(chan struct{})
			l.mu.Lock()
			l.control(&control{kind: ctlPassed, path: p, nums: []int64{sent}, done: done})
			l.mu.Unlock()
			<-done
			x.g.Passed(instant(), time.Duration(sent)*time.Microsecond)
		default:
			time.Sleep(time.Duration(r.IntN(8000)) * time.Microsecond)
		}
		if lim.Guard == 0 { // the bucket beside it does not decide
			snap := l.Snapshot()
			for _, one := range snap.Scopes {
				if one.Scope == "s" {
					got := one.Limits[0].Credit - one.Limits[0].Debt
					if want := x.credit(instant()); got != want {
						t.Fatalf("%d: credit %d, want %d", i, got, want)
					}
				}
			}
		}
	}
	if granted == 0 || refused == 0 || debits == 0 {
		t.Errorf("%d granted, %d refused", granted, refused)
	}
}

// Under another law the use so far stays counted, and no credit is made.
func TestALawThatChangesKeepsWhatWasUsed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := connect(t, server.Addr)
	l, err := New(Options{Name: "laws", Runner: d, Timeout: 5 * time.Second, MemberTTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	lim := limit.Limit{Name: "tokens", Unit: limit.Input, Rate: limit.PerHour(1000), Burst: 1000}
	state := func() limit.LimitState { return l.Snapshot().Scopes[0].Limits[0] }
	used := int64(0)
	for i, law := range []limit.Law{
		{}, {Shape: limit.ShapeSliding, FirstCall: true}, {Shape: limit.ShapeFixed, FirstCall: true},
		{Shape: limit.ShapeLog}, {Shape: limit.ShapeTwoWindows, Edge: time.Duration(time.Now().UnixNano())}, {Shape: limit.ShapeBucket}, {Shape: limit.ShapeLog},
	} {
		lim.Law, lim.LawWhy, lim.LawSince = law, fmt.Sprint("law ", i), time.Now()
		if err := l.EnforceScopeLimit("s", lim); err != nil {
			t.Fatal(err)
		}
		r, err := l.TryAdmit(limit.Ask{Cost: limit.Cost{Input: 100}, Scopes: []string{"s"}})
		if err != nil {
			t.Fatal(err)
		}
		r.Keep()
		used += 100
		got := state()
		// The bucket earns a unit in 3.6 s, which a machine may need.
		if left := 1000 - used; got.Credit < left || got.Credit > left+20 {
			t.Errorf("%v: credit %d, want %d", law.Shape, got.Credit, left)
		}
		if got.Limit.Law.Shape != law.Shape || got.LawWhy != lim.LawWhy || got.LawSince.Sub(lim.LawSince).Abs() > time.Second {
			t.Errorf("the law in force is %+v, want %+v", got.Limit, lim)
		}
	}
	// The log of the bucket's time was kept by none: it begins with what the bucket has.
	lim.Guard, lim.Law = 50, limit.Law{}
	l.EnforceScopeLimit("s", lim)
	if got := state(); got.Held < 200 || got.Capacity != 50 {
		t.Errorf("a guard of 50 holds back %d of %d", got.Held, got.Credit)
	}
}

// Processes whose clocks differ by minutes have seen one edge, each on its own clock:
// in the store it is one instant.
func TestAnEdgeSeenOnAWrongClock(t *testing.T) {
	defer func() { wall = time.Now }()
	base := time.Now()
	store := int64(base.Add(3*time.Minute).UnixNano() / 1000)
	for _, skew := range []time.Duration{0, 7 * time.Minute, -11*time.Minute - 345*time.Millisecond, 48 * time.Hour} {
		wall = func() time.Time { return base.Add(skew) }
		seen := wall().Add(-20 * time.Second) // the window began 20 s ago
		for _, first := range []bool{false, true} {
			law := limit.Law{Shape: limit.ShapeFixed, Edge: time.Duration(seen.UnixNano()), FirstCall: first}
			got := onStore(law, store).Edge
			want := time.Duration(store)*time.Microsecond - 20*time.Second
			if d := (got - want).Abs(); d > 5*time.Millisecond {
				t.Errorf("a clock off by %v: the edge is off by %v", skew, d)
			}
		}
	}
	wall = func() time.Time { t.Error("the clock was read"); return base }
	for _, law := range []limit.Law{{}, {Shape: limit.ShapeBucket, Edge: time.Second}, {Shape: limit.ShapeFixed, FirstCall: true}} {
		if onStore(law, store) != law {
			t.Errorf("%+v has no edge", law)
		}
	}
}

// All parts of a window together are within the limit in every window; a longer one
// would let each process use all of it at once.
func TestASplitWindowIsNoLonger(t *testing.T) {
	whole := limit.Limit{Unit: limit.Tokens, Rate: limit.PerMinute(1000), Guard: 100, Margin: 9,
		Law: limit.Law{Shape: limit.ShapeFixed, Spare: 7}}
	for n := 2; n < 40; n++ {
		part := Split(whole, n)
		if part.Rate.Window != time.Minute || part.Rate.N*int64(n) > 1000 || part.Guard < 1 || part.Guard*int64(n) > 100 {
			t.Errorf("one of %d: %v behind a guard of %d", n, part.Rate, part.Guard)
		}
		if _, err := part.Checked("part"); err != nil {
			t.Error(err)
		}
	}
}
