package limit

import (
	"math"
	"math/big"
	"math/rand/v2"
	"time"
)

// An oracle is a bucket in rational numbers: units, not grains, and math/big
// alone. It shares no arithmetic with the package. It is the definition that
// Bucket, GCRA and Limiter are held to.
type oracle struct {
	rate         Rate
	perNano      *big.Rat // units earned each nanosecond
	level        *big.Rat // units
	burst        *big.Rat // units
	lowest       *big.Rat // units; debt goes no further
	cap, largest int64
	at           int64
	earned       *big.Rat // units of refill that found room, ever
	over         *big.Rat // units by which readings are below the own books
}

func newOracle(r Rate, burst, largest int64) *oracle {
	o := &oracle{earned: new(big.Rat), over: new(big.Rat)}
	o.setSizes(r, burst, largest)
	o.level = new(big.Rat).Set(o.burst)
	return o
}

func units(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func (o *oracle) setSizes(r Rate, burst, largest int64) {
	o.rate, o.cap, o.largest = r, burst, largest
	o.perNano = big.NewRat(r.N, int64(r.Window))
	o.burst = units(burst)
	grains := new(big.Int).Lsh(big.NewInt(-1), 126)
	o.lowest = new(big.Rat).SetFrac(grains, big.NewInt(int64(r.Window)))
}

// setRate keeps the level, to the next lower multiple of the new grain.
func (o *oracle) setRate(r Rate, burst, largest int64) {
	o.level, o.over = o.regrained(o.level, r), o.regrained(o.over, r)
	o.setSizes(r, burst, largest)
	o.bound()
}

// regrained is x, or the next lower multiple of r's grain where that is another.
func (o *oracle) regrained(x *big.Rat, r Rate) *big.Rat {
	if r.Window == o.rate.Window {
		return x
	}
	w := big.NewInt(int64(r.Window))
	grains := new(big.Int).Mul(x.Num(), w)
	grains.Div(grains, x.Denom()) // Euclidean: down
	return new(big.Rat).SetFrac(grains, w)
}

func (o *oracle) bound() {
	if o.level.Cmp(o.burst) > 0 {
		o.level.Set(o.burst)
	}
	if o.level.Cmp(o.lowest) < 0 {
		o.level.Set(o.lowest)
	}
	if most := new(big.Rat).Sub(o.burst, o.level); o.over.Cmp(most) > 0 {
		o.over = most
	}
}

func (o *oracle) advance(now int64) {
	if now <= o.at {
		return
	}
	before := new(big.Rat).Set(o.level)
	o.level.Add(o.level, new(big.Rat).Mul(o.perNano, units(now-o.at)))
	o.at = now
	o.bound()
	o.earned.Add(o.earned, before.Sub(o.level, before))
}

// wait is 0, or the least whole number of nanoseconds until cost is there.
func (o *oracle) wait(cost int64) int64 {
	need := units(min(cost, o.cap))
	if cost == 0 || o.level.Cmp(need) >= 0 {
		return 0
	}
	q := need.Sub(need, o.level)
	q.Quo(q, o.perNano)
	n := new(big.Int).Add(q.Num(), new(big.Int).Sub(q.Denom(), big.NewInt(1)))
	n.Div(n, q.Denom())
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}

// add changes the level by units, which may be negative. Above the burst, or
// below the lowest debt, it is lost.
func (o *oracle) add(n int64) {
	o.level.Add(o.level, units(n))
	o.bound()
}

func (o *oracle) lower(to *big.Rat) {
	if to.Cmp(o.level) < 0 {
		o.level.Set(to)
		o.bound()
	}
}

// read is lower for a reading.
func (o *oracle) read(to *big.Rat) {
	before := new(big.Rat).Set(o.level)
	o.lower(to)
	o.over.Add(o.over, before.Sub(before, o.level))
}

// found brings the level as near to the own books as a reading has taken units before
// they were found there.
func (o *oracle) found(n int64) {
	back := units(n)
	if o.over.Cmp(back) < 0 {
		back.Set(o.over)
	}
	o.level.Add(o.level, back)
	o.over.Sub(o.over, back)
}

func (o *oracle) credit() int64 {
	n := new(big.Int).Div(o.level.Num(), o.level.Denom()) // towards minus infinity
	if !n.IsInt64() {
		return -math.MaxInt64
	}
	return n.Int64()
}

// levelIs reports whether b holds exactly the oracle's level.
func (o *oracle) levelIs(b *Bucket) bool {
	return o.level.Cmp(new(big.Rat).SetFrac(b.level.big(), new(big.Int).SetUint64(b.w))) == 0
}

// A source feeds the random programs of the fuzz tests: from a seed, without
// end, or from a fuzzer's bytes.
type source interface {
	next() uint64
	done() bool
}

type seeded struct{ r *rand.Rand }

func newSeeded(seed uint64) seeded {
	return seeded{rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}
func (s seeded) next() uint64 { return s.r.Uint64() }
func (s seeded) done() bool   { return false }

// fuzzed reads two bytes for a number, and mixes them, so that a mutation of
// one byte changes one decision.
type fuzzed struct{ data []byte }

func (f *fuzzed) done() bool { return len(f.data) == 0 }
func (f *fuzzed) next() uint64 {
	var x uint64
	for i := 0; i < 2 && len(f.data) > 0; i++ {
		x = x<<8 | uint64(f.data[0])
		f.data = f.data[1:]
	}
	if x < 256 {
		return x // small numbers stay readable
	}
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}

func upTo(s source, n int64) int64 { return int64(s.next() % uint64(n)) }

func pick[T any](s source, from []T) T { return from[upTo(s, int64(len(from)))] }

// spread is from 0 to n-1, each magnitude alike.
func spread(s source, n int64) int64 {
	x := int64(s.next()>>1) % n
	return x >> upTo(s, 64)
}

const month = 31 * 24 * time.Hour

// rates that have been trouble somewhere: no whole number of nanoseconds to a
// unit, more units than nanoseconds, and the bounds.
var rates = []Rate{
	PerMinute(7), PerMinute(500), PerMinute(7_919), PerMinute(119_000), PerMinute(180_000_000),
	PerDay(1_000_000_000_000), PerSecond(3), PerHour(10), PerMinute(29_000_000),
	{1, MinWindow}, {MaxUnits, MinWindow}, {1, MaxWindow}, {MaxUnits, MaxWindow}, {MaxUnits - 1, MaxWindow - 1},
}

var gaps = []time.Duration{0, 1, 2, 999, time.Microsecond, time.Millisecond, 333 * time.Millisecond,
	time.Second, time.Minute, time.Hour, 24 * time.Hour, month}

// gap is a pause between operations, from none to a month.
func gap(s source) time.Duration {
	if upTo(s, 2) == 0 {
		return pick(s, gaps)
	}
	return time.Duration(spread(s, int64(month)))
}

// count is what a unit makes of a cost, written out again.
func count(u Unit, c Cost) int64 {
	return map[Unit]int64{Requests: c.Requests, Input: c.Input, Output: c.Output, Tokens: c.Input + c.Output}[u]
}
