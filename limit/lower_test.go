package limit

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A provider is the other side of the wire, played straight: one bucket in
// grains, charged when a call arrives and given back to when a call ends. It
// tells what remained just after it admitted a call.
type provider struct {
	n, w, level, cap int64 // level in grains: w to a unit, n earned a nanosecond
	at               time.Time
	charged          int64 // units, of calls that have arrived
	givenBack        int64 // units
}

func newProvider(r Rate, burst int64) *provider {
	w := int64(r.Window)
	return &provider{r.N, w, burst * w, burst * w, time.Now(), 0, 0}
}

func (p *provider) advance() {
	now := time.Now()
	p.level = min(p.cap, p.level+p.n*int64(now.Sub(p.at)))
	p.at = now
}

func (p *provider) arrive(cost int64) (remaining int64) {
	p.advance()
	p.level -= cost * p.w
	p.charged += cost
	return floorDiv(p.level, p.w)
}

func (p *provider) end(back int64) {
	p.advance()
	p.level = min(p.cap, p.level+back*p.w)
	p.givenBack += back
}

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}

// Thousands of calls run against a straight simulation of the provider. Latencies
// are up to 250 ms on the way there, and answers come up to 20 s later and in any
// order. Headers are read twice, and others take from the same quota unseen.
//
// Credit never falls below what a correct reading implies. That is the provider's
// balance, less the calls on the way to it, less its refunds for calls that have
// not ended here yet. And lowering does its work: when the others have taken
// everything, credit here falls too.
func TestLowerModel(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { lowerModel(t, rand.New(rand.NewPCG(seed, 9)), seed%2 == 1) })
	}
}

func lowerModel(t *testing.T, dice *rand.Rand, others bool) {
	const burst = 20_000
	r := PerSecond(1_000)
	l := mustNew(t, Options{Limits: []Limit{{Name: "tokens", Unit: Tokens, Rate: r, Burst: burst}}})
	p := newProvider(r, burst)
	var sent, back int64 // units charged and given back here
	lowered, checks := 0, 0
	var mu sync.Mutex // one event at a time
	after := func(d time.Duration, do func()) {
		time.AfterFunc(d, func() { mu.Lock(); defer mu.Unlock(); do() })
	}
	check := func(when string) {
		t.Helper()
		p.advance()
		l.Snapshot()
		checks++
		// All in grains. Calls on the way were debited here and not there; refunds
		// that were given there and not here will be. A reading is in whole units,
		// rounded down.
		onTheWay, toCome := sent-p.charged, p.givenBack-back
		right := p.level - (onTheWay+toCome+1)*p.w
		l.mu.Lock()
		level := l.root.limits[0].level
		l.mu.Unlock()
		if level.less(mulSigned(right, 1)) {
			t.Errorf("%s: credit %v grains, a correct reading implies %d", when, level.big(), right)
		}
	}
	calls := 0
	step := func() {
		mu.Lock()
		defer mu.Unlock()
		cost := 1 + dice.Int64N(2000)
		res, err := l.TryAcquire(Cost{Requests: 1, Input: cost})
		if err != nil {
			return
		}
		calls++
		sent += cost
		back0 := min(cost, dice.Int64N(2*cost)) // half of the calls use all
		way := time.Duration(dice.Int64N(int64(250 * time.Millisecond)))
		work := time.Duration(dice.Int64N(int64(20 * time.Second)))
		twice := dice.IntN(4) == 0
		res.Sent()
		after(way, func() {
			remaining := p.arrive(cost)
			after(work, func() {
				for range 1 + map[bool]int{true: 1}[twice] {
					if res.Lower("tokens", remaining, Cost{}) {
						lowered++
					}
					check("lower")
				}
				after(work/10, func() {
					p.end(back0)
					check("end there")
					after(way, func() {
						res.Settle(Cost{Input: cost - back0})
						back += back0
						check("end here")
					})
				})
			})
		})
		if others && dice.IntN(8) == 0 { // somebody else, unseen
			p.advance()
			p.level -= 500 * p.w
		}
	}
	for range 3000 {
		step()
		time.Sleep(time.Duration(dice.Int64N(int64(50 * time.Millisecond))))
	}
	synctest.Wait()
	time.Sleep(time.Minute)
	mu.Lock()
	defer mu.Unlock()
	if calls < 300 || checks < 1000 {
		t.Errorf("only %d calls, %d checks", calls, checks)
	}
	if others && lowered == 0 {
		t.Error("nothing was ever lowered")
	}
	empty(t, l)
}

// One reading is carried forward exactly, in any order of arrival and however
// stale: bound = remaining + rate*(now-sent) - debits since + refunds since,
// where debits of the first 250 ms do not count.
func TestLowerLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Name: "tokens", Unit: Tokens, Rate: PerSecond(10), Burst: 1000}}})
		take := func(n int64) Reservation {
			t.Helper()
			r, err := l.TryAcquire(Cost{Input: n})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		credit := func() int64 { return l.Snapshot().Limits[0].Credit - l.Snapshot().Limits[0].Debt }
		a := take(100) // at 0, 900 left here
		if a.Lower("tokens", 0, Cost{}) {
			t.Error("lowered without Sent")
		}
		a.Sent()
		time.Sleep(250 * time.Millisecond)
		b := take(50) // at 250 ms: may be in a's reading
		b.Sent()
		time.Sleep(time.Nanosecond)
		c := take(30) // 1 ns later: cannot be
		time.Sleep(10*time.Second - 250*time.Millisecond - 1)
		c.Settle(Cost{Input: 10}) // 20 back
		if got := credit(); got != 900-50-30+100+20 {
			t.Fatalf("credit %d", got)
		}
		// at 10 s: 500 + 100 refilled - 30 + 20
		if !a.Lower("tokens", 500, Cost{}) || credit() != 590 {
			t.Fatalf("credit %d, want 590", credit())
		}
		if a.Lower("tokens", 500, Cost{}) || a.Lower("tokens", 501, Cost{}) {
			t.Error("the same reading lowered twice, or a higher one did")
		}
		// b's answer comes after a's, and is older news: 700 + 97.5 - 30 + 20,
		// its debits before and in its first 250 ms not counted. No effect.
		if b.Lower("tokens", 700, Cost{}) || credit() != 590 {
			t.Errorf("credit %d after stale news", credit())
		}
		// A refused attempt still holds its own cost, which was not charged there.
		if !a.Lower("tokens", 500, Cost{Input: 100}) || credit() != 490 {
			t.Errorf("credit %d, want 490", credit())
		}
		for name, lowered := range map[string]bool{
			"unknown limit": a.Lower("requests", 0, Cost{}),
			"ended":         c.Lower("tokens", -1000, Cost{}),
			"zero":          Reservation{}.Lower("tokens", -1000, Cost{}),
			"zero sent":     func() bool { Reservation{}.Sent(); c.Sent(); return c.Lower("tokens", -1000, Cost{}) }(),
		} {
			if lowered || credit() != 490 {
				t.Errorf("%s: lowered", name)
			}
		}
		// A loan against time: refill goes on, and it expires by itself.
		time.Sleep(51 * time.Second)
		if got := credit(); got != 1000 {
			t.Errorf("credit %d", got)
		}
	})
}

// What an attempt holds is bounded count by count: two that are negative do not
// wrap to a great deal, and one does not eat up the other.
func TestLowerBoundsWhatIsHeld(t *testing.T) {
	for _, own := range []Cost{{}, {Input: math.MinInt64, Output: -10}, {Input: -1, Output: math.MinInt64}, {Requests: -5, Input: -5}} {
		l := mustNew(t, Options{Limits: []Limit{{Name: "tokens", Unit: Tokens, Rate: Rate{1, MaxWindow}, Burst: 1000}}})
		r, err := l.TryAcquire(Cost{Input: 100})
		if err != nil {
			t.Fatal(err)
		}
		r.Sent()
		if r.Lower("tokens", 2000, own) || !r.Lower("tokens", 700, own) {
			t.Errorf("holding %v: %+v", own, l.Snapshot().Limits)
		}
		if !r.Lower("tokens", 700, Cost{Input: math.MinInt64, Output: 50}) || l.Snapshot().Limits[0].Credit != 650 {
			t.Errorf("holding 50 of output: %+v", l.Snapshot().Limits)
		}
	}
}

// A waiter whose turn comes in the midst of it, and takes an entry, does not
// lose the mark.
func TestMarkOutlivesAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Name: "tokens", Unit: Tokens, Rate: PerSecond(1), Burst: 100}}})
		for range 40 {
			r, err := l.TryAcquire(Cost{Input: 1})
			if err != nil {
				t.Fatal(err)
			}
			ticket, err := l.Reserve(Cost{Input: 100})
			if err != nil {
				t.Fatal(err)
			}
			l.mu.Lock()
			l.timer.Stop() // as late as a timer can be
			l.mu.Unlock()
			time.Sleep(time.Hour)
			r.Sent() // here the waiter goes, and more entries may be made
			if !r.Lower("tokens", -1000, Cost{}) {
				t.Fatal("the mark was lost")
			}
			if _, err := ticket.Take(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
	})
}

// Readings commute: credit ends the same in any order of the answers, because each
// carries its own instant and sums.
func TestLowerCommutes(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 1))
	var want wide
	order := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for round := range 200 {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, Options{Limits: []Limit{{Name: "tokens", Unit: Tokens, Rate: PerMinute(7_919), Burst: 10_000}}})
			var calls []Reservation
			for i := range order {
				r, err := l.TryAcquire(Cost{Input: int64(100 * (i + 1))})
				if err != nil {
					t.Fatal(err)
				}
				r.Sent()
				calls = append(calls, r)
				time.Sleep(100 * time.Millisecond)
			}
			for _, i := range order {
				calls[i].Lower("tokens", int64(3000-137*i), Cost{})
			}
			if level := l.root.limits[0].level; round == 0 {
				want = level
			} else if level != want {
				t.Errorf("order %v: level %v, want %v", order, level.big(), want.big())
			}
		})
		order = slices.Clone(order)
		dice.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
}

// Two rules that look right and are not, each shown wrong by a counter-example. We
// are alone and within the quota of 60 tokens a second. So the provider always has
// what we ask for, and nothing ought to be lowered at all.
func TestWrongRules(t *testing.T) {
	type rule func(l *Limiter, r Reservation, remaining, inFlight int64)
	sums := func(_ *Limiter, r Reservation, remaining, _ int64) { r.Lower("tokens", remaining, Cost{}) }
	set := func(l *Limiter, level int64) {
		l.mu.Lock()
		defer l.mu.Unlock()
		b := &l.root.limits[0]
		b.advance(l.now())
		b.lower(mulSigned(level, b.w))
	}
	const span = 599 * time.Second

	// How many calls go in ten minutes, when every answer takes that long and
	// its header is read by that rule.
	run := func(t *testing.T, cost, burst int64, maxInFlight int, work time.Duration, apply rule) (calls int) {
		synctest.Test(t, func(t *testing.T) {
			r := PerSecond(60)
			l := mustNew(t, Options{Limits: []Limit{{Name: "tokens", Unit: Tokens, Rate: r, Burst: burst}}, MaxInFlight: maxInFlight})
			p := newProvider(r, burst)
			var inFlight atomic.Int64
			ctx, cancel := context.WithTimeout(context.Background(), span)
			defer cancel()
			for {
				res, err := l.Acquire(ctx, Cost{Input: cost})
				if err != nil {
					break
				}
				calls++
				inFlight.Add(cost)
				res.Sent()
				remaining := p.arrive(cost)
				if remaining < 0 {
					t.Fatalf("call %d would be refused there", calls)
				}
				time.AfterFunc(work, func() {
					apply(l, res, remaining, inFlight.Add(-cost))
					res.Keep()
				})
			}
			time.Sleep(work)
		})
		return calls
	}

	for _, c := range []struct {
		name        string
		cost, burst int64
		maxInFlight int
		work        time.Duration
		rule        rule
		right       int // calls by the sums
		most        int // calls by the wrong rule, at most
	}{
		// One call at a time takes the whole burst. While it ran, all of that came
		// back; the rule throws it away, and every second 20 s are lost.
		{"min(level, remaining)", 1200, 1200, 1, 20 * time.Second, func(l *Limiter, _ Reservation, remaining, _ int64) { set(l, remaining) }, 30, 16},
		// Eighty calls in flight were all charged on arrival, so the reading has
		// them already. The rule pays for them again, and lets half of them in.
		{"remaining less in flight", 60, 1200, 0, 80 * time.Second, func(l *Limiter, _ Reservation, remaining, inFlight int64) { set(l, remaining-inFlight) }, 619, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := run(t, c.cost, c.burst, c.maxInFlight, c.work, sums); got != c.right {
				t.Errorf("by the sums %d calls go, want %d", got, c.right)
			}
			if got := run(t, c.cost, c.burst, c.maxInFlight, c.work, c.rule); got > c.most || got == 0 {
				t.Errorf("by the wrong rule %d calls go: the example shows nothing", got)
			} else {
				t.Logf("%d calls of %d", got, c.right)
			}
		})
	}
}

// A journal is what goroutines noted, in order.
type journal struct {
	mu   sync.Mutex
	when []time.Duration
}

func (j *journal) add(d time.Duration) {
	j.mu.Lock()
	j.when = append(j.when, d)
	j.mu.Unlock()
}

func (j *journal) read() []time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.when)
}

// Drain: at the end of the wait there is what the refused call needs, and
// nothing beyond.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{
			{Name: "tokens", Unit: Tokens, Rate: PerSecond(10), Burst: 1000},
			{Name: "requests", Rate: PerSecond(1), Burst: 10},
		}})
		drain := func(keep int64, d time.Duration, fell bool, want int64) {
			t.Helper()
			if got := l.Drain("tokens", keep, d); got != fell {
				t.Errorf("fell: %v", got)
			}
			s := l.Snapshot()
			if got := s.Limits[0].Credit - s.Limits[0].Debt; got != want {
				t.Errorf("credit %d, want %d", got, want)
			}
			if s.Limits[1].Credit != 10 {
				t.Errorf("the other limit fell too: %+v", s)
			}
		}
		drain(40, 6*time.Second, true, -20)  // 40 in 6 s
		drain(0, 6*time.Second, true, -60)   // nothing in 6 s
		drain(0, 5*time.Second, false, -60)  // shorter
		drain(10, 6*time.Second, false, -60) // more
		drain(100, 16*time.Second, false, -60)
		if l.Drain("nobody", 0, time.Hour) {
			t.Error("an unknown limit was drained")
		}
		time.Sleep(6 * time.Second)
		drain(0, 0, false, 0)
		time.Sleep(time.Second)
		drain(3, 0, true, 3)
		drain(-5, -time.Hour, true, 0) // nothing, now
	})
}

// Many calls are refused at once. They give back their cost and drain, in any
// order. In the end the credit is no more than the last of them needs.
func TestDrainManyAtOnce(t *testing.T) {
	const n, cost, wait = 20, 50, 10 * time.Second
	for name, order := range map[string]func(give, drain func(int)){
		"one by one": func(give, drain func(int)) {
			for i := range n {
				give(i)
				drain(i)
			}
		},
		"all together": func(give, drain func(int)) {
			for i := range n {
				give(i)
			}
			for i := range n {
				drain(i)
			}
		},
		"in pairs": func(give, drain func(int)) {
			for i := range n {
				give(i)
				drain(i ^ 1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := mustNew(t, Options{Limits: []Limit{{Name: "tokens", Unit: Tokens, Rate: PerSecond(10), Burst: n * cost}}})
				var held [n]Reservation
				for i := range held {
					held[i], _ = l.TryAcquire(Cost{Requests: 1, Input: cost})
				}
				l.Pause(wait)
				order(func(i int) { held[i].Settle(Cost{}) }, func(int) { l.Drain("tokens", cost, wait) })
				time.Sleep(wait)
				if c := l.Snapshot().Limits[0].Credit; c > cost {
					t.Errorf("%d are there when it opens, for a call of %d", c, cost)
				}
			})
		})
	}
}

// The refused call gives back its tokens and its place and waits. It is charged
// again at the head of the line, just when the wait is over, and everybody else
// starts from nothing.
func TestRefusedCallComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{
			{Name: "rps", Rate: PerSecond(1), Burst: 5},
			{Name: "tokens", Unit: Tokens, Rate: PerSecond(10), Burst: 1000},
		}, MaxInFlight: 1})
		ctx := context.Background()
		start := time.Now()
		refused, err := l.Acquire(ctx, Cost{Requests: 1, Input: 500})
		if err != nil {
			t.Fatal(err)
		}
		var went journal
		for range 3 {
			go func() {
				r, err := l.Acquire(ctx, Cost{Requests: 1, Input: 20})
				if err != nil {
					t.Error(err)
				}
				went.add(time.Since(start))
				r.Keep()
			}()
		}
		synctest.Wait()
		const wait = 10 * time.Second
		l.Pause(wait)
		refused.Settle(Cost{})
		l.Drain("tokens", 500, wait)
		again, err := l.AcquireFirst(ctx, Cost{Requests: 1, Input: 500})
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != wait {
			t.Errorf("the refused call went at %v", d)
		}
		again.Keep()
		time.Sleep(time.Minute)
		for i, d := range went.read() { // 20 tokens are two seconds
			if want := wait + time.Duration(i+1)*2*time.Second; d != want {
				t.Errorf("caller %d went at %v, want %v", i, d, want)
			}
		}
		empty(t, l)
	})
}

// Pause: nothing leaves before it ends; the later of two wins, a shorter one
// never shortens; and when it opens the line moves at the refill rate.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{
			{Name: "rps", Rate: PerSecond(10), Burst: 10},
			{Name: "daily", Rate: PerDay(1000)},
		}})
		start := time.Now()
		l.Pause(10 * time.Second)
		l.Pause(5 * time.Second)
		l.Pause(0)
		l.Pause(-time.Hour)
		if until := l.Snapshot().PausedUntil.Sub(start); until != 10*time.Second {
			t.Fatalf("paused until %v", until)
		}
		var e *Error
		if _, err := l.TryAcquire(Cost{}); !errors.Is(err, ErrLimited) || !errors.As(err, &e) || e.Dimension != "pause" || e.Wait != 10*time.Second {
			t.Errorf("%v", err)
		}
		var went journal
		for range 25 {
			go func() {
				if err := l.Wait(context.Background(), Cost{Requests: 1}); err != nil {
					t.Error(err)
				}
				went.add(time.Since(start))
			}()
			synctest.Wait()
		}
		time.Sleep(3 * time.Second)
		l.Pause(9 * time.Second) // until 12 s: later, so it wins
		time.Sleep(time.Minute)
		if n := len(went.read()); n != 25 {
			t.Fatalf("%d went", n)
		}
		for i, d := range went.read() {
			if want := 12*time.Second + time.Duration(i)*100*time.Millisecond; d != want {
				t.Errorf("caller %d went at %v, want %v", i, d, want)
			}
		}
		if s := l.Snapshot(); !s.PausedUntil.IsZero() || s.Limits[1].Credit != 1000-25 {
			t.Errorf("%+v", s) // the day's allowance was not emptied by a pause of seconds
		}
		empty(t, l)
	})
}

// A rate that changes while everybody is held does not change the credit at the end
// of the hold. A faster rate makes no herd, and a slower one no lock-out. A
// lock-out would come from paying off, at the slower pace, what was set back at the
// old one's.
func TestRateChangesWhileHeld(t *testing.T) {
	for _, hold := range []struct {
		name string
		do   func(l *Limiter)
		want int64
	}{
		{"pause", func(l *Limiter) { l.Pause(30 * time.Second) }, 0},
		{"drain", func(l *Limiter) { l.Drain("tokens", 7, 30*time.Second) }, 7},
	} {
		for _, to := range []Rate{PerSecond(100), PerSecond(10), PerSecond(1), PerSecond(1000), PerMinute(6000), PerMinute(60)} {
			synctest.Test(t, func(t *testing.T) {
				l := mustNew(t, Options{Limits: []Limit{{Name: "tokens", Unit: Tokens, Rate: PerSecond(100), Burst: 50}}})
				credit := func() int64 { s := l.Snapshot().Limits[0]; return s.Credit - s.Debt }
				set := func(r Rate) {
					t.Helper()
					if err := l.SetLimit(Limit{Name: "tokens", Unit: Tokens, Rate: r, Burst: 50}); err != nil {
						t.Fatal(err)
					}
				}
				hold.do(l)
				time.Sleep(10 * time.Second)
				set(to)
				time.Sleep(20 * time.Second)
				if got := credit(); got != hold.want {
					t.Errorf("%s, then %v: credit %d when it ends, want %d", hold.name, to, got, hold.want)
				}
				set(PerSecond(100)) // over: credit is kept
				if got := credit(); got != hold.want {
					t.Errorf("%s, %v, over, then the old rate: credit %d, want %d", hold.name, to, got, hold.want)
				}
			})
		}
		synctest.Test(t, func(t *testing.T) { // credit that came back meanwhile is not raised
			l := mustNew(t, Options{Limits: []Limit{{Name: "tokens", Unit: Tokens, Rate: PerSecond(1), Burst: 50}}})
			r, _ := l.TryAcquire(Cost{Input: 50})
			hold.do(l)
			r.Return()
			before := l.Snapshot().Limits[0]
			l.SetLimit(Limit{Name: "tokens", Unit: Tokens, Rate: PerHour(1), Burst: 50})
			if after := l.Snapshot().Limits[0]; before.Credit <= 0 || after.Credit != before.Credit {
				t.Errorf("%s: credit %d, then %d", hold.name, before.Credit, after.Credit)
			}
		})
	}
}

// Debt that is not of the hold's making stays under a slower rate: that of a call
// which cost more than its estimate, and that which the other side tells of.
func TestHeldDebtIsNotForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Name: "tokens", Unit: Tokens, Rate: PerSecond(100), Burst: 50}}})
		debt := func() int64 { return l.Snapshot().Limits[0].Debt }
		slower := Limit{Name: "tokens", Unit: Tokens, Rate: PerSecond(1), Burst: 50}
		a, _ := l.TryAcquire(Cost{Input: 25})
		b, _ := l.TryAcquire(Cost{Input: 25})
		a.Settle(Cost{Input: 525})
		l.Pause(30 * time.Second) // 3000 back, where 500 were owed
		if err := l.SetLimit(slower); err != nil || debt() != 500 {
			t.Errorf("debt %d, want 500 (%v)", debt(), err)
		}
		b.Sent()
		l.Drain("tokens", 0, time.Hour) // 3600 back
		slower.Rate = PerHour(1)
		if b.Lower("tokens", -700, Cost{}) || l.SetLimit(slower) != nil || debt() != 700 {
			t.Errorf("debt %d, want 700", debt())
		}
		slower.Rate = PerSecond(1)
		l.SetLimit(slower)
		if !b.Lower("tokens", -5000, Cost{}) {
			t.Error("not lowered")
		}
		slower.Rate = PerHour(1)
		if l.SetLimit(slower) != nil || debt() != 5000 {
			t.Errorf("debt %d, want 5000", debt())
		}
	})
}

// The list of young marks holds those of open reservations, and no mark that is
// older than 250 ms once something has been debited since.
func TestYoungMarks(t *testing.T) {
	count := func(l *Limiter) (n int) {
		var before *entry
		for e := l.young.oldest; e != nil; e = e.mark.newer {
			if e.seq == 0 || !e.mark.young || e.mark.older != before {
				t.Fatalf("entry %d of the list: %+v", n, e)
			}
			before = e
			n++
		}
		if l.young.newest != before {
			t.Fatal("the list does not end with its newest")
		}
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{})
		var open []Reservation
		for i := range 10_000 {
			r, _ := l.TryAcquire(Cost{Input: 1})
			r.Sent()
			switch i % 3 {
			case 0:
				r.Keep()
			case 1:
				r.Sent()
				open = append(open, r)
			case 2:
				open = append(open, r)
			}
			if n := count(l); n > 251 {
				t.Fatalf("%d marks are young of 250", n)
			}
			time.Sleep(time.Millisecond)
		}
		if n := count(l); n != 167 {
			t.Errorf("%d marks are young, of 167 sent in the last 250 ms and open", n)
		}
		for _, i := range rand.Perm(len(open)) {
			open[i].Keep()
		}
		if n := count(l); n != 0 {
			t.Errorf("%d marks are young of what has ended", n)
		}
		r, _ := l.TryAcquire(Cost{Input: 1})
		r.Sent()
		time.Sleep(time.Second)
		l.Allow(Cost{})
		if n := count(l); n != 0 {
			t.Errorf("%d marks are young when all is quiet", n)
		}
		r.Keep()
	})
}
