package redislimit_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
	"github.com/tripmeter/tripmeter/transport"
)

var twins = flag.Uint64("redis.twins", 8, "programs of 300 steps that the store and package limit count")

// A twin is a limit counted twice: in the store, by the calls of several members, and in
// the books of package limit. It has whole slots of a log, whole microseconds in a sixth.
type twin struct {
	t    *testing.T
	r    *rand.Rand
	m    []*redislimit.Limiter
	l    *limit.Limiter
	lim  limit.Limit
	open []twinCall

	granted, refused, lowered, laws int
}

type twinCall struct {
	store, books limit.Reservation
	cost         limit.Cost
}

const (
	twinWindow = 511 * 120 * time.Millisecond
	twinMargin = 511 * 2 * time.Millisecond
)

func (x *twin) law() limit.Law {
	law := limit.Law{Shape: limit.ShapeFixed + limit.Shape(x.r.IntN(4)), FirstCall: x.r.IntN(2) == 0, AtEnd: x.r.IntN(4) > 0, Spare: x.r.Int64N(x.lim.Rate.N / 20)}
	if law.Shape == limit.ShapeLog && x.r.IntN(2) == 0 {
		law.Margin = twinMargin
	}
	if x.r.IntN(3) == 0 {
		law.Edge = time.Duration(time.Now().UnixNano()) - time.Duration(x.r.IntN(100))*10*time.Millisecond
	}
	return law
}

// both reports what the two ledgers said of one change.
func (x *twin) both(what string, store, books bool) {
	x.t.Helper()
	if store != books {
		x.t.Fatalf("%s of %+v: the store says %v, the books %v", what, x.lim, store, books)
	}
}

func (x *twin) take() {
	m := x.m[x.r.IntN(len(x.m))]
	n := x.lim.Rate.N
	c := limit.Cost{Requests: 1, Input: x.r.Int64N(n/4 + 1), Output: x.r.Int64N(n/4 + 1)}
	if x.r.IntN(3) > 0 {
		c.Input, c.Output = c.Input/8, c.Output/8
	}
	a := limit.Ask{Cost: c, Scopes: []string{"s"}}
	store, err := m.TryAdmit(a)
	books, want := x.l.TryAdmit(a)
	x.both(fmt.Sprintf("a cost of %+v: %v and %v", c, err, want), err == nil, want == nil)
	if err == nil {
		x.granted++
		x.open = append(x.open, twinCall{store, books, c})
		return
	}
	x.refused++
	var e, w *limit.Error
	if !errors.As(err, &e) || !errors.As(want, &w) || e.Wait != (w.Wait+time.Microsecond-1)/time.Microsecond*time.Microsecond {
		x.t.Fatalf("%+v of %+v: the store says %v, the books %v", c, x.lim, err, want)
	}
}

func (x *twin) end() {
	i := x.r.IntN(len(x.open))
	o := x.open[i]
	x.open = append(x.open[:i], x.open[i+1:]...)
	switch x.r.IntN(5) {
	case 0:
		o.store.Keep()
		o.books.Keep()
	case 1:
		o.store.Return()
		o.books.Return()
	default:
		c := limit.Cost{Input: x.r.Int64N(2*o.cost.Input + 2), Output: x.r.Int64N(2*o.cost.Output + 2)}
		o.store.Settle(c)
		o.books.Settle(c)
	}
}

func (x *twin) step() {
	time.Sleep(time.Duration([]int64{0, 1, 700, 2e4, 3e5, 2e6, 9e6, 70e6}[x.r.IntN(8)]) * time.Microsecond)
	x.tell()
	switch k := x.r.IntN(40); {
	case k < 4 && len(x.open) > 0:
		o := x.open[x.r.IntN(len(x.open))]
		switch x.r.IntN(4) { // else the note is an old one, or there is none
		case 0:
			o.store.Sent()
			o.books.Sent()
		case 1:
			o.store.Made()
			o.books.Made()
		}
		if k == 0 { // a reading that comes later
			break
		}
		remaining := x.r.Int64N(x.lim.Rate.N)
		if x.r.IntN(2) == 0 { // near to what the books have
			remaining = max(0, x.l.SnapshotOf("s").Limits[0].Credit-x.r.Int64N(x.lim.Rate.N/20))
		}
		got := o.store.LowerIn("s", x.lim.Name, remaining, limit.Cost{})
		x.both("a reading", got, o.books.LowerIn("s", x.lim.Name, remaining, limit.Cost{}))
		x.lowered++
	case k == 4:
		keep, d := x.r.Int64N(x.lim.Rate.N/9+1), time.Duration(x.r.IntN(3000))*time.Millisecond
		got := x.m[0].DrainScope("s", x.lim.Name, keep, d)
		x.both("a drain", got, x.l.DrainScope("s", x.lim.Name, keep, d))
	case k < 7:
		x.laws++
		switch x.r.IntN(4) {
		case 0:
			x.lim.Rate.N = x.lim.Rate.N * (5 + x.r.Int64N(10)) / 10
			x.lim.Burst = x.lim.Rate.N
			x.lim.Law.Spare = min(x.lim.Law.Spare, x.lim.Rate.N/30)
		case 1:
			// Of which instant readings of a bucket speak the store learns by what the member knows.
			if s := x.lim.Law.Shape; x.lim.ReadAt == 0 && (s == limit.ShapeLog || s == limit.ShapeFixed) {
				x.lim.Law = limit.Law{}
			}
		default:
			x.lim.Law = x.law()
		}
		x.m[x.r.IntN(len(x.m))].EnforceScopeLimit("s", x.lim)
		x.l.EnforceScopeLimit("s", x.lim)
	case k < 24 && len(x.open) > 0 || len(x.open) > 40:
		x.end()
	default:
		x.take()
	}
	x.tell()
}

// tell has every member hear of the state, and compares it where it is known.
func (x *twin) tell() {
	x.t.Helper()
	for _, m := range x.m {
		m.Snapshot() // it sends what it has
	}
	want, known := x.l.SnapshotOf("s").Limits[0], false
	for _, m := range x.m {
		for _, s := range m.Snapshot().Scopes {
			if s.Scope != "s" {
				continue
			}
			known = true
			if got := s.Limits[0]; got.Credit-got.Debt != want.Credit-want.Debt || got.Capacity != want.Capacity {
				x.t.Fatalf("%d granted, %d refused, %d laws, %d readings: %+v: the store has %d of %d, the books %d of %d", x.granted, x.refused, x.laws, x.lowered, x.lim, got.Credit-got.Debt, got.Capacity, want.Credit-want.Debt, want.Capacity)
			}
		}
	}
	if !known {
		x.t.Fatal("no member knows the limit")
	}
}

// twinIn is a limit of the scope "s" under a law of its own, in the store and beside it.
func twinIn(t *testing.T, m []*redislimit.Limiter, r *rand.Rand) *twin {
	time.Sleep(time.Until(time.UnixMilli((time.Now().UnixMilli()/7320 + 1) * 7320))) // slots of both logs begin
	l, err := limit.New(limit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := []int64{1000, 300_000, int64(twinWindow / time.Microsecond)}[r.IntN(3)]
	return &twin{t: t, r: r, m: m, l: l, lim: limit.Limit{Name: "tpm", Unit: limit.Tokens, Rate: limit.Rate{N: n, Window: twinWindow}, Burst: n}}
}

func (x *twin) obey(law limit.Law) {
	x.lim.Law = law
	x.m[0].EnforceScopeLimit("s", x.lim)
	x.l.EnforceScopeLimit("s", x.lim)
}

// A limit that is charged at the end of calls, under laws and rates that change, with
// readings: every decision, wait and credit of several members is that of package limit.
func TestTheStoreCountsEndsAsTheLimiterDoes(t *testing.T) {
	t.Parallel()
	for seed := range *twins {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, 2, redislimit.Options{SettleWithin: time.Nanosecond}, func(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, _ []*wire) {
				x := twinIn(t, m, rand.New(rand.NewPCG(seed, 41)))
				if seed%2 == 1 {
					x.lim.Unit = limit.Unit(1 + x.r.IntN(3))
				}
				x.lim.ReadAt = limit.ReadAt(x.r.IntN(3))
				x.obey(x.law())
				for range 300 {
					x.step()
				}
				if x.granted < 20 {
					t.Errorf("%d granted, %d refused", x.granted, x.refused)
				}
			})
		})
	}
}

// Input above its estimate is charged once: by the reading, which has it, or by the
// settlement. So it is in package limit.
func TestAReadingHasInputAboveItsEstimate(t *testing.T) {
	t.Parallel()
	bubble(t, 2, redislimit.Options{SettleWithin: time.Nanosecond}, func(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, _ []*wire) {
		x := twinIn(t, m, rand.New(rand.NewPCG(1, 1)))
		x.lim.Rate.N, x.lim.Burst = 1000, 1000
		x.obey(limit.Law{})
		call := func(input int64) twinCall {
			a := limit.Ask{Cost: limit.Cost{Requests: 1, Input: input}, Scopes: []string{"s"}}
			store, _ := m[0].TryAdmit(a)
			books, _ := x.l.TryAdmit(a)
			store.Sent()
			books.Sent()
			time.Sleep(time.Second)
			x.tell()
			return twinCall{store, books, a.Cost}
		}
		reading := func(c twinCall, remaining, want int64) {
			t.Helper()
			x.both("a reading", c.store.LowerIn("s", "tpm", remaining, limit.Cost{}), c.books.LowerIn("s", "tpm", remaining, limit.Cost{}))
			x.tell()
			if got := x.l.SnapshotOf("s").Limits[0].Credit; got != want {
				t.Errorf("the credit is %d, want %d", got, want)
			}
		}
		settle := func(c twinCall, input int64) {
			c.store.Settle(limit.Cost{Input: input})
			c.books.Settle(limit.Cost{Input: input})
			x.tell()
		}
		old, low, made := call(100), call(100), call(100)
		reading(made, 400, 416) // 16 in a second
		settle(low, 300)        // the reading has its 200 more: it was sent after low
		reading(made, 390, 406)
		reading(old, 500, 348) // of a balance before low and made, which are not in it
		made.store.Made()
		made.books.Made()
		reading(made, 300, 300)
		settle(made, 350)      // all of it is in the reading
		reading(old, 900, 298) // the own books have no more
		quiet := limit.Ask{Cost: limit.Cost{Requests: 1, Input: 100}, Scopes: []string{"s"}}
		store, _ := m[0].TryAdmit(quiet)
		books, _ := x.l.TryAdmit(quiet)
		last := call(50)
		settle(twinCall{store, books, quiet.Cost}, 150) // without a note, and in the reading all the same
		reading(last, 90, 106)
	})
}

// before has the store hold x as the version before wrote it, in layout 1.
func (x *twin) before(server *redistest.Server) {
	x.t.Helper()
	const script = `local layout, s = cmsgpack.unpack(redis.call('GET', KEYS[1]))
		for _, l in ipairs(s[14]) do
			if l[13] then l[13] = {l[13][1], l[13][2], l[13][3], l[13][4]} end
		end
		redis.call('SET', KEYS[1], cmsgpack.pack(1, s), 'KEEPTTL')
		return layout`
	for _, scope := range []string{"", "s"} {
		if layout := server.Must(x.t, "EVAL", script, "1", "tripmeter:{"+x.t.Name()+"}:s:"+scope); layout != "2" {
			x.t.Fatalf("the layout is %s", layout)
		}
	}
}

// What the version before wrote, in layout 1, is read on. It does not name open calls, and
// a guess has no end books in it.
func TestAStateOfTheLayoutBeforeIsReadOn(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		bubble(t, 2, redislimit.Options{SettleWithin: time.Nanosecond}, func(t *testing.T, server *redistest.Server, m []*redislimit.Limiter, _ []*wire) {
			x := twinIn(t, m, rand.New(rand.NewPCG(seed, 43)))
			law := x.law()
			for law.AtEnd = false; law.Shape == limit.ShapeSliding; {
				law.Shape = x.law().Shape
			}
			x.obey(law)
			for range 40 {
				time.Sleep(time.Duration(x.r.IntN(2_000_000)) * time.Microsecond)
				x.take()
				if x.r.IntN(2) == 0 && len(x.open) > 0 {
					x.end()
				}
				x.tell()
			}
			for len(x.open) > 0 {
				x.end()
			}
			x.tell()
			x.before(server)
			for range 100 {
				x.step()
			}
		})
	}
}

// Open calls of a state in the layout before are charged where end books begin, and again
// when they end. Nobody has more than by the own books.
func TestOpenCallsOfTheLayoutBeforeGiveNoCredit(t *testing.T) {
	t.Parallel()
	for _, shape := range []limit.Shape{limit.ShapeLog, limit.ShapeSliding} {
		bubble(t, 2, redislimit.Options{SettleWithin: time.Nanosecond}, func(t *testing.T, server *redistest.Server, m []*redislimit.Limiter, _ []*wire) {
			x := twinIn(t, m, rand.New(rand.NewPCG(1, 47)))
			x.lim.Rate.N, x.lim.Burst = 1000, 1000
			x.obey(limit.Law{Shape: shape})
			a := limit.Ask{Cost: limit.Cost{Requests: 1, Input: 100, Output: 300}, Scopes: []string{"s"}}
			open, err := m[0].TryAdmit(a)
			if err != nil {
				t.Fatal(err)
			}
			m[1].Snapshot()
			x.before(server)
			x.obey(limit.Law{Shape: limit.ShapeLog, AtEnd: true})
			credit := func(want int64) {
				t.Helper()
				got := int64(-1)
				for _, s := range m[0].Snapshot().Scopes {
					if s.Scope == "s" {
						got = s.Limits[0].Credit
					}
				}
				if got != want {
					t.Errorf("%v: the credit is %d, want %d", shape, got, want)
				}
			}
			time.Sleep(30 * time.Second)
			credit(600)
			open.Keep()
			time.Sleep(time.Second)
			credit(200)
			time.Sleep(twinWindow - 30*time.Second)
			credit(600)
			time.Sleep(31 * time.Second)
			credit(1000)
		})
	}
}

// A process that is killed with calls under way: its places come back after the
// MemberTTL, and its calls end then, as they were reserved. If it comes back, what it
// settles counts once.
func TestAKilledProcessEndsItsCalls(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		lim := limit.Limit{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(1000), Burst: 1000, Law: limit.Law{Shape: limit.ShapeLog, AtEnd: true}}
		bubble(t, 2, redislimit.Options{Limits: []limit.Limit{lim}, SettleWithin: time.Nanosecond, Timeout: brisk}, func(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, lines []*wire) {
			start := time.Now()
			at := func(d time.Duration, want int64) {
				t.Helper()
				time.Sleep(d - time.Since(start))
				if got := credit(t, m[1], "tpm"); got != want {
					t.Errorf("at %v the credit is %d, want %d", d, got, want)
				}
			}
			r := take(t, m[0], limit.Ask{Cost: limit.Cost{Requests: 1, Input: 100, Output: 200}})
			at(time.Second, 700)
			lines[0].cut.Store(true)
			at(5*time.Second, 700) // the places are back, and all books have the call
			if s := m[1].Snapshot(); s.InFlight != 0 {
				t.Errorf("%d in flight", s.InFlight)
			}
			if !back {
				at(61*time.Second, 700)
				at(65*time.Second, 1000)
				return
			}
			lines[0].cut.Store(false)
			time.Sleep(time.Second)
			r.Settle(limit.Cost{Input: 100, Output: 400})
			at(8*time.Second, 500)
			at(61*time.Second, 500) // the first 300 counted until then from their start
			at(65*time.Second, 800)
			at(70*time.Second, 1000)
		})
	}
}

// blind is a ledger that does not say that it counts calls from their ends.
type blind struct{ *redislimit.Limiter }

func (b blind) Meters() limit.Meters {
	m := b.Limiter.Meters()
	m.Ends = false
	return m
}

// Two processes send to a Mistral, whose tokens are charged when calls end. With the end
// books of the store they use more of its quota than at the pace of a short burst, and
// none is refused.
func TestASharedBudgetOfMistralUsesItsQuota(t *testing.T) {
	t.Parallel()
	pace := func(ends bool) (took time.Duration, refused int64) {
		bubble(t, 2, redislimit.Options{}, func(t *testing.T, _ *redistest.Server, m []*redislimit.Limiter, _ []*wire) {
			took, refused = drain(t, m, ends)
		})
		return took, refused
	}
	before, refusedBefore := pace(false)
	now, refused := pace(true)
	t.Logf("%v and %d refused by the pace, %v and %d refused by end books", before, refusedBefore, now, refused)
	if now > before*99/100 || refused > 2 { // the order of equal instants moves both by some per cent
		t.Errorf("%v instead of %v, %d refused", now, before, refused)
	}
}

// drain plays 600 calls at once, three minutes of the limit, and returns how long they
// took and how many attempts were refused.
func drain(t *testing.T, m []*redislimit.Limiter, ends bool) (took time.Duration, refused int64) {
	preset, _ := providertest.PresetNamed("mistral")
	o := preset.Options(providertest.Limits{RPM: 600, TPM: 300_000})
	o.Output, o.Seed = providertest.Uniform(100, 1000), 7
	o.Latency = func(providertest.Call) providertest.Timing {
		return providertest.Timing{FirstByte: 500 * time.Millisecond, PerToken: 10 * time.Millisecond}
	}
	p, err := providertest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	mistral, _ := profile.ByName("mistral")
	var wg sync.WaitGroup
	start := time.Now()
	for i, l := range m {
		var ledger limit.Ledger = l
		if !ends {
			ledger = blind{l}
		}
		b, err := budget.New(budget.Options{Ledger: ledger, Profile: mistral, Limits: []limit.Limit{
			{Name: budget.NameOf(limit.Requests, time.Minute), Rate: limit.PerMinute(600)},
			{Name: budget.NameOf(limit.Tokens, time.Minute), Unit: limit.Tokens, Rate: limit.PerMinute(300_000)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		rt, err := transport.New(transport.Options{Base: p.RoundTripper(), Scopes: transport.Scopes{Budget: b}})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 300 {
			body := fmt.Sprintf(`{"model":"m","max_tokens":1000,"messages":[{"role":"user","content":"%s"}]}`, strings.Repeat("word ", 100+(k*37+i*11)%1900))
			wg.Go(func() {
				res, err := (&http.Client{Transport: rt}).Post("http://api.mistral.ai/v1/chat/completions", "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusOK {
					t.Error(res.Status)
				}
			})
		}
	}
	wg.Wait()
	took = time.Since(start)
	return took, p.Stats().Refused
}
