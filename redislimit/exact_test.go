package redislimit

import (
	"context"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

var ops = flag.Int("redis.ops", 300, "operations of each oracle run")

type direct struct{ c rueidis.Client }

func (d direct) Run(ctx context.Context, s *Script, keys, args []string) (string, error) {
	return rueidis.NewLuaScript(s.Source).Exec(ctx, d.c, keys, args).ToString()
}

func connect(t testing.TB, addr string) direct {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return direct{c}
}

// tree decodes what the script keeps: arrays in arrays.
func tree(r *reader) any {
	if len(r.b) == 0 {
		return nil
	}
	switch c := r.b[0]; {
	case c&0xf0 == 0x90:
		r.byte()
		return elements(r, int(c&0x0f))
	case c == 0xdc:
		r.byte()
		return elements(r, int(r.uint(2)))
	case c == 0xc2 || c == 0xc3:
		return r.byte() == 0xc3
	case c&0xe0 == 0xa0 || c >= 0xd9 && c <= 0xdb:
		return r.str()
	}
	return r.num()
}

func elements(r *reader, n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = tree(r)
	}
	return all
}

// kept is a limit of the root scope as the store keeps it.
type kept struct{ n, w, burst, units, rest, at int64 }

func (d direct) kept(t testing.TB, budget string) map[string]kept {
	t.Helper()
	s, err := d.c.Do(context.Background(), d.c.B().Get().Key(prefix+budget+"}:s:").Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]kept{}
	r := &reader{b: s}
	r.num() // the layout
	for _, l := range tree(r).([]any)[13].([]any) {
		l := l.([]any)
		num := func(i int) int64 { return l[i-1].(int64) }
		all[l[0].(string)] = kept{num(3), num(4), num(5), num(7), num(8), num(9)}
	}
	return all
}

// An oracle is one limit in rationals without end: grains, W to a unit.
type oracle struct {
	unit         limit.Unit
	n, w         *big.Int
	burst, large int64
	level        *big.Int
	at           int64
}

func grains(units int64, w *big.Int) *big.Int { return new(big.Int).Mul(big.NewInt(units), w) }

func (o *oracle) cap() *big.Int { return grains(o.burst, o.w) }

func (o *oracle) clip() {
	if o.level.Cmp(o.cap()) > 0 {
		o.level = o.cap()
	}
}

func (o *oracle) advance(now int64) {
	if now > o.at {
		o.level.Add(o.level, new(big.Int).Mul(o.n, big.NewInt(now-o.at)))
		o.at = now
		o.clip()
	}
}

func (o *oracle) add(units int64) {
	o.level = new(big.Int).Add(o.level, grains(units, o.w))
	o.clip()
}

func (o *oracle) need(c int64) *big.Int { return grains(min(c, o.burst), o.w) }

// wait is the microseconds until c could go, rounded up.
func (o *oracle) wait(c int64) int64 {
	lack := new(big.Int).Sub(o.need(c), o.level)
	if lack.Sign() <= 0 {
		return 0
	}
	q, r := new(big.Int).QuoRem(lack, o.n, new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}

func (o *oracle) lower(to *big.Int) bool {
	if to.Cmp(o.level) >= 0 {
		return false
	}
	o.level = to
	return true
}

func (o *oracle) same(k kept) bool {
	level := new(big.Int).Add(grains(k.units, o.w), big.NewInt(k.rest))
	return level.Cmp(o.level) == 0 && k.rest >= 0 && big.NewInt(k.rest).Cmp(o.w) < 0
}

// Every rate from one a year to 10^12 a millisecond: what the script decides, names
// and keeps is what unbounded integers say, however often it is asked.
func TestTheScriptIsExactAtAnyRate(t *testing.T) {
	server := redistest.Start(t)
	d := connect(t, server.Addr)
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 17))
			play(t, d, fmt.Sprintf("exact%d", seed), r)
		})
	}
}

func anyLimit(r *rand.Rand, name string, unit limit.Unit) limit.Limit {
	size := func(most int64) int64 { return 1 + r.Int64N(int64(1)<<(1+r.IntN(40))%most+1)%most }
	n := size(limit.MaxUnits)
	window := time.Duration(1000+r.Int64N(int64(1)<<(10+r.IntN(35)))) * time.Microsecond
	if r.IntN(3) == 0 {
		window = time.Duration(r.IntN(100)+1) * time.Second
	}
	if r.IntN(6) == 0 {
		n, window = limit.MaxUnits-r.Int64N(3), limit.MinWindow
	}
	if r.IntN(6) == 0 {
		window = limit.MaxWindow
	}
	return limit.Limit{Name: name, Unit: unit, Rate: limit.Rate{N: n, Window: min(window, limit.MaxWindow)}, Burst: size(limit.MaxUnits), Empty: r.IntN(3) == 0}
}

func oracleOf(l limit.Limit, now int64) *oracle {
	burst, large := l.Sizes()
	o := &oracle{unit: l.Unit, n: big.NewInt(l.Rate.N), w: big.NewInt(int64(l.Rate.Window / time.Microsecond)), burst: burst, large: large, at: now}
	o.level = o.cap()
	if l.Empty {
		o.level = new(big.Int)
	}
	return o
}

func in(c limit.Cost, u limit.Unit) int64 {
	return [...]int64{c.Requests, c.Input, c.Output, c.Input + c.Output}[u]
}

func play(t *testing.T, d direct, name string, r *rand.Rand) {
	limits := []limit.Limit{
		anyLimit(r, "requests", limit.Requests), anyLimit(r, "input", limit.Input),
		anyLimit(r, "output", limit.Output), anyLimit(r, "tokens", limit.Tokens),
	}
	l, err := New(Options{Name: name, Runner: d, Limits: limits, SettleWithin: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	all := map[string]*oracle{}
	start := d.kept(t, name)["requests"].at
	for _, x := range limits {
		all[x.Name] = oracleOf(x, start)
	}
	type held struct {
		r limit.Reservation
		c limit.Cost
	}
	var open []held
	sync := func(what string) int64 {
		t.Helper()
		l.Snapshot() // whatever was to be sent is sent
		k := d.kept(t, name)
		now := k["requests"].at
		for name, o := range all {
			o.advance(now)
			if !o.same(k[name]) {
				t.Fatalf("%s: %s: kept %d and %d/%v at %d; unbounded integers say %v grains", what, name, k[name].units, k[name].rest, o.w, now, o.level)
			}
		}
		return now
	}
	instant := func() int64 { // the store's, of the last answer
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.lastSrv
	}
	refused, granted := 0, 0
	for range *ops {
		switch x := r.IntN(10); {
		case x < 5:
			c := limit.Cost{Requests: r.Int64N(limits[0].Burst/2+2) % (1 << (1 + r.IntN(39))), Input: r.Int64N(limits[1].Burst/2 + 2), Output: r.Int64N(limits[2].Burst/2 + 2)}
			if tokens := limits[3].Burst/2 + 1; c.Input+c.Output > tokens {
				c.Input, c.Output = r.Int64N(tokens), 0
			}
			c.Input = min(c.Input, limits[1].Burst)
			got, err := l.TryAdmit(limit.Ask{Cost: c})
			now := instant()
			goes, longest, large := true, int64(0), false
			for _, o := range all {
				o.advance(now)
				large = large || in(c, o.unit) > o.large
				if in(c, o.unit) > 0 {
					longest = max(longest, o.wait(in(c, o.unit)))
				}
			}
			goes = longest == 0 && !large
			if goes != (err == nil) {
				t.Fatalf("%v at %d: %v; unbounded integers say %v", c, now, err, goes)
			}
			if err != nil {
				refused++
				e := err.(*limit.Error)
				if !large && min(longest, 1<<52) != int64(e.Wait/time.Microsecond) && longest < 9e15 {
					t.Fatalf("%v: wait %v, unbounded integers say %d us", c, e.Wait, longest)
				}
				break
			}
			granted++
			for _, o := range all {
				o.add(-in(c, o.unit))
			}
			open = append(open, held{got, c})
		case x < 8 && len(open) > 0:
			i := r.IntN(len(open))
			h := open[i]
			open = append(open[:i], open[i+1:]...)
			at := sync("before an end")
			_ = at
			actual := limit.Cost{Input: r.Int64N(2*h.c.Input + 2), Output: r.Int64N(2*h.c.Output + 2)}
			switch r.IntN(3) {
			case 0:
				h.r.Settle(actual)
				l.Snapshot()
				now := instant()
				for _, o := range all {
					o.advance(now)
				}
				// The end and the question may have left in two calls: both are before now.
				k := d.kept(t, name)
				for name, o := range all {
					o.add(in(limit.Cost{Input: h.c.Input - actual.Input, Output: h.c.Output - actual.Output}, o.unit))
					if !o.same(k[name]) && o.level.Cmp(o.cap()) != 0 && k[name].units != o.burst {
						// A refund that met the cap before the last microseconds were
						// earned: then the store is lower, by what they earned.
						t.Fatalf("settled: %s: kept %d and %d; unbounded integers say %v grains", name, k[name].units, k[name].rest, o.level)
					}
					o.level = new(big.Int).Add(grains(k[name].units, o.w), big.NewInt(k[name].rest))
				}
			case 1:
				h.r.Keep()
			default:
				h.r.Keep()
				h.r.Return()
			}
		case x == 8:
			name := []string{"requests", "input", "output", "tokens"}[r.IntN(4)]
			keep, span := r.Int64N(all[name].burst), time.Duration(r.Int64N(1<<(1+r.IntN(34))))*time.Microsecond
			sync("before a drain")
			fell := l.DrainScope("", name, keep, span)
			now := instant()
			for _, o := range all {
				o.advance(now)
			}
			o := all[name]
			to := new(big.Int).Sub(grains(keep, o.w), new(big.Int).Mul(o.n, big.NewInt(int64(span/time.Microsecond))))
			floor := grains(-1<<52, o.w)
			if to.Cmp(floor) < 0 {
				to = floor
			}
			if o.lower(to) != fell {
				t.Fatalf("drain %s to %d after %v: %v", name, keep, span, fell)
			}
			// So that calls go again: a fresh limit of the same name.
			if r.IntN(2) == 0 || o.level.Sign() < 0 {
				sync("after a drain")
				var lim limit.Limit
				for i := range limits {
					if limits[i].Name == name {
						lim = limits[i]
					}
				}
				if err := l.SetScopeLimit("", limit.Limit{Name: name}); err != nil {
					t.Fatal(err)
				}
				if err := l.SetScopeLimit("", lim); err != nil {
					t.Fatal(err)
				}
				all[name] = oracleOf(lim, instant())
				for _, h := range open { // it charged none of them
					h.r.Keep()
				}
				open = nil
			}
		default:
			sync("after nothing")
		}
	}
	sync("at the end")
	if granted == 0 || refused == 0 {
		t.Logf("%d granted, %d refused", granted, refused)
	}
}
