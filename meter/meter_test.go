package meter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// Every hook that a Trace has is joined, in order.
func TestJoinCallsEveryHookOfEveryTrace(t *testing.T) {
	kind := reflect.TypeFor[transport.Trace]()
	for i := range kind.NumField() {
		f := kind.Field(i)
		var order []string
		one := func(name string) transport.Trace {
			var tr transport.Trace
			hook := reflect.MakeFunc(f.Type, func([]reflect.Value) []reflect.Value { order = append(order, name); return nil })
			reflect.ValueOf(&tr).Elem().Field(i).Set(hook)
			return tr
		}
		joined := Join(one("a"), transport.Trace{}, one("b"))
		var args []reflect.Value
		for j := range f.Type.NumIn() {
			args = append(args, reflect.Zero(f.Type.In(j)))
		}
		v := reflect.ValueOf(joined)
		if v.Field(i).IsNil() {
			t.Errorf("%s is lost", f.Name)
			continue
		}
		v.Field(i).Call(args)
		if strings.Join(order, "") != "ab" {
			t.Errorf("%s: called %v, want a, b", f.Name, order)
		}
		for j := range kind.NumField() {
			if j != i && !v.Field(j).IsNil() {
				t.Errorf("%s comes from nowhere", kind.Field(j).Name)
			}
		}
	}
}

// A hook that the meter does not listen to would be a hole in what is seen.
func TestMeterListensToEveryHook(t *testing.T) {
	v := reflect.ValueOf(New(Options{}).Trace("a"))
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			t.Errorf("%s is not listened to", v.Type().Field(i).Name)
		}
	}
}

// In any order of events the series of budgets sum up to what happened. So do those
// of tenants with the rest, as long as no series ended. The gauges agree with the
// calls that are open.
func TestEveryEventIsCountedOnce(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		tenants := 1 + r.IntN(12)
		m := New(Options{
			Tenants: 4, Scopes: 3,
			Tenant: func(r *http.Request) string { return r.Host },
			Scope:  func(r *http.Request) string { return r.Method },
		})
		traces := []transport.Trace{m.Trace("a"), m.Trace("b")}
		var want, got Counts
		type open struct {
			r        *http.Request
			t        transport.Trace
			cost     limit.Cost
			admitted bool
		}
		var calls []open
		for range 300 {
			switch k := r.IntN(6); {
			case k < 2:
				c := open{
					r:    &http.Request{Host: fmt.Sprint(r.IntN(tenants)), Method: fmt.Sprint(r.IntN(5))},
					t:    traces[r.IntN(2)],
					cost: limit.Cost{Requests: 1, Input: r.Int64N(1000), Output: r.Int64N(1000)},
				}
				c.t.Queued(c.r, c.cost)
				want.Queued++
				calls = append(calls, c)
			case len(calls) == 0:
			default:
				i := r.IntN(len(calls))
				c := &calls[i]
				switch {
				case !c.admitted && k == 2:
					c.t.Refused(c.r, &limit.Error{Reason: limit.ErrQueueFull})
					want.Refused[QueueFull]++
					calls = append(calls[:i], calls[i+1:]...)
				case !c.admitted:
					c.t.Granted(c.r, c.cost, time.Second)
					want.Admitted++
					c.admitted = true
				case k == 3:
					c.t.Answered(transport.Attempt{Request: c.r, Status: 429, Left: transport.Left{Requests: -1, Tokens: 5, Input: -1, Output: -1}})
					want.Attempts[RateLimited]++
				default:
					u := transport.Usage{Input: 10, Output: 20, Found: k == 4}
					c.t.Settled(transport.Settlement{Request: c.r, Reserved: c.cost, Charged: c.cost, Usage: u, Complete: k == 4})
					want.Settled++
					want.Charged.Input += c.cost.Input
					want.Charged.Output += c.cost.Output
					if u.Found {
						want.Reported++
						want.Used.Input += 10
						want.Used.Output += 20
					}
					calls = append(calls[:i], calls[i+1:]...)
				}
			}
		}
		check := func(what string, all []Series) {
			got = Counts{}
			var waiting, flight int64
			for _, s := range all {
				got.Queued += s.Queued
				got.Admitted += s.Admitted
				got.Settled += s.Settled
				got.Reported += s.Reported
				got.Refused[QueueFull] += s.Refused[QueueFull]
				got.Attempts[RateLimited] += s.Attempts[RateLimited]
				got.Charged.Input += s.Charged.Input
				got.Charged.Output += s.Charged.Output
				got.Used.Input += s.Used.Input
				got.Used.Output += s.Used.Output
				waiting += s.Waiting
				flight += s.InFlight
			}
			if got.Queued != want.Queued || got.Admitted != want.Admitted || got.Settled != want.Settled || got.Reported != want.Reported ||
				got.Refused != want.Refused || got.Attempts != want.Attempts || got.Charged != want.Charged || got.Used != want.Used {
				t.Fatalf("seed %d, %s:\n got %+v\nwant %+v", seed, what, got, want)
			}
			var w, f int64
			for _, c := range calls {
				if c.admitted {
					f++
				} else {
					w++
				}
			}
			if waiting != w || flight != f {
				t.Fatalf("seed %d, %s: %d wait and %d are in flight, want %d and %d", seed, what, waiting, flight, w, f)
			}
		}
		s := m.Read(0, 0)
		var budgets []Series
		for _, b := range s.Budgets {
			budgets = append(budgets, b.Series)
		}
		check("budgets", budgets)
		check("tenants", s.Tenants)
		check("scopes", s.Scopes)
		if len(s.Tenants) > 5 || len(s.Scopes) > 4 {
			t.Fatalf("%d tenants and %d scopes have a series", len(s.Tenants), len(s.Scopes))
		}
		if m.calls.count() != len(calls) {
			t.Fatalf("%d calls are kept, %d are open", m.calls.count(), len(calls))
		}
	}
}

// A tenant that becomes heavy gets a series, though all were taken. Its open calls,
// and those of the tenant that gave way, are counted in the rest.
func TestHeavyTenantsGetTheSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{Tenants: 2, Tenant: func(r *http.Request) string { return r.Host }})
		tr := m.Trace("a")
		open := []*http.Request{}
		ask := func(tenant string, n int64) {
			r := &http.Request{Host: tenant}
			tr.Queued(r, limit.Cost{Requests: 1, Input: n})
			open = append(open, r)
		}
		ask("light", 1)
		ask("middle", 500)
		ask("heavy", 5000) // no series is left
		if s := m.Read(0, 0); s.Tenants[2].Waiting != 1 || s.Tenants[2].Name != Rest {
			t.Fatalf("the rest is %+v", s.Tenants[2])
		}
		time.Sleep(reviewEvery)
		ask("heavy", 5000)
		s := m.Read(0, 0)
		names := map[string]int64{}
		for _, v := range s.Tenants {
			names[v.Name] = v.Waiting
		}
		if want := map[string]int64{"heavy": 1, "middle": 1, Rest: 2}; !reflect.DeepEqual(names, want) {
			t.Fatalf("waiting %v, want %v: the call of the one that gave way, and the first of the heavy one, are of the rest", names, want)
		}
		for _, r := range open {
			tr.Granted(r, limit.Cost{}, 0)
			tr.Settled(transport.Settlement{Request: r})
		}
		for _, v := range m.Read(0, 0).Tenants {
			if v.Waiting != 0 || v.InFlight != 0 {
				t.Errorf("%s has %d waiting and %d in flight at the end", v.Name, v.Waiting, v.InFlight)
			}
		}
	})
}

// Of many equal tenants those keep their series that have one.
func TestEqualTenantsDoNotChangePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{Tenants: 5, Tenant: func(r *http.Request) string { return r.Host }})
		tr := m.Trace("a")
		names := func() (out []string) {
			for _, v := range m.Read(0, 0).Tenants {
				out = append(out, v.Name)
			}
			slices.Sort(out)
			return out
		}
		var first []string
		for i := range 20_000 {
			r := &http.Request{Host: fmt.Sprint(i % 500)}
			tr.Queued(r, limit.Cost{Requests: 1, Input: 100})
			tr.Refused(r, errors.New("no"))
			if i == 10 {
				first = names()
			}
			time.Sleep(5 * time.Millisecond)
		}
		if got := names(); !slices.Equal(got, first) {
			t.Errorf("the series are of %v, and were of %v", got, first)
		}
	})
}

// A request that is sent again before its first call is over takes a place of its own
// in the line.
func TestARequestSentAgainIsACallOfItsOwn(t *testing.T) {
	m := New(Options{})
	tr := m.Trace("a")
	r := &http.Request{}
	for _, tenant := range []string{"x", "y"} {
		tr.Who(r, tenant, limit.Interactive)
		tr.Queued(r, limit.Cost{Requests: 1})
		tr.Granted(r, limit.Cost{Requests: 1}, 0)
	}
	tr.Settled(transport.Settlement{Request: r})
	b := m.Read(0, 0).Budgets[0]
	if b.Queued != 2 || b.Admitted != 2 || b.Waiting != 0 || b.Settled != 1 || m.calls.count() != 0 {
		t.Errorf("%d queued, %d admitted, %d waiting, %d settled, %d kept", b.Queued, b.Admitted, b.Waiting, b.Settled, m.calls.count())
	}
}

// A hundred thousand tenants, once each, take the memory of a few.
func TestMemoryIsBoundedByTheSeries(t *testing.T) {
	m := New(Options{Tenants: 10, Tenant: func(r *http.Request) string { return r.Host }})
	tr := m.Trace("a")
	for i := range 100_000 {
		r := &http.Request{Host: fmt.Sprint(i)}
		tr.Queued(r, limit.Cost{Requests: 1})
		tr.Refused(r, errors.New("no"))
	}
	if n := len(m.tenants.named) + len(m.tenants.watched); n > 30 || m.calls.count() != 0 {
		t.Errorf("%d names and %d calls are kept", n, m.calls.count())
	}
	s := m.Read(0, 0)
	if rest := s.Tenants[len(s.Tenants)-1]; rest.Queued != 100_000-10 {
		t.Errorf("the rest counts %d", rest.Queued)
	}
}

// Nothing known: everything is there, at 0, and JSON has no number that stands
// for unknown.
func TestEverySeriesIsThereFromTheStart(t *testing.T) {
	m := New(Options{})
	m.Trace("a")
	b, err := json.Marshal(m.Read(10, 0))
	if err != nil {
		t.Fatal(err)
	}
	var check func(path string, v any)
	check = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, v := range v {
				check(path+"."+k, v)
			}
		case []any:
			for _, v := range v {
				check(path, v)
			}
		case float64:
			if v < 0 || v > math.MaxInt32 {
				t.Errorf("%s is %v", path, v)
			}
		}
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	check("", v)
	if !strings.Contains(string(b), `"budgets":[{"name":"a","waiting":0,"inFlight":0,"queued":0`) {
		t.Errorf("no series at 0: %s", b)
	}
}

// A real run: what the meter says of waiting and pacing agrees with the clock.
func TestWhyACallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := providertest.New(providertest.Options{Output: providertest.Constant(10)})
		if err != nil {
			t.Fatal(err)
		}
		m := New(Options{})
		rt, err := transport.New(transport.Options{Base: p.RoundTripper(), RPM: 60, Trace: m.Trace("box")})
		if err != nil {
			t.Fatal(err)
		}
		m.Watch("box", rt)
		if got := m.Read(1, 0).Why; got != "Nobody waits." {
			t.Error(got)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { post(t, rt) })
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		s := m.Read(2, 0)
		// A snapshot tells credit in whole units, so up to one unit's time is added.
		if want := "4 calls wait. The next goes in about 1.0 s: requests per minute of box has 0 of 2 requests and earns 1 a second."; s.Why != want {
			t.Errorf("%q, want %q", s.Why, want)
		}
		if len(s.Line) != 2 || s.Line[0].Expected != time.Second || s.Line[1].Expected != 2*time.Second || s.Line[0].Since != 500*time.Millisecond {
			t.Errorf("line %+v", s.Line)
		}
		all.Wait()
		s = m.Read(1, 0)
		if b := s.Budgets[0]; b.Pacing != 4*time.Second || b.Settled != 5 || b.Used.Output != 50 || b.Wait.Sum != 10 || b.Attempts[Success] != 5 {
			t.Errorf("pacing %v, settled %d, output %d, waits %v", b.Pacing, b.Settled, b.Used.Output, b.Wait.Sum)
		}
		if mean, ok := s.Budgets[0].Wait.Mean(); !ok || mean != 2 {
			t.Errorf("mean wait %v", mean)
		}
		var sum Second
		for _, c := range s.Chart {
			sum.Admitted += c.Admitted
			sum.Settled += c.Settled
			sum.Queued += c.Queued
			sum.Paced += c.Paced
		}
		if sum.Paced != 4 {
			t.Errorf("somebody waited %v of the seconds, want 4", sum.Paced)
		}
		if sum.Queued != 5 || sum.Admitted != 5 || sum.Settled != 5 || len(s.Chart) != 5 {
			t.Errorf("chart of %d seconds: %+v", len(s.Chart), sum)
		}
	})
}

func post(t *testing.T, rt http.RoundTripper) {
	resp, err := (&http.Client{Transport: rt}).Post("http://box/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		t.Error(err)
		return
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// The charts reach back five minutes and skip no second, however long nothing
// happened.
func TestChartHasNoHoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{})
		tr := m.Trace("a")
		r := &http.Request{}
		tr.Queued(r, limit.Cost{})
		time.Sleep(1000 * time.Second)
		c := m.Read(0, 0).Chart
		if len(c) != chartSeconds || c[0].At != 701 || c[len(c)-1].At != 1000 {
			t.Fatalf("%d seconds from %d", len(c), c[0].At)
		}
		for i, s := range c {
			if s.At != int64(701+i) || s.Waiting != 1 || s.Queued != 0 {
				t.Fatalf("second %d: %+v", i, s)
			}
		}
		if got := m.Read(0, 999).Chart; len(got) != 2 {
			t.Errorf("%d seconds since 999", len(got))
		}
	})
}

func TestNumbersForPeople(t *testing.T) {
	for want, got := range map[string]string{
		"0": Number(0), "999": Number(999), "-1,000": Number(-1000), "1,234,567": Number(1234567),
		"0 s": Short(-1), "1 ms": Short(1), "250 ms": Short(250 * time.Millisecond), "1.4 s": Short(1400 * time.Millisecond),
		"90 s": Short(90 * time.Second), "3 min": Short(3 * time.Minute), "2.5 h": Short(150 * time.Minute), "3 days": Short(72 * time.Hour),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// count is how many calls are kept.
func (cs *calls) count() int {
	n := len(cs.others)
	if c := cs.newest; c != nil && cs.others[c.request] == nil {
		n++
	}
	return n
}
