package limit

import (
	"context"
	"errors"
	"math"
	"math/big"
	"testing"
	"testing/synctest"
	"time"
)

// The bounds in the package documentation, at the corners: N of 1 and 10^12,
// windows of 1 ms and 366 days, bursts of 1 and 10^12, instants up to 2^63-1,
// debts down to the floor. Every answer is the oracle's.
func TestBounds(t *testing.T) {
	corners := 0
	for _, n := range []int64{1, 2, MaxUnits - 1, MaxUnits} {
		for _, w := range []time.Duration{MinWindow, MinWindow + 1, time.Minute, MaxWindow - 1, MaxWindow} {
			for _, burst := range []int64{1, 2, MaxUnits - 1, MaxUnits} {
				for _, at := range []int64{0, 1, 1 << 32, math.MaxInt64 - 1, math.MaxInt64} {
					corners++
					r := Rate{n, w}
					b, err := NewBucket(r, burst)
					if err != nil {
						t.Fatal(err)
					}
					g, err := NewGCRA(r, burst)
					if err != nil {
						t.Fatal(err)
					}
					x := &bucketTrial{t: t, o: newOracle(r, burst, burst), b: b, g: g, burst: burst}
					x.take(0, burst)
					x.compare("the first take")
					for _, cost := range []int64{1, burst, 0} {
						x.take(at, cost)
						x.compare("take")
					}
					for range 3 {
						b.Charge(time.Duration(at), MaxUnits)
						g.Charge(time.Duration(at), MaxUnits)
						x.o.add(-MaxUnits)
						x.compare("charge")
						x.take(at, burst)
					}
					// To the floor, which three thousand million charges would
					// reach in the longest window, and no number in the others.
					b.level = floor.add(wide{0, 1})
					g.tat = g.clock().add(g.tau).sub(b.level)
					x.o.level = new(big.Rat).SetFrac(b.level.big(), big.NewInt(int64(w)))
					x.compare("near the floor")
					x.take(at, burst)
					for range 2 {
						b.Charge(time.Duration(at), MaxUnits)
						g.Charge(time.Duration(at), MaxUnits)
						x.o.add(-MaxUnits)
						x.compare("at the floor")
					}
					b.Lower(time.Duration(at), -math.MaxInt64)
					g.Lower(time.Duration(at), -math.MaxInt64)
					x.compare("lower, above it")
					x.take(at, burst)
					x.take(math.MaxInt64, burst)
					x.compare("the end of time")
					for _, other := range []Rate{{1, MinWindow}, {MaxUnits, MaxWindow}} {
						if err := errors.Join(b.SetRate(math.MaxInt64, other, MaxUnits), g.SetRate(math.MaxInt64, other, MaxUnits)); err != nil {
							t.Fatal(err)
						}
						x.o.setRate(other, MaxUnits, MaxUnits)
						x.compare("another window")
					}
					b.Return(MaxUnits)
					g.Return(MaxUnits)
					x.o.add(MaxUnits)
					x.compare("return")
				}
			}
		}
	}
	if corners != 4*5*4*5 {
		t.Fatalf("%d corners", corners)
	}
}

// The derivation of the package documentation, in numbers.
func TestOverflowDerivation(t *testing.T) {
	bits := func(x *big.Int) int { return x.BitLen() }
	mul := func(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }
	unit, window, clock := int64(MaxUnits), int64(MaxWindow), int64(math.MaxInt64)
	for what, c := range map[string]struct{ got, want int }{
		"MaxUnits":                        {bits(big.NewInt(unit)), 40},
		"MaxWindow":                       {bits(big.NewInt(window)), 55},
		"a burst or a cost, grains":       {bits(mul(unit, window)), 95},
		"earned over all time, grains":    {bits(mul(unit, clock)), 103},
		"both parts of the line, units":   {bits(mul(2*(unit+1), hardQueue)), 63},
		"the line's cost, grains":         {bits(new(big.Int).Mul(mul(2*(unit+1), hardQueue), big.NewInt(window))), 118},
		"the sums of Lower, grains":       {bits(mul(clock, window)), 118},
		"the floor":                       {bits(floor.big()), 127}, // 2^126 is the first with 127
		"a rescaled remainder, grains":    {bits(mul(window, window)), 110},
		"the floor in the longest window": {bits(new(big.Int).Div(floor.big(), big.NewInt(window))), 72},
	} {
		if c.got > c.want {
			t.Errorf("%s: %d bits, the documentation says %d", what, c.got, c.want)
		}
	}
	if 2*(unit+1) > clock/hardQueue {
		t.Error("the sum of a full line overflows")
	}
}

// A limiter at the corners: nothing wraps, nothing hangs, nothing is refused
// that could go.
func TestLimiterAtTheBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, w := range []time.Duration{MinWindow, MaxWindow} {
			for _, n := range []int64{1, MaxUnits} {
				l := mustNew(t, Options{
					Limits:  []Limit{{Name: "x", Unit: Tokens, Rate: Rate{n, w}, Burst: MaxUnits}},
					MaxWait: math.MaxInt64, MaxInFlight: math.MaxInt, MaxQueue: hardQueue,
				})
				r, err := l.TryAcquire(Cost{Input: MaxUnits})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := l.TryAcquire(Cost{Input: MaxUnits, Output: 1}); !errors.Is(err, ErrTooLarge) {
					t.Error(err)
				}
				if _, err := l.TryAcquire(Cost{Input: math.MaxInt64, Output: math.MaxInt64}); !errors.Is(err, ErrTooLarge) {
					t.Error(err)
				}
				if _, err := l.TryAcquire(Cost{Input: math.MinInt64, Output: math.MinInt64}); !errors.Is(err, ErrInvalid) {
					t.Error(err)
				}
				r.Sent()
				r.Lower("x", math.MinInt64, Cost{math.MaxInt64, math.MaxInt64, math.MaxInt64})
				r.Settle(Cost{Input: math.MaxInt64, Output: math.MaxInt64})
				l.Drain("x", math.MaxInt64, math.MaxInt64)
				l.Drain("x", math.MinInt64, math.MaxInt64)
				l.Pause(math.MaxInt64)
				l.Pause(math.MinInt64)
				var e *Error
				if _, err := l.TryAcquire(Cost{Input: 1}); !errors.As(err, &e) || e.Wait < 0 {
					t.Error(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				if err := l.Wait(ctx, Cost{Input: 1}); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
				if s := l.Snapshot(); s.Limits[0].Credit != 0 || s.Limits[0].Debt < MaxUnits {
					t.Errorf("%+v", s)
				}
				if err := l.SetLimit(Limit{Name: "x", Unit: Tokens, Rate: Rate{1, MinWindow}, Burst: 1}); err != nil {
					t.Error(err)
				}
				empty(t, l)
			}
		}
	})
}

// The longest Duration stands for a wait that no Duration can hold. A wait of zero
// would make a caller ask again in a loop.
func TestWaitBeyondTelling(t *testing.T) {
	l := mustNew(t, Options{Limits: []Limit{{Name: "x", Rate: Rate{1, MaxWindow}, Burst: 1000}}}) // one a year
	if !l.Allow(Cost{Requests: 1000}) {
		t.Fatal("not full")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	_, late := l.Acquire(ctx, Cost{Requests: 1000})
	_, limited := l.TryAcquire(Cost{Requests: 1000})
	for reason, err := range map[error]error{ErrWaitTooLong: late, ErrLimited: limited} {
		var e *Error
		if !errors.Is(err, reason) || !errors.As(err, &e) || e.Wait != math.MaxInt64 || e.Dimension != "x" ||
			e.Earliest.Before(time.Now().Add(291*365*24*time.Hour)) {
			t.Errorf("%+v", err)
		}
	}
}

// The line holds its sums at the largest costs, however long it is.
func TestLineSumAtTheBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Name: "x", Unit: Tokens, Rate: Rate{1, MaxWindow}, Burst: MaxUnits, Empty: true}}})
		const n = 1000
		for range n {
			if _, err := l.Reserve(Cost{Input: MaxUnits}); err != nil {
				t.Fatal(err)
			}
		}
		if got := l.Snapshot().Limits[0].Waiting; got != n*MaxUnits {
			t.Errorf("%d units wait", got)
		}
		// As if four million stood there: the bound holds and the sum is right.
		l.mu.Lock()
		l.waiting = hardQueue
		w := want{tenant: &l.root, place: true}
		w.price(Cost{Input: MaxUnits}, Cost{})
		k := l.laneOf(&w)
		k.likely = Cost{Input: hardQueue * (MaxUnits + 1), Output: hardQueue * (MaxUnits + 1)}
		k.flow.likely = k.likely
		o := l.estimate(&w, k, l.now(), false)
		_, err := l.join(&w, k, &stop{}, l.now(), time.Time{})
		l.mu.Unlock()
		if o.at != math.MaxInt64 || o.b == nil {
			t.Errorf("at %d", o.at)
		}
		if !errors.Is(err, ErrQueueFull) {
			t.Error(err)
		}
	})
}

// Thirty simulated days of polling: not a nanosecond of drift. Each poll takes
// what there is; in the end it is what the rate earned, to the unit.
func TestThirtyDaysOfPolling(t *testing.T) {
	const days = 30 * 24 * time.Hour
	for _, c := range []struct {
		rate  Rate
		every time.Duration
	}{
		{PerMinute(7), 7_919_000_033},
		{PerMinute(500), 999_999_937},
		{PerMinute(7_919), 5_000_000_001},
		{PerMinute(119_000), 10_000_000_007},
		{PerMinute(180_000_000), 7_777_777_777},
		{PerDay(1_000_000_000_000), 3_600_000_000_001},
		{PerHour(1), 9_999_999_937},
	} {
		b, err := NewBucket(c.rate, MaxUnits)
		if err != nil {
			t.Fatal(err)
		}
		b.Charge(0, MaxUnits) // it starts empty
		var taken int64
		var at time.Duration
		for ; at <= days; at += c.every {
			b.advance(int64(at))
			if credit := b.Credit(); credit > 0 {
				if wait, err := b.Take(at, credit); wait != 0 || err != nil {
					t.Fatal(wait, err)
				}
				taken += credit
			}
		}
		at -= c.every
		want := new(big.Int).Mul(big.NewInt(c.rate.N), big.NewInt(int64(at)))
		left := new(big.Int)
		want.DivMod(want, big.NewInt(int64(c.rate.Window)), left)
		if taken != want.Int64() || b.level.big().Cmp(left) != 0 {
			t.Errorf("%v polled every %v: took %d with %v grains left, want %v and %v", c.rate, c.every, taken, b.level.big(), want, left)
		}
	}
}

// The same by steady demand: one unit is taken at each named instant, for a month.
// The k-th goes at exactly ceil(k*W/N), and never a nanosecond before. With a burst
// of 1 a full bucket has no room for the part of a nanosecond that a unit ends in.
// There the k-th goes at exactly k*ceil(W/N).
func TestNamedInstantsForAMonth(t *testing.T) {
	for _, r := range []Rate{PerMinute(7), PerDay(7_919), {119, 13 * time.Minute}} {
		for _, burst := range []int64{1, 2} {
			b, _ := NewBucket(r, burst)
			g, _ := NewGCRA(r, burst)
			b.Charge(0, burst)
			g.Charge(0, burst)
			now := time.Duration(0)
			for k := int64(1); now < 30*24*time.Hour; k++ {
				wait, _ := b.Take(now, 1)
				if other, _ := g.Take(now, 1); other != wait || wait <= 0 {
					t.Fatalf("%v: waits %d and %d", r, wait, other)
				}
				now += wait
				up := func(x *big.Int) int64 {
					return x.Add(x, big.NewInt(r.N-1)).Div(x, big.NewInt(r.N)).Int64()
				}
				want := up(new(big.Int).Mul(big.NewInt(k), big.NewInt(int64(r.Window))))
				if burst == 1 {
					want = k * up(big.NewInt(int64(r.Window)))
				}
				if int64(now) != want {
					t.Fatalf("%v burst %d: unit %d at %d, want %d", r, burst, k, now, want)
				}
				for _, f := range []form{b, g} {
					if wait, _ := f.Take(now-1, 1); wait != 1 {
						t.Fatalf("%v: unit %d, 1 ns early: wait %d", r, k, wait)
					}
					if wait, _ := f.Take(now, 1); wait != 0 {
						t.Fatalf("%v: unit %d refused at its instant: wait %d", r, k, wait)
					}
				}
			}
		}
	}
}

// Strict pacing: with a burst of 1 no two units are closer than the rate says,
// however long the limit idled before.
func TestStrictPacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, Options{Limits: []Limit{{Rate: PerMinute(7), Burst: 1}}})
		time.Sleep(time.Hour)
		var last time.Time
		for i := range 100 {
			if err := l.Wait(context.Background(), Cost{Requests: 1}); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(last); i > 0 && d < time.Minute/7 {
				t.Fatalf("unit %d only %v after the last", i, d)
			}
			last = time.Now()
		}
	})
}
