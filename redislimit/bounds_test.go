package redislimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// cut is the part of the script between two lines, given by how they begin: from the
// first one to before the second.
func cut(t testing.TB, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(source, "\n"+from)
	part, _, ok2 := strings.Cut(rest, "\n"+to)
	if !ok || !ok2 {
		t.Fatalf("the script has no part from %q to %q", from, to)
	}
	return from + part + "\n"
}

// extreme is a whole number from 0 to most: near a power of two, near most, or any.
func extreme(r *rand.Rand, most int64) int64 {
	n := r.Int64N(most + 1)
	switch r.IntN(4) {
	case 0:
		n = int64(1)<<r.IntN(54) + r.Int64N(5) - 2
	case 1:
		n = most - r.Int64N(4)
	case 2:
		n >>= r.IntN(53)
	}
	return max(0, min(n, most))
}

const lowest = -1 << 52 // of a level, in units

// The arithmetic of the script, with every number up to the bound that the script
// states for it. Results below 2^53 are those of unbounded integers.
func TestTheArithmeticIsExactAtItsBounds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := connect(t, server.Addr)
	text := cut(t, "local P45", "local MINUTE") + cut(t, "local NAME,", "-- A scope.") +
		"local floor, max, min = math.floor, math.max, math.min\nlocal now = 0\n" +
		cut(t, "local function muldiv", "local function amount") + `
local out, text = {}, function(x) return string.format('%.0f', x) end
for k = 1, #ARGV, 7 do
  local a = {}
  for j = 0, 6 do a[j] = tonumber(ARGV[k + j]) end
  local x, y
  if a[0] == 0 then
    x, y = muldiv(a[1], a[2], a[3])
  else
    local l = {}
    l[N], l[W], l[BURST], l[U], l[R], l[AT] = a[1], a[2], a[3], a[4], a[5], 0
    if a[0] == 1 then
      now = a[6]
      advance(l)
      x, y = l[U], l[R]
    else
      now = 0
      x, y = paced(l[U], l[R], l[BURST], l, a[6], 0), 0
    end
  end
  out[#out + 1] = text(x)
  out[#out + 1] = text(y)
end
return out`
	script := rueidis.NewLuaScript(newScript(text).Source)
	r := rand.New(rand.NewPCG(7, 53))
	const n = 3000
	var args []string
	var all [][7]int64
	for range n {
		w, burst := max(1000, extreme(r, 1<<45-1)), max(1, extreme(r, limit.MaxUnits))
		a := [7]int64{r.Int64N(3), max(1, extreme(r, limit.MaxUnits)), w, burst, 0, r.Int64N(w), 0}
		a[4] = burst - extreme(r, burst-lowest)
		switch a[0] {
		case 0:
			a[1], a[2], a[3] = extreme(r, 1<<53-1), extreme(r, 1<<53-1), max(1, extreme(r, 1<<52))
		case 1:
			a[6] = extreme(r, 1<<52)
		default: // a cost, and all who wait before it
			a[6] = extreme(r, burst) + extreme(r, 1<<51)
		}
		if a[0] != 0 && a[4] == burst {
			a[5] = 0
		}
		all = append(all, a)
		for _, x := range a {
			args = append(args, fmt.Sprint(x))
		}
	}
	got, err := script.Exec(context.Background(), d.c, nil, args).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	exact := 0
	for i, a := range all {
		x, y := unbounded(a)
		text := [2]string{x.String(), y.String()}
		if a[0] == 0 && x.BitLen() > 53 { // its callers stop before
			text[0] = got[2*i]
		} else {
			exact++
		}
		if got[2*i] != text[0] || got[2*i+1] != text[1] {
			t.Fatalf("%v: %s and %s; unbounded integers say %v and %v", a, got[2*i], got[2*i+1], x, y)
		}
	}
	if exact < n/2 {
		t.Errorf("only %d of %d are below 2^53", exact, n)
	}
}

// unbounded is what the script should say.
func unbounded(a [7]int64) (x, y *big.Int) {
	num := func(i int) *big.Int { return big.NewInt(a[i]) }
	if a[0] == 0 {
		return new(big.Int).QuoRem(new(big.Int).Mul(num(1), num(2)), num(3), new(big.Int))
	}
	o := oracle{n: num(1), w: num(2), burst: a[3]}
	o.level = new(big.Int).Add(grains(a[4], o.w), num(5))
	if a[0] == 1 {
		o.advance(a[6])
		return new(big.Int).DivMod(o.level, o.w, new(big.Int))
	}
	lack := new(big.Int).Sub(grains(a[6], o.w), o.level)
	if lack.Sign() <= 0 {
		return new(big.Int), new(big.Int)
	}
	q, rest := lack.QuoRem(lack, o.n, new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if most := big.NewInt(1 << 52); q.Cmp(most) > 0 {
		q = most
	}
	return q, new(big.Int)
}

// Nine thousand settlements of 10^12 tokens come to more than 2^53. For any sum of ends,
// levels and sums in the store are those of unbounded integers.
func TestWhatEndsComeToIsExactBeyondTwoToThe53(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := connect(t, server.Addr)
	r := rand.New(rand.NewPCG(9000, 12))
	limits := []limit.Limit{}
	units := []limit.Unit{limit.Requests, limit.Input, limit.Output, limit.Tokens}
	for _, u := range units {
		limits = append(limits, limit.Limit{Name: u.String(), Unit: u, Rate: limit.Rate{N: 1, Window: limit.MaxWindow}, Burst: limit.MaxUnits, Empty: true})
	}
	l, err := New(Options{Name: "ends", Runner: d, Limits: limits, Timeout: 5 * time.Second, MemberTTL: time.Minute, SettleWithin: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	level := map[string]*big.Int{}
	for _, u := range units {
		level[u.String()] = new(big.Int)
	}
	sums := [3]*big.Int{new(big.Int), new(big.Int), new(big.Int)}
	for round := range 40 {
		n, most := 1, int64(1<<57)
		if round%2 == 0 {
			n, most = 10_000, limit.MaxUnits
		}
		var total [3]*big.Int
		one := end{}
		for k, at := range []*int64{&one.refund.Requests, &one.refund.Input, &one.refund.Output} {
			if *at = extreme(r, most) | 1; r.IntN(2) == 0 {
				*at = -*at
			}
			if round%4 == 0 && k == 2 {
				*at = -one.refund.Input + 1 // their tokens are few
			}
			total[k] = new(big.Int).Mul(big.NewInt(*at), big.NewInt(int64(n)))
		}
		l.mu.Lock()
		key := endKey{path: l.pathOf(&limit.Ask{}), epoch: l.epoch}
		for range n {
			l.addEnd(key, one)
		}
		l.urgent = true
		l.mu.Unlock()
		for settled := false; !settled; {
			l.Snapshot()
			l.mu.Lock()
			settled = len(l.ends) == 0
			l.mu.Unlock()
		}
		l.Snapshot()
		kept := d.kept(t, "ends")
		for i, u := range units {
			x := level[u.String()]
			if i < 3 {
				x.Add(x, total[i])
			} else {
				x.Add(x, total[1]).Add(x, total[2])
			}
			if most := big.NewInt(limit.MaxUnits); x.Cmp(most) > 0 {
				x.Set(most)
			}
			if least := big.NewInt(lowest); x.Cmp(least) < 0 {
				x.Set(least)
			}
			if x.Cmp(big.NewInt(kept[u.String()].units)) != 0 {
				t.Fatalf("round %d, %v: %d; unbounded integers say %v", round, u, kept[u.String()].units, x)
			}
		}
		l.mu.Lock()
		got := l.root.sums.refunds
		l.mu.Unlock()
		for k := range got {
			sums[k].Add(sums[k], total[k]).Mod(sums[k], big.NewInt(wrap))
			if sums[k].Cmp(big.NewInt(got[k])) != 0 {
				t.Fatalf("round %d: refunds %v; unbounded integers say %v modulo 2^52", round, got, sums)
			}
		}
	}
}

// The longest spans are spans: a pause for as long as a Duration can be holds everybody.
func TestTheLongestSpans(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, 1000: 1, 1001: 2, -1: 0, -1000: -1, -1001: -1, math.MaxInt64: mostSpan, math.MinInt64: math.MinInt64 / 1000,
		142 * 365 * 24 * time.Hour: 142 * 365 * 24 * 3_600_000_000, 150 * 365 * 24 * time.Hour: mostSpan,
	} {
		if got := micros(d); got != want {
			t.Errorf("%v is %d us, want %d", d, got, want)
		}
	}
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		store := NewFakeStore(server.Addr)
		l, err := New(Options{Name: "long", Runner: store.Client(t), Limits: []limit.Limit{{Name: "tokens", Unit: limit.Tokens, Rate: limit.PerSecond(limit.MaxUnits)}}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for _, p := range []limit.Pause{{For: math.MaxInt64}, {ProbeAfter: math.MaxInt64}, {For: math.MaxInt64, ProbeAfter: math.MaxInt64 - 1}} {
			l.PauseScope("", p)
			var e *limit.Error
			if _, err := l.TryAdmit(limit.Ask{}); !errors.As(err, &e) || e.Dimension != "pause" || e.Wait < 80*365*24*time.Hour {
				t.Errorf("in a pause %+v: %v", p, err)
			}
			l.ResumeScope("")
			time.Sleep(time.Minute)
			if r, err := l.TryAdmit(limit.Ask{Cost: limit.Cost{Input: 1}}); err != nil {
				t.Errorf("after a pause %+v: %v", p, err)
			} else {
				r.Keep()
			}
		}
		if !l.DrainScope("", "tokens", 0, math.MaxInt64) {
			t.Error("a drain for ever lowers nothing")
		}
	})
}

// A call for many callers decides as one call for each would, in their order: they have
// several paths and limits, places run out, and some costs go only from a full limit.
func TestACallForManyDecidesAsOneForEach(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := connect(t, server.Addr)
	r := rand.New(rand.NewPCG(32, 1))
	granted, refused := 0, 0
	for round := range 25 {
		units := []limit.Unit{limit.Requests, limit.Input, limit.Output, limit.Tokens}
		of := map[string][]limit.Limit{}
		for _, scope := range []string{"", "a", "b"} {
			for _, u := range units {
				if r.IntN(3) > 0 {
					l := limit.Limit{Name: u.String(), Unit: u, Rate: limit.Rate{N: 100 + r.Int64N(600), Window: limit.MaxWindow}}
					l.Burst = r.Int64N(2) * (50 + r.Int64N(300))
					l.Largest = r.Int64N(2) * (30 + r.Int64N(300))
					of[scope] = append(of[scope], l)
				}
			}
		}
		places := r.IntN(3) * 20
		l, err := New(Options{Name: fmt.Sprint("many", round), Runner: d, Limits: of[""], MaxInFlight: places, Timeout: 5 * time.Second, MemberTTL: time.Minute, Batch: 64,
			Open: func(scope string) (limit.ScopeOptions, []limit.Limit) { return limit.ScopeOptions{}, of[scope] }})
		if err != nil {
			t.Fatal(err)
		}
		left := map[string][]int64{}
		for scope, limits := range of {
			for _, x := range limits {
				burst, _ := x.Sizes()
				left[scope] = append(left[scope], burst)
			}
		}
		goes := func(a limit.Ask) bool {
			path := append([]string{""}, a.Scopes...)
			for _, scope := range path {
				for i, x := range of[scope] {
					burst, largest := x.Sizes()
					if c := in(a.Cost, x.Unit); c > 0 && (c > largest || left[scope][i] < min(c, burst)) {
						return false
					}
				}
			}
			for _, scope := range path {
				for i, x := range of[scope] {
					left[scope][i] -= in(a.Cost, x.Unit)
				}
			}
			return true
		}
		open := 0
		var all []*waiter
		var asks []limit.Ask
		l.mu.Lock()
		for range 64 {
			a := limit.Ask{Scopes: [][]string{nil, {"a"}, {"a", "b"}}[r.IntN(12)/5]}
			a.Cost = limit.Cost{Requests: r.Int64N(3), Input: r.Int64N(1 << r.IntN(9)), Output: r.Int64N(1 << r.IntN(9))}
			w := &waiter{done: make(chan struct{}, 1), cost: a.Cost, likely: a.Cost, mode: modeNow}
			if r.IntN(8) == 0 { // one of another kind
				w.likely.Output++
			}
			l.ask(w, &a)
			all, asks = append(all, w), append(asks, a)
		}
		l.mu.Unlock()
		l.wake()
		for i, w := range all {
			<-w.done
			want := (places == 0 || open < places) && goes(asks[i])
			if want {
				open++
				granted++
			} else {
				refused++
			}
			if want != (w.err == nil) {
				t.Fatalf("round %d, caller %d, %+v: %v, want %v; left %v", round, i, asks[i].Cost, w.err, want, left)
			}
		}
		l.Close()
	}
	if granted < 100 || refused < 100 {
		t.Errorf("%d granted, %d refused", granted, refused)
	}
}
