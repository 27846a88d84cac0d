package redislimit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// The test binary is the worker program as well: these tests start it again, as
// processes that can be killed.
func TestMain(m *testing.M) {
	if job := os.Getenv("TRIPMETER_WORKER"); job != "" {
		var w worker
		if err := json.Unmarshal([]byte(job), &w); err != nil {
			panic(err)
		}
		w.run()
		return
	}
	flag.Parse()
	flag.Set("test.parallel", "6") // most of them wait
	os.Exit(m.Run())
}

// A worker is one process with callers that send to the provider.
type worker struct {
	Store, Provider, Budget string
	Rate, Burst             int64
	Callers                 int
	Think                   time.Duration // between two calls of a caller
	Tenant                  string
	Split                   int           // without the store, of so many
	Skew                    time.Duration // of its clock
	Window                  limit.Law     // of a second limit, twice as wide, whose edge it has seen on its clock
}

func (w worker) run() {
	var l limit.Ledger
	redislimit.SkewClock(w.Skew)
	limits := tokenLimit(limit.PerSecond(w.Rate), w.Burst, true)
	if w.Split > 0 {
		l = redislimit.Alone(redislimit.Split(limits[0], w.Split))
	} else {
		t := &fatal{}
		x, err := redislimit.New(redislimit.Options{Name: w.Budget, Runner: viaRueidis(t, w.Store), Limits: limits, MaxInFlight: 4096,
			Timeout: 1500 * time.Millisecond, MemberTTL: 3 * time.Second})
		if err != nil {
			panic(err)
		}
		l = x
		if w.Window.Shape.Windowed() { // by now its edge has passed on every clock
			w.Window.Edge += w.Skew
			lim := limit.Limit{Name: "window", Unit: limit.Tokens, Rate: limit.Rate{N: 2 * w.Rate, Window: 2 * time.Second}, Law: w.Window}
			if err := x.EnforceScopeLimit("", lim); err != nil {
				panic(err)
			}
		}
	}
	var all sync.WaitGroup
	for i := range w.Callers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(i)))
			c, err := net.Dial("tcp", w.Provider)
			if err != nil {
				return
			}
			in := bufio.NewReader(c)
			for {
				cost := 20 + r.Int64N(41)
				got, err := l.Admit(context.Background(), limit.Ask{Cost: tokens(cost), Tenant: w.Tenant})
				if err != nil {
					panic(err)
				}
				actual := cost - r.Int64N(20)
				fmt.Fprintf(c, "%d %d\n", cost, actual)
				if _, err := in.ReadString('\n'); err != nil {
					return
				}
				got.Settle(tokens(actual))
				time.Sleep(w.Think)
			}
		})
	}
	all.Wait()
	if w.Callers == 0 {
		select {} // idle, and still a member
	}
}

// fatal is a testing.TB for a process without tests.
type fatal struct{ testing.TB }

func (fatal) Helper()           {}
func (fatal) Cleanup(func())    {}
func (fatal) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// A provider keeps its own ledger, in a bucket of its own arithmetic: it charges
// what a call reserves, answers, and gives back what was not used.
type provider struct {
	addr string

	mu      sync.Mutex
	rate    float64
	burst   float64
	level   float64
	last    time.Time
	charged int64
	refused int
	deepest float64 // below zero: admitted over the limit

	// What a bucket of the clients' own burst lost because nobody took it.
	own, ownLevel, lost float64
}

// newProvider has clients with that burst, and one of its own that is larger by what
// the way and a busy machine may bring together: a quarter of a second.
func newProvider(t testing.TB, rate, burst float64) *provider {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	p := &provider{addr: ln.Addr().String(), rate: rate, burst: burst + rate/4, level: burst + rate/4, last: time.Now(), own: burst}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *provider) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		var cost, actual int64
		if _, err := fmt.Fscanf(in, "%d %d\n", &cost, &actual); err != nil {
			return
		}
		p.mu.Lock()
		now := time.Now()
		earned := p.rate * now.Sub(p.last).Seconds()
		p.level = min(p.burst, p.level+earned)
		p.ownLevel += earned - float64(actual)
		if over := p.ownLevel - p.own; over > 0 {
			p.ownLevel -= over
			p.lost += over
		}
		p.last = now
		p.level -= float64(cost)
		if p.level < 0 {
			p.refused++
			p.deepest = min(p.deepest, p.level)
		}
		p.level += float64(cost - actual)
		p.charged += actual
		p.mu.Unlock()
		fmt.Fprintln(c, "ok")
	}
}

func (p *provider) unused() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *provider) used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.charged
}

// start starts a worker.
func start(t testing.TB, w worker) *exec.Cmd {
	t.Helper()
	job, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TRIPMETER_WORKER="+string(job), "GOMAXPROCS=2")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait()
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd
}

// Eight processes on one budget, one of which is killed every half a second and
// another one begins. Each has a clock of its own, off by up to ten minutes, on which it
// has seen the edge of a window: in the store it is one instant.
func TestEightProcessesKilledAtRandom(t *testing.T) {
	t.Parallel()
	onTime(t, theEightProcessesKilledAtRandom)
}

func theEightProcessesKilledAtRandom(t testing.TB) {
	const rate, burst, span = 4000, 8000, 16 * time.Second
	server := redistest.Start(t)
	p := newProvider(t, rate, burst)
	w := worker{Store: server.Addr, Provider: p.addr, Budget: "kill", Rate: rate, Burst: burst, Callers: 6,
		Window: limit.Law{Shape: limit.ShapeFixed, Edge: time.Duration(time.Now().UnixNano())}}
	r := rand.New(rand.NewPCG(5, 6))
	skewed := func() *exec.Cmd {
		w.Skew = time.Duration(r.IntN(1_200_000)-600_000) * time.Millisecond
		return start(t, w)
	}
	var procs []*exec.Cmd
	for range 8 {
		procs = append(procs, skewed())
	}
	eventually(t, 10*time.Second, "they work", func() bool { return p.used() > 0 })
	time.Sleep(time.Second)
	begin, from, kills := time.Now(), p.used(), 0
	for time.Since(begin) < span {
		time.Sleep(400*time.Millisecond + time.Duration(r.IntN(200))*time.Millisecond)
		i := r.IntN(len(procs))
		procs[i].Process.Kill()
		kills++
		procs[i] = skewed()
	}
	used := float64(p.used()-from) / (rate * time.Since(begin).Seconds())
	t.Logf("%d kills, %.3f of the rate used, %d calls over the limit, by %.0f tokens at most", kills, used, p.refused, -p.deepest)
	if p.refused > 0 {
		t.Errorf("%d calls over the limit", p.refused)
	}
	for _, c := range procs {
		c.Process.Kill()
	}
	// Only the dead processes still hold something: it comes back.
	l := open(t, redislimit.Options{Name: "kill", Runner: viaRueidis(t, server.Addr), Limits: tokenLimit(limit.PerSecond(rate), burst, true), MaxInFlight: 4096,
		Timeout: 1500 * time.Millisecond, MemberTTL: 3 * time.Second})
	eventually(t, 10*time.Second, "places and turns of the dead are back", func() bool {
		s := l.Snapshot()
		return s.InFlight == 0 && s.Waiting == 0
	})
	// All of them meant one edge.
	for _, s := range l.Snapshot().Limits {
		if s.Name != "window" {
			continue
		}
		const window = 2 * time.Second
		off := (s.Law.Edge-w.Window.Edge)%window + window
		if off = min(off%window, (window-off%window)%window); off > 50*time.Millisecond {
			t.Errorf("the edge is off by %v", off)
		}
		return
	}
	t.Error("the window is gone")
}

// The same in fake time, where nothing is late: eight processes, of which one is killed
// every half a second, use 95 % of the rate, and are never over it.
func TestEightProcessesKilledLeaveLittle(t *testing.T) {
	t.Parallel()
	const rate, burst, span = 4000, 8000, 12 * time.Second
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		store := redislimit.NewFakeStore(server.Addr)
		r := rand.New(rand.NewPCG(5, 6))
		var mu sync.Mutex
		var all []admission
		var callers sync.WaitGroup
		begin := func() (kill func()) {
			client := store.Client(t)
			line := &wire{Runner: client}
			l := open(t, redislimit.Options{Runner: phone{line, client}, Limits: tokenLimit(limit.PerSecond(rate), burst, true), MaxInFlight: 4096,
				Timeout: 1500 * time.Millisecond, MemberTTL: 3 * time.Second})
			ctx, stop := context.WithCancel(t.Context())
			for i := range 6 {
				costs := rand.New(rand.NewPCG(r.Uint64(), uint64(i)))
				callers.Go(func() {
					for {
						cost := 20 + costs.Int64N(41)
						got, err := l.Admit(ctx, limit.Ask{Cost: tokens(cost)})
						if err != nil {
							return
						}
						actual := cost - costs.Int64N(20)
						mu.Lock()
						all = append(all, admission{time.Now(), actual})
						mu.Unlock()
						if time.Sleep(20 * time.Millisecond); ctx.Err() != nil {
							return // nobody settles it
						}
						got.Settle(tokens(actual))
					}
				})
			}
			return func() { line.cut.Store(true); stop() }
		}
		var procs []func()
		for range 8 {
			procs = append(procs, begin())
		}
		time.Sleep(time.Second)
		from, kills := time.Now(), 0
		for time.Since(from) < span {
			time.Sleep(400*time.Millisecond + time.Duration(r.IntN(200))*time.Millisecond)
			i := r.IntN(len(procs))
			procs[i]()
			procs[i] = begin()
			kills++
		}
		to := time.Now()
		for _, kill := range procs {
			kill()
		}
		callers.Wait()
		used := between(all, from, to) / (rate * to.Sub(from).Seconds())
		t.Logf("%d kills, %.3f of the rate used", kills, used)
		if over := excess(all, rate, burst); over > 0 {
			t.Errorf("%.0f tokens over the limit", over)
		}
		if used < 0.95 {
			t.Errorf("only %.3f of the rate used", used)
		}
	})
}

// Four processes at three times the load, equal and unequal, use no more than one
// process, and are refused as little. A share each, without a store, does not lend. That
// they use no less, TestFourProcessesLeaveNothing shows.
func TestFourProcessesUseWhatOneUses(t *testing.T) {
	t.Parallel()
	onTime(t, theFourProcessesUseWhatOneUses)
}

func theFourProcessesUseWhatOneUses(t testing.TB) {
	const rate, burst, span = 3000, 6000, 6 * time.Second
	server := redistest.Start(t)
	used := map[string]float64{}
	for _, x := range []struct {
		name    string
		callers []int
		think   time.Duration
		split   int
	}{
		{"one process", []int{48}, 0, 0},
		{"four, equal", []int{12, 12, 12, 12}, 0, 0},
		{"four, one has 80 %", []int{38, 4, 3, 3}, 0, 0},
		{"four, three idle", []int{48, 0, 0, 0}, 0, 0},
		{"a quarter each, one has 80 %", []int{38, 1, 1, 1}, 100 * time.Millisecond, 4},
	} {
		p := newProvider(t, rate, burst)
		var procs []*exec.Cmd
		for i, n := range x.callers {
			think := x.think
			if i == 0 {
				think = 0
			}
			procs = append(procs, start(t, worker{Store: server.Addr, Provider: p.addr, Budget: x.name, Rate: rate, Burst: burst,
				Callers: n, Think: think, Split: x.split}))
		}
		eventually(t, 10*time.Second, "they work", func() bool { return p.used() > 0 })
		time.Sleep(time.Second)
		begin, from, lost := time.Now(), p.used(), p.unused()
		time.Sleep(span)
		took := time.Since(begin).Seconds()
		used[x.name] = 1 - (p.unused()-lost)/(rate*took)
		t.Logf("%s: %.4f of what was earned (%.4f of the rate), %d over the limit", x.name, used[x.name], float64(p.used()-from)/(rate*took), p.refused)
		if p.refused > 0 {
			t.Errorf("%s: %d calls over the limit", x.name, p.refused)
		}
		for _, c := range procs {
			c.Process.Kill()
		}
	}
	if q := used["a quarter each, one has 80 %"]; q > 0.9 {
		t.Errorf("a quarter each: %.4f, so the load shows nothing", q)
	}
	for _, name := range []string{"four, equal", "four, one has 80 %", "four, three idle"} {
		// How little it may be is shown in fake time, as timers of a busy machine are late.
		if r := used[name] / used["one process"]; r > 1.01 {
			t.Errorf("%s: %.4f of what one process uses", name, r)
		}
	}
}

// The same in fake time, where nothing is late: four processes at three times the load
// admit all that the rate gives, with equal and unequal load, within 1 %.
func TestFourProcessesLeaveNothing(t *testing.T) {
	t.Parallel()
	const rate, burst, span = 3000, 600, 6
	for name, callers := range map[string][]int{
		"one process":         {48},
		"four, equal":         {12, 12, 12, 12},
		"four, one has 80 %":  {38, 4, 3, 3},
		"four, three idle":    {48, 0, 0, 0},
		"four, one caller in": {45, 1, 1, 1},
	} {
		o := redislimit.Options{Limits: tokenLimit(limit.PerSecond(rate), burst, true)}
		inFakeTime(t, len(callers), o, func(t *testing.T, m []*redislimit.Limiter) {
			ctx, stop := context.WithTimeout(t.Context(), span*time.Second)
			defer stop()
			var used atomic.Int64
			var all sync.WaitGroup
			for i, n := range callers {
				for range n {
					all.Go(func() {
						for {
							r, err := m[i].Admit(ctx, limit.Ask{Cost: tokens(60)})
							if err != nil {
								return
							}
							used.Add(60)
							r.Keep()
						}
					})
				}
			}
			all.Wait()
			if u := float64(used.Load()) / (rate * span); u < 0.99 || u > 1 {
				t.Errorf("%s: %.4f of the rate", name, u)
			}
		})
	}
}

// exampleServer starts a server for an example.
func exampleServer() (addr string, stop func()) {
	t := &short{}
	s := redistest.Start(t)
	return s.Addr, t.end
}

// short is a testing.TB that ends before the process does.
type short struct {
	testing.TB
	dir  string
	ends []func()
}

func (*short) Helper()            {}
func (s *short) Cleanup(f func()) { s.ends = append(s.ends, f) }
func (*short) Fatal(args ...any)  { panic(fmt.Sprint(args...)) }
func (*short) Fatalf(f string, args ...any) {
	panic(fmt.Sprintf(f, args...))
}

func (s *short) TempDir() string {
	dir, err := os.MkdirTemp("", "tripmeter")
	if err != nil {
		panic(err)
	}
	s.dir = dir
	return dir
}

func (s *short) end() {
	for _, f := range s.ends {
		f()
	}
	os.RemoveAll(s.dir)
}
