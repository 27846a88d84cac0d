package providertest

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// ratBucket is bucket in rational numbers, written from its definition.
type ratBucket struct {
	limit, window, cap, level *big.Rat
	last                      int64
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func newRatBucket(limit, window, depth int64) *ratBucket {
	r := &ratBucket{window: rat(window)}
	r.set(limit, depth)
	r.level = new(big.Rat).Set(r.cap)
	return r
}

func (r *ratBucket) set(limit, depth int64) {
	r.limit = rat(limit)
	r.cap = new(big.Rat).Mul(r.limit, new(big.Rat).Quo(rat(depth), r.window))
	if r.cap.Cmp(rat(1)) < 0 {
		r.cap = rat(1)
	}
	if r.level != nil && r.level.Cmp(r.cap) > 0 {
		r.level.Set(r.cap)
	}
}

func (r *ratBucket) advance(at int64) {
	earned := new(big.Rat).Mul(r.limit, new(big.Rat).Quo(rat(at-r.last), r.window))
	r.last = at
	if r.level.Add(r.level, earned).Cmp(r.cap) > 0 {
		r.level.Set(r.cap)
	}
}

func (r *ratBucket) take(n int64) {
	if r.level.Sub(r.level, rat(n)).Cmp(r.cap) > 0 {
		r.level.Set(r.cap)
	}
}

// wait is the ceiling of (n - level) x window / limit.
func (r *ratBucket) wait(n *big.Rat) *big.Int {
	d := new(big.Rat).Sub(n, r.level)
	if d.Sign() <= 0 {
		return new(big.Int)
	}
	d.Mul(d, new(big.Rat).Quo(r.window, r.limit))
	q, m := new(big.Int).QuoRem(d.Num(), d.Denom(), new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func floorRat(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) }

func TestBucketAgainstRationals(t *testing.T) {
	limits := []int64{1, 3, 7, 60, 500, 3500, 449_999, 30_000_000, 999_999_999_989, maxLimit}
	windows := []int64{minute, day, 31 * day, int64(time.Second)}
	steps := 0
	for seed := range uint64(240) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit, window := limits[r.IntN(len(limits))], windows[r.IntN(len(windows))]
		depth := 1 + r.Int64N(window)
		b, want := newBucket(limit, window, depth, false), newRatBucket(limit, window, depth)
		at := int64(0)
		for range 60 {
			steps++
			switch r.IntN(3) {
			case 0:
				at += r.Int64N(10)
			case 1:
				at += r.Int64N(int64(time.Second))
			case 2:
				at += r.Int64N(2 * window)
			}
			want.advance(at)
			n := r.Int64N(b.capUnits + 2)
			ctx := fmt.Sprintf("seed %d limit %d window %d depth %d at %d n %d", seed, limit, window, depth, at, n)
			if got := big.NewInt(b.level(at)); got.Cmp(floorRat(want.level)) != 0 {
				t.Fatalf("%s: level %v, want %v", ctx, got, floorRat(want.level))
			}
			wait := b.wait(at, n)
			if rat(n).Cmp(want.cap) > 0 {
				if wait != never {
					t.Fatalf("%s: wait %d for more than the capacity, want never", ctx, wait)
				}
				continue
			}
			if w := want.wait(rat(n)); w.IsInt64() && wait != w.Int64() || !w.IsInt64() && wait != never {
				t.Fatalf("%s: wait %d, want %v", ctx, wait, w)
			}
			if w := want.wait(want.cap); w.IsInt64() && b.full(at) != w.Int64() {
				t.Fatalf("%s: full in %d, want %v", ctx, b.full(at), w)
			}
			if wait > 0 && wait != never && wait < day {
				// The instant named is the first at which it fits.
				if b.wait(at+wait, n) != 0 || b.wait(at+wait-1, n) == 0 {
					t.Fatalf("%s: wait %d is not the first instant", ctx, wait)
				}
			}
			switch r.IntN(5) {
			case 0: // debt or more than there is
				b.take(at, n)
				want.take(n)
			case 1:
				back := r.Int64N(n + 1)
				b.correct(at, 0, -back)
				want.take(-back)
			case 2:
				limit = limits[r.IntN(len(limits))]
				b.set(at, limit)
				want.set(limit, depth)
			default:
				if wait == 0 {
					b.take(at, n)
					want.take(n)
				}
			}
		}
	}
	if steps == 0 {
		t.Fatal("nothing was compared")
	}
}

func TestMulDivAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	edge := []int64{0, 1, 2, minute, day, maxLimit, math.MaxInt64 - 1, math.MaxInt64}
	pick := func() int64 {
		if r.IntN(2) == 0 {
			return edge[r.IntN(len(edge))]
		}
		return r.Int64() >> r.IntN(63)
	}
	for range 20_000 {
		a, b, c := pick(), pick(), max(1, pick())
		want, rem := new(big.Int).QuoRem(new(big.Int).Mul(big.NewInt(a), big.NewInt(b)), big.NewInt(c), new(big.Int))
		q, m, ok := mulDiv(a, b, c)
		if ok != want.IsInt64() || ok && (q != want.Int64() || m != rem.Int64()) {
			t.Fatalf("mulDiv(%d, %d, %d) = %d, %d, %v; want %v, %v", a, b, c, q, m, ok, want, rem)
		}
	}
}

// model judges a window by adding up every charge ever made.
type model struct {
	charges []charged // with refunds applied
	inside  func(charge, now int64) bool
	limit   func(now int64) int64
}

func (m *model) used(now int64) (sum int64) {
	for _, c := range m.charges {
		if m.inside(c.at, now) {
			sum += c.n
		}
	}
	return sum
}

func TestWindowsAgainstSums(t *testing.T) {
	sec := int64(time.Second)
	// 1999-12-31 23:59:47.000000003, an uneven place on the wall clock.
	start := time.Date(1999, 12, 31, 23, 59, 47, 3, time.UTC).UnixNano()
	sameOf := func(unit int64) func(a, b int64) bool {
		return func(a, b int64) bool { return (start+a)/unit == (start+b)/unit }
	}
	for _, limit := range []int64{1, 7, 59, 60, 61, 1000, 90_001} {
		for name, v := range map[string]struct {
			g gauge
			m *model
		}{
			"fixed":   {&fixed{limit: limit, window: minute, start: start}, &model{inside: sameOf(minute)}},
			"sliding": {&sliding{limit: limit, window: minute}, &model{inside: func(a, b int64) bool { return b-a < minute }}},
			"slices": {&sliced{limit: limit, window: minute, slice: sec, start: start}, &model{inside: sameOf(sec),
				limit: func(now int64) int64 {
					k := (start + now) / sec % 60
					return limit*(k+1)/60 - limit*k/60
				}}},
			"slices of 10 s": {&sliced{limit: limit, window: minute, slice: 10 * sec, start: start}, &model{inside: sameOf(10 * sec),
				limit: func(now int64) int64 {
					k := (start + now) / (10 * sec) % 6
					return limit*(k+1)/6 - limit*k/6
				}}},
		} {
			t.Run(fmt.Sprintf("%s %d", name, limit), func(t *testing.T) {
				g, m := v.g, v.m
				if m.limit == nil {
					m.limit = func(int64) int64 { return limit }
				}
				r := rand.New(rand.NewPCG(uint64(limit), 3))
				at, admitted := int64(0), 0
				for range 400 {
					at += []int64{0, 1, r.Int64N(sec), r.Int64N(20 * sec), r.Int64N(70 * sec)}[r.IntN(5)]
					n := r.Int64N(limit + 2)
					if name != "fixed" && name != "sliding" {
						n = r.Int64N(max(1, limit/60) + 2)
					}
					room := m.limit(at) - m.used(at)
					if g.level(at) != room {
						t.Fatalf("at %d: level %d, want %d", at, g.level(at), room)
					}
					wait := g.wait(at, n)
					if (wait == 0) != (n <= room) {
						t.Fatalf("at %d: wait %d for %d with room for %d", at, wait, n, room)
					}
					if wait > 0 && wait != never {
						if then := at + wait; n > m.limit(then)-m.used(then) {
							t.Fatalf("at %d: no room for %d at the instant named, %d", at, n, then)
						}
						if before := at + wait - 1; n <= m.limit(before)-m.used(before) {
							t.Fatalf("at %d: wait %d for %d is not the first instant", at, wait, n)
						}
					}
					if full := g.full(at); full > 0 {
						if m.used(at+full) != 0 || m.used(at+full-1) == 0 {
							t.Fatalf("at %d: full in %d is not the first instant", at, full)
						}
					}
					if wait != 0 {
						if wait < minute && r.IntN(2) == 0 {
							at += wait
							if g.wait(at, n) != 0 {
								t.Fatalf("refused at the instant it named")
							}
						} else {
							continue
						}
					}
					g.take(at, n)
					m.charges = append(m.charges, charged{at, n})
					admitted++
					// Give some of an older charge back.
					if k := r.IntN(len(m.charges)); r.IntN(3) == 0 {
						c := &m.charges[k]
						back := r.Int64N(c.n + 1)
						g.correct(at, c.at, -back)
						c.n -= back
					}
				}
				if admitted == 0 {
					t.Fatal("nothing was admitted")
				}
			})
		}
	}
}

func TestBoundaries(t *testing.T) {
	sec := int64(time.Second)
	start := time.Date(2000, 1, 1, 0, 0, 30, 0, time.UTC).UnixNano()
	for _, c := range []struct {
		name  string
		g     gauge
		takes []charged
		at, n int64
		wait  int64
	}{
		{"bucket full at the start", newBucket(60, minute, 10*sec, false), nil, 0, 10, 0},
		{"bucket one more than it holds", newBucket(60, minute, 10*sec, false), nil, 0, 11, never},
		{"bucket oversize when full", newBucket(60, minute, 10*sec, true), nil, 0, 60, 0},
		{"bucket oversize waits for full", newBucket(60, minute, 10*sec, true), []charged{{0, 1}}, 0, 11, sec},
		{"bucket above the limit", newBucket(60, minute, 10*sec, true), nil, 0, 61, never},
		{"bucket pays oversize off", newBucket(60, minute, 10*sec, true), []charged{{0, 60}}, 0, 1, 51 * sec},
		{"bucket one ns before", newBucket(60, minute, sec, false), []charged{{0, 1}}, sec - 1, 1, 1},
		{"bucket holds at least one", newBucket(1, day, sec, false), []charged{{0, 1}}, 0, 1, day},
		{"bucket rounds up to the ns", newBucket(180, minute, sec, false), []charged{{0, 3}}, 0, 1, 333_333_334},
		{"fixed to the minute", &fixed{limit: 5, window: minute, start: start}, []charged{{0, 5}}, 0, 1, 30 * sec},
		{"fixed twice the limit over :00", &fixed{limit: 5, window: minute, start: start}, []charged{{29 * sec, 5}}, 30 * sec, 5, 0},
		{"fixed never more than the limit", &fixed{limit: 5, window: minute, start: start}, nil, 0, 6, never},
		{"fixed debt ends with the window", &fixed{limit: 5, window: minute, start: start}, []charged{{0, 500}}, 30 * sec, 5, 0},
		{"sliding leaves after a minute", &sliding{limit: 5, window: minute}, []charged{{7, 5}}, 8, 1, minute - 1},
		{"sliding at the minute", &sliding{limit: 5, window: minute}, []charged{{7, 5}}, 7 + minute, 5, 0},
		{"sliding waits for enough", &sliding{limit: 5, window: minute}, []charged{{0, 2}, {5, 1}, {9, 2}}, 10, 3, 5 + minute - 10},
		{"slices of 60 000", &sliced{limit: 60_000, window: minute, slice: sec, start: start}, []charged{{0, 1000}}, 0, 1, sec},
		{"slices above a share", &sliced{limit: 60_000, window: minute, slice: sec, start: start}, nil, 0, 1001, never},
		// 90 a minute: shares 1, 2, 1, 2; at :30 the share is 1.
		{"slices uneven", &sliced{limit: 90, window: minute, slice: sec, start: start}, nil, 0, 2, sec},
		{"slices of few", &sliced{limit: 1, window: minute, slice: sec, start: start}, nil, 0, 1, 29 * sec},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, take := range c.takes {
				c.g.take(take.at, take.n)
			}
			if got := c.g.wait(c.at, c.n); got != c.wait {
				t.Errorf("wait for %d at %d is %d, want %d", c.n, c.at, got, c.wait)
			}
		})
	}
}

// No sequence of calls makes a window hold more than capacity + rate x window.
func TestAdmittedInAnyWindow(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 5))
		limit := 1 + r.Int64N(5000)
		depth := int64(time.Second) * (1 + r.Int64N(60))
		b := newBucket(limit, minute, depth, false)
		s := &sliding{limit: limit, window: minute}
		capacity := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(limit), big.NewInt(depth)), big.NewInt(minute))
		if capacity.Cmp(rat(1)) < 0 {
			capacity = rat(1)
		}
		var inBucket, inSliding []charged
		at := int64(0)
		for range 600 {
			at += r.Int64N(int64(time.Second))
			n := 1 + r.Int64N(b.capUnits)
			if b.wait(at, n) == 0 {
				b.take(at, n)
				inBucket = append(inBucket, charged{at, n})
			}
			if s.wait(at, n) == 0 {
				s.take(at, n)
				inSliding = append(inSliding, charged{at, n})
			}
		}
		for i := range inBucket {
			sum := int64(0)
			for _, c := range inBucket[i:] {
				sum += c.n
				bound := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(limit), big.NewInt(c.at-inBucket[i].at)), big.NewInt(minute))
				if rat(sum).Cmp(bound.Add(bound, capacity)) > 0 {
					t.Fatalf("seed %d: bucket admitted %d in %d ns", seed, sum, c.at-inBucket[i].at)
				}
			}
		}
		for i := range inSliding {
			sum := int64(0)
			for _, c := range inSliding[i:] {
				if c.at-inSliding[i].at < minute {
					sum += c.n
				}
			}
			if sum > limit {
				t.Fatalf("seed %d: sliding admitted %d of %d in a minute", seed, sum, limit)
			}
		}
		if len(inBucket) < 2 || len(inSliding) < 2 {
			t.Fatalf("seed %d: too little was admitted to prove anything", seed)
		}
	}
}
