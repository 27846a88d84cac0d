package limit

import (
	"errors"
	"flag"
	"math"
	"math/big"
	"testing"
	"time"
)

// The long runs, as documented in the package comment:
//
//	go test ./limit -run Oracle -limit.ops 10000000 -timeout 60m
//	go test ./limit -run Lives -limit.lives 1000000 -timeout 60m
var (
	opsFlag   = flag.Int("limit.ops", 0, "operations in each comparison with the rational oracle; 0 = a quick run")
	livesFlag = flag.Int("limit.lives", 0, "lives in each conservation test; 0 = a quick run")
	seedFlag  = flag.Uint64("limit.seed", 1, "seed of the random programs")
)

// orQuick is n, or the quick run's number.
func orQuick(n, quick int) int {
	if n > 0 {
		return n
	}
	return quick
}

// form is what Bucket and GCRA have in common.
type form interface {
	Take(now time.Duration, cost int64) (time.Duration, error)
	Return(units int64)
	Charge(now time.Duration, units int64)
	Lower(now time.Duration, units int64)
	SetRate(now time.Duration, r Rate, burst int64) error
	Credit() int64
}

var (
	_ form = (*Bucket)(nil)
	_ form = (*GCRA)(nil)
)

// A bucketTrial is one bucket in three forms, driven by one program.
type bucketTrial struct {
	t     *testing.T
	o     *oracle
	b     *Bucket
	g     *GCRA
	at    int64
	burst int64
}

func newBucketTrial(t *testing.T, s source) *bucketTrial {
	r, burst := pick(s, rates), 1+spread(s, MaxUnits)
	b, err := NewBucket(r, burst)
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGCRA(r, burst)
	if err != nil {
		t.Fatal(err)
	}
	return &bucketTrial{t: t, o: newOracle(r, burst, burst), b: b, g: g, burst: burst}
}

// take asks all three for cost at an instant and compares the answers; it
// returns the wait.
func (x *bucketTrial) take(at, cost int64) int64 {
	x.t.Helper()
	var want int64
	var wantErr error
	switch {
	case cost < 0:
		wantErr = ErrInvalid
	case cost > x.burst:
		wantErr = ErrTooLarge
	case at < x.at:
		wantErr = ErrBackwards
	default:
		x.at = at
		x.o.advance(at)
		if want = x.o.wait(cost); want == 0 {
			x.o.add(-cost)
		}
	}
	for _, f := range []form{x.b, x.g} {
		got, err := f.Take(time.Duration(at), cost)
		if int64(got) != want || !errors.Is(err, wantErr) {
			x.t.Fatalf("%T %v burst %d at %d: take %d: wait %d, %v; want %d, %v",
				f, x.o.rate, x.burst, at, cost, got, err, want, wantErr)
		}
	}
	return want
}

func (x *bucketTrial) compare(what string) {
	x.t.Helper()
	for _, f := range []form{x.b, x.g} {
		if got, want := f.Credit(), x.o.credit(); got != want {
			x.t.Fatalf("%T %v burst %d at %d after %s: credit %d, want %d", f, x.o.rate, x.burst, x.at, what, got, want)
		}
	}
	if !x.o.levelIs(x.b) || x.g.credit() != x.b.level {
		x.t.Fatalf("%v burst %d at %d after %s: level %v, GCRA %v grains, want %v units",
			x.o.rate, x.burst, x.at, what, x.b.level.big(), x.g.credit().big(), x.o.level)
	}
}

// step does one random operation on all three forms. Returns false when the
// clock runs out.
func (x *bucketTrial) step(s source) bool {
	at := later(x.at, int64(gap(s)))
	if at > math.MaxInt64-int64(month) {
		return false
	}
	now := time.Duration(at)
	moved := func() { x.at = at; x.o.advance(at) }
	switch upTo(s, 16) {
	default: // take, and if there is a wait, be there at its instant
		wait := x.take(at, min(x.burst, spread(s, x.burst+1)))
		x.compare("take")
		if wait == 0 || wait > int64(month) || upTo(s, 2) == 0 {
			return true
		}
		cost := min(x.burst, x.costFor(wait))
		if left := x.take(at, cost); left > 0 && left < int64(month) {
			if left > 1 && x.take(at+left-1, cost) != 1 {
				x.t.Fatalf("1 ns early the wait is not 1 ns")
			}
			if x.take(at+left, cost) != 0 {
				x.t.Fatalf("refused at the named instant")
			}
		}
		x.compare("named wait")
	case 8:
		n := spread(s, x.burst+1)
		x.o.add(n)
		x.b.Return(n)
		x.g.Return(n)
		x.compare("return")
	case 9:
		n := spread(s, MaxUnits+1)
		moved()
		x.o.add(-n)
		x.b.Charge(now, n)
		x.g.Charge(now, n)
		x.compare("charge")
	case 10:
		n := spread(s, x.burst+1) - spread(s, MaxUnits+1)
		moved()
		x.o.lower(units(n))
		x.b.Lower(now, n)
		x.g.Lower(now, n)
		x.compare("lower")
	case 11:
		r, burst := pick(s, rates), 1+spread(s, MaxUnits)
		moved()
		x.o.setRate(r, burst, burst)
		x.burst = burst
		if err := errors.Join(x.b.SetRate(now, r, burst), x.g.SetRate(now, r, burst)); err != nil {
			x.t.Fatal(err)
		}
		x.compare("change of rate")
	case 12: // stamps of the past: no error where none is promised, never credit
		old := spread(s, x.at+1)
		n := spread(s, x.burst+1)
		x.o.add(-n)
		x.b.Charge(time.Duration(old), n)
		x.g.Charge(time.Duration(old), n)
		x.take(old, 1)
		x.compare("old stamp")
	case 13: // refused for what it is
		x.take(at, x.burst+1+spread(s, MaxUnits))
		x.take(at, -1-spread(s, MaxUnits))
		x.take(-1-spread(s, math.MaxInt64), 0)
		x.compare("misuse")
	case 14: // polling: many looks, a nanosecond or more apart
		each := 1 + spread(s, int64(time.Second))
		for range 8 {
			x.take(later(x.at, each), x.burst)
		}
		x.compare("polls")
	case 15: // numbers that are no units
		n := -spread(s, math.MaxInt64)
		moved()
		x.b.Return(n)
		x.g.Return(n)
		x.b.Charge(now, n)
		x.g.Charge(now, n)
		x.compare("negative units")
	}
	return true
}

// costFor is a cost that has to wait about that long.
func (x *bucketTrial) costFor(wait int64) int64 {
	q := new(big.Rat).Mul(x.o.perNano, units(wait))
	q.Add(q, x.o.level)
	n := new(big.Int).Quo(q.Num(), q.Denom())
	if !n.IsInt64() {
		return x.burst
	}
	return max(1, n.Int64())
}

// Bucket and GCRA against the rational oracle: every decision, wait and level
// of a long random program is the same.
func TestOracleBucketAndGCRA(t *testing.T) {
	s := newSeeded(*seedFlag)
	for done := 0; done < orQuick(*opsFlag, 50_000); {
		x := newBucketTrial(t, s)
		for range 500 {
			if !x.step(s) {
				break
			}
			done++
		}
	}
}

func FuzzBucket(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("polls and waits, a month and a nanosecond"))
	f.Add([]byte{0, 5, 0, 1, 9, 9, 9, 9, 0, 11, 0, 3, 255, 255, 0, 12, 0, 8, 1, 1, 0, 14, 0, 10, 7, 7, 0, 9})
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x0e\xff\xff\xff\xff\x00\x0d\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, program []byte) {
		s := &fuzzed{program}
		x := newBucketTrial(t, s)
		for !s.done() && x.step(s) {
		}
	})
}
