package limit_test

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

func newModel(t testing.TB, capacity, rate int64) *limit.Bucket {
	t.Helper()
	b, err := limit.NewBucket(limit.PerSecond(rate), capacity)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const ms = time.Millisecond

// milli is the credit at an instant in thousandths of a unit. It asks the bucket
// how long the whole capacity would have to wait. Nothing is spent: capacity is
// either there, and then credit is full, or refused.
func milli(t testing.TB, b *limit.Bucket, at time.Duration, capacity, rate int64) int64 {
	t.Helper()
	probe := *b
	wait, err := probe.Take(at, capacity)
	if err != nil {
		t.Fatal(err)
	}
	// Missing milliunits are wait*rate/1e6; a wait is rounded up by less than
	// a nanosecond, which is rate/1e6 of a milliunit, so dividing down is exact.
	return capacity*1000 - int64(wait)*rate/1_000_000
}

// The first table: capacity 3, rate 2, full.
func TestTableOfCapacityThreeAndRateTwo(t *testing.T) {
	b := newModel(t, 3, 2)
	for _, row := range []struct {
		at, cost  int64
		accepted  bool
		remaining int64 // milliunits
		retry     int64 // ms
	}{
		{0, 2, true, 1000, 0},
		{0, 2, false, 1000, 500},
		{499, 2, false, 1998, 1},
		{500, 2, true, 0, 0},
		{750, 1, false, 500, 250},
		{1000, 1, true, 0, 0},
	} {
		at := time.Duration(row.at) * ms
		wait, err := b.Take(at, row.cost)
		if err != nil || (wait == 0) != row.accepted || wait != time.Duration(row.retry)*ms {
			t.Errorf("t %d cost %d: wait %v, %v; want %d ms", row.at, row.cost, wait, err, row.retry)
		}
		if got := milli(t, b, at, 3, 2); got != row.remaining {
			t.Errorf("t %d cost %d: %d milliunits remain, want %d", row.at, row.cost, got, row.remaining)
		}
	}
}

// The second: capacity 2, rate 3, drained at 0.
func TestTableOfCapacityTwoAndRateThree(t *testing.T) {
	b := newModel(t, 2, 3)
	if wait, err := b.Take(0, 2); wait != 0 || err != nil {
		t.Fatal(wait, err)
	}
	for _, row := range []struct {
		at        int64
		accepted  bool
		remaining int64
		retry     int64
	}{
		{0, false, 0, 334},
		{333, false, 999, 1},
		{334, true, 2, 0},
	} {
		at := time.Duration(row.at) * ms
		wait, err := b.Take(at, 1)
		retry := int64((wait + ms - 1) / ms) // in the model's whole milliseconds, up
		if err != nil || (wait == 0) != row.accepted || retry != row.retry {
			t.Errorf("t %d: wait %v, %v; want %d ms", row.at, wait, err, row.retry)
		}
		if got := milli(t, b, at, 2, 3); got != row.remaining {
			t.Errorf("t %d: %d milliunits remain, want %d", row.at, got, row.remaining)
		}
	}
	// To the nanosecond it is 333,333,334 after the drain.
	b = newModel(t, 2, 3)
	b.Take(0, 2)
	if wait, _ := b.Take(0, 1); wait != 333_333_334 {
		t.Errorf("wait %d", wait)
	}
	if wait, _ := b.Take(333_333_333, 1); wait != 1 {
		t.Errorf("1 ns early: wait %d", wait)
	}
	if wait, _ := b.Take(333_333_334, 1); wait != 0 {
		t.Errorf("at the named instant: wait %d", wait)
	}
}

func take(t testing.TB, b *limit.Bucket, atMs, cost int64) (wait int64) {
	t.Helper()
	w, err := b.Take(time.Duration(atMs)*ms, cost)
	if err != nil {
		t.Fatalf("t %d cost %d: %v", atMs, cost, err)
	}
	return int64((w + ms - 1) / ms)
}

// A burst of unit requests at t 0 admits the capacity, not the rate.
func TestBurstAdmitsTheCapacityNotTheRate(t *testing.T) {
	for capacity := int64(1); capacity <= 4; capacity++ {
		b := newModel(t, capacity, 4)
		n := int64(0)
		for range 10 {
			if take(t, b, 0, 1) == 0 {
				n++
			}
		}
		if n != capacity {
			t.Errorf("capacity %d admitted %d", capacity, n)
		}
	}
}

// After 1,000,000 ms idle a cost of 3 passes, and the next unit waits 500 ms.
func TestLongIdlingEarnsOneBurst(t *testing.T) {
	b := newModel(t, 3, 2)
	take(t, b, 0, 3)
	if wait := take(t, b, 1_000_000, 3); wait != 0 {
		t.Errorf("wait %d", wait)
	}
	if wait := take(t, b, 1_000_000, 1); wait != 500 {
		t.Errorf("wait %d, want 500", wait)
	}
}

// Refusals at 100 and 200 after draining 3 leave 200 and 400 milliunits and are
// never charged.
func TestRefusalsAreNeverCharged(t *testing.T) {
	b := newModel(t, 3, 2)
	take(t, b, 0, 3)
	for at, want := range map[int64]int64{100: 200, 200: 400} {
		b := *b
		if wait := take(t, &b, at, 1); wait == 0 {
			t.Errorf("t %d: admitted", at)
		}
		if got := milli(t, &b, time.Duration(at)*ms, 3, 2); got != want {
			t.Errorf("t %d: %d milliunits, want %d", at, got, want)
		}
	}
	take(t, b, 100, 1)
	take(t, b, 200, 1)
	if got := milli(t, b, 200*ms, 3, 2); got != 400 {
		t.Errorf("%d milliunits after two refusals, want 400", got)
	}
	if wait := take(t, b, 500, 1); wait != 0 {
		t.Errorf("t 500: wait %d", wait)
	}
}

// Invalid time, cost or configuration changes neither credit nor clock; time
// going backwards is refused without change; a cost above capacity breaks the
// contract.
func TestInvalidUseChangesNothing(t *testing.T) {
	b := newModel(t, 3, 2)
	take(t, b, 0, 3)
	take(t, b, 700, 1) // 0.4 left at 700
	before := *b
	for _, bad := range []struct {
		at   time.Duration
		cost int64
		want error
	}{
		{699 * ms, 1, limit.ErrBackwards},
		{700*ms - 1, 0, limit.ErrBackwards},
		{-1, 1, limit.ErrBackwards},
		{-1 << 63, 1, limit.ErrBackwards},
		{800 * ms, -1, limit.ErrInvalid},
		{800 * ms, -1 << 63, limit.ErrInvalid},
		{800 * ms, 4, limit.ErrTooLarge},
		{1 << 62, 1<<63 - 1, limit.ErrTooLarge},
	} {
		wait, err := b.Take(bad.at, bad.cost)
		if !errors.Is(err, bad.want) || wait != 0 {
			t.Errorf("%+v: %v, %v", bad, wait, err)
		}
		if *b != before {
			t.Errorf("%+v changed %+v to %+v", bad, before, *b)
		}
	}
	for _, bad := range []error{
		b.SetRate(900*ms, limit.Rate{}, 3),
		b.SetRate(900*ms, limit.PerSecond(-2), 3),
		b.SetRate(900*ms, limit.PerSecond(2), 0),
		b.SetRate(900*ms, limit.PerSecond(2), -3),
	} {
		if e := new(limit.ConfigError); !errors.As(bad, &e) || *b != before {
			t.Errorf("%v", bad)
		}
	}
	for _, c := range []struct{ capacity, rate int64 }{{0, 1}, {-1, 1}, {1, 0}, {1, -1}} {
		if b, err := limit.NewBucket(limit.PerSecond(c.rate), c.capacity); b != nil || err == nil {
			t.Errorf("%+v was built", c)
		}
	}
}

// Separate buckets are separate, and a value taken from one is not the bucket.
func TestBucketsAreSeparate(t *testing.T) {
	a, b := newModel(t, 3, 2), newModel(t, 3, 2)
	take(t, a, 0, 3)
	if b.Credit() != 3 {
		t.Errorf("the other holds %d", b.Credit())
	}
	copied := *b
	copied.Take(0, 3)
	if b.Credit() != 3 {
		t.Error("spending from a copy spent from the bucket")
	}
	l := newLimiter(t, limit.Options{Limits: []limit.Limit{{Name: "x", Rate: limit.PerHour(3), Burst: 3}}})
	snap := l.Snapshot()
	snap.Limits[0].Credit, snap.Limits[0].Burst, snap.Limits[0].Name = 99, 99, "y"
	if s := l.Snapshot(); s.Limits[0].Credit != 3 || s.Limits[0].Burst != 3 || s.Limits[0].Name != "x" {
		t.Errorf("changing a snapshot changed the limiter: %+v", s)
	}
	given := []limit.Limit{{Name: "x", Rate: limit.PerHour(3), Burst: 3}}
	l = newLimiter(t, limit.Options{Limits: given})
	given[0].Burst, given[0].Name = 99, "y"
	if s := l.Snapshot(); s.Limits[0].Capacity != 3 || s.Limits[0].Name != "x" {
		t.Errorf("changing the options changed the limiter: %+v", s)
	}
}

// scenario is one of the eighty: six requests, with gaps and costs by rule.
type scenario struct{ capacity, rate, variant int64 }

type ask struct{ at, cost int64 }

func (s scenario) asks() (asks []ask) {
	gaps := []int64{0, 333, 1, 499, 500, 1000}
	at := int64(0)
	for i := range int64(6) {
		at += gaps[(s.variant+i)%6]
		asks = append(asks, ask{at, 1 + (i+s.variant)%s.capacity})
	}
	return asks
}

func scenarios() (all []scenario) {
	for capacity := int64(1); capacity <= 4; capacity++ {
		for rate := int64(1); rate <= 4; rate++ {
			for variant := range int64(5) {
				all = append(all, scenario{capacity, rate, variant})
			}
		}
	}
	return all
}

// The eighty scenarios, step by step, against an oracle in rational numbers
// that knows nothing of the package; in both forms; and in every window of
// every scenario, admitted <= capacity + rate * window.
func TestEightyScenariosAgainstRationals(t *testing.T) {
	ran := 0
	for _, s := range scenarios() {
		ran++
		b := newModel(t, s.capacity, s.rate)
		g, err := limit.NewGCRA(limit.PerSecond(s.rate), s.capacity)
		if err != nil {
			t.Fatal(err)
		}
		rat := func(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }
		perMs := big.NewRat(s.rate, 1000)
		credit, last := rat(s.capacity), int64(0)
		var admitted []ask
		for _, a := range s.asks() {
			credit.Add(credit, new(big.Rat).Mul(perMs, rat(a.at-last)))
			last = a.at
			if credit.Cmp(rat(s.capacity)) > 0 {
				credit = rat(s.capacity)
			}
			short := new(big.Rat).Sub(rat(a.cost), credit)
			wantNs, wantMs := int64(0), int64(0)
			if short.Sign() > 0 {
				inMs := short.Quo(short, perMs)
				wantNs = ceil(new(big.Rat).Mul(inMs, rat(1_000_000)))
				wantMs = ceil(inMs)
			} else {
				credit.Sub(credit, rat(a.cost))
				admitted = append(admitted, a)
			}
			for _, take := range []func(time.Duration, int64) (time.Duration, error){b.Take, g.Take} {
				wait, err := take(time.Duration(a.at)*ms, a.cost)
				if err != nil || int64(wait) != wantNs || int64((wait+ms-1)/ms) != wantMs {
					t.Fatalf("%+v %+v: wait %d, %v; want %d ns, %d ms", s, a, wait, err, wantNs, wantMs)
				}
			}
			inMilli := new(big.Rat).Mul(credit, rat(1000))
			if got := milli(t, b, time.Duration(a.at)*ms, s.capacity, s.rate); !inMilli.IsInt() || inMilli.Cmp(rat(got)) != 0 {
				t.Fatalf("%+v %+v: %d milliunits, want %v", s, a, got, inMilli)
			}
			down := new(big.Int).Div(credit.Num(), credit.Denom()).Int64()
			if b.Credit() != down || g.Credit() != down {
				t.Fatalf("%+v %+v: credit %d and %d, want %d", s, a, b.Credit(), g.Credit(), down)
			}
		}
		if len(admitted) == 0 {
			t.Fatalf("%+v admitted nothing", s)
		}
		for i := range admitted {
			sum := int64(0)
			for _, a := range admitted[i:] {
				sum += a.cost
				if window := a.at - admitted[i].at; sum*1000 > s.capacity*1000+s.rate*window {
					t.Fatalf("%+v: %d admitted in %d ms", s, sum, window)
				}
			}
		}
		// The same schedule repeats.
		again := newModel(t, s.capacity, s.rate)
		for _, a := range s.asks() {
			again.Take(time.Duration(a.at)*ms, a.cost)
		}
		if *again != *b {
			t.Fatalf("%+v: %+v the first time, %+v the second", s, *b, *again)
		}
	}
	if ran != 80 {
		t.Fatalf("%d scenarios ran, not 80", ran)
	}
}

func ceil(x *big.Rat) int64 {
	n := new(big.Int).Sub(x.Denom(), big.NewInt(1))
	n.Add(n, x.Num())
	return n.Div(n, x.Denom()).Int64()
}

// The wait is a hint under no other use, not a reservation: who takes in
// between makes it longer.
func TestWaitIsAHintUnderNoOtherUse(t *testing.T) {
	b := newModel(t, 3, 2)
	take(t, b, 0, 3)
	if wait := take(t, b, 0, 1); wait != 500 {
		t.Fatal(wait)
	}
	take(t, b, 500, 1) // somebody else
	if wait := take(t, b, 500, 1); wait != 500 {
		t.Errorf("wait %d", wait)
	}
}
