package limit

import (
	"context"
	"errors"
	"math/big"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"
)

// A life is one reservation from the first ask to the last end. Thousands live at
// once here, in goroutines of their own, and nobody predicts them: the test only
// keeps the books. After any history this holds exactly, in every limit:
//
//	credit - debt + outstanding + spent = earned
//
// earned is what the rates brought since the start: the limits start empty and are
// large enough never to overflow. outstanding is what open reservations hold, and
// spent what ended ones cost.
type books struct {
	mu          sync.Mutex
	outstanding Cost
	spent       Cost
	inFlight    int
	earned      []*big.Int // grains
	since       time.Time  // earned is told up to here
	cur         []Rate
}

func (b *books) move(out, spent Cost, slots int) {
	b.mu.Lock()
	b.outstanding, b.spent = b.outstanding.plus(out), b.spent.plus(spent)
	b.inFlight += slots
	b.mu.Unlock()
}

func (b *books) earn() {
	d := int64(time.Since(b.since))
	b.since = time.Now()
	for i, r := range b.cur {
		b.earned[i].Add(b.earned[i], new(big.Int).Mul(big.NewInt(r.N), big.NewInt(d)))
	}
}

// check compares the limiter with the books, when everybody is quiet.
func (b *books) check(t *testing.T, l *Limiter) {
	t.Helper()
	synctest.Wait()
	l.Snapshot() // brings the limits up to now
	b.earn()
	b.mu.Lock()
	defer b.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.root.limits {
		lim := &l.root.limits[i]
		held := big.NewInt(count(lim.cfg.Unit, b.outstanding) + count(lim.cfg.Unit, b.spent))
		sum := held.Mul(held, new(big.Int).SetUint64(lim.w))
		sum.Add(sum, lim.level.big())
		if sum.Cmp(b.earned[i]) != 0 {
			t.Fatalf("%v: credit + outstanding + spent = %v grains, earned %v", lim.cfg, sum, b.earned[i])
		}
	}
	if l.open.n != b.inFlight {
		t.Fatalf("%d in flight, want %d", l.open.n, b.inFlight)
	}
}

// live is one random life. It runs on its own goroutine and ends the way that
// the dice say, at the instant they say.
func (b *books) live(t *testing.T, l *Limiter, r *rand.Rand) {
	cost := Cost{r.Int64N(3), r.Int64N(2000), r.Int64N(500)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	some := func() time.Duration { // at any instant, or at one where grants are likely
		d := time.Duration(r.Int64N(int64(3 * time.Second)))
		return d.Truncate([]time.Duration{1, 20 * time.Microsecond, time.Millisecond}[r.IntN(3)])
	}

	var res Reservation
	var err error
	switch r.IntN(8) {
	case 0: // cancelled before it asks
		cancel()
		res, err = l.Acquire(ctx, cost)
		if err == nil {
			t.Error("admitted under a cancelled context")
		}
	case 1, 2: // cancelled at some instant: in the line, at the grant, or after
		time.AfterFunc(some(), cancel)
		res, err = l.Acquire(ctx, cost)
	case 3: // a deadline
		late, stop := context.WithTimeout(ctx, some())
		defer stop()
		res, err = l.AcquireFirst(late, cost)
	case 4: // a ticket, given up at some instant, or taken
		var ticket *Ticket
		if ticket, err = l.Reserve(cost); err != nil {
			break
		}
		select {
		case <-ticket.Ready():
			res, err = ticket.Take()
		case <-time.After(some()):
			ticket.Cancel()
			return
		}
	case 5: // without a handle
		late, stop := context.WithTimeout(ctx, some())
		defer stop()
		if err = l.Wait(late, cost); err == nil {
			b.move(Cost{}, cost, 0)
		}
		return
	case 6: // without waiting
		if res, err = l.TryAcquire(cost); err != nil {
			return
		}
	default:
		res, err = l.Acquire(ctx, cost)
	}
	if err != nil {
		if e := new(Error); !errors.As(err, &e) || res != (Reservation{}) {
			t.Errorf("%v with %v", res, err)
		}
		return
	}
	b.move(cost, Cost{}, 1)
	time.Sleep(some())
	negative := Cost{}.minus(cost)
	switch r.IntN(4) {
	case 0:
		actual := Cost{9, r.Int64N(4000), r.Int64N(1000)}
		res.Settle(actual)
		b.move(negative, Cost{cost.Requests, actual.Input, actual.Output}, -1)
	case 1:
		res.Return()
		b.move(negative, Cost{}, -1)
	default:
		res.Keep()
		b.move(negative, cost, -1)
	}
	if r.IntN(3) == 0 { // again, and late
		time.Sleep(some())
		res.Settle(Cost{})
		res.Return()
		res.Keep()
	}
}

func TestLives(t *testing.T) {
	total := orQuick(*livesFlag, 4_000)
	dice := rand.New(rand.NewPCG(*seedFlag, 5))
	for lived := 0; lived < total; {
		synctest.Test(t, func(t *testing.T) {
			rates := []Rate{PerMinute(7_919), PerSecond(50_000), {119_000, 7 * time.Second}}
			limits := []Limit{
				{Name: "requests", Rate: rates[0], Burst: MaxUnits, Empty: true},
				{Name: "tokens", Unit: Tokens, Rate: rates[1], Burst: MaxUnits, Empty: true},
				{Name: "output", Unit: Output, Rate: rates[2], Burst: MaxUnits, Empty: true},
			}
			l := mustNew(t, Options{Limits: limits, MaxInFlight: 100, MaxWait: 20 * time.Second})
			b := &books{since: time.Now(), cur: rates, earned: []*big.Int{{}, {}, {}}}
			for range 40 {
				for range 50 {
					lived++
					r := rand.New(rand.NewPCG(dice.Uint64(), 6))
					time.AfterFunc(time.Duration(r.Int64N(int64(time.Second))), func() { b.live(t, l, r) })
				}
				time.Sleep(time.Duration(dice.Int64N(int64(time.Second))))
				b.check(t, l)
				if i := dice.IntN(3); dice.IntN(8) == 0 { // another rate, the window stays
					b.cur[i].N = b.cur[i].N*9/10 + dice.Int64N(b.cur[i].N/5)
					limits[i].Rate = b.cur[i]
					if err := l.SetLimit(limits[i]); err != nil {
						t.Fatal(err)
					}
				}
			}
			time.Sleep(time.Hour) // everybody has ended
			b.check(t, l)
			empty(t, l)
			if b.outstanding != (Cost{}) || b.inFlight != 0 {
				t.Fatalf("left behind: %+v, %d in flight", b.outstanding, b.inFlight)
			}
		})
	}
	t.Logf("%d lives", total)
}

// Thousands are open at once and end in any order; each end counts once, old
// handles stay dead when their entries are used again, and after the peak the
// memory is let go.
func TestTableAfterAPeak(t *testing.T) {
	l := mustNew(t, Options{Limits: []Limit{{Unit: Tokens, Rate: Rate{1, MaxWindow}, Burst: 1_000_000}}})
	dice := rand.New(rand.NewPCG(2, 3))
	var old []Reservation
	for range 3 {
		open := make([]Reservation, 5000)
		for i := range open {
			var err error
			if open[i], err = l.TryAcquire(Cost{Input: 1 + int64(i%7)}); err != nil {
				t.Fatal(err)
			}
		}
		dice.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
		for i, r := range open {
			for _, dead := range old[:min(len(old), 3)] {
				dead.Return()
			}
			if c := r.Cost(); c.Input == 0 {
				t.Fatalf("number %d is lost", i)
			}
			r.Return()
			r.Return()
			if c := r.Cost(); c != (Cost{}) {
				t.Fatalf("an ended one holds %v", c)
			}
			if s := l.Snapshot(); s.InFlight != len(open)-i-1 {
				t.Fatalf("%d ended of %d: %+v", i+1, len(open), s)
			}
		}
		old = open
		if c := l.Snapshot().Limits[0].Credit; c != 1_000_000 {
			t.Fatalf("credit %d", c)
		}
		if n := l.open.made; n != 0 {
			t.Errorf("%d entries are kept after the peak", n)
		}
	}
}

// A handle that somebody keeps after the peak holds the few entries that were
// made with its own, and not all that there were.
func TestOldHandleHoldsNoPeak(t *testing.T) {
	l := mustNew(t, Options{})
	open := make([]Reservation, 10_000)
	entries := make([]weak.Pointer[entry], len(open))
	for i := range open {
		r, err := l.TryAcquire(Cost{})
		if err != nil {
			t.Fatal(err)
		}
		open[i], entries[i] = r, weak.Make(r.by.(*entry))
	}
	for _, r := range open {
		r.Keep()
	}
	kept := open[len(open)/2]
	open = nil
	runtime.GC()
	left := 0
	for _, e := range entries {
		if e.Value() != nil {
			left++
		}
	}
	if left > 100 {
		t.Errorf("%d of %d entries are held by one old handle", left, len(entries))
	}
	kept.Return()
	empty(t, l)
}
